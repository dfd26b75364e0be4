/**
 * Verifies that the binder yields to other work while it binds a long VALUES list of expressions
 * in FROM, and that the results and failures are those of a short list. The test's clock ends a
 * time slice at each check.
 */
import { expect, test } from "bun:test";
import { HastyClock } from "../../../support/hasty_clock.ts";
import { TestEngine } from "../../../support/sql_engine.ts";

const ROWS = 2048;

/** The number of cells bound between two checks of the clock. */
const CELLS_PER_LOOK = 512;

const clock = new HastyClock();

function open(): Promise<TestEngine> {
  return TestEngine.open({ clock, config: "performance.request_timeout = 0" });
}

/** Returns a VALUES clause with rows of a number, its successor and a string. */
function valuesOf(last: string, count = ROWS): string {
  const rows = Array.from({ length: count - 1 }, (_, i) => `(${i}, ${i} + 1, lower('A${i}'))`);
  return `VALUES ${[...rows, last].join(", ")}`;
}

const LONG = valuesOf("(-1, 0, upper('last'))");

test("bindLongValues yields to other work, wherever a query reads the values", async () => {
  await using engine = await open();
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, v INT, x TEXT)");
  for (const sql of [
    LONG,
    `SELECT * FROM (${LONG}) AS r`,
    `WITH r AS (${LONG}) SELECT * FROM r`,
    `SELECT * FROM (${LONG}) AS r UNION ALL SELECT 1, 2, 'x'`,
    `SELECT * FROM (t JOIN (${LONG}) AS r(a, b, c) ON t.id = a)`,
    `INSERT INTO t ${LONG} LIMIT 3`,
    `UPDATE t SET v = b FROM (${LONG}) AS r(a, b, c) WHERE id = a`,
    `DELETE FROM t USING (${LONG}) AS r(a, b, c) WHERE id = a`,
  ]) {
    clock.yieldCount = 0;
    await engine.run(`EXPLAIN ${sql}`);
    expect(clock.yieldCount, sql.slice(0, 30)).toBeGreaterThanOrEqual((3 * ROWS) / CELLS_PER_LOOK);
  }
});

test("all values of a long VALUES list are computed", async () => {
  await using engine = await open();
  const sql = `SELECT count(*), sum(b - a), max(c COLLATE "C"), min(c COLLATE "C") FROM (${LONG}) AS r(a, b, c)`;
  expect(await engine.rows(sql)).toEqual([[ROWS, ROWS, "a999", "LAST"]]);
});

test("a long VALUES list reports the fault of its last row with the position", async () => {
  await using engine = await open();
  for (const [last, condition] of [
    ["(1, 2, nothing)", "COLUMN_NOT_FOUND"],
    ["(1, 2, missing(3))", "FUNCTION_NOT_FOUND"],
  ] as const) {
    const sql = `SELECT * FROM (${valuesOf(last)}) AS r`;
    const at = sql.search(/nothing|missing/);
    expect(await engine.failure(sql)).toBe(`${condition}@1:${at}`);
  }
  expect(await engine.failure(valuesOf("(1, 2)"))).toStartWith("INVALID_QUERY@1");
  expect(await engine.failure(valuesOf("(1, 2, true)"))).toStartWith("TYPE_MISMATCH@1");
  expect(await engine.failure(valuesOf("(1, 1 / 0, 'x')"))).toStartWith("DIVISION_BY_ZERO@1");
});

test("a long VALUES list may read outer columns, and contain queries and parameters", async () => {
  await using engine = await open();
  const outer = `SELECT o.n, count(*), max(r.b) FROM (VALUES (1), (2)) AS o(n), LATERAL (${valuesOf("(1, o.n + 9000, 'x')")}) AS r(a, b, c) GROUP BY 1 ORDER BY 1`;
  expect(await engine.rows(outer)).toEqual([
    [1, ROWS, 9001],
    [2, ROWS, 9002],
  ]);
  const inner = valuesOf("(1, (SELECT 7000 + $1), $2)");
  expect(
    await engine.rows(`SELECT max(b), max(c) FROM (${inner}) AS r(a, b, c)`, { params: [5, "z"] }),
  ).toEqual([[7005, "z"]]);
});
