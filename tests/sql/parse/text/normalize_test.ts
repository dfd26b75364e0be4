/**
 * Verifies that statements that differ only in lifted literals share a plan cache key and a tree,
 * and that nothing that affects a plan is lifted.
 */
import { expect, test } from "bun:test";
import { parseNormalized, parseStatements } from "../../../../src/sql/parse/parser.ts";
import {
  LIFTED_LITERALS_MAX,
  normalizeStatement,
} from "../../../../src/sql/parse/text/normalize.ts";
import { SeededRandom } from "../../../support/seeded_random.ts";
import { amountOf } from "../../../support/thoroughness.ts";
import { bare, type Json, rewrite } from "../bare.ts";
import { StatementGenerator } from "../statement_generator.ts";

/** Returns the texts of the literals that normalisation lifts out of a statement. */
function lifted(text: string): readonly string[] | undefined {
  return normalizeStatement(text)?.literals.map((literal) => literal.text);
}

function keyOf(text: string): string | undefined {
  return normalizeStatement(text)?.key;
}

test("normalizeStatement returns the same key for new values", () => {
  const key = keyOf("INSERT INTO t VALUES (1, 'x', 2.50)");
  expect(key).toBeDefined();
  expect(keyOf("INSERT INTO t VALUES (77, 'it''s; longer', 9.99)")).toBe(key);
  expect(lifted("INSERT INTO t VALUES (77, 'it''s; longer', 9.99)")).toEqual([
    "77",
    "it's; longer",
    "9.99",
  ]);
});

test("normalizeStatement returns a different key for other types", () => {
  const texts = ["1", "3000000000", "1.5", "10.5", "1.50", "'1'", "NULL", "TRUE", "$1", "-1"];
  const keys = texts.map((text) => keyOf(`INSERT INTO t VALUES (${text})`));
  expect(new Set(keys).size).toBe(texts.length);
});

test("normalizeStatement returns the types of the literals as kinds", () => {
  const { literals } = normalizeStatement(
    "SELECT a WHERE x IN (2147483647, 2147483649, 9223372036854775807, 12.50, 007, 0.25)",
  ) ?? { literals: [] };
  expect(literals.map(({ kind, precision, scale }) => [kind, precision, scale])).toEqual([
    ["integer", undefined, undefined],
    ["bigint", undefined, undefined],
    ["bigint", undefined, undefined],
    ["numeric", 4, 2],
    ["integer", undefined, undefined],
    ["numeric", 2, 2],
  ]);
});

test.each([
  ["SELECT 1, 'x' FROM t WHERE a = 2", ["2"]],
  [
    "SELECT a FROM t WHERE a = 2 GROUP BY f('day', b) HAVING c > 3 ORDER BY 1, f('x') LIMIT 5",
    ["2", "5"],
  ],
  ["SELECT a FROM t LIMIT 5 OFFSET 6", ["5", "6"]],
  ["SELECT a FROM generate_series(1, 5) WHERE b = 7", ["7"]],
  ["SELECT a FROM t JOIN u ON t.a = 1 AND u.b = 'x'", ["1", "x"]],
  ["SELECT DISTINCT ON (f('day', a)) f('day', a) FROM t", []],
  ["UPDATE t SET a = 1, b = 'x' WHERE c = 2 RETURNING d + 3", ["1", "x", "2"]],
  ["DELETE FROM t WHERE a < 9.5", ["9.5"]],
  ["SELECT a WHERE b = (SELECT 5 FROM t WHERE c = 6) AND d = 7", ["6", "7"]],
  ["SELECT a WHERE b::varchar(3) = 'x' AND CAST(c AS DECIMAL(10, 2)) = 1", ["x", "1"]],
  ["SELECT a WHERE b > DATE '2025-01-01' AND c > now() - INTERVAL '1 day'", []],
  ["SELECT a WHERE b AT TIME ZONE 'UTC' > c AND d = 1", ["1"]],
  ["SELECT a WHERE EXTRACT('year' FROM b) = 2025", ["2025"]],
  ["SELECT a WHERE b LIKE 'x%' ESCAPE '!'", ["x%"]],
  ["INSERT INTO t VALUES (FILE('part'), 1)", ["1"]],
  ["INSERT INTO t VALUES (E'a\\'b', X'00', 1e3, 0xff, 1_0, .5, 2)", ["2"]],
  ["INSERT INTO t VALUES (-2147483648, 2147483648)", []],
  ["SELECT a WHERE b = 99999999999999999999", []],
  ["EXECUTE AS USER 'u' (INSERT INTO t VALUES (1))", ["1"]],
  ["WITH a AS (SELECT 1 WHERE b = 2) SELECT 3 FROM a WHERE c = 4", ["2", "4"]],
  ["VALUES (1, 'x')", ["1", "x"]],
  ['SELECT "a 1" WHERE "b\'" = \'x\'', ["x"]],
])("normalizeStatement, %s", (text, expected) => {
  expect(lifted(text)).toEqual(expected);
});

