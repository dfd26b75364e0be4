/**
 * Tests SQL functions: the rights they run with, their plans, transactions, restarts and live
 * queries. The cases in `sql_functions.slt` have PostgreSQL's results.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { ResultFollower } from "../support/result_follower.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { until } from "../support/until.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; CREATE USER bob INTERNAL ROLE user;
     CREATE TABLE app.docs (id INT PRIMARY KEY, owner TEXT, pages INT) WITH (ACCESS_LEVEL = 'RESTRICTED');
     CREATE POLICY own ON app.docs TO user USING (owner = CURRENT_USER());
     CREATE TABLE app.secrets (id INT PRIMARY KEY, n INT) WITH (ACCESS_LEVEL = 'PRIVATE');
     CREATE TABLE app.open (id INT PRIMARY KEY, n INT) WITH (ACCESS_LEVEL = 'PUBLIC');
     INSERT INTO app.docs VALUES (1, 'bob', 10), (2, 'ann', 0);
     INSERT INTO app.secrets VALUES (1, 5); INSERT INTO app.open VALUES (1, 1), (2, 2), (3, 3)`,
  );
});
beforeEach(() => {
  engine.userId = "root";
});
afterAll(() => engine[Symbol.asyncDispose]());

function sorted(values: readonly unknown[]): unknown[] {
  return values.toSorted((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1));
}

/** Returns the code and message of the error that a statement raises. */
async function refusal(asked: TestEngine, sql: string): Promise<string> {
  const { error } = await asked.ask(sql);
  return error === undefined ? "none" : `${error.code}: ${error.message}`;
}

