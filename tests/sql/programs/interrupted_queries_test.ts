/**
 * Verifies that queries that call programs for many rows let other statements run, and that each
 * call still runs only once.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";

/** Each call takes so long that the query is interrupted several times. */
const ROUNDS = 600;

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    `CREATE TABLE numbers (id INT PRIMARY KEY, v INT);
     INSERT INTO numbers SELECT i, i FROM generate_series(1, 40) i;
     CREATE SEQUENCE calls;
     CREATE FUNCTION slow(x INT) RETURNS INT LANGUAGE plpgsql AS $$
     DECLARE sum INT := 0;
     BEGIN
       PERFORM nextval('calls');
       FOR i IN 1..${ROUNDS} LOOP
         sum := sum + i % 2;
       END LOOP;
       RETURN x + sum;
     END $$`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function callCount(): Promise<number> {
  const [row] = await engine.rows("SELECT nextval('calls')");
  return Number(row?.[0]);
}

for (const { form, sql, calls, result } of shareOf(
  [
    {
      form: "an aggregate",
      sql: "SELECT sum(slow(v)) FROM numbers",
      calls: 40,
      result: [[12_820]],
    },
    {
      form: "a sort",
      sql: "SELECT id FROM numbers ORDER BY slow(-v) LIMIT 2",
      calls: 40,
      result: [[40], [39]],
    },
    {
      form: "a condition with equal arguments",
      sql: "SELECT count(*) FROM numbers WHERE slow(v % 2) = 301",
      calls: 40,
      result: [[20]],
    },
    {
      form: "two calls for each row",
      sql: "SELECT max(slow(v)), min(slow(v + 1)) FROM numbers",
      calls: 80,
      result: [[340, 302]],
    },
  ],
  { oneOf: 2 },
)) {
  test(`${form} lets others run, and calls the program once for each row`, async () => {
    const before = await callCount();
    let othersCount = 0;
    const state = { isOver: false };
    const query = engine.rows(sql).finally(() => {
      state.isOver = true;
    });
    while (!state.isOver) {
      await engine.rows("SELECT 1");
      othersCount += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await query).toEqual(result);
    expect(othersCount).toBeGreaterThan(1);
    expect((await callCount()) - before - 1).toBe(calls);
  });
}
