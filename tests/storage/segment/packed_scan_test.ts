/**
 * Tests tables with packed segments: values that are not read are not unpacked, and damage that
 * only unpacking reveals leads to quarantine of the segment.
 */
import { expect, test } from "bun:test";
import { CorruptionError } from "../../../src/base/errors.ts";
import type { Seq } from "../../../src/base/seq.ts";
import { type LocalStore, type ScanBatch, SEQ_COLUMN_ID } from "../../../src/storage/mod.ts";
import { BLOCK_BYTES } from "../../../src/storage/segment/packing.ts";
import { TEXT, type Value, valueAt, valuesOf } from "../../../src/types/mod.ts";
import { forgedSegment } from "../../support/forged_segment.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { commit, DATA_PATH, defineTable, openStore } from "../../support/store_fixture.ts";

const TABLE = { ...defineTable(1, [{ kind: "int" }, TEXT]), compression: "auto" } as const;
const ROW_COUNT = 600;

function textOf(row: number): string {
  return `${row} `.repeat(120);
}

/** Returns a store with a single segment, in which the second block of text cannot be unpacked. */
async function withBrokenBlock(): Promise<{ store: LocalStore; manifest: MemoryManifest }> {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  const rows = Array.from({ length: ROW_COUNT }, (_, row): Value[] => [row, textOf(row)]);
  await commit(store, 1, "insert", rows);
  await commit(store, 1, "update", [[5, "replaced"]]);
  await store.flush(1);
  await store.close();
  expect(manifest.load().segments.map(({ compression }) => compression)).toEqual(["zstd"]);
  const path = `${DATA_PATH}/segments/1/1.seg`;
  const forged = forgedSegment(disk.readFile(path), 2, (chunk) => {
    const blockCount = Math.ceil(chunk.getUint32(0, true) / BLOCK_BYTES);
    const secondAt = 4 + 4 * blockCount + chunk.getUint32(4, true);
    chunk.setUint8(secondAt, chunk.getUint8(secondAt) ^ 0xff);
  });
  disk.open(path, {}).write(forged, 0);
  return { store: await openStore({ disk, manifest, definitions: [TABLE] }), manifest };
}

/** Calls `see` for each batch of a scan before the next batch is read. */
function batches<T>(store: LocalStore, batchRows: number, see: (batch: ScanBatch) => T): T[] {
  const columnIds = [1, 2, SEQ_COLUMN_ID];
  const scan = store.scan(1, { owner: 0, upTo: store.visibleSeq, columnIds, batchRows });
  try {
    const seen: T[] = [];
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) seen.push(see(batch));
    return seen;
  } finally {
    scan.close();
  }
}

test("rows with text that cannot be unpacked are scanned as long as the text is not read", async () => {
  const { store, manifest } = await withBrokenBlock();
  const counts = batches(store, 64, ({ columns, rowCount }) => {
    expect(columns[1]?.length).toBe(rowCount);
    return columns[0] === undefined ? [] : valuesOf(columns[0]);
  });
  // One row has been replaced in its segment, so a batch contains only selected rows.
  expect(counts.flat().toSorted((a, b) => Number(a) - Number(b))).toEqual(
    Array.from({ length: ROW_COUNT }, (_, row) => row),
  );
  expect(manifest.load().segments[0]?.quarantined).toBe(false);
  await store.close();
});

test("a batch is as short as its unpacked bytes require, in a scan and in changes", async () => {
  const store = await openStore({
    definitions: [TABLE],
    options: { rowBytesMax: 1 << 20, walSegmentBytes: 1 << 24, walMaxBytes: 1 << 26 },
  });
  const text = textOf(7).repeat(400);
  const rows = Array.from({ length: 40 }, (_, row): Value[] => [row, `${row} ${text}`]);
  await commit(store, 1, "insert", rows);
  await store.flush(1);
  const bytesMax = 2 * 1024 * 1024;
  const perBatch = Math.floor(bytesMax / text.length);
  const sizes = batches(store, 4096, ({ rowCount }) => rowCount);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(40);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(perBatch);
  expect(sizes.length).toBe(Math.ceil(40 / (sizes[0] ?? 1)));
  const options = { owner: 0, after: 0 as Seq, upTo: store.visibleSeq, columnIds: [1, 2] };
  const changes = store.changes(1, options);
  const seen: Value[] = [];
  for (let batch = changes.next(); batch !== undefined; batch = changes.next()) {
    expect(batch.seqs.length).toBeLessThanOrEqual(perBatch);
    for (const value of batch.columns[1] === undefined ? [] : valuesOf(batch.columns[1])) {
      seen.push(value);
    }
  }
  changes.close();
  expect(seen).toEqual(rows.map(([, value]) => value ?? null));
  await store.close();
});

test("text in other blocks is read, and a block that does not unpack quarantines the segment", async () => {
  const { store, manifest } = await withBrokenBlock();
  const read = (): unknown =>
    batches(store, 16, ({ columns: [ids, texts] }) => {
      if (ids === undefined || texts === undefined) throw new Error("there are two columns");
      expect(valueAt(texts, 0)).toBe(textOf(Number(valueAt(ids, 0))));
    });
  expect(read).toThrow(CorruptionError);
  expect(read).toThrow("is damaged and quarantined");
  expect(manifest.load().segments[0]?.quarantined).toBe(true);
  await store.close();
});