describe("rights", () => {
  test("a function reads the rows that the caller may read", async () => {
    await engine.run(
      `CREATE FUNCTION app.pages() RETURNS BIGINT LANGUAGE sql AS 'SELECT sum(pages) FROM app.docs';
       CREATE FUNCTION app.listed() RETURNS SETOF app.docs LANGUAGE sql AS 'SELECT * FROM app.docs';
       CREATE FUNCTION app.quotient(d INT) RETURNS INT LANGUAGE sql AS 'SELECT 100 / d'`,
    );
    expect(await engine.rows("SELECT app.pages(), count(*) FROM app.listed()")).toEqual([[10, 2]]);
    engine.userId = "bob";
    expect(await engine.rows("SELECT app.pages(), id FROM app.listed()")).toEqual([[10, 1]]);
    // The row with 0 pages belongs to ann, so its error must not become visible.
    const mine = "SELECT id FROM app.docs WHERE app.quotient(pages) = 10";
    expect(await engine.rows(mine)).toEqual([[1]]);
    engine.userId = "root";
    expect(await refusal(engine, mine)).toContain("DIVISION_BY_ZERO");
  });

  test("a function gives no right to a table, not even within a view of its owner", async () => {
    await engine.run(
      `CREATE FUNCTION app.secret() RETURNS INT LANGUAGE sql AS 'SELECT n FROM app.secrets';
       CREATE VIEW app.shown WITH (security_invoker = false, access_level = 'PUBLIC') AS
         SELECT n + 1 AS n FROM app.secrets;
       CREATE VIEW app.called WITH (security_invoker = false, access_level = 'PUBLIC') AS
         SELECT app.secret() AS n`,
    );
    engine.userId = "bob";
    expect(await engine.rows("SELECT n FROM app.shown")).toEqual([[6]]);
    const direct = await refusal(engine, "SELECT app.secret()");
    expect(direct).toContain("PERMISSION_DENIED");
    expect(direct).not.toContain("secrets");
    expect(await refusal(engine, "SELECT n FROM app.called")).toContain("TABLE_NOT_FOUND");
  });

  test("a function may read a view that runs with the rights of its owner", async () => {
    await engine.run(
      "CREATE FUNCTION app.through() RETURNS INT LANGUAGE sql AS 'SELECT n FROM app.shown'",
    );
    engine.userId = "bob";
    expect(await engine.rows("SELECT app.through()")).toEqual([[6]]);
  });

  test("a better fit is called, whatever the order of the names, and an equal one is refused", async () => {
    await engine.run(
      ["ANYELEMENT", "INT", "BIGINT", "TEXT"]
        .map(
          (type) => `CREATE FUNCTION app.fit(n ${type}) RETURNS TEXT LANGUAGE sql RETURN '${type}'`,
        )
        .join(";"),
    );
    expect(
      await engine.rows("SELECT app.fit(1), app.fit(1::BIGINT), app.fit('x'), app.fit(1.5)"),
    ).toEqual([["INT", "BIGINT", "TEXT", "ANYELEMENT"]]);
    await engine.run(
      `CREATE FUNCTION app.tie(a INT, b BIGINT) RETURNS INT LANGUAGE sql RETURN 1;
       CREATE FUNCTION app.tie(a BIGINT, b INT) RETURNS INT LANGUAGE sql RETURN 2`,
    );
    expect(await refusal(engine, "SELECT app.tie(1, 1)")).toContain(
      "match the arguments equally well",
    );
    expect(await engine.rows("SELECT app.tie(1, 1::BIGINT)")).toEqual([[1]]);
  });

  test("who may not create views may not create functions", async () => {
    engine.userId = "bob";
    for (const sql of [
      "CREATE FUNCTION app.own() RETURNS INT LANGUAGE sql AS 'SELECT 1'",
      "CREATE OR REPLACE FUNCTION app.pages() RETURNS BIGINT LANGUAGE sql AS 'SELECT 1'",
      "ALTER FUNCTION app.pages() RENAME TO mine",
      "DROP FUNCTION app.pages()",
      "COMMENT ON FUNCTION app.pages() IS 'mine'",
    ]) {
      expect(await refusal(engine, sql)).toContain("PERMISSION_DENIED");
    }
    const listed = await engine.rows(
      "SELECT routine_definition FROM information_schema.routines WHERE routine_name = 'pages'",
    );
    expect(listed).toEqual([[null]]);
    expect(await engine.rows("DESCRIBE FUNCTION app.pages")).toEqual([[null]]);
  });

  test("a policy keeps the text that a function had, with the rights of the policy", async () => {
    await engine.run(
      `CREATE TABLE app.members (doc INT, name TEXT, PRIMARY KEY (doc, name)) WITH (ACCESS_LEVEL = 'PRIVATE');
       CREATE TABLE app.shared (id INT PRIMARY KEY, body TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED');
       CREATE FUNCTION app.is_member(doc_id INT) RETURNS BOOLEAN LANGUAGE sql STABLE AS
         'SELECT EXISTS (SELECT 1 FROM app.members WHERE doc = doc_id AND name = CURRENT_USER())';
       CREATE POLICY members ON app.shared TO user USING (app.is_member(id));
       INSERT INTO app.members VALUES (1, 'bob'), (2, 'ann');
       INSERT INTO app.shared VALUES (1, 'one'), (2, 'two')`,
    );
    engine.userId = "bob";
    expect(await engine.rows("SELECT id, body FROM app.shared")).toEqual([[1, "one"]]);
    expect(await refusal(engine, "INSERT INTO app.shared VALUES (3, 'x')")).toContain(
      "PERMISSION_DENIED",
    );
    engine.userId = "root";
    await engine.run(
      "CREATE OR REPLACE FUNCTION app.is_member(doc_id INT) RETURNS BOOLEAN LANGUAGE sql RETURN TRUE",
    );
    expect(await refusal(engine, "DROP TABLE app.members")).toContain("DEPENDENT_OBJECTS");
    engine.userId = "bob";
    expect(await engine.rows("SELECT id, body FROM app.shared")).toEqual([[1, "one"]]);
  });
});

