/**
 * Tests statements designed to exhaust the server. Each returns the correct result, or is refused
 * because it would need too many resources.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { testThoroughly } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf, shareOf } from "../support/thoroughness.ts";

const LISTED = 100_000;

let engine: TestEngine;

beforeAll(async () => {
  const config = "performance.query_memory_bytes = 67108864";
  engine = await TestEngine.open({ clock: systemClock, config });
  await engine.run("CREATE TABLE n (id INT PRIMARY KEY)");
});
afterAll(() => engine[Symbol.asyncDispose]());

describe("statements with lists of 100,000 items are executed", () => {
  const values = Array.from({ length: LISTED }, (_, i) => `(${i})`).join(",");

  test("100,000 rows of VALUES are read", async () => {
    const sql = `SELECT COUNT(*), MAX(v) FROM (VALUES ${values}) AS t(v)`;
    expect(await engine.rows(sql)).toEqual([[LISTED, LISTED - 1]]);
  });

  test("100,000 rows of VALUES are inserted, all of them or none", async () => {
    expect(await engine.failure(`INSERT INTO n VALUES ${values},(7)`)).toStartWith("DUPLICATE_KEY");
    expect(await engine.rows("SELECT COUNT(*) FROM n")).toEqual([[0]]);
    await engine.run(`INSERT INTO n VALUES ${values}`);
    expect(await engine.rows("SELECT COUNT(*), MAX(id) FROM n")).toEqual([[LISTED, LISTED - 1]]);
  });

  testThoroughly("100,000 values of IN, and of an array, are compared", async () => {
    const list = Array.from({ length: LISTED }, (_, i) => i).join(",");
    expect(await engine.rows(`SELECT COUNT(*) FROM n WHERE id IN (${list})`)).toEqual([[LISTED]]);
    expect(await engine.rows(`SELECT 99999 = ANY(ARRAY[${list}])`)).toEqual([[true]]);
  });
});

describe("patterns on which a backtracking matcher would never finish are handled quickly", () => {
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

  test("nested repetitions are refused, or matched", async () => {
    const answer = await engine.failure("SELECT REPEAT('a', 100) ~ '((a{1,200}){1,200}){1,200}b'");
    expect(answer).toMatch(/^(INVALID_|LIMIT_|VALUE_|PROGRAM_|SQL_)|"rows":\[\[false\]\]/);
  });
});

describe("a statement with a literal of a megabyte is executed or refused", () => {
  const long = "x".repeat(1_000_000);

  test.each([
    ["as it is", `SELECT LENGTH('${long}')`, 1_000_000],
    ["as a number", `SELECT LENGTH('${long}'::TEXT) + 1`, 1_000_001],
    ["compared", `SELECT COUNT(*) FROM n WHERE '${long}' = id::TEXT`, 0],
  ])("%s", async (_name, sql, answer) => {
    expect(await engine.rows(sql)).toEqual([[answer]]);
  });

  test("a megabyte of digits is out of range, and a megabyte that is not JSON is refused", async () => {
    expect(await engine.failure(`SELECT ${"9".repeat(1_000_000)} + 1`)).toMatch(
      /^(VALUE_|INVALID_)/,
    );
    expect(await engine.failure(`SELECT '${long}'::JSON`)).toMatch(/^INVALID_/);
    expect(await engine.failure(`SELECT '${"[".repeat(900_000)}'::JSON`)).toMatch(
      /^(INVALID_|VALUE_)/,
    );
  });
});

describe("statements with deeply nested queries are limited", () => {
  const chainOf = (length: number): string => {
    const entry = (i: number): string => `, w${i + 1} AS (SELECT a + 1 AS a FROM w${i})`;
    const entries = Array.from({ length: length - 1 }, (_, i) => entry(i + 1));
    return `WITH w1 AS (SELECT 1 AS a)${entries.join("")} SELECT a FROM w${length}`;
  };

  test("queries are accepted up to a depth of 128, and refused beyond it", async () => {
    expect(await engine.rows(chainOf(128))).toEqual([[128]]);
    for (const length of [129, 10_000]) {
      expect(await engine.failure(chainOf(length))).toStartWith("LIMIT_EXCEEDED@1");
    }
  });

  test("the depth of views is added to that of queries", async () => {
    await engine.run(`CREATE VIEW tall AS ${chainOf(120)}`);
    const above = (length: number): string =>
      chainOf(length).replace("SELECT 1 AS a", "SELECT a FROM tall");
    expect(await engine.rows(above(7))).toEqual([[126]]);
    expect(await engine.failure(above(8))).toStartWith("LIMIT_EXCEEDED@1");
  });

  test("queries side by side do not add to the depth", async () => {
    const entries = Array.from({ length: 1000 }, (_, i) => `w${i} AS (SELECT ${i} AS a)`);
    expect(await engine.rows(`WITH ${entries.join(", ")} SELECT a FROM w999`)).toEqual([[999]]);
  });
});

testThoroughly(
  "a result that exceeds the memory is refused or spilled, and never incomplete",
  async () => {
    const sql =
      "SELECT s || REPEAT('x', 500) FROM generate_series(1, 100000) AS g(s) ORDER BY 1 DESC";
    const { error, results } = await engine.ask(`SELECT COUNT(*) FROM (${sql} OFFSET 10) AS q`);
    if (error === undefined) expect(results[0]?.rows).toEqual([[99_990]]);
    else expect(error.code).toBe("MEMORY_EXCEEDED");
    expect(await engine.rows("SELECT 1")).toEqual([[1]]);
  },
);

describe("an expression that creates long values for many rows stays within the memory", () => {
  const MADE = 40;

  beforeAll(async () => {
    await engine.run("CREATE TABLE made (id INT PRIMARY KEY, v TEXT)");
    await engine.run(`INSERT INTO made SELECT s, 'x' FROM generate_series(1, ${MADE}) AS g(s)`);
  });

  /**
   * Each row takes 4 MiB of memory, and all of them together more than twice a statement's limit.
   */
  const long = "REPEAT('ab', 1000000 + id)";

  test.each(
    shareOf<readonly [name: string, sql: string, answer: unknown]>(
      [
        [
          "a filter",
          `SELECT COUNT(*) FROM made WHERE LENGTH(${long}) > ${2_000_000 + MADE}`,
          MADE / 2,
        ],
        [
          "a projection",
          `SELECT SUM(n) FROM (SELECT LENGTH(${long}) AS n FROM made) AS q`,
          2_000_000 * MADE + MADE * (MADE + 1),
        ],
        ["an aggregate", `SELECT LENGTH(MAX(${long})) FROM made`, 2_000_000 + 2 * MADE],
        [
          "a filter of one",
          `SELECT COUNT(${long}) FILTER (WHERE LENGTH(${long}) > 0) FROM made`,
          MADE,
        ],
        [
          "keys of groups",
          `SELECT COUNT(*) FROM (SELECT 1 FROM made GROUP BY LENGTH(${long})) AS q`,
          MADE,
        ],
        [
          "DISTINCT ON",
          `SELECT COUNT(*) FROM (SELECT DISTINCT ON (LENGTH(${long})) id FROM made) AS q`,
          MADE,
        ],
        ["an order", `SELECT id FROM made ORDER BY LENGTH(${long}) DESC LIMIT 1`, MADE],
        [
          "a window",
          `SELECT MAX(n) FROM (SELECT SUM(LENGTH(${long})) OVER (ORDER BY id) AS n FROM made) AS q`,
          2_000_000 * MADE + MADE * (MADE + 1),
        ],
        [
          "keys of a join",
          `SELECT COUNT(*) FROM made JOIN (SELECT id AS n FROM made) AS q ON LENGTH(${long}) = n + 2000000`,
          MADE / 2,
        ],
        [
          "what pairs must satisfy",
          `SELECT COUNT(*) FROM made JOIN (SELECT id AS n FROM made) AS q ON id = n AND LENGTH(${long}) > n`,
          MADE,
        ],
      ],
      { oneOf: 4 },
    ),
  )("are released part by part: %s", async (_name, sql, answer) => {
    expect(await engine.rows(sql)).toEqual([[answer]]);
  });

  test.each([
    [
      "rows of VALUES",
      `INSERT INTO made VALUES ${Array.from({ length: 40 }, (_, i) => `(${i + 1000}, REPEAT('ab', 900000))`).join(",")}`,
    ],
    ["rows of a query", "INSERT INTO made SELECT id + 1000, REPEAT('ab', 900000) FROM made"],
    [
      "a literal in each row",
      `INSERT INTO made SELECT id + 1000, '${"ab".repeat(450_000)}' FROM made`,
    ],
    [
      "columns of one row",
      `SELECT ${Array.from({ length: 40 }, () => "REPEAT('ab', 900000)").join(",")}`,
    ],
    ["changed rows", "UPDATE made SET v = REPEAT('ab', 900000)"],
  ])("are refused if they must be held: %s", async (_name, sql) => {
    expect(await engine.failure(sql)).toStartWith("MEMORY_EXCEEDED");
    expect(await engine.rows("SELECT COUNT(*), MAX(LENGTH(v)) FROM made")).toEqual([[MADE, 1]]);
  });
});

