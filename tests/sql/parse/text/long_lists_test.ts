/**
 * Verifies that a list long enough to be read without a syntax tree means the same as a short
 * list. The same items are used twice: in a list that is long enough, and together with an item
 * that the fast path does not support, so that the list is read item by item. Results, types and
 * refusals must be the same. A list of 100,000 items is bound quickly, however the statement uses
 * it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../../src/base/clock.ts";
import { parseStatements } from "../../../../src/sql/parse/parser.ts";
import { expressionToSql, statementToSql } from "../../../../src/sql/parse/print/print.ts";
import { TestEngine } from "../../../support/sql_engine.ts";
import { shareOf } from "../../../support/thoroughness.ts";

/** A number of literals that exceeds the number that one statement can replace with parameters. */
const MANY = 80;

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, b BIGINT, x DOUBLE, n DECIMAL(10,2), s TEXT, v VARCHAR(3)," +
      " day DATE, u UUID, ok BOOLEAN, j JSONB);" +
      "INSERT INTO t SELECT g, g * 3000000000, g / 2.0, g / 4.0, 'é' || g, g, DATE '2026-01-01' + g," +
      " '00000000-0000-0000-0000-0000000000' || g, g % 2 = 0, '1' FROM generate_series(10, 60) g;" +
      "INSERT INTO t (id) VALUES (1)",
  );
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

async function answerOf(sql: string): Promise<unknown> {
  const { error, results } = await engine.ask(sql);
  const last = results.at(-1);
  return error === undefined ? { rows: last?.rows, schema: last?.schema } : error.code;
}

/**
 * Returns a list of literals that takes the fast path, and an equivalent list that is read item by
 * item.
 */
function bothOf(items: readonly string[]): [string, string] {
  const [first = ""] = items;
  const many = Array.from({ length: MANY }, (_, i) => items[i % items.length] ?? first);
  return [many.join(", "), `${many.join(", ")} /* no plain list */, ${first}`];
}

const OPERANDS = ["id", "b", "x", "n", "s", "v", "day", "u", "ok", "j", "id + 1", "NULL", "'7'"];

describe.each([...shareOf(OPERANDS, { oneOf: 6 })])("%s IN a long list", (operand) => {
  test.each([
    ["numbers", ["12", "-13", "1", "0", "-0"]],
    ["numbers and NULL", ["12", "NULL", "15"]],
    ["great numbers", ["36000000000", "-2147483648", "2147483648", "999999999999999"]],
    ["greater numbers", ["36000000000", "9223372036854775807", "12"]],
    ["numbers beyond BIGINT", ["99999999999999999999", "12"]],
    ["fractions", ["6.5", "12", "1e1"]],
    ["texts", ["'é12'", "'12'", "''"]],
    ["escaped texts and NULL", ["'it''s'", "E'\\té'", "'é13'", "NULL"]],
    ["texts of days", ["'2026-01-14'", "'2026-02-01'"]],
    ["texts of ids", ["'00000000-0000-0000-0000-000000000012'"]],
    ["texts that are too long", ["'12345'", "'12'"]],
    ["truths", ["TRUE", "NULL"]],
    ["nothing but NULL", ["NULL"]],
    ["numbers and texts", ["12", "'13'"]],
  ])("IN over a long list of %s equals IN over a plain list", async (_, items) => {
    const [long, plain] = bothOf(items);
    for (const not of ["", "NOT "]) {
      const ask = (list: string): string =>
        `SELECT id, ${operand} ${not}IN (${list}) FROM t ORDER BY id`;
      expect(await answerOf(ask(long))).toEqual(await answerOf(ask(plain)));
      const filter = (list: string): string =>
        `SELECT COUNT(*) FROM t WHERE ${operand} ${not}IN (${list})`;
      expect(await answerOf(filter(long))).toEqual(await answerOf(filter(plain)));
    }
  });
});

test.each([
  ["numbers", ["(1)", "(-2)", "(NULL)"]],
  ["great numbers", ["(1)", "(3000000000)"]],
  ["pairs", ["(1, 'a')", "(NULL, 'it''s')", "(2, NULL)"]],
  ["fractions", ["(1, 2.50)", "(1, 7)"]],
  ["truths", ["(TRUE)", "(FALSE)"]],
  ["texts and numbers", ["('1')", "(2)"]],
  ["strings that are not numbers", ["('x')", "(2)"]],
  ["nothing but NULL", ["(NULL)"]],
  ["rows of DEFAULT", ["(1)", "(DEFAULT)"]],
])("VALUES, a long list of %s is what an ordinary one is", async (_, rows) => {
  const [long, plain] = bothOf(rows);
  for (const ask of [
    (list: string) => `SELECT * FROM (VALUES ${list}) AS q LIMIT ${MANY}`,
    (list: string) => `VALUES ${list} LIMIT ${MANY}`,
    (list: string) =>
      `SELECT column1, COUNT(*) > 1 FROM (VALUES ${list}) AS q GROUP BY column1 ORDER BY 1`,
    (list: string) => `WITH w AS (VALUES ${list}) SELECT * FROM w LIMIT ${MANY}`,
    (list: string) =>
      `(VALUES ${list}) UNION VALUES ${list.split("/*")[0]?.trimEnd() ?? ""} ORDER BY 1`,
  ]) {
    expect(await answerOf(ask(long))).toEqual(await answerOf(ask(plain)));
  }
});

