/** Tests the estimated number of distinct values on columns whose true number is known. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { LocalStore, TableDefinition } from "../../../src/storage/mod.ts";
import type { Row } from "../../../src/types/mod.ts";
import { commit, defineTable, openStore } from "../../support/store_fixture.ts";

const ROWS = 30_000;
const INT = { kind: "int" } as const;
const TABLE: TableDefinition = defineTable(1, [
  INT,
  INT,
  INT,
  INT,
  { kind: "text" },
  { kind: "double" },
  { kind: "json", binary: true },
  INT,
]);

/** Returns numbers in an order that looks random but is the same in each run. */
function scattered(row: number, count: number): number {
  return Number((BigInt(row) * 2_654_435_761n) % 4_294_967_296n) % count;
}

function rowAt(row: number): Row {
  return [
    row,
    Math.floor(row / 12),
    scattered(row, 50),
    scattered(row, 5000),
    `state ${scattered(row, 50)}`,
    scattered(row, 5000) / 8,
    "{}",
    null,
  ];
}

let store: LocalStore;
beforeAll(async () => {
  store = await openStore({ definitions: [TABLE] });
  for (let start = 0; start < ROWS; start += 5000) {
    await commit(
      store,
      1,
      "insert",
      Array.from({ length: 5000 }, (_, i) => rowAt(start + i)),
    );
  }
  await store.flush(1);
});
afterAll(() => store.close());

test.each([
  ["a key", 1, ROWS],
  ["a sorted column", 2, ROWS / 12],
  ["few numbers", 3, 50],
  ["many numbers", 4, 5000],
  ["few texts", 5, 50],
  ["fractions", 6, 5000],
  ["only NULL", 8, 1],
])("of %s", (_, columnId, expected) => {
  const estimate = store.distinctValues(1, columnId) ?? 0;
  expect(estimate).toBeGreaterThan(expected / 1.3);
  expect(estimate).toBeLessThan(expected * 1.3);
});

test("the estimate is unknown for a column that does not exist", () => {
  expect(store.distinctValues(1, 99)).toBeUndefined();
});

test("rows of all segments count", async () => {
  const table = defineTable(2, [INT, INT]);
  const two = await openStore({ definitions: [table] });
  for (const start of [0, 400, 600]) {
    const rows = Array.from({ length: 200 }, (_, i) => [start + i, i % 20]);
    await commit(two, 2, "insert", rows);
    await two.flush(2);
  }
  expect(two.distinctValues(2, 1)).toBe(600);
  expect(two.distinctValues(2, 2)).toBe(20);
  await two.close();
});
