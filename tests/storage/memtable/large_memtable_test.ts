/**
 * Compares a memtable of many rows with plain lists. As the memtable grows, its arrays move into
 * larger arrays, while rows are replaced or rolled back, seqs arrive late, and moves are
 * abandoned.
 */
import { expect, test } from "bun:test";
import { arrayBytes } from "../../../src/base/memory_usage.ts";
import { Memtable } from "../../../src/storage/memtable/memtable.ts";
import type { Value } from "../../../src/types/mod.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { shareOf } from "../../support/thoroughness.ts";

const ROWS = 200_000;
const OWNER = 3;

interface ModelRow {
  seq: number;
  commitSeq: number;
  replacedBy: number;
  readonly prev: number;
  readonly isDeleted: boolean;
  readonly values: readonly Value[];
}

test.each(shareOf([1, 2], { oneOf: 2 }))(
  "every row is as it was written and changed (seed %d)",
  (seed) => {
    const random = new SeededRandom(seed);
    const below = (count: number): number => Math.floor(random.unit() * count);
    const memtable = new Memtable([
      { columnId: 1, name: "a", type: { kind: "bigint" }, missing: null },
      { columnId: 2, name: "b", type: { kind: "text" }, missing: null },
      { columnId: 3, name: "c", type: { kind: "int" }, missing: null },
      { columnId: 4, name: "d", type: { kind: "boolean" }, missing: null },
    ]);
    const partition = memtable.partition(OWNER);
    const model: ModelRow[] = [];
    const forgotten: number[] = [];
    let key = 0;
    const push = (count: number): void => {
      memtable.reserve(count);
      const first = model.length;
      for (let i = 0; i < count; i += 1) {
        const seq = (model.at(-1)?.seq ?? 0) + 1 + below(3);
        const [prev, isDeleted] = [below(1000), below(20) === 0];
        key += 1 + below(2);
        const values = [
          key,
          below(9) === 0 ? null : `text ${below(1e6)}`,
          below(7) === 0 ? null : below(1e9),
          below(2) === 0,
        ];
        const row = memtable.push(partition, { seq, prev, isDeleted });
        memtable.appendValues([values], 1);
        partition.setRow(key, row);
        model.push({ seq, commitSeq: 0, replacedBy: 0, prev, isDeleted, values });
      }
      const commitSeq = memtable.lastSeq;
      const from = below(8) === 0 ? Math.max(0, first - below(40_000)) : first;
      memtable.setCommitSeq(from, commitSeq);
      for (let row = from; row < model.length; row += 1)
        Object.assign(model[row] ?? {}, { commitSeq });
    };
    const pop = (count: number): void => {
      for (let i = 0; i < count && model.length > 1; i += 1) {
        const row = model.pop();
        const gone = Number(row?.values[0]);
        partition.forgetKey(gone);
        forgotten.push(gone);
        memtable.pop();
      }
    };
    const replaceOrRevert = (): void => {
      const at = below(model.length);
      const row = model[at];
      if (row === undefined) return;
      if (row.replacedBy === 0) memtable.replace(at, 7 + at);
      else memtable.revert(at);
      row.replacedBy = row.replacedBy === 0 ? 7 + at : 0;
    };
    while (model.length < ROWS) {
      push(1 + below(below(6) === 0 ? 9000 : 300));
      for (let i = below(20); i > 0; i -= 1) replaceOrRevert();
      if (below(12) === 0) pop(below(below(3) === 0 ? 25_000 : 3000));
      if (below(40) === 0) memtable.releaseGrowth();
      if (below(60) === 0) {
        memtable.moveSeqs(2);
        for (const row of model) row.seq += 2;
      }
    }
    const same = model.findIndex((expected, row) => {
      const { commitSeq, isDeleted, prev, replacedBy, seq, values } = expected;
      const isSame =
        memtable.owners[row] === OWNER &&
        memtable.seqs[row] === seq &&
        memtable.prevs[row] === prev &&
        memtable.commitSeqs[row] === commitSeq &&
        memtable.replacedBy[row] === replacedBy &&
        memtable.deleted[row] === (isDeleted ? 1 : 0) &&
        partition.rows[row] === row &&
        partition.rowOf(Number(values[0])) === row &&
        memtable.columns.every((column, i) => column.valueAt(row) === values[i]);
      return !isSame;
    });
    expect(same).toBe(-1);
    expect(forgotten.filter((gone) => partition.rowOf(gone) !== undefined)).toEqual([]);
    expect([memtable.rowCount, partition.count]).toEqual([model.length, model.length]);
  },
);

test("releaseGrowth frees the memory of moves that have begun", () => {
  const memtable = new Memtable([
    { columnId: 1, name: "a", type: { kind: "bigint" }, missing: null },
  ]);
  const partition = memtable.partition(OWNER);
  // Three quarters of the space for 65,536 rows are used, so all arrays move.
  for (let row = 0; row < 60_000; row += 1) {
    memtable.reserve(1);
    memtable.push(partition, { seq: row + 1, prev: 0, isDeleted: false });
    memtable.appendValues([[row]], 1);
    partition.setRow(row, row);
  }
  const arrayBytesAfterCollection = (): number => {
    Bun.gc(true);
    return arrayBytes();
  };
  const before = arrayBytesAfterCollection();
  memtable.releaseGrowth();
  // The released memory consists of five arrays of 131,072 doubles for all rows, one array for the
  // column, and some smaller ones.
  expect(before - arrayBytesAfterCollection()).toBeGreaterThan(6 * 2 ** 20);
  expect(memtable.rowCount).toBe(60_000);
});
