/**
 * Tests which faults in SQL the server finds before any statement of the request runs, and which
 * it finds only when a statement runs, because the statement depends on an earlier definition.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(`CREATE NAMESPACE app; CREATE SHARED TABLE app.t (id INT PRIMARY KEY, a INT);
    CREATE STREAM TABLE app.s (id INT) WITH (TTL_SECONDS = 60);
    CREATE VIEW app.v AS SELECT id FROM app.t`);
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => engine.run("DELETE FROM app.t"));

/** SQL faults. Each follows an INSERT, which must not have run. */
const FAULTS: readonly (readonly [string, string])[] = [
  ["SELECT * FROM app.missing", "TABLE_NOT_FOUND"],
  ["SELECT missing FROM app.t", "COLUMN_NOT_FOUND"],
  ["USE missing", "NAMESPACE_NOT_FOUND"],
  ["USE app; SELECT missing FROM t", "COLUMN_NOT_FOUND"],
  ["CREATE TABLE app.t (id INT PRIMARY KEY)", "ALREADY_EXISTS"],
  ["CREATE TABLE missing.t (id INT PRIMARY KEY)", "NAMESPACE_NOT_FOUND"],
  ["CREATE TABLE app.other (id NO_TYPE PRIMARY KEY)", "UNSUPPORTED_TYPE"],
  ["CREATE TABLE app.other (id INT PRIMARY KEY) WITH (NO_OPTION = 1)", "INVALID_OPTION"],
  ["ALTER TABLE app.missing ADD COLUMN b INT", "TABLE_NOT_FOUND"],
  ["ALTER TABLE app.t DROP COLUMN missing", "COLUMN_NOT_FOUND"],
  ["ALTER TABLE app.t DROP COLUMN id", "INVALID_OPERATION"],
  ["ALTER USER TABLE app.t ADD COLUMN b INT", "INVALID_OPERATION"],
  ["DROP TABLE app.missing", "TABLE_NOT_FOUND"],
  ["DROP TABLE app.t", "DEPENDENT_OBJECTS"],
  ["CREATE VIEW app.v AS SELECT 1 AS one", "ALREADY_EXISTS"],
  ["CREATE VIEW app.w AS SELECT missing FROM app.t", "COLUMN_NOT_FOUND"],
  ["CREATE OR REPLACE VIEW app.v AS SELECT * FROM app.v", "INVALID_DEFINITION"],
  ["DROP VIEW app.missing", "TABLE_NOT_FOUND"],
  ["CREATE NAMESPACE app", "ALREADY_EXISTS"],
  ["CREATE NAMESPACE fresh AUTHORIZATION nobody", "USER_NOT_FOUND"],
  ["ALTER NAMESPACE default OWNER TO root", "RESERVED_NAME"],
  ["DROP NAMESPACE app", "DEPENDENT_OBJECTS"],
  ["CREATE USER root INTERNAL", "ALREADY_EXISTS"],
  ["CREATE USER 'a/b' INTERNAL", "INVALID_NAME"],
  ["CREATE USER uma INTERNAL ROLE king", "INVALID_VALUE"],
  ["ALTER USER nobody SET EMAIL 'a@b'", "USER_NOT_FOUND"],
  ["ALTER USER root SET ROLE user", "INVALID_OPERATION"],
  ["DROP USER nobody", "USER_NOT_FOUND"],
  ["DROP USER root", "INVALID_OPERATION"],
  ["DESCRIBE app.missing", "TABLE_NOT_FOUND"],
  ["SHOW STATS FOR TABLE app.missing", "TABLE_NOT_FOUND"],
  ["SHOW TABLES IN missing", "NAMESPACE_NOT_FOUND"],
  ["SHOW missing", "OBJECT_NOT_FOUND"],
  ["STORAGE FLUSH TABLE app.missing", "TABLE_NOT_FOUND"],
  ["STORAGE COMPACT TABLE app.s", "INVALID_OPERATION"],
  ["SUBSCRIBE TO app.missing", "TABLE_NOT_FOUND"],
  ["EXPLAIN SUBSCRIBE TO app.missing", "TABLE_NOT_FOUND"],
  // These statements follow a definition without using it.
  ...(
    [
      ["SELECT * FROM app.missing", "TABLE_NOT_FOUND"],
      ["SELECT * FROM default.unused", "TABLE_NOT_FOUND"],
      ["SELECT unused FROM app.t", "COLUMN_NOT_FOUND"],
      ["SELECT unused(1)", "FUNCTION_NOT_FOUND"],
      ["USE unused", "NAMESPACE_NOT_FOUND"],
      ["SHOW TABLES IN unused", "NAMESPACE_NOT_FOUND"],
      ["SHOW unused", "OBJECT_NOT_FOUND"],
      ["ALTER NAMESPACE unused OWNER TO root", "NAMESPACE_NOT_FOUND"],
      ["DROP USER unused", "USER_NOT_FOUND"],
      ["DROP USER root", "INVALID_OPERATION"],
      ["EXECUTE AS root (DROP USER unused)", "PERMISSION_DENIED"],
      ["CREATE TABLE app.other (id NO_TYPE PRIMARY KEY)", "UNSUPPORTED_TYPE"],
      ["ALTER TABLE app.t DROP COLUMN missing", "COLUMN_NOT_FOUND"],
      ["DROP TABLE app.missing", "TABLE_NOT_FOUND"],
      ["CREATE NAMESPACE app", "ALREADY_EXISTS"],
    ] as const
  ).map(([sql, code]): readonly [string, string] => [
    `CREATE TABLE app.unused (id INT PRIMARY KEY); ${sql}`,
    code,
  ]),
  ["CREATE USER unused INTERNAL; USE unused", "NAMESPACE_NOT_FOUND"],
  ["CREATE NAMESPACE unused; SELECT * FROM app.unused", "TABLE_NOT_FOUND"],
];

