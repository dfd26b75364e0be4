/**
 * Goal: the newest rows of an owner are found from any position, wherever it lies.
 */
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
