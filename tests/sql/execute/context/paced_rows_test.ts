/**
 * Verifies that an operator passes on all rows once and in order, but only a few at a time while
 * they produce a lot of data.
 */
import { expect, test } from "bun:test";
import { Effort } from "../../../../src/sql/execute/context/effort.ts";
import type { ExecutionContext } from "../../../../src/sql/execute/context/execution_context.ts";
import type { Operator } from "../../../../src/sql/execute/context/operator.ts";
import { PacedRows } from "../../../../src/sql/execute/context/paced_rows.ts";
import { type Batch, type Value, valueAt } from "../../../../src/types/mod.ts";

const ROWS = 4096;
const MIB = 2 ** 20;

/** An operator that produces batches of ascending numbers. */
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

/**
 * Returns the rows that the operator passes on, and how many it passes on at a time.
 *
 * @param made Returns the value that each row produces.
 */
function passed(batchCount: number, made: (row: number) => Value): [number[], number[]] {
  const timing = { checkTime: () => undefined, monotonicMs: () => 0 };
  const effort = new Effort({ context: timing, bytesMax: 64 * MIB });
  const paced = new PacedRows(new Numbers(batchCount), {
    effort,
  } as Partial<ExecutionContext> as ExecutionContext);
  const rows: number[] = [];
  const sizes: number[] = [];
  for (let batch = paced.next(); batch !== undefined; batch = paced.next()) {
    sizes.push(batch.rowCount);
    const [column] = batch.columns;
    for (let row = 0; row < batch.rowCount; row += 1) {
      const number = column === undefined ? -1 : Number(valueAt(column, row));
      rows.push(number);
      effort.note(made(number));
    }
  }
  return [rows, sizes];
}

const allOf = (batchCount: number): number[] =>
  Array.from({ length: batchCount * ROWS }, (_, i) => i);

test("PacedRows passes whole batches once rows have turned out to produce little", () => {
  const [rows, sizes] = passed(3, () => 0);
  expect(rows).toEqual(allOf(3));
  expect(sizes.slice(0, 4)).toEqual([1, 2, 4, 8]);
  expect(sizes.slice(-2)).toEqual([ROWS, ROWS]);
});

test("PacedRows passes few rows at a time while each produces a long value", () => {
  const text = "x".repeat(MIB);
  const [rows, sizes] = passed(1, () => text);
  expect(rows).toEqual(allOf(1));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(8);
});

test("PacedRows passes fewer rows where long values begin, and more after them", () => {
  const text = "x".repeat(MIB / 128);
  const [rows, sizes] = passed(8, (row) => (row >= 5000 && row < 9000 ? text : 0));
  expect(rows).toEqual(allOf(8));
  expect(sizes.at(-1)).toBe(ROWS);
  expect(Math.min(...sizes.slice(16))).toBeLessThan(ROWS);
});
