/**
 * Goal: the tree is pgsql-ast-parser's. On every statement that both read, the two trees are
 * equal once literals are brought to one form and the differences that `ast.ts` names are undone.
 *
 * Faults of the library (12.0.2) that the generated statements stay away from; PostgreSQL itself
 * is the judge of ours there, in `postgres_oracle_test.ts`:
 *
 * - chains of UNION lean to the right, ORDER BY and LIMIT behind them belong to the last block;
 * - `a = b IS NULL` is `a = (b IS NULL)`, and comparisons chain;
 * - `-1::int` casts the negative number, `- 1` is an operator and `-1` is not;
 * - integers beyond 2^53 are rounded, `1e3` is the number 1 named e3, `0xff` is 0 named xff;
 * - VALUES as a value and CASE with some operands are "ambiguous" and refused;
 * - SET (a, b) = (SELECT …), several FROM items of UPDATE, `AS keyword` are refused;
 * - `||` binds as tight as `+`;
 * - `SET x TO a, b` has tokens in its tree.
 */
import { expect, test } from "bun:test";
import { parse } from "pgsql-ast-parser";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { bare, type Json, rewrite } from "./bare.ts";
import { StatementGenerator } from "./statement_generator.ts";

const STATEMENTS = 2000;
// The library's time grows much faster than the text.
const TEXT_LENGTH_MAX = 110;

type JsonObject = { readonly [key: string]: Json };

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isLiteral(value: Json | undefined): value is JsonObject & { readonly value: number } {
  return isObject(value) && (value["type"] === "integer" || value["type"] === "numeric");
}

/** Our tree in the library's words. */
function ours(text: string): Json {
  return rewrite(bare(parseStatements(text)), (node) => {
    const { star: _star, text: _text, ...rest } = node;
    switch (node["type"]) {
      case "set":
        // An assignment; the statement SET has a variable.
        return "column" in rest ? without(rest, "type") : { ...rest, set: setValue(rest["set"]) };
      case "parameter":
        return without(rest, "index");
      case "create namespace":
        return { ...rest, type: "create schema" };
      case "update":
        return singleFrom(rest);
      case "binary":
        return plainIn(rest);
      default:
        return rest;
    }
  });
}

// `SET x = 1` holds a bare value there.
function setValue(set: Json | undefined): Json {
  if (!isObject(set) || set["type"] !== "value" || !isObject(set["value"])) return set ?? null;
  return { type: "value", value: set["value"]["value"] ?? null };
}

function without(node: JsonObject, key: string): Json {
  return Object.fromEntries(Object.entries(node).filter(([name]) => name !== key));
}

function singleFrom(node: JsonObject): Json {
  const { from } = node;
  return Array.isArray(from) && from.length === 1 ? { ...node, from: from[0] } : node;
}

// A list of one behind IN is its element there.
function plainIn(node: JsonObject): Json {
  const { op, right } = node;
  if ((op !== "IN" && op !== "NOT IN") || !isObject(right) || right["type"] !== "list") return node;
  const parts = right["expressions"];
  return Array.isArray(parts) && parts.length === 1 ? { ...node, right: parts[0] } : node;
}

/** The library's tree without its nulls, with JSON operators and signs as we have them. */
function theirs(text: string): Json {
  return rewrite(bare(parse(text)), (node) => {
    const kept = Object.fromEntries(Object.entries(node).filter(([, value]) => value !== null));
    if (kept["type"] === "unary" && kept["op"] === "-" && isLiteral(kept["operand"])) {
      return { ...kept["operand"], value: -kept["operand"].value };
    }
    return kept;
  });
}

function theirsIfRead(text: string): Json | undefined {
  try {
    return theirs(text);
  } catch {
    return undefined;
  }
}

test("parseStatements, generated statements have the tree of pgsql-ast-parser", () => {
  const generator = new StatementGenerator(new SeededRandom(20_260_101), "library");
  let compared = 0;
  let refused = 0;
  while (compared < STATEMENTS) {
    const text = generator.statement();
    if (text.length > TEXT_LENGTH_MAX) continue;
    const expected = theirsIfRead(text);
    if (expected === undefined) {
      refused += 1;
      continue;
    }
    expect([text, ours(text)]).toEqual([text, expected]);
    compared += 1;
  }
  expect(refused).toBeLessThan(STATEMENTS / 50);
}, 30_000);

test.each([
  "SELECT -1, - 2, -a, +1, -1.5",
  "SELECT a FROM s.t AS x JOIN u USING (a, b) LEFT JOIN v ON x.a = v.b CROSS JOIN w, z",
  "SELECT * FROM (a JOIN b ON c) JOIN d ON e",
  "SELECT a.*, s.t.c FROM t OFFSET 3",
  "SELECT a FROM t FETCH FIRST 3 ROWS ONLY",
  "SELECT position FROM t",
  "SELECT overlay(a PLACING b FROM 1 FOR 2), substring(a, 1, 2), trim(a)",
  "SELECT interval '1 day', timestamptz 'x', a::timestamp with time zone, a::double precision",
  'SELECT a::varchar(3)[], CAST(a AS character varying(3)), a::"MyType"',
  "SELECT a ISNULL, a NOTNULL, a IS NOT FALSE, NOT a IS NULL",
  "SELECT a AT TIME ZONE 'utc', a !~* 'c', a % b, a ^ b, -a ^ b",
  "SELECT CURRENT_TIMESTAMP, current_timestamp(3), localtime, USER",
  "SELECT string_agg(a, ',' ORDER BY b), percentile_cont(0.5) WITHIN GROUP (ORDER BY a)",
  "SELECT sum(a) OVER (), count(ALL a)",
  "SELECT ARRAY[1, 2], ARRAY(SELECT 1), a[1], (a, b) = (1, 2)",
  "INSERT INTO t VALUES (1) ON CONFLICT ON CONSTRAINT c DO NOTHING",
  "CREATE TABLE t (d bigint GENERATED BY DEFAULT AS IDENTITY, e int CONSTRAINT z NOT NULL)",
  "ALTER TABLE t ADD PRIMARY KEY (a)",
  "SELECT a LIKE 'x' || 'y', a + 1 BETWEEN 2 AND 3 AND c",
  "SELECT not a = b, a and not b or c, a + b * c - d",
])("parseStatements, %s has the tree of pgsql-ast-parser", (text) => {
  expect(ours(text)).toEqual(theirs(text));
});
