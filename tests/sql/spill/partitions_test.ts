/**
 * Tests rows on disk that are partitioned by key. A partition returns its rows in their original
 * order, although each batch contributes only a few of them. Rows are read in large pieces,
 * however small the batches were. Damage to any byte is detected.
 */
import { expect, test } from "bun:test";
import { silentLog } from "../../../src/base/log.ts";
import { SpillSpace } from "../../../src/sql/mod.ts";
import { PARTITION_COUNT, Partitions, TemporaryFiles } from "../../../src/sql/spill/mod.ts";
import { type Batch, BIGINT, TEXT, valueAt, vectorFromValues } from "../../../src/types/mod.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const DIRECTORY = "/spill";
const PATH = `${DIRECTORY}/spill.1`;

function opened(): { disk: SimulatedDisk; partitions: Partitions } {
  const disk = new SimulatedDisk();
  disk.makeDirectory(DIRECTORY);
  const bytesMax = 2 ** 30;
  const options = { disk, log: silentLog, directory: DIRECTORY, bytesMax, minFreeBytes: 0 };
  const file = new TemporaryFiles(new SpillSpace(options)).create({ columnCount: 2 });
  return { disk, partitions: new Partitions(file, { keyTypes: [BIGINT], level: 0 }) };
}

function batchFrom(first: number, rowCount: number): Batch {
  const numbers = Array.from({ length: rowCount }, (_, i) => first + i);
  const texts = numbers.map((n) => `row ${n}`);
  return {
    rowCount,
    columns: [vectorFromValues(BIGINT, numbers), vectorFromValues(TEXT, texts)],
  };
}

function addRows(partitions: Partitions, rowCount: number, rowsPerBatch: number): void {
  for (let first = 0; first < rowCount; first += rowsPerBatch) {
    const batch = batchFrom(first, rowsPerBatch);
    partitions.add(batch, batch.columns.slice(0, 1));
  }
}

function rowsOf(partitions: Partitions, partition: number): number[] {
  const rows: number[] = [];
  const reader = partitions.reader(partition);
  for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
    const [numbers, texts] = batch.columns;
    for (let row = 0; row < batch.rowCount; row += 1) {
      const number = Number(numbers === undefined ? undefined : valueAt(numbers, row));
      expect(texts === undefined ? undefined : valueAt(texts, row)).toBe(`row ${number}`);
      rows.push(number);
    }
  }
  return rows;
}

test.each([1, 7, 100, 1000])(
  "all rows are returned in order, with batches of %d",
  (rowsPerBatch) => {
    const { partitions } = opened();
    addRows(partitions, 14_000, rowsPerBatch);
    const seen: number[] = [];
    for (let partition = 0; partition < PARTITION_COUNT; partition += 1) {
      const rows = rowsOf(partitions, partition);
      expect(rows.length).toBe(partitions.rowCountOf(partition));
      expect(rows).toEqual(rows.toSorted((a, b) => a - b));
      expect(rowsOf(partitions, partition)).toEqual(rows);
      seen.push(...rows);
    }
    expect(seen.length).toBe(14_000);
    expect(new Set(seen).size).toBe(14_000);
    partitions.close();
  },
);

test("a partition of many batches is read in few pieces", () => {
  const { disk, partitions } = opened();
  addRows(partitions, 20_000, 50);
  const before = disk.operationCount;
  const rowCount = rowsOf(partitions, 0).length;
  expect(rowCount).toBeGreaterThan(1000);
  expect(disk.operationCount - before).toBeLessThan(10);
  partitions.close();
});

test("damage to any byte is detected", () => {
  const { disk, partitions } = opened();
  addRows(partitions, 120, 40);
  for (let partition = 0; partition < PARTITION_COUNT; partition += 1)
    rowsOf(partitions, partition);
  const file = disk.open(PATH, {});
  const size = file.size();
  expect(size).toBeGreaterThan(1000);
  const byte = new Uint8Array(1);
  for (let offset = 0; offset < size; offset += 1) {
    file.read(byte, offset);
    const flipped = (byte[0] ?? 0) ^ (1 << (offset % 8));
    file.write(Uint8Array.of(flipped), offset);
    expect(() => {
      for (let partition = 0; partition < PARTITION_COUNT; partition += 1) {
        rowsOf(partitions, partition);
      }
    }).toThrow("Cannot read a temporary file: the checksum of a block does not match");
    file.write(byte, offset);
  }
  partitions.close();
});
