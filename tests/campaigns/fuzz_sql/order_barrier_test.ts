/**
 * Verifies that queries whose groups PostgreSQL may order wrongly are rewritten for PostgreSQL.
 */
import { expect, test } from "bun:test";
import { behindBarrier } from "./order_barrier.ts";
import { list, type Node, node, optional, textOf } from "./tree.ts";

function query(group: Node | string, tail: Node | string): Node {
  const outputs = list("outputs", ["a.x", "b.y", "count(*)"]);
  return node("query", "SELECT ", outputs, " FROM ", "a JOIN b ON x = y", "", group, "", tail);
}

const SETS = node("group", " GROUP BY ", node("sets", "GROUPING SETS ((1), (b.y))"));
const KEYS = list("keys", [
  node("key", "max(1)"),
  node("key", "1", ""),
  node("key", "b.y", " DESC NULLS LAST"),
]);
const TAIL = node("tail", " ORDER BY ", KEYS, optional(" LIMIT 3"), "", "");

test("behindBarrier orders the groups by the columns of a query with OFFSET 0", () => {
  expect(behindBarrier(query(SETS, TAIL))).toBe(
    "SELECT c1, c2, c3 FROM (SELECT a.x, b.y, count(*), max(1), b.y FROM a JOIN b ON x = y" +
      " GROUP BY GROUPING SETS ((1), (b.y)) OFFSET 0) AS q(c1, c2, c3, k1, k2)" +
      " ORDER BY k1, c1, k2 DESC NULLS LAST LIMIT 3",
  );
});

test("behindBarrier leaves queries without grouping sets or without an order unchanged", () => {
  const plain = node("group", " GROUP BY ", list("keys", ["1", "2"]));
  expect(behindBarrier(query(plain, TAIL))).toBeUndefined();
  expect(behindBarrier(query("", TAIL))).toBeUndefined();
  expect(behindBarrier(query(SETS, ""))).toBeUndefined();
  const unordered = optional(" ORDER BY ", KEYS);
  expect(textOf(query(SETS, unordered))).toContain("ORDER BY");
  expect(behindBarrier(query(SETS, unordered))).toBeUndefined();
});
