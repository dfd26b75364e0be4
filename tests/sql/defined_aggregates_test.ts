/**
 * Tests user-defined aggregates: whose rights they run with, how long they last, their windows, and
 * live queries. The cases in `defined_aggregates.slt` have PostgreSQL's results.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { ResultFollower } from "../support/result_follower.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; CREATE USER bob INTERNAL ROLE user;
     CREATE TABLE app.sales (id INT PRIMARY KEY, shop TEXT, amount INT) WITH (ACCESS_LEVEL = 'PUBLIC');
     CREATE TABLE app.secrets (id INT PRIMARY KEY, n INT) WITH (ACCESS_LEVEL = 'PRIVATE');
     INSERT INTO app.sales VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 5);
     INSERT INTO app.secrets VALUES (1, 100);
     CREATE AGGREGATE app.total(INT) (SFUNC = int4pl, STYPE = INT, INITCOND = '0')`,
  );
});
beforeEach(() => {
  engine.userId = "root";
});
afterAll(() => engine[Symbol.asyncDispose]());

async function refusal(sql: string): Promise<string> {
  const { error } = await engine.ask(sql);
  return error === undefined ? "none" : `${error.code}: ${error.message}`;
}

describe("rights", () => {
  test("an aggregate reads tables with the rights of its caller", async () => {
    await engine.run(
      `CREATE FUNCTION app.above(state INT, v INT) RETURNS INT LANGUAGE sql AS
         'SELECT coalesce(state, 0) + max(v + n) FROM app.secrets';
       CREATE AGGREGATE app.raised(INT) (SFUNC = app.above, STYPE = INT)`,
    );
    expect(await engine.rows("SELECT app.raised(amount) FROM app.sales")).toEqual([[335]]);
    engine.userId = "bob";
    expect(await engine.rows("SELECT app.total(amount) FROM app.sales")).toEqual([[35]]);
    expect(await refusal("SELECT app.raised(amount) FROM app.sales")).toContain(
      "PERMISSION_DENIED",
    );
  });

  test("who may not create views may not define aggregates", async () => {
    engine.userId = "bob";
    for (const sql of [
      "CREATE AGGREGATE app.own(INT) (SFUNC = int4pl, STYPE = INT)",
      "CREATE OR REPLACE AGGREGATE app.total(INT) (SFUNC = int4pl, STYPE = INT)",
      "ALTER AGGREGATE app.total(INT) RENAME TO mine",
      "DROP AGGREGATE app.total(INT)",
    ]) {
      expect(await refusal(sql)).toContain("PERMISSION_DENIED");
    }
  });
});

test("an aggregate keeps its functions when they are renamed and the server restarts", async () => {
  await using own = await TestEngine.open();
  await own.run(
    `CREATE FUNCTION plus(a INT, b INT) RETURNS INT LANGUAGE sql RETURN a + b;
     CREATE TYPE pair AS (low INT, high INT);
     CREATE FUNCTION widened(p pair, n INT) RETURNS pair LANGUAGE sql
       RETURN ROW(least(p.low, n), greatest(p.high, n))::pair;
     CREATE AGGREGATE added(INT) (SFUNC = plus, STYPE = INT, INITCOND = '1');
     CREATE AGGREGATE spread(INT) (SFUNC = widened, STYPE = pair);
     CREATE VIEW shown AS SELECT added(n), (spread(n)).high FROM generate_series(1, 4) AS s (n);
     ALTER FUNCTION plus(INT, INT) RENAME TO sum_of_two`,
  );
  await own.restart();
  expect(await own.rows("SELECT * FROM shown")).toEqual([[11, 4]]);
  const { error } = await own.ask("DROP FUNCTION sum_of_two(INT, INT)");
  expect(error?.code).toBe("DEPENDENT_OBJECTS");
  expect((await own.ask("DROP TYPE pair")).error?.code).toBe("DEPENDENT_OBJECTS");
  await own.run("DROP FUNCTION sum_of_two(INT, INT) CASCADE");
  expect((await own.ask("SELECT added(1)")).error?.code).toBe("FUNCTION_NOT_FOUND");
});

test("the definition is shown under the current name", async () => {
  await engine.run(
    `CREATE AGGREGATE app.before(INT) (SFUNC = int4_sum, STYPE = BIGINT, FINALFUNC = int8inc);
     ALTER AGGREGATE app.before(INT) RENAME TO after`,
  );
  expect(await engine.rows("DESCRIBE FUNCTION app.after")).toEqual([
    [
      "CREATE OR REPLACE AGGREGATE app.after(INT) (SFUNC = int4_sum, STYPE = BIGINT, " +
        "FINALFUNC = int8inc)",
    ],
  ]);
  expect(
    await refusal("CREATE TABLE app.t (a INT PRIMARY KEY, CHECK (app.total(a) > 1))"),
  ).toContain("Cannot call function app.total in a stored expression: it is an aggregate");
});

test("rows leave a moving frame through the inverse function", async () => {
  await engine.run(
    `CREATE FUNCTION app.add_text(s TEXT, n INT) RETURNS TEXT LANGUAGE sql RETURN s || '+' || n;
     CREATE FUNCTION app.take_text(s TEXT, n INT) RETURNS TEXT LANGUAGE sql
       RETURN CASE WHEN n = 3 THEN NULL ELSE s || '-' || n END;
     CREATE AGGREGATE app.log(INT) (SFUNC = app.add_text, STYPE = TEXT, INITCOND = 'p',
       MSFUNC = app.add_text, MSTYPE = TEXT, MINVFUNC = app.take_text, MINITCOND = 'm')`,
  );
  const over = (frame: string): string =>
    `SELECT app.log(n) OVER (ORDER BY n ${frame}) FROM generate_series(1, 5) AS s (n) ORDER BY n`;
  expect(await engine.rows(over("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"))).toEqual([
    ["m+1"],
    ["m+1+2"],
    ["m+1+2-1+3"],
    ["m+1+2-1+3-2+4"],
    // The row with 3 cannot be removed, so the frame is computed again.
    ["m+4+5"],
  ]);
  expect((await engine.rows(over("ROWS UNBOUNDED PRECEDING"))).at(-1)).toEqual(["p+1+2+3+4+5"]);
  const volatile = "SELECT app.log(n + CASE WHEN random() < 0 THEN 1 ELSE 0 END) OVER";
  const slid = await engine.rows(
    `${volatile} (ORDER BY n ROWS 1 PRECEDING) FROM generate_series(1, 3) AS s (n) ORDER BY n`,
  );
  expect(slid).toEqual([["p+1"], ["p+1+2"], ["p+2+3"]]);
  expect(await engine.rows(over("ROWS BETWEEN CURRENT ROW AND CURRENT ROW"))).toEqual(
    [1, 2, 3, 4, 5].map((n) => [`m+${n}`]),
  );
});

test("each group has a state of its own", async () => {
  await engine.run(
    `CREATE AGGREGATE app.list(INT) (SFUNC = array_append, STYPE = INT[], INITCOND = '{}')`,
  );
  const rows = await engine.rows(
    `SELECT count(*), sum(t), max(cardinality(l)) FROM (
       SELECT n % 1000, app.total(n) AS t, app.list(n ORDER BY n) AS l
       FROM generate_series(1, 20000) AS s (n) GROUP BY 1) AS g`,
  );
  expect(rows).toEqual([[1000, 200_010_000, 20]]);
});

test("a live query with an aggregate follows its table", async () => {
  const sink = new ResultFollower();
  sink.subscription = engine.database.live.subscribe({
    principal: engine.principal,
    spec: {
      id: "q",
      sql: "SELECT shop, app.total(amount) AS t FROM app.sales GROUP BY shop ORDER BY shop",
    },
    sink,
  });
  await sink.reaches(engine.database.store.visibleSeq);
  expect(sink.rows).toMatchObject([
    { shop: "a", t: 30 },
    { shop: "b", t: 5 },
  ]);
  await engine.run("INSERT INTO app.sales VALUES (4, 'b', 7)");
  await sink.reaches(engine.database.store.visibleSeq);
  expect(sink.rows.map(({ t }) => t)).toEqual([30, 12]);
});
