/**
 * Tests comparisons of REAL with DECIMAL and with parameters. However a REAL is compared with 0.1,
 * the result is the same.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE TABLE app.f (id INT PRIMARY KEY, f REAL, d DOUBLE, n DECIMAL(12,3));" +
      "INSERT INTO app.f VALUES (1, 0.1, 0.1, 0.1), (2, 0.5, 0.5, 0.5), (3, 0.3, 0.3, 0.3), (4, NULL, NULL, NULL);" +
      "CREATE TABLE app.g (n DECIMAL(12,3) PRIMARY KEY, r REAL); INSERT INTO app.g VALUES (0.1, 0.1)",
  );
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

test.each([
  "f = 0.1",
  "0.1 = f",
  "f = 0.1::decimal(5,2)",
  "f = '0.1'",
  "f IN (0.1)",
  "f IN (0.1, 7)",
  "f IN (0.1, NULL)",
  "f IN (SELECT 0.1)",
  "f IN (SELECT n FROM app.g)",
  "f IN (VALUES (0.1), (9.5))",
  "0.1 IN (f, 7)",
  "f = ANY (ARRAY[0.1, 7.5])",
  "0.1 = ANY (ARRAY[f])",
  "f = ANY (SELECT n FROM app.g)",
  "f = (SELECT n FROM app.g)",
  "EXISTS (SELECT 1 FROM app.g WHERE g.n = f.f)",
  "(f, id) = (0.1, 1)",
  "(f, id) IN (SELECT 0.1, 1)",
  "f BETWEEN 0.1 AND 0.1",
  "f >= 0.1 AND f <= 0.1",
  "f IS NOT DISTINCT FROM 0.1",
  "NOT (f <> 0.1)",
  "f = n AND id = 1",
  "n IN (f) AND id = 1",
  "NULLIF(f, 0.1) IS NULL AND id < 4",
  "CASE f WHEN 0.1 THEN TRUE ELSE FALSE END",
  "-f = -0.1",
  "n IN (SELECT r FROM app.g)",
])("the row with 0.1 is found by %s", async (condition) => {
  expect(await engine.rows(`SELECT id FROM app.f WHERE ${condition}`)).toEqual([[1]]);
});

test("joins, set operations and parameters find the same REAL value", async () => {
  const one = [[1]];
  expect(await engine.rows("SELECT f.id FROM app.f JOIN app.g ON f.f = g.n")).toEqual(one);
  const using = "SELECT a.id FROM app.f a JOIN (SELECT n AS f FROM app.g) b USING (f)";
  expect(await engine.rows(using)).toEqual(one);
  expect(await engine.rows("SELECT f FROM app.f INTERSECT SELECT 0.1")).toEqual([[0.1]]);
  expect(
    await engine.rows("SELECT count(*) FROM (SELECT f FROM app.f UNION SELECT 0.1) s"),
  ).toEqual([[4]]);
  for (const condition of ["f = $1", "f IN ($1)", "f BETWEEN $1 AND $1", "NOT f <> $1"]) {
    const sql = `SELECT id FROM app.f WHERE ${condition}`;
    expect(await engine.rows(sql, { params: [0.1] })).toEqual(one);
  }
});

test("a parameter beyond the range of REAL is compared unchanged", async () => {
  const less = "SELECT count(*) FROM app.f WHERE f < $1";
  expect(await engine.rows(less, { params: [1e300] })).toEqual([[3]]);
  expect(await engine.rows(less, { params: [1e-300] })).toEqual([[0]]);
});

test("a DOUBLE compared with a REAL keeps its 64 bits", async () => {
  expect(await engine.rows("SELECT id FROM app.f WHERE f = d")).toEqual([[2]]);
  expect(await engine.rows("SELECT id FROM app.f WHERE f = 0.1::double precision")).toEqual([]);
});
