/**
 * Tests SELECT … FOR UPDATE and its variants. Covers commits that fail because another transaction
 * has changed rows that they only read, transactions that exclude each other, and the queries that
 * may lock rows.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: new ManualClock() });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (ACCESS_LEVEL = 'PUBLIC'); CREATE TABLE c (id INT PRIMARY KEY, t INT);" +
      "CREATE USER TABLE u (id INT, k TEXT, PRIMARY KEY (id, k)); CREATE VIEW w AS SELECT id FROM t;" +
      "CREATE USER kim INTERNAL",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  engine.userId = "root";
  await engine.run(
    "DELETE FROM c; DELETE FROM t; INSERT INTO t VALUES (1, 10), (2, 20), (3, 30); DELETE FROM u; INSERT INTO u VALUES (1, 'a')",
  );
});

/**
 * An open transaction. Each of its statements returns its rows or, if it fails, the error code.
 */
interface Tx {
  readonly sql: (sql: string) => Promise<unknown>;
}

function opened(): Tx {
  const { sql: database } = engine.database;
  const { id } = database.openTransaction(engine.principal, { isReadOnly: false });
  return {
    sql: async (sql) => {
      const { error, results } = await engine.ask(sql, { transaction: id });
      return error === undefined ? (results.at(-1)?.rows ?? "done") : error.code;
    },
  };
}

describe("a row that was locked and then changed by another commit makes the commit fail", () => {
  test.each(["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"])(
    "FOR %s makes the commit fail",
    async (strength) => {
      for (const change of ["UPDATE t SET v = 11 WHERE id = 1", "DELETE FROM t WHERE id = 1"]) {
        const one = opened();
        expect(await one.sql(`SELECT v FROM t WHERE id = 1 FOR ${strength}`)).toEqual([[10]]);
        await one.sql("INSERT INTO c VALUES (1, 1)");
        await engine.run(change);
        expect(await one.sql("COMMIT")).toBe("SERIALIZATION_FAILURE");
        expect(await engine.rows("SELECT count(*) FROM c")).toEqual([[0]]);
        await engine.run("DELETE FROM t; INSERT INTO t VALUES (1, 10)");
      }
    },
  );

  test("a locked row counts even without a write, and in a USER table with a key of several columns", async () => {
    const one = opened();
    expect(await one.sql("SELECT k FROM u FOR UPDATE")).toEqual([["a"]]);
    await engine.run("DELETE FROM u; INSERT INTO u VALUES (1, 'a')");
    expect(await one.sql("COMMIT")).toBe("SERIALIZATION_FAILURE");
  });

  test("other rows, and changes by the transaction itself, do not make the commit fail", async () => {
    const one = opened();
    await one.sql("SELECT v FROM t WHERE id = 1 FOR UPDATE; UPDATE t SET v = 11 WHERE id = 1");
    expect(await one.sql("SELECT v FROM t WHERE id = 1 FOR UPDATE")).toEqual([[11]]);
    await engine.run("UPDATE t SET v = 21 WHERE id = 2");
    expect(await one.sql("COMMIT")).toBe("done");
    expect(await engine.rows("SELECT v FROM t ORDER BY id")).toEqual([[11], [21], [30]]);
  });

  test("a locked row counts within one request", async () => {
    const text = "BEGIN; SELECT id FROM t FOR UPDATE; UPDATE t SET v = 0 WHERE id = 1; COMMIT";
    expect((await engine.run(text))[1]?.rows).toEqual([[1], [2], [3]]);
  });
});

describe("transactions that lock the same row exclude each other", () => {
  test.each([
    ["UPDATE", "UPDATE", true],
    ["UPDATE", "KEY SHARE", true],
    ["NO KEY UPDATE", "SHARE", true],
    ["NO KEY UPDATE", "KEY SHARE", false],
    ["SHARE", "SHARE", false],
    ["SHARE", "KEY SHARE", false],
    ["KEY SHARE", "UPDATE", true],
  ])(
    "FOR %s and FOR %s by two transactions exclude each other: %p",
    async (first, second, isExcluded) => {
      const [one, two, three] = [opened(), opened(), opened()];
      await one.sql(`SELECT id FROM t WHERE id = 1 FOR ${first}`);
      const found = await two.sql(`SELECT id FROM t WHERE id = 1 FOR ${second} NOWAIT`);
      expect(found).toEqual(isExcluded ? "LOCK_NOT_AVAILABLE" : [[1]]);
      const plain = await three.sql(`SELECT id FROM t WHERE id = 1 FOR ${second}`);
      expect(plain).toEqual(isExcluded ? "SERIALIZATION_FAILURE" : [[1]]);
      for (const each of [one, two, three]) await each.sql("ROLLBACK");
    },
  );

  test("transactions share a queue with SKIP LOCKED: each takes a different row, even with LIMIT", async () => {
    const next = "SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
    const workers = [opened(), opened(), opened(), opened()];
    const taken: unknown[] = [];
    for (const each of workers) taken.push(await each.sql(next));
    expect(taken).toEqual([[[1]], [[2]], [[3]], []]);
    await workers[1]?.sql("ROLLBACK");
    expect(await workers[3]?.sql(next)).toEqual([[2]]);
    for (const each of workers) await each.sql("DELETE FROM c; COMMIT");
  });

  test("locks prevent write skew, because the lock of a commit counts for older snapshots", async () => {
    const [one, two] = [opened(), opened()];
    await one.sql("SELECT id FROM t WHERE id = 1 FOR UPDATE; INSERT INTO c VALUES (1, 1)");
    expect(await one.sql("COMMIT")).toBe("done");
    expect(await two.sql("SELECT id FROM t WHERE id = 1 FOR UPDATE")).toBe("SERIALIZATION_FAILURE");
    await two.sql("ROLLBACK");
    const three = opened();
    expect(await three.sql("SELECT id FROM t WHERE id = 1 FOR UPDATE")).toEqual([[1]]);
    await three.sql("ROLLBACK");
  });

  test("locks are released once a failed statement has ended their transaction", async () => {
    const [one, two] = [opened(), opened()];
    await one.sql("SELECT id FROM t FOR UPDATE");
    expect(await one.sql("SELECT 1 / 0")).toBe("DIVISION_BY_ZERO");
    expect(await two.sql("SELECT id FROM t FOR UPDATE NOWAIT")).toHaveLength(3);
    await two.sql("ROLLBACK");
  });
});