describe("plans", () => {
  test("a function that only computes is part of the expression, so an index can have it", async () => {
    await engine.run(
      `CREATE FUNCTION app.half(n INT) RETURNS INT LANGUAGE sql IMMUTABLE RETURN n / 2;
       CREATE INDEX halves ON app.open (app.half(n))`,
    );
    const plan = await engine.rows("EXPLAIN SELECT id FROM app.open WHERE app.half(n) = 1");
    expect(JSON.stringify(plan)).toContain("index: halves");
    expect(await engine.rows("SELECT id FROM app.open WHERE app.half(n) = 1 ORDER BY id")).toEqual([
      [2],
      [3],
    ]);
  });

  test("a constant argument finds rows by key", async () => {
    await engine.run(
      "CREATE FUNCTION app.value(k INT) RETURNS INT LANGUAGE sql AS 'SELECT n FROM app.open WHERE id = k'",
    );
    const plan = await engine.rows("EXPLAIN SELECT app.value($1)", { params: [2] });
    expect(JSON.stringify(plan)).toContain("Key Lookup");
    expect(await engine.rows("SELECT app.value($1)", { params: [2] })).toEqual([[2]]);
  });

  test("an argument is evaluated once, and a volatile function for each row", async () => {
    await engine.run(
      `CREATE SEQUENCE app.counter;
       CREATE FUNCTION app.pair(n BIGINT) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT n = n AND n > 0';
       CREATE FUNCTION app.span(n BIGINT) RETURNS SETOF BIGINT LANGUAGE sql AS 'SELECT generate_series(n, n + 1)';
       CREATE FUNCTION app.ignores(n BIGINT) RETURNS INT LANGUAGE sql AS 'SELECT 1';
       CREATE FUNCTION app.drawn() RETURNS BIGINT LANGUAGE sql AS $$ SELECT nextval('app.counter') FROM app.open LIMIT 1 $$`,
    );
    const row = await engine.rows(
      "SELECT app.pair(nextval('app.counter')), app.ignores(nextval('app.counter'))",
    );
    expect(row).toEqual([[true, 1]]);
    expect(await engine.rows("SELECT * FROM app.span(nextval('app.counter'))")).toEqual([[3], [4]]);
    const drawn = await engine.rows("SELECT count(DISTINCT app.drawn()) FROM app.open");
    expect(drawn).toEqual([[3]]);
    expect(await engine.rows("SELECT nextval('app.counter')")).toEqual([[7]]);
  });

  test("nested calls are bound once for each call", async () => {
    const names = Array.from({ length: 12 }, (_, i) => `app.level_${i}`);
    await engine.run("CREATE FUNCTION app.level_0(n INT) RETURNS INT LANGUAGE sql RETURN n + 1");
    for (const [i, name] of names.slice(1).entries()) {
      const body = `SELECT ${names[i]}(n) FROM app.open WHERE id = 1`;
      await engine.run(`CREATE FUNCTION ${name}(n INT) RETURNS INT LANGUAGE sql AS '${body}'`);
    }
    expect(await engine.rows("SELECT app.level_11(1)")).toEqual([[2]]);
  });
});

test("functions take part in transactions, and survive a restart", async () => {
  await using own = await TestEngine.open();
  await own.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10)");
  const [, , inside] = await own.run(
    "BEGIN; CREATE FUNCTION f(k INT) RETURNS INT LANGUAGE sql AS 'SELECT v FROM t WHERE id = k'; SELECT f(1); ROLLBACK",
  );
  expect(inside?.rows).toEqual([[10]]);
  expect(await refusal(own, "SELECT f(1)")).toContain("FUNCTION_NOT_FOUND");
  await own.run(
    `BEGIN; CREATE TYPE mood AS ENUM ('sad');
     COMMIT; CREATE FUNCTION named(m mood) RETURNS TEXT LANGUAGE sql AS $$ SELECT CASE m WHEN 'sad' THEN 'low' ELSE m::TEXT END $$`,
  );
  await own.run(
    `BEGIN; CREATE FUNCTION f(k INT, more INT DEFAULT 1) RETURNS INT LANGUAGE sql STRICT AS 'SELECT v + more FROM t WHERE id = k';
     COMMENT ON FUNCTION f IS 'a value'; COMMIT; ALTER TYPE mood ADD VALUE 'glad'`,
  );
  for (const isRestarted of [false, true]) {
    if (isRestarted) await own.restart();
    expect(await own.rows("SELECT f(1), f(1, 5), f(NULL), named('sad'), named('glad')")).toEqual([
      [11, 15, null, "low", "glad"],
    ]);
    const listed = await own.rows("SHOW FUNCTIONS");
    expect(listed.map((row) => row.slice(1, 7))).toEqual([
      ["f", "k integer, more integer DEFAULT 1", "integer", "volatile", true, "a value"],
      ["named", "m mood", "text", "volatile", false, null],
    ]);
  }
  const [[definition] = []] = await own.rows("DESCRIBE FUNCTION f(INT, INT)");
  await own.run(`DROP FUNCTION f; ${String(definition)}`);
  expect(await own.rows("SELECT f(1)")).toEqual([[11]]);
});

