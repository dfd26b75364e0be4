/**
 * Rows that are evaluated together: as many as take less than a turn and make no more than may be
 * held beside each other.
 */
import { expect, test } from "bun:test";
import { NOTHING_YET, type Operator } from "../../../../src/sql/execute/run/operator.ts";
import { Pauses, Resuming } from "../../../../src/sql/execute/run/pausing.ts";
import type { Run } from "../../../../src/sql/execute/run/run.ts";
import { Parts, rowsTogether, Slices } from "../../../../src/sql/execute/run/slices.ts";
import { type Batch, type Value, valueAt } from "../../../../src/types/mod.ts";

const ROWS = 4096;
const MIB = 2 ** 20;

/** Batches of ascending numbers. */
class Numbers implements Operator {
  #left: number;
  #next = 0;

  constructor(batchCount: number) {
    this.#left = batchCount;
  }

  next(): Batch | undefined {
    if (this.#left === 0) return undefined;
    this.#left -= 1;
    const values = Int32Array.from({ length: ROWS }, (_, i) => this.#next + i);
    this.#next += ROWS;
    return { rowCount: ROWS, columns: [{ kind: "i32", length: ROWS, values, nulls: undefined }] };
  }

  close(): void {
    this.#left = 0;
  }
}

interface Trial {
  readonly batchCount: number;
  /** What a row costs, and what it makes. */
  readonly costMs: (row: number) => number;
  readonly made?: (row: number) => Value;
}

/** Evaluates numbers row by row on a clock that only rows move. */
function evaluated({ batchCount, costMs, made = () => 0 }: Trial): {
  rows: number[];
  sizes: number[];
  longestMs: number;
} {
  let nowMs = 0;
  const pauses = new Pauses({ now: () => nowMs, bytesMax: () => 64 * MIB });
  const slices = new Slices(new Numbers(batchCount), pauses, Number.POSITIVE_INFINITY);
  const evaluation: Operator = {
    next: () => {
      const batch = slices.next();
      const [column] = batch?.columns ?? [];
      if (batch === undefined || column === undefined) return batch;
      for (let row = 0; row < batch.rowCount; row += 1) {
        const number = Number(valueAt(column, row));
        nowMs += costMs(number);
        pauses.note(made(number));
      }
      return batch;
    },
    close: () => slices.close(),
  };
  const run = { pauses, abandonReadings: () => undefined } as Partial<Run> as Run;
  const resuming = new Resuming(evaluation, slices, run);
  const rows: number[] = [];
  const sizes: number[] = [];
  let longestMs = 0;
  for (;;) {
    const startMs = nowMs;
    const batch = resuming.next();
    longestMs = Math.max(longestMs, nowMs - startMs);
    if (batch === undefined) break;
    if (batch === NOTHING_YET) continue;
    sizes.push(batch.rowCount);
    const [column] = batch.columns;
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (column !== undefined) rows.push(Number(valueAt(column, row)));
    }
  }
  return { rows, sizes, longestMs };
}

const allOf = (batchCount: number): number[] =>
  Array.from({ length: batchCount * ROWS }, (_, i) => i);

test("cheap rows pass in the batches that they came in", () => {
  expect(evaluated({ batchCount: 3, costMs: () => 0.0001 }).sizes).toEqual([ROWS, ROWS, ROWS]);
});

test("rows that take long pass in parts, each once and in order, and no step takes much longer than a turn", () => {
  const { longestMs, rows } = evaluated({ batchCount: 2, costMs: () => 0.05 });
  expect(rows).toEqual(allOf(2));
  expect(longestMs).toBeLessThan(7);
});

test("a row that takes longer than a turn is evaluated alone", () => {
  const { rows, sizes } = evaluated({ batchCount: 1, costMs: () => 10 });
  expect(rows).toEqual(allOf(1));
  expect(new Set(sizes)).toEqual(new Set([1]));
});

test("rows that begin to take long among cheap ones are parted, and grow together again behind them", () => {
  const isLong = (row: number): boolean => row >= 5000 && row < 5100;
  const costMs = (row: number): number => (isLong(row) ? 3 : 0.0001);
  const { longestMs, rows, sizes } = evaluated({ batchCount: 6, costMs });
  expect(rows).toEqual(allOf(6));
  expect(longestMs).toBeLessThan(60);
  expect(sizes.at(-1)).toBe(ROWS);
});

test("what rows make together is bounded, however little time it takes", () => {
  const text = "x".repeat(MIB);
  const { rows, sizes } = evaluated({ batchCount: 1, costMs: () => 0, made: () => text });
  expect(rows).toEqual(allOf(1));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(8);
});

test("one row that makes more than a statement may hold is refused", () => {
  const text = "x".repeat(40 * MIB);
  expect(() => evaluated({ batchCount: 1, costMs: () => 0, made: () => text })).toThrow(
    /more than 67108864 bytes at a time/,
  );
});

test("Parts pass all rows in order, so many at a time", () => {
  const parts = new Parts(new Numbers(2), rowsTogether(100));
  const sizes: number[] = [];
  const rows: number[] = [];
  for (let batch = parts.next(); batch !== undefined; batch = parts.next()) {
    sizes.push(batch.rowCount);
    const [column] = batch.columns;
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (column !== undefined) rows.push(Number(valueAt(column, row)));
    }
  }
  expect(rows).toEqual(allOf(2));
  expect(Math.max(...sizes)).toBe(1310);
});
