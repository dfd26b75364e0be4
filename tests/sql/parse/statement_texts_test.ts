/**
 * Verifies how the parser keeps the text of statements: their parts, their positions, and long
 * lists of values in a compact form.
 */
import { expect, test } from "bun:test";
import { parseRequest, parseStatements } from "../../../src/sql/parse/parser.ts";
import { literalPosition, literalText } from "../../../src/sql/parse/text/literal_list.ts";
import { literalValuesToRows } from "../../../src/sql/parse/text/literal_nodes.ts";
import { bare } from "./bare.ts";

test("parseStatements splits at semicolons and skips empty statements", () => {
  const text = ";; SELECT 1;\nSELECT 'a;b' /* ; */ -- ;\n ;; ";
  const ranges = parseStatements(text).map(({ _location }) =>
    text.slice(_location.start, _location.end),
  );
  expect(ranges).toEqual(["SELECT 1", "SELECT 'a;b'"]);
});

test("parseStatements keeps the texts that the catalog stores", () => {
  const [create, view, subscribe, subscribeTable] = parseStatements(
    "CREATE TABLE t (a INT DEFAULT (1 + 2) CHECK ( a > 0 )); CREATE VIEW v AS SELECT 1 ;" +
      "SUBSCRIBE TO SELECT a FROM t OPTIONS (from = 1); SUBSCRIBE TO n.t WHERE a;",
  );
  const constraints = create?.type === "create table" ? create.columns[0]?.constraints : [];
  expect(constraints?.map((one_) => ("source" in one_ ? one_.source : ""))).toEqual([
    "(1 + 2)",
    "a > 0",
  ]);
  expect(view?.type === "create view" && view.source).toBe("SELECT 1");
  expect(subscribe?.type === "subscribe" && subscribe.source).toBe("SELECT a FROM t");
  expect(subscribeTable?.type === "subscribe" && subscribeTable.source).toBe(
    "SELECT * FROM n.t WHERE a",
  );
});

test("parseStatements records the position of every node", () => {
  const text = "SELECT a.b, (1 + x) * 2 FROM n.t AS k WHERE f(y) = 'z'";
  const [node] = parseStatements(text);
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("_location" in value) {
      const { start, end } = value._location as { start: number; end: number };
      found.push(text.slice(start, end));
    } else if ("name" in value || "type" in value) {
      found.push("a node without place");
    }
    for (const [key, inner] of Object.entries(value)) if (key !== "_location") visit(inner);
  };
  visit(node);
  expect(found).not.toContain("a node without place");
  for (const part of ["a.b", "(1 + x) * 2", "1 + x", "n.t AS k", "f(y) = 'z'", "f(y)", "'z'"]) {
    expect(found).toContain(part);
  }
});

test("parseStatements turns long VALUES lists into one compact node with exact cells", () => {
  const rows = Array.from({ length: 33 }, (_, row) => `(${row}, -1.50, E'a\\n')`).join(",");
  const [statement] = parseStatements(`INSERT INTO t VALUES ${rows}, (NULL, TRUE, DEFAULT)`);
  const values = statement?.type === "insert" ? statement.insert : undefined;
  expect(values?.type).toBe("literal values");
  if (values?.type !== "literal values") return;
  expect([values.rowCount, values.columnCount]).toEqual([34, 3]);
  expect([...values.kinds.slice(0, 3), ...values.kinds.slice(-3)]).toEqual([4, 5, 7, 0, 3, 1]);
  expect([3, 4, 5].map((cell) => literalText(values, cell))).toEqual(["1", "-1.50", "a\n"]);
  expect(literalPosition(values, 0)).toBe("INSERT INTO t VALUES (".length);
});

test.each([
  ["an expression among the cells", "(1 + 1, 2)", ""],
  ["a shorter row", "(1)", ""],
  ["an ORDER BY behind", "(1, 2)", " ORDER BY 1"],
])("parseStatements, VALUES with %s stays ordinary", (_, row, tail) => {
  const rows = Array.from({ length: 40 }, () => "(1, 2)").join(", ");
  const [statement] = parseStatements(`INSERT INTO t VALUES ${rows}, ${row}${tail}`);
  expect(statement?.type === "insert" && statement.insert.type).toBe("values");
});

test.each([
  ["longer than the others", "x".repeat(200), "a"],
  ["shorter than the others", "", "x".repeat(50)],
])("parseStatements keeps every cell where the first row is %s", (_, first, other) => {
  const texts = [first, ...Array.from({ length: 9000 }, (__, row) => `${other}${row}`)];
  const rows = texts.map((text, row) => `(${row}, '${text}')`);
  const [statement] = parseStatements(`INSERT INTO t VALUES ${rows.join(", ")}`);
  const values = statement?.type === "insert" ? statement.insert : undefined;
  if (values?.type !== "literal values") throw new Error("the list is compact");
  expect([values.rowCount, values.columnCount]).toEqual([9001, 2]);
  const read = texts.map((_text, row) => literalText(values, 2 * row + 1));
  expect(read).toEqual(texts);
});

test("parseRequest reads a list from the UTF-8 that the caller supplies", () => {
  const list = Array.from({ length: 40 }, (_, row) => `(${row}, 'a', '${row}')`).join(", ");
  const text = `INSERT INTO t VALUES ${list}`;
  const padded = Buffer.from(`  ${text}  `);
  const { statements } = parseRequest(text, undefined, padded.subarray(2, -2));
  expect(bare(statements)).toEqual(bare(parseRequest(text).statements));
});

test("literalValuesToRows returns the same rows as an ordinary list", () => {
  const rows = Array.from({ length: 40 }, (_, row) => `(${row}, -1.50, 'a', NULL, TRUE, DEFAULT)`);
  const [long] = parseStatements(`INSERT INTO t VALUES ${rows.join(", ")}`);
  const [short] = parseStatements(`VALUES ${rows.join(", ")}`);
  const values = long?.type === "insert" ? long.insert : undefined;
  if (values?.type !== "literal values") throw new Error("the list is compact");
  expect(bare(literalValuesToRows(values))).toEqual(bare(short));
});
