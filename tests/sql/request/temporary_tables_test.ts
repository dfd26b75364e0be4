/**
 * Tests temporary and unlogged tables, and temporary views and sequences. A temporary object exists
 * only in the transaction that creates it, and leaves nothing behind.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE TABLE kept (id INT PRIMARY KEY, word TEXT)");
});
afterAll(() => engine[Symbol.asyncDispose]());

const failureText = async (sql: string): Promise<string> => {
  const { error } = await engine.ask(sql);
  return error === undefined ? "succeeded" : `${error.code}: ${error.message}`;
};

const MADE = "CREATE TEMP TABLE picked (id SERIAL PRIMARY KEY, word TEXT UNIQUE) ON COMMIT DROP";

test("a temporary table serves its transaction, and only the other rows are committed", async () => {
  const { version } = engine.database.catalog;
  const results = await engine.run(
    `BEGIN; ${MADE}; INSERT INTO picked (word) VALUES ('a'), ('b') RETURNING id;
     CREATE INDEX picked_upper ON picked (upper(word));
     UPDATE picked SET word = 'c' WHERE word = 'b'; SELECT word FROM picked WHERE upper(word) = 'C';
     INSERT INTO kept SELECT id, word FROM picked; COMMIT; SELECT id, word FROM kept ORDER BY id`,
  );
  expect(results[2]?.rows).toEqual([[1], [2]]);
  expect(results[5]?.rows?.map(([word]) => word)).toEqual(["c"]);
  expect(results[7]?.lastSeq).toBeNumber();
  expect(results[8]?.rows?.map(([id, word]) => [id, word])).toEqual([
    [1, "a"],
    [2, "c"],
  ]);
  // A temporary table publishes no definition, so the transaction cannot conflict with
  // transactions that change definitions.
  expect(engine.database.catalog.version).toBe(version);
  expect(await failureText("SELECT * FROM picked")).toStartWith("TABLE_NOT_FOUND");
  await engine.restart();
  expect(await failureText("SELECT * FROM picked")).toStartWith("TABLE_NOT_FOUND");
  expect(await engine.rows("SELECT count(*) FROM kept")).toEqual([[2]]);
});

test("CREATE TEMP TABLE AS and SELECT INTO TEMP keep rows of a query, also beside definitions that last", async () => {
  const results = await engine.run(
    `BEGIN; CREATE TEMPORARY TABLE few ON COMMIT DELETE ROWS AS SELECT id FROM kept WHERE id < 2;
     SELECT id + 1 AS more INTO TEMP later FROM few; CREATE TABLE lasting AS SELECT more FROM later;
     CREATE VIEW over_few AS SELECT id FROM few; SELECT id FROM over_few; COMMIT`,
  );
  expect(results[5]?.rows).toEqual([[1]]);
  expect(await engine.rows("SELECT more FROM lasting")).toEqual([[2]]);
  for (const name of ["few", "later", "over_few"]) {
    expect(await failureText(`SELECT * FROM ${name}`)).toStartWith("TABLE_NOT_FOUND");
  }
  await engine.run("DROP TABLE lasting");
});

test("transactions with temporary tables of one name run beside each other", async () => {
  const { sql } = engine.database;
  const requests = ["x", "y", "z"].map(async (word, i) =>
    sql.execute(engine.principal, {
      sql: `BEGIN; ${MADE}; INSERT INTO picked (word) VALUES ('${word}'); INSERT INTO kept SELECT ${10 + i}, word FROM picked; COMMIT`,
      params: [],
    }),
  );
  for (const { error } of await Promise.all(requests)) expect(error).toBeUndefined();
  expect(await engine.rows("SELECT count(*) FROM kept WHERE id >= 10")).toEqual([[3]]);
});

test("a temporary table ends with ROLLBACK and ROLLBACK TO, and is refused where it would not last", async () => {
  await engine.run(
    `BEGIN; ${MADE}; ROLLBACK; BEGIN; SAVEPOINT s; ${MADE}; ROLLBACK TO s; ${MADE}; COMMIT`,
  );
  expect(await failureText(MADE)).toBe(
    "TRANSACTION_REQUIRED: Cannot create temporary table picked: no transaction is open, so the table would be dropped at the end of this statement",
  );
  expect(await failureText("CREATE TEMP TABLE t (a INT) ON COMMIT PRESERVE ROWS")).toStartWith(
    "UNSUPPORTED_FEATURE",
  );
  expect(await failureText("CREATE TABLE t (a INT) ON COMMIT DROP")).toStartWith(
    "UNSUPPORTED_FEATURE",
  );
  expect(await failureText("BEGIN; CREATE TEMP TABLE kept (a INT); COMMIT")).toStartWith(
    "ALREADY_EXISTS",
  );
  const refers = "cannot reference each other";
  expect(await failureText(`BEGIN; CREATE TEMP TABLE t (a INT REFERENCES kept); COMMIT`)).toContain(
    refers,
  );
  expect(
    await failureText(`BEGIN; ${MADE}; CREATE TABLE t (a INT REFERENCES picked); COMMIT`),
  ).toContain(refers);
  expect(
    await failureText(`BEGIN; ${MADE}; CREATE MATERIALIZED VIEW m AS TABLE picked; COMMIT`),
  ).toContain("its query reads a temporary table");
});

test("an UNLOGGED table is an ordinary one", async () => {
  await engine.run("CREATE UNLOGGED TABLE fast (a INT); INSERT INTO fast VALUES (1)");
  await engine.run("SELECT a + 1 AS b INTO UNLOGGED TABLE faster FROM fast");
  await engine.restart();
  expect(await engine.rows("SELECT a, b FROM fast, faster")).toEqual([[1, 2]]);
});

test("temporary views and sequences serve their transaction, and publish nothing", async () => {
  const { version } = engine.database.catalog;
  const results = await engine.run(
    `BEGIN; CREATE TEMP VIEW few AS SELECT id, word FROM kept WHERE id < 100;
     CREATE LOCAL TEMPORARY SEQUENCE counting START 100; CREATE TEMP RECURSIVE VIEW upto (n) AS
       SELECT 1 UNION ALL SELECT n + 1 FROM upto WHERE n < 3;
     CREATE OR REPLACE TEMP VIEW few AS SELECT id, word, id + 1 AS next FROM kept WHERE id < 200;
     INSERT INTO few (id, word) VALUES (nextval('counting'), 'made');
     SELECT next, currval('counting') FROM few WHERE id = 100; SELECT count(*) FROM upto; COMMIT`,
  );
  expect(results[6]?.rows).toEqual([[101, 100]]);
  expect(results[7]?.rows).toEqual([[3]]);
  expect(engine.database.catalog.version).toBe(version);
  for (const name of ["few", "upto"]) {
    expect(await failureText(`SELECT * FROM ${name}`)).toStartWith("TABLE_NOT_FOUND");
  }
  expect(await failureText("SELECT nextval('counting')")).toStartWith("OBJECT_NOT_FOUND");
  await engine.restart();
  expect(await engine.rows("SELECT word FROM kept WHERE id = 100")).toEqual([["made"]]);
});

test("what depends on a temporary view or sequence ends with it, beside definitions that last", async () => {
  await engine.run(
    `BEGIN; CREATE TEMP SEQUENCE counting; CREATE TEMP VIEW few AS SELECT id FROM kept;
     CREATE VIEW over_few AS SELECT id FROM few;
     CREATE TABLE numbered (id INT PRIMARY KEY DEFAULT nextval('counting'), word TEXT);
     INSERT INTO numbered (word) VALUES ('a'), ('b'); COMMIT`,
  );
  expect(await engine.rows("SELECT id, word FROM numbered ORDER BY id")).toEqual([
    [1, "a"],
    [2, "b"],
  ]);
  expect(await failureText("SELECT id FROM over_few")).toStartWith("TABLE_NOT_FOUND");
  expect(await failureText("INSERT INTO numbered (word) VALUES ('c')")).toStartWith("NOT_NULL");
  await engine.restart();
  expect(await engine.rows("SELECT count(*) FROM numbered")).toEqual([[2]]);
  await engine.run("DROP TABLE numbered");
});

test.each([
  ["CREATE TEMP VIEW few AS SELECT 1 AS one", "TRANSACTION_REQUIRED"],
  ["CREATE TEMPORARY SEQUENCE counting", "TRANSACTION_REQUIRED"],
  ["BEGIN; CREATE TEMP VIEW kept AS SELECT 1 AS one", "ALREADY_EXISTS"],
  [
    "BEGIN; CREATE VIEW a AS SELECT 1 AS one; CREATE OR REPLACE TEMP VIEW a AS SELECT 1 AS one",
    "ALREADY_EXISTS",
  ],
  ["CREATE SCHEMA s CREATE TEMP VIEW v AS SELECT 1 AS one", "INVALID_DEFINITION"],
])("%s is refused", async (sql, code) => {
  expect(await failureText(sql)).toStartWith(code);
});
