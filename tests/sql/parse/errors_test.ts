/**
 * Verifies that the error for SQL that cannot run gives the reason, the position, and what was
 * probably meant.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import { parseExpression, parseStatements } from "../../../src/sql/parse/parser.ts";

function errorOf(parse: () => unknown): DatabaseError {
  try {
    parse();
  } catch (error) {
    if (error instanceof DatabaseError) return error;
    throw error;
  }
  throw new Error("the text parses");
}

test.each(["0x", "0b", "0o"])("a number of a million digits after %s is refused", (radix) => {
  const text = `SELECT ${radix}${"1".repeat(1_000_000)}`;
  const error = errorOf(() => parseStatements(text));
  expect(error.code).toBe("INVALID_SQL");
  expect(error.position).toBe(7);
  expect(error.message).toContain("the number is too large: it has 1000000 digits");
});

test.each([
  ["SELEC 1", 0, "SELECT"],
  ["SELECT id FORM t", 10, "FROM"],
  ["SELECT * FROM t WERE a = 1", 16, "WHERE"],
  ["SELECT * FROM t WHERE a = 1 ADN b = 2", 28, "AND"],
  ["SELECT a FROM t GRUOP BY a", 16, "GROUP"],
  ["SELECT a FROM t ODER BY a", 16, "ORDER"],
  ["SELECT a FROM t ORDER BY a LMIT 3", 27, "LIMIT"],
  ["DELETE FORM t", 7, "FROM"],
  ["UPDATE t ST a = 1", 9, "SET"],
  ["INSERT INTO t VALEUS (1)", 14, "VALUES"],
  ["INSET INTO t VALUES (1)", 0, "INSERT"],
  ["CREATE TABEL t (a INT)", 7, "TABLE"],
  ["CREATE NAMSPACE n", 7, "NAMESPACE"],
  ["ALTER TABLE t AD COLUMN a INT", 14, "ADD"],
  ["CREATE TABLE t (a INT PRIMRY KEY)", 22, "PRIMARY"],
  ["SELECT CASE WHEN a TEHN 1 END", 19, "THEN"],
  ["SELECT a FROM t LEFT JION u ON b", 21, "JOIN"],
])("parseStatements, %s: a hint at %d to write %s", (text, position, meant) => {
  const error = errorOf(() => parseStatements(text));
  expect(error.code).toBe("INVALID_SQL");
  expect(error.position).toBe(position);
  expect(error.hint).toBe(`did you mean ${meant}?`);
  expect(error.statementIndex).toBe(0);
});

test.each([
  ["SELECT ,", 7, 'found ",", expected an expression'],
  ["SELECT (1", 9, 'found the end of the SQL, expected ")" or ","'],
  ["SELECT a,, b", 9, 'found ",", expected an expression'],
  ["SELECT 1 2", 9, 'found "2", expected the end of the statement, AS, ",", INTO, FROM, WHERE …'],
  ["INSERT t", 7, 'found "t", expected INTO'],
  ["DROP TABLE 5", 11, 'found "5", expected a table'],
  ["SELECT a FROM select", 14, "found the reserved word select, expected a table"],
  ["CREATE USER u ROLE x", 20, "found the end of the SQL, expected PASSWORD, OAUTH or INTERNAL"],
  ["CREATE USER u PASSWORD 'geheim' 'geheim'", 32, "found a string, expected the end"],
  [
    "CREATE USER u PASSWORD 'a' INTERNAL",
    27,
    "found a second way to log in, but only one is allowed",
  ],
  ["SELECT a < b < c", 13, "comparisons cannot be chained"],
  ["SELECT a LIKE b LIKE c", 16, "BETWEEN, IN and LIKE cannot be chained"],
  ["SELECT a = ANY (1, 2)", 11, "ANY accepts a single query or array, not a list"],
  [
    "SELECT 1 LIMIT 1 LIMIT 2",
    17,
    "found a second LIMIT, but the number of rows can be limited only once",
  ],
  ["(SELECT 1 ORDER BY 1) ORDER BY 1", 22, "the query has two ORDER BY clauses"],
  ["UPDATE t SET (a, b) = (1, 2, 3)", 22, "found 3 values for 2 columns, but the two numbers"],
  ["BEGIN READ ONLY, READ WRITE", 17, "found a second READ mode"],
  ["CREATE TABLE t (a INT) WITH (x = 1 + 1)", 33, "found an expression, but a plain value"],
  ["FROB", 0, 'found "FROB", expected a statement'],
])("parseStatements, %s fails at %d", (text, position, message) => {
  const error = errorOf(() => parseStatements(text));
  expect(error.code).toBe("INVALID_SQL");
  expect(error.message).toStartWith("Cannot parse the statement: ");
  expect(error.message).toContain(message);
  expect(error.position).toBe(position);
  expect(error.message).not.toContain("geheim");
});

test("parseStatements counts the statements before an error", () => {
  const error = errorOf(() => parseStatements("SELECT 1;; SELECT 2; SELEC 3"));
  expect(error.statementIndex).toBe(2);
  expect(error.position).toBe(21);
  expect(error.message).toStartWith("Cannot parse the statement: ");
});

test.each(["", "  ", ";;", "-- none", "/* none */ ;"])(
  "parseStatements refuses %j with EMPTY_SQL",
  (text) => {
    expect(errorOf(() => parseStatements(text)).code).toBe("EMPTY_SQL");
  },
);