test.each(FAULTS)("%s is found before anything runs", async (sql, code) => {
  const { error, results } = await engine.ask(`INSERT INTO app.t VALUES (1, 1); ${sql}`);
  expect(error?.code).toBe(code as NonNullable<typeof error>["code"]);
  expect(results).toEqual([]);
  expect(await engine.rows("SELECT * FROM app.t")).toEqual([]);
  expect(await engine.rows("SELECT * FROM system.tables WHERE table_name = 'unused'")).toEqual([]);
});

test.each([
  [
    "a table",
    "CREATE TABLE app.n (id INT PRIMARY KEY); INSERT INTO app.n VALUES (1); DROP TABLE app.n",
  ],
  [
    "a namespace",
    "CREATE NAMESPACE n; USE n; CREATE TABLE m (id INT PRIMARY KEY); SELECT * FROM m; DROP NAMESPACE n CASCADE",
  ],
  [
    "a column",
    "ALTER TABLE app.t ADD COLUMN b INT; UPDATE app.t SET b = 1; ALTER TABLE app.t DROP COLUMN b",
  ],
  [
    "a type",
    "CREATE TABLE app.n (id INT PRIMARY KEY, f INT); ALTER TABLE app.n DROP COLUMN f; " +
      "ALTER TABLE app.n ADD COLUMN f BOOLEAN; INSERT INTO app.n VALUES (1, TRUE); DROP TABLE app.n",
  ],
  ["a view", "DROP VIEW app.v; CREATE VIEW app.v AS SELECT id, a FROM app.t; SELECT a FROM app.v"],
  [
    "what is dropped before",
    "DROP VIEW app.v; ALTER TABLE app.t DROP COLUMN a; ALTER TABLE app.t ADD COLUMN a INT; " +
      "CREATE VIEW app.v AS SELECT id FROM app.t",
  ],
  [
    "what CASCADE drops before",
    "CREATE VIEW app.w AS SELECT id FROM app.v; DROP VIEW app.v CASCADE; " +
      "CREATE VIEW app.v AS SELECT a FROM app.t; CREATE VIEW app.w AS SELECT a FROM app.v; " +
      "ALTER TABLE app.t DROP COLUMN a CASCADE; ALTER TABLE app.t ADD COLUMN a INT; " +
      "CREATE VIEW app.v AS SELECT id FROM app.t",
  ],
  [
    "a namespace whose tables are dropped",
    "CREATE NAMESPACE n; CREATE TABLE n.m (id INT PRIMARY KEY); DROP TABLE n.m; DROP NAMESPACE n",
  ],
  [
    "the owner of a namespace",
    "CREATE USER uma INTERNAL; CREATE NAMESPACE n AUTHORIZATION uma; DROP NAMESPACE n; DROP USER uma",
  ],
  [
    "a user",
    "CREATE USER uma INTERNAL; DROP USER uma; CREATE USER uma INTERNAL; EXECUTE AS uma (SELECT 1)",
  ],
])("a statement that depends on %s that is defined before is bound at its turn", async (_, sql) => {
  const { error } = await engine.ask(sql);
  expect(error?.message).toBeUndefined();
});

