/**
 * Tests the rights of each role: the statements it may run, the users for whom it may act, and the
 * rows it sees.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

const USERS = ["root", "dora", "sam", "alice"] as const;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE USER dora INTERNAL ROLE dba; CREATE USER sam INTERNAL ROLE service; CREATE USER alice INTERNAL;" +
      "CREATE USER bob INTERNAL; CREATE USER gone INTERNAL; CREATE USER TABLE app.own (id INT PRIMARY KEY, v TEXT);" +
      "CREATE TABLE app.open (id INT PRIMARY KEY, v TEXT) WITH (ACCESS_LEVEL = 'PUBLIC'); INSERT INTO app.open VALUES (1, 'o');" +
      "CREATE TABLE app.closed (id INT PRIMARY KEY, v TEXT); CREATE TABLE app.dba (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'DBA');" +
      "CREATE NAMESPACE mine AUTHORIZATION alice; DROP USER gone",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  engine.userId = "root";
});

/**
 * Statements with their outcomes for root, dora (dba), sam (service) and alice (user). "" means
 * success; anything else is an error code.
 */
const MATRIX: readonly (readonly [string, readonly string[]])[] = [
  ["SELECT v FROM app.own", ["", "", "", ""]],
  ["SELECT v FROM app.open", ["", "", "", ""]],
  ["SELECT v FROM app.closed", ["", "", "", "TABLE_NOT_FOUND"]],
  ["SELECT NULL::app.own", ["", "", "", ""]],
  ["SELECT NULL::app.closed", ["", "", "", "UNSUPPORTED_TYPE"]],
  ["SELECT ('{}'::app.closed[])[1]", ["", "", "", "UNSUPPORTED_TYPE"]],
  ["SELECT id FROM app.dba", ["", "", "TABLE_NOT_FOUND", "TABLE_NOT_FOUND"]],
  ["SELECT 1 FROM app.own JOIN app.closed ON TRUE", ["", "", "", "TABLE_NOT_FOUND"]],
  ["SELECT 1 FROM (SELECT * FROM app.closed) q", ["", "", "", "TABLE_NOT_FOUND"]],
  ["INSERT INTO app.own SELECT id, v FROM app.closed", ["", "", "", "TABLE_NOT_FOUND"]],
  ["UPDATE app.open SET v = v", ["", "", "", "PERMISSION_DENIED"]],
  ["DELETE FROM app.closed WHERE FALSE", ["", "", "", "TABLE_NOT_FOUND"]],
  ["SELECT count(*) FROM system.users", ["", "", "PERMISSION_DENIED", "PERMISSION_DENIED"]],
  ["DESCRIBE app.closed", ["", "", "", "TABLE_NOT_FOUND"]],
  ["SHOW STATS FOR TABLE app.closed", ["", "", "", "TABLE_NOT_FOUND"]],
  ["SHOW ALL", ["", "", "PERMISSION_DENIED", "PERMISSION_DENIED"]],
  ["STORAGE FLUSH TABLE app.closed", ["", "", "", "PERMISSION_DENIED"]],
  ["ALTER TABLE app.own ADD COLUMN IF NOT EXISTS v TEXT", ["", "", "", "PERMISSION_DENIED"]],
  [
    "ALTER TABLE app.dba ADD COLUMN IF NOT EXISTS id INT",
    ["", "", "TABLE_NOT_FOUND", "PERMISSION_DENIED"],
  ],
  [
    "DROP TABLE IF EXISTS app.own, app.nope; SELECT 1",
    ["", "", "PERMISSION_DENIED", "PERMISSION_DENIED"],
  ],
  ["CREATE TABLE IF NOT EXISTS app.open (id INT PRIMARY KEY)", ["", "", "", "PERMISSION_DENIED"]],
  ["CREATE NAMESPACE IF NOT EXISTS app", ["", "", "PERMISSION_DENIED", "PERMISSION_DENIED"]],
  ["CREATE USER IF NOT EXISTS bob INTERNAL", ["", "", "", "PERMISSION_DENIED"]],
  [
    "EXECUTE AS USER 'root' (SELECT 1)",
    ["", "PERMISSION_DENIED", "PERMISSION_DENIED", "PERMISSION_DENIED"],
  ],
  ["EXECUTE AS USER 'dora' (SELECT 1)", ["", "", "PERMISSION_DENIED", "PERMISSION_DENIED"]],
  ["EXECUTE AS USER 'sam' (SELECT 1)", ["", "", "", "PERMISSION_DENIED"]],
  ["EXECUTE AS USER 'bob' (SELECT 1)", ["", "", "", "PERMISSION_DENIED"]],
  ["EXECUTE AS USER 'alice' (SELECT 1)", ["", "", "", ""]],
  [
    "EXECUTE AS USER 'never seen' (SELECT 1)",
    ["USER_NOT_FOUND", "USER_NOT_FOUND", "USER_NOT_FOUND", "PERMISSION_DENIED"],
  ],
  [
    "EXECUTE AS USER 'gone' (SELECT 1)",
    ["USER_NOT_FOUND", "USER_NOT_FOUND", "USER_NOT_FOUND", "USER_NOT_FOUND|PERMISSION_DENIED"],
  ],
];

