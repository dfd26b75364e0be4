/**
 * Tests the wording of responses: the messages of statements that define objects, and the message,
 * position and hint of errors.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { principalFor } from "../support/principal_for.ts";
import { type RequestParts, TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
  await engine.run(
    "CREATE TABLE app.people (id INT PRIMARY KEY, name TEXT NOT NULL, born DATE, code VARCHAR(3)," +
      " share NUMERIC(5,2), small SMALLINT, j JSON, country TEXT, since TIMESTAMP)",
  );
  await engine.run("INSERT INTO app.people (id, name) VALUES (1, 'a')");
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Runs SQL that must fail. Returns the message, the text at the error position, and the hint. */
async function refusal(
  sql: string,
  parts: RequestParts = {},
): Promise<{ message: string; at: string | undefined; hint: string | undefined }> {
  const { error } = await engine.ask(sql, { namespace: "app", ...parts });
  if (error === undefined) throw new Error(`succeeded: ${sql}`);
  const { hint, message, position } = error;
  const at = position === undefined ? undefined : /^\S*/.exec(sql.slice(position))?.[0];
  return { message, at, hint };
}

test("the refusal of a view or of its parameters names them", async () => {
  expect((await refusal("CREATE VIEW w AS SELECT 1 AS a, 2 AS a")).message).toContain(
    'Cannot create view app.w: two of its columns are named "a"',
  );
  expect((await refusal("CREATE VIEW w (a, b) AS SELECT 1")).message).toContain(
    "Cannot name 2 columns of view app.w: its query returns only 1",
  );
  expect((await refusal("SELECT 1", { params: [1] })).message).toContain(
    "Cannot bind 1 parameter: the SQL uses none",
  );
});

describe("DROP … IF EXISTS returns a notice", () => {
  test("DROP TABLE IF EXISTS reports which tables were dropped, and which did not exist", async () => {
    await engine.run("CREATE TABLE app.e1 (id INT PRIMARY KEY)");
    const [dropped] = await engine.run("DROP TABLE IF EXISTS app.nope, app.e1");
    expect(dropped?.message).toBe("Table app.e1 dropped; table app.nope does not exist");
    const [none] = await engine.run("DROP TABLE IF EXISTS app.nope, app.e1");
    expect(none?.message).toBe("Table app.nope does not exist; table app.e1 does not exist");
  });

  test("DROP VIEW IF EXISTS reports which views were dropped, and which did not exist", async () => {
    await engine.run("CREATE VIEW app.v1 AS SELECT 1 AS n");
    const [dropped] = await engine.run("DROP VIEW IF EXISTS app.nope, app.v1");
    expect(dropped?.message).toBe("View app.v1 dropped; view app.nope does not exist");
  });
});

test("CHECK_VIOLATION names the check and the columns that it reads", async () => {
  await engine.run(
    "CREATE TABLE app.checked (id INT PRIMARY KEY, low INT CONSTRAINT above CHECK (low > 0)," +
      " high INT, CONSTRAINT ordered CHECK (high >= low))",
  );
  expect((await refusal("INSERT INTO checked VALUES (1, 0, 5)")).message).toBe(
    'Cannot write a row to app.checked: it violates check "above" of column "low"',
  );
  expect((await refusal("INSERT INTO checked VALUES (1, 3, 2)")).message).toBe(
    'Cannot write a row to app.checked: it violates check "ordered" of columns "low", "high"',
  );
});

test("an error within a CHECK names the check", async () => {
  await engine.run(
    "CREATE TABLE app.failing (id INT PRIMARY KEY, a INT CONSTRAINT tenth CHECK (10 / a > 0))",
  );
  for (const sql of [
    "INSERT INTO failing VALUES (1, 0)",
    "INSERT INTO failing SELECT 1, 0",
    "INSERT INTO failing VALUES (2, 5); UPDATE failing SET a = 0",
  ]) {
    expect((await refusal(sql)).message, sql).toBe(
      'Cannot divide by zero (check "tenth" of app.failing)',
    );
  }
});

