/**
 * Verifies that an option that takes a single word accepts it both unquoted and as a string, with
 * the same meaning, because other systems differ on this.
 */
import { expect, test } from "bun:test";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { bare } from "./bare.ts";

/** Statements in which the words between two `§` are tried both unquoted and in quotes. */
const ALIKE: readonly string[] = [
  "CREATE USER §ada§ WITH PASSWORD 'p' ROLE §dba§",
  "CREATE USER IF NOT EXISTS §ada§ INTERNAL ROLE §service§ EMAIL 'a@b'",
  "ALTER USER §ada§ SET ROLE §dba§",
  "DROP USER IF EXISTS §ada§ PURGE",
  "EXECUTE AS USER §ada§ (SELECT 1)",
  "EXECUTE AS §ada§ (SELECT 1)",
  "CREATE NAMESPACE §app§ AUTHORIZATION §ada§",
  "ALTER NAMESPACE §app§ OWNER TO §ada§",
  "ALTER NAMESPACE §app§ SET OPTIONS (a = 1)",
  "DROP NAMESPACE IF EXISTS §app§ CASCADE",
  "USE §app§",
  "USE NAMESPACE §app§",
  "SET NAMESPACE §app§",
  "SET search_path TO §app§",
  "SHOW TABLES IN §app§",
  "SHOW TABLES FROM NAMESPACE §app§",
  "STORAGE FLUSH ALL IN §app§",
  "STORAGE CHECK §local§ EXTENDED",
  "CREATE STORAGE §archive§ TYPE §filesystem§ NAME §archive§",
  "ALTER STORAGE §archive§ SET DESCRIPTION §old§",
  "DROP STORAGE IF EXISTS §archive§",
  "ALTER TABLE t SET ACCESS LEVEL §private§",
  "KILL QUERY §q17§",
  "KILL JOB §flush-17§",
  "KILL LIVE QUERY §17§",
  "KILL CONNECTION §c_1-a§",
  "SET TIME ZONE §utc§",
  "EXPLAIN (FORMAT §json§, ANALYZE TRUE) SELECT 1",
  "SELECT EXTRACT(§year§ FROM a) FROM t",
];

/**
 * Treats an identifier as a string, because an unquoted option or setting keeps its own kind of
 * node.
 */
const withoutKinds = (node: unknown): unknown =>
  JSON.parse(JSON.stringify(node).replaceAll('"identifier"', '"string"'));

test.each(ALIKE)("the word or string has the right form in: %s", (form) => {
  const [word] = parseStatements(form.replaceAll("§", ""));
  const [text] = parseStatements(form.replaceAll("§", "'"));
  expect(withoutKinds(bare(text))).toEqual(withoutKinds(bare(word)));
});

test.each([
  ["CREATE USER MixEd1 INTERNAL", "MixEd1"],
  ["CREATE USER 'MixEd1' INTERNAL", "MixEd1"],
  ['CREATE USER "MixEd1" INTERNAL', "MixEd1"],
  ["ALTER USER Role SET ROLE dba", "Role"],
  ["DROP USER OPTIONS", "OPTIONS"],
])("a user id keeps its case: %s", (sql, name) => {
  expect(parseStatements(sql)).toMatchObject([{ name: { name } }]);
});

test("other names are folded unless they have single or double quotes", () => {
  for (const [written, name] of [
    ["App", "app"],
    ['"App"', "App"],
    ["'App'", "App"],
  ]) {
    expect(parseStatements(`USE ${written}`)).toMatchObject([{ name: { name } }]);
  }
});
