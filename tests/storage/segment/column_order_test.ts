/**
 * Verifies that a column is ordered by its values, whatever the form of the column. The tests
 * compare random vectors of every kind that can be ordered with a sort of their values.
 */
import { describe, expect, test } from "bun:test";
import {
  areTextsShort,
  orderOf,
  TEXT_BYTES_MAX,
} from "../../../src/storage/segment/column_order.ts";
import {
  BIGINT,
  comparatorFor,
  constVector,
  type DataType,
  DOUBLE,
  INT,
  TEXT,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../../src/types/mod.ts";
import { SeededRandom } from "../../support/seeded_random.ts";

const random = new SeededRandom(7);
const ROWS = 3000;

function randomValues(make: (row: number) => Value): Value[] {
  return Array.from({ length: ROWS }, (_, row) => make(row));
}

function utf8(values: readonly string[]): Vector {
  const parts = values.map((value) => Buffer.from(value, "utf8"));
  const offsets = new Uint32Array(values.length + 1);
  for (const [row, part] of parts.entries()) offsets[row + 1] = (offsets[row] ?? 0) + part.length;
  const bytes = Buffer.concat(parts);
  return { kind: "utf8", length: values.length, bytes, offsets, nulls: undefined };
}

function textOf(alphabet: readonly string[], length: number): string {
  return Array.from({ length }, () => random.pick(alphabet)).join("");
}

/** Checks the order of a vector. Equal values must stay in row order. */
function expectOrder(vector: Vector, type: DataType): void {
  const values = valuesOf(vector);
  const compare = comparatorFor(type);
  const expected = values
    .map((_, row) => row)
    .toSorted((a, b) => compare(values[a] ?? null, values[b] ?? null) || a - b);
  const order = orderOf(vector);
  expect(Array.from({ length: vector.length }, (_, place) => order?.rowAt(place))).toEqual(
    expected,
  );
  if (typeof values[0] !== "number") return;
  expect(expected.map((_, place) => order?.numberAt(place))).toEqual(
    expected.map((row) => values[row] as number),
  );
}

describe("orderOf sorts numbers by value", () => {
  test.each([
    ["that ascend", BIGINT, (row: number) => row * 3],
    ["that descend", BIGINT, (row: number) => -row],
    ["of 32 bits", INT, () => random.u32() | 0],
    ["of 53 bits", BIGINT, () => random.below(2 ** 53) - 2 ** 52],
    ["that repeat", BIGINT, () => random.below(9)],
    ["with fractions", DOUBLE, () => random.unit()],
    ["close together", DOUBLE, () => 1 + random.below(50) * Number.EPSILON],
    ["far apart", DOUBLE, () => random.pick([-1.7e308, 1.7e308, 0, 1, 5e-324, random.unit()])],
  ] as const)("%s", (_, type, make) => {
    expectOrder(vectorFromValues(type, randomValues(make)), type);
  });
});

describe("orderOf sorts strings by their bytes", () => {
  test.each([
    ["short ones", (): string => textOf(["a", "b", ""], random.below(5))],
    ["with a zero byte", (): string => textOf(["a", "\0"], random.below(9))],
    ["beyond ASCII", (): string => textOf(["é", "z", "\u{ffff}", "\u{1f600}"], random.below(4))],
    [
      "with long beginnings in common",
      (): string => `${"x".repeat(40 * random.below(3))}${random.below(99)}`,
    ],
    ["of equal length", (): string => random.u32().toString(16).padStart(8, "0")],
    ["that are all the same", (): string => "the same text in every row"],
  ] as const)("%s", (_, make) => {
    expectOrder(utf8(Array.from({ length: ROWS }, make)), TEXT);
  });

  test("orderOf sorts a dictionary", () => {
    const values = ["b", "a", "é", "ab", ""];
    const codes = Uint8Array.from({ length: ROWS }, () => random.below(values.length));
    expectOrder({ kind: "dict", length: ROWS, codes, values, nulls: undefined }, TEXT);
  });
});

test("orderOf sorts as many rows as a group may have", () => {
  const values = Float64Array.from({ length: 65_536 }, (_, row) => (row * 40_503) % 65_536);
  expectOrder({ kind: "f64", length: 65_536, values, nulls: undefined }, BIGINT);
});

test("orderOf keeps the order of the rows if all values are equal", () => {
  expectOrder(constVector(5, ROWS), BIGINT);
  expectOrder(constVector("a", ROWS), TEXT);
});

test("areTextsShort limits the mean length of the strings in bytes", () => {
  const longest = "x".repeat(TEXT_BYTES_MAX);
  expect(areTextsShort(utf8(["", `${longest}${longest}`]))).toBe(true);
  expect(areTextsShort(utf8([longest, longest]))).toBe(true);
  expect(areTextsShort(utf8([longest, `${longest}x`]))).toBe(false);
  expect(areTextsShort(vectorFromValues(BIGINT, [1]))).toBe(true);
});

test("orderOf gives up if strings share prefixes of many lengths", () => {
  const nested = Array.from({ length: ROWS }, (_, row) => `${"a".repeat(row % 500)}b`);
  expect(orderOf(utf8(nested))).toBeUndefined();
  const alike = Array.from({ length: ROWS }, (_, row) => `${"a".repeat(490)}${row}`);
  expect(orderOf(utf8(alike))?.rowAt(0)).toBe(0);
});

test("orderOf refuses NULL and kinds without an order", () => {
  const nulls = new Uint8Array(2);
  nulls[1] = 1;
  expect(orderOf({ kind: "f64", length: 2, values: new Float64Array(2), nulls })).toBeUndefined();
  expect(orderOf(constVector(null, 2))).toBeUndefined();
  expect(orderOf(vectorFromValues(BIGINT, [1, 2n ** 60n]))).toBeUndefined();
  expect(
    orderOf({ kind: "bool", length: 2, values: new Uint8Array(2), nulls: undefined }),
  ).toBeUndefined();
});