test("an error names the first of several faulty rows, with its first fault", async () => {
  await engine.run(
    "CREATE TABLE app.faulty (id INT PRIMARY KEY, a INT CHECK (a > 0), b INT CHECK (b > 0), c INT NOT NULL)",
  );
  const faultOf = async (rows: string) =>
    (await refusal(`INSERT INTO app.faulty VALUES ${rows}`)).message.replace(/^.*: /, "");
  expect(await faultOf("(1, 1, 0, 1), (2, 0, 1, 1)")).toContain("faulty_b_check");
  expect(await faultOf("(1, 0, 0, 1)")).toContain("faulty_a_check");
  expect(await faultOf("(1, 0, 1, 1), (2, 1, 1, NULL)")).toContain("faulty_a_check");
  expect(await faultOf("(1, 1, 1, NULL), (2, 0, 0, 1)")).toContain('"c" must not be NULL');
  expect(await faultOf("(1, 0, 1, NULL)")).toContain('"c" must not be NULL');
});

test("the first failing check of a row is reported, for the first row that fails any", async () => {
  await engine.run(
    "CREATE TABLE app.divided (id INT PRIMARY KEY, a INT CONSTRAINT zero CHECK (a <> 0)" +
      " CONSTRAINT tenth CHECK (10 / a > 0), b INT CONSTRAINT above CHECK (b > 0))",
  );
  const faultOf = async (source: string) =>
    (await refusal(`INSERT INTO app.divided ${source}`)).message;
  expect(await faultOf("VALUES (1, 0, 1)")).toContain('violates check "zero"');
  expect(await faultOf("VALUES (1, 1, 0), (2, 0, 1)")).toContain('violates check "above"');
  expect(await faultOf("SELECT g, g - 70, g - 60 FROM generate_series(61, 90) g")).toContain(
    'violates check "tenth"',
  );
  await engine.run("ALTER TABLE app.divided DROP CONSTRAINT zero");
  expect(await faultOf("SELECT g, g - 70, 80 - g FROM generate_series(71, 90) g")).toContain(
    "above",
  );
  expect(await faultOf("SELECT g, 80 - g, 81 - g FROM generate_series(71, 90) g")).toBe(
    'Cannot divide by zero (check "tenth" of app.divided)',
  );
});

test("DUPLICATE_KEY shows the key as a query does, whichever part of the engine finds it", async () => {
  await engine.run(
    "CREATE TABLE app.kinds (n NUMERIC(5,2), at TIMESTAMP, d DATE, b BYTES, u UUID, t TEXT, ok BOOLEAN," +
      " x DOUBLE, PRIMARY KEY (n, at, d, b, u, t, ok, x))",
  );
  const row =
    "(1.5, '2026-01-02 03:04:05', '2026-01-02', '\\x00ff', '00000000-0000-0000-0000-00000000000a', 'it', TRUE, 0.5)";
  const message =
    "Cannot insert into app.kinds: key (n, at, d, b, u, t, ok, x) = (1.50, 2026-01-02 03:04:05, 2026-01-02," +
    " \\x00ff, 00000000-0000-0000-0000-00000000000a, 'it', true, 0.5) already exists";
  const insert = `INSERT INTO app.kinds VALUES ${row}`;
  const twice = `${insert}, ${row}`;
  expect((await refusal(twice)).message).toBe(message);
  expect((await refusal(`BEGIN; ${insert}; ${insert}; COMMIT`)).message).toBe(message);
  await engine.run(insert);
  expect((await refusal(insert)).message).toBe(message);
});

