/**
 * Verifies that materialised rows equal the input, whatever form their vectors had and whichever
 * page they are on. The tests compare columns of every form with lists of values. The columns are
 * about as long as a page, and arrive in pieces that cross its boundary. The tests then filter and
 * sort the same rows, and overwrite them with other rows.
 */
import { expect, test } from "bun:test";
import { BATCH_ROWS_MAX } from "../../../../src/base/limits.ts";
import { MaterialisedRows } from "../../../../src/sql/execute/materialised/materialised_rows.ts";
import { MemoryBudget } from "../../../../src/sql/execute/materialised/memory_budget.ts";
import {
  type Batch,
  BIGINT,
  BOOLEAN,
  constVector,
  INT,
  TEXT,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../../../src/types/mod.ts";
import { randomFrom, seedOf } from "../../../types/random.ts";

const TYPES = [INT, TEXT, BIGINT, BOOLEAN, TEXT];
const BIG = 2n ** 60n;
const TEXTS = ["", "a", "é", "a longer text, of more than a dozen", "😀", "\uffff", "zz"];

function utf8(values: readonly Value[]): Vector {
  const texts = values.map((value) => Buffer.from(typeof value === "string" ? value : ""));
  const offsets = new Uint32Array(values.length + 1);
  for (const [row, text] of texts.entries()) offsets[row + 1] = (offsets[row] ?? 0) + text.length;
  const nulls = Uint8Array.from(values, (value) => Number(value === null));
  return { kind: "utf8", length: values.length, bytes: Buffer.concat(texts), offsets, nulls };
}

function rowsFrom(random: () => number, count: number): Value[][] {
  const number = (below: number): number => Math.floor(random() * below);
  return Array.from({ length: count }, () => [
    number(5) === 0 ? null : number(100) - 50,
    number(5) === 0 ? null : (TEXTS[number(TEXTS.length)] ?? ""),
    number(2000) === 0 ? BIG + BigInt(number(3)) : number(1000),
    number(5) === 0 ? null : number(2) === 1,
    TEXTS[number(TEXTS.length)] ?? "",
  ]);
}

function vectorsOf(rows: readonly Value[][]): Vector[] {
  return TYPES.map((type, position) => {
    const values = rows.map((row) => row[position] ?? null);
    return position === 1 ? utf8(values) : vectorFromValues(type, values);
  });
}

function rowsOf({ columns, rowCount }: Batch): Value[][] {
  const values = columns.map((column) => valuesOf(column));
  return Array.from({ length: rowCount }, (_, row) => values.map((column) => column[row] ?? null));
}

function memory(): MemoryBudget {
  return new MemoryBudget(2 ** 30);
}

test.each([
  ["a few", 10, 3],
  ["a page", BATCH_ROWS_MAX, BATCH_ROWS_MAX],
  ["pieces across the ends of pages", 3 * BATCH_ROWS_MAX + 7, 1500],
])("materialised rows are read as they were stored: %s", (_, count, piece) => {
  const seed = seedOf();
  const rows = rowsFrom(randomFrom(seed), count);
  const held = new MaterialisedRows(TYPES, memory());
  for (let at = 0; at < count; at += piece) {
    const part = rows.slice(at, at + piece);
    held.append(vectorsOf(part), part.length);
  }
  const read: Value[][] = [];
  while (read.length < count) read.push(...rowsOf(held.batchFrom(read.length)));
  expect(read, `seed ${seed}`).toEqual(rows);
  const order = Uint32Array.from({ length: count }, (_each, i) => (i * 7919) % count);
  expect(rowsOf(held.allOf(order)), `seed ${seed}`).toEqual(
    [...order].map((row) => rows[row] ?? []),
  );
  expect(held.valueAt(2, count - 1)).toEqual(rows.at(-1)?.[2] ?? null);
});

test("a batch that was read keeps its rows while others are added", () => {
  const held = new MaterialisedRows([INT, TEXT], memory());
  held.append([vectorFromValues(INT, [1, 2]), utf8(["a", "b"])], 2);
  const before = held.batchFrom(0);
  held.append([vectorFromValues(INT, [null, 4]), utf8([null, "d".repeat(100)])], 2);
  expect(rowsOf(before)).toEqual([
    [1, "a"],
    [2, "b"],
  ]);
  expect(rowsOf(held.batchFrom(2))).toEqual([
    [null, null],
    [4, "d".repeat(100)],
  ]);
});

test("constants are stored in each form of vector, and NULL only as NULL", () => {
  const held = new MaterialisedRows(TYPES, memory());
  held.append(
    [7, "x", BIG, true, null].map((value) => constVector(value, 3)),
    3,
  );
  held.append(
    [null, null, null, null, "y"].map((value) => constVector(value, 1)),
    1,
  );
  const [first, , third, fourth] = rowsOf(held.batchFrom(0));
  expect(first).toEqual([7, "x", BIG, true, null]);
  expect(third).toEqual(first ?? []);
  expect(fourth).toEqual([null, null, null, null, "y"]);
});

test("keep retains the selected rows, and releases the memory of the others", () => {
  const budget = memory();
  const held = new MaterialisedRows(TYPES, budget);
  const rows = rowsFrom(randomFrom(1), 2 * BATCH_ROWS_MAX);
  held.append(vectorsOf(rows), rows.length);
  const order = Uint32Array.of(5000, 3, 8000);
  held.keep(order, () => undefined);
  expect(rowsOf(held.batchFrom(0))).toEqual([...order].map((row) => rows[row] ?? []));
  expect(budget.bytes).toBe(held.bytes);
  expect(held.bytes).toBeLessThan(3 * TYPES.length * 120);
  held.clear();
  expect([held.rowCount, budget.bytes]).toEqual([0, 0]);
});

test("keep checks the clock for each batch, and retains all rows if the check throws", () => {
  const held = new MaterialisedRows([INT], memory());
  const rowCount = 3 * BATCH_ROWS_MAX;
  const values = Array.from({ length: rowCount }, (_, row) => row);
  held.append([vectorFromValues(INT, values)], rowCount);
  const order = Uint32Array.from(values.slice(1), (row) => rowCount - row);
  let lookCount = 0;
  let looksMax = 2;
  const checkTime = (): void => {
    lookCount += 1;
    if (lookCount > looksMax) throw new Error("over");
  };
  expect(() => held.keep(order, checkTime)).toThrow("over");
  expect([held.rowCount, held.valueAt(0, 1)]).toEqual([rowCount, 1]);
  lookCount = 0;
  looksMax = 3;
  held.keep(order, checkTime);
  expect(lookCount).toBe(3);
  expect([held.rowCount, held.valueAt(0, 1)]).toEqual([rowCount - 1, rowCount - 2]);
});

test("after restart, the memory contains other rows, without the earlier NULLs", () => {
  const budget = memory();
  const held = new MaterialisedRows(TYPES, budget);
  held.append(
    [null, null, BIG, null, "b"].map((value) => constVector(value, 2)),
    2,
  );
  held.restart();
  expect([held.rowCount, budget.bytes]).toEqual([0, 0]);
  const rows = rowsFrom(randomFrom(2), BATCH_ROWS_MAX + 1);
  held.append(vectorsOf(rows), rows.length);
  expect([...rowsOf(held.batchFrom(0)), ...rowsOf(held.batchFrom(BATCH_ROWS_MAX))]).toEqual(rows);
});

test("strings are compared by code point in both directions, with NULL where the key specifies", () => {
  const held = new MaterialisedRows([TEXT], memory());
  const texts = ["\uffff", "😀", "a longer text, of more than a dozen", "a longer text", "", null];
  held.append([utf8(texts)], texts.length);
  const key = { type: TEXT, isDescending: false, nullsFirst: false };
  const sorted = (isDescending: boolean, nullsFirst: boolean): Value[] =>
    [...texts.keys()]
      .toSorted((left, right) =>
        held.compare({ key: { ...key, isDescending, nullsFirst }, position: 0 }, left, right),
      )
      .map((row) => texts[row] ?? null);
  const ascending = ["", "a longer text", "a longer text, of more than a dozen", "\uffff", "😀"];
  expect(sorted(false, false)).toEqual([...ascending, null]);
  expect(sorted(true, true)).toEqual([null, ...ascending.toReversed()]);
});
