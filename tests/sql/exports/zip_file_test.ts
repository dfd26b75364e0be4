/**
 * Tests archives as other programs read them: their contents, names, ZIP64, and a failure in the
 * middle.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { ZipFile, type ZipOptions } from "../../../src/sql/exports/zip_file.ts";
import { programMissing, testThoroughly, testUnless } from "../../support/requirements.ts";
import { readZip, textOf } from "../../support/zip_reader.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-zip-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const AT = Date.UTC(2026, 10, 30, 12, 34, 56);

function zipAt(name: string, options: Partial<ZipOptions> = {}): [ZipFile, string] {
  const path = join(folder, name);
  return [new ZipFile({ disk: bunDisk, path, timeMs: AT, ...options }), path];
}

/** Compressible data longer than one piece. */
const LONG = new TextEncoder().encode("a row that repeats\n".repeat(40_000));

async function writeSample(zip: ZipFile): Promise<void> {
  zip.begin("app/ä table.ndjson", { isCompressed: true });
  await zip.write(LONG.subarray(0, 100));
  await zip.write(LONG.subarray(100));
  expect(await zip.end()).toBe(LONG.length);
  zip.begin("files/x.bin", { isCompressed: false });
  await zip.write(LONG);
  expect(await zip.end()).toBe(LONG.length);
  zip.begin("empty", { isCompressed: true });
  expect(await zip.end()).toBe(0);
  zip.begin("empty and stored", { isCompressed: false });
  expect(await zip.end()).toBe(0);
}

for (const shortMax of [undefined, 0, 100, 100_000]) {
  test(`an archive returns its contents, with ${shortMax ?? "all"} in short fields`, async () => {
    const [zip, path] = zipAt("a.zip", shortMax === undefined ? {} : { shortMax });
    await writeSample(zip);
    const size = await zip.finish();
    const bytes = readFileSync(path);
    expect(bytes.length).toBe(size);
    const entries = readZip(bytes);
    expect([...entries.keys()]).toEqual([
      "app/ä table.ndjson",
      "files/x.bin",
      "empty",
      "empty and stored",
    ]);
    expect(entries.get("app/ä table.ndjson")).toEqual(LONG);
    expect(textOf(entries, "files/x.bin")).toBe(new TextDecoder().decode(LONG));
    expect(entries.get("empty")?.length).toBe(0);
    expect(readdirSync(folder)).toEqual(["a.zip"]);
  });

  testUnless(programMissing("unzip", "unzip"))(
    `unzip accepts an archive, with ${shortMax ?? "all"} in short fields`,
    async () => {
      const [zip, path] = zipAt("b.zip", shortMax === undefined ? {} : { shortMax });
      await writeSample(zip);
      await zip.finish();
      const { exitCode, stdout } = Bun.spawnSync(["unzip", "-t", path]);
      expect(stdout.toString()).toContain("No errors detected");
      expect(exitCode).toBe(0);
    },
  );
}

testThoroughly("an archive may have more entries than the short form counts", async () => {
  const [zip, path] = zipAt("many.zip");
  for (let index = 0; index < 70_000; index += 1) {
    zip.begin(`f${index}`, { isCompressed: false });
    await zip.end();
  }
  await zip.finish();
  const entries = readZip(readFileSync(path));
  expect(entries.size).toBe(70_000);
  expect([...entries.keys()].at(-1)).toBe("f69999");
});

test("the checksum of a file in the archive detects every damaged byte", async () => {
  const [zip, path] = zipAt("c.zip");
  zip.begin("x", { isCompressed: false });
  await zip.write(LONG.subarray(0, 50));
  await zip.end();
  await zip.finish();
  const bytes = readFileSync(path);
  const start = 30 + 1 + 20;
  for (let at = start; at < start + 50; at += 1) {
    const damaged = Uint8Array.from(bytes);
    damaged[at] = (damaged[at] ?? 0) ^ 1;
    expect(() => readZip(damaged)).toThrow("the checksum of x");
  }
});

test("an abandoned archive removes its list, and its path may be removed", async () => {
  const [zip, path] = zipAt("d.zip", {
    onGrow: (bytes) => {
      if (bytes > 1000) throw new Error("no more");
    },
  });
  zip.begin("x", { isCompressed: false });
  expect(await zip.write(LONG).catch(String)).toBe("Error: no more");
  zip.discard();
  expect(readdirSync(folder)).toEqual(["d.zip"]);
  bunDisk.remove(path);
});
