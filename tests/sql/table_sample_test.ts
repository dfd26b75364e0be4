/**
 * Tests TABLESAMPLE: how many rows a sample has, when two samples are equal, and what can be
 * sampled.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({});
  await engine.run(
    "CREATE TABLE n (id INT PRIMARY KEY, v INT); INSERT INTO n SELECT i, i FROM generate_series(1, 4000) i;" +
      "CREATE TABLE keyless (v INT); INSERT INTO keyless SELECT v FROM n;" +
      "CREATE USER TABLE own (id INT PRIMARY KEY); INSERT INTO own SELECT id FROM n;" +
      "CREATE VIEW w AS SELECT id FROM n TABLESAMPLE BERNOULLI (10) REPEATABLE (3);" +
      "CREATE TABLE parts (a INT) PARTITION BY LIST (a);" +
      "CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1); INSERT INTO parts VALUES (1)",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function values(sql: string): Promise<readonly unknown[]> {
  const { error, results } = await engine.ask(sql);
  expect(error, sql).toBeUndefined();
  return (results.at(-1)?.rows ?? []).map(([value]) => value);
}

async function failure(sql: string): Promise<{ code: string | undefined; message: string }> {
  const { error } = await engine.ask(sql);
  return { code: error?.code, message: error?.message ?? "" };
}

test.each(["n", "keyless", "own"])("a tenth of the rows of %s are chosen", async (table) => {
  for (const method of ["BERNOULLI", "SYSTEM"]) {
    const [count] = await values(`SELECT count(*) FROM ${table} TABLESAMPLE ${method} (10)`);
    // The standard deviation of this count is 19.
    expect(Number(count)).toBeGreaterThan(280);
    expect(Number(count)).toBeLessThan(520);
  }
  expect(await values(`SELECT count(*) FROM ${table} TABLESAMPLE SYSTEM (100)`)).toEqual(
    await values("SELECT 4000::BIGINT"),
  );
  expect(await values(`SELECT v.* FROM ${table} v TABLESAMPLE BERNOULLI (0)`)).toEqual([]);
});

test("a seed chooses the same rows again, and a larger share contains a smaller one", async () => {
  const sample = (percentage: number, seed: string): Promise<readonly unknown[]> =>
    values(
      `SELECT id FROM n TABLESAMPLE BERNOULLI (${percentage}) REPEATABLE (${seed}) ORDER BY id`,
    );
  const tenth = await sample(10, "7");
  expect(tenth.length).toBeGreaterThan(280);
  expect(tenth.length).toBeLessThan(520);
  expect(await sample(10, "3 + 4.0")).toEqual(tenth);
  expect(await sample(10, "8")).not.toEqual(tenth);
  const fifth = new Set(await sample(20, "7"));
  expect(tenth.every((id) => fifth.has(id))).toBe(true);
  await engine.run("UPDATE n SET v = -v");
  expect(await sample(10, "7")).toEqual(tenth);
});

test("the percentage may come from the rows beside the table", async () => {
  const sql =
    "SELECT (SELECT count(*) FROM n TABLESAMPLE SYSTEM (p)) FROM (VALUES (0), (100)) AS v (p) ORDER BY p";
  expect((await values(sql)).map(Number)).toEqual([0, 4000]);
});

test("a view keeps the sample of its definition, and cannot be written to", async () => {
  const chosen = "SELECT id FROM n TABLESAMPLE BERNOULLI (10) REPEATABLE (3) ORDER BY id";
  expect(await values("SELECT id FROM w ORDER BY id")).toEqual(await values(chosen));
  expect((await failure("DELETE FROM w")).message).toContain("the view uses TABLESAMPLE");
});

test.each([
  ["SELECT * FROM n TABLESAMPLE BERNOULLI (-1)", "VALUE_OUT_OF_RANGE"],
  ["SELECT * FROM n TABLESAMPLE SYSTEM (101)", "VALUE_OUT_OF_RANGE"],
  ["SELECT * FROM n TABLESAMPLE SYSTEM (NULL)", "INVALID_VALUE"],
  ["SELECT * FROM n TABLESAMPLE SYSTEM (1) REPEATABLE (NULL)", "INVALID_VALUE"],
  ["SELECT * FROM n TABLESAMPLE other (1)", "INVALID_SQL"],
  ["SELECT * FROM n TABLESAMPLE SYSTEM ('x')", "INVALID_VALUE"],
  ["SELECT * FROM w TABLESAMPLE SYSTEM (1)", "INVALID_OPERATION"],
  ["WITH c AS (SELECT 1) SELECT * FROM c TABLESAMPLE SYSTEM (1)", "INVALID_OPERATION"],
  ["SELECT * FROM system.settings TABLESAMPLE SYSTEM (1)", "INVALID_OPERATION"],
  ["SELECT * FROM part_1 TABLESAMPLE SYSTEM (1)", "UNSUPPORTED_FEATURE"],
  ["SELECT * FROM n TABLESAMPLE SYSTEM (1) FOR UPDATE", "INVALID_OPERATION"],
])("%s fails with %s", async (sql, code) => {
  expect((await failure(sql)).code).toBe(code);
});
