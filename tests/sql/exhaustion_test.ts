/**
 * Statements made to exhaust the server: each is answered rightly, or refused by what it asks for.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

const LISTED = 100_000;

let engine: TestEngine;

beforeAll(async () => {
  const config = "performance.query_memory_bytes = 67108864";
  engine = await TestEngine.open({ clock: systemClock, config });
  await engine.run("CREATE TABLE n (id INT PRIMARY KEY)");
});
afterAll(() => engine[Symbol.asyncDispose]());

describe("lists of 100,000", () => {
  const values = Array.from({ length: LISTED }, (_, i) => `(${i})`).join(",");

  test("rows of VALUES, read", async () => {
    const sql = `SELECT COUNT(*), MAX(v) FROM (VALUES ${values}) AS t(v)`;
    expect(await engine.rows(sql)).toEqual([[LISTED, LISTED - 1]]);
  });

  test("rows of VALUES, inserted, and all of them or none", async () => {
    expect(await engine.failure(`INSERT INTO n VALUES ${values},(7)`)).toStartWith("DUPLICATE_KEY");
    expect(await engine.rows("SELECT COUNT(*) FROM n")).toEqual([[0]]);
    await engine.run(`INSERT INTO n VALUES ${values}`);
    expect(await engine.rows("SELECT COUNT(*), MAX(id) FROM n")).toEqual([[LISTED, LISTED - 1]]);
  });

  test("values of IN, and of an array", async () => {
    const list = Array.from({ length: LISTED }, (_, i) => i).join(",");
    expect(await engine.rows(`SELECT COUNT(*) FROM n WHERE id IN (${list})`)).toEqual([[LISTED]]);
    expect(await engine.rows(`SELECT 99999 = ANY(ARRAY[${list}])`)).toEqual([[true]]);
  });
});

describe("patterns that would make a backtracking matcher try for ever", () => {
  const text = `REPEAT('a', 100000)`;

  test.each([
    ["LIKE", `${text} LIKE '${"%a".repeat(50)}%b'`, false],
    ["LIKE that matches", `${text} LIKE '${"%a".repeat(50)}%'`, true],
    ["LIKE of single characters", `${text} LIKE '${"%_".repeat(50)}b'`, false],
    ["ILIKE", `${text} ILIKE '${"%A".repeat(50)}%B'`, false],
    ["a regular expression", `REPEAT('a', 5000) ~ '^(a+)+$'`, true],
    ["one that fails at the end", `REPEAT('a', 5000) || 'b' ~ '^(a|aa)+$'`, false],
    ["one of many choices", `REPEAT('a', 2000) ~ '${"(a?)".repeat(20)}${"a".repeat(20)}$'`, true],
    ["SIMILAR TO", `REPEAT('a', 5000) || 'b' SIMILAR TO '(a|aa)*'`, false],
  ])("%s", async (_name, condition, matches) => {
    expect(await engine.rows(`SELECT ${condition}`)).toEqual([[matches]]);
  });

  test("repetitions of repetitions are refused, or matched", async () => {
    const answer = await engine.failure("SELECT REPEAT('a', 100) ~ '((a{1,200}){1,200}){1,200}b'");
    expect(answer).toMatch(/^(INVALID_|LIMIT_|VALUE_|PROGRAM_|SQL_)|"rows":\[\[false\]\]/);
  });
});

describe("a literal of a megabyte", () => {
  const long = "x".repeat(1_000_000);

  test.each([
    ["as it is", `SELECT LENGTH('${long}')`, 1_000_000],
    ["as a number", `SELECT LENGTH('${long}'::TEXT) + 1`, 1_000_001],
    ["compared", `SELECT COUNT(*) FROM n WHERE '${long}' = id::TEXT`, 0],
  ])("%s", async (_name, sql, answer) => {
    expect(await engine.rows(sql)).toEqual([[answer]]);
  });

  test("of digits is out of range, and so is one that is no JSON", async () => {
    expect(await engine.failure(`SELECT ${"9".repeat(1_000_000)} + 1`)).toMatch(
      /^(VALUE_|INVALID_)/,
    );
    expect(await engine.failure(`SELECT '${long}'::JSON`)).toMatch(/^INVALID_/);
    expect(await engine.failure(`SELECT '${"[".repeat(900_000)}'::JSON`)).toMatch(
      /^(INVALID_|VALUE_)/,
    );
  });
});

describe("queries that are read through each other", () => {
  const chainOf = (length: number): string => {
    const entry = (i: number): string => `, w${i + 1} AS (SELECT a + 1 AS a FROM w${i})`;
    const entries = Array.from({ length: length - 1 }, (_, i) => entry(i + 1));
    return `WITH w1 AS (SELECT 1 AS a)${entries.join("")} SELECT a FROM w${length}`;
  };

  test("are read up to 128 deep, and refused beyond", async () => {
    expect(await engine.rows(chainOf(128))).toEqual([[128]]);
    for (const length of [129, 10_000]) {
      expect(await engine.failure(chainOf(length))).toStartWith("LIMIT_EXCEEDED@1");
    }
  });

  test("count together with views", async () => {
    await engine.run(`CREATE VIEW tall AS ${chainOf(120)}`);
    const above = (length: number): string =>
      chainOf(length).replace("SELECT 1 AS a", "SELECT a FROM tall");
    expect(await engine.rows(above(7))).toEqual([[126]]);
    expect(await engine.failure(above(8))).toStartWith("LIMIT_EXCEEDED@1");
  });

  test("side by side do not count", async () => {
    const entries = Array.from({ length: 1000 }, (_, i) => `w${i} AS (SELECT ${i} AS a)`);
    expect(await engine.rows(`WITH ${entries.join(", ")} SELECT a FROM w999`)).toEqual([[999]]);
  });
});

test("more than a statement may hold is refused, or put elsewhere, and never half an answer", async () => {
  const sql =
    "SELECT s || REPEAT('x', 50) FROM generate_series(1, 1000000) AS g(s) ORDER BY 1 DESC";
  const { error, results } = await engine.ask(`SELECT COUNT(*) FROM (${sql} OFFSET 10) AS q`);
  if (error === undefined) expect(results[0]?.rows).toEqual([[999_990]]);
  else expect(error.condition).toBe("MEMORY_EXCEEDED");
  expect(await engine.rows("SELECT 1")).toEqual([[1]]);
});
