/**
 * Verifies that a left join becomes an inner join if a later condition rejects the rows without a
 * match. `tests/sql/cases/partners.slt` compares the results with PostgreSQL's.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE sales (item INT, ticket INT, amount INT, PRIMARY KEY (item, ticket));" +
      "CREATE TABLE returns (item INT, ticket INT, reason INT, PRIMARY KEY (item, ticket));" +
      "CREATE TABLE reasons (id INT PRIMARY KEY, name TEXT);" +
      "INSERT INTO sales SELECT i % 100, i, i FROM generate_series(1, 5000) i;" +
      "INSERT INTO returns SELECT i % 100, i, i % 30 FROM generate_series(1, 5000, 11) i;" +
      "INSERT INTO reasons SELECT i, 'r' || i FROM generate_series(0, 29) i",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function planOf(sql: string): Promise<string> {
  return (await engine.rows(`EXPLAIN ANALYZE ${sql}`)).join("\n");
}

const LEFT = "sales s LEFT JOIN returns r ON r.item = s.item AND r.ticket = s.ticket";

describe("a left join becomes an inner join", () => {
  test.each([
    `${LEFT} WHERE r.reason = 3`,
    `${LEFT} WHERE r.reason IS NOT NULL`,
    `${LEFT} WHERE NOT (r.reason + s.amount < 9)`,
    `${LEFT} WHERE r.reason IN (1, 2) OR (r.reason = 5 AND s.amount > 3)`,
    `${LEFT}, reasons q WHERE q.id = r.reason`,
    `(${LEFT}) JOIN reasons q ON q.id = r.reason`,
    `${LEFT} LEFT JOIN reasons q ON q.id = r.reason WHERE q.name = 'r5'`,
  ])("of %s", async (from) => {
    expect(await planOf(`SELECT count(*) FROM ${from}`)).not.toContain("join: left");
  });

  test("the few rows that remain are looked up by their key", async () => {
    const sql = `SELECT count(*), sum(s.amount) FROM ${LEFT}, reasons q WHERE q.id = r.reason AND q.name = 'r5'`;
    expect(await planOf(sql)).toMatch(/Scan on default.sales[^\n]* rows: 1\d;/);
    expect(await engine.rows(sql)).toEqual([[15, 36975]]);
  });
});

test.each([
  `${LEFT} WHERE r.reason IS NULL`,
  `${LEFT} WHERE coalesce(r.reason, 3) = 3`,
  `${LEFT} WHERE r.reason = 3 OR s.amount = 5`,
  `${LEFT} WHERE s.amount = 5`,
  `${LEFT} AND r.reason = 3`,
  `${LEFT} LEFT JOIN reasons q ON q.id = r.reason`,
])("a left join with rows without a partner stays: %s", async (from) => {
  expect(await planOf(`SELECT count(*) FROM ${from}`)).toContain("join: left");
});
