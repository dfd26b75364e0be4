/**
 * Verifies that a parameter whose type its use determines is read before the statement runs, so
 * that a faulty value also fails if no row would evaluate it.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

type Parameters = readonly (string | null)[];

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
  await engine.run(
    "CREATE TABLE app.empty (id INT PRIMARY KEY, code UUID, at TIMESTAMPTZ, tags INT[], n INT)",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function message(sql: string, params: Parameters): Promise<string | undefined> {
  const { error } = await engine.ask(sql, { namespace: "app", params });
  return error?.message;
}

const FAULTY: readonly (readonly [sql: string, params: Parameters, reason: string])[] = [
  ["SELECT id FROM empty WHERE code = $1", ["x"], 'Cannot read "x" as uuid'],
  ["SELECT id FROM empty WHERE n > 0 AND id IN ($1, $2)", ["1", "b"], 'Cannot read "b" as integer'],
  ["SELECT id FROM empty WHERE at > $1", ["soon"], 'Cannot read "soon" as a timestamp'],
  ["SELECT id FROM empty WHERE $1::int = n", ["a"], 'Cannot read "a" as integer'],
  ["SELECT id FROM empty WHERE n = ANY($1)", ["{a}"], 'Cannot read "a" as integer'],
  ["DELETE FROM empty WHERE code = $1", ["x"], 'Cannot read "x" as uuid'],
  ["UPDATE empty SET n = 1 WHERE n = 0 AND code = $1", ["x"], 'Cannot read "x" as uuid'],
  ["BEGIN; DELETE FROM empty WHERE code = $1; COMMIT", ["x"], 'Cannot read "x" as uuid'],
  ["SELECT CASE WHEN n = 1 THEN $1::int END FROM empty", ["a"], 'Cannot read "a" as integer'],
];

// Each statement runs twice: the second run has its plan from the cache.
test.each(FAULTY)("%s fails without a row for %p", async (sql, params, reason) => {
  const last = `(parameter $${params.length})`;
  for (const _ of [1, 2]) {
    const refusal = await message(sql, params);
    expect(refusal).toContain(reason);
    expect(refusal).toEndWith(last);
  }
});

test("a cached plan accepts a valid value after a faulty one, and NULL", async () => {
  const sql = "SELECT id FROM empty WHERE code = $1";
  expect(await message(sql, ["x"])).toContain("Cannot read");
  expect(await message(sql, ["b3a1f5c2-3c1e-4f0a-9a53-7f3b1f0c2d4e"])).toBeUndefined();
  expect(await message(sql, [null])).toBeUndefined();
  expect(await message(sql, ["y"])).toContain('"y"');
});

test("a parameter of several uses is read where it is evaluated", async () => {
  const optional = "SELECT id FROM empty WHERE $1 = '' OR id = $1::int";
  expect(await message(optional, [""])).toBeUndefined();
  const guarded = "SELECT CASE WHEN $1 = '' THEN 0 ELSE $1::int END AS n";
  expect(await engine.rows(guarded, { params: [""] })).toEqual([[0]]);
});
