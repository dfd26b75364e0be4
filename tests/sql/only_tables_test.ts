/** Tests ONLY before the names of tables whose rows a statement reads or changes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app;" +
      "CREATE TABLE app.p (a INT NOT NULL, b TEXT) PARTITION BY RANGE (a);" +
      "CREATE TABLE app.low PARTITION OF app.p FOR VALUES FROM (0) TO (10);" +
      "CREATE TABLE app.high PARTITION OF app.p FOR VALUES FROM (10) TO (90) PARTITION BY LIST (a);" +
      "CREATE TABLE app.rest PARTITION OF app.high DEFAULT;" +
      "INSERT INTO app.p VALUES (1, 'one'), (20, 'twenty')",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const REFUSED = [
  "SELECT a FROM ONLY app.p",
  "SELECT a FROM ONLY (app.high)",
  "SELECT l.a FROM app.low l LEFT JOIN ONLY app.p o ON o.a = l.a",
  "CREATE VIEW app.v AS SELECT a FROM ONLY app.p",
  "UPDATE ONLY app.p SET b = 'changed' WHERE true",
  "UPDATE ONLY app.high SET b = 'changed' WHERE true",
  "DELETE FROM ONLY app.p WHERE true",
  "DELETE FROM app.low USING ONLY app.p AS o WHERE o.a = low.a",
  "MERGE INTO ONLY app.p USING (SELECT 1 AS x) s ON true WHEN MATCHED THEN DELETE",
  "TRUNCATE ONLY app.p",
];

test.each(REFUSED)("%s is refused, and changes nothing", async (sql) => {
  const { error } = await engine.ask(sql);
  expect(error?.code).toBe("UNSUPPORTED_FEATURE");
  expect(error?.message).toMatch(/^Cannot use ONLY with (p|high): the table is partitioned/);
  expect(await engine.rows("SELECT a, b FROM app.p ORDER BY a")).toEqual([
    [1, "one"],
    [20, "twenty"],
  ]);
});

test("ONLY has no effect with a partition that is not partitioned", async () => {
  expect(await engine.rows("SELECT a FROM ONLY app.low")).toEqual([[1]]);
  expect(await engine.rows("UPDATE ONLY app.rest SET b = b RETURNING a")).toEqual([[20]]);
});