test("OF names the tables whose rows are locked", async () => {
  await engine.run("INSERT INTO c VALUES (1, 1), (2, 1)");
  const one = opened();
  const join = "SELECT c.id, x.v FROM c JOIN t x ON x.id = c.t ORDER BY 1";
  expect(await one.sql(`${join} FOR UPDATE OF c`)).toEqual([
    [1, 10],
    [2, 10],
  ]);
  const two = opened();
  expect(await two.sql(`${join} FOR SHARE OF x NOWAIT`)).toHaveLength(2);
  expect(await two.sql("SELECT id FROM c FOR UPDATE NOWAIT")).toBe("LOCK_NOT_AVAILABLE");
  for (const each of [one, two]) await each.sql("ROLLBACK");
});

test("a locking clause has no effect outside a transaction", async () => {
  expect(await engine.rows("SELECT *, v + 1 FROM t WHERE id = 1 FOR UPDATE")).toHaveLength(1);
  const [plain] = await engine.run("SELECT * FROM t WHERE id = 1");
  const [locking] = await engine.run("SELECT * FROM t WHERE id = 1 FOR UPDATE");
  expect(locking).toEqual(plain as never);
  const one = opened();
  await one.sql("SELECT id FROM t WHERE id = 2 FOR UPDATE");
  expect(await engine.rows("SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED")).toEqual([
    [1],
    [3],
  ]);
  expect(await engine.failure("SELECT id FROM t FOR UPDATE NOWAIT")).toStartWith(
    "LOCK_NOT_AVAILABLE",
  );
  await one.sql("ROLLBACK");
});

test.each([
  ["SELECT DISTINCT id FROM t FOR UPDATE", "INVALID_SQL@1:26"],
  ["SELECT v FROM t GROUP BY v FOR UPDATE", "INVALID_SQL@1:27"],
  ["SELECT id FROM t UNION SELECT id FROM t FOR UPDATE", "INVALID_SQL@1:40"],
  ["SELECT count(*) FROM t FOR UPDATE", "INVALID_QUERY@1"],
  ["SELECT id FROM t FOR UPDATE OF x", "INVALID_QUERY@1:31"],
  ["SELECT id FROM w FOR UPDATE", "INVALID_OPERATION@1:15"],
  ["SELECT id FROM nothing FOR UPDATE", "TABLE_NOT_FOUND@1:15"],
  ["SELECT q.id FROM (SELECT id FROM t) q FOR UPDATE", "INVALID_OPERATION@1"],
  ["SELECT id FROM (SELECT id FROM t FOR UPDATE) q", "UNSUPPORTED_FEATURE@1"],
  ["SELECT id FROM t FOR UPDATE FOR SHARE", "UNSUPPORTED_FEATURE@1:28"],
  ["BEGIN READ ONLY; SELECT id FROM t FOR UPDATE; COMMIT", "INVALID_OPERATION@2:17"],
])("%s is refused", async (sql, failure) => {
  expect(await engine.failure(sql)).toStartWith(failure);
});

test("locking rows requires the right to write them", async () => {
  engine.userId = "kim";
  expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[3]]);
  expect(await engine.failure("SELECT id FROM t FOR SHARE")).toStartWith("PERMISSION_DENIED");
  const late = "INSERT INTO u VALUES (9, 'z'); SELECT id FROM t FOR SHARE";
  expect(await engine.failure(late)).toStartWith("PERMISSION_DENIED@2");
  expect(await engine.rows("SELECT count(*) FROM u")).toEqual([[0]]);
});