describe("live queries", () => {
  const follow = (sql: string): ResultFollower => {
    const sink = new ResultFollower();
    const spec = { id: "q", sql };
    sink.subscription = engine.database.live.subscribe({
      principal: engine.principal,
      spec,
      sink,
    });
    return sink;
  };
  const current = async (follower: ResultFollower): Promise<void> => {
    await follower.reaches(engine.database.store.visibleSeq);
  };

  test("follow the tables that a function reads", async () => {
    await engine.run(
      `CREATE TABLE app.rooms (id INT PRIMARY KEY, name TEXT);
       CREATE TABLE app.notes (id INT PRIMARY KEY, room INT, stars INT);
       INSERT INTO app.rooms VALUES (1, 'lobby'), (2, 'attic'); INSERT INTO app.notes VALUES (1, 1, 3), (2, 1, 4);
       CREATE FUNCTION app.stars(r INT) RETURNS BIGINT LANGUAGE sql AS 'SELECT coalesce(sum(stars), 0) FROM app.notes WHERE room = r';
       CREATE FUNCTION app.notes_of(r INT) RETURNS SETOF app.notes LANGUAGE sql AS 'SELECT * FROM app.notes WHERE room = r'`,
    );
    const queries = [
      "SELECT id, name, app.stars(id) AS stars FROM app.rooms",
      "SELECT r.name, n.stars FROM app.rooms r, app.notes_of(r.id) n",
      "SELECT stars FROM app.notes_of(1)",
      "SELECT name FROM app.rooms WHERE app.stars(id) > 5",
    ];
    const followers = queries.map(follow);
    const check = async (): Promise<void> => {
      for (const [i, follower] of followers.entries()) {
        await current(follower);
        const [result] = await engine.run(queries[i] ?? "");
        const names = result?.schema?.map(({ name }) => name) ?? [];
        const shown = follower.rows.map((row) => names.map((name) => row[name]));
        expect(sorted(shown)).toEqual(sorted(result?.rows ?? []));
      }
    };
    await check();
    for (const change of [
      "INSERT INTO app.notes VALUES (3, 2, 9)",
      "UPDATE app.notes SET room = 2 WHERE id = 1",
      "DELETE FROM app.notes WHERE id = 2",
      "INSERT INTO app.rooms VALUES (3, 'roof')",
    ]) {
      await engine.run(change);
      await check();
    }
    for (const follower of followers) follower.subscription?.close();
  });

  test("go on with the new text of a function, and end without the function", async () => {
    await engine.run(
      "CREATE FUNCTION app.shown_n(n INT) RETURNS INT LANGUAGE sql AS 'SELECT n * 10'",
    );
    const follower = follow(
      "SELECT id, app.shown_n(n) AS n FROM app.open WHERE app.shown_n(n) > 15",
    );
    await current(follower);
    expect(sorted(follower.rows.map(({ n }) => n))).toEqual([20, 30]);
    await engine.run(
      "CREATE OR REPLACE FUNCTION app.shown_n(n INT) RETURNS INT LANGUAGE sql AS 'SELECT n * 100'",
    );
    await until(() => follower.rows.some(({ n }) => n === 100));
    await current(follower);
    expect(sorted(follower.rows.map(({ n }) => n))).toEqual([100, 200, 300]);
    await engine.run("DROP FUNCTION app.shown_n");
    await until(() => follower.failure !== undefined);
    expect(follower.failure?.code).toBe("SCHEMA_CHANGED");
  });
});
