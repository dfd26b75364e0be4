/**
 * Verifies that any text, however large, deeply nested or broken, either parses or fails with the
 * right error.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import {
  PARSE_LIMITS,
  parseNormalized,
  parseRequest,
  parseStatements,
} from "../../../src/sql/parse/parser.ts";
import { expressionToSql, statementToSql } from "../../../src/sql/parse/print/print.ts";
import { normalizeStatement } from "../../../src/sql/parse/text/normalize.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { amountOf } from "../../support/thoroughness.ts";
import { StatementGenerator } from "./statement_generator.ts";

function errorOf(text: string, limits = PARSE_LIMITS): DatabaseError {
  try {
    parseStatements(text, limits);
  } catch (error) {
    if (error instanceof DatabaseError) return error;
    throw error;
  }
  throw new Error("the text parses");
}

const DEEP = 10_000;

test.each([
  ["parentheses", "SELECT ", "(", ["1", ")"]],
  ["NOT", "SELECT ", "NOT ", ["a", ""]],
  ["signs", "SELECT ", "- ", ["a", ""]],
  ["prefix operators", "SELECT ", "@ ", ["a", ""]],
  ["calls", "SELECT ", "f(", ["1", ")"]],
  ["CASE", "SELECT ", "CASE WHEN a THEN ", ["1", " END"]],
  ["CAST", "SELECT ", "CAST(", ["1", " AS int)"]],
  ["arrays", "SELECT ", "ARRAY[", ["1", "]"]],
  ["subscripts", "SELECT ", "a[", ["1", "]"]],
  ["scalar subqueries", "SELECT ", "(SELECT ", ["1", ")"]],
  ["EXISTS", "SELECT ", "EXISTS (SELECT ", ["1", ")"]],
  ["subqueries in FROM", "SELECT * FROM ", "(SELECT * FROM ", ["t", ")"]],
  ["parentheses in FROM", "SELECT * FROM ", "(", ["t", ")"]],
  ["CTE", "", "WITH a AS (", ["SELECT 1", ") SELECT 1"]],
  ["parentheses around queries", "", "(", ["SELECT 1", ")"]],
  ["EXPLAIN", "", "EXPLAIN ", ["SELECT 1", ""]],
  ["grouping sets", "SELECT 1 GROUP BY ", "ROLLUP (", ["a", ")"]],
  ["IN", "SELECT ", "a IN (", ["1", ")"]],
  ["substring", "SELECT ", "substring(", ["a", " FROM 1)"]],
  ["trim", "SELECT ", "trim(BOTH FROM ", ["a", ")"]],
] as const)(
  "parseStatements, %s nested 10,000 deep is INVALID_SQL",
  (_, head, open, [inner, close]) => {
    const error = errorOf(head + open.repeat(DEEP) + inner + close.repeat(DEEP));
    expect(error.code).toBe("INVALID_SQL");
  },
);

test.each([
  ["additions", "SELECT 1", " + 1"],
  ["casts", "SELECT 1", "::int"],
  ["subscripts", "SELECT a", "[1]"],
  ["IS NULL", "SELECT a", " IS NULL"],
  ["zones", "SELECT a", " AT TIME ZONE 'UTC'"],
  ["JSON paths", "SELECT a", "->'b'"],
])("parseStatements refuses a chain of 10,000 %s, but accepts one of 5,000", (_, head, link) => {
  expect(errorOf(head + link.repeat(DEEP)).code).toBe("INVALID_SQL");
  expect(parseStatements(head + link.repeat(5000)).length).toBe(1);
});

test("parseStatements refuses a chain of 5,000 alternating operations, but accepts one of 900", () => {
  const turns = " UNION ALL SELECT 1 EXCEPT SELECT 1";
  expect(errorOf(`SELECT 1${turns.repeat(2500)}`).code).toBe("INVALID_SQL");
  expect(parseStatements(`SELECT 1${turns.repeat(450)}`).length).toBe(1);
});

test.each(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL"])(
  "parseStatements builds a shallow tree from 5,000 queries joined by %s, in order",
  (word) => {
    const queries = Array.from({ length: 5000 }, (_, index) => `SELECT ${index}`);
    const text = `${queries.join(` ${word} `)} LIMIT 7`;
    const [statement] = parseStatements(text);
    if (statement === undefined) throw new Error("there is a statement");
    expect(statement).toMatchObject({ _location: { start: 0, end: text.length } });
    expect(statementToSql(statement).replaceAll(/[()]/g, "")).toBe(text);
    let depth = 0;
    let node: unknown = statement;
    while (typeof node === "object" && node !== null && "left" in node) {
      depth += 1;
      node = node.left;
    }
    expect(depth).toBeLessThan(20);
  },
);

test("parseStatements associates a chain of several set operations to the left", () => {
  const [statement] = parseStatements(
    `SELECT 0${" UNION ALL SELECT 1".repeat(40)} EXCEPT SELECT 2 UNION SELECT 3 INTERSECT SELECT 4`,
  );
  expect(statement).toMatchObject({
    type: "union",
    left: { type: "except", left: { type: "union all" }, right: { type: "select" } },
    right: { type: "intersect" },
  });
});

test("parseStatements adds up chains inside parentheses", () => {
  const chain = (inner: string): string => `(${inner}${" + 1".repeat(2400)})`;
  expect(parseStatements(`SELECT ${chain(chain("1"))}`).length).toBe(1);
  expect(errorOf(`SELECT ${chain(chain(chain("1")))}`).code).toBe("INVALID_SQL");
  // The depths of adjacent constructs are not added together, so they do not reach the limit.
  const list = Array.from({ length: 20 }, () => `f(${chain("1")})`).join(", ");
  expect(parseStatements(`SELECT ${list}`).length).toBe(1);
});

test("parseStatements builds a shallow tree from 10,000 conditions joined by OR, in order", () => {
  const conditions = Array.from({ length: DEEP }, (_, index) => `a = ${index}`);
  const [statement] = parseStatements(`SELECT 1 WHERE ${conditions.join(" OR ")}`);
  const where = statement?.type === "select" ? statement.where : undefined;
  if (where === undefined) throw new Error("there is a WHERE");
  expect(expressionToSql(where).replaceAll(/[()]/g, "").split(" OR ")).toEqual(conditions);
  let depth = 0;
  for (let node = where; node.type === "binary" && node.op === "OR"; node = node.left) depth += 1;
  expect(depth).toBeLessThan(20);
});

test("parseStatements accepts nesting up to the limit", () => {
  expect(parseStatements(`SELECT ${"(".repeat(128)}1${")".repeat(128)}`).length).toBe(1);
  const error = errorOf(`SELECT ${"(".repeat(129)}1${")".repeat(129)}`);
  expect(error.message).toContain("nested more than 128 levels deep");
  expect(error.position).toBe("SELECT ".length + 128);
});

test("parseStatements measures the size of a text in bytes", () => {
  const limits = { ...PARSE_LIMITS, sqlBytesMax: 20 };
  expect(parseStatements("SELECT '€€€'  ", limits).length).toBe(1);
  const error = errorOf("SELECT '€€€€'", limits);
  expect(error.code).toBe("INVALID_SQL");
  expect(error.message).toContain("21 bytes");
});

test("parseStatements accepts texts of a mebibyte", () => {
  const string = "x".repeat(1024 * 1024 - 20);
  expect(parseStatements(`SELECT '${string}'`).length).toBe(1);
  const list = Array.from({ length: 150_000 }, (_, index) => index % 1000).join(",");
  expect(parseStatements(`SELECT a IN (${list})`).length).toBe(1);
});

test("parseRequest counts parameters and refuses those beyond the limit", () => {
  expect(parseRequest("SELECT $2; SELECT $7 LIMIT $1").parameterCount).toBe(7);
  expect(parseRequest("SELECT 1").parameterCount).toBe(0);
  for (const text of ["SELECT $0", "SELECT $32768", "SELECT $99999999999999999999"]) {
    const error = errorOf(text);
    expect(error.code).toBe("INVALID_PARAMETER");
    expect(error.position).toBe(7);
  }
});

/**
 * Returns a statement with random damage: parts of the text are cut, duplicated, swapped or
 * replaced.
 */
