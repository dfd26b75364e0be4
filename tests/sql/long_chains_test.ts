/**
 * Verifies that chains of thousands of operators or queries work wherever expressions are allowed,
 * on the event loop and in threads. The tests use chains with known values.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { testThoroughly } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { shareOf } from "../support/thoroughness.ts";

const TERMS = 5000;

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock, inThreads: true });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT, s TEXT);" +
      "INSERT INTO t SELECT i, 1, 'x' FROM generate_series(1, 20000) i",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

function chain(term: string, operator: string): string {
  return Array.from({ length: TERMS }, () => term).join(` ${operator} `);
}

const CHAINS: readonly (readonly [of: string, sql: string, value: number])[] = [
  ["texts", `SELECT length(${chain("s", "||")}) FROM t WHERE id = 1`, TERMS],
  ["sums", `SELECT ${chain("v", "+")} FROM t WHERE id = 1`, TERMS],
  ["differences", `SELECT ${chain("v", "-")} FROM t WHERE id = 1`, 2 - TERMS],
  ["products", `SELECT ${chain("1", "*")}`, 1],
  ["AND", `SELECT count(*) FROM t WHERE ${chain("v = 1", "AND")}`, 20_000],
  ["OR", `SELECT count(*) FROM t WHERE ${chain("v < 0", "OR")}`, 0],
  [
    "UNION ALL",
    `SELECT count(*) FROM (${chain("SELECT v FROM t WHERE id = 1", "UNION ALL")}) q`,
    TERMS,
  ],
  ["UNION", `SELECT count(*) FROM (${chain("SELECT 1", "UNION")}) q`, 1],
  ["INTERSECT", `SELECT count(*) FROM (${chain("SELECT 1", "INTERSECT")}) q`, 1],
  ["INTERSECT ALL", `SELECT count(*) FROM (${chain("SELECT 1", "INTERSECT ALL")}) q`, 1],
  ["EXCEPT", `SELECT min(v) FROM (VALUES (1), (2) EXCEPT ${chain("SELECT 1", "EXCEPT")}) q(v)`, 2],
  [
    "EXCEPT ALL",
    `SELECT count(*) FROM (SELECT v FROM t EXCEPT ALL ${chain("SELECT 1", "EXCEPT ALL")}) q`,
    20_000 - TERMS,
  ],
  [
    "sums that a thread computes",
    `SELECT sum(CASE WHEN id < 3 THEN ${chain("v", "+")} END), max(md5(s)) FROM t`,
    2 * TERMS,
  ],
  [
    "sums by which rows are grouped",
    `SELECT ${chain("v", "+")}, count(*) FROM t WHERE id < 9 GROUP BY ${chain("v", "+")}`,
    TERMS,
  ],
  [
    "sums in a correlated query",
    `SELECT (SELECT ${chain("u.v", "+")} FROM t u WHERE u.id = t.id) FROM t WHERE id = 1`,
    TERMS,
  ],
];

test.each(shareOf(CHAINS, { oneOf: 18 }))("a chain of 5,000 %s", async (_, sql, value) => {
  expect((await engine.rows(sql))[0]?.[0]).toBe(value);
});

testThoroughly(
  "a UNION ALL of 5,000 queries keeps their order, and LIMIT applies to the whole",
  async () => {
    const numbers = Array.from({ length: TERMS }, (_, i) => i);
    const sql = numbers.map((i) => `SELECT ${i}`).join(" UNION ALL ");
    expect(await engine.rows(sql)).toEqual(numbers.map((i) => [i]));
    expect(await engine.rows(`${sql} LIMIT 1 OFFSET 4000`)).toEqual([[4000]]);
  },
);

testThoroughly("chains can be stored in views, defaults and checks, and explained", async () => {
  await engine.run(
    `CREATE VIEW sums AS SELECT ${chain("v", "+")} AS total FROM t WHERE id = 1;` +
      `CREATE VIEW unions AS ${chain("SELECT v FROM t WHERE id = 1", "UNION ALL")};` +
      `CREATE TABLE k (id INT PRIMARY KEY, v INT DEFAULT ${chain("1", "+")}, CHECK (${chain("v", "-")} < 0))`,
  );
  await engine.run(
    `CREATE FUNCTION sum_of(n INT) RETURNS INT LANGUAGE SQL IMMUTABLE AS 'SELECT ${chain("n", "+")}';` +
      "CREATE TABLE f (id INT PRIMARY KEY, v INT GENERATED ALWAYS AS (sum_of(id)) STORED)",
  );
  expect(await engine.rows("INSERT INTO f VALUES (2) RETURNING v, sum_of(id)")).toEqual([
    [2 * TERMS, 2 * TERMS],
  ]);
  expect(await engine.rows("SELECT total FROM sums")).toEqual([[TERMS]]);
  expect(await engine.rows("SELECT count(*) FROM unions")).toEqual([[TERMS]]);
  expect(await engine.rows("INSERT INTO k (id) VALUES (1) RETURNING v")).toEqual([[TERMS]]);
  expect(await engine.failure("INSERT INTO k VALUES (2, -1)")).toStartWith("CHECK_VIOLATION");
  const plan = await engine.rows(`EXPLAIN SELECT ${chain("s", "||")} FROM t WHERE id = 1`);
  expect(plan.join()).toContain("Key Lookup");
});
