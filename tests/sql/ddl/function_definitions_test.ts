/**
 * Tests CREATE, ALTER and DROP FUNCTION: the names that are refused, the objects on which a
 * function depends, and how the definitions of tables show calls of functions.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY, v INT, s TEXT);
     INSERT INTO app.t VALUES (1, 10, 'a'), (2, 20, 'b'); CREATE DOMAIN app.positive AS INT CHECK (VALUE > 0);
     CREATE FUNCTION app.half(n INT) RETURNS INT LANGUAGE sql IMMUTABLE RETURN n / 2;
     CREATE FUNCTION app.kind(INT) RETURNS TEXT LANGUAGE sql AS $$ SELECT 'int' $$;
     CREATE FUNCTION app.kind(TEXT) RETURNS TEXT LANGUAGE sql AS $$ SELECT 'text' $$;
     CREATE FUNCTION app.numbers() RETURNS SETOF INT LANGUAGE sql AS 'SELECT id FROM app.t'`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Returns the code and message of the error that a statement raises. */
async function refusal(asked: TestEngine, sql: string): Promise<string> {
  const { error } = await asked.ask(sql);
  return error === undefined ? "none" : `${error.code}: ${error.message}`;
}

const HEAD = "CREATE FUNCTION app.x() RETURNS INT";

test.each([
  [`${HEAD} LANGUAGE 'C' AS 'file', 'symbol'`, "CREATE FUNCTION with LANGUAGE c"],
  [`${HEAD} LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'`, "SECURITY DEFINER"],
  [`${HEAD} LANGUAGE sql AS 'SELECT 1; SELECT 2'`, "a function with several statements"],
  [
    `${HEAD} LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END`,
    "a function with several statements",
  ],
  [
    `${HEAD} LANGUAGE sql AS 'DELETE FROM app.t RETURNING id'`,
    "a function whose body is not a query",
  ],
  [
    `${HEAD} LANGUAGE sql AS 'WITH d AS (DELETE FROM app.t RETURNING id) SELECT id FROM d'`,
    "query",
  ],
  [`${HEAD} LANGUAGE sql SET search_path = app AS 'SELECT 1'`, "SET of a function"],
  [`${HEAD} LANGUAGE sql WINDOW AS 'SELECT 1'`, "a user-defined window function"],
  [`${HEAD} LANGUAGE sql LEAKPROOF AS 'SELECT 1'`, "LEAKPROOF"],
  [`${HEAD} LANGUAGE sql AS ''`, "a function without a body"],
  ["CREATE FUNCTION app.x(a app.positive) RETURNS INT LANGUAGE sql AS 'SELECT 1'", "app.positive"],
  ["CREATE FUNCTION app.x() RETURNS INT LANGUAGE sql AS 'SELECT 1::app.positive'", "app.positive"],
  ["ALTER FUNCTION app.half(INT) SET SCHEMA public", "SET SCHEMA of a function"],
  ["ALTER FUNCTION app.half(INT) SET work_mem = 1", "SET of a function"],
  ["ALTER FUNCTION app.half(INT) STABLE RESET ALL", "RESET of a function"],
  ["ALTER FUNCTION app.half(INT) SECURITY DEFINER", "SECURITY DEFINER"],
  ["CREATE AGGREGATE app.x(INT) (sfunc = int4_avg_accum, stype = internal)", "internal"],
])("this is refused by name: %s", async (sql, name) => {
  const failure = await refusal(engine, sql);
  expect(failure).toContain("UNSUPPORTED_FEATURE");
  expect(failure).toContain(name);
});

