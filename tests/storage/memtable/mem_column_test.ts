/**
 * Verifies that a memtable column returns the values added to it, even after rows have been rolled
 * back.
 */
import { expect, test } from "bun:test";
import { MemColumn, newGrowth } from "../../../src/storage/memtable/mem_column.ts";
import { type DataType, type Value, valuesOf } from "../../../src/types/mod.ts";

const LONG = "ab".repeat(5000);

const CASES: readonly (readonly [DataType, readonly Value[]])[] = [
  [{ kind: "text" }, ["", null, "a", "Ünïcødé 漢字 🎉", LONG, null, "end"]],
  [{ kind: "json", binary: true }, ['{"a":[1,"é"]}', null, "1"]],
  [{ kind: "uuid" }, ["0190a6f0-0000-7000-8000-000000000000", null]],
  [{ kind: "boolean" }, [true, null, false]],
  [{ kind: "int" }, [1, null, -5]],
  [{ kind: "bigint" }, [1, null, 2n ** 60n, -5]],
  [{ kind: "bytes" }, [Uint8Array.of(1, 2), null]],
];

test.each(CASES)("a column of %p keeps its values, by row and as a vector", (type, values) => {
  const column = new MemColumn(1, type);
  for (const value of values) column.appendRepeated(value, 1);
  expect(values.map((_, row) => column.valueAt(row))).toEqual([...values]);
  expect(valuesOf(column.vector())).toEqual([...values]);
});

test.each(CASES)(
  "a column of %p is unchanged after rows are rolled back, and accepts others",
  (type, values) => {
    const column = new MemColumn(1, type);
    const rows = values.map((value) => [value]);
    column.appendFrom(rows, 0, rows.length);
    const bytes = column.bytes;
    column.truncate(1);
    expect(column.length).toBe(1);
    expect(valuesOf(column.vector())).toEqual([values[0] ?? null]);
    column.appendFrom(rows, 0, rows.length);
    expect(valuesOf(column.vector())).toEqual([values[0] ?? null, ...values]);
    expect(column.bytes).toBeGreaterThanOrEqual(bytes);
  },
);

test("a vector of text keeps its rows while the column grows", () => {
  const column = new MemColumn(1, { kind: "text" });
  column.appendRepeated("first", 2);
  const before = column.vector();
  for (let row = 0; row < 1000; row += 1) column.appendRepeated(`row ${row} ${LONG}`, 1);
  expect(valuesOf(before)).toEqual(["first", "first"]);
});

test("an array whose capacity costs nothing until it is written grows by more", () => {
  const growth = newGrowth((capacity) => new Uint8Array(capacity));
  const roomOf = (capacity: number): number =>
    growth.arrayFor(new Uint8Array(capacity), capacity, capacity + 1).length;
  expect([0, 5, 4095, 4096, 10_000, 131_072].map(roomOf)).toEqual([
    8, 10, 8190, 65_536, 131_072, 262_144,
  ]);
});

test("bytes counts the written bytes, and no unused capacity", () => {
  const column = new MemColumn(1, { kind: "bigint" });
  column.appendRepeated(7, 5000);
  expect(column.bytes).toBe(40_000);
  column.truncate(5);
  expect(column.bytes).toBe(40);
});