describe("every role has exactly its rights", () => {
  test.each(MATRIX)("each role has its rights for: %s", async (sql, expected) => {
    // A DROP statement is checked but not run, so that its object remains for the next user.
    const check = sql.startsWith("DROP");
    for (const [i, userId] of USERS.entries()) {
      engine.userId = userId;
      const { error } = await engine.ask(sql, check ? { check } : {});
      expect(
        (expected[i] ?? "").split("|"),
        `${userId}: ${error?.message ?? "no error"}`,
      ).toContain(error?.code ?? "");
    }
  });

  test("the owner of a namespace may define and write in it, and nowhere else", async () => {
    engine.userId = "alice";
    await engine.run(
      "CREATE TABLE mine.t (id INT PRIMARY KEY); ALTER TABLE mine.t ADD COLUMN v INT; INSERT INTO mine.t VALUES (1, 1); DELETE FROM mine.t",
    );
    expect(await engine.rows("SELECT id FROM mine.t WHERE _deleted")).toEqual([[1]]);
    engine.userId = "bob";
    expect(await engine.failure("SELECT id FROM mine.t")).toStartWith("TABLE_NOT_FOUND");
    engine.userId = "alice";
    await engine.run("DROP TABLE mine.t");
  });
});

describe("EXECUTE AS runs with the rights of the named user", () => {
  test("EXECUTE AS reads and writes the rows of the named user, and the response says so", async () => {
    engine.userId = "sam";
    const [entry] = await engine.run(
      "EXECUTE AS USER 'bob' (INSERT INTO app.own VALUES (1, CURRENT_USER || SESSION_USER) RETURNING v)",
    );
    expect([entry?.rows, entry?.asUser]).toEqual([[["bobsam"]], "bob"]);
    expect(await engine.rows("SELECT v FROM app.own")).toEqual([]);
    expect(await engine.rows("EXECUTE AS 'bob' (SELECT v, CURRENT_ROLE FROM app.own)")).toEqual([
      ["bobsam", "user"],
    ]);
    engine.userId = "bob";
    expect(await engine.rows("SELECT v FROM app.own")).toEqual([["bobsam"]]);
  });

  test.each([
    ["EXECUTE AS USER 'bob' (SELECT v FROM app.closed)", "TABLE_NOT_FOUND@1:37"],
    ["EXECUTE AS USER 'dora' (SELECT id FROM app.dba)", "TABLE_NOT_FOUND@1:39"],
    ["EXECUTE AS USER 'bob' (INSERT INTO app.open VALUES (5, 'x'))", "SHARED_IMPERSONATION@1"],
    ["EXECUTE AS USER 'root' (DELETE FROM app.open)", "SHARED_IMPERSONATION@1"],
    ["EXECUTE AS USER 'bob' (SELECT * FROM system.users)", "PERMISSION_DENIED@1"],
    ["EXECUTE AS USER 'bob' (EXECUTE AS USER 'alice' (SELECT 1))", "INVALID_INPUT@1:23"],
    ["EXECUTE AS USER 'bob' (SELECT 1; SELECT 2)", "INVALID_INPUT@1:31"],
    ["EXECUTE AS USER 'bob' ()", "INVALID_INPUT@1:23"],
    ["EXECUTE AS USER 'bob' SELECT 1", "INVALID_INPUT@1:22"],
    ["EXECUTE AS USER 'bob' (BEGIN)", "PERMISSION_DENIED@1:23"],
    ["EXECUTE AS USER 'bob' (DROP TABLE app.own)", "PERMISSION_DENIED@1:23"],
    ["EXECUTE AS USER 'bob' (SHOW TABLES)", "PERMISSION_DENIED@1:23"],
  ])("%s: %s", async (sql, failure) => {
    expect(await engine.failure(sql)).toBe(failure);
  });

  test("EXECUTE AS in the same text refers to the rows of the user it names", async () => {
    for (const user of ["alice", "bob", "alice"]) {
      expect(await engine.rows(`EXECUTE AS USER '${user}' (SELECT CURRENT_USER)`)).toEqual([
        [user],
      ]);
    }
  });
});

