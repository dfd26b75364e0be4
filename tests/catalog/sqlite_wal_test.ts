/**
 * Tests that damage to committed data in SQLite's log is distinguished from the traces of a crash.
 */
import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { CorruptionError } from "../../src/base/errors.ts";
import { sqliteWalDamage } from "../../src/catalog/sqlite_wal.ts";
import { freshPath, openCatalog, removeCatalogs } from "./catalog_fixture.ts";

afterAll(removeCatalogs);

/** Returns a catalog's log after some transactions, and the offset of each frame. */
function walOf(transactionCount: number): { bytes: Buffer; frames: number[]; pageBytes: number } {
  const path = freshPath();
  const catalog = openCatalog(path);
  for (let count = 0; count < transactionCount; count += 1)
    catalog.revocations.revoke(`token ${count}`, 1);
  const bytes = readFileSync(`${path}-wal`);
  catalog.close();
  const pageBytes = bytes.readUInt32BE(8);
  const frames: number[] = [];
  for (let at = 32; at + 24 + pageBytes <= bytes.length; at += 24 + pageBytes) frames.push(at);
  return { bytes, frames, pageBytes };
}

function damageIn(bytes: Uint8Array): CorruptionError | undefined {
  return sqliteWalDamage(bytes, "catalog.sqlite-wal");
}

test("sqliteWalDamage is undefined for a log that is intact, empty, or ends within a frame", () => {
  const { bytes, frames } = walOf(3);
  expect(frames.length).toBeGreaterThan(2);
  expect(damageIn(bytes)).toBeUndefined();
  expect(damageIn(new Uint8Array(0))).toBeUndefined();
  // A process killed while writing leaves a frame header without its page.
  expect(damageIn(Buffer.concat([bytes, bytes.subarray(32, 56)]))).toBeUndefined();
  for (const at of frames) expect(damageIn(bytes.subarray(0, at))).toBeUndefined();
});

test("sqliteWalDamage names the frame in which any byte is damaged", () => {
  const { bytes, frames, pageBytes } = walOf(3);
  for (const [index, at] of frames.entries()) {
    const offsets = [...Array(24).keys(), 24, 25, 24 + (pageBytes >> 1), 23 + pageBytes];
    for (const offset of offsets) {
      const bad = Buffer.from(bytes);
      bad[at + offset] = (bad[at + offset] ?? 0) ^ 0x81;
      const damage = damageIn(bad);
      expect(damage, `frame ${index}, byte ${offset}`).toBeInstanceOf(CorruptionError);
      expect(Math.abs((damage?.offset ?? 0) - at)).toBeLessThanOrEqual(8);
    }
  }
  for (let offset = 0; offset < 32; offset += 1) {
    const bad = Buffer.from(bytes);
    bad[offset] = (bad[offset] ?? 0) ^ 0x81;
    expect(damageIn(bad), `header byte ${offset}`).toBeInstanceOf(CorruptionError);
  }
});

test("sqliteWalDamage reports if a frame may only have been torn by a crash", () => {
  const { bytes, frames } = walOf(3);
  const [first = 0] = frames;
  const last = frames.at(-1) ?? 0;
  const damaged = Buffer.from(bytes);
  damaged[first + 100] = (damaged[first + 100] ?? 0) ^ 1;
  expect(damageIn(damaged)?.what).not.toContain("partly written");
  const torn = Buffer.from(bytes);
  torn[last + 100] = (torn[last + 100] ?? 0) ^ 1;
  expect(damageIn(torn)?.what).toContain("partly written");
  // A transaction whose last frame is missing was never committed.
  torn.writeUInt32BE(0, last + 4);
  expect(damageIn(torn)).toBeUndefined();
});

test("sqliteWalDamage ignores frames of an earlier use of the file", () => {
  const { bytes, frames } = walOf(3);
  const last = frames.at(-1) ?? 0;
  const stale = Buffer.from(bytes);
  stale.writeUInt32BE(stale.readUInt32BE(16) - 1, last + 8);
  stale[last + 100] = (stale[last + 100] ?? 0) ^ 1;
  expect(damageIn(stale)).toBeUndefined();
});
