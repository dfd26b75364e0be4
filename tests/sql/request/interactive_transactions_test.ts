/**
 * Tests transactions that span requests: their snapshot and own writes, the callers who may use
 * them, the ways in which they end, and the state that they leave behind.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Principal } from "../../../src/auth/mod.ts";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { TransactionInfo, TransactionRequest } from "../../../src/sql/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { type RequestParts, TestEngine } from "../../support/sql_engine.ts";

const CONFIG = [
  "limits.transaction_timeout_secs = 300",
  "limits.transaction_idle_secs = 60",
  "limits.max_transactions = 4",
  "limits.transactions_per_user = 3",
  "limits.transaction_max_bytes = 1048576",
].join("\n");

const clock = new ManualClock();
let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock, config: CONFIG });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE USER TABLE u (id INT PRIMARY KEY, v INT);" +
      "CREATE USER sam INTERNAL ROLE service; CREATE NAMESPACE n; CREATE TABLE n.t (id INT PRIMARY KEY)",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  engine.userId = "root";
  for (const [id] of await engine.rows("SELECT transaction_id FROM system.transactions")) {
    await engine.run(`KILL TRANSACTION '${String(id)}'`);
  }
  await engine.run("DELETE FROM t; INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
});

function opened(request: Partial<TransactionRequest> = {}): string {
  return engine.database.sql.openTransaction(engine.principal, { isReadOnly: false, ...request })
    .id;
}

async function end(
  id: string,
  statement: "COMMIT" | "ROLLBACK",
  key?: string,
): Promise<TransactionInfo> {
  const idempotency = key === undefined ? undefined : { key, digest: `commit ${id}` };
  return await engine.database.sql.endTransaction(engine.principal, { id, statement, idempotency });
}

async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (error instanceof DatabaseError) return error.code;
    throw error;
  }
  return "succeeded";
}

const within = (transaction: string, parts: RequestParts = {}): RequestParts => ({
  ...parts,
  transaction,
});

const all = (): Promise<readonly (readonly unknown[])[]> =>
  engine.rows("SELECT id, v FROM t ORDER BY id");

describe("a transaction can span requests", () => {
  test("a spanning transaction reads its snapshot and its own writes, and commits them together", async () => {
    const id = opened();
    await engine.run("UPDATE t SET v = 11 WHERE id = 1", within(id));
    await engine.run("INSERT INTO t VALUES (4, 40)");
    await engine.run("INSERT INTO t VALUES ($1, 50)", within(id, { params: [5] }));
    expect(await engine.rows("SELECT id, v FROM t ORDER BY id", within(id))).toEqual([
      [1, 11],
      [2, 20],
      [3, 30],
      [5, 50],
    ]);
    expect(await engine.rows("SELECT v FROM t WHERE id = 1")).toEqual([[10]]);
    const { lastSeq, state } = await end(id, "COMMIT");
    expect([state, await engine.rows("SELECT max(_seq) FROM t")]).toEqual([
      "committed",
      [[lastSeq]],
    ]);
    expect(await engine.rows("SELECT id FROM t ORDER BY id")).toEqual([[1], [2], [3], [4], [5]]);
  });

  test("a spanning transaction is undone by ROLLBACK, as a call or as a statement", async () => {
    for (const undo of [
      (id: string) => end(id, "ROLLBACK"),
      (id: string) => engine.run("ROLLBACK", within(id)),
    ]) {
      const id = opened();
      await engine.run("DELETE FROM t", within(id));
      await undo(id);
      expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[3]]);
      expect(await engine.failure("SELECT 1", within(id))).toBe("TRANSACTION_NOT_FOUND@1");
    }
  });

  test("a spanning transaction may end with COMMIT in a text, whose later statements run alone", async () => {
    const id = opened();
    await engine.run("DELETE FROM t WHERE id = 1", within(id));
    await engine.run("COMMIT; DELETE FROM t WHERE id = 2", within(id));
    expect(await engine.rows("SELECT id FROM t")).toEqual([[3]]);
    expect(await engine.failure("SELECT 1", within(id))).toStartWith("TRANSACTION_NOT_FOUND");
  });

  test("a spanning transaction loses against an earlier commit of the same row, and leaves nothing", async () => {
    const id = opened();
    await engine.run("UPDATE t SET v = 11 WHERE id = 1; DELETE FROM t WHERE id = 2", within(id));
    await engine.run("UPDATE t SET v = 12 WHERE id = 1");
    expect(await codeOf(() => end(id, "COMMIT"))).toBe("SERIALIZATION_FAILURE");
    expect(await all()).toEqual([
      [1, 12],
      [2, 20],
      [3, 30],
    ]);
    expect(engine.database.sql.transaction(engine.principal, id).state).toBe("rolled back");
  });

  test("a spanning transaction keeps the time of its beginning", async () => {
    const id = opened();
    const first = await engine.rows("SELECT NOW()", within(id));
    clock.advance(5000);
    expect(await engine.rows("SELECT NOW()", within(id))).toEqual(first as never);
    await end(id, "ROLLBACK");
  });

  test("a spanning transaction looks up names in its namespace, unless a request names another", async () => {
    const id = opened({ namespace: "n" });
    await engine.run("INSERT INTO t VALUES (7)", within(id));
    expect(await engine.rows("SELECT id FROM t", within(id))).toEqual([[7]]);
    const other = within(id, { namespace: "default" });
    expect(await engine.rows("SELECT count(*) FROM t", other)).toEqual([[3]]);
    await end(id, "ROLLBACK");
  });

  test.each(["DELETE FROM t", "DROP TABLE t"])(
    "a spanning transaction that is read-only refuses %s",
    async (sql) => {
      const id = opened({ isReadOnly: true });
      expect(await engine.failure(sql, within(id))).toStartWith("INVALID_OPERATION");
      await end(id, "ROLLBACK");
    },
  );

  test("a spanning transaction shows its definitions to no other request before its commit", async () => {
    const id = opened();
    await engine.run("CREATE TABLE fresh (id INT PRIMARY KEY)", within(id));
    await engine.run("INSERT INTO fresh VALUES (1)", within(id));
    await engine.run("ALTER TABLE fresh ADD COLUMN v INT DEFAULT 2", within(id));
    expect(await engine.rows("SELECT id, v FROM fresh", within(id))).toEqual([[1, 2]]);
    expect(await engine.failure("SELECT * FROM fresh")).toStartWith("TABLE_NOT_FOUND");
    await end(id, "COMMIT");
    expect(await engine.rows("SELECT id, v FROM fresh")).toEqual([[1, 2]]);
  });

  test("a spanning transaction whose definitions are rolled back leaves none", async () => {
    const id = opened();
    await engine.run("CREATE TABLE gone (id INT PRIMARY KEY); DROP TABLE t", within(id));
    await end(id, "ROLLBACK");
    expect(await engine.failure("SELECT * FROM gone")).toStartWith("TABLE_NOT_FOUND");
    expect(await engine.failure("SELECT * FROM t")).toStartWith("succeeded");
  });

  test("a spanning transaction runs its requests one after another, in the order of arrival", async () => {
    const id = opened();
    const results = await Promise.all(
      Array.from({ length: 20 }, () =>
        engine.run("UPDATE t SET v = v + 1 WHERE id = 1; SELECT v FROM t WHERE id = 1", within(id)),
      ),
    );
    expect(results.map((each) => each[1]?.rows?.[0]?.[0])).toEqual(
      Array.from({ length: 20 }, (_, index) => 11 + index),
    );
    await end(id, "COMMIT");
    expect(await engine.rows("SELECT v FROM t WHERE id = 1")).toEqual([[30]]);
  });

  test("a spanning transaction cannot be used in check mode", async () => {
    const id = opened();
    const check = within(id, { check: true });
    expect(await engine.failure("SELECT nothing FROM t", check)).toStartWith("COLUMN_NOT_FOUND");
    await engine.run("COMMIT", check);
    await engine.run("DELETE FROM t WHERE id = 1", within(id));
    await end(id, "COMMIT");
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[2]]);
  });
});

describe("a failed statement aborts its transaction", () => {
  test("after a failed statement, a transaction accepts only ROLLBACK", async () => {
    const id = opened();
    await engine.run("DELETE FROM t WHERE id = 1", within(id));
    expect(await engine.failure("SELECT 1 / 0", within(id))).toStartWith("DIVISION_BY_ZERO");
    expect(engine.database.sql.transaction(engine.principal, id).state).toBe("failed");
    for (const sql of ["SELECT 1", "DELETE FROM t", "SAVEPOINT a"]) {
      expect(await engine.failure(sql, within(id))).toStartWith("TRANSACTION_FAILED");
    }
    expect(await codeOf(() => end(id, "COMMIT"))).toBe("TRANSACTION_FAILED");
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[3]]);
    expect(await codeOf(() => end(id, "COMMIT"))).toBe("TRANSACTION_NOT_FOUND");
  });

  test("a failed statement is undone by ROLLBACK TO an earlier savepoint", async () => {
    const id = opened();
    await engine.run("UPDATE t SET v = 11 WHERE id = 1; SAVEPOINT a", within(id));
    await engine.run("UPDATE t SET v = 21 WHERE id = 2", within(id));
    expect(await engine.failure("INSERT INTO t VALUES (9, 9), (1, 1)", within(id))).toStartWith(
      "DUPLICATE_KEY",
    );
    expect(await engine.failure("SELECT 1", within(id))).toStartWith("TRANSACTION_FAILED");
    await engine.run("ROLLBACK TO a", within(id));
    await engine.run("UPDATE t SET v = 31 WHERE id = 3", within(id));
    await end(id, "COMMIT");
    expect(await all()).toEqual([
      [1, 11],
      [2, 20],
      [3, 31],
    ]);
  });

  test("a failed statement counts even if it cannot be parsed", async () => {
    const id = opened();
    expect(await engine.failure("SELEC 1", within(id))).toStartWith("INVALID_SQL");
    expect(await engine.failure("SELECT 1", within(id))).toStartWith("TRANSACTION_FAILED");
    await end(id, "ROLLBACK");
  });
});

describe("statements in an unknown transaction are refused", () => {
  const failures = async (id: string): Promise<readonly string[]> => [
    await engine.failure("SELECT 1", within(id)),
    await codeOf(() => end(id, "COMMIT")),
    await codeOf(() => end(id, "ROLLBACK")),
    await codeOf(() => engine.database.sql.transaction(engine.principal, id)),
  ];
  const NOT_FOUND = [
    "TRANSACTION_NOT_FOUND@1",
    ...Array.from({ length: 3 }, () => "TRANSACTION_NOT_FOUND"),
  ];

  test("a transaction is unknown to another user, as if it had never existed", async () => {
    const id = opened();
    engine.userId = "sam";
    expect(await failures(id)).toEqual(NOT_FOUND);
    const messageOf = async (which: string): Promise<string | undefined> =>
      (await engine.ask("SELECT 1", within(which))).error?.message.replace(which, "…");
    expect(await messageOf(id)).toBe((await messageOf("tx_none")) ?? "");
  });

  test("a transaction is unknown to another session of the same user", async () => {
    const id = opened();
    const other: Principal = { ...engine.principal, sessionId: "other" };
    const request = { sql: "SELECT 1", params: [], transaction: id };
    const { error } = await engine.database.sql.execute(other, request);
    expect(error?.code).toBe("TRANSACTION_NOT_FOUND");
  });

  test("a transaction is unknown after its session, its user's rights or its user have ended", async () => {
    await engine.run("CREATE USER kim INTERNAL ROLE service");
    for (const sql of ["ALTER USER kim SET ROLE user", "DROP USER kim"]) {
      engine.userId = "kim";
      const id = opened();
      await engine.run("INSERT INTO u VALUES (1, 1) ON CONFLICT DO NOTHING", within(id));
      const { principal } = engine;
      engine.userId = "root";
      await engine.run(sql);
      const { error } = await engine.database.sql.execute(principal, {
        sql: "COMMIT",
        params: [],
        transaction: id,
      });
      expect([sql, error?.code]).toEqual([sql, "TRANSACTION_NOT_FOUND"]);
      expect(await engine.rows("SELECT count(*) FROM system.transactions")).toEqual([[0]]);
    }
  });

  test("a transaction ends after a time without requests, and the message says so", async () => {
    const id = opened();
    await engine.run("DELETE FROM t", within(id));
    clock.advance(59_000);
    await engine.run("SELECT 1", within(id));
    clock.advance(61_000);
    const { error } = await engine.ask("SELECT 1", within(id));
    expect(error?.message).toBe(
      `Cannot find transaction "${id}": it was rolled back because it received no request for 60 s`,
    );
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[3]]);
  });

  test("a transaction ends at its time limit, however busy it is", async () => {
    const id = opened({ timeoutMs: 100_000 });
    for (let round = 0; round < 3; round += 1) {
      await engine.run("SELECT 1", within(id));
      clock.advance(30_000);
    }
    clock.advance(11_000);
    const { error } = await engine.ask("SELECT 1", within(id));
    expect(error?.message).toEndWith("it was rolled back because it had been open for 100 s");
  });

  test("a transaction is unknown after a restart, and nothing of it remains", async () => {
    const id = opened();
    await engine.run("DELETE FROM t", within(id));
    await engine.restart();
    expect(await failures(id)).toEqual(NOT_FOUND);
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[3]]);
  });
});

describe("KILL TRANSACTION ends a transaction", () => {
  test("KILL TRANSACTION ends a transaction that system.transactions lists", async () => {
    const id = opened({ isReadOnly: false });
    await engine.run("UPDATE t SET v = 0; SELECT 1", within(id));
    clock.advance(1500);
    expect(
      await engine.rows(
        "SELECT transaction_id, user_id, state, is_read_only, idle_ms, requests, staged_rows, staged_bytes > 0 FROM system.transactions",
      ),
    ).toEqual([[id, "root", "idle", false, 1500, 1, 3, true]]);
    await engine.run(`KILL TRANSACTION '${id}'`);
    expect((await engine.ask("COMMIT", within(id))).error?.message).toEndWith(
      "it was killed and rolled back",
    );
    expect(await engine.failure(`KILL TRANSACTION '${id}'`)).toStartWith("OBJECT_NOT_FOUND");
    expect(await all()).toHaveLength(3);
  });

  test("KILL TRANSACTION cancels the running statement, and leaves nothing", async () => {
    const id = opened();
    await engine.run("DELETE FROM t WHERE id = 1", within(id));
    const sleeping = engine.ask("SELECT PG_SLEEP(30)", within(id));
    await clock.yield();
    await engine.run(`KILL TRANSACTION '${id}'`);
    const { error } = await sleeping;
    expect([error?.code, error?.message]).toEqual([
      "CANCELLED",
      "Cannot finish the statement: its transaction has been ended",
    ]);
    expect(await engine.rows("SELECT count(*) FROM system.transactions")).toEqual([[0]]);
    expect(await engine.failure("SELECT 1", within(id))).toStartWith("TRANSACTION_NOT_FOUND");
  });

  test("KILL TRANSACTION requires the role dba", async () => {
    const id = opened();
    engine.userId = "sam";
    expect(await engine.failure(`KILL TRANSACTION '${id}'`)).toStartWith("PERMISSION_DENIED");
    expect(await engine.failure("SELECT * FROM system.transactions")).toStartWith(
      "PERMISSION_DENIED",
    );
  });
});

describe("the outcome of a transaction can be requested again", () => {
  test("the outcome can be requested by the same call, in this process", async () => {
    const id = opened();
    await engine.run("DELETE FROM t WHERE id = 1", within(id));
    const { lastSeq } = await end(id, "COMMIT");
    expect(await end(id, "COMMIT")).toMatchObject({ state: "committed", lastSeq });
    expect(await codeOf(() => end(id, "ROLLBACK"))).toBe("TRANSACTION_NOT_FOUND");
    const other = opened();
    await end(other, "ROLLBACK");
    expect(await end(other, "ROLLBACK")).toMatchObject({ state: "rolled back" });
    expect(await codeOf(() => end(other, "COMMIT"))).toBe("TRANSACTION_NOT_FOUND");
  });

  test("the outcome can be requested by a key, even after a restart", async () => {
    const id = opened();
    await engine.run("DELETE FROM t WHERE id = 1", within(id));
    const { lastSeq } = await end(id, "COMMIT", "order-17");
    await engine.restart();
    expect(await end(id, "COMMIT", "order-17")).toMatchObject({ state: "committed", lastSeq });
    expect(await codeOf(() => end("tx_other", "COMMIT", "order-17"))).toBe("IDEMPOTENCY_CONFLICT");
    expect(await codeOf(() => end(id, "COMMIT", "order-18"))).toBe("TRANSACTION_NOT_FOUND");
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[2]]);
  });

  test("the outcome can be requested while the first call is still running", async () => {
    const id = opened();
    await engine.run("DELETE FROM t WHERE id = 1", within(id));
    const [first, second] = await Promise.all([end(id, "COMMIT"), end(id, "COMMIT")]);
    expect(second).toEqual(first);
  });

  test("a key belongs only to its COMMIT", async () => {
    const id = opened();
    const idempotency = { key: "k", digest: "d" };
    for (const sql of ["DELETE FROM t", "DELETE FROM t; COMMIT"]) {
      expect(await engine.failure(sql, within(id, { idempotency }))).toStartWith("INVALID_INPUT");
    }
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[3]]);
  });
});

describe("open transactions are limited", () => {
  test("open transactions are limited for each user and in total", async () => {
    const first = opened();
    opened();
    opened();
    expect(await codeOf(opened)).toBe("LIMIT_EXCEEDED");
    engine.userId = "sam";
    opened();
    expect(await codeOf(opened)).toBe("LIMIT_EXCEEDED");
    engine.userId = "root";
    await end(first, "ROLLBACK");
    opened();
  });

  test("staged bytes are limited, and free again after the end of a transaction", async () => {
    const id = opened();
    const rows = Array.from({ length: 400 }, (_, index) => `(${index + 100}, ${index})`).join();
    await engine.run(`INSERT INTO t VALUES ${rows}`, within(id));
    const held = async (): Promise<unknown> =>
      (await engine.rows("SELECT sum(staged_bytes) FROM system.transactions"))[0]?.[0];
    expect(Number(await held())).toBeGreaterThan(400 * 8);
    await engine.run("SAVEPOINT a; DELETE FROM t; ROLLBACK TO a", within(id));
    await end(id, "ROLLBACK");
    expect(await held()).toBeNull();
  });
});

describe("a statement that is repeated in a transaction", () => {
  const text = "SELECT * FROM p WHERE id = $1";

  test("a repeated statement uses its plan, with the definitions and parameters of each run", async () => {
    await engine.run("DROP TABLE IF EXISTS p; CREATE TABLE p (id INT PRIMARY KEY, v TEXT)");
    await engine.run("INSERT INTO p VALUES (1, 'a'), (2, 'b')");
    const id = opened();
    const read = (value: number | string, sql = text): Promise<readonly unknown[]> =>
      engine
        .rows(sql, within(id, { params: [value] }))
        .then(([row]) => row?.filter((cell) => typeof cell !== "boolean").slice(0, 2) ?? []);
    expect(await read(1)).toEqual([1, "a"]);
    expect(await read(2)).toEqual([2, "b"]);
    // A parameter of a different type requires a separate plan.
    expect(await read("2")).toEqual([2, "b"]);
    await engine.run("UPDATE p SET v = $2 WHERE id = $1", within(id, { params: [2, "c"] }));
    await engine.run("UPDATE p SET v = $2 WHERE id = $1", within(id, { params: [1, "d"] }));
    expect([await read(1), await read(2)]).toEqual([
      [1, "d"],
      [2, "c"],
    ]);
    await engine.run("ALTER TABLE p RENAME COLUMN v TO w");
    expect(await engine.failure("SELECT v FROM p", within(id))).toContain("COLUMN_NOT_FOUND");
    await end(id, "ROLLBACK");
  });

  test("a repeated statement requires the rights of each caller", async () => {
    const read = "SELECT count(*) FROM system.users WHERE user_id = $1";
    const mine = opened();
    await engine.run(read, within(mine, { params: ["root"] }));
    engine.userId = "sam";
    const his = opened();
    const { error } = await engine.ask(read, within(his, { params: ["root"] }));
    expect(error?.code).toBe("PERMISSION_DENIED");
    engine.userId = "root";
    expect((await engine.ask(read, within(mine, { params: ["root"] }))).error).toBeUndefined();
    await end(mine, "ROLLBACK");
  });

  test("a repeated statement keeps its errors, and EXECUTE its own statement", async () => {
    const id = opened();
    for (let round = 0; round < 2; round += 1) {
      const gap = await engine.ask("SELECT $2::int", within(opened(), { params: [1, 2] }));
      expect(gap.error?.code).toBe("INVALID_PARAMETER");
    }
    for (const value of [1, 2]) {
      await engine.run(`PREPARE q AS SELECT ${value}`, within(id));
      expect(await engine.rows("EXECUTE q", within(id))).toEqual([[value]]);
      await engine.run("DEALLOCATE q", within(id));
    }
    await end(id, "ROLLBACK");
  });
});