describe("a value that does not fit its column is refused by name", () => {
  const SHORT: readonly (readonly [string, string, string])[] = [
    [
      "INSERT INTO people (id, name, born) VALUES (2, 'a', '2025-01-01'), (3, 'b', '2025-13-01')",
      'Cannot create the date 2025-13-01: there is no such day in the calendar (column "born", row 2)',
      "'2025-13-01')",
    ],
    [
      "INSERT INTO people (id, name, code) VALUES (2, 'a', 'abcd')",
      'Cannot store "abcd" as character varying(3): it has 4 characters (column "code")',
      "'abcd')",
    ],
    [
      "INSERT INTO people (id, share, name) VALUES (2, 1234567, 'a')",
      'Cannot represent 1234567.00 as numeric(5,2): the value must be less than 10^3 in magnitude (column "share")',
      "1234567,",
    ],
    [
      "INSERT INTO people (id, name, j) VALUES (2, 'a', '{')",
      'Cannot read "{" as JSON: it ends too early (column "j")',
      "'{')",
    ],
    [
      "UPDATE people SET name = 'b', born = '2025-13-01' WHERE id = 1",
      'Cannot create the date 2025-13-01: there is no such day in the calendar (column "born")',
      "'2025-13-01'",
    ],
    [
      "UPDATE people SET (name, code) = (SELECT 'b', 'abcd') WHERE id = 1",
      'Cannot store "abcd" as character varying(3): it has 4 characters (column "code")',
      "SELECT",
    ],
    [
      "INSERT INTO people (id, name) VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET code = 'abcd'",
      'Cannot store "abcd" as character varying(3): it has 4 characters (column "code")',
      "'abcd'",
    ],
    [
      "UPDATE people SET small = 1, share = 7/(id-1) WHERE id = 1",
      'Cannot divide by zero (column "share")',
      "7/(id-1)",
    ],
    [
      "UPDATE people SET name = repeat('x', -1), (share, small) = (2, 7%(id-1))",
      'Cannot divide by zero (column "small")',
      "7%(id-1))",
    ],
    [
      "INSERT INTO people (id, name) VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET small = 7/(people.id-1)",
      'Cannot divide by zero (column "small")',
      "7/(people.id-1)",
    ],
    [
      "WITH t AS (SELECT 1) INSERT INTO people (id, name, small) VALUES (2, 'a', 99999)",
      'Cannot represent 99999 as smallint: it must fit in 16 bits (column "small")',
      "99999)",
    ],
  ];

  test.each(SHORT)(
    "a value that does not fit is refused by name in: %s",
    async (sql, message, at) => {
      expect(await refusal(sql)).toEqual({ message, at, hint: undefined });
      // The statement uses the cached plan, but its value is at a different position in the SQL.
      const { position } = (await engine.ask(`  ${sql}`, { namespace: "app" })).error ?? {};
      expect(`  ${sql}`.slice(position)).toStartWith(at);
      expect(await refusal(`${sql}; SELECT 1`)).toMatchObject({ message });
      const within = `EXPLAIN ANALYZE ${sql}`;
      const { error } = await engine.ask(within, { namespace: "app" });
      expect(error?.message).toBe(message);
      expect(within.slice(error?.position)).toStartWith(at);
    },
  );

  test("a value that does not fit is identified by its parameter", async () => {
    const insert = "INSERT INTO people (id, name, small) VALUES ($2, 'x', $1)";
    const message =
      'Cannot read "abc" as smallint: expected a whole number (column "small", parameter $1)';
    for (const sql of [insert, "UPDATE people SET small = $1 WHERE id = $2"]) {
      expect(await refusal(sql, { params: ["abc", 1] })).toMatchObject({ message });
    }
    expect(await refusal(insert, { params: [1, 123456789012] })).toEqual({
      message:
        'Cannot represent 123456789012 as integer: it must fit in 32 bits (column "id", parameter $2)',
      at: "$2,",
      hint: undefined,
    });
  });

  test("a value that does not fit is identified by its column if a query returns it", async () => {
    expect(
      await refusal("INSERT INTO people (id, name, small) SELECT 2, 'x', 99999"),
    ).toMatchObject({
      message: 'Cannot represent 99999 as smallint: it must fit in 16 bits (column "small")',
    });
    expect(
      await refusal("INSERT INTO people (name, id) SELECT 'x', id / (id - 1) FROM people"),
    ).toMatchObject({ message: 'Cannot divide by zero (column "id")' });
  });

  test("a value that does not fit is identified by its row in a long list", async () => {
    const rows = Array.from({ length: 3000 }, (_, i) => `(${i + 10}, 'é', 1)`);
    rows[2400] = "(2410, 'é', 99999)";
    const sql = `INSERT INTO people (id, name, small) VALUES ${rows.join(", ")}`;
    expect(await refusal(sql)).toEqual({
      message:
        'Cannot represent 99999 as smallint: it must fit in 16 bits (column "small", row 2401)',
      at: "99999),",
      hint: undefined,
    });
  });
});

