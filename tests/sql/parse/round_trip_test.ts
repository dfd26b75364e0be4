/** Verifies that a printed tree parses to the same tree, and that secrets are never printed. */
import { expect, test } from "bun:test";
import { parseExpression, parseStatements } from "../../../src/sql/parse/parser.ts";
import { expressionToSql, statementToSql } from "../../../src/sql/parse/print/print.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { amountOf } from "../../support/thoroughness.ts";
import { bare, masked } from "./bare.ts";
import { StatementGenerator } from "./statement_generator.ts";

function printed(text: string): string {
  return parseStatements(text).map(statementToSql).join("; ");
}

const STATEMENTS = amountOf({ usual: 300, thorough: 3000 });

test("statementToSql prints generated statements so that they parse back to their tree", () => {
  const generator = new StatementGenerator(new SeededRandom(21), "tidemark");
  for (let count = 0; count < STATEMENTS; count++) {
    const text = generator.statement();
    expect([text, bare(parseStatements(printed(text)))]).toEqual([
      text,
      masked(bare(parseStatements(text))),
    ]);
  }
});

test.each([
  ["a+b*c", "a + b * c"],
  ["(a+b)*c", "(a + b) * c"],
  ["a-(b-c)", "a - (b - c)"],
  ["a-b-c", "a - b - c"],
  ["not (a and b)", "NOT (a AND b)"],
  ["- -5", "5"],
  ["-(5)", "-5"],
  ["-a", "-a"],
  ["- -a", "-(-a)"],
  ["2^-3", "2 ^ -3"],
  ["(-2)^2", "-2 ^ 2"],
  ["a <> b", "a != b"],
  ["(a = b) = c", "(a = b) = c"],
  ["a in (1)", "a IN (1)"],
  ["a = any (select 1)", "a = ANY (SELECT 1)"],
  ["exists (select 1)", "EXISTS (SELECT 1)"],
  ["a::int", "CAST(a AS INT)"],
  ["time(3) with time zone '1'", "CAST('1' AS TIME(3) WITH TIME ZONE)"],
  ["interval '1' day to hour", "INTERVAL '1' DAY TO HOUR"],
  ["f(distinct a order by b) filter (where c)", "f(DISTINCT a ORDER BY b) FILTER (WHERE c)"],
  ['"Select"."From"', '"Select"."From"'],
  ['"select" + "a""b"', '"select" + "a""b"'],
  ["'it''s'", "'it''s'"],
  ["(array[1])[1]", "(ARRAY[1])[1]"],
  ["a[1:]", "a[1:]"],
  ["(f(a)).b", "(f(a)).b"],
  ['((f(a)).b).c[1]."D"', '(f(a)).b.c[1]."D"'],
  ["(f(a))[1].b", "(f(a))[1].b"],
  ["a[1].b", "a[1].b"],
  ["((t)).a + t.b", "(t).a + t.b"],
  ["row(1)", "ROW(1)"],
  ["(1, 2)", "(1, 2)"],
  ["(select 1) + 1", "(SELECT 1) + 1"],
  ["current_timestamp(3)", "CURRENT_TIMESTAMP(3)"],
  ["left(a, 1)", "left(a, 1)"],
  ["position('x' in a)", "POSITION('x' IN a)"],
  ["normalize(a, nfkd)", "normalize(a, NFKD)"],
  ['file("part")', "file('part')"],
  ["a is distinct from b", "a IS DISTINCT FROM b"],
  ["a is null is not true", "(a IS NULL) IS NOT TRUE"],
  ["(a is distinct from b) is null", "(a IS DISTINCT FROM b) IS NULL"],
  ["a = b is null", "a = b IS NULL"],
  ["a like b escape '!'", "a LIKE b ESCAPE '!'"],
  ["x'0AFF'", "X'0aff'"],
  [
    'xmlelement(name "A b", xmlattributes(a, b as c), 1, d)',
    'XMLELEMENT(NAME "A b", XMLATTRIBUTES(a, b AS c), 1, d)',
  ],
  ["xmlelement(name a)", "XMLELEMENT(NAME a)"],
  ['xmlforest(a, b + 1 as "C")', 'XMLFOREST(a, b + 1 AS "C")'],
  ["xmlpi(name p, 'x')", "XMLPI(NAME p, 'x')"],
  ["xmlparse(document a preserve whitespace)", "XMLPARSE(DOCUMENT a)"],
  ["xmlserialize(content a as varchar(3))", "XMLSERIALIZE(CONTENT a AS VARCHAR(3))"],
  ["xmlroot(a, version no value)", "XMLROOT(a, VERSION NO VALUE)"],
  [
    "xmlroot(a, version '1.1', standalone no value)",
    "XMLROOT(a, VERSION '1.1', STANDALONE NO VALUE)",
  ],
  ["xmlexists('//a' passing by ref (a = b) by value)", "XMLEXISTS('//a' PASSING (a = b))"],
  ["a is not document", "NOT (a IS DOCUMENT)"],
  ["(a is document) = b", "(a IS DOCUMENT) = b"],
])("expressionToSql, %s is printed as %s", (text, expected) => {
  const tree = parseExpression(text);
  expect(expressionToSql(tree)).toBe(expected);
  expect(bare(parseExpression(expected))).toEqual(bare(tree));
});

test("statementToSql hides passwords, credentials and secrets", () => {
  const [user, change, storage, webhook, altered] = parseStatements(
    "CREATE USER u PASSWORD 'secret1' EMAIL 'e'; ALTER USER u SET PASSWORD 'secret2';" +
      "CREATE STORAGE s TYPE s3 BUCKET 'b' CREDENTIALS '{\"key\":\"secret3\"}';" +
      "CREATE WEBHOOK IF NOT EXISTS w FROM TOPIC n.t URL 'https://h/' SECRET 'secret4' WITH (ordered = true); ALTER WEBHOOK w SET SECRET 'secret5'",
  ).map(statementToSql);
  expect(user).toBe("CREATE USER 'u' WITH PASSWORD '***' EMAIL 'e'");
  expect(change).toBe("ALTER USER 'u' SET PASSWORD '***'");
  expect(storage).toBe("CREATE STORAGE s TYPE s3 BUCKET 'b' CREDENTIALS '***'");
  expect(altered).toBe("ALTER WEBHOOK w SET SECRET '***'");
  expect(webhook).toBe(
    "CREATE WEBHOOK IF NOT EXISTS w FROM TOPIC n.t URL 'https://h/' SECRET '***' WITH (ordered = TRUE)",
  );
});

test("statementToSql restores long VALUES lists unchanged", () => {
  const rows = Array.from({ length: 40 }, (_, row) => `(${row}, 'it''s', -1.50, NULL, DEFAULT)`);
  const text = `INSERT INTO t VALUES ${rows.join(", ")}`;
  const [statement] = parseStatements(text);
  expect(statement?.type === "insert" && statement.insert.type).toBe("literal values");
  expect(printed(text)).toBe(text);
});
