/**
 * The tables that no catalog knows: a store that is not told of one loses its rows at its next
 * start.
 */
import { expect, test } from "bun:test";
import { OWN_TABLES, ownTables } from "../../../src/sql/common/own_tables.ts";

test("ownTables defines each of OWN_TABLES, under its id and name", () => {
  const defined = ownTables({ answersTtlMs: 60_000 }).map(({ name, tableId }) => ({
    tableId,
    name,
  }));
  expect(defined).toEqual([...OWN_TABLES]);
});

test("OWN_TABLES have ids above every id that a catalog counts up to", () => {
  for (const { tableId } of OWN_TABLES) {
    expect(tableId).toBeGreaterThanOrEqual(0xffff_0000);
    expect(tableId).toBeLessThanOrEqual(0xffff_ffff);
  }
});
