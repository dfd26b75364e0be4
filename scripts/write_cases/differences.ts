/** Lists the statements whose results deliberately differ from PostgreSQL's, with the reasons. */
import type { Answer, Column } from "./answer.ts";

export interface Difference {
  readonly because: string;
  readonly answer: Answer;
}

function rows(columns: string, ...found: readonly (readonly (string | null)[])[]): Answer {
  return { kind: "rows", columns: columns.split("") as Column[], rows: found };
}

function failure(state: string): Answer {
  return { kind: "failure", state, message: "" };
}

const SCALE = "A quotient has 16 decimals";
const LOCALE = "PostgreSQL ran in the locale C, which converts only the case of ASCII letters";
const ROW_ANSWER = "The response contains rows as JSON";
const UNTYPED_FIELD = "A field that is an untyped literal is text";
const SCALAR_INDEX = "A scalar has no elements; PostgreSQL treats it as an array of one element";
const CONDITION = "The error is in the definition, not in a value";

const DIFFERENCES: ReadonlyMap<string, Difference> = new Map<string, Difference>([
  ["SELECT 2.5 / 9223372036854775807", { because: SCALE, answer: rows("N", ["0"]) }],
  ["SELECT -0.5 / 9223372036854775807", { because: SCALE, answer: rows("N", ["0"]) }],
  [
    "SELECT 'a' LIKE 'a\\'",
    {
      because:
        "A pattern that ends in its escape character is refused, whatever text it is compared with",
      answer: failure("22025"),
    },
  ],
  [
    "SELECT k FROM num ORDER BY k LIMIT k",
    { because: "LIMIT cannot refer to columns", answer: failure("42703") },
  ],
  [
    "SELECT unistr('\\xyz')",
    {
      because: "The error is in the value, not in the statement",
      answer: failure("22P02"),
    },
  ],
  ["CREATE DOMAIN broken AS INT DEFAULT 'x'", { because: CONDITION, answer: failure("42P17") }],
  ...[
    "CREATE TABLE keyed (p POINT PRIMARY KEY)",
    "CREATE TABLE keyed (id INT PRIMARY KEY, p BOX UNIQUE)",
    "CREATE INDEX ON places (at)",
  ].map((sql) => [sql, { because: CONDITION, answer: failure("42P17") }] as const),
  ["CREATE TYPE twice AS ENUM ('a', 'a')", { because: CONDITION, answer: failure("42710") }],
  [
    "SELECT ROW(1, NULL, true)",
    { because: ROW_ANSWER, answer: rows("T", ['{"f1":1,"f2":null,"f3":true}']) },
  ],
  ["SELECT (ROW(1, 'b')).f2", { because: UNTYPED_FIELD, answer: rows("T", ["b"]) }],
  ["SELECT '\"s\"'::jsonb -> 0", { because: SCALAR_INDEX, answer: rows("T", [null]) }],
  ["SELECT 'null'::jsonb -> 0", { because: SCALAR_INDEX, answer: rows("T", [null]) }],
  ["SELECT '\"s\"'::jsonb ->> -1", { because: SCALAR_INDEX, answer: rows("T", [null]) }],
  [
    "SELECT count() FROM emp",
    { because: "count without an argument is not a function", answer: failure("42883") },
  ],
  [
    "SELECT nullif(1)",
    {
      because: "NULLIF is a function here, and a part of the grammar in PostgreSQL",
      answer: failure("42883"),
    },
  ],
  [
    "SELECT coalesce()",
    {
      because: "COALESCE is a function here, and a part of the grammar in PostgreSQL",
      answer: failure("42883"),
    },
  ],
  [
    "SELECT mode() FROM emp",
    { because: "mode exists, but must be called with WITHIN GROUP", answer: failure("42P20") },
  ],
  [
    "SELECT ARRAY[1, 2.5]",
    { because: "A column of DECIMAL has one scale", answer: rows("T", ["{1.0,2.5}"]) },
  ],
  ["SELECT upper('héé😀')", { because: LOCALE, answer: rows("U", ["HÉÉ😀"]) }],
  [
    "SELECT '99999999999'::interval",
    {
      because: "The time of an interval is stored as microseconds in 53 bits",
      answer: failure("22008"),
    },
  ],
  [
    "CREATE TABLE b (id INT PRIMARY KEY, v INT DEFAULT 'x')",
    { because: CONDITION, answer: failure("42P16") },
  ],
  [
    "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(0))",
    { because: CONDITION, answer: failure("42P16") },
  ],
]);

/**
 * Returns how the result of a statement deliberately differs from PostgreSQL's; undefined if it
 * does not differ.
 */
export function differenceOf(sql: string): Difference | undefined {
  return DIFFERENCES.get(sql);
}