test.each([
  ["CREATE FUNCTION app.x() RETURNS TRIGGER LANGUAGE sql AS 'SELECT 1'", "LANGUAGE plpgsql"],
  ["CREATE FUNCTION app.x(n INT) RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN END'", "TG_ARGV"],
  [
    "CREATE FUNCTION app.x() RETURNS VOID LANGUAGE sql AS 'SELECT 1'",
    "a function in LANGUAGE sql must return a result",
  ],
  [`${HEAD} LANGUAGE plpgsql AS 'BEGIN RETURN; END'`, "RETURN needs a value (line 1"],
  [`${HEAD} LANGUAGE plpgsql AS 'BEGIN nope := 1; END'`, "does not exist"],
  [`${HEAD} LANGUAGE plpgsql BEGIN ATOMIC SELECT 1; END`, "a function body without AS"],
  [`${HEAD} LANGUAGE sql AS 'SELECT nope FROM app.t'`, "COLUMN_NOT_FOUND"],
  [`${HEAD} LANGUAGE sql AS 'SELEC 1'`, "INVALID_SQL"],
  [`${HEAD} LANGUAGE sql AS 'SELECT $1'`, "INVALID_PARAMETER"],
  [`${HEAD} LANGUAGE sql AS 'SELECT id FROM app.nope'`, "TABLE_NOT_FOUND"],
  [`${HEAD} LANGUAGE sql AS 'SELECT TRUE'`, "TYPE_MISMATCH"],
  [`${HEAD} LANGUAGE sql`, "INVALID_SQL"],
  [`${HEAD} LANGUAGE sql AS 'SELECT 1' AS 'SELECT 2'`, "INVALID_SQL"],
  ["CREATE FUNCTION app.x() LANGUAGE sql AS 'SELECT 1'", "the function does not declare a result"],
  ["CREATE FUNCTION app.x(r RECORD) RETURNS INT LANGUAGE sql AS 'SELECT 1'", "the type record"],
  [
    "CREATE FUNCTION app.x(OUT a INT, OUT b INT) RETURNS INT LANGUAGE sql AS 'SELECT 1, 2'",
    "RETURNS",
  ],
  [
    "CREATE FUNCTION app.x(OUT a INT DEFAULT 1) LANGUAGE sql AS 'SELECT 1'",
    "must not have a default",
  ],
  ["CREATE FUNCTION system.x() RETURNS INT LANGUAGE sql AS 'SELECT 1'", "RESERVED_NAME"],
  ["CREATE FUNCTION nope.x() RETURNS INT LANGUAGE sql AS 'SELECT 1'", "NAMESPACE_NOT_FOUND"],
  ["CREATE FUNCTION app.\"a b\"() RETURNS INT LANGUAGE sql AS 'SELECT 1'", "INVALID_NAME"],
  ["DROP FUNCTION app.kind", "2 functions have the name app.kind"],
  ["DROP FUNCTION app.kind(DATE)", "FUNCTION_NOT_FOUND"],
  ["ALTER FUNCTION app.half(INT) RENAME TO half", "ALREADY_EXISTS"],
  ["SELECT app.half(1) OVER ()", "it is not an aggregate"],
  ["SELECT app.half(DISTINCT 1)", "it is not an aggregate"],
  ["SELECT app.kind(DATE '2026-01-01')", "no function of this name accepts these arguments"],
  ["SELECT id FROM app.t WHERE app.numbers() = 1", "it returns a set of rows"],
  ["SELECT * FROM app.half(1) AS x (a INT)", "the function itself determines its columns"],
])("this is refused: %s", async (sql, part) => {
  expect(await refusal(engine, sql)).toContain(part);
});

test("an error in the text of a function has the position of the text", async () => {
  const sql = `${HEAD} LANGUAGE sql AS 'SELECT nope FROM app.t'`;
  const { error } = await engine.ask(sql);
  expect(error?.position).toBe(sql.indexOf("'"));
  const { error: wrong } = await engine.ask(`${HEAD} LANGUAGE sql AS 'SELECT FROM FROM'`);
  expect(wrong?.position).toBe(sql.indexOf("'"));
});

