/**
 * Verifies that anyone who writes SQL for MySQL, SQLite, SQL Server, Oracle or PostgreSQL, or
 * makes a beginner's mistake, learns where the mistake is and what to write instead.
 *
 * The error for each piece of SQL must have a position and advice.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";
import { MISTAKES } from "./mistakes.ts";
import { REFUSED } from "./refused_mistakes.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE demo;" +
      "CREATE USER TABLE demo.notes (id BIGINT PRIMARY KEY, title TEXT, at TIMESTAMP, doc JSON);" +
      "CREATE TABLE demo.kv (k INT PRIMARY KEY, v TEXT);" +
      "CREATE USER alice INTERNAL; CREATE NAMESPACE hers AUTHORIZATION alice",
  );
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

test.each(MISTAKES)("the hint for this mistake is right: %s", async (sql, at, hint) => {
  const { error } = await engine.ask(sql);
  expect(error?.hint).toBe(hint);
  expect(sql.slice(error?.position)).toStartWith(at);
});

test.each(REFUSED)("%s is refused by name", async (sql, at, hint) => {
  const { error } = await engine.ask(sql);
  expect(error?.code).toBe("UNSUPPORTED_FEATURE");
  expect(error?.hint).toBe(hint);
  expect(sql.slice(error?.position)).toStartWith(at);
  const word = /^\w+/.exec(at)?.[0] ?? "";
  expect(error?.message).toContain(word);
});

test.each([
  [
    "SELECT table_to_xml('t', true, true, '')",
    "Cannot call table_to_xml: XML is created only by expressions, with xmlelement, xmlforest and xmlagg",
  ],
  ["SELECT lo_create(0)", "Cannot call lo_create: large objects are not supported"],
  ["SELECT txid_current()", "Cannot call txid_current: transactions have no numeric ids"],
  [
    "SELECT 'NaN'::numeric(5, 2)",
    'Cannot read "NaN" as numeric(5,2): a NUMERIC of up to 38 digits cannot represent NaN',
  ],
  ["SELECT '[0:1]={1,2}'::int[]", "a lower bound other than 1, but all arrays start at position 1"],
  [
    "SELECT '05:00+00'::timetz AT TIME ZONE 'Europe/Berlin'",
    "Cannot convert a time of day to a time zone whose offset changes",
  ],
])("a feature that PostgreSQL has is refused by name: %s", async (sql, message) => {
  const { error } = await engine.ask(sql);
  expect(error?.code).toBe("UNSUPPORTED_FEATURE");
  expect(error?.message).toContain(message);
});

test("no message reveals a password in the wrong quotes", async () => {
  const sql = 'ALTER USER alice SET PASSWORD "correct horse 9"';
  const { error } = await engine.ask(sql);
  expect(`${error?.message} ${error?.hint}`).not.toContain("horse");
});

test("a hint never names a table that the caller may not read", async () => {
  engine.userId = "alice";
  for (const sql of ["SELECT * FROM kv", "SELECT * FROM nowhere.kv", "SELECT * FROM demo.kw"]) {
    const { error } = await engine.ask(sql);
    expect(error?.hint ?? "").not.toContain("demo.kv");
  }
  const { error: hidden } = await engine.ask("SELECT * FROM users");
  expect(hidden?.hint).not.toContain("system.users");
  const { error } = await engine.ask("SELECT * FROM notes");
  expect(error?.hint).toStartWith("did you mean demo.notes?");
  engine.userId = "root";
});