describe("features that are not available yet are refused by name", () => {
  test.each([
    ["CREATE DATABASE x", "CREATE DATABASE", "CREATE NAMESPACE"],
    ["DROP DATABASE x", "DROP DATABASE", "DROP NAMESPACE"],
    ["DROP TABLESPACE x", "DROP TABLESPACE", "DROP STORAGE"],
  ])("%s is refused by name, with a hint", async (sql, construct, hint) => {
    const found = await refusal(sql);
    expect(found.message).toBe(`Cannot use ${construct}: it is not available yet`);
    expect(found.hint).toStartWith(hint);
  });
});

test.each([
  ["SELECT name, count(*) FROM people GROUP BY country", "name,"],
  ["SELECT max(name), name || 'x' FROM people GROUP BY country", "name"],
  ["SELECT * FROM people GROUP BY country", "*"],
  ["SELECT count(*) FROM people GROUP BY country HAVING small > 1", "small"],
  ["SELECT count(*) FROM people GROUP BY country ORDER BY country, small", "small"],
  ["SELECT DISTINCT ON (name) name FROM people ORDER BY country", "country"],
  ["SELECT DISTINCT ON (name, id) name FROM people ORDER BY name, country", "country"],
  ["SELECT DISTINCT name FROM people ORDER BY name, country", "country"],
])("INVALID_QUERY points at the expression at fault: %s", async (sql, at) => {
  expect((await refusal(sql)).at).toBe(at);
});

test.each([
  ["SELECT name FROM people ORDER BY 'name'", "ORDER BY"],
  ["SELECT name FROM people UNION SELECT 'x' ORDER BY 'name'", "ORDER BY"],
  ["SELECT count(*) FROM people GROUP BY 'name'", "GROUP BY"],
  ["SELECT DISTINCT ON ('name') name FROM people", "DISTINCT ON"],
])("INVALID_QUERY says which clause takes no constant: %s", async (sql, clause) => {
  const found = await refusal(sql);
  expect(found.message).toBe(
    `Cannot use a constant in ${clause}, except for the position of a column`,
  );
  expect(found.at).toStartWith("'name'");
});

test.each([
  ["SELECT uper('x')", "did you mean upper?"],
  ["SELECT strng_agg(name, ',') FROM people", "did you mean string_agg?"],
  ["SELECT row_numbr() OVER () FROM people", "did you mean row_number?"],
  ["SELECT * FROM generat_series(1, 2)", "did you mean generate_series?"],
  ["SELECT unnset(ARRAY[1])", "did you mean unnest?"],
  ["SELECT nothing_like_it(1)", undefined],
  ["SELECT upper(1, 2)", undefined],
])("FUNCTION_NOT_FOUND proposes the nearest name: %s", async (sql, hint) => {
  const found = await refusal(sql);
  expect(found.message).toStartWith("Cannot find function ");
  expect(found.hint).toBe(hint);
});

test.each([
  ["CREATE TABLE s (id INT PRIMARY KEY, a VECTOR(2)[])", "store each element in its own row"],
  [
    "CREATE TABLE s (id INT[] PRIMARY KEY)",
    "add a key column, such as id BIGINT DEFAULT SNOWFLAKE_ID()",
  ],
  [
    "WITH t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT * FROM t",
    'WITH RECURSIVE lets "t" read itself',
  ],
  ["WITH t AS (SELECT * FROM app.t) SELECT * FROM t", undefined],
  [
    "WITH t AS (SELECT * FROM nowhere_near) SELECT * FROM t",
    "Unqualified names refer to app, the current namespace",
  ],
  ["SELECT people.id FROM people p", 'in this query, the table is called "p"'],
  ["SELECT app.people.id FROM people p", 'in this query, the table is called "p"'],
  ["SELECT other.people.id FROM people p", undefined],
  ["SELECT strangers.id FROM people p", undefined],
  [
    'SELECT * FROM people WHERE name = "x"',
    "double quotes enclose names; write strings in single quotes",
  ],
  ['SELECT * FROM people WHERE "nane" = 1', 'did you mean "name"?'],
  ["SELECT * FROM people WHERE name = x", undefined],
  ["SHOW DATABASES", "to list the namespaces, use SHOW NAMESPACES"],
  ["SHOW users", "to list the users, run SELECT * FROM system.users"],
  ["SHOW nothing", "to list the settings, run SHOW ALL"],
])("the hint shows the way: %s", async (sql, hint) => {
  expect((await refusal(sql)).hint).toBe(hint);
});

