/**
 * Tests OWNER TO and CREATE EXTENSION as they occur in dumps. They succeed if the requested state
 * already holds, and fail with a message if it does not.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE USER ann INTERNAL; CREATE USER bob INTERNAL; CREATE NAMESPACE app AUTHORIZATION ann;" +
      "CREATE TABLE app.people (id INT PRIMARY KEY); CREATE SEQUENCE app.numbers;" +
      "CREATE VIEW app.ids AS SELECT id FROM app.people",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  engine.userId = "root";
});

test.each([
  [
    "ALTER TABLE app.people OWNER TO ann",
    "Table app.people already belongs to ann, the owner of namespace app",
  ],
  [
    "ALTER TABLE ONLY app.people OWNER TO 'ann'",
    "Table app.people already belongs to ann, the owner of namespace app",
  ],
  [
    "ALTER TABLE app.numbers OWNER TO ann",
    "Sequence app.numbers already belongs to ann, the owner of namespace app",
  ],
  [
    "ALTER SEQUENCE app.numbers OWNER TO ann",
    "Sequence app.numbers already belongs to ann, the owner of namespace app",
  ],
  [
    "ALTER VIEW app.ids OWNER TO ann",
    "View app.ids already belongs to ann, the owner of namespace app",
  ],
  [
    "ALTER TABLE app.ids OWNER TO ann",
    "View app.ids already belongs to ann, the owner of namespace app",
  ],
  [
    "ALTER TABLE app.people OWNER TO CURRENT_USER",
    "Table app.people belongs to namespace app; root may alter it",
  ],
  ["ALTER TABLE IF EXISTS app.gone OWNER TO ann", "Table app.gone does not exist"],
  [
    'CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA public',
    "Extension uuid-ossp: uuid_generate_v4() is built in; some of its functions may not exist",
  ],
  [
    "CREATE EXTENSION pgcrypto",
    "Extension pgcrypto: gen_random_uuid() is built in; some of its functions may not exist",
  ],
])("%s says what is so", async (sql, message) => {
  const [result] = await engine.run(sql);
  expect(result?.message).toBe(message);
});

test.each([
  [
    "ALTER TABLE app.people OWNER TO bob",
    "UNSUPPORTED_FEATURE",
    "Cannot make bob the owner of app.people: the owner of a table is always the owner of its namespace, which ann owns",
    "ALTER NAMESPACE app OWNER TO bob",
  ],
  ["ALTER TABLE app.people OWNER TO postgres", "USER_NOT_FOUND", "postgres", "--no-owner"],
  ["ALTER TABLE app.gone OWNER TO ann", "TABLE_NOT_FOUND", "app.gone", ""],
  ["ALTER VIEW app.people OWNER TO ann", "INVALID_OPERATION", "it is a table", "ALTER TABLE"],
  ["ALTER SEQUENCE app.number OWNER TO ann", "OBJECT_NOT_FOUND", "app.number", "app.numbers"],
  ["GRANT SELECT ON app.people TO bob", "UNSUPPORTED_FEATURE", "GRANT", "SET ACCESS LEVEL"],
  ["REVOKE ALL ON SCHEMA app FROM PUBLIC", "UNSUPPORTED_FEATURE", "REVOKE", "--no-privileges"],
  [
    "ALTER DEFAULT PRIVILEGES FOR ROLE ann IN SCHEMA app GRANT SELECT ON TABLES TO bob",
    "UNSUPPORTED_FEATURE",
    "ALTER DEFAULT PRIVILEGES",
    "--no-privileges",
  ],
  [
    "CREATE EXTENSION IF NOT EXISTS plpgsql",
    "UNSUPPORTED_FEATURE",
    "plpgsql",
    "remove the statement",
  ],
  [
    "CREATE EXTENSION pgcrypto VERSION '1.3'",
    "UNSUPPORTED_FEATURE",
    "VERSION",
    "remove the version",
  ],
])("%s is refused", async (sql, code, message, hint) => {
  const { error } = await engine.ask(sql);
  expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
  expect(error?.hint ?? "").toContain(hint);
});

test("only those who may alter an object may name its owner", async () => {
  engine.userId = "bob";
  for (const object of ["TABLE app.people", "VIEW app.ids", "SEQUENCE app.numbers"]) {
    const { error } = await engine.ask(`ALTER ${object} OWNER TO bob`);
    expect([object, error?.code]).toEqual([object, "PERMISSION_DENIED"]);
  }
});

test("a dump may create a table and name its owner in one text", async () => {
  await engine.run(
    "CREATE TABLE app.later (id INT PRIMARY KEY); ALTER TABLE app.later OWNER TO ann",
  );
  expect(await engine.rows("SELECT count(*) FROM app.later")).toEqual([[0]]);
});