test("a column whose type was changed by an earlier statement is written with the new type", async () => {
  await engine.run("CREATE TABLE app.typed (id INT PRIMARY KEY, f INT)");
  const text = "ALTER TABLE app.typed DROP COLUMN f, ADD COLUMN g BOOLEAN";
  expect(await engine.failure(`INSERT INTO app.typed VALUES (1, TRUE); ${text}`)).toStartWith(
    "TYPE_MISMATCH@1",
  );
  await engine.run(`${text}; INSERT INTO app.typed VALUES (1, TRUE)`);
  expect(await engine.rows("SELECT g FROM app.typed")).toEqual([[true]]);
});

test("EXECUTE AS reads a table to which an earlier definition gives the user access", async () => {
  await engine.run(`CREATE USER una INTERNAL; INSERT INTO app.t VALUES (1, 1);
    ALTER TABLE app.t SET (ACCESS_LEVEL = 'PRIVATE')`);
  const read = "EXECUTE AS una (SELECT a FROM app.t)";
  const other = "CREATE TABLE app.unused (id INT PRIMARY KEY)";
  for (const [refused, code] of [
    [read, "TABLE_NOT_FOUND@2"],
    ["EXECUTE AS una (DROP TABLE app.unused)", "PERMISSION_DENIED@2"],
  ] as const) {
    expect(await engine.failure(`${other}; ${refused}`)).toStartWith(code);
  }
  expect(await engine.rows(`ALTER TABLE app.t SET (ACCESS_LEVEL = 'PUBLIC'); ${read}`)).toEqual([
    [1],
  ]);
  // A statement on a table that has become inaccessible is refused when it runs.
  const closes = "ALTER TABLE app.t SET (ACCESS_LEVEL = 'PRIVATE')";
  expect(await engine.failure(`${closes}; ${read}`)).toStartWith("TABLE_NOT_FOUND@2");
  await engine.run("CREATE USER sam INTERNAL ROLE service; CREATE USER dan INTERNAL ROLE dba");
  engine.userId = "sam";
  expect(await engine.failure(`${closes}; EXECUTE AS dan (SELECT a FROM app.t)`)).toStartWith(
    "PERMISSION_DENIED@2",
  );
  engine.userId = "root";
  expect(await engine.rows("SELECT * FROM system.tables WHERE table_name = 'unused'")).toEqual([]);
  await engine.run("ALTER TABLE app.t SET (ACCESS_LEVEL = 'PRIVATE')");
});

test("statements change nothing if a later statement in the text may not be run by the caller", async () => {
  await engine.run("CREATE USER dora INTERNAL ROLE dba");
  engine.userId = "dora";
  const text = "INSERT INTO app.t VALUES (1, 1); ALTER USER root SET EMAIL 'd@x'";
  expect(await engine.failure(text)).toStartWith("PERMISSION_DENIED@2");
  engine.userId = "root";
  expect(await engine.rows("SELECT * FROM app.t")).toEqual([]);
});

test("check mode reports why a definition is refused", async () => {
  expect(await engine.failure("DROP TABLE app.missing", { check: true })).toStartWith(
    "TABLE_NOT_FOUND",
  );
  expect(
    await engine.run("CREATE TABLE app.other (id INT PRIMARY KEY)", { check: true }),
  ).toMatchObject([{ message: "checked" }]);
  expect(await engine.failure("SELECT * FROM app.other")).toStartWith("TABLE_NOT_FOUND");
});
