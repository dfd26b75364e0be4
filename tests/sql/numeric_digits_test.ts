/** Verifies that NUMERIC results keep all of their digits, even more than 38. */
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

test.each([
  ["price * qty * rate", ["4.947525", "1851851836.5000"]],
  ["price * price * price", ["7988.005999", "1881676376361628489.657928971"]],
  ["price * qty / rate", ["726.9090909090909091", "823045260.66666667"]],
  ["a * a", ["152415787.50190521000000000000", "0.00000000000000000001"]],
  ["a * b", ["15241578751714678875171467879477.213925000000", "-0.000000000001"]],
  ["b + c", ["1234567890123456789012345679.750000000000000000", "0.010000000000000001"]],
  ["b / a", ["100000000010000000000999.9999473500", "-100000000.000000000000"]],
])("%s keeps all digits", async (expression, wanted) => {
  const rows = await engine.rows(`SELECT ${expression} FROM x.t ORDER BY id`);
  expect(rows.map(([cell]) => cell)).toEqual(wanted);
});

test.each([
  ["1.123456789012345::numeric", "1.123456789012345"],
  ["'1.123456789012345678901'::numeric", "1.123456789012345678901"],
  ["CAST('0.00000000000001' AS DECIMAL)", "0.00000000000001"],
  ["7::numeric", "7"],
  ["9223372036854775807::numeric", "9223372036854775807"],
  ["1::numeric / 3", "0.33333333333333333333"],
  ["(2.5::numeric(10,4))::numeric", "2.5000"],
])("%s keeps its digits", async (expression, text) => {
  expect(await engine.rows(`SELECT ${expression}`)).toEqual([[text]]);
});

test("a text whose digits are not known beforehand keeps them", async () => {
  const [[cell] = []] = await engine.rows("SELECT CAST($1 AS NUMERIC)", {
    params: ["0.123456789012"],
  });
  expect(cell).toBe("0.123456789012");
});

test("a NUMERIC column without a size keeps all digits, and a sized one rounds", async () => {
  await engine.run(`CREATE TABLE x.s (id INT PRIMARY KEY, n NUMERIC, m NUMERIC(5,2));
    INSERT INTO x.s VALUES (1, 1.00000000005, 0.001), (2, 1e-20, 1.005), (3, '-0.00', 0.00)`);
  expect(await engine.rows("SELECT n, m FROM x.s ORDER BY id")).toEqual([
    ["1.00000000005", "0.00"],
    ["0.00000000000000000001", "1.01"],
    ["0.00", "0.00"],
  ]);
});

test("a recursive query keeps the digits of each step", async () => {
  const rows = await engine.rows(
    "WITH RECURSIVE r (x, n) AS (SELECT 1.0, 1 UNION ALL SELECT x * 1.5, n + 1 FROM r WHERE n < 4) SELECT x FROM r",
  );
  expect(rows.map(([cell]) => cell)).toEqual(["1.0", "1.50", "2.250", "3.3750"]);
  const [[square] = []] = await engine.rows(`WITH RECURSIVE r (x, n) AS (
    SELECT 1.0000000001, 1 UNION ALL SELECT x * x, n + 1 FROM r WHERE n < 9)
    SELECT scale(x) FROM r WHERE n = 9`);
  expect(square).toBe(2560);
});

test("a column divided by a number has the digits and sums of a division row by row", async () => {
  await engine.run(`CREATE TABLE x.q (id INT PRIMARY KEY, g INT, n NUMERIC(12,2), two INT);
    INSERT INTO x.q VALUES (1, 1, 0.05, 2), (2, 1, -7.35, 2), (3, 1, NULL, 2), (4, 2, 0, 2),
      (5, 2, 123456789.01, 2), (6, 3, NULL, 2), (7, 4, -0.01, 2), (8, 4, 20003, 2)`);
  const of = (divisor: string): Promise<unknown> =>
    engine.rows(`SELECT g, sum(n / ${divisor}), avg(n / ${divisor}), min(n / ${divisor}),
      count(n / ${divisor}) FROM x.q GROUP BY g ORDER BY g`);
  expect(await of("2")).toEqual(await of("two"));
  expect(await engine.rows("SELECT sum(n / 2), sum(n / -0.5) FROM x.q")).toEqual([
    ["61738392.35000000000000000000", "-246953569.40000000000000000000"],
  ]);
  expect(await engine.rows("SELECT n / 2 FROM x.q WHERE id < 6 ORDER BY id")).toEqual([
    ["0.02500000000000000000"],
    ["-3.6750000000000000"],
    [null],
    ["0.00000000000000000000"],
    ["61728394.505000000000"],
  ]);
  expect(await engine.rows("SELECT sum(n / 0) FROM x.q WHERE n IS NULL")).toEqual([[null]]);
  const { error } = await engine.ask("SELECT sum(n / 0) FROM x.q");
  expect(error?.code).toBe("DIVISION_BY_ZERO");
});