function mutate(random: SeededRandom, text: string): string {
  const pieces = text.split(/(?<=\s)|(?=[(),;'".])/);
  for (let count = random.between(1, 3); count > 0; count--) {
    const at = random.below(pieces.length);
    const piece = pieces[at] ?? "";
    switch (random.below(6)) {
      case 0:
        pieces.splice(at, 1);
        break;
      case 1:
        pieces.splice(at, 0, piece);
        break;
      case 2:
        pieces[at] = random.pick(pieces);
        break;
      case 3:
        pieces[at] = random.pick([
          "(",
          ")",
          "'",
          '"',
          "$$",
          "--",
          "/*",
          ";",
          "::",
          "[",
          "NOT ",
          "$1",
          "\\",
          "é",
        ]);
        break;
      case 4:
        pieces[at] = piece.slice(random.below(piece.length + 1));
        break;
      default:
        pieces.length = at;
    }
    if (pieces.length === 0) return "";
  }
  return pieces.join("");
}

const STATEMENTS = amountOf({ usual: 400, thorough: 4000 });

test("parseStatements either throws a DatabaseError for a broken statement, or parses and prints it", () => {
  const random = new SeededRandom(31);
  const generator = new StatementGenerator(random, "tidemark");
  let failed = 0;
  for (let count = 0; count < STATEMENTS; count++) {
    const text = mutate(random, generator.statement());
    try {
      for (const statement of parseStatements(text)) statementToSql(statement);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw new Error(`fails on ${text}`, { cause: error });
      failed += 1;
      const { position } = error;
      expect(position === undefined || (position >= 0 && position <= text.length)).toBe(true);
    }
    const normalized = normalizeStatement(text);
    if (normalized === undefined) continue;
    try {
      parseNormalized(text, normalized);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw new Error(`fails on ${text}`, { cause: error });
    }
  }
  expect(failed).toBeGreaterThan(STATEMENTS / 4);
});

test("parseStatements withstands random characters", () => {
  const random = new SeededRandom(32);
  const alphabet = Array.from("SELECT abc 123 '\"$()[],;.:+-*/<>=~!@#%^&|?\\\n\u00e9\u{1f600}\0");
  for (let count = 0; count < amountOf({ usual: 1000, thorough: 4000 }); count++) {
    const text = Array.from({ length: random.below(40) }, () => random.pick(alphabet)).join("");
    try {
      parseStatements(text);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw new Error(`fails on ${text}`, { cause: error });
    }
    normalizeStatement(text);
  }
});
