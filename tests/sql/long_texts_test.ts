/**
 * Verifies that a request with very many statements behaves like any other, although the server
 * keeps only a few of them bound. The tests use requests with an error, a definition or a rename
 * among the later statements.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

/** The number of statements in a request, more than the server keeps bound. */
const COUNT = 1500;

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

function textOf(statementAt: (index: number) => string): string {
  return Array.from({ length: COUNT }, (_, index) => statementAt(index)).join(";");
}

test("each of many statements has its own entry, in order", async () => {
  const { error, results } = await engine.ask(textOf((index) => `SELECT ${index}`));
  expect(error).toBeUndefined();
  expect(results.map(({ rows }) => rows?.[0]?.[0])).toEqual([...Array(COUNT).keys()]);
});

test("no statement runs if the last one has a fault", async () => {
  await engine.run("CREATE TABLE kept (id INT PRIMARY KEY)");
  const text = textOf((index) =>
    index === COUNT - 1 ? "SELECT nowhere FROM kept" : `INSERT INTO kept VALUES (${index})`,
  );
  const { error, results } = await engine.ask(text);
  expect(error?.code).toBe("COLUMN_NOT_FOUND");
  expect(results).toEqual([]);
  expect(await engine.rows("SELECT COUNT(*) FROM kept")).toEqual([[0]]);
});

test("an object that a statement creates is known to much later statements", async () => {
  const text = textOf((index) => {
    if (index === 1) return "CREATE TABLE late (id INT PRIMARY KEY)";
    return index < 1200 ? `SELECT ${index}` : `INSERT INTO late VALUES (${index})`;
  });
  const { error } = await engine.ask(text);
  expect(error).toBeUndefined();
  expect(await engine.rows("SELECT COUNT(*), MIN(id) FROM late")).toEqual([[COUNT - 1200, 1200]]);
});

test("parameters are numbered throughout a long transaction", async () => {
  await engine.run("CREATE TABLE counted (id INT PRIMARY KEY, n INT)");
  const text = textOf((index) => {
    if (index === 0) return "BEGIN";
    if (index === COUNT - 1) return "COMMIT";
    return `INSERT INTO counted VALUES (${index}, $${index === COUNT - 2 ? 2 : 1})`;
  });
  const { error } = await engine.ask(text, { params: [7, 8] });
  expect(error).toBeUndefined();
  const rows = await engine.rows("SELECT n, COUNT(*) FROM counted GROUP BY n ORDER BY n");
  expect(rows).toEqual([
    [7, COUNT - 3],
    [8, 1],
  ]);
});

test("check mode describes the result of each statement", async () => {
  const { error, results } = await engine.ask(
    textOf(() => "SELECT 1 AS one"),
    { check: true },
  );
  expect(error).toBeUndefined();
  expect(results.map(({ schema }) => schema?.[0]?.name)).toEqual(Array(COUNT).fill("one"));
});
