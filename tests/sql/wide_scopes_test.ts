/**
 * Verifies that names have the same meaning among many columns, which are looked up in an index,
 * as among few.
 */
import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

const COUNT = 100;
const names = Array.from({ length: COUNT }, (_, i) => `c${i}`);

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  const columns = names.map((name) => `${name} INT`).join(", ");
  for (const [table, last] of [
    ["wide_a", 1],
    ["wide_b", 2],
  ] as const) {
    const values = (own: number): string =>
      names.map((_, i) => (i === COUNT - 1 ? own : i)).join(", ");
    await engine.run(
      `CREATE TABLE ${table} (id INT PRIMARY KEY, ${columns}); ` +
        `INSERT INTO ${table} VALUES (1, ${values(0)}), (2, ${values(last)})`,
    );
  }
});
afterAll(() => engine[Symbol.asyncDispose]());

async function rowsOf(sql: string): Promise<unknown> {
  return (await engine.run(sql)).at(-1)?.rows;
}

test("each of many columns is found by its name, with and without its table", async () => {
  const sum = names.map((name, i) => (i % 2 === 0 ? name : `wide_a.${name}`)).join(" + ");
  expect(await rowsOf(`SELECT ${sum} FROM wide_a WHERE id = 1`)).toEqual([[(98 * 99) / 2]]);
  expect(await rowsOf("SELECT _deleted FROM wide_a WHERE wide_a.c98 = 98 AND id = 2")).toEqual([
    [false],
  ]);
});

test("a name that two tables have is ambiguous, and one that none has is not found", async () => {
  const from = "FROM wide_a JOIN wide_b ON wide_a.id = wide_b.id";
  expect(await engine.failure(`SELECT c7 ${from}`)).toBe("AMBIGUOUS_COLUMN@1:7");
  expect(await engine.failure(`SELECT wide_a.c100 ${from}`)).toBe("COLUMN_NOT_FOUND@1:7");
  expect(await engine.failure(`SELECT c100 ${from}`)).toBe("COLUMN_NOT_FOUND@1:7");
});

test("USING and NATURAL merge many columns, and a full join takes their values from either side", async () => {
  const using = `USING (${names.join(", ")})`;
  expect(await rowsOf(`SELECT count(*), max(c98) FROM wide_a JOIN wide_b ${using}`)).toEqual([
    [1, 98],
  ]);
  expect(await rowsOf("SELECT id, c5, c99 FROM wide_a NATURAL JOIN wide_b")).toEqual([[1, 5, 0]]);
  expect(
    await rowsOf("SELECT id, c5, c99 FROM wide_a NATURAL FULL JOIN wide_b ORDER BY id, c99"),
  ).toEqual([
    [1, 5, 0],
    [2, 5, 1],
    [2, 5, 2],
  ]);
  const left = `SELECT a.id, b.id FROM wide_a a LEFT JOIN wide_b b ${using} ORDER BY 1`;
  expect(await rowsOf(left)).toEqual([
    [1, 1],
    [2, null],
  ]);
});

test("DISTINCT and GROUP BY find an expression among thousands of outputs", async () => {
  const list = names.map((name) => `${name} + 1`).join(", ");
  expect(await rowsOf(`SELECT DISTINCT ${list} FROM wide_a ORDER BY c99 + 1 DESC LIMIT 1`)).toEqual(
    [names.map((_, i) => (i === COUNT - 1 ? 2 : i + 1))],
  );
  expect(
    await rowsOf(`SELECT c0 + 1, count(*) FROM wide_a GROUP BY ${list} ORDER BY c99 + 1`),
  ).toEqual([
    [1, 1],
    [1, 1],
  ]);
});

test("the columns of a table are indexed once for all of its checks", async () => {
  const checked = names.map((name) => `${name} INT CHECK (${name} > 0)`).join(", ");
  const groupBy = spyOn(Map, "groupBy");
  try {
    await engine.run(`CREATE TABLE checked (id INT PRIMARY KEY, ${checked}, CHECK (c0 < c1))`);
    expect(groupBy.mock.calls.filter(([items]) => [...items].length > COUNT)).toHaveLength(1);
  } finally {
    groupBy.mockRestore();
  }
  const row = names.map((_, i) => (i === COUNT - 1 ? 0 : i + 1)).join(", ");
  expect(await engine.failure(`INSERT INTO checked VALUES (1, ${row})`)).toStartWith(
    "CHECK_VIOLATION",
  );
});
