/**
 * A column of a memtable gives back what it was given, also after rows were taken back.
 */
import { expect, test } from "bun:test";
import { MemColumn, roomFor } from "../../../src/storage/memtable/mem_column.ts";
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

test.each(CASES)("%p keeps its values, by row and as a vector", (type, values) => {
  const column = new MemColumn(1, type);
  for (const value of values) column.appendRepeated(value, 1);
  expect(values.map((_, row) => column.valueAt(row))).toEqual([...values]);
  expect(valuesOf(column.vector())).toEqual([...values]);
});

test.each(CASES)("%p is as it was when rows are taken back, and takes others", (type, values) => {
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
});

test("a vector of text keeps its rows while the column grows", () => {
  const column = new MemColumn(1, { kind: "text" });
  column.appendRepeated("first", 2);
  const before = column.vector();
  for (let row = 0; row < 1000; row += 1) column.appendRepeated(`row ${row} ${LONG}`, 1);
  expect(valuesOf(before)).toEqual(["first", "first"]);
});

test("roomFor, an array whose room costs nothing until it is written grows by more", () => {
  expect(roomFor(4096, 4095, 0)).toBe(8190);
  expect(roomFor(4097, 4096, 0)).toBe(65_536);
  expect(roomFor(10_001, 10_000, 0)).toBe(131_072);
  expect(roomFor(65_537, 65_536, 7)).toBe(131_072);
  expect(roomFor(131_073, 131_072, 7)).toBe(262_144);
});

test("bytes count what was written, and no room beyond it", () => {
  const column = new MemColumn(1, { kind: "bigint" });
  column.appendRepeated(7, 5000);
  expect(column.bytes).toBe(40_000);
  column.truncate(5);
  expect(column.bytes).toBe(40);
});

test("roomFor, large arrays of one table grow at different rows, and each before it must", () => {
  expect(roomFor(1024, 1024, 0)).toBeUndefined();
  expect(roomFor(1025, 1024, 0)).toBe(2048);
  expect(roomFor(9000, 1024, 0)).toBe(9000);
  const room = 131_072;
  const growAt = Array.from({ length: 8 }, (_, index) => {
    for (let needed = 0; needed <= room; needed += 1024) {
      const larger = roomFor(needed, room, index);
      if (larger === undefined) continue;
      expect(larger).toBe(2 * room);
      return needed;
    }
    return room;
  });
  expect(new Set(growAt).size).toBe(8);
  expect(Math.max(...growAt)).toBeLessThan(room);
});
