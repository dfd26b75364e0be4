/**
 * Tests WHERE CURRENT OF: which row of a cursor is current, which cursors have a current row, and
 * the rights that a change at a cursor needs.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE t (a INT, b TEXT); CREATE TABLE keyed (id BIGINT, part TEXT, v INT, PRIMARY KEY (id, part));" +
      "CREATE TABLE u (a INT); CREATE VIEW shown AS SELECT a, b FROM t",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Runs statements in a transaction on fresh rows of `t`, and returns the rows afterwards. */
async function rowsAfter(...statements: readonly string[]): Promise<unknown> {
  await engine.run("DELETE FROM t; INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')");
  await engine.run(`BEGIN; ${statements.join("; ")}; COMMIT`);
  return (await engine.rows("SELECT a FROM t ORDER BY a")).flat();
}

/** Returns the message of the error with which statements on fresh rows of `t` fail. */
async function refusal(...statements: readonly string[]): Promise<string> {
  await engine.run("DELETE FROM t; INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')");
  const { error } = await engine.ask(`BEGIN; ${statements.join("; ")}; COMMIT`);
  return error?.message ?? "no error";
}

const DECLARED = "DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a";

test("DELETE and UPDATE change the row that was fetched last", async () => {
  expect(await rowsAfter(DECLARED, "FETCH 2 FROM c", "DELETE FROM t WHERE CURRENT OF c")).toEqual([
    1, 3,
  ]);
  const update = "UPDATE t SET a = a + 10 WHERE CURRENT OF c";
  expect(await rowsAfter(DECLARED, "FETCH c", update, update, "MOVE c", update)).toEqual([
    3, 12, 21,
  ]);
});

test("a row that the transaction has deleted is changed no more", async () => {
  const remove = "DELETE FROM t WHERE CURRENT OF c";
  const update = "UPDATE t SET a = 9 WHERE CURRENT OF c";
  expect(await rowsAfter(DECLARED, "FETCH c", remove, remove, update)).toEqual([2, 3]);
});

test("RETURNING, FROM and parameters work as with any other condition", async () => {
  await engine.run("DELETE FROM t; INSERT INTO t VALUES (1, 'one'), (2, 'two')");
  const results = await engine.run(
    `BEGIN; ${DECLARED}; FETCH LAST FROM c; ` +
      "UPDATE t SET a = t.a + $1 + x.n FROM (VALUES (100), (100)) x(n) WHERE CURRENT OF c " +
      "RETURNING t.a, b; COMMIT",
    { params: [1000] },
  );
  expect(results[3]?.rows).toEqual([[1102, "two"]]);
});

test("keys of several columns find the row", async () => {
  await engine.run(
    "INSERT INTO keyed VALUES (1, 'x', 0), (9007199254740993, 'y', 0), (9007199254740994, 'y', 0)",
  );
  await engine.run(
    "BEGIN; DECLARE c CURSOR FOR SELECT v FROM keyed ORDER BY id, part; FETCH 2 FROM c;" +
      "UPDATE keyed SET v = 1 WHERE CURRENT OF c; COMMIT",
  );
  const changed = await engine.rows("SELECT id, part FROM keyed WHERE v = 1");
  expect(changed).toEqual([["9007199254740993", "y"]]);
});

test("a locking join has a current row in each locked table", async () => {
  await engine.run("DELETE FROM u; INSERT INTO u VALUES (1), (2), (3)");
  const declared =
    "DECLARE c CURSOR FOR SELECT t.a FROM t JOIN u ON t.a = u.a ORDER BY 1 FOR UPDATE OF u";
  await rowsAfter(declared, "FETCH 2 FROM c", "DELETE FROM u WHERE CURRENT OF c");
  expect(await engine.rows("SELECT a FROM u ORDER BY a")).toEqual([[1], [3]]);
  expect(await refusal(declared, "FETCH c", "DELETE FROM t WHERE CURRENT OF c")).toContain(
    'Cannot change default.t at cursor "c": its query does not lock rows of this table',
  );
});

test.each([
  ["SELECT a, count(*) FROM t GROUP BY a", "its query is not a simple query of this table"],
  ["SELECT DISTINCT a FROM t", "its query is not a simple query of this table"],
  ["SELECT t.a FROM t JOIN u ON true", "its query is not a simple query of this table"],
  ["SELECT a FROM u", "its query is not a simple query of this table"],
  ["SELECT x.a FROM t x, t y FOR UPDATE", "locks rows of this table under several names"],
])("a row of %s cannot be changed", async (query, reason) => {
  const change = refusal(
    `DECLARE c CURSOR FOR ${query}`,
    "FETCH c",
    "DELETE FROM t WHERE CURRENT OF c",
  );
  expect(await change).toContain(reason);
});