test.each([
  ["EXECUTE AS USER 'u' (SELECT 1; SELECT 2)", 29],
  ["EXECUTE AS USER 'u' ()", 21],
  ["EXECUTE AS USER 'u' SELECT 1", 20],
  ["EXECUTE AS USER (SELECT 1)", 16],
  ["EXECUTE AS USER 'u' (SELECT 1", 29],
  ["EXECUTE AS USER 'u' (SELECT 1) LIMIT 1", 31],
  ["EXECUTE AS USER 'u' (EXECUTE AS USER 'v' (SELECT 1))", 21],
])("parseStatements, %s is INVALID_INPUT at %d", (text, position) => {
  const error = errorOf(() => parseStatements(text));
  expect(error.code).toBe("INVALID_INPUT");
  expect(error.position).toBe(position);
  expect(error.statementIndex).toBe(0);
});

test("parseStatements reports a fault inside EXECUTE AS as that of the inner statement", () => {
  const error = errorOf(() => parseStatements("EXECUTE AS USER 'u' (SELECT 1 FORM t)"));
  expect(error.code).toBe("INVALID_SQL");
  expect(error.hint).toBe("did you mean FROM?");
});

test.each([
  ["CREATE INDEX i ON t USING gist (a)", "USING gist", "USING gin"],
  ["CREATE TABLE t (a INT UNIQUE INITIALLY DEFERRED)", "INITIALLY DEFERRED of a key", "remove it"],
  ["CREATE TABLE t (a INT REFERENCES u MATCH PARTIAL)", "MATCH PARTIAL", "MATCH FULL"],
  ["CREATE TABLE t (a INT REFERENCES u ON DELETE SET NULL (a))", "SET NULL", "remove the list"],
  ["CREATE TABLE t (a INT) AS SELECT 1", "definitions before AS", "names"],
  ["CREATE TABLE t LIKE u", "LIKE", "(LIKE other_table INCLUDING ALL)"],
  ["CREATE TABLE t (a INT) INHERITS (u)", "INHERITS", ""],
  ["CREATE TABLE t (a INT) USING heap", "USING", ""],
  ["CREATE TEMP INDEX i ON t (a)", "TEMP with objects other than tables, views and", ""],
  ["CREATE TEMP TABLE t (a INT) ON COMMIT PRESERVE ROWS", "PRESERVE ROWS", "session"],
  ["CREATE TABLE t (a INT GENERATED ALWAYS AS (b + 1) VIRTUAL)", "VIRTUAL", "STORED"],
  ["CREATE TABLE t (a INT, EXCLUDE (a WITH =))", "EXCLUDE with the index method btree", "gist"],
  ["CREATE TABLE t (a INT, EXCLUDE USING gist (a WITH <>))", "EXCLUDE with the operator", "&&"],
  ["GRANT SELECT ON t TO u", "GRANT", "roles"],
  ["REVOKE SELECT ON t FROM u", "REVOKE", "roles"],
  ["SELECT NEXT VALUE FOR s", "NEXT VALUE FOR", "nextval"],
  ["PREPARE p AS DROP TABLE t", "PREPARE of DROP TABLE", "only queries, INSERT, UPDATE"],
  ["EXECUTE p (now())", "an expression as an argument of EXECUTE", "constant"],
  ["DECLARE c BINARY CURSOR FOR SELECT 1", "BINARY", ""],
  ["LISTEN x", "LISTEN", "live queries"],
  ["NOTIFY x", "NOTIFY", "STREAM"],
  [
    "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1",
    "CREATE OR REPLACE MATERIALIZED VIEW",
    "DROP",
  ],
  ["SELECT (SELECT a FROM t FOR UPDATE)", "FOR UPDATE", "outermost"],
  ["CREATE VIEW v AS SELECT a FROM t FOR SHARE", "FOR SHARE", "outermost"],
  ["INSERT INTO t SELECT a FROM u FOR NO KEY UPDATE", "FOR NO KEY UPDATE", "outermost"],
  ["EXPLAIN SELECT a FROM t FOR KEY SHARE", "EXPLAIN of a locking SELECT", "without"],
  ["BEGIN ISOLATION LEVEL SERIALIZABLE", "SERIALIZABLE", "snapshot"],
  [
    "COPY (WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a) TO STDOUT",
    "COPY of a change",
    "",
  ],
  ["COPY (INSERT INTO t VALUES (1) RETURNING a) TO STDOUT", "COPY of a change", "RETURNING"],
  [
    "EXPLAIN EXECUTE AS USER 'u' (DROP TABLE t)",
    "EXPLAIN with this statement",
    "only queries and changes to rows can be explained",
  ],
  [
    "EXPLAIN EXECUTE AS u (COPY t FROM STDIN)",
    "EXPLAIN with this statement",
    "only queries and changes to rows can be explained",
  ],
  ["EXPLAIN SELECT 1 INTO t FROM u", "EXPLAIN of SELECT INTO", "without INTO"],
  ["SELECT a FROM t QUALIFY rank() OVER () = 1", "QUALIFY", "outer query"],
  [
    "MERGE INTO t USING u ON a WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "WHEN NOT MATCHED BY",
    "separate statement",
  ],
  ["COMMENT ON ROLE f IS 'x'", "COMMENT ON ROLE", "tables"],
  ["ALTER TABLE t SET SCHEMA n", "SET SCHEMA", ""],
  ["VACUUM", "VACUUM", "STORAGE COMPACT"],
  ["SELECT a SIMILAR TO ANY (ARRAY['x'])", "SIMILAR TO with ANY", ""],
])("parseStatements, %s is not available", (text, construct, hint) => {
  const error = errorOf(() => parseStatements(`SELECT 1; ${text}`));
  expect(error.code).toBe("UNSUPPORTED_FEATURE");
  expect(error.message).toContain(construct);
  expect(error.hint ?? "").toContain(hint);
  expect(error.statementIndex).toBe(1);
  expect(error.position).toBeGreaterThanOrEqual(10);
});

test("parseExpression accepts one complete expression", () => {
  const error = errorOf(() => parseExpression("1 + 1, 2"));
  expect(error.code).toBe("INVALID_SQL");
  expect(error.position).toBe(5);
});
