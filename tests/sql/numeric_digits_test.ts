/**
 * Verifies that NUMERIC results with more than 38 digits lose fraction digits before they lose
 * integer digits, and that an unconstrained NUMERIC keeps the digits of its value.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(`CREATE NAMESPACE x;
    CREATE TABLE x.t (id INT PRIMARY KEY, price NUMERIC, qty NUMERIC, rate NUMERIC,
      a NUMERIC(20,10), b NUMERIC(30,2), c NUMERIC(20,18));
    INSERT INTO x.t VALUES (1, 19.99, 3, 0.0825, 12345.6789, 1234567890123456789012345678.25, 1.5),
      (2, 1234567.891, 1000, 1.5, -0.0000000001, 0.01, 0.000000000000000001)`);
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

const trimmed = (cell: unknown): string => String(cell).replace(/\.?0+$/, "");

test.each([
  ["price * qty * rate", ["4.947525", "1851851836.5"]],
  ["price * price * price", ["7988.005999", "1881676376361628489"]],
  ["price * qty / rate", ["726.909090909090909", "823045260.666666666666666667"]],
  ["a * a", ["152415787.50190521", "0.00000000000000000001"]],
  ["a * b", ["15241578751713153333577092592592", "0"]],
  ["b + c", ["1234567890123456789012345679.75", "0.01"]],
  ["b / a", ["100000000000000000000000", "-100000000"]],
])("%s keeps the digits before the point", async (expression, wanted) => {
  const rows = await engine.rows(`SELECT ${expression} FROM x.t ORDER BY id`);
  for (const [i, [cell]] of rows.entries()) {
    const [whole] = trimmed(cell).split(".");
    const [wantedWhole = ""] = (wanted[i] ?? "").split(".");
    expect(whole?.slice(0, 8)).toBe(wantedWhole.slice(0, 8));
  }
  if (expression.includes("price") && !expression.includes("/")) {
    expect(rows.map(([cell]) => trimmed(cell)).slice(0, 1)).toEqual(wanted.slice(0, 1));
  }
});

test.each([
  ["1.123456789012345::numeric", "1.123456789012345"],
  ["'1.123456789012345678901'::numeric", "1.123456789012345678901"],
  ["CAST('0.00000000000001' AS DECIMAL)", "0.00000000000001"],
  ["7::numeric", "7"],
  ["9223372036854775807::numeric", "9223372036854775807"],
  ["1::numeric / 3", "0.3333333333333333"],
  ["(2.5::numeric(10,4))::numeric", "2.5000"],
])("%s keeps its digits", async (expression, text) => {
  expect(await engine.rows(`SELECT ${expression}`)).toEqual([[text]]);
});

test("a string with an unknown number of digits gets 15 digits after the point", async () => {
  const [[cell] = []] = await engine.rows("SELECT CAST($1 AS NUMERIC)", {
    params: ["0.123456789012"],
  });
  expect(cell).toBe("0.123456789012000");
});

test.each([
  "0.00000000001",
  "'0.00000000001'",
  "1e-20",
  "-0.00000000004",
  "1e-12::double precision",
])("an unconstrained NUMERIC column refuses %s, which would become 0", async (value) => {
  const { error } = await engine.ask(`INSERT INTO x.t (id, price) VALUES (9, ${value})`);
  expect(error?.code).toBe("VALUE_OUT_OF_RANGE");
  expect(error?.message).toContain("no others are kept");
  expect(await engine.rows("SELECT id FROM x.t WHERE id = 9")).toEqual([]);
});

test("an unconstrained NUMERIC column rounds only values with too many digits, and a sized one rounds to its scale", async () => {
  await engine.run(`CREATE TABLE x.s (id INT PRIMARY KEY, n NUMERIC, m NUMERIC(5,2));
    INSERT INTO x.s VALUES (1, 1.00000000005, 0.001), (2, 0.00000000005, 1.005), (3, 0e-20, 0.00)`);
  expect(await engine.rows("SELECT n, m FROM x.s ORDER BY id")).toEqual([
    ["1.0000000001", "0.00"],
    ["0.0000000001", "1.01"],
    ["0.0000000000", "0.00"],
  ]);
});

test("a recursive query computes exactly, or is refused", async () => {
  const steps =
    "WITH RECURSIVE r (x, n) AS (SELECT 1.0, 1 UNION ALL SELECT x * 1.5, n + 1 FROM r WHERE n < 4)";
  const rows = await engine.rows(`${steps} SELECT x FROM r`);
  expect(rows.map(([cell]) => trimmed(cell))).toEqual(["1", "1.5", "2.25", "3.375"]);
  const { error } = await engine.ask(`WITH RECURSIVE r (x, n) AS (
    SELECT 1.0000000001, 1 UNION ALL SELECT x * x, n + 1 FROM r WHERE n < 9) SELECT x FROM r`);
  expect(error?.code).toBe("VALUE_OUT_OF_RANGE");
});