testThoroughly(
  "a statement of thousands of outputs, conditions, branches or sums returns results for all rows",
  async () => {
    const times = (count: number, item: (i: number) => string, between: string): string =>
      Array.from({ length: count }, (_, i) => item(i)).join(between);
    await engine.run("CREATE TABLE broad (id INT PRIMARY KEY)");
    await engine.run("INSERT INTO broad SELECT s FROM generate_series(1, 1000) AS g(s)");
    const outputs = times(2000, (i) => `id + ${i} AS c${i}`, ",");
    expect(
      await engine.rows(`SELECT SUM(c0), SUM(c1999) FROM (SELECT ${outputs} FROM broad) AS q`),
    ).toEqual([[500_500, 2_499_500]]);
    const or = times(2000, (i) => `id = ${2 * i + 2}`, " OR ");
    expect(await engine.rows(`SELECT COUNT(*) FROM broad WHERE ${or}`)).toEqual([[500]]);
    const branches = times(2000, (i) => `WHEN id = ${i + 1} THEN ${i}`, " ");
    expect(await engine.rows(`SELECT SUM(CASE ${branches} END) FROM broad`)).toEqual([[499_500]]);
    const [sums] = await engine.rows(
      `SELECT ${times(1000, (i) => `SUM(id + ${i})`, ",")} FROM broad`,
    );
    expect(sums?.at(-1)).toBe(500_500 + 1000 * 999);
  },
);

