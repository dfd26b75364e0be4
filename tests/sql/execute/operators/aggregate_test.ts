/**
 * Verifies that an aggregate that computes a large result from its stored rows checks the clock
 * while doing so. The test's clock counts how often it is read.
 */
import { expect, test } from "bun:test";
import { AskedClock } from "../../../support/asked_clock.ts";
import { TestEngine } from "../../../support/sql_engine.ts";

async function looksOf(sql: string): Promise<{ looks: number; row: readonly unknown[] }> {
  const clock = new AskedClock();
  await using engine = await TestEngine.open({ clock, config: "performance.request_timeout = 0" });
  clock.askedCount = 0;
  const [row = []] = await engine.rows(sql);
  return { looks: clock.askedCount, row };
}

test("Aggregate checks the clock while it creates a large object", async () => {
  const over = (call: string): string =>
    `SELECT ${call} FROM generate_series(1, 40000) AS s(g) WHERE g % 2 = 0`;
  const plain = await looksOf(over("count(md5(g::TEXT))"));
  const object = await looksOf(over("length(jsonb_object_agg(md5(g::TEXT), 1)::TEXT)"));
  expect(plain.row).toEqual([20_000]);
  // Each member of the object takes 37 characters, plus two before it.
  expect(object.row).toEqual([20_000 * 39]);
  // The object needs about 200,000 more comparisons than the plain list.
  expect(object.looks - plain.looks).toBeGreaterThan(8);
});

test("Aggregate creates the results of many rows a few groups at a time", async () => {
  const over = (call: string): string =>
    `SELECT count(made) FROM (SELECT g % 1000, ${call} AS made FROM generate_series(1, 20000) AS s(g) GROUP BY 1) q`;
  const few = await looksOf(over("min(g)"));
  const all = await looksOf(over("array_agg(g)"));
  expect([few.row, all.row]).toEqual([[1000], [1000]]);
  // A batch holds about two hundred groups of twenty rows.
  expect(all.looks - few.looks).toBeGreaterThanOrEqual(4);
});