test("a function cannot call itself, directly or through others", async () => {
  await engine.run(
    `CREATE FUNCTION app.first(n INT) RETURNS INT LANGUAGE sql RETURN n;
     CREATE FUNCTION app.second(n INT) RETURNS INT LANGUAGE sql RETURN app.first(n)`,
  );
  for (const called of ["first", "second"]) {
    const sql = `CREATE OR REPLACE FUNCTION app.first(n INT) RETURNS INT LANGUAGE sql RETURN app.${called}(n)`;
    expect(await refusal(engine, sql)).toContain("the function would call itself");
  }
});

describe("dependents", () => {
  test("a table, a column and a function stay while a function needs them", async () => {
    await using own = await TestEngine.open();
    await own.run(
      `CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT); INSERT INTO t VALUES (1, 10, 100);
       CREATE FUNCTION f(k INT) RETURNS INT LANGUAGE sql AS 'SELECT v FROM t WHERE id = k';
       CREATE FUNCTION g(k INT) RETURNS INT LANGUAGE sql AS 'SELECT f(k) + 1';
       CREATE VIEW shown AS SELECT id, g(id) AS g FROM t`,
    );
    for (const sql of ["DROP TABLE t", "ALTER TABLE t DROP COLUMN v", "DROP FUNCTION f"]) {
      const failure = await refusal(own, sql);
      expect(failure).toContain("DEPENDENT_OBJECTS");
      expect(failure).toContain("default.g(integer)");
    }
    await own.run(
      "ALTER TABLE t RENAME COLUMN v TO value; ALTER TABLE t RENAME TO renamed; ALTER FUNCTION f RENAME TO was_f;" +
        "ALTER TABLE renamed DROP COLUMN w",
    );
    expect(await own.rows("SELECT * FROM shown")).toEqual([[1, 11]]);
    await own.run("CREATE FUNCTION f(k INT) RETURNS INT LANGUAGE sql AS 'SELECT 0'");
    expect(await own.rows("SELECT * FROM shown")).toEqual([[1, 11]]);
    await own.restart();
    expect(await own.rows("SELECT g, f(1) FROM shown")).toEqual([[11, 0]]);
    await own.run("DROP TABLE renamed CASCADE");
    expect(await own.rows("SHOW FUNCTIONS")).toHaveLength(1);
    expect(await refusal(own, "SELECT * FROM shown")).toContain("TABLE_NOT_FOUND");
  });

  test("a namespace and a type stay while functions need them", async () => {
    await using own = await TestEngine.open();
    await own.run(
      `CREATE NAMESPACE app; CREATE TYPE mood AS ENUM ('sad'); CREATE TYPE pair AS (a INT, b INT);
       CREATE FUNCTION app.of_mood(m mood) RETURNS TEXT LANGUAGE sql AS 'SELECT m::TEXT';
       CREATE FUNCTION app.of_text() RETURNS TEXT LANGUAGE sql AS $$ SELECT ('(1,2)'::pair).b $$`,
    );
    expect(await refusal(own, "DROP TYPE mood")).toContain("function app.of_mood(mood)");
    expect(await refusal(own, "DROP TYPE pair")).toContain("function app.of_text()");
    expect(await refusal(own, "DROP NAMESPACE app")).toContain("2 functions");
    await own.run("DROP NAMESPACE app CASCADE; DROP TYPE mood, pair");
    expect(await own.rows("SHOW FUNCTIONS")).toEqual([]);
  });
});

