/**
 * Verifies that the page follows a statement without its ORDER BY and LIMIT, and applies both
 * clauses itself.
 */
import { expect, test } from "bun:test";
import { followedQuery } from "../../ui/src/live_query.ts";

const CASES: readonly (readonly [string, string, string | undefined, number, number])[] = [
  ["SELECT * FROM a.t;", "SELECT * FROM a.t", undefined, 10_000, 10_000],
  ["SELECT * FROM a.t LIMIT 5 ;", "SELECT * FROM a.t", undefined, 5, 5],
  ["SELECT * FROM a.t order by x desc", "SELECT * FROM a.t", "x desc", 10_000, 10_000],
  ["SELECT * FROM a.t\nORDER BY x, 2\nLIMIT 7", "SELECT * FROM a.t", "x, 2", 10_000, 7],
  ["SELECT * FROM a.t ORDER BY x OFFSET 3", "SELECT * FROM a.t OFFSET 3", "x", 10_000, 10_000],
  ["SELECT 'ORDER BY x' FROM a.t", "SELECT 'ORDER BY x' FROM a.t", undefined, 10_000, 10_000],
  ['SELECT "order by" FROM a.t', 'SELECT "order by" FROM a.t', undefined, 10_000, 10_000],
  ["SELECT * FROM a.t -- ORDER BY x", "SELECT * FROM a.t -- ORDER BY x", undefined, 10_000, 10_000],
  [
    "SELECT array_agg(x ORDER BY y) FROM a.t",
    "SELECT array_agg(x ORDER BY y) FROM a.t",
    undefined,
    10_000,
    10_000,
  ],
];

for (const [statement, sql, order, ...rows] of CASES) {
  test(statement, () => {
    const query = followedQuery(statement);
    expect([query.sql, query.order?.text]).toEqual([sql, order]);
    expect([query.lastRows, query.shownRows]).toEqual(rows);
  });
}

test("an order by expressions cannot be applied by the page", () => {
  expect(followedQuery("SELECT x FROM a.t ORDER BY x + 1").order?.terms).toBeUndefined();
});
