/** Verifies how long the judge excuses differences after an omitted statement. */
import { expect, test } from "bun:test";
import { Judge, type Verdict } from "./judge.ts";
import type { LeftObjects } from "./omitted_objects.ts";
import type { Played } from "./played.ts";

const DONE: Played = { kind: "rows", rows: [] };
const OMITTED: Played = { kind: "failure", code: "not_implemented", message: "" };

function left(...names: readonly string[]): LeftObjects {
  return { names: new Set(names), casts: [], operators: new Set() };
}

/** Returns the verdict on a table that has different rows on the two sides. */
function verdictOn(judge: Judge, table: string): Verdict {
  const [ours, theirs] = ["1", "2"].map((cell): Played => ({ kind: "rows", rows: [[cell]] }));
  return judge.judge(`SELECT a FROM ${table}`, ours ?? DONE, theirs ?? DONE);
}

test("a difference in a table that a later script creates itself is not excused", () => {
  const judge = new Judge();
  judge.judge("ALTER TABLE t ADD EXCLUDE USING gist (a WITH &&)", OMITTED, DONE);
  expect(verdictOn(judge, "t")).toBe("omitted");
  judge.endScript(left("t"));
  expect(verdictOn(judge, "t")).toBe("omitted");
  judge.judge("DROP TABLE t", DONE, DONE);
  judge.judge("CREATE TABLE t (a INT)", DONE, DONE);
  expect(verdictOn(judge, "t")).toBe("wrong");
});

test("the end of a script forgets what exists on neither side", () => {
  const judge = new Judge();
  judge.judge("CREATE TABLE gone (a POINT UNIQUE)", OMITTED, DONE);
  judge.judge("CREATE VIEW kept AS SELECT 1", OMITTED, DONE);
  judge.judge("CREATE CAST (int AS date) WITH FUNCTION f", OMITTED, DONE);
  judge.judge("CREATE OPERATOR === (FUNCTION = f)", OMITTED, DONE);
  judge.omitSetting("SET enable_x = off");
  const define = "CREATE FUNCTION g(int) RETURNS date AS 'SELECT 1'";
  const ask = "SELECT 1 === 2";
  const refused: Played = { kind: "failure", code: "INVALID_SQL", message: "" };
  expect(judge.judge(ask, refused, DONE)).toBe("omitted");
  judge.endScript({ ...left("kept"), casts: [["integer", "date"]] });
  expect(verdictOn(judge, "gone")).toBe("wrong");
  expect(verdictOn(judge, "kept")).toBe("omitted");
  expect(verdictOn(judge, "enable_x")).toBe("wrong");
  expect(judge.judge(ask, refused, DONE)).toBe("refused");
  expect(judge.judge(define, refused, DONE)).toBe("refused");
});

test("an index that is not unique changes no rows", () => {
  const judge = new Judge();
  judge.judge("CREATE INDEX i ON t USING gist (p)", OMITTED, DONE);
  expect(verdictOn(judge, "t")).toBe("wrong");
  judge.judge("CREATE UNIQUE INDEX i ON t (a) NULLS NOT DISTINCT", OMITTED, DONE);
  expect(verdictOn(judge, "t")).toBe("omitted");
});

test("a table created anew is outdated again after a rollback", () => {
  const judge = new Judge();
  judge.judge("INSERT INTO t VALUES (1)", OMITTED, DONE);
  judge.judge("BEGIN", DONE, DONE);
  judge.judge("CREATE TABLE t (a INT)", DONE, DONE);
  expect(verdictOn(judge, "t")).toBe("wrong");
  judge.judge("ROLLBACK", DONE, DONE);
  expect(verdictOn(judge, "t")).toBe("omitted");
});

test("a table is outdated again once the temporary table before it has been dropped", () => {
  const judge = new Judge();
  judge.judge("INSERT INTO t VALUES (1)", OMITTED, DONE);
  judge.judge("CREATE TEMP TABLE t (a INT)", DONE, DONE);
  expect(verdictOn(judge, "t")).toBe("wrong");
  judge.endScript(left("t"));
  expect(verdictOn(judge, "t")).toBe("omitted");
});

test("a table created from an outdated one, or only if it does not exist, stays outdated", () => {
  const judge = new Judge();
  judge.judge("INSERT INTO t VALUES (1)", OMITTED, DONE);
  judge.judge("CREATE TABLE IF NOT EXISTS t (a INT)", DONE, DONE);
  judge.judge("CREATE TABLE u AS SELECT a FROM t", DONE, DONE);
  expect(verdictOn(judge, "t")).toBe("omitted");
  expect(verdictOn(judge, "u")).toBe("omitted");
});

test("a view over an outdated table is outdated until both are created anew", () => {
  const judge = new Judge();
  judge.judge("CREATE MATERIALIZED VIEW v AS SELECT a FROM t", DONE, DONE);
  expect(verdictOn(judge, "v")).toBe("wrong");
  judge.judge("ALTER TABLE t SET SCHEMA s", OMITTED, DONE);
  expect(verdictOn(judge, "v")).toBe("omitted");
  judge.judge("CREATE TABLE t (a INT)", DONE, DONE);
  expect(verdictOn(judge, "v")).toBe("wrong");
});

test("a new function leaves its omitted overloads missing", () => {
  const judge = new Judge();
  judge.judge("CREATE FUNCTION f(point) RETURNS INT AS 'SELECT 1'", OMITTED, DONE);
  judge.judge("CREATE FUNCTION f(int) RETURNS INT AS 'SELECT 1'", DONE, DONE);
  judge.judge("CREATE TYPE f AS ENUM ('a')", DONE, DONE);
  expect(verdictOn(judge, "f(1)")).toBe("omitted");
});
