/**
 * Verifies that the values of several operands are combined to what placing them one by one gives,
 * for every pair of kinds with a loop and for those without.
 */
import { expect, test } from "bun:test";
import { placed } from "../../../../src/sql/execute/evaluate/placed_values.ts";
import {
  BIGINT,
  BOOLEAN,
  constVector,
  type DataType,
  INT,
  TEXT,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../../../src/types/mod.ts";

const ROWS = 6;

function answer(rows: readonly number[], values: Vector): Parameters<typeof placed>[1][number] {
  return { rows: { rows: Uint32Array.from(rows), count: rows.length }, values };
}

const ints = vectorFromValues(INT, [7, null, 9]);
const bigints = vectorFromValues(BIGINT, [2 ** 40, null, -1]);
const huge = vectorFromValues(BIGINT, [2n ** 60n, null, -1]);
const texts = vectorFromValues(TEXT, ["a", null, "c"]);
const truths = vectorFromValues(BOOLEAN, [true, null, false]);

interface Combination {
  readonly type: DataType;
  readonly values: Vector;
  readonly constant: Value;
  readonly kind: Vector["kind"];
}

test.each<[string, Combination]>([
  ["integers and a constant", { type: INT, values: ints, constant: 5, kind: "i32" }],
  ["doubles and a constant", { type: BIGINT, values: bigints, constant: 5, kind: "f64" }],
  ["integers and doubles", { type: BIGINT, values: ints, constant: 2 ** 40, kind: "f64" }],
  ["truth values", { type: BOOLEAN, values: truths, constant: true, kind: "bool" }],
  ["bigints", { type: BIGINT, values: huge, constant: 5, kind: "any" }],
  ["constant bigints", { type: BIGINT, values: bigints, constant: 2n ** 60n, kind: "any" }],
  ["strings", { type: TEXT, values: texts, constant: "x", kind: "any" }],
  ["constant strings", { type: TEXT, values: constVector("a", 3), constant: "x", kind: "dict" }],
])("%s are combined, and other rows are NULL", (_, { constant, kind, type, values }) => {
  const answers = [answer([1, 3, 4], values), answer([0, 3], constVector(constant, 2))];
  const combined = placed(type, answers, ROWS);
  const [first = null, , third = null] = valuesOf(values);
  expect(combined.kind).toBe(kind);
  expect(valuesOf(combined)).toEqual([constant, first, null, constant, third, null]);
});

test("a column whose rows all have values has no NULL flags", () => {
  const rows = [0, 1, 2, 3, 4, 5];
  const combined = placed(INT, [answer(rows, constVector(3, ROWS))], ROWS);
  expect(combined).toMatchObject({ kind: "i32", nulls: undefined });
});

test("an operand that is always NULL leaves its rows NULL", () => {
  const combined = placed(INT, [answer([2], constVector(null, 1))], ROWS);
  expect(valuesOf(combined)).toEqual([null, null, null, null, null, null]);
});
