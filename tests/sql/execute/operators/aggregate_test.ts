/**
 * Goal: what an aggregate makes of the rows that it kept lets others run. Method: a clock by which
 * a turn is over after every step counts the steps.
 */
import { expect, test } from "bun:test";
import { HastyClock } from "../../../support/hasty_clock.ts";
import { TestEngine } from "../../../support/sql_engine.ts";

async function turnsOf(sql: string): Promise<{ turns: number; row: readonly unknown[] }> {
  const clock = new HastyClock();
  await using engine = await TestEngine.open({ clock, config: "performance.request_timeout = 0" });
  clock.yieldCount = 0;
  const [row = []] = await engine.rows(sql);
  return { turns: clock.yieldCount, row };
}

test("Aggregate makes a large object in steps", async () => {
  const over = (call: string): string =>
    `SELECT ${call} FROM generate_series(1, 40000) AS s(g) WHERE g % 2 = 0`;
  const plain = await turnsOf(over("count(g::TEXT)"));
  const object = await turnsOf(over("length(jsonb_object_agg(g, g)::TEXT)"));
  expect(plain.row).toEqual([20_000]);
  // As {"2": 2, …}: a key and a value of so many digits, and six characters beside them.
  const digits = Array.from({ length: 20_000 }, (_, i) => 2 * String(2 * i + 2).length);
  expect(object.row).toEqual([digits.reduce((sum, count) => sum + count + 6, 0)]);
  // Sorted in ten pieces, which are merged four times, and written in five.
  expect(object.turns - plain.turns).toBeGreaterThan(15);
});

test("Aggregate makes the results of many rows some groups at a time", async () => {
  const over = (call: string): string =>
    `SELECT count(made) FROM (SELECT g % 1000, ${call} AS made FROM generate_series(1, 20000) AS s(g) GROUP BY 1) q`;
  const few = await turnsOf(over("min(g)"));
  const all = await turnsOf(over("array_agg(g)"));
  expect([few.row, all.row]).toEqual([[1000], [1000]]);
  // Twenty rows a group: some two hundred groups are as many rows as a batch has.
  expect(all.turns - few.turns).toBeGreaterThanOrEqual(4);
});
