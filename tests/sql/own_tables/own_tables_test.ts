/**
 * Tests the server's internal tables, which are not in the catalog. If a store is opened without
 * the definition of such a table, the table loses its rows.
 */
import { expect, test } from "bun:test";
import { OWN_TABLES, ownTables } from "../../../src/sql/mod.ts";

test("ownTables defines each of OWN_TABLES with its id and name", () => {
  const defined = ownTables({ answersTtlMs: 60_000 }).map(({ name, tableId }) => ({
    tableId,
    name,
  }));
  expect(defined).toEqual([...OWN_TABLES]);
});

test("OWN_TABLES have ids above every id that a catalog assigns", () => {
  for (const { tableId } of OWN_TABLES) {
    expect(tableId).toBeGreaterThanOrEqual(0xffff_0000);
    expect(tableId).toBeLessThanOrEqual(0xffff_ffff);
  }
});
