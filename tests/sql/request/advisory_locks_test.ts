/**
 * Tests advisory locks: their holders and waiters, the ways in which a wait ends, the rows that
 * statements see after a wait, and the places where lock functions are allowed.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { SqlResponse, TransactionRequest } from "../../../src/sql/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { type RequestParts, TestEngine } from "../../support/sql_engine.ts";

let clock: ManualClock;
let engine: TestEngine;

beforeEach(async () => {
  clock = new ManualClock();
  const config = [
    "performance.request_timeout = 0",
    "limits.transaction_timeout_secs = 100",
    "limits.transaction_idle_secs = 60",
  ].join("\n");
  engine = await TestEngine.open({ clock, config });
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10)");
});
afterEach(() => engine[Symbol.asyncDispose]());

function opened(request: Partial<TransactionRequest> = {}): RequestParts {
  const { id } = engine.database.sql.openTransaction(engine.principal, {
    isReadOnly: false,
    ...request,
  });
  return { transaction: id };
}

interface Waiting {
  readonly answer: Promise<SqlResponse>;
  readonly hasEnded: () => Promise<boolean>;
}

/** Sends a request that has to wait for a lock. */
async function waiting(sql: string, parts: RequestParts = {}): Promise<Waiting> {
  let isOver = false;
  const answer = engine.ask(sql, parts).finally(() => {
    isOver = true;
  });
  const hasEnded = async (): Promise<boolean> => {
    for (let turn = 0; turn < 20; turn += 1) await clock.yield();
    return isOver;
  };
  expect(await hasEnded(), sql).toBe(false);
  return { answer, hasEnded };
}

async function codeOf({ answer }: Waiting): Promise<string> {
  const { error, results } = await answer;
  return error?.code ?? JSON.stringify(results.at(-1)?.rows ?? results.at(-1)?.message);
}

const VOID = '[[""]]';
const tries = async (call: string, parts: RequestParts = {}): Promise<unknown> =>
  (await engine.rows(`SELECT pg_try_advisory_${call}`, parts))[0]?.[0];
const LISTED =
  "SELECT key, mode, level, is_granted FROM system.advisory_locks ORDER BY key, mode, level, is_granted DESC";