test("a cursor needs a current row, and must be of the same transaction", async () => {
  const remove = "DELETE FROM t WHERE CURRENT OF c";
  expect(await refusal(DECLARED, remove)).toContain("it is not positioned on a row");
  expect(await refusal(DECLARED, "FETCH ALL FROM c", "MOVE c", remove)).toContain(
    "it is not positioned on a row",
  );
  expect(await refusal(remove)).toContain('Cannot find cursor "c"');
  expect((await engine.ask(remove)).error?.message).toContain('Cannot find cursor "c"');
  const held = DECLARED.replace("CURSOR", "CURSOR WITH HOLD");
  expect((await engine.ask(`BEGIN; ${held}; FETCH c; COMMIT; ${remove}`)).error?.message).toContain(
    "it was declared in an earlier transaction",
  );
});

test("views, and changes in WITH, cannot use a cursor", async () => {
  const open = [DECLARED, "FETCH c"];
  expect(await refusal(...open, "DELETE FROM shown WHERE CURRENT OF c")).toContain(
    "Cannot use WHERE CURRENT OF with a view",
  );
  expect(
    await refusal(
      ...open,
      "WITH w AS (DELETE FROM t WHERE CURRENT OF c RETURNING a) SELECT a FROM w",
    ),
  ).toContain("Cannot use WHERE CURRENT OF in a statement whose WITH changes rows");
});

test("EXPLAIN ANALYZE changes the current row", async () => {
  expect(
    await rowsAfter(DECLARED, "FETCH c", "EXPLAIN ANALYZE DELETE FROM t WHERE CURRENT OF c"),
  ).toEqual([2, 3]);
});

test("programs change the current rows of their cursors", async () => {
  const loop =
    "DO $$ DECLARE c CURSOR (least INT) FOR SELECT a FROM t WHERE a > least ORDER BY a; r RECORD;" +
    " BEGIN FOR r IN c(1) LOOP UPDATE t SET a = r.a * 10 WHERE CURRENT OF c; END LOOP; END $$";
  expect(await rowsAfter(loop)).toEqual([1, 20, 30]);
  const opened =
    "DO $$ DECLARE c REFCURSOR; n INT; BEGIN OPEN c FOR SELECT a FROM t ORDER BY a FOR UPDATE;" +
    " MOVE c; FETCH c INTO n; DELETE FROM t WHERE CURRENT OF c; CLOSE c; END $$";
  expect(await rowsAfter(opened)).toEqual([1, 3]);
  const dynamic =
    "DO $$ DECLARE c REFCURSOR := 'named'; n INT; BEGIN OPEN c FOR EXECUTE 'SELECT a FROM t ORDER BY a';" +
    " FETCH c INTO n; EXECUTE 'DELETE FROM t WHERE CURRENT OF named'; END $$";
  expect(await rowsAfter(dynamic)).toEqual([2, 3]);
  const outer = "DO $$ BEGIN DELETE FROM t WHERE CURRENT OF c; END $$";
  expect(await rowsAfter(DECLARED, "FETCH LAST FROM c", outer)).toEqual([1, 2]);
});

test("the cursor of a loop is closed when the loop ends, also by an error", async () => {
  const body = (inside: string): string =>
    "DO $$ DECLARE c CURSOR FOR SELECT a FROM t; r RECORD; BEGIN" +
    ` BEGIN FOR r IN c LOOP ${inside} END LOOP; EXCEPTION WHEN division_by_zero THEN NULL; END;` +
    " DELETE FROM t WHERE CURRENT OF c; END $$";
  for (const inside of ["NULL;", "EXIT;", "r.a := 1 / 0;"]) {
    expect(await refusal(body(inside))).toContain('Cannot find cursor "c"');
  }
});

test("a user changes only their own rows at a cursor", async () => {
  await engine.run(
    "CREATE TABLE notes (id INT PRIMARY KEY, v TEXT) WITH (TYPE = 'USER'); CREATE USER ann INTERNAL ROLE user;" +
      "CREATE USER bob INTERNAL ROLE user",
  );
  const as = async (userId: string, sql: string): Promise<unknown> => {
    engine.userId = userId;
    return (await engine.run(sql)).at(-1)?.rows;
  };
  await as("ann", "INSERT INTO notes VALUES (1, 'ann')");
  await as("bob", "INSERT INTO notes VALUES (1, 'bob')");
  await as(
    "bob",
    "BEGIN; DECLARE c CURSOR FOR SELECT v FROM notes; FETCH c;" +
      " UPDATE notes SET v = 'changed' WHERE CURRENT OF c; COMMIT",
  );
  expect(await as("ann", "SELECT v FROM notes")).toEqual([["ann"]]);
  expect(await as("bob", "SELECT v FROM notes")).toEqual([["changed"]]);
});