const COUNT = amountOf({ usual: 800, thorough: 5000 });

test("thousands of short statements in one text yield to other work between statements", async () => {
  let isOver = false;
  const many = engine
    .run(Array.from({ length: COUNT }, (_, i) => `SELECT ${i}`).join(";"))
    .then((results) => {
      isOver = true;
      return results;
    });
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  expect(await engine.rows("SELECT 'other'")).toEqual([["other"]]);
  expect(isOver).toBe(false);
  expect((await many).length).toBe(COUNT);
});

describe("functions whose results are too large are refused", () => {
  test.each([
    ["a text", "REPEAT('ab', 3000000)", "VALUE_TOO_LONG"],
    ["a text of many parts", "FORMAT('%4000000s%4000000s', 'a', 'b')", "VALUE_TOO_LONG"],
    ["a pattern of digits", "TO_CHAR(1, REPEAT('9', 10001))", "LIMIT_EXCEEDED"],
    ["a pattern of fields", "TO_CHAR(NOW(), REPEAT('YYYY', 10000))", "LIMIT_EXCEEDED"],
    [
      "places of a double",
      "TO_CHAR(1.5::DOUBLE, '9.' || REPEAT('9', 101) || 'EEEE')",
      "VALUE_OUT_OF_RANGE",
    ],
    ["a shift", "TO_CHAR(1.5::DOUBLE, '9V' || REPEAT('9', 9000))", "VALUE_OUT_OF_RANGE"],
  ])("%s", async (_name, call, refusal) => {
    expect(await engine.failure(`SELECT ${call}`)).toStartWith(refusal);
  });

  test("a long text is changed character by character like a short one", async () => {
    const times = (text: string): string => `REPEAT('${text}', 5000)`;
    const sql =
      `SELECT REVERSE(${times("aé😀b")}) = ${times("b😀éa")}, UPPER(${times("ß😀a")}) = ${times("ß😀A")}, ` +
      `TRANSLATE(${times("a😀b")}, '😀a', 'x') = ${times("xb")}`;
    expect(await engine.rows(sql)).toEqual([[true, true, true]]);
  });
});
