/** Tests how cells are shown as text, for every wire type and the extremes of its range. */
import { expect, test } from "bun:test";
import type { DataTypeWord } from "../../src/protocol/mod.ts";
import { cellText, isNumeric, lineText, typeText } from "../../ui/src/cells.ts";

test.each<[DataTypeWord, unknown, string | undefined]>([
  ["Text", null, undefined],
  ["Text", "", ""],
  ["Boolean", false, "false"],
  ["BigInt", 9007199254740991, "9007199254740991"],
  ["BigInt", "-9223372036854775808", "-9223372036854775808"],
  ["Double", 1e21, "1e+21"],
  [{ Decimal: { precision: 38, scale: 2 } }, "-0.05", "-0.05"],
  ["Timestamp", 0, "1970-01-01 00:00:00"],
  ["Timestamp", -1, "1969-12-31 23:59:59.999999"],
  ["DateTime", 1795255205120000, "2026-11-21 10:00:05.12Z"],
  ["Date", -1, "1969-12-31"],
  ["Time", 86_399_999_999, "23:59:59.999999"],
  ["Bytes", [0, 255], "\\x00ff"],
  [{ Embedding: 2 }, [0.5, -1], "[0.5, -1]"],
  ["Json", '{"a": 1}', '{"a": 1}'],
  [
    { Array: "Int" },
    [
      [1, null],
      [3, 4],
    ],
    "{{1,NULL},{3,4}}",
  ],
  [{ Array: "Text" }, ["a b", "null", "", "c"], '{"a b","null","",c}'],
  [{ Array: "Date" }, [-1], "{1969-12-31}"],
  [{ Array: "Bytes" }, [[0, 255], null], String.raw`{"\\x00ff",NULL}`],
])("cellText writes %p %p as %p", (type, cell, text) => {
  expect(cellText(cell, type)).toBe(text);
});

test("types are written as in SQL, and numbers are distinguished from other cells", () => {
  const types: DataTypeWord[] = [
    "BigInt",
    "DateTime",
    { Decimal: { precision: 10, scale: 2 } },
    { Embedding: 3 },
  ];
  expect(types.map(typeText)).toEqual(["BIGINT", "TIMESTAMPTZ", "DECIMAL(10,2)", "EMBEDDING(3)"]);
  expect(types.map(isNumeric)).toEqual([true, false, true, false]);
});

test("lineText returns one line, no longer than a column can show", () => {
  expect(lineText("a\nb\r\nc\rd\u2028e  f\t")).toBe("a↵b↵c↵d↵e  f\t");
  for (const length of [0, 499, 500, 501]) {
    expect(lineText("x".repeat(length))).toBe("x".repeat(Math.min(length, 500)));
  }
});
