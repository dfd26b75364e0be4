/**
 * Verifies that Tidemark parses everything that PostgreSQL parses, with the same meaning.
 * PostgreSQL's own parser (libpg-query) must produce the same tree for an SQL text as for the text
 * that our printer makes of our own tree.
 */
import { expect, test } from "bun:test";
import { SeededRandom } from "../../support/seeded_random.ts";
import { amountOf } from "../../support/thoroughness.ts";
import {
  postgresTree,
  postgresTreeIfRead,
  printedForPostgres,
  refuses,
} from "./postgres_oracle.ts";
import { StatementGenerator } from "./statement_generator.ts";

const STATEMENTS = amountOf({ usual: 200, thorough: 2000 });
const EXPRESSIONS = amountOf({ usual: 400, thorough: 4000 });

test("parseStatements reads generated statements with the same meaning as PostgreSQL", () => {
  const generator = new StatementGenerator(new SeededRandom(11), "postgres");
  for (let count = 0; count < STATEMENTS; ) {
    const text = generator.statement();
    // Our tree splits a row assignment into one assignment per column.
    if (/SET \(a, b\) = \((?!SELECT|WITH|VALUES)/.test(text)) continue;
    expect([text, postgresTree(printedForPostgres(text))]).toEqual([text, postgresTree(text)]);
    count += 1;
  }
});

test("parseExpression has the operator precedence of PostgreSQL", () => {
  const generator = new StatementGenerator(new SeededRandom(12), "postgres");
  let compared = 0;
  while (compared < EXPRESSIONS) {
    const text = `SELECT ${generator.flatExpression()}`;
    const expected = postgresTreeIfRead(text);
    if (expected === undefined) {
      // The only difference is in chained tests: PostgreSQL rejects `a IS NULL IS NULL`, but
      // Tidemark allows it.
      const isRefused = refuses(text);
      expect([text, isRefused || text.split(" IS ").length > 2]).toEqual([text, true]);
      continue;
    }
    expect([text, postgresTree(printedForPostgres(text))]).toEqual([text, expected]);
    compared += 1;
  }
});

test.each([
  "SELECT a FROM t WHERE b LIKE 'x' 'y'",
  "SELECT a b c",
  "SELECT a,, b",
  "SELECT a FROM t WHERE",
  "SELECT (1, 2",
  "SELECT 1 +",
  "SELECT a FROM t ORDER a",
  "SELECT a < b < c",
  "SELECT a BETWEEN 1 AND 2 BETWEEN 3 AND 4",
  "SELECT * FROM a JOIN b",
  "SELECT * FROM t LIMIT 1, 2",
  "SELECT 1 LIMIT 1 LIMIT 2",
  "(SELECT 1 ORDER BY 1) ORDER BY 1",
  "SELECT 12abc",
  'SELECT ""',
  "SELECT select FROM t",
  "SELECT a AS FROM t",
  "INSERT INTO t",
  "INSERT INTO t VALUES",
  "INSERT INTO t VALUES ()",
  "UPDATE t SET a",
  "UPDATE t SET a = 1, WHERE b",
  "DELETE t WHERE a",
  "CREATE TABLE t (a)",
  "DROP TABLE",
  "WITH a AS (SELECT 1)",
  "WITH a AS SELECT 1 SELECT 2",
  "SELECT CASE END",
  "SELECT CAST(a)",
  "SELECT a.",
  "SELECT f(a",
  "VALUES",
  "SELECT * FROM t GROUP BY",
  "SELECT sum(a) OVER (ROWS UNBOUNDED FOLLOWING)",
  "SELECT a FROM t FETCH FIRST 3",
  "BEGIN ISOLATION",
])("parseStatements, %s is refused as by PostgreSQL", (text) => {
  expect(postgresTreeIfRead(text)).toBeUndefined();
  expect(refuses(text)).toBe(true);
});
