/**
 * Tests CREATE TABLE … AS and SELECT … INTO: the columns and rows of the new table. If the
 * statement fails, no trace of the table is left.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE USER ann INTERNAL ROLE user;" +
      "CREATE TABLE app.source (id INT PRIMARY KEY, t VARCHAR(5), n NUMERIC(7, 2), at DATE, list INT[]);" +
      "INSERT INTO app.source VALUES (1, 'a', 1.5, '2026-01-02', '{1,2}'), (2, 'b', NULL, NULL, NULL), (3, 'c', 3, NULL, NULL)",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const failureText = async (sql: string): Promise<string> => {
  const { error } = await engine.ask(sql);
  return error === undefined ? "succeeded" : `${error.code}: ${error.message}`;
};

const columnsOf = (table: string): Promise<readonly (readonly unknown[])[]> =>
  engine.rows(
    `SELECT column_name, data_type FROM system.columns WHERE table_name = '${table}' ORDER BY ordinal`,
  );

test("CREATE TABLE AS uses the names, types and rows of its query", async () => {
  const [result] = await engine.run(
    "CREATE TABLE app.copy AS SELECT *, 'x' AS word, NULL AS nothing, n * 2 AS twice FROM app.source WHERE id < 3",
  );
  expect(result).toMatchObject({ message: "Table app.copy created with 2 row(s)", rowCount: 2 });
  expect(result?.lastSeq).toBeNumber();
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    expect(await columnsOf("copy")).toEqual([
      ["id", "integer"],
      ["t", "character varying(5)"],
      ["n", "numeric(7,2)"],
      ["at", "date"],
      ["list", "integer[]"],
      ["word", "text"],
      ["nothing", "text"],
      ["twice", "numeric(17,2)"],
    ]);
    expect(
      await engine.printed("SELECT id, t, n, at, list, word, nothing FROM app.copy ORDER BY id"),
    ).toEqual([
      [1, "a", "1.50", 20_455, "{1,2}", "x", null],
      [2, "b", null, null, null, "x", null],
    ]);
  }
});

test("CREATE TABLE AS EXECUTE fills a table with the rows of a prepared query", async () => {
  const results = await engine.run(
    `PREPARE few (INT, TEXT) AS SELECT id, t || $2 AS word FROM app.source WHERE id < $1;
     CREATE TABLE app.executed AS EXECUTE few (3, '!');
     CREATE TABLE app.unfilled (nr) AS EXECUTE few (3, '?') WITH NO DATA;
     CREATE TABLE IF NOT EXISTS app.executed AS EXECUTE few (9, '?')`,
  );
  expect(results[1]).toMatchObject({
    message: "Table app.executed created with 2 row(s)",
    rowCount: 2,
  });
  expect(await engine.rows("SELECT id, word FROM app.executed ORDER BY id")).toEqual([
    [1, "a!"],
    [2, "b!"],
  ]);
  expect(await engine.rows("SELECT nr, word FROM app.unfilled")).toEqual([]);
});

test("CREATE TABLE AS accepts names, options, WITH NO DATA, IF NOT EXISTS and parameters", async () => {
  await engine.run(
    "CREATE USER TABLE IF NOT EXISTS app.named (a, b) WITH (FLUSH_POLICY = 'rows:10') AS VALUES (1, 'x', TRUE) WITH DATA",
  );
  expect(await engine.rows("SELECT a, b, column3 FROM app.named")).toEqual([[1, "x", true]]);
  expect(
    await engine.rows("SELECT table_type FROM system.tables WHERE table_name = 'named'"),
  ).toEqual([["USER"]]);
  const [again] = await engine.run("CREATE TABLE IF NOT EXISTS app.named AS SELECT 9 AS z");
  expect(again?.message).toBe("Table app.named already exists");
  expect(await engine.rows("SELECT count(*) FROM app.named")).toEqual([[1]]);
  await engine.run("CREATE TABLE app.bare AS TABLE app.source WITH NO DATA");
  expect(await columnsOf("bare")).toHaveLength(5);
  expect(await engine.rows("SELECT count(*) FROM app.bare")).toEqual([[0]]);
  await engine.run(
    "CREATE TABLE app.given AS SELECT id, $1::TEXT AS p FROM app.source WHERE id = $2",
    {
      params: ["hello", 3],
    },
  );
  expect(await engine.rows("SELECT id, p FROM app.given")).toEqual([[3, "hello"]]);
  await engine.run(
    "CREATE TABLE app.first AS SELECT 1 AS a; CREATE TABLE app.second AS SELECT a + 1 AS b FROM app.first; INSERT INTO app.second VALUES (7)",
  );
  expect(await engine.rows("SELECT b FROM app.second ORDER BY b")).toEqual([[2], [7]]);
});

test("SELECT INTO is equivalent to CREATE TABLE AS", async () => {
  const texts = [
    "SELECT id, t INTO app.into1 FROM app.source WHERE id < 3",
    "WITH s AS (SELECT id, t FROM app.source) SELECT * INTO TABLE app.into2 FROM s WHERE id < 3",
    "SELECT id, t INTO app.into3 FROM app.source WHERE id = 1 UNION ALL SELECT id, t FROM app.source WHERE id = 2 ORDER BY 1",
  ];
  for (const [i, sql] of texts.entries()) {
    await engine.run(sql);
    expect(await engine.rows(`SELECT id, t FROM app.into${i + 1} ORDER BY id`)).toEqual([
      [1, "a"],
      [2, "b"],
    ]);
  }
  const elsewhere = [
    "SELECT * FROM (SELECT 1 AS a INTO app.lost) x",
    "SELECT 1 AS a UNION SELECT 2 INTO app.lost",
    "INSERT INTO app.first SELECT 1 INTO app.lost",
    "SELECT (SELECT 1 INTO app.lost)",
    "EXPLAIN SELECT 1 AS a INTO app.lost",
  ];
  for (const sql of elsewhere) {
    expect([sql, await failureText(sql)]).toEqual([
      sql,
      expect.stringMatching(/^(INVALID|UNSUPPORTED)/),
    ]);
  }
  expect(await failureText("SELECT 1 AS a INTO TEMP lost")).toStartWith("TRANSACTION_REQUIRED");
  expect(engine.database.catalog.table("app", "lost")).toBeUndefined();
});

test("a failure leaves no table", async () => {
  const refused = {
    "CREATE TABLE app.copy AS SELECT 1 AS a": "ALREADY_EXISTS: Cannot create table app.copy",
    "CREATE TABLE app.none AS SELECT 1 AS a, 2 AS a":
      'INVALID_DEFINITION: Cannot define column "a" twice',
    "CREATE TABLE app.none (a, b) AS SELECT 1":
      "INVALID_QUERY: Cannot name 2 columns: the query returns only 1",
    "CREATE TABLE app.none AS SELECT _seq FROM app.source": "RESERVED_NAME",
    "CREATE TABLE app.none AS SELECT * FROM app.missing": "TABLE_NOT_FOUND",
    "CREATE TABLE missing.none AS SELECT 1 AS a": "NAMESPACE_NOT_FOUND",
    "CREATE TABLE app.none AS SELECT 1 / (id - 2) AS a FROM app.source": "DIVISION_BY_ZERO",
    "CREATE TABLE app.none (a INT) AS SELECT 1": "UNSUPPORTED_FEATURE",
    "CREATE TABLE app.none AS EXECUTE p": "OBJECT_NOT_FOUND",
    "PREPARE p AS DELETE FROM app.source; CREATE TABLE app.none AS EXECUTE p": "INVALID_OPERATION",
    "PREPARE p AS SELECT $1 AS a; CREATE TABLE app.none AS EXECUTE p": "INVALID_PARAMETER",
    "PREPARE p AS SELECT 1 / 0 AS a; CREATE TABLE app.none AS EXECUTE p": "DIVISION_BY_ZERO",
  };
  for (const [sql, text] of Object.entries(refused)) {
    expect([sql, await failureText(sql)]).toEqual([sql, expect.stringContaining(text)]);
  }
  engine.userId = "ann";
  try {
    expect(await failureText("CREATE TABLE app.none AS SELECT 1 AS a")).toStartWith(
      "PERMISSION_DENIED",
    );
  } finally {
    engine.userId = "root";
  }
  expect(engine.database.catalog.table("app", "none")).toBeUndefined();
});

test("many rows are stored with all their values", async () => {
  const [result] = await engine.run(
    "CREATE TABLE app.many AS SELECT g AS n, 'row ' || g AS t FROM generate_series(1, 30000) AS s (g)",
  );
  expect(result?.rowCount).toBe(30_000);
  expect(await engine.rows("SELECT count(*), sum(n), max(length(t)) FROM app.many")).toEqual([
    [30_000, 450_015_000, 9],
  ]);
});
