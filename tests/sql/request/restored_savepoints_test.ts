/**
 * Tests the state that a transaction keeps between its requests, and that ROLLBACK TO restores:
 * SET CONSTRAINTS, row locks and foreign key claims. Prepared statements are not affected.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ config: "limits.max_sql_bytes = 4096" });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT);" +
      "CREATE TABLE child (id INT PRIMARY KEY, t_id INT CONSTRAINT parent REFERENCES t DEFERRABLE)",
  );
});
beforeEach(async () => {
  for (const [id] of await engine.rows("SELECT transaction_id FROM system.transactions")) {
    await engine.run(`KILL TRANSACTION '${String(id)}'`);
  }
  await engine.run("TRUNCATE child, t; INSERT INTO t VALUES (1, 10), (2, 20)");
});
afterAll(() => engine[Symbol.asyncDispose]());

function opened(): { readonly transaction: string } {
  const { id } = engine.database.sql.openTransaction(engine.principal, { isReadOnly: false });
  return { transaction: id };
}

test.each(["ALL", "parent"])("ROLLBACK TO undoes SET CONSTRAINTS %s", async (names) => {
  const failure = await engine.failure(
    `BEGIN; SAVEPOINT s; SET CONSTRAINTS ${names} DEFERRED; ROLLBACK TO s; INSERT INTO child VALUES (1, 9); INSERT INTO t VALUES (9, 0); COMMIT`,
  );
  expect(failure).toBe("FOREIGN_KEY_VIOLATION@5");
});

test("ROLLBACK TO keeps SET CONSTRAINTS from before the savepoint", async () => {
  await engine.run(
    "BEGIN; SET CONSTRAINTS ALL DEFERRED; SAVEPOINT s; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK TO s; INSERT INTO child VALUES (1, 9); INSERT INTO t VALUES (9, 0); COMMIT",
  );
  expect(await engine.rows("SELECT t_id FROM child")).toEqual([[9]]);
});

const LOCK = "SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT";

test("ROLLBACK TO releases the row locks since the savepoint", async () => {
  const first = opened();
  await engine.run("SELECT id FROM t WHERE id = 2 FOR UPDATE; SAVEPOINT s", first);
  await engine.run(LOCK, first);
  expect(await engine.failure(LOCK, opened())).toBe("LOCK_NOT_AVAILABLE@1:0");
  await engine.run("ROLLBACK TO s", first);
  const second = opened();
  expect(await engine.rows(LOCK, second)).toEqual([[1]]);
  const kept = "SELECT id FROM t WHERE id = 2 FOR UPDATE NOWAIT";
  expect(await engine.failure(kept, second)).toBe("LOCK_NOT_AVAILABLE@1:0");
  await engine.run("UPDATE t SET v = 0 WHERE id = 1");
  // The first transaction no longer locks this row, so changing the row does not conflict with its
  // commit.
  await engine.run("COMMIT", first);
});

test("ROLLBACK TO replaces a stronger lock with the previous one", async () => {
  const first = opened();
  await engine.run("SELECT id FROM t WHERE id = 1 FOR SHARE; SAVEPOINT s", first);
  await engine.run(`${LOCK}; ROLLBACK TO s`, first);
  expect(await engine.rows("SELECT id FROM t WHERE id = 1 FOR SHARE NOWAIT", opened())).toEqual([
    [1],
  ]);
  expect(await engine.failure(LOCK, opened())).toBe("LOCK_NOT_AVAILABLE@1:0");
});

test("others may delete a parent to which only undone rows refer", async () => {
  const first = opened();
  await engine.run(
    "INSERT INTO child VALUES (1, 2); SAVEPOINT s; INSERT INTO child VALUES (2, 1); ROLLBACK TO s",
    first,
  );
  await engine.run("DELETE FROM t WHERE id = 1");
  await engine.run("COMMIT", first);
  expect(await engine.rows("SELECT id FROM child")).toEqual([[1]]);
});

test("a statement may be prepared in one request and executed in later ones", async () => {
  const within = opened();
  await engine.run("PREPARE put (int, int) AS INSERT INTO t VALUES ($1, $2)", within);
  await engine.run("EXECUTE put (3, 30)", within);
  await engine.run("EXECUTE put (4, '40'); DEALLOCATE put", within);
  expect(await engine.rows("SELECT v FROM t WHERE id > 2 ORDER BY id", within)).toEqual([
    [30],
    [40],
  ]);
  expect(await engine.failure("EXECUTE put (5, 50)", within)).toBe("OBJECT_NOT_FOUND@1:8");
});

test("prepared statements belong to their transaction, and survive ROLLBACK TO", async () => {
  const within = opened();
  await engine.run("SAVEPOINT s; PREPARE one AS SELECT 1; ROLLBACK TO s", within);
  expect(await engine.rows("EXECUTE one", within)).toEqual([[1]]);
  expect(await engine.failure("EXECUTE one", opened())).toBe("OBJECT_NOT_FOUND@1:8");
  expect(await engine.failure("EXECUTE one")).toBe("OBJECT_NOT_FOUND@1:8");
  expect(await engine.failure("PREPARE one AS SELECT 2", within)).toBe("ALREADY_EXISTS@1:8");
});

test("the total length of prepared statements is limited", async () => {
  const within = opened();
  const long = `SELECT '${"x".repeat(3000)}'`;
  await engine.run(`PREPARE a AS ${long}`, within);
  expect(await engine.failure(`PREPARE b AS ${long}`, within)).toBe("TRANSACTION_LIMIT@1:8");
});
