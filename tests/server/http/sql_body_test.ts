/**
 * Verifies that the server reads long SQL from a body exactly as JSON.parse would read it. The
 * test compares the two on bodies of every shape around long SQL.
 */
import { expect, test } from "bun:test";
import { parseJson } from "../../../src/server/http/request_body.ts";
import { parseSqlBody } from "../../../src/server/http/sql_body.ts";

const LONG = `INSERT INTO t VALUES ${"(1, 'some words'), ".repeat(2000)}(2, 'x')`;

function parsed(text: string): ReturnType<typeof parseSqlBody> {
  return parseSqlBody(text, new TextEncoder().encode(text));
}

/** Bodies with the SQL at different positions, each marked by `%`. */
const SHAPES: readonly string[] = [
  '{"sql":"%"}',
  ' \t\r\n{ "sql" \n: "%" \r} \t',
  '{"sql":"%","params":[1,2.50,"a"],"check":true}',
  '{"sql":"%" , "namespace_id" : "n" }',
  '{"sql":"%","timeout_ms":1}',
  '{"params":[],"sql":"%"}',
  '{"sql":"%","sql":"SELECT 1"}',
  '{"sql":"%","\\u0073ql":"SELECT 1"}',
  '{"sql":"SELECT 1","sql":"%"}',
  '{"sql":"%","__proto__":{"check":true}}',
  '{"__proto__":"%"}',
  '{"sql2":"%"}',
  '["sql","%"]',
  '"%"',
  // These bodies are malformed.
  '{"sql":"%"',
  '{"sql":"%',
  '{"sql":"%",}',
  '{"sql":"%" "check":true}',
  '{"sql":"%"}}',
  '{"sql":"%"},',
  '{"sql":"%"};',
  '{"sql":"%",,"check":true}',
  '{"sql":"%","check":true',
  '{"sql":"%","check"}',
  '{"sql":"%"]',
  '\u00a0{"sql":"%"}',
  '{"sql":"%"}\u00a0',
  '{,"sql":"%"}',
];

/** SQL texts with and without escape sequences; some of them make the body malformed. */
const TEXTS: readonly string[] = [
  LONG,
  `${LONG}é`,
  `${LONG}\\n`,
  `${LONG}\\"`,
  `${LONG}\\`,
  `\\u0041${LONG}`,
  `${LONG}\n`,
  `\u0000${LONG}`,
  `${LONG}\u001f`,
  `${LONG}\u007f\u2028`,
  "SELECT 1",
];

test.each(SHAPES)("parseSqlBody reads %p as JSON.parse does", (shape) => {
  for (const sql of TEXTS) {
    const text = shape.replaceAll("%", () => sql);
    expect(parsed(text).value, sql.slice(-8)).toEqual(parseJson(text));
  }
});

test("parseSqlBody refuses a value after a long text if it is nested too deeply", () => {
  const deep = `${"[".repeat(1000)}${"]".repeat(1000)}`;
  expect(parsed(`{"sql":"${LONG}","params":${deep}}`).value).toBeUndefined();
});

test("parseSqlBody reuses the body's bytes as the UTF-8 form of a long ASCII text", () => {
  const { sqlUtf8 } = parsed(`{"sql":"${LONG}","check":true}`);
  expect(new TextDecoder().decode(sqlUtf8)).toBe(LONG);
  expect(parsed(`{"sql":"${LONG}é"}`).sqlUtf8).toBeUndefined();
  expect(parsed(`{"sql":"${LONG}\\n"}`).sqlUtf8).toBeUndefined();
});
