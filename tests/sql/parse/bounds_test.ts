/**
 * Verifies that a statement with too many instances of a construct is refused at the first
 * instance over the limit, with a message that names the construct.
 */
import { describe, expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import {
  LISTED_MAX,
  SOURCES_MAX,
  STATEMENT_PARTS_MAX,
  STATEMENT_QUERIES_MAX,
  STATEMENT_SOURCES_MAX,
  STATEMENTS_MAX,
} from "../../../src/base/limits.ts";
import { parseStatements } from "../../../src/sql/parse/parser.ts";

function each(count: number, text: (index: number) => string, separator = ","): string {
  return Array.from({ length: count }, (_, index) => text(index)).join(separator);
}

function refusalOf(text: string): DatabaseError {
  try {
    parseStatements(text);
  } catch (error) {
    if (error instanceof DatabaseError) return error;
    throw error;
  }
  throw new Error("the text parses");
}

const FROM = `more than ${SOURCES_MAX} tables in a single FROM clause`;
const joined = (count: number, join: string): string => `SELECT 1 FROM t${join.repeat(count - 1)}`;

test.each([
  ["a comma", FROM, SOURCES_MAX, (n: number) => joined(n, ", t")],
  ["LEFT JOIN", FROM, SOURCES_MAX, (n: number) => joined(n, " LEFT JOIN t ON TRUE")],
  ["FULL JOIN", FROM, SOURCES_MAX, (n: number) => joined(n, " FULL JOIN t USING (a)")],
  ["NATURAL JOIN", FROM, SOURCES_MAX, (n: number) => joined(n, " NATURAL JOIN t")],
  ["CROSS JOIN", FROM, SOURCES_MAX, (n: number) => joined(n, " CROSS JOIN t")],
  ["queries in FROM", FROM, SOURCES_MAX, (n: number) => joined(n, ", (SELECT 1) q")],
  ["LATERAL", FROM, SOURCES_MAX, (n: number) => joined(n, ", LATERAL (SELECT 1) q")],
  ["functions", FROM, SOURCES_MAX, (n: number) => joined(n, ", f(1) q")],
  [
    "ROWS FROM",
    FROM,
    SOURCES_MAX,
    (n: number) => `SELECT 1 FROM ROWS FROM (${each(n, () => "f(1)")}) q`,
  ],
  [
    "joins in parentheses",
    FROM,
    SOURCES_MAX,
    (n: number) => `SELECT 1 FROM t${", (t JOIN t USING (a))".repeat(n / 2 - 1)}, t`,
  ],
  [
    "queries, each with tables",
    `more than ${STATEMENT_SOURCES_MAX} tables in its FROM clauses`,
    STATEMENT_SOURCES_MAX,
    (n: number) => each(n / 64, () => joined(64, ", t"), " UNION ALL "),
  ],
  [
    "queries in conditions",
    `more than ${STATEMENT_QUERIES_MAX} queries`,
    STATEMENT_QUERIES_MAX,
    (n: number) => `SELECT ${each(n - 1, () => "1 IN (SELECT 1)", " AND ")}`,
  ],
  [
    "entries of WITH",
    `more than ${STATEMENT_QUERIES_MAX} queries`,
    STATEMENT_QUERIES_MAX,
    (n: number) => `WITH ${each(n - 1, (i) => `w${i} AS (VALUES (1 + 1))`)} SELECT 1`,
  ],
  [
    "outputs",
    `more than ${LISTED_MAX} expressions in a single list`,
    LISTED_MAX,
    (n: number) => `SELECT ${each(n, String)}`,
  ],
  [
    "arguments",
    `more than ${LISTED_MAX} arguments in a single call`,
    LISTED_MAX,
    (n: number) => `SELECT concat(${each(n, String)})`,
  ],
  [
    "WHEN",
    `more than ${LISTED_MAX} WHEN clauses in a single CASE`,
    LISTED_MAX,
    (n: number) => `SELECT CASE ${each(n, () => "WHEN a THEN 1", " ")} END`,
  ],
  [
    "GROUP BY",
    `more than ${LISTED_MAX} items in a single GROUP BY`,
    LISTED_MAX,
    (n: number) => `SELECT 1 FROM t GROUP BY ${each(n, () => "a")}`,
  ],
  [
    "ORDER BY",
    `more than ${LISTED_MAX} expressions in a single ORDER BY`,
    LISTED_MAX,
    (n: number) => `SELECT 1 FROM t ORDER BY ${each(n, () => "a")}`,
  ],
  [
    "columns of a table",
    `more than ${LISTED_MAX} columns and constraints`,
    LISTED_MAX,
    (n: number) => `CREATE TABLE t (${each(n, (i) => `c${i} INT`)})`,
  ],
  [
    "changes to a table",
    `more than ${LISTED_MAX} changes in a single ALTER TABLE`,
    LISTED_MAX,
    (n: number) => `ALTER TABLE t ${each(n, (i) => `ADD COLUMN c${i} INT`)}`,
  ],
  [
    "assignments",
    `more than ${LISTED_MAX} columns in a single SET`,
    LISTED_MAX,
    (n: number) => `UPDATE t SET ${each(n, () => "a = 1")} WHERE TRUE`,
  ],
  [
    "operands",
    `more than ${STATEMENT_PARTS_MAX} names, values and operators`,
    STATEMENT_PARTS_MAX - 8,
    (n: number) => `SELECT 1 WHERE ${each(n, () => "a", " OR ")}`,
  ],
])("a statement is refused above the limit: %s", (_title, what, max, textOf) => {
  expect(parseStatements(textOf(max))).toHaveLength(1);
  // Some constructs occur in pairs, and the tables of long queries in groups of 64.
  const error = refusalOf(textOf(max + 64));
  expect(error.code).toBe("LIMIT_EXCEEDED");
  expect(error.message).toContain(what);
});

describe("texts that contain many statements are limited", () => {
  test("a text of many statements is refused above the limit, and each statement is counted separately", () => {
    expect(parseStatements("SELECT 1;".repeat(STATEMENTS_MAX))).toHaveLength(STATEMENTS_MAX);
    const error = refusalOf("SELECT 1;".repeat(STATEMENTS_MAX + 1));
    expect(error.code).toBe("LIMIT_EXCEEDED");
    expect(error.message).toContain(`more than ${STATEMENTS_MAX} statements`);
    const wide = joined(SOURCES_MAX, ", t");
    expect(parseStatements(each(20, () => wide, ";"))).toHaveLength(20);
  });

  test("rows of VALUES do not count towards the statement around them", () => {
    const rows = each(60_000, (i) => `(${i}, a)`);
    expect(parseStatements(`INSERT INTO t VALUES ${rows}`)).toHaveLength(1);
  });
});
