/** Verifies that scripts are split into statements exactly as psql splits them. */
import { expect, test } from "bun:test";
import { statementsOf } from "./psql_script.ts";

function sqlOf(script: string, environment?: Readonly<Record<string, string>>): string[] {
  return statementsOf(script, environment).map(({ sql }) => sql);
}

test("semicolons in strings, comments, parentheses and dollar quotes do not split statements", () => {
  expect(
    sqlOf(`SELECT 'a;b', E'c\\';d', "e;f"; -- g;h
/* i; /* j; */ k; */ SELECT $x$ l; $x$ ;
CREATE RULE r AS (SELECT 1; SELECT 2);`),
  ).toEqual([
    `SELECT 'a;b', E'c\\';d', "e;f"`,
    "SELECT $x$ l; $x$",
    "CREATE RULE r AS (SELECT 1; SELECT 2)",
  ]);
});

test("variables are replaced, but casts and slices are not", () => {
  const script =
    "\\getenv dir DIR\n\\set f :dir '/t.data'\n\\set c col\nCOPY t FROM :'f';\n" +
    'SELECT :"c"::int, a[1:n];';
  expect(sqlOf(script, { DIR: "/d" })).toEqual([
    "COPY t FROM '/d/t.data'",
    'SELECT "col"::int, a[1:n]',
  ]);
});

test("the data of COPY belongs to its statement", () => {
  expect(statementsOf("SELECT 1;\nCOPY t FROM stdin;\n1\ta;\n\\.\nSELECT 2;\n")).toEqual([
    { sql: "SELECT 1", line: 1 },
    { sql: "COPY t FROM stdin", line: 2, data: "1\ta;\n" },
    { sql: "SELECT 2", line: 5 },
  ]);
});

test("a COPY before another COPY with data has none", () => {
  expect(statementsOf("COPY t FROM stdin (x);\n-- next\nCOPY u FROM stdin;\n1\n\\.\n")).toEqual([
    { sql: "COPY t FROM stdin (x)", line: 1 },
    { sql: "COPY u FROM stdin", line: 3, data: "1\n" },
  ]);
});

test("the statements of BEGIN ATOMIC belong to the function", () => {
  const body = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END";
  expect(sqlOf(`${body};SELECT 3;`)).toEqual([body, "SELECT 3"]);
});

test("other psql commands are dropped", () => {
  expect(sqlOf("\\pset null x\nSELECT 1 \\gset\n\\d t\nSELECT 2;\n")).toEqual(["SELECT 2"]);
});