describe("stored expressions", () => {
  test("keep the text that a function had", async () => {
    await using own = await TestEngine.open();
    await own.run(
      `CREATE FUNCTION half(n INT) RETURNS INT LANGUAGE sql IMMUTABLE RETURN n / 2;
       CREATE FUNCTION quarter(n INT) RETURNS INT LANGUAGE sql IMMUTABLE STRICT AS 'SELECT half(half($1))';
       CREATE FUNCTION started() RETURNS TEXT LANGUAGE sql AS $$ SELECT 'new' || CURRENT_USER() $$;
       CREATE DOMAIN small AS INT CHECK (half(VALUE) < 50);
       CREATE TABLE t (id INT PRIMARY KEY, v INT DEFAULT half(10) CHECK (quarter(v) < 100), s TEXT DEFAULT started(),
         g INT GENERATED ALWAYS AS (half(v) + 1) STORED, d small);
       CREATE INDEX i ON t ((half(v))) WHERE quarter(v) > 0;
       INSERT INTO t (id) VALUES (1)`,
    );
    const whole = "SELECT v, s, g FROM t WHERE id = 1";
    expect(await own.rows(whole)).toEqual([[5, "newroot", 3]]);
    expect(await refusal(own, "INSERT INTO t (id, v) VALUES (2, 400)")).toContain(
      "CHECK_VIOLATION",
    );
    expect(await refusal(own, "INSERT INTO t (id, d) VALUES (2, 100)")).toContain(
      "CHECK_VIOLATION",
    );
    expect(await refusal(own, "ALTER TABLE t ADD CHECK (half(v) > 2)")).toContain(
      "CHECK_VIOLATION",
    );
    await own.run("ALTER TABLE t ALTER COLUMN v SET DEFAULT quarter(NULL)");
    await own.run("DROP FUNCTION half CASCADE; DROP FUNCTION started");
    await own.restart();
    await own.run("INSERT INTO t (id, v) VALUES (3, 8); INSERT INTO t (id) VALUES (4)");
    expect(await own.rows("SELECT v, s, g FROM t WHERE id > 2 ORDER BY id")).toEqual([
      [8, "newroot", 5],
      [null, "newroot", null],
    ]);
  });

  test("are written anew when a request replaces a function or a type before it uses them", async () => {
    await using own = await TestEngine.open();
    await own.run("CREATE FUNCTION f(n INT) RETURNS INT LANGUAGE sql RETURN n + 1");
    const table = "CREATE TABLE t (id INT PRIMARY KEY, g INT GENERATED ALWAYS AS (f(id)) STORED)";
    await own.run(
      `CREATE OR REPLACE FUNCTION f(n INT) RETURNS INT LANGUAGE sql RETURN n + 10; ${table}`,
    );
    await own.run("INSERT INTO t (id) VALUES (1); CREATE TYPE mood AS ENUM ('sad')");
    expect(await own.rows("SELECT g FROM t")).toEqual([[11]]);
    expect(
      await refusal(own, "DROP TYPE mood; CREATE TABLE u (id INT PRIMARY KEY, m mood)"),
    ).toContain("there is no such type");
  });

  test("keep the meaning of names that have changed", async () => {
    await using own = await TestEngine.open();
    await own.run(
      `CREATE FUNCTION f(n INT) RETURNS INT LANGUAGE sql RETURN n + 1;
       CREATE FUNCTION g(n INT DEFAULT f(10)) RETURNS INT LANGUAGE sql RETURN f(n);
       ALTER FUNCTION f RENAME TO former;
       CREATE FUNCTION f(n INT) RETURNS INT LANGUAGE sql RETURN 0;
       CREATE TABLE t (id INT PRIMARY KEY, v INT DEFAULT g())`,
    );
    await own.run("INSERT INTO t (id) VALUES (1)");
    expect(await own.rows("SELECT v, g(), (SELECT g()) FROM t")).toEqual([[12, 12, 12]]);
  });

  test("look up types in the namespace of the function", async () => {
    await using own = await TestEngine.open();
    await own.run(
      `CREATE NAMESPACE app; CREATE TYPE app.mood AS ENUM ('sad'); CREATE TYPE default.mood AS ENUM ('other');
       SET search_path = app; CREATE FUNCTION app.moody(n TEXT DEFAULT 'sad'::mood) RETURNS BOOLEAN LANGUAGE sql RETURN n::mood = 'sad'`,
    );
    await own.run(
      "CREATE TABLE default.t (id INT PRIMARY KEY, m app.mood, b BOOLEAN DEFAULT true CHECK (b = app.moody(m::text)))",
    );
    await own.run("INSERT INTO default.t VALUES (1, 'sad', true)");
    expect(await own.rows("SELECT b FROM default.t")).toEqual([[true]]);
  });

  test("stay small although each function calls another one twice", async () => {
    await using own = await TestEngine.open();
    const call = (n: number): string => (n === 0 ? "1" : `f${n - 1}()`);
    const make = (n: number, body: string): string =>
      `CREATE OR REPLACE FUNCTION f${n}() RETURNS BIGINT LANGUAGE sql RETURN ${body}`;
    const numbers = Array.from({ length: 31 }, (_, n) => n);
    await own.run(numbers.map((n) => make(n, call(n))).join(";"));
    for (const n of numbers.toReversed()) await own.run(make(n, `${call(n)} + ${call(n)}`));
    expect(await refusal(own, "SELECT f30()")).toContain("LIMIT_EXCEEDED");
    const checked = "CREATE TABLE t (id INT PRIMARY KEY CHECK (f30() > id))";
    expect(await refusal(own, checked)).toContain("LIMIT_EXCEEDED");
    await own.run("CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT LANGUAGE sql RETURN n + n");
    const nested = numbers.reduce((inside) => `twice(${inside})`, "id");
    expect(
      await refusal(own, `CREATE TABLE t (id BIGINT PRIMARY KEY CHECK (${nested} > 0))`),
    ).toContain("LIMIT_EXCEEDED");
  });

  test.each([
    ["RETURN n + n", "drawn(nextval('s'))"],
    ["RETURN 1", "drawn(nextval('s'))"],
    ["STRICT RETURN n", "drawn(nextval('s'))"],
    ["RETURN n + n", "drawn()"],
  ])("do not repeat or omit a volatile argument: %s", async (body, call) => {
    await using own = await TestEngine.open();
    await own.run(
      `CREATE SEQUENCE s;
       CREATE FUNCTION drawn(n BIGINT DEFAULT nextval('s')) RETURNS BIGINT LANGUAGE sql ${body};
       CREATE FUNCTION once(n BIGINT) RETURNS BIGINT LANGUAGE sql RETURN n * 10`,
    );
    const table = "CREATE TABLE t (id INT PRIMARY KEY, v BIGINT DEFAULT";
    expect(await refusal(own, `${table} ${call})`)).toContain(
      "the body of the function does not use a volatile argument exactly once",
    );
    await own.run(`${table} once(nextval('s')))`);
    await own.run("INSERT INTO t (id) VALUES (1), (2)");
    expect(await own.rows("SELECT v FROM t ORDER BY id")).toEqual([[10], [20]]);
  });

  test.each([
    [
      "CREATE TABLE app.y (id INT PRIMARY KEY, v TEXT CHECK (app.kind(v) = 'x'))",
      "several functions",
    ],
    ["ALTER TABLE app.t ADD CHECK (app.numbers() > 0)", "the function returns a set of rows"],
    ["CREATE INDEX j ON app.t (app.drawn(id))", "INVALID_DEFINITION"],
    ["ALTER TABLE app.t ADD CHECK (app.counted(id) > 0)", "subquery"],
    ["ALTER TABLE app.t ADD CHECK (app.nope(id) > 0)", "FUNCTION_NOT_FOUND"],
  ])("refuse what they cannot keep: %s", async (sql, part) => {
    await engine.run(
      `CREATE OR REPLACE FUNCTION app.drawn(n INT) RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE RETURN n + random();
       CREATE OR REPLACE FUNCTION app.counted(n INT) RETURNS BIGINT LANGUAGE sql AS 'SELECT count(*) FROM app.t WHERE id = n'`,
    );
    expect(await refusal(engine, sql)).toContain(part);
  });
});
