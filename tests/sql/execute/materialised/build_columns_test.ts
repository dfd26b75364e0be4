/**
 * Verifies that the rows stored by a join equal its input, whichever page they are on. The test
 * stores more rows than fit on a page, in batches of every form that cross the page boundary, and
 * reads them in an order that jumps between pages. A number beyond 2^53, or a NULL, comes late.
 *
 * Strings from dictionaries stay coded until a batch comes that cannot be coded.
 */
import { expect, test } from "bun:test";
import { BuildColumns } from "../../../../src/sql/execute/materialised/build_columns.ts";
import { MemoryBudget } from "../../../../src/sql/execute/materialised/memory_budget.ts";
import {
  BIGINT,
  BOOLEAN,
  type DictionaryVector,
  INT,
  TEXT,
  type Value,
  valuesOf,
  vectorFromValues,
} from "../../../../src/types/mod.ts";

const ROWS = 140_001;
const PIECE = 3000;
const STEP = 7919;
const TYPES = [INT, BIGINT, BOOLEAN, TEXT];

function cellsOf(row: number): Value[] {
  return [row % 1000, row * 3, row % 3 === 0, `text ${row % 50}`];
}

function held(change: (cells: Value[], row: number) => Value[]): BuildColumns {
  const columns = new BuildColumns(TYPES, new MemoryBudget(2 ** 30));
  for (let start = 0; start < ROWS; start += PIECE) {
    const count = Math.min(PIECE, ROWS - start);
    const rows = Array.from({ length: count }, (_, i) => change(cellsOf(start + i), start + i));
    const vectors = TYPES.map((type, at) => {
      return vectorFromValues(
        type,
        rows.map((row) => row[at] ?? null),
      );
    });
    columns.append(vectors, count);
  }
  return columns;
}

test.each<[string, (cells: Value[], row: number) => Value[]]>([
  ["as they are", (cells) => cells],
  [
    "NULL from a row of a later page on",
    (cells, row) => cells.map((v) => (row > 100_000 ? null : v)),
  ],
  ["a bigint at the end", (cells, row) => (row === ROWS - 1 ? [1, 2n ** 60n, null, "x"] : cells)],
])("rows of several pages are taken: %s", (_, change) => {
  const columns = held(change);
  const rows = Uint32Array.from({ length: 5000 }, (_each, i) => (i * STEP + ROWS - 1) % ROWS);
  const taken = columns.take(rows, rows.length);
  const expected = [...rows].map((row) => change(cellsOf(row), row));
  for (const [at, column] of taken.columns.entries()) {
    expect(valuesOf(column)).toEqual(expected.map((row) => row[at] ?? null));
  }
  expect(valuesOf(columns.takeColumn(0, rows, 3))).toEqual(
    valuesOf(taken.columns[0] ?? column0()).slice(0, 3),
  );
});

function column0(): never {
  throw new Error("a materialised row must have every column");
}

/** Returns a batch of strings with a dictionary of its own. Every seventh row is NULL. */
function coded(values: readonly Value[], rowCount: number): DictionaryVector {
  const codes = Uint8Array.from({ length: rowCount }, (_, row) => row % values.length);
  const nulls = Uint8Array.from({ length: rowCount }, (_, row) => (row % 7 === 6 ? 1 : 0));
  return { kind: "dict", length: rowCount, codes, values, nulls };
}

const MANY = Array.from({ length: 3000 }, (_, i) => `value ${i}`);
const OTHERS = Array.from({ length: 3000 }, (_, i) => `other ${i}`);

function wide(values: readonly Value[]): DictionaryVector {
  const codes = Uint16Array.from({ length: values.length }, (_, row) => row);
  return { kind: "dict", length: values.length, codes, values, nulls: undefined };
}

const FIRST = coded(["a", "b", "c"], 50);
const SECOND = coded(["c", "d"], 30);

test.each([
  ["two dictionaries with a common value", [FIRST, SECOND], "dict"],
  ["a batch without a dictionary at the end", [FIRST, vectorFromValues(TEXT, ["a", null])], "any"],
  ["a batch without a dictionary at the start", [vectorFromValues(TEXT, ["a"]), FIRST], "any"],
  ["a dictionary with NULL", [FIRST, coded([null, "a"], 9)], "any"],
  ["more values than a dictionary may have", [wide(MANY), wide(OTHERS)], "any"],
] as const)("strings are taken: %s", (_, vectors, kind) => {
  const memory = new MemoryBudget(2 ** 30);
  const columns = new BuildColumns([TEXT], memory);
  const expected: Value[] = [];
  for (const vector of vectors) {
    columns.append([vector], vector.length);
    expected.push(...valuesOf(vector));
  }
  const rows = Uint32Array.from(expected, (_each, i) => (i * STEP) % expected.length);
  const taken = columns.takeColumn(0, rows, rows.length);
  expect(taken.kind).toBe(kind);
  expect(valuesOf(taken)).toEqual(Array.from(rows, (row) => expected[row] ?? null));
  expect(memory.bytes).toBeGreaterThanOrEqual(16 * expected.length);
});

test("values that were passed on do not change when more rows come", () => {
  const columns = new BuildColumns([TEXT], new MemoryBudget(2 ** 30));
  columns.append([FIRST], FIRST.length);
  const early = columns.takeColumn(0, Uint32Array.of(0), 1);
  columns.append([SECOND], SECOND.length);
  expect(early).toMatchObject({ values: ["a", "b", "c"] });
  expect(valuesOf(columns.takeColumn(0, Uint32Array.of(0, 51), 2))).toEqual(["a", "d"]);
});
