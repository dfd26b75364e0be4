/**
 * Verifies that the rows at which keys change are those whose comparison with the previous row
 * differs from 0, for every form of a key column, across the pages of a column.
 */
import { expect, test } from "bun:test";
import { MaterialisedRows } from "../../../../src/sql/execute/materialised/materialised_rows.ts";
import { MemoryBudget } from "../../../../src/sql/execute/materialised/memory_budget.ts";
import { keyChanges } from "../../../../src/sql/execute/window/key_changes.ts";
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  DOUBLE,
  INT,
  TEXT,
  type Value,
  vectorFromValues,
} from "../../../../src/types/mod.ts";

const ROWS = 40_000;
const PIECE = 4096;

const CASES: readonly [DataType, readonly Value[]][] = [
  [INT, [0, 0, 1, null, null, 0]],
  [BIGINT, [0, 0, 2 ** 40, null, null, 2n ** 60n, 2n ** 60n, 5]],
  [DOUBLE, [Number.NaN, Number.NaN, 0, -0, null, 1.5]],
  [BOOLEAN, [false, false, null, true, true, false]],
  [TEXT, ["", "", "a", null, null, "a", "b"]],
];

test.each(CASES)("changes of %j are found", (type, cells) => {
  const rows = new MaterialisedRows([INT, type], new MemoryBudget(2 ** 30));
  for (let start = 0; start < ROWS; start += PIECE) {
    const count = Math.min(PIECE, ROWS - start);
    const values = Array.from({ length: count }, (_, i) => {
      return cells[Math.floor((start + i) / 3) % cells.length] ?? null;
    });
    const groups = Array.from({ length: count }, (_, i) => Math.floor((start + i) / 1000));
    rows.append([vectorFromValues(INT, groups), vectorFromValues(type, values)], count);
  }
  const order = Uint32Array.from({ length: ROWS }, (_, i) => ROWS - 1 - i);
  const keys = [INT, type].map((each) => ({ type: each, isDescending: false, nullsFirst: false }));
  const found = keyChanges(rows, order, {
    keys,
    keyStart: 0,
    context: { checkTime: () => undefined },
  });
  const expected = Uint8Array.from(order, (row, at) => {
    const before = order[at - 1];
    if (before === undefined) return 0;
    return keys.some((key, position) => rows.compare({ key, position }, before, row) !== 0) ? 1 : 0;
  });
  expect(found).toEqual(expected);
  expect(found.includes(1)).toBe(true);
});