test("a DEFAULT that differs in each row can be set once the rows have their values", async () => {
  await engine.run("CREATE TABLE app.grown (id INT PRIMARY KEY)");
  await engine.run("INSERT INTO app.grown VALUES (1), (2)");
  await engine.run("ALTER TABLE app.grown ADD COLUMN u UUID");
  await engine.run("UPDATE app.grown SET u = gen_random_uuid() WHERE true");
  await engine.run("ALTER TABLE app.grown ALTER COLUMN u SET DEFAULT gen_random_uuid()");
  await engine.run("INSERT INTO app.grown (id) VALUES (3)");
  expect(await engine.rows("SELECT count(DISTINCT u) FROM app.grown")).toEqual([[3]]);
});

test("PERMISSION_DENIED for a write names the role that may write to the table", async () => {
  await engine.run(`CREATE USER reader INTERNAL ROLE user;
    CREATE TABLE app.seen (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC');
    CREATE TABLE app.hidden (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'DBA')`);
  const principal = principalFor(engine.database, "reader");
  const messageOf = async (sql: string): Promise<string | undefined> =>
    (await engine.database.sql.execute(principal, { sql, params: [] })).error?.message;
  expect(await messageOf("INSERT INTO app.seen VALUES (1)")).toBe(
    "Cannot write to table app.seen: it is a SHARED table with ACCESS_LEVEL 'PUBLIC', " +
      "and writing to it requires the role service or higher, or ownership of the namespace",
  );
  expect(await messageOf("INSERT INTO app.hidden VALUES (1)")).toBe("Cannot find table app.hidden");
});

test("errors do not reveal the columns of a table that the caller may not use", async () => {
  await engine.run(
    "CREATE USER curious INTERNAL; CREATE NAMESPACE curious AUTHORIZATION curious;" +
      "CREATE TABLE app.wages (id INT PRIMARY KEY, wage_of_boss INT);" +
      "CREATE USER TABLE app.mine (id INT PRIMARY KEY)",
  );
  const principal = principalFor(engine.database, "curious");
  const asked = async (sql: string, caller = principal) =>
    (await engine.database.sql.execute(caller, { sql, params: [] })).error;
  for (const sql of [
    "SELECT wage_of_bos FROM app.wages",
    "SELECT id FROM app.mine WHERE EXISTS (SELECT wage_of_bos FROM app.wages)",
    "SELECT id FROM app.wages WHERE id = 'x'",
    "INSERT INTO app.wages VALUES (1, 2, 3)",
    "UPDATE app.wages SET wage_of_bos = 1",
    "DELETE FROM app.mine USING app.wages w WHERE w.wage_of_bos = 1",
    "CREATE VIEW curious.v AS SELECT wage_of_bos FROM app.wages",
    "SELECT nope FROM system.users",
    "SUBSCRIBE TO SELECT wage_of_bos FROM app.wages",
  ]) {
    const { code, hint, message } = (await asked(sql)) ?? {};
    expect(code, sql).toBe(sql.includes("system.users") ? "PERMISSION_DENIED" : "TABLE_NOT_FOUND");
    expect(`${message} ${hint}`).not.toContain("boss");
  }
  const allowed = await asked("SELECT wage_of_bos FROM app.wages", engine.principal);
  expect(allowed?.hint).toBe('did you mean "wage_of_boss"?');
  const acting = await asked(
    "EXECUTE AS USER curious (SELECT wage_of_bos FROM app.wages)",
    engine.principal,
  );
  expect(acting?.code).toBe("TABLE_NOT_FOUND");
});