describe("users see only objects that they may read", () => {
  test.each([
    ["SHOW TABLES IN app", 1],
    [
      "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 'app' ORDER BY 2",
      1,
    ],
  ])("%s lists only readable tables", async (sql, nameAt) => {
    const listed: Record<string, unknown> = {};
    for (const userId of USERS) {
      engine.userId = userId;
      listed[userId] = (await engine.rows(sql)).map((row) => row[nameAt]);
    }
    expect(listed).toEqual({
      root: ["closed", "dba", "open", "own"],
      dora: ["closed", "dba", "open", "own"],
      sam: ["closed", "open", "own"],
      alice: ["open", "own"],
    });
  });

  test("information_schema.columns reveals nothing about hidden tables", async () => {
    engine.userId = "alice";
    const sql =
      "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'app' ORDER BY 1";
    expect(await engine.rows(sql)).toEqual([["open"], ["own"]]);
  });

  test("SHOW NAMESPACES counts visible tables", async () => {
    engine.userId = "alice";
    const rows = await engine.rows("SHOW NAMESPACES");
    const counts = rows.map((row) => [row[0], row.at(-1)]).filter(([name]) => name === "app");
    expect(counts).toEqual([["app", 2]]);
  });
});

test("a table that the caller may not read is reported as missing", async () => {
  const asked = [
    "SELECT v FROM app.closed",
    "SELECT nope FROM app.closed",
    "SELECT closed.v FROM app.own, app.closed",
    "SELECT (SELECT max(id) FROM app.closed)",
    "WITH w AS (SELECT * FROM app.closed) SELECT * FROM w",
    "TABLE app.closed",
    "INSERT INTO app.closed VALUES (1, 'x')",
    "INSERT INTO app.own SELECT id, v FROM app.closed",
    "UPDATE app.closed SET v = 'x' WHERE id = 1",
    "UPDATE app.own SET v = c.v FROM app.closed c",
    "DELETE FROM app.closed WHERE id = 1",
    "DELETE FROM app.own USING app.closed",
    "SELECT * FROM app.over_closed",
    "SUBSCRIBE TO SELECT * FROM app.closed",
    "DESCRIBE app.closed",
    "SHOW COLUMNS FROM app.closed",
    "DESCRIBE app.over_closed",
    "SHOW STATS FOR TABLE app.closed",
    "EXPLAIN SELECT * FROM app.closed",
    "ALTER TABLE app.closed ADD COLUMN w INT",
    "ALTER TABLE IF EXISTS app.closed ADD COLUMN w INT",
    "ALTER TABLE app.over_closed ADD COLUMN w INT",
    "DROP TABLE app.closed",
    "DROP TABLE IF EXISTS app.closed",
    "DROP VIEW app.over_closed",
    "STORAGE FLUSH TABLE app.closed",
    "EXECUTE AS USER 'alice' (SELECT v FROM app.closed)",
  ];
  await engine.run("CREATE VIEW app.over_closed AS SELECT * FROM app.closed");
  // A plan cached for another caller must not reveal more rows.
  for (const sql of asked) if (/^SELECT|^TABLE|^WITH/.test(sql)) await engine.ask(sql);
  engine.userId = "alice";
  for (const sql of asked) {
    const { error } = await engine.ask(sql);
    const other = sql.replaceAll("closed", "absent");
    const { error: absent } = await engine.ask(other);
    expect([error?.code, error?.position, error?.hint], sql).toEqual([
      absent?.code,
      absent?.position,
      absent?.hint,
    ]);
    expect(error?.message.replaceAll("closed", "absent"), sql).toBe(absent?.message ?? "nothing");
  }
  engine.userId = "root";
  await engine.run("DROP VIEW app.over_closed");
});
