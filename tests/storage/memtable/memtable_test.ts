/** Verifies that an owner's newest rows are found from any starting position. */
import { expect, test } from "bun:test";
import { Memtable } from "../../../src/storage/memtable/memtable.ts";

test("Memtable.indexAfter finds the first row above a seq, among few rows and many", () => {
  for (let count = 0; count <= 12; count += 1) {
    const memtable = new Memtable([]);
    const partition = memtable.partition(1);
    const other = memtable.partition(2);
    memtable.reserve(2 * count);
    const seqs: number[] = [];
    for (let row = 0; row < count; row += 1) {
      memtable.push(other, { seq: 20 * row + 5, prev: 0, isDeleted: false });
      seqs.push(20 * row + 10);
      memtable.push(partition, { seq: 20 * row + 10, prev: 0, isDeleted: false });
    }
    for (const at of [0, Infinity, ...seqs.flatMap((seq) => [seq - 1, seq, seq + 1])]) {
      const expected = seqs.filter((seq) => seq <= at).length;
      expect(memtable.indexAfter(partition, at), `${count} rows, after ${at}`).toBe(expected);
    }
  }
});

test("Memtable.firstAlive skips blocks of an owner that are not visible at a seq", () => {
  const memtable = new Memtable([]);
  const count = 4096;
  memtable.reserve(2 * count);
  const partition = memtable.partition(1);
  const other = memtable.partition(2);
  for (let row = 0; row < count; row += 1) {
    memtable.push(other, { seq: 2 * row + 1, prev: 0, isDeleted: false });
    memtable.push(partition, { seq: 2 * row + 2, prev: 0, isDeleted: row % 3 === 0 });
  }
  const rowAt = (index: number): number => partition.rows[index] ?? 0;
  const all = { start: 0, end: count };
  for (let index = 0; index < 3000; index += 1) {
    if (index % 3 !== 0) memtable.replace(rowAt(index), 10_000 + index);
  }
  // Some replacements are above the seq bound of the read. The result is the same before and after
  // a reader has seen all replacements.
  expect(memtable.firstAlive(partition, all, 12_000)).toBe(1024);
  // In the first two blocks, every row has been replaced. In the third block, only the first rows
  // have been replaced.
  expect(memtable.firstAlive(partition, all, 20_000)).toBe(2048);
  expect(memtable.firstAlive(partition, { start: 5, end: 1500 }, 20_000)).toBe(1500);
  expect(memtable.firstAlive(other, all, 20_000)).toBe(0);
  // A reader below the last replacement in a block still sees the replaced row, even after other
  // readers have seen more replacements.
  expect(memtable.firstAlive(partition, all, 12_000)).toBe(1024);
  expect(memtable.firstAlive(partition, all, 10_000)).toBe(0);
  // Rolling a replacement back makes its row visible again.
  memtable.revert(rowAt(700));
  expect(memtable.firstAlive(partition, all, 20_000)).toBe(0);
  expect(memtable.firstAlive(partition, { start: 1024, end: count }, 20_000)).toBe(2048);
});
