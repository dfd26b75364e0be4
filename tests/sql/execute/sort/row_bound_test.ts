/**
 * Verifies that a top-n never drops one of the first n rows of a batch, and that it keeps only a
 * few more than n rows even if the batch is in the opposite order. The tests compare random
 * batches with a sort.
 */
import { expect, test } from "bun:test";
import { allRows } from "../../../../src/sql/execute/evaluate/row_choice.ts";
import { leadingRows } from "../../../../src/sql/execute/sort/row_bound.ts";
import type { Vector } from "../../../../src/types/mod.ts";
import { SeededRandom } from "../../../support/seeded_random.ts";

function numbers(values: readonly number[]): Vector {
  return {
    kind: "f64",
    length: values.length,
    values: Float64Array.from(values),
    nulls: undefined,
  };
}

function kept(values: readonly number[], rowsMax: number, isDescending: boolean): number[] {
  const chosen = allRows(values.length);
  const { count, rows } = leadingRows(chosen, rowsMax, { isDescending, vector: numbers(values) });
  return [...rows.subarray(0, count)];
}

test("leadingRows keeps n rows of a batch in the opposite order", () => {
  const ascending = Array.from({ length: 4096 }, (_, i) => i);
  expect(kept(ascending, 3, true)).toEqual([4093, 4094, 4095]);
  expect(kept(ascending.toReversed(), 3, false)).toEqual([4093, 4094, 4095]);
});

test("leadingRows keeps all rows that equal the last of the first n", () => {
  expect(kept([1, 5, 5, 2, 5, 9, 0, 1], 2, true)).toEqual([1, 2, 4, 5]);
});

test("leadingRows keeps all rows of random batches that a sort by the first key may need", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = new SeededRandom(seed);
    const values = Array.from({ length: 1 + random.below(300) }, () => random.below(80) - 40);
    const rowsMax = 1 + random.below(40);
    const isDescending = random.below(2) === 0;
    const order = values.toSorted((a, b) => (isDescending ? b - a : a - b));
    const last = order[Math.min(rowsMax, order.length) - 1] ?? 0;
    const isNeeded = (value: number): boolean => (isDescending ? value >= last : value <= last);
    const rows = kept(values, rowsMax, isDescending);
    const isSmall = values.length < 4 * rowsMax;
    const wanted = values.flatMap((value, row) => (isSmall || isNeeded(value) ? [row] : []));
    expect(rows).toEqual(wanted);
  }
});

test("leadingRows keeps all rows if it cannot compare them, or need not", () => {
  const chosen = allRows(100);
  const texts: Vector = { kind: "any", length: 100, values: Array(100).fill("x") };
  expect(leadingRows(chosen, 1, { isDescending: true, vector: texts })).toBe(chosen);
  expect(leadingRows(chosen, 1, { isDescending: true, vector: undefined })).toBe(chosen);
  const vector = numbers(Array(100).fill(7));
  expect(leadingRows(chosen, 0, { isDescending: true, vector })).toBe(chosen);
  expect(leadingRows(chosen, 26, { isDescending: true, vector })).toBe(chosen);
  expect(leadingRows(chosen, Number.POSITIVE_INFINITY, { isDescending: true, vector })).toBe(
    chosen,
  );
  const i32 = { kind: "i32", length: 100, values: new Int32Array(100) } as const;
  const nulls = new Uint8Array(100);
  expect(leadingRows(chosen, 1, { isDescending: true, vector: { ...i32, nulls } })).toBe(chosen);
});
