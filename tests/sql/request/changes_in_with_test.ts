/**
 * Tests WITH clauses that change rows: owners, transactions, foreign keys, long statements and
 * refusals, with rows read on the event loop and in a reader. The cases in `changes_in_with.slt`
 * have PostgreSQL's results.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { BATCH_ROWS_MAX } from "../../../src/base/limits.ts";
import { HeldReaders } from "../../support/held_readers.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

const MOVE =
  "WITH gone AS (DELETE FROM t RETURNING id, v) INSERT INTO moved SELECT id, v FROM gone RETURNING id";

describe.each([
  ["on the event loop", false],
  ["in a reader", true],
])("changes in WITH run %s", (_place, readsElsewhere) => {
  let engine: TestEngine;

  beforeAll(async () => {
    engine = await TestEngine.open({ readsElsewhere });
    await engine.run(
      "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE moved (id INT PRIMARY KEY, v INT);" +
        "CREATE TABLE late (id INT PRIMARY KEY, t_id INT REFERENCES t DEFERRABLE INITIALLY DEFERRED);" +
        "CREATE USER TABLE notes (id INT PRIMARY KEY, body TEXT);" +
        "CREATE STREAM TABLE seen (id INT) WITH (TTL_SECONDS = 60);" +
        "CREATE USER bob INTERNAL ROLE user",
    );
  });
  beforeEach(async () => {
    await engine.run(
      "TRUNCATE late, t, moved; TRUNCATE notes; INSERT INTO t VALUES (1, 10), (2, 20)",
    );
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  test("all changes in WITH are one commit, and last_seq is that of the commit", async () => {
    const [moved] = await engine.run(MOVE);
    expect(moved).toMatchObject({ rowCount: 2, rows: [[1], [2]] });
    const seqs = await engine.rows("SELECT _seq FROM moved ORDER BY id");
    expect(Number(moved?.lastSeq)).toBe(Number(seqs[1]?.[0]));
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[0]]);
  });

  test("a failure in any part leaves every table unchanged", async () => {
    await engine.run("INSERT INTO moved VALUES (2, 0)");
    expect(await engine.failure(MOVE)).toStartWith("DUPLICATE_KEY");
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[2]]);
    expect(await engine.rows("SELECT id FROM moved")).toEqual([[2]]);
  });

  test("changes in WITH of more rows than fit into one tick are also one commit", async () => {
    const rowCount = 2 * BATCH_ROWS_MAX + 10;
    await engine.run(`INSERT INTO t SELECT i, i FROM generate_series(3, ${rowCount}) AS g (i)`);
    const sums = await engine.rows(
      "WITH gone AS (DELETE FROM t RETURNING id, v), kept AS (INSERT INTO moved SELECT id, v FROM gone RETURNING v) SELECT count(*), sum(v) FROM kept",
    );
    expect(sums[0]?.[0]).toBe(rowCount);
    expect(await engine.rows("SELECT count(*) FROM moved")).toEqual([[rowCount]]);
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[0]]);
  });

  test("a long query after WITH returns all its rows", async () => {
    const rows = await engine.rows(
      "WITH gone AS (DELETE FROM t RETURNING v) SELECT g.i, gone.v FROM gone, generate_series(1, 9000) AS g (i)",
    );
    expect(rows).toHaveLength(18_000);
  });

  test("a transaction sees the changes afterwards, and ROLLBACK undoes them", async () => {
    const results = await engine.run(
      "BEGIN; INSERT INTO t VALUES (3, 30); WITH gone AS (DELETE FROM t WHERE id > 1 RETURNING id) SELECT count(*), (SELECT count(*) FROM t) FROM gone; SELECT count(*) FROM t; ROLLBACK",
    );
    expect(results[2]?.rows).toEqual([[2, 3]]);
    expect(results[3]?.rows).toEqual([[1]]);
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[2]]);
  });

  test("a rollback to a savepoint undoes all parts", async () => {
    await engine.run(`BEGIN; SAVEPOINT s; ${MOVE}; ROLLBACK TO s; COMMIT`);
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[2]]);
    expect(await engine.rows("SELECT count(*) FROM moved")).toEqual([[0]]);
  });

  test("each user changes only their own rows in a USER table", async () => {
    await engine.run("EXECUTE AS USER 'bob' (INSERT INTO notes VALUES (1, 'his'))");
    await engine.run("INSERT INTO notes VALUES (1, 'mine')");
    const deleted = "WITH gone AS (DELETE FROM notes RETURNING body) SELECT body FROM gone";
    expect(await engine.rows(`EXECUTE AS USER 'bob' (${deleted})`)).toEqual([["his"]]);
    expect(await engine.rows(deleted)).toEqual([["mine"]]);
  });

  test("a user who may not write to the table of one part is refused", async () => {
    expect(await engine.failure(`EXECUTE AS USER 'bob' (${MOVE})`)).toStartWith("TABLE_NOT_FOUND");
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[2]]);
  });

  test("a deferred foreign key is checked at the commit", async () => {
    const child = "WITH c AS (INSERT INTO late VALUES (1, 7) RETURNING id) SELECT id FROM c";
    expect(await engine.failure(child)).toStartWith("FOREIGN_KEY_VIOLATION");
    await engine.run(`BEGIN; ${child}; INSERT INTO t VALUES (7, 70); COMMIT`);
    expect(await engine.rows("SELECT * FROM late")).toEqual([[1, 7, expect.any(Number), false]]);
  });

  test("a prepared statement with parameters may have several parts", async () => {
    const rows = await engine.rows(
      "WITH up AS (UPDATE t SET v = v + $1 WHERE id = $2 RETURNING v) SELECT v FROM up",
      { params: [5, 2] },
    );
    expect(rows).toEqual([[25]]);
  });

  test.each([
    [
      "WITH a AS (UPDATE t SET v = 1), b AS (DELETE FROM t WHERE id = 1) SELECT 1",
      "CARDINALITY_VIOLATION@1",
    ],
    [
      "WITH a AS (UPDATE t SET v = 1 WHERE id = 1) DELETE FROM t WHERE id = 1",
      "CARDINALITY_VIOLATION@1",
    ],
    ["WITH a AS (INSERT INTO seen VALUES (1)) SELECT 1", "INVALID_OPERATION@1"],
    ["WITH a AS (DELETE FROM t) SELECT * FROM a", "INVALID_QUERY@1:40"],
    [
      "SELECT * FROM (WITH a AS (DELETE FROM t RETURNING id) SELECT * FROM a) AS x",
      "INVALID_QUERY@1:26",
    ],
    [
      "CREATE VIEW v AS WITH a AS (DELETE FROM t RETURNING id) SELECT * FROM a",
      "INVALID_QUERY@1:28",
    ],
    [
      "WITH a AS (DELETE FROM t RETURNING id) SELECT pg_sleep(1) FROM a",
      "UNSUPPORTED_FEATURE@1:46",
    ],
    ["BEGIN READ ONLY; WITH a AS (DELETE FROM t RETURNING id) SELECT 1", "INVALID_OPERATION@2"],
  ])("%s is refused, and nothing is changed", async (sql, failure) => {
    expect(await engine.failure(sql)).toBe(failure);
    expect(await engine.rows("SELECT id, v FROM t ORDER BY id")).toEqual([
      [1, 10],
      [2, 20],
    ]);
  });

  test("EXPLAIN shows each part", async () => {
    const lines = (await engine.rows(`EXPLAIN ${MOVE}`)).map(([line]) => String(line));
    expect(lines[0]).toBe("Parts");
    expect(lines).toContain("  Delete on default.t  (entry: gone)");
    expect(lines).toContain("  Insert on default.moved");
  });

  test("queries in VALUES, ON CONFLICT and RETURNING read rows of earlier parts", async () => {
    const rows = await engine.rows(
      "WITH a AS (INSERT INTO moved VALUES ((SELECT max(id) + 5 FROM t), 1) RETURNING id)," +
        " b AS (INSERT INTO t SELECT id - 5, 7 FROM a ON CONFLICT (id) DO UPDATE SET v = (SELECT sum(id) FROM a) + t.v" +
        " RETURNING id, v, (SELECT count(*) FROM a) AS n)" +
        " UPDATE t SET v = (SELECT max(v) FROM b) + 1 WHERE id = 1 RETURNING id, v, (SELECT n FROM b)",
    );
    expect(rows).toEqual([[1, 28, 1]]);
    expect(await engine.rows("SELECT id, v FROM t ORDER BY id")).toEqual([
      [1, 28],
      [2, 27],
    ]);
  });

  test("a part that returns no rows can be read by the next one", async () => {
    const rows = await engine.rows(
      "WITH none AS (DELETE FROM t WHERE id > 100 RETURNING id), all_set AS (UPDATE t SET v = 0 WHERE id NOT IN (SELECT id FROM none) RETURNING id)" +
        " SELECT (SELECT count(*) FROM none), (SELECT count(*) FROM all_set)",
    );
    expect(rows).toEqual([[0, 2]]);
  });
});

describe("a statement with changes in WITH uses one reader", () => {
  const setUp = async (heldReaders: HeldReaders): Promise<TestEngine> => {
    const own = await TestEngine.open({ heldReaders, readsElsewhere: true });
    await own.run(
      "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE moved (id INT PRIMARY KEY, v INT);" +
        "INSERT INTO t VALUES (1, 10), (2, 20)",
    );
    return own;
  };

  test("one reader serves the whole statement, which runs again if a row was changed meanwhile", async () => {
    const heldReaders = new HeldReaders();
    await using own = await setUp(heldReaders);
    const { jobCount } = heldReaders;
    heldReaders.hold();
    const moving = own.ask(MOVE);
    await until(() => heldReaders.jobCount > jobCount);
    expect(heldReaders.jobCount).toBe(jobCount + 1);
    await own.run("INSERT INTO t VALUES (1, 11) ON CONFLICT (id) DO UPDATE SET v = 11");
    heldReaders.release();
    expect((await moving).error).toBeUndefined();
    expect(await own.rows("SELECT id, v FROM moved ORDER BY id")).toEqual([
      [1, 11],
      [2, 20],
    ]);
    expect(await own.rows("SELECT count(*) FROM t")).toEqual([[0]]);
  });

  test("a reader that exits early ends the statement, which has changed nothing", async () => {
    const heldReaders = new HeldReaders();
    await using own = await setUp(heldReaders);
    const { jobCount } = heldReaders;
    heldReaders.hold();
    const moving = own.ask(MOVE);
    await until(() => heldReaders.jobCount > jobCount);
    heldReaders.failAll();
    expect((await moving).error?.code).toBe("INTERNAL_ERROR");
    heldReaders.release();
    expect(await own.rows("SELECT count(*) FROM t")).toEqual([[2]]);
  });

  test("a reader that cannot start leaves the statement to the event loop", async () => {
    const heldReaders = new HeldReaders();
    await using own = await setUp(heldReaders);
    heldReaders.isRefusing = true;
    expect(await own.rows(MOVE)).toEqual([[1], [2]]);
  });
});
