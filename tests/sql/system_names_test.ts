/**
 * Tests statements that name objects in `system` and `information_schema`: a caller who may read
 * an object can describe it, but nobody can create, change or drop one.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY)");
  await engine.run("CREATE USER uma INTERNAL");
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  engine.userId = "root";
});

async function told(sql: string, namespace = "app"): Promise<string> {
  const { error } = await engine.ask(sql, { namespace });
  return error === undefined ? "" : `${error.code}: ${error.message} | ${error.hint ?? ""}`;
}

test.each([
  "DESCRIBE system.users",
  "DESC TABLE system.users HISTORY",
  "SHOW COLUMNS FROM system.users",
  "USE system; DESCRIBE users",
])("%s describes the columns that SELECT returns", async (sql) => {
  const [result] = (await engine.run("SELECT * FROM system.users")).slice(-1);
  const rows = await engine.rows(sql);
  expect(rows.map(([name, ordinal]) => [name, ordinal])).toEqual(
    (result?.schema ?? []).map(({ name }, i) => [name, i + 1]),
  );
  expect(rows[0]?.[3]).toBe("text");
});

test("users can describe and list only the readable parts of the system", async () => {
  engine.userId = "uma";
  expect(await engine.rows("DESCRIBE system.my_account")).toHaveLength(11);
  expect(await engine.rows("DESCRIBE information_schema.tables")).toHaveLength(5);
  expect(await told("DESCRIBE system.users")).toStartWith("PERMISSION_DENIED");
  const listed = await engine.rows("SHOW TABLES IN system");
  expect(listed.map((row) => [row[1], row[3]])).toEqual([
    ["indexes", "SYSTEM"],
    ["materialized_views", "SYSTEM"],
    ["my_account", "SYSTEM"],
    ["my_connections", "SYSTEM"],
    ["my_files", "SYSTEM"],
    ["my_jobs", "SYSTEM"],
    ["my_live", "SYSTEM"],
  ]);
  engine.userId = "root";
  expect((await engine.rows("SHOW TABLES IN system")).length).toBeGreaterThan(listed.length);
  expect(await engine.rows("SHOW TABLES IN information_schema")).toHaveLength(12);
  const all = await engine.rows("SHOW TABLES");
  expect(all.filter((row) => row[3] !== "SYSTEM")).toHaveLength(1);
  for (const namespace of ["system", "information_schema"]) {
    const within = await engine.rows(`SHOW TABLES IN ${namespace}`);
    expect(all.filter((row) => row[2] === namespace)).toEqual([...within]);
  }
});

test("after USE of a system namespace, unqualified names refer to it", async () => {
  expect(await engine.rows("USE system; SELECT user_id FROM users WHERE user_id = 'uma'")).toEqual([
    ["uma"],
  ]);
  expect(await told("USE system; CREATE TABLE t (id INT PRIMARY KEY)")).toStartWith(
    "RESERVED_NAME",
  );
});

test.each([
  ["DROP TABLE system.users", "drop"],
  ["DROP TABLE IF EXISTS system.users", "drop"],
  ["DROP VIEW system.users", "drop"],
  ["DROP VIEW IF EXISTS app.v, system.users", "drop"],
  ["ALTER TABLE system.users ADD COLUMN x INT", "alter"],
  ["ALTER TABLE IF EXISTS system.users ADD COLUMN x INT", "alter"],
  ["STORAGE FLUSH TABLE system.users", "flush"],
  ["STORAGE COMPACT TABLE system.users", "compact"],
  ["SHOW STATS FOR TABLE system.users", "show stats of"],
])("%s is refused", async (sql, action) => {
  expect(await told(sql)).toBe(
    `READ_ONLY_OBJECT: Cannot ${action} system.users: it is a system view | `,
  );
});

test.each([
  "DESCRIBE system.user",
  "SHOW STATS FOR TABLE system.user",
  "DROP TABLE system.user",
  "DROP VIEW system.user",
  "ALTER TABLE system.user ADD COLUMN x INT",
  "STORAGE FLUSH TABLE system.user",
])("%s suggests the probable intention", async (sql) => {
  expect(await told(sql)).toBe(
    "TABLE_NOT_FOUND: Cannot find system view system.user | did you mean system.users?",
  );
});

test("IF EXISTS ignores names that the system does not contain", async () => {
  for (const sql of [
    "DROP TABLE IF EXISTS system.user",
    "DROP VIEW IF EXISTS information_schema.user",
    "ALTER TABLE IF EXISTS system.user ADD COLUMN x INT",
  ]) {
    expect((await engine.run(sql))[0]?.message, sql).toEndWith("does not exist");
  }
});

test.each([
  ["CREATE TABLE system.t (id INT PRIMARY KEY)", "system"],
  ["CREATE TABLE pg_catalog.t (id INT PRIMARY KEY)", "pg_catalog"],
  ["CREATE VIEW information_schema.v AS SELECT 1 AS one", "information_schema"],
  ["CREATE OR REPLACE VIEW system.users AS SELECT 1 AS one", "system"],
])("%s is refused", async (sql, namespace) => {
  expect(await told(sql)).toBe(
    `RESERVED_NAME: Cannot create anything in namespace ${namespace}: this namespace is reserved for the server | `,
  );
});

test("a missing namespace of the request is reported as missing", async () => {
  for (const sql of ["SELECT * FROM t", "DROP TABLE t", "DROP VIEW t", "DESCRIBE t"]) {
    expect(await told(sql, "nowhere"), sql).toStartWith(
      "NAMESPACE_NOT_FOUND: Cannot find namespace nowhere",
    );
  }
});