describe("an advisory lock has one holder, or is shared", () => {
  test("a lock excludes other transactions until its transaction commits or rolls back", async () => {
    for (const end of ["COMMIT", "ROLLBACK"]) {
      const [one, two] = [opened(), opened()];
      expect(await tries("xact_lock(1)", one)).toBe(true);
      expect(await tries("xact_lock(1)", one)).toBe(true);
      expect(await tries("xact_lock(1)", two)).toBe(false);
      expect(await tries("xact_lock_shared(1)", two)).toBe(false);
      expect(await tries("lock(1)", two)).toBe(false);
      expect(await tries("xact_lock(1)")).toBe(false);
      const other = await waiting("SELECT pg_advisory_xact_lock(1)", two);
      await engine.run(end, one);
      expect(await codeOf(other)).toBe(VOID);
      expect(await tries("xact_lock(1)")).toBe(false);
      await engine.run(end, two);
      expect(await tries("xact_lock(1)")).toBe(true);
    }
  });

  test("a single key, a pair of keys and other keys are different locks", async () => {
    const [one, two] = [opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock(7), pg_advisory_xact_lock(7, 8)", one);
    await engine.run("SELECT pg_advisory_xact_lock(-9223372036854775808)", one);
    expect(await tries("xact_lock(8)", two)).toBe(true);
    expect(await tries("xact_lock(8, 7)", two)).toBe(true);
    expect(await tries("xact_lock(7)", two)).toBe(false);
    expect(await tries("xact_lock($1)", { ...two, params: [7] })).toBe(false);
    expect(await tries("xact_lock($1, $2)", { ...two, params: [7, 8] })).toBe(false);
    expect(await tries("xact_lock(-9223372036854775808)", two)).toBe(false);
    expect(await engine.rows("SELECT pg_try_advisory_lock(NULL)", two)).toEqual([[null]]);
  });

  test("several transactions share a lock, for which an exclusive one waits", async () => {
    const [one, two, three, four] = [opened(), opened(), opened(), opened()];
    expect(await tries("xact_lock_shared(1)", one)).toBe(true);
    expect(await tries("xact_lock_shared(1)", two)).toBe(true);
    const exclusive = await waiting("SELECT pg_advisory_xact_lock(1)", three);
    const shared = await waiting("SELECT pg_advisory_xact_lock_shared(1)", four);
    expect(await engine.rows(LISTED)).toEqual([
      ["1", "exclusive", "transaction", false],
      ["1", "shared", "transaction", true],
      ["1", "shared", "transaction", true],
      ["1", "shared", "transaction", false],
    ]);
    await engine.run("COMMIT", one);
    expect(await exclusive.hasEnded()).toBe(false);
    await engine.run("COMMIT", two);
    expect(await codeOf(exclusive)).toBe(VOID);
    expect(await shared.hasEnded()).toBe(false);
    await engine.run("COMMIT", three);
    expect(await codeOf(shared)).toBe(VOID);
  });

  test("waiting transactions receive a lock in the order in which they asked", async () => {
    const all = [opened(), opened(), opened(), opened()];
    const [first = {}, ...others] = all;
    await engine.run("SELECT pg_advisory_xact_lock(1)", first);
    const ends: number[] = [];
    for (const [index, parts] of others.entries()) {
      const { answer } = await waiting("SELECT pg_advisory_xact_lock(1)", parts);
      void answer.then(() => ends.push(index));
    }
    for (const parts of all) {
      await engine.run("COMMIT", parts);
      for (let turn = 0; turn < 20; turn += 1) await clock.yield();
    }
    expect(ends).toEqual([0, 1, 2]);
  });

  test("a lock of the session is counted, unlocked, and ends with its transaction", async () => {
    const [one, two] = [opened(), opened()];
    await engine.run("SELECT pg_advisory_lock(1), pg_advisory_lock(1)", one);
    await engine.run("SELECT pg_advisory_lock_shared(1), pg_advisory_lock(2)", one);
    const unlocked = "SELECT pg_advisory_unlock(1)";
    expect(await engine.rows(unlocked, one)).toEqual([[true]]);
    expect(await tries("lock(1)", two)).toBe(false);
    expect(await engine.rows(unlocked, one)).toEqual([[true]]);
    expect(await engine.rows(unlocked, one)).toEqual([[false]]);
    expect(await tries("lock_shared(1)", two)).toBe(true);
    expect(await tries("lock(1)", two)).toBe(false);
    expect(await engine.rows("SELECT pg_advisory_unlock_shared(1)", one)).toEqual([[true]]);
    expect(await tries("lock(1)", two)).toBe(true);
    expect(await tries("lock(2)", two)).toBe(false);
    await engine.run("SELECT pg_advisory_lock(3); SELECT pg_advisory_unlock_all()", one);
    expect(await tries("lock(3)", two)).toBe(true);
    await engine.run("COMMIT", two);
    await engine.run("SELECT pg_advisory_lock(4)", one);
    expect(await engine.rows("SELECT count(*) FROM system.advisory_locks")).toEqual([[1]]);
    await engine.run("COMMIT", one);
    expect(await engine.rows("SELECT count(*) FROM system.advisory_locks")).toEqual([[0]]);
  });

  test("unlocking releases no lock of a transaction, nor a lock of another transaction", async () => {
    const [one, two] = [opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock(1), pg_advisory_lock(2)", one);
    await engine.run("SELECT pg_advisory_unlock_all()", two);
    expect(await engine.rows("SELECT pg_advisory_unlock(1)", one)).toEqual([[false]]);
    expect(await engine.rows("SELECT pg_advisory_unlock(2)", two)).toEqual([[false]]);
    expect(await tries("lock(1)", two)).toBe(false);
    expect(await tries("lock(2)", two)).toBe(false);
  });
});

describe("an advisory lock lives as long as its transaction or request", () => {
  test("ROLLBACK TO releases locks of the transaction since the savepoint, but none of the session", async () => {
    const [one, two] = [opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock(1); SAVEPOINT a", one);
    await engine.run(
      "SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(2), pg_advisory_lock(3)",
      one,
    );
    const other = await waiting("SELECT pg_advisory_xact_lock(2)", two);
    await engine.run("ROLLBACK TO a", one);
    expect(await codeOf(other)).toBe(VOID);
    expect(await tries("lock(1)", two)).toBe(false);
    expect(await tries("lock(3)", two)).toBe(false);
    await engine.run("ROLLBACK TO a", one);
    expect(await tries("lock(1)", two)).toBe(false);
  });

  test("a failed statement of a transaction without savepoints releases its locks", async () => {
    const one = opened();
    await engine.run("SELECT pg_advisory_xact_lock(1)", one);
    expect(await engine.failure("SELECT 1 / (id - 1) FROM t", one)).toStartWith("DIVISION_BY_ZERO");
    expect(await tries("xact_lock(1)")).toBe(true);
  });

  test("a killed, an idle and an old transaction release their locks", async () => {
    const ends: (readonly [name: string, end: (parts: RequestParts) => unknown])[] = [
      ["killed", ({ transaction = "" }) => engine.run(`KILL TRANSACTION '${transaction}'`)],
      ["idle", () => clock.advance(60_001)],
    ];
    for (const [name, end] of ends) {
      const one = opened();
      await engine.run("SELECT pg_advisory_lock(1), pg_advisory_xact_lock(2)", one);
      await end(one);
      expect(await tries("xact_lock(1)"), name).toBe(true);
      expect(await tries("xact_lock(2)"), name).toBe(true);
    }
    const old = opened({ timeoutMs: 5000 });
    await engine.run("SELECT pg_advisory_xact_lock(1)", old);
    const other = await waiting("SELECT pg_advisory_xact_lock(1)");
    clock.advance(5001);
    expect(await codeOf(other)).toBe(VOID);
  });

  test("in one request, a lock lasts from BEGIN to COMMIT, or to the end of the request", async () => {
    const after = "SELECT pg_try_advisory_xact_lock(1)";
    await engine.run("BEGIN; SELECT pg_advisory_lock(1); COMMIT");
    expect(await engine.rows(after)).toEqual([[true]]);
    const holder = opened();
    await engine.run("SELECT pg_advisory_xact_lock(2)", holder);
    const within = await waiting(
      "SELECT pg_advisory_xact_lock(1); SELECT pg_advisory_xact_lock(2)",
    );
    expect(await engine.rows(after)).toEqual([[false]]);
    await engine.run("COMMIT", holder);
    await within.answer;
    expect(await engine.rows(after)).toEqual([[true]]);
    expect(await engine.failure("SELECT pg_advisory_xact_lock(1); SELECT 1 / 0")).toStartWith(
      "DIV",
    );
    expect(await engine.rows(after)).toEqual([[true]]);
    expect(await engine.rows("SELECT count(*) FROM system.advisory_locks")).toEqual([[0]]);
  });

  test("a lock of the session needs a transaction, and unlocking needs none", async () => {
    for (const call of [
      "advisory_lock(1)",
      "try_advisory_lock(1)",
      "try_advisory_lock_shared(1, 2)",
    ]) {
      const { error } = await engine.ask(`SELECT pg_${call}`);
      expect([error?.code, error?.message]).toEqual([
        "TRANSACTION_REQUIRED",
        expect.stringMatching(
          /^Cannot take advisory lock .* for the session: no transaction is open/,
        ),
      ]);
    }
    expect(await engine.rows("SELECT pg_advisory_unlock(1), pg_advisory_unlock_all()")).toEqual([
      [false, ""],
    ]);
  });
});

describe("a wait for an advisory lock ends", () => {
  test("a wait ends by lock_timeout, statement_timeout, timeout_ms and the end of the transaction", async () => {
    const holder = opened();
    await engine.run("SELECT pg_advisory_xact_lock(1)", holder);
    const wait = "SELECT pg_advisory_xact_lock(1)";
    const startMs = clock.monotonicMs();
    const waits: readonly (readonly [Waiting, number, string])[] = [
      [await waiting(`SET lock_timeout = '2s'; ${wait}`), 2000, "LOCK_NOT_AVAILABLE"],
      [await waiting(`SET statement_timeout = '3s'; ${wait}`), 3000, "STATEMENT_TIMEOUT"],
      [await waiting(wait, { timeoutMs: 4000 }), 4000, "STATEMENT_TIMEOUT"],
      [await waiting(wait, opened({ timeoutMs: 5000 })), 5000, "CANCELLED"],
    ];
    for (const [each, ms, code] of waits) {
      clock.advance(startMs + ms - 1 - clock.monotonicMs());
      expect(await each.hasEnded(), code).toBe(false);
      clock.advance(1);
      expect(await codeOf(each)).toBe(code);
    }
    expect(await engine.rows("SELECT count(*) FROM system.advisory_locks")).toEqual([[1]]);
  });

  test("a wait between BEGIN and COMMIT ends with the time of the transaction", async () => {
    const first = opened();
    await engine.run("SELECT pg_advisory_xact_lock(1)", first);
    const sql = "BEGIN; SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(2); COMMIT";
    const within = await waiting(sql);
    clock.advance(1000);
    const second = opened();
    await engine.run("SELECT pg_advisory_xact_lock(2)", second);
    await engine.run("COMMIT", first);
    clock.advance(50_000);
    await engine.run("SELECT 1", second);
    clock.advance(48_999);
    expect(await within.hasEnded()).toBe(false);
    clock.advance(1);
    const { error } = await within.answer;
    expect([error?.code, error?.message]).toEqual([
      "TRANSACTION_LIMIT",
      "Cannot take advisory lock 2: the transaction may stay open for at most 100 s",
    ]);
    expect(await tries("xact_lock(1)", second)).toBe(true);
  });

  test("KILL QUERY and KILL TRANSACTION end a wait, and the queue continues", async () => {
    const [holder, two, three] = [opened(), opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock_shared(1)", holder);
    const killed = await waiting("SELECT pg_advisory_xact_lock(1)");
    const ended = await waiting("SELECT pg_advisory_xact_lock(1)", two);
    const last = await waiting("SELECT pg_advisory_xact_lock_shared(1)", three);
    const [[id, state] = []] = await engine.rows(
      "SELECT query_id, state FROM system.queries JOIN system.advisory_locks USING (query_id) WHERE transaction_id IS NULL",
    );
    expect(state).toBe("waiting");
    await engine.run(`KILL QUERY '${String(id)}'`);
    expect(await codeOf(killed)).toBe("CANCELLED");
    expect(await last.hasEnded()).toBe(false);
    await engine.run(`KILL TRANSACTION '${String(two.transaction)}'`);
    expect(await codeOf(ended)).toBe("CANCELLED");
    expect(await codeOf(last)).toBe(VOID);
  });

  test("a server that stops ends a wait", async () => {
    await engine.run("SELECT pg_advisory_xact_lock(1)", opened());
    const other = await waiting("SELECT pg_advisory_xact_lock(1)");
    engine.database.sql.shutDown();
    expect(await codeOf(other)).toBe("SHUTTING_DOWN");
    await engine.restart();
    expect(await tries("xact_lock(1)")).toBe(true);
  });

  test("a circle of waiting transactions is refused, and the others continue", async () => {
    const [one, two, three] = [opened(), opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock(1)", one);
    await engine.run("SELECT pg_advisory_xact_lock(2)", two);
    await engine.run("SELECT pg_advisory_xact_lock(3)", three);
    const waitsForTwo = await waiting("SELECT pg_advisory_xact_lock(2)", one);
    const waitsForThree = await waiting("SELECT pg_advisory_xact_lock(3)", two);
    const { error } = await engine.ask("SELECT pg_advisory_xact_lock(1)", three);
    expect([error?.code, error?.message]).toEqual([
      "SERIALIZATION_FAILURE",
      expect.stringContaining("this would cause a deadlock"),
    ]);
    expect(await codeOf(waitsForThree)).toBe(VOID);
    await engine.run("COMMIT", two);
    expect(await codeOf(waitsForTwo)).toBe(VOID);
  });

  test("a circle through a shared lock or through the queue is refused", async () => {
    const [one, two, three] = [opened(), opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock_shared(1)", one);
    await engine.run("SELECT pg_advisory_xact_lock_shared(1)", two);
    const upgrade = await waiting("SELECT pg_advisory_xact_lock(1)", one);
    expect(await engine.failure("SELECT pg_advisory_xact_lock(1)", two)).toStartWith(
      "SERIALIZATION",
    );
    expect(await codeOf(upgrade)).toBe(VOID);
    await engine.run("SELECT pg_advisory_xact_lock(5)", three);
    await waiting("SELECT pg_advisory_xact_lock_shared(1)", three);
    expect(await engine.failure("SELECT pg_advisory_xact_lock(5)", one)).toStartWith(
      "SERIALIZATION",
    );
  });

  test("a holder that asks for another mode of its lock precedes waiting transactions", async () => {
    const [one, two] = [opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock_shared(1)", one);
    const other = await waiting("SELECT pg_advisory_xact_lock(1)", two);
    expect(await tries("xact_lock(1)", one)).toBe(true);
    await engine.run("COMMIT", one);
    expect(await codeOf(other)).toBe(VOID);
  });
});

describe("statements with advisory locks run once", () => {
  test("a query that waits keeps the answers that it has already received", async () => {
    const [holder, one] = [opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock(3), pg_advisory_xact_lock(5)", holder);
    const sql =
      "SELECT pg_try_advisory_lock(5), pg_advisory_unlock(10), pg_advisory_lock(1), pg_advisory_lock(3)";
    await engine.run("SELECT pg_advisory_lock(10)", one);
    const asked = await waiting(sql, one);
    await engine.run("COMMIT", holder);
    expect(await codeOf(asked)).toBe('[[false,true,"",""]]');
    for (const key of [1, 3]) {
      expect(
        await engine.rows(`SELECT pg_advisory_unlock(${key}), pg_advisory_unlock(${key})`, one),
      ).toEqual([[true, false]]);
    }
  });

  test("a call runs for each row, once, and also if its result is not used", async () => {
    const one = opened();
    await engine.run(
      "SELECT count(*) FROM (SELECT pg_advisory_lock(1) FROM generate_series(1, 3)) s",
      one,
    );
    await engine.run("WITH w AS (SELECT pg_advisory_lock(2)) SELECT 1 FROM w a, w b", one);
    await engine.run("SELECT v FROM t WHERE id = 1 AND pg_try_advisory_lock(id + 2)", one);
    await engine.run("SELECT pg_try_advisory_lock(4), v FROM t WHERE id = 1", one);
    const counts: unknown[] = [];
    for (const key of [1, 2, 3, 4]) {
      let count = 0;
      while ((await engine.rows(`SELECT pg_advisory_unlock(${key})`, one))[0]?.[0] === true)
        count += 1;
      counts.push(count);
    }
    expect(counts).toEqual([3, 1, 1, 1]);
  });

  test("a query by key waits for a lock", async () => {
    const holder = opened();
    await engine.run("SELECT pg_advisory_xact_lock(11)", holder);
    const asked = await waiting("SELECT v, pg_advisory_xact_lock(v + 1) FROM t WHERE id = 1");
    await engine.run("COMMIT", holder);
    expect(await codeOf(asked)).toBe('[[10,""]]');
  });

  test("a change takes the rows of a queue that nobody else has locked", async () => {
    await engine.run("INSERT INTO t VALUES (2, 20), (3, 30)");
    const [one, two] = [opened(), opened()];
    const take =
      "UPDATE t SET v = v + 1 WHERE id = (SELECT id FROM t WHERE pg_try_advisory_xact_lock(id) ORDER BY id LIMIT 1) RETURNING id";
    await engine.run("SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(2)", one);
    expect(await engine.rows(take, two)).toEqual([[3]]);
    await engine.run("COMMIT", one);
    expect(
      await engine.rows("DELETE FROM t WHERE pg_try_advisory_xact_lock(id) RETURNING id"),
    ).toEqual([[1], [2]]);
  });

  test("a change that takes other rows along has its locks until the end of the request", async () => {
    await engine.run(
      "CREATE TABLE c (id INT PRIMARY KEY, t_id INT REFERENCES t (id) ON DELETE CASCADE)",
    );
    await engine.run("INSERT INTO c VALUES (5, 1)");
    await engine.run("DELETE FROM t WHERE pg_try_advisory_xact_lock(id)");
    await engine.run(
      "WITH w AS (INSERT INTO t VALUES (1, 10) RETURNING id) SELECT pg_try_advisory_xact_lock(id) FROM w",
    );
    expect(await engine.rows("SELECT count(*) FROM c")).toEqual([[0]]);
    expect(await engine.rows("SELECT count(*) FROM system.advisory_locks")).toEqual([[0]]);
    expect(await engine.failure("DELETE FROM t WHERE pg_try_advisory_lock(id)")).toStartWith(
      "TRANSACTION_REQUIRED",
    );
  });

  test("a query whose table is altered or dropped while it waits is bound again", async () => {
    const changes: readonly (readonly [sql: string, answer: string])[] = [
      ["ALTER TABLE t ADD COLUMN w INT", '[[1,10,""]]'],
      ["ALTER TABLE t ALTER COLUMN v TYPE BIGINT", '[[1,10,""]]'],
      ["ALTER TABLE t DROP COLUMN v", "COLUMN_NOT_FOUND"],
      ["DROP TABLE t", "TABLE_NOT_FOUND"],
    ];
    for (const [change, answer] of changes) {
      const holder = opened();
      await engine.run("SELECT pg_advisory_xact_lock(1)", holder);
      const sql = "SELECT id, v, pg_advisory_xact_lock(1) FROM t";
      const [asked, within] = [await waiting(sql), await waiting(sql, opened())];
      await engine.run(change);
      await engine.run("COMMIT", holder);
      expect(await codeOf(asked), change).toBe(answer);
      if (change.startsWith("DROP")) return;
      await engine.run("ALTER TABLE t ADD COLUMN IF NOT EXISTS v INT; UPDATE t SET v = 10");
      expect(await codeOf(within), change).toBe(answer);
      const [[id] = []] = await engine.rows("SELECT transaction_id FROM system.transactions");
      await engine.run(`KILL TRANSACTION '${String(id)}'`);
    }
  });

  test("a wait outside a transaction ends after an hour", async () => {
    await engine[Symbol.asyncDispose]();
    const config =
      "performance.request_timeout = 0\nlimits.transaction_timeout_secs = 3600\nlimits.transaction_idle_secs = 3600";
    engine = await TestEngine.open({ clock, config });
    const one = opened();
    await engine.run("SELECT pg_advisory_xact_lock(1)", one);
    const asked = await waiting("SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(2)");
    clock.advance(1000);
    const two = opened();
    await engine.run("SELECT pg_advisory_xact_lock(2)", two);
    await engine.run("COMMIT", one);
    expect(await asked.hasEnded()).toBe(false);
    clock.advance(3_598_999);
    expect(await asked.hasEnded()).toBe(false);
    clock.advance(1);
    expect(await codeOf(asked)).toBe("LIMIT_EXCEEDED");
    expect(await tries("xact_lock(2)")).toBe(false);
  });

  test("EXPLAIN takes no lock, and EXPLAIN ANALYZE takes it", async () => {
    const one = opened();
    await engine.run("EXPLAIN SELECT pg_advisory_lock(1)", one);
    expect(await engine.rows("SELECT pg_advisory_unlock(1)", one)).toEqual([[false]]);
    await engine.run("EXPLAIN ANALYZE SELECT pg_advisory_lock(1)", one);
    expect(await engine.rows("SELECT pg_advisory_unlock(1)", one)).toEqual([[true]]);
  });

  test("a transaction has at most 1,000 advisory locks", async () => {
    const one = opened();
    const all = "SELECT count(pg_try_advisory_xact_lock(g)) FROM generate_series(1, 1000) g";
    expect(await engine.rows(all, one)).toEqual([[1000]]);
    await engine.run("SELECT pg_advisory_xact_lock(1), pg_advisory_lock(1000)", one);
    expect(await engine.failure("SELECT pg_advisory_xact_lock(0)", one)).toStartWith(
      "TRANSACTION_LIMIT",
    );
    expect(await tries("xact_lock(1000)")).toBe(true);
    expect(await engine.rows("SELECT count(*) FROM system.advisory_locks")).toEqual([[0]]);
  });

  test("functions that wait are refused in FROM and in changes, and all in definitions", async () => {
    await engine.run("CREATE TABLE r (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED')");
    for (const sql of [
      "SELECT * FROM pg_advisory_xact_lock(1)",
      "UPDATE t SET v = 1 WHERE pg_advisory_xact_lock(id) = ''",
      "WITH w AS (DELETE FROM t RETURNING id) SELECT pg_advisory_xact_lock(id) FROM w",
      "CREATE TABLE d (id INT PRIMARY KEY, b BOOLEAN DEFAULT pg_try_advisory_xact_lock(1))",
      "CREATE POLICY p ON r USING (pg_try_advisory_xact_lock(id))",
      "ALTER TABLE t ALTER COLUMN v TYPE TEXT USING pg_advisory_xact_lock(v)",
    ]) {
      expect(await engine.failure(sql), sql).toMatch(
        /^(?:UNSUPPORTED_FEATURE|INVALID_DEFINITION)@1/,
      );
    }
    const one = opened();
    expect(await engine.rows("SELECT * FROM pg_try_advisory_lock(1)", one)).toEqual([[true]]);
    expect(await engine.rows("SELECT pg_advisory_unlock(1)", one)).toEqual([[true]]);
  });
});

describe("a transaction sees the changes of the holder for which it has waited", () => {
  test("the snapshot of a transaction that has read nothing moves to the time of its lock", async () => {
    const [one, two, three] = [opened(), opened(), opened()];
    await engine.run("SELECT pg_advisory_xact_lock(1)", one);
    const other = await waiting("SELECT pg_advisory_xact_lock(1)", two);
    await engine.run("UPDATE t SET v = 11; COMMIT", one);
    await other.answer;
    expect(await engine.rows("SELECT v FROM t", two)).toEqual([[11]]);
    await engine.run("UPDATE t SET v = 12; COMMIT", two);
    await engine.run("SAVEPOINT a; SELECT pg_advisory_xact_lock(1)", three);
    expect(await engine.rows("SELECT v FROM t", three)).toEqual([[12]]);
  });

  test("the snapshot of a transaction that has read, changed or defined something stays", async () => {
    for (const used of [
      "SELECT v FROM t",
      "SELECT v FROM t WHERE id = 1",
      "SELECT v, pg_try_advisory_xact_lock(5) FROM t",
      "INSERT INTO t VALUES (2, 20)",
      "CREATE TABLE other (id INT PRIMARY KEY)",
      "DECLARE c CURSOR FOR SELECT v FROM t",
      "SELECT v FROM t FOR UPDATE",
    ]) {
      await engine.run("UPDATE t SET v = 10");
      const one = opened();
      await engine.run(used, one);
      await engine.run("UPDATE t SET v = 11");
      await engine.run("SELECT pg_advisory_xact_lock(1)", one);
      expect(await engine.rows("SELECT v FROM t WHERE id = 1", one), used).toEqual([[10]]);
      await engine.run("ROLLBACK", one);
    }
  });
});

describe("each user of role user has advisory locks of their own", () => {
  test("users lock their own keys, which administrators and services share among themselves", async () => {
    for (const [user, role] of [
      ["ann", "user"],
      ["ben", "user"],
      ["sam", "service"],
    ]) {
      await engine.run(`CREATE USER ${user} INTERNAL ROLE ${role}`);
    }
    const as = (user: string): RequestParts => {
      engine.userId = user;
      return opened();
    };
    await engine.run("SELECT pg_advisory_xact_lock(1)", as("ann"));
    expect(await tries("xact_lock(1)", as("ann"))).toBe(false);
    expect(await tries("xact_lock(1)", as("ben"))).toBe(true);
    expect(await tries("xact_lock(1)", as("sam"))).toBe(true);
    engine.userId = "root";
    expect(await tries("xact_lock(1)")).toBe(false);
    expect(
      await engine.rows("EXECUTE AS USER 'ann' (SELECT pg_try_advisory_xact_lock(1))"),
    ).toEqual([[false]]);
    expect(
      await engine.rows(
        "SELECT key, key_user_id, user_id, transaction_id IS NULL, query_id, since IS NULL FROM system.advisory_locks ORDER BY user_id",
      ),
    ).toEqual([
      ["1", "ann", "ann", false, null, false],
      ["1", "ben", "ben", false, null, false],
      ["1", null, "sam", false, null, false],
    ]);
    engine.userId = "ann";
    expect(await engine.failure("SELECT * FROM system.advisory_locks")).toStartWith("PERMISSION");
  });
});
