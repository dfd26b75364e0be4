/**
 * Goal: the cells of a row are the same whether they are its values or made of them.
 */
import { expect, test } from "bun:test";
import { CellRows } from "../../../src/sql/common/result.ts";
import { BIGINT, BOOLEAN, TEXT } from "../../../src/types/mod.ts";

const LARGE = 9_007_199_254_740_993n;

test("CellRows.cellsOf makes cells wherever the value that needs it stands", () => {
  const cells = new CellRows([BIGINT, TEXT, BIGINT]);
  expect(cells.cellsOf([LARGE, "a", 1])).toEqual(["9007199254740993", "a", 1]);
  expect(cells.cellsOf([1, "a", LARGE])).toEqual([1, "a", "9007199254740993"]);
  expect(cells.cellsOf([LARGE, null, LARGE])).toEqual([
    "9007199254740993",
    null,
    "9007199254740993",
  ]);
});

test("CellRows.cellsOf leaves the row that it is given as it is", () => {
  const row = [1, "a", LARGE, true];
  new CellRows([BIGINT, TEXT, BIGINT, BOOLEAN]).cellsOf(row);
  expect(row).toEqual([1, "a", LARGE, true]);
});

test("CellRows.cellsOf takes a row whose values are cells without a copy", () => {
  const row = [1, "a", null];
  expect(new CellRows([BIGINT, TEXT, BIGINT]).cellsOf(row)).toBe(row);
});
