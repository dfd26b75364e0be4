/**
 * Tests the limit on the number of keys that a plan looks up, whatever the size of the table.
 */
import { expect, test } from "bun:test";
import type { TableEntry } from "../../../src/catalog/mod.ts";
import { areFewKeys } from "../../../src/sql/plan/access.ts";

test("areFewKeys refuses more keys than fit into memory, however large the table is", () => {
  const table = { kind: "shared" } as TableEntry;
  const rowCount = (): number => 1e9;
  expect(areFewKeys({ rowCount, table }, 65_536)).toBe(true);
  expect(areFewKeys({ rowCount, table }, 65_537)).toBe(false);
});
