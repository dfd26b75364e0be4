/**
 * Verifies that the size of a group of rows adapts to the cost of the rows before it, within
 * limits.
 */
import { expect, test } from "bun:test";
import { BATCH_ROWS_MAX } from "../../../../src/base/limits.ts";
import { RowPace } from "../../../../src/sql/execute/context/pace.ts";

const MIB = 2 ** 20;

/** Returns a pace whose groups have grown to `rowCount` rows, which must be a power of two. */
function paceAt(rowCount: number): RowPace {
  const pace = new RowPace();
  while (pace.rowsMax < rowCount) {
    pace.note({ rowCount: pace.rowsMax, tookMs: 0, madeBytes: 0 });
  }
  return pace;
}

test("RowPace starts with one row and doubles up to a batch while groups take little time", () => {
  const pace = new RowPace();
  const sizes: number[] = [];
  for (let round = 0; round < 15; round += 1) {
    sizes.push(pace.rowsMax);
    pace.note({ rowCount: pace.rowsMax, tookMs: 0.4, madeBytes: MIB });
  }
  expect(sizes.slice(0, 5)).toEqual([1, 2, 4, 8, 16]);
  expect(sizes.slice(-3)).toEqual([BATCH_ROWS_MAX, BATCH_ROWS_MAX, BATCH_ROWS_MAX]);
});

test("RowPace never requests more rows than it was created with", () => {
  const pace = new RowPace(6);
  for (let round = 0; round < 5; round += 1) {
    pace.note({ rowCount: pace.rowsMax, tookMs: 0, madeBytes: 0 });
  }
  expect(pace.rowsMax).toBe(6);
});

test("RowPace falls to the share of a group that would have fitted, but to at least one row", () => {
  const pace = paceAt(64);
  pace.note({ rowCount: 64, tookMs: 16, madeBytes: 0 });
  expect(pace.rowsMax).toBe(8);
  pace.note({ rowCount: 8, tookMs: 2000, madeBytes: 0 });
  expect(pace.rowsMax).toBe(1);
  pace.note({ rowCount: 1, tookMs: 2000, madeBytes: 0 });
  expect(pace.rowsMax).toBe(1);
});

test("RowPace falls if a quick group produced many bytes", () => {
  const pace = paceAt(64);
  pace.note({ rowCount: 64, tookMs: 0, madeBytes: 64 * MIB });
  expect(pace.rowsMax).toBe(8);
});

test("RowPace stays the same if a group took neither much nor little time", () => {
  const pace = paceAt(64);
  pace.note({ rowCount: 64, tookMs: 2, madeBytes: 0 });
  pace.note({ rowCount: 64, tookMs: 0.5, madeBytes: 0 });
  pace.note({ rowCount: 64, tookMs: 0, madeBytes: 2 * MIB });
  expect(pace.rowsMax).toBe(64);
});

test("RowPace does not grow after fewer rows than it allows, but may fall", () => {
  const pace = paceAt(64);
  pace.note({ rowCount: 3, tookMs: 0, madeBytes: 0 });
  expect(pace.rowsMax).toBe(64);
  pace.note({ rowCount: 3, tookMs: 3, madeBytes: 0 });
  expect(pace.rowsMax).toBe(2);
});

test("RowPace never grows after a group that took long", () => {
  const pace = paceAt(2);
  pace.note({ rowCount: 64, tookMs: 2.5, madeBytes: 0 });
  expect(pace.rowsMax).toBe(2);
});
