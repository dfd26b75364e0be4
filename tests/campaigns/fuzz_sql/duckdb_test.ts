/**
 * Verifies that DuckDB is asked the same query as PostgreSQL. Otherwise, differences would come
 * from the translation.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cellFromDuckDb, cellFromPostgres, cellFromWire } from "./cells.ts";
import { openSecondOpinion, otherMeaningOf, type SecondOpinion } from "./duckdb.ts";

let second: SecondOpinion;

beforeAll(async () => {
  second = await openSecondOpinion();
  const columns = [
    { name: "id", type: "INT" },
    { name: "t", type: "TEXT" },
    { name: "y", type: "BYTEA" },
    { name: "jb", type: "JSONB" },
  ];
  const rows = [
    ["1", "it's", "\\x41ff", "[1]"],
    ["2", "a%", "\\x", null],
    ["3", null, null, null],
  ];
  await second.copy([{ name: "t1", columns, rows }], new Map([["v1", VIEW]]));
});

afterAll(() => second.close());

const VIEW = "CREATE VIEW v1 (id, b) AS SELECT q.id, q.y FROM t1 AS q";

test("copies preserve cells, and DuckDB sorts NULLs last and escapes with a backslash", async () => {
  expect(await second.rows("SELECT t, y FROM t1 ORDER BY t", ["Text", "Bytes"])).toEqual([
    "a% | \\x",
    "it's | \\x41ff",
    "NULL | NULL",
  ]);
  expect(await second.rows("SELECT id / 2 FROM t1 WHERE t LIKE 'a\\%'", ["Int"])).toEqual(["1"]);
  expect(await second.rows("SELECT '\\xff01'::bytea", ["Bytes"])).toEqual(["\\xff01"]);
});

test("views exist until the next copies replace them", async () => {
  expect(await second.rows("SELECT b FROM v1 WHERE id = 1", ["Bytes"])).toEqual(["\\x41ff"]);
  await second.copy([], new Map());
  expect(await second.rows("SELECT b FROM v1", ["Bytes"])).toBeUndefined();
  await second.copy(
    [{ name: "t1", columns: [{ name: "jb", type: "JSONB" }], rows: [] }],
    new Map(),
  );
});

test("DuckDB has no opinion about JSON or about statements that it refuses", async () => {
  expect(await second.rows("SELECT 1 FROM t1 ORDER BY jb", ["Int"])).toBeUndefined();
  expect(await second.rows("SELECT initcap('a')", ["Text"])).toBeUndefined();
});

test("a difference is explained only by the text of the statement", () => {
  expect(otherMeaningOf("SELECT 1 WHERE ((1, 'a') < (1, NULL::text))")).toContain(
    "rows are values",
  );
  for (const sides of [
    "'0.25' <> date_trunc('hour', q1.ts)",
    "date_trunc('hour', q1.ts) != '0.25'",
  ]) {
    expect(otherMeaningOf(`SELECT ${sides} FROM t1 AS q1`)).toContain(
      "a moment that is not truncated",
    );
  }
  expect(otherMeaningOf("SELECT 1 WHERE (floor(t1.n) IN ('-0.014', 1.5))")).toContain(
    "in a list that it compares with a whole DECIMAL",
  );
  expect(otherMeaningOf("SELECT sum(t1.id) FROM t1 WHERE t1.t LIKE 'a%'")).toBeUndefined();
});

test("a FLOAT is recognized however many digits a side prints", () => {
  const cell = cellFromDuckDb(Math.fround(3.7416575), "Float");
  expect(cellFromWire(3.7416575, "Float")).toBe(cell);
  expect(cellFromPostgres("3.7416575", "Float")).toBe(cell);
});
