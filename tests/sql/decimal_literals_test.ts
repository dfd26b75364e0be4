/**
 * Verifies that a string literal next to a DECIMAL is compared exactly: by key and by scan, in a
 * list and as a parameter. In arithmetic, the literal becomes a DECIMAL with its own digits, and
 * is not rounded to the digits of the other operand.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";
import { shareOf } from "../support/thoroughness.ts";

let engine: TestEngine;
const VALUES = ["-9.99", "-1.11", "-1.10", "0.00", "1.10", "1.11", "9.99"];

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE TABLE m (id DECIMAL(3,2) PRIMARY KEY, v DECIMAL(3,2))");
  await engine.run(`INSERT INTO m VALUES ${VALUES.map((text) => `(${text}, ${text})`).join(", ")}`);
});
afterAll(() => engine[Symbol.asyncDispose]());

const LITERALS = [
  "1.1",
  "1.100",
  "1.101",
  "1.105",
  "-1.105",
  "-1.1",
  "0",
  "9.990001",
  "-9.991",
  "50",
  "-1e30",
  "1e30",
  "-0.001",
  ".0009",
];
const TESTS: Readonly<Record<string, (value: number, literal: number) => boolean>> = {
  "=": (a, b) => a === b,
  "<>": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

test.each(shareOf(["in a segment", "in memory"], { oneOf: 2 }))(
  "every comparison with text gives the exact result for rows %s",
  async (where) => {
    if (where === "in a segment") await engine.run("STORAGE FLUSH TABLE m");
    for (const literal of LITERALS) {
      for (const [operator, holds] of Object.entries(TESTS)) {
        const expected = VALUES.filter((value) => holds(Number(value), Number(literal)));
        const mirrored = VALUES.filter((value) => holds(Number(literal), Number(value)));
        for (const column of ["id", "v"]) {
          const sql = (condition: string): string =>
            `SELECT id FROM m WHERE ${condition} ORDER BY id`;
          const ids = async (
            condition: string,
            params: readonly string[] = [],
          ): Promise<unknown[]> =>
            (await engine.rows(sql(condition), { params })).map(([id]) => id);
          const label = `${column} ${operator} ${literal}`;
          expect(await ids(`${column} ${operator} '${literal}'`), label).toEqual(expected);
          expect(await ids(`${column} ${operator} $1`, [literal]), label).toEqual(expected);
          expect(await ids(`'${literal}' ${operator} ${column}`), label).toEqual(mirrored);
        }
      }
    }
  },
);

test("IN, BETWEEN and IS DISTINCT FROM compare decimals with text exactly", async () => {
  const count = async (condition: string): Promise<unknown> =>
    (await engine.rows(`SELECT count(*) FROM m WHERE ${condition}`))[0]?.[0];
  expect(await count("v IN ('1.101', '1.1', '1e9', NULL)")).toBe(1);
  expect(await count("v NOT IN ('1.101', '1.1')")).toBe(6);
  expect(await count("v IN ('1.101', 9.99, 1)")).toBe(1);
  expect(await count("v BETWEEN '-1.105' AND '1.105'")).toBe(3);
  expect(await count("v IS NOT DISTINCT FROM '1.101'")).toBe(0);
  expect(await count("v IS DISTINCT FROM '1.10'")).toBe(6);
  expect(await count("v = NULL OR v < NULL")).toBe(0);
  expect(await engine.failure("SELECT id FROM m WHERE v = 'x'")).toBe("INVALID_VALUE@1:27");
});

/**
 * The expected results are computed from the column value 1.10, once with a literal and once with
 * a parameter.
 */
test.each([
  ["v * #", "1.075", 1.1825],
  ["# + v", "0.005", 1.105],
  ["v - #", "100.125", -99.025],
  ["v / #", "0.125", 8.8],
  ["v % #", "0.075", 0.05],
  ["COALESCE(NULLIF(v, 1.1), #)", "1.005", 1.005],
  ["GREATEST(v, #)", "123.456", 123.456],
  ["CASE WHEN v < 0 THEN v ELSE # END", "1.005", 1.005],
  ["(VALUES (1.5), (#) ORDER BY 1 LIMIT 1)", "1.005", 1.005],
  ["(SELECT v FROM m WHERE v = 9 UNION SELECT #)", "1.005", 1.005],
  ["(ARRAY[v, #])[2]", "1.005", 1.005],
  ["lead(v, 1, #) OVER ()", "100.005", 100.005],
  ["mod(v, #)", "0.075", 0.05],
])("%s with %s is %d", async (expression, literal, expected) => {
  const ask = async (text: string, params: readonly string[] = []): Promise<unknown> => {
    const sql = `SELECT ${expression.replace("#", text)} FROM m WHERE v = 1.10`;
    return Number((await engine.rows(sql, { params }))[0]?.[0]);
  };
  expect(await ask(`'${literal}'`)).toBe(expected);
  expect(await ask("$1", [literal])).toBe(expected);
});

test("arrays of strings are not rounded when they are compared with decimals", async () => {
  const count = async (condition: string, params: readonly string[] = []): Promise<unknown> =>
    (await engine.rows(`SELECT count(*) FROM m WHERE ${condition}`, { params }))[0]?.[0];
  expect(await count("v = ANY('{1.10,1.109}')")).toBe(1);
  expect(await count("v = ANY($1)", ["{1.10,1.109}"])).toBe(1);
  expect(await count("'1.105' = ANY(ARRAY[v, 1.11])")).toBe(0);
  expect(await count("ARRAY[v] @> '{1.109}'")).toBe(0);
});

test("NULLIF compares as = does, and its result has the scale of its first argument", async () => {
  const rows = async (list: string, params: readonly string[] = []): Promise<unknown> =>
    await engine.rows(`SELECT ${list} FROM m WHERE v = 1.10`, { params });
  const expected = [["1.10", null, "1.10"]];
  expect(await rows("NULLIF(v, '1.104'), NULLIF(v, '1.1'), NULLIF(v, NULL)")).toEqual(expected);
  expect(await rows("NULLIF(v, $1), NULLIF(v, $2), NULLIF(v, NULL)", ["1.104", "1.1"])).toEqual(
    expected,
  );
  expect(await rows("NULLIF(0.1::real, 0.1), NULLIF(0.5::real, 0.1)")).toEqual([[null, 0.5]]);
});

test("NULL takes the scale of the other operand", async () => {
  const sql = "SELECT COALESCE(v, NULL), GREATEST(NULL, v), CASE WHEN v > 0 THEN v ELSE NULL END";
  const expected = [["1.10", "1.10", "1.10"]];
  expect(await engine.rows(`${sql} FROM m WHERE v = 1.10`)).toEqual(expected);
});
