/**
 * Verifies that differences are recognised by their cause, and that the documentation lists each
 * cause.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Judge } from "./judge.ts";
import { causeOf, LISTED_DIFFERENCES } from "./listed_differences.ts";
import type { Played } from "./played.ts";

const PAGE = join(import.meta.dir, "../../../docs/internals/differences.md");

function rows(...cells: readonly string[]): Played {
  return { kind: "rows", rows: cells.map((cell) => [cell]) };
}

function failure(code: string, message = ""): Played {
  return { kind: "failure", code, message };
}

test("docs/internals/differences.md lists exactly the causes that the player knows", () => {
  const listed = [...readFileSync(PAGE, "utf8").matchAll(/^\| ([^|]+) \|/gm)].map(([, c]) => c);
  const causes = new Set(LISTED_DIFFERENCES.map(({ cause }) => cause));
  expect(listed.slice(1)).toEqual([...causes]);
});

test("a name of a side is a listed difference, and any other value is wrong", () => {
  const sql = "SELECT current_schema";
  const theirs = rows("public");
  expect(causeOf({ sql, ours: rows("default"), theirs })).toContain("default namespace");
  expect(causeOf({ sql, ours: rows("other"), theirs })).toBeUndefined();
  expect(new Judge().judge(sql, rows("other"), theirs)).toBe("wrong");
});

test("only the actions of foreign keys explain rows that are missing from trigtest2", () => {
  const judge = new Judge();
  expect(judge.judge("select * from trigtest2", rows(), rows("1"))).toBe("listed");
  expect(judge.judge("select * from trigtest2", rows("2"), rows("1"))).toBe("wrong");
  expect(judge.judge("select * from trigtest", rows(), rows("1"))).toBe("wrong");
});

test("a materialized view among the tables is listed, and a missing table is wrong", () => {
  const sql = "SELECT table_type FROM information_schema.tables";
  const ours = rows("BASE TABLE", "MATERIALIZED VIEW");
  expect(new Judge().judge(sql, ours, rows("BASE TABLE"))).toBe("listed");
  expect(new Judge().judge(sql, ours, rows("VIEW"))).toBe("wrong");
});

test("a change to a view that was omitted may have changed its table", () => {
  const judge = new Judge();
  expect(judge.judge("CREATE VIEW v AS SELECT a FROM t", rows(), rows())).toBe("alike");
  expect(judge.judge("SELECT a FROM t", rows("1"), rows("2"))).toBe("wrong");
  const refused = failure("not_implemented");
  expect(judge.judge("INSERT INTO v VALUES (1)", refused, rows())).toBe("omitted");
  expect(judge.judge("SELECT a FROM t", rows("1"), rows("2"))).toBe("omitted");
});

test("a function that may use an omitted cast is omitted, and so are its calls", () => {
  const judge = new Judge();
  const refused = failure("not_implemented");
  judge.judge("create cast (integer as date) with function f(integer)", refused, rows());
  const define = "create function caller(integer) returns date as $$begin return $1; end$$";
  judge.judge(define, rows(), rows());
  expect(judge.judge("select caller(20150717)", failure("type"), rows("2015-07-17"))).toBe(
    "omitted",
  );
  expect(judge.judge("select other(1)", failure("type"), rows("1"))).toBe("refused");
});

test("a change after WITH that only one side accepts may have changed its table", () => {
  const judge = new Judge();
  const sql = "WITH RECURSIVE c AS (SELECT 1) MERGE INTO m USING (SELECT 1) o ON true";
  judge.judge(sql, rows(), failure("0A000"));
  expect(judge.judge("SELECT * FROM m", rows("1"), rows("2"))).toBe("omitted");
});

test("a change after WITH returns no rows without RETURNING", () => {
  const sql = "WITH w AS (SELECT 1) INSERT INTO t SELECT * FROM w";
  expect(new Judge().judge(sql, rows(), rows(""))).toBe("alike");
  expect(new Judge().judge(`${sql} RETURNING a`, rows(), rows(""))).toBe("wrong");
});

test("a failure of COMMIT is omitted only after an omitted change of its transaction", () => {
  const judge = new Judge();
  judge.judge("BEGIN", rows(), rows());
  judge.judge("UPDATE t SET a = 1", failure("not_implemented"), rows());
  expect(judge.judge("COMMIT", rows(), failure("23503"))).toBe("omitted");
  judge.judge("BEGIN", rows(), rows());
  expect(judge.judge("COMMIT", rows(), failure("23503"))).toBe("accepted");
});

test("an object that only an omitted statement would have dropped is omitted as a user", () => {
  const judge = new Judge();
  judge.judge("ALTER TABLE p ATTACH PARTITION t DEFAULT", failure("not_implemented"), rows());
  const used = failure("dependent_objects", "Cannot drop function f(): it is used by g on t");
  expect(judge.judge("DROP FUNCTION f()", used, rows())).toBe("omitted");
  const other = failure("dependent_objects", "Cannot drop function h(): it is used by g on u");
  expect(judge.judge("DROP FUNCTION h()", other, rows())).toBe("refused");
});

test("format_type of a text type without a length is listed only if it is text", () => {
  const sql = "SELECT format_type('varchar'::regtype, 42)";
  const theirs = rows("character varying(38)");
  expect(new Judge().judge(sql, rows("text"), theirs)).toBe("listed");
  expect(new Judge().judge(sql, rows("integer"), theirs)).toBe("wrong");
  const other = "SELECT format_type('integer'::regtype, NULL)";
  expect(new Judge().judge(other, rows("text"), rows("integer"))).toBe("wrong");
});

test("a result is left open only if PostgreSQL gives it for another order of the rows", () => {
  const compared = { sql: "SELECT row_number() OVER (ORDER BY a), b FROM t", theirs: rows("1") };
  const cause = "the order of rows leaves the result open";
  expect(causeOf({ ...compared, ours: rows("2"), other: rows("2") })).toBe(cause);
  expect(causeOf({ ...compared, ours: rows("3"), other: rows("2") })).toBeUndefined();
  expect(causeOf({ ...compared, ours: rows("2"), other: rows("1") })).toBeUndefined();
  expect(causeOf({ ...compared, ours: rows("2") })).toBeUndefined();
});

test("FETCH may return other rows of its cursor, but neither more nor unknown ones", () => {
  const fetch = { sql: "FETCH c", declared: rows("1", "2", "2"), theirs: rows("1") };
  const cause = "a cursor without ORDER BY has its rows in any order";
  expect(causeOf({ ...fetch, ours: rows("2") })).toBe(cause);
  expect(causeOf({ ...fetch, ours: rows("2", "2"), theirs: rows("2", "1") })).toBe(cause);
  expect(causeOf({ ...fetch, ours: rows("1", "1"), theirs: rows("2", "1") })).toBeUndefined();
  expect(causeOf({ ...fetch, ours: rows("3") })).toBeUndefined();
  expect(causeOf({ ...fetch, ours: rows("2", "1") })).toBeUndefined();
  expect(causeOf({ ...fetch, ours: rows("2"), declared: undefined })).toBeUndefined();
});

test("FETCH may return all rows of the declaration, although later changes are different", () => {
  const fetch = { sql: "FETCH ALL c", declared: rows("1"), theirs: rows("2") };
  expect(causeOf({ ...fetch, ours: rows("1") })).toBe(
    "a cursor runs its query when it is declared",
  );
  expect(causeOf({ ...fetch, ours: rows("3") })).toBeUndefined();
});

test("a row as a JSON object is listed only if it has the values of the row", () => {
  const sql = "INSERT INTO t VALUES (1) RETURNING t";
  const theirs = rows('(1,"x ""y""",)');
  const ours = (text: string): Played => rows(`{"a":1,"b":${text},"c":null}`);
  expect(causeOf({ sql, ours: ours('"x \\"y\\""'), theirs })).toBe(
    "a row is sent as a JSON object",
  );
  expect(causeOf({ sql, ours: ours('"x y"'), theirs })).toBeUndefined();
});

test("only blanks at the end make a value of CHAR(n) listed", () => {
  const sql = "SELECT c FROM t";
  const judge = new Judge();
  expect(judge.judge(sql, rows("x"), rows("x   "))).toBe("listed");
  expect(judge.judge(sql, rows("x"), rows(" x"))).toBe("wrong");
  expect(judge.judge(sql, rows('{1,"2 b",NULL}'), rows('{"1   ","2 b ",NULL}'))).toBe("listed");
  expect(judge.judge(sql, rows("{1,2}"), rows('{"1 ","3 "}'))).toBe("wrong");
});

test("a sum of REAL is listed only if it has the digits of a REAL", () => {
  const sql = "SELECT sum(b) FROM t";
  const judge = new Judge();
  expect(judge.judge(sql, rows("431.77260909229517"), rows("431.7726"))).toBe("listed");
  expect(judge.judge(sql, rows("431.7746"), rows("431.7726"))).toBe("wrong");
  expect(judge.judge("SELECT b FROM t", rows("0.1"), rows("0.10000001"))).toBe("wrong");
});

test("only the view of lengths has FLOAT columns, whose digits may differ from those of a DOUBLE", () => {
  const judge = new Judge();
  const sql = "select size_in_cm from rtest_vcomp";
  expect(judge.judge(sql, rows("17.779999"), rows("17.78"))).toBe("listed");
  expect(judge.judge(sql, rows("17.79"), rows("17.78"))).toBe("wrong");
});

test("the tables that an omitted function would change are omitted afterwards", () => {
  const judge = new Judge();
  const made = "CREATE PROCEDURE p(x int) LANGUAGE SQL AS $$ INSERT INTO filled VALUES (x) $$";
  expect(judge.judge("SELECT * FROM filled", rows(), rows("1"))).toBe("wrong");
  expect(judge.judge(made, failure("not_implemented"), rows())).toBe("omitted");
  expect(judge.judge("SELECT * FROM filled", rows(), rows("1"))).toBe("omitted");
});

test("a trigger for UPDATE changes its table, and no statement with the word ON", () => {
  const judge = new Judge();
  const made = "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()";
  judge.judge(made, failure("not_implemented"), rows());
  expect(judge.judge("SELECT * FROM t", rows("1"), rows("2"))).toBe("omitted");
  expect(judge.judge("SELECT 1 FROM a JOIN b ON a.x = b.x", rows("1"), rows("2"))).toBe("wrong");
});

test("a list of the catalog is omitted if its pattern matches an omitted object", () => {
  const judge = new Judge();
  judge.judge("CREATE VIEW ro_view1 AS SELECT ctid FROM t", failure("not_implemented"), rows());
  const list = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE ";
  expect(judge.judge(`${list}E'r_\\\\_view%'`, rows(), rows("ro_view1"))).toBe("omitted");
  expect(judge.judge(`${list}'other%'`, rows(), rows("other1"))).toBe("wrong");
});

test("a statement that only one side refuses is refused or accepted", () => {
  const judge = new Judge();
  expect(judge.judge("SELECT f(1)", failure("INVALID_SQL"), rows("1"))).toBe("refused");
  expect(judge.judge("SELECT f(1)", rows("1"), failure("42883"))).toBe("accepted");
  expect(judge.judge("SELECT f(1)", failure("INVALID_SQL"), failure("42883"))).toBe("alike");
});