test.each([
  "CREATE TABLE t (a VARCHAR(3) DEFAULT 'x')",
  "DROP TABLE t",
  "BEGIN",
  "SET a = 1",
  "",
  " ; SELECT 1",
  "SELECT 'abc",
  "SELECT a /* x */",
  "SELECT a -- x",
  "SELECT $$x$$",
  "SELECT a WHERE b = 'x'\n'y'",
  "SELECT a WHERE b = 1)",
  "EXECUTE AS USER 'u' (SELECT 1; SELECT 2)",
  "SELECT \u0001",
  "SELECT a FROM t WHERE b = 'x\u0000'",
])("normalizeStatement, %j is left to the parser", (text) => {
  expect(normalizeStatement(text)).toBeUndefined();
});

test("normalizeStatement gives up beyond a number of literals", () => {
  const insert = (count: number): string =>
    `INSERT INTO t VALUES ${Array.from({ length: count }, (_, row) => `(${row})`).join(", ")}`;
  expect(lifted(insert(LIFTED_LITERALS_MAX))?.length).toBe(LIFTED_LITERALS_MAX);
  expect(normalizeStatement(insert(LIFTED_LITERALS_MAX + 1))).toBeUndefined();
});

test.each(["1", "'x'"])(
  "normalizeStatement returns no key for a long list of %s that cannot be lifted",
  (item) => {
    const query = (count: number) => `SELECT ARRAY[${Array(count).fill(item).join(", ")}]`;
    expect(normalizeStatement(query(100))).toBeDefined();
    expect(normalizeStatement(query(1000))).toBeUndefined();
  },
);

test("normalizeStatement reads the first statement and returns where the next one begins", () => {
  const text = " INSERT INTO t VALUES (22) ; INSERT INTO t VALUES (1)";
  const first = normalizeStatement(text);
  expect(first?.literals.map(({ start }) => start)).toEqual([text.indexOf("22")]);
  expect(text.slice(first?.start, first?.end)).toBe("INSERT INTO t VALUES (22)");
  expect(first?.next).toBe(text.indexOf(";") + 1);
  expect(normalizeStatement("SELECT 1")?.next).toBe("SELECT 1".length);
});

test("parseNormalized turns literals into slots in their places", () => {
  const text = "  UPDATE t SET a = -5 WHERE b = 'x' AND c = 2.50";
  const normalized = normalizeStatement(text);
  if (normalized === undefined) throw new Error("the statement is normalised");
  const parsed = parseNormalized(text, normalized);
  const [set] = parsed?.statement.type === "update" ? parsed.statement.sets : [];
  const value = set?.type === "set" ? set.value : undefined;
  expect(bare(value)).toEqual({
    type: "unary",
    op: "-",
    operand: { type: "literal slot", index: 0, kind: "integer" },
  });
  expect(value?._location).toEqual({ start: text.indexOf("-5"), end: text.indexOf("-5") + 2 });
});

test("parseNormalized leaves literals that the grammar itself needs", () => {
  // Only the parser recognises this number as the size of a type; the normaliser does not.
  const text = "SELECT a WHERE b::foo(3) = 1";
  const normalized = normalizeStatement(text);
  if (normalized === undefined) throw new Error("the statement is normalised");
  expect(normalized.literals.map((literal) => literal.text)).toEqual(["3", "1"]);
  expect(parseNormalized(text, normalized)).toBeUndefined();
});

const STATEMENTS = amountOf({ usual: 800, thorough: 4000 });

test("parseNormalized returns the tree of parseStatements for generated statements", () => {
  const generator = new StatementGenerator(new SeededRandom(41), "tidemark");
  let compared = 0;
  let slots = 0;
  for (let count = 0; count < STATEMENTS; count++) {
    const text = generator.statement();
    const normalized = normalizeStatement(text);
    if (normalized === undefined) continue;
    const parsed = parseNormalized(text, normalized);
    expect([text, parsed === undefined]).toEqual([text, false]);
    const filled = rewrite(bare(parsed?.statement), (node): Json => {
      if (node["type"] !== "literal slot") return node;
      const literal = normalized.literals[Number(node["index"])];
      if (literal === undefined) throw new Error("a slot has a literal");
      slots += 1;
      const { kind, text: value } = literal;
      if (kind === "string") return { type: "string", value };
      const type = kind === "numeric" ? "numeric" : "integer";
      return { type, text: value, value: Number(value) };
    });
    expect([text, filled]).toEqual([text, bare(parseStatements(text)[0])]);
    compared += 1;
  }
  expect(compared).toBeGreaterThan(STATEMENTS / 4);
  expect(slots).toBeGreaterThan(STATEMENTS / 4);
});
