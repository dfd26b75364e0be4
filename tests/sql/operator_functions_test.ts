/**
 * Tests the functions behind operators, functions that belong to features that do not exist, and
 * clauses without effect.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
});
afterAll(() => engine[Symbol.asyncDispose]());

test.each([
  [`jsonb_exists('{"a":1}', 'a')`, true],
  [`jsonb_exists_any('{"a":1}', ARRAY['b', 'a'])`, true],
  [`jsonb_exists_all('{"a":1}', ARRAY['b', 'a'])`, false],
  [`jsonb_contains('{"a":1,"b":2}', '{"a":1}')`, true],
  [`jsonb_contained('{"a":1,"b":2}', '{"a":1}')`, false],
  [`jsonb_concat('{"a":1}', '{"b":2}')`, '{"a": 1, "b": 2}'],
  [`jsonb_delete('{"a":1,"b":2}'::jsonb, 'a')`, '{"b": 2}'],
  [`jsonb_delete_path('{"a":[1,2]}', '{a,0}')`, '{"a": [2]}'],
  ["arrayoverlap(ARRAY[1,2], ARRAY[2,3])", true],
  ["int4pl(1, 2) + int4mul(3, 4) - int4mi(1, 1)", 15],
  ["booleq(true, false)", false],
  ["numeric_lt(1.5, 2)", true],
  ["timestamptz(DATE '1994-01-01', TIMETZ '11:00-5')::text", "1994-01-01 16:00:00+00"],
  ["timestamp(DATE '1994-01-01', TIME '11:00')::text", "1994-01-01 11:00:00"],
])("SELECT %s", async (sql, value) => {
  expect(await engine.rows(`SELECT ${sql}`)).toEqual([[value]]);
});

test("NULLs in JSON documents and paths have the same meaning as in PostgreSQL", async () => {
  expect(
    await engine.rows(`SELECT a, b, c FROM json_to_record('{"a": null, "b": null, "c": [1, null]}')
      AS t (a JSON, b JSONB, c JSONB[])`),
  ).toEqual([[null, null, ["1", null]]]);
  expect(await engine.rows("SELECT '[]'::jsonb #- '{a}'")).toEqual([["[]"]]);
  expect(await engine.failure(`SELECT jsonb_set('{"d": {}}', ARRAY['d', NULL], '1')`)).toStartWith(
    "INVALID_VALUE",
  );
});

test("array_to_json separates elements by lines on request", async () => {
  expect(
    await engine.rows(
      "SELECT array_to_json(ARRAY[1, 2], true), array_to_json(ARRAY[[1], [2]], true), array_to_json(ARRAY[1, 2], false)",
    ),
  ).toEqual([["[1,\n 2]", "[[1],\n [2]]", "[1,2]"]]);
});

describe("unsupported functions are refused by the name of the feature", () => {
  test.each([
    ["SELECT to_regoper('+')", "operators, dictionaries and configurations have no OIDs"],
    ["SELECT pg_notify('a', 'b')", "NOTIFY is not supported"],
    ["SELECT numeric_accum(NULL, 1)", "the name is used only internally"],
    ["SELECT * FROM ts_debug('a')", "text search functions that inspect the parser"],
    ["SELECT pg_column_size(1)", "values are stored in compressed columns"],
    ["SELECT pg_ls_dir('.')", "SQL statements have no access to the server's files"],
    ["CREATE TABLE empty ()", "Cannot use a table without columns"],
    ["CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = simple)", "Cannot use CREATE TEXT SEARCH"],
    ["ALTER INDEX i SET (fillfactor = 50)", "Cannot use ALTER INDEX … SET"],
  ])("%s", async (sql, reason) => {
    const { error } = await engine.ask(sql);
    expect(error?.code).toBe("UNSUPPORTED_FEATURE");
    expect(error?.message).toContain(reason);
  });
});

test("advice about the storage of a column, and NO INHERIT, have no effect", async () => {
  await engine.run(
    "CREATE TABLE tuned (id INT PRIMARY KEY CHECK (id > 0) NO INHERIT, v TEXT COMPRESSION lz4 NOT NULL);" +
      "ALTER TABLE ONLY tuned ALTER COLUMN v SET STORAGE EXTERNAL, ALTER v SET STATISTICS -1," +
      " ALTER v SET COMPRESSION pglz",
  );
  expect(await engine.failure("INSERT INTO tuned VALUES (0, '')")).toStartWith("CHECK_VIOLATION");
  expect(await engine.failure("INSERT INTO tuned VALUES (1, NULL)")).toStartWith("NOT_NULL");
  expect(await engine.failure("CREATE TABLE other (v TEXT COMPRESSION zip)")).toStartWith(
    "UNSUPPORTED_FEATURE",
  );
});