test.each([
  ["numbers", ["12", "-13", "NULL", "-0"]],
  ["great numbers", ["36000000000", "-2147483648"]],
  ["numbers beyond BIGINT", ["99999999999999999999", "12"]],
  ["fractions", ["6.50", "12", "1e1"]],
  ["texts", ["'é12'", "'it''s'", "E'\\té'", "NULL"]],
  ["texts of numbers", ["'12'", "'13'"]],
  ["truths", ["TRUE", "NULL"]],
  ["nothing but NULL", ["NULL"]],
  ["numbers and texts", ["12", "'13'"]],
  ["DEFAULT", ["DEFAULT", "13"]],
  ["arrays", ["ARRAY[1]", "ARRAY[2]"]],
])("ARRAY of a long list of %s equals an ordinary array", async (_, items) => {
  const long = Array.from({ length: MANY }, (_unused, i) => items[i % items.length]).join(", ");
  for (const ask of [
    (list: string) => `SELECT ARRAY[${list}], CARDINALITY(array [ ${list} ]), (ARRAY[${list}])[2]`,
    (list: string) => `SELECT id FROM t WHERE id = ANY(ARRAY[${list}]) ORDER BY id`,
    (list: string) => `SELECT id FROM t WHERE s <> ALL(ARRAY[${list}]) ORDER BY id`,
    (list: string) => `SELECT id, n = ANY(ARRAY[${list}]) FROM t ORDER BY id`,
    (list: string) => `SELECT ARRAY[${list}]::TEXT, ARRAY[${list}]::BIGINT[]`,
    (list: string) => `SELECT ARRAY[${list}] || id, id FROM t ORDER BY id`,
    (list: string) => `SELECT UNNEST(ARRAY[${list}])`,
    (list: string) => `SELECT ARRAY[ARRAY[${list}], ARRAY[${list}]]`,
    (list: string) => `SELECT ARRAY[${list}], COUNT(*) FROM t GROUP BY ARRAY[${list}]`,
    (list: string) => `SELECT CASE WHEN ok THEN ARRAY[${list}] END FROM t ORDER BY id`,
  ]) {
    expect(await answerOf(ask(long)), ask("…")).toEqual(await answerOf(ask(`${long} /* plain */`)));
  }
});

test("GROUP BY treats two long lists as the same expression only if their items are the same", async () => {
  const list = Array.from({ length: MANY }, (_, i) => i).join(", ");
  const grouped = (by: string): string =>
    `SELECT id IN (${list}), COUNT(*) FROM t GROUP BY id IN (${by})`;
  expect(await answerOf(grouped(list))).toMatchObject({ rows: [[true, 52]] });
  expect(await answerOf(grouped(`${list}, 99`))).toBe("INVALID_QUERY");
  const byElement = (by: string): string =>
    `SELECT id = ANY(ARRAY[${list}]), COUNT(*) FROM t GROUP BY id = ANY(ARRAY[${by}])`;
  expect(await answerOf(byElement(list))).toMatchObject({ rows: [[true, 52]] });
  expect(await answerOf(byElement(`${list}, 99`))).toBe("INVALID_QUERY");
});

test("a long list is printed as its items, and parses to them again", () => {
  const items = Array.from({ length: MANY }, (_, i) => (i % 2 === 0 ? `'é''${i}'` : String(-i)));
  const array = `SELECT ARRAY[${items.join(", ")}]`;
  const [selected] = parseStatements(array);
  expect(selected === undefined ? "" : statementToSql(selected)).toBe(array);
  const sql = `SELECT a FROM t WHERE a IN (${items.join(", ")})`;
  const [statement] = parseStatements(sql);
  if (statement === undefined) throw new Error("it is a statement");
  expect(statementToSql(statement)).toBe(sql);
  if (statement.type !== "select" || statement.where?.type !== "binary") throw new Error(sql);
  const { right } = statement.where;
  if (right.type !== "list") throw new Error("IN has a list");
  expect(right.literals?.rowCount).toBe(MANY);
  // Error positions count characters, although the list counts bytes.
  for (const item of right.expressions) {
    expect(sql.startsWith(expressionToSql(item), item._location.start)).toBe(true);
  }
});

test("loads that differ only in their rows are one statement of system.query_stats", async () => {
  await engine.run("CREATE TABLE counted (id INT PRIMARY KEY)");
  for (const [first, count] of [
    [0, MANY],
    [1000, 2 * MANY],
  ] as const) {
    const rows = Array.from({ length: count }, (_, i) => `(${first + i})`);
    await engine.run(`INSERT INTO counted VALUES ${rows.join(", ")}`);
  }
  const sql = "SELECT calls, rows FROM system.query_stats WHERE sql LIKE 'INSERT INTO counted %'";
  expect((await engine.ask(sql)).results[0]?.rows).toEqual([[2, 3 * MANY]]);
});

test("rows that need casts are read in time proportional to their number", async () => {
  // If the position of each cell were counted from the start of the text, this test would take
  // minutes and so fail.
  const rows = Array.from({ length: 40_000 }, (_, i) => `(${i}, 5)`).join(", ");
  await engine.run("CREATE TABLE dated (id INT PRIMARY KEY, day DATE)");
  await engine.run(`INSERT INTO dated VALUES ${rows}`);
  expect(await engine.rows("SELECT count(*) FROM dated")).toEqual([[40_000]]);
});
