/**
 * Tests BEGIN … COMMIT: a transaction reads one snapshot and its own writes, and makes one commit.
 * Also tests which of two conflicting transactions succeeds.
 *
 * The test chooses the point at which two requests meet: the first SELECT of the paused request
 * yields as if its time slice were over.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

/** Matches the stack trace of a request that yields between its statements or during binding. */
const BINDING = /\bpauser\.ts.*\n.*\brequest\.ts/;

/** The maximum number of clock checks that each advance the clock by 10 ms. */
const HURRIES_MAX = 100;

/** A clock that, once armed, pauses the next request that yields. */
class PausingClock extends ManualClock {
  #isArmed = false;
  #hurriedCount = 0;
  #entered = Promise.withResolvers<void>();
  #resumed = Promise.withResolvers<void>();

  override monotonicMs(): number {
    // Advancing the clock soon ends the time slice of the reading request, without exceeding its
    // time limit.
    if (this.#isArmed && this.#hurriedCount < HURRIES_MAX) {
      this.#hurriedCount += 1;
      this.advance(10);
    }
    return super.monotonicMs();
  }

  override yield(): Promise<void> {
    if (!this.#isArmed || BINDING.test(new Error().stack ?? "")) return super.yield();
    this.#isArmed = false;
    this.#entered.resolve();
    return this.#resumed.promise;
  }

  /** Starts some work, and waits until it is paused. */
  async hold<T>(start: () => Promise<T>): Promise<{ resume: () => Promise<T> }> {
    this.#entered = Promise.withResolvers();
    this.#resumed = Promise.withResolvers();
    this.#isArmed = true;
    this.#hurriedCount = 0;
    const running = start();
    await this.#entered.promise;
    return {
      resume: () => {
        this.#resumed.resolve();
        return running;
      },
    };
  }
}

const clock = new PausingClock();
let engine: TestEngine;

beforeAll(async () => {
  const config = "limits.transaction_timeout_secs = 5\nlimits.transaction_max_bytes = 1048576";
  engine = await TestEngine.open({ clock, config });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE USER TABLE u (id INT PRIMARY KEY, v TEXT)",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  await engine.run("DELETE FROM t; INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
});

test.each(["in memory", "in a segment"])(
  "a transaction reads its own writes over rows %s",
  async (where) => {
    if (where === "in a segment") await engine.run("STORAGE FLUSH TABLE t");
    const results = await engine.run(
      "BEGIN; INSERT INTO t VALUES (4, 40); UPDATE t SET v = v + 1 WHERE id <= 2; DELETE FROM t WHERE id = 3;" +
        "SELECT id, v FROM t ORDER BY id; SELECT v FROM t WHERE id = 4; SELECT v FROM t WHERE id = 3;" +
        "SELECT a.id FROM t a JOIN t b ON a.v = b.v WHERE b.id = 2; SELECT count(*), sum(v) FROM t WHERE v > 11;" +
        "UPDATE t SET v = 41 WHERE id = 4; INSERT INTO t VALUES (3, 33); SELECT id, v FROM t ORDER BY id; COMMIT",
    );
    const rows = results.map((entry) => entry.rows);
    expect(rows[4]).toEqual([
      [1, 11],
      [2, 21],
      [4, 40],
    ]);
    expect(rows[5]).toEqual([[40]]);
    expect(rows[6]).toEqual([]);
    expect(rows[7]).toEqual([[2]]);
    expect(rows[8]).toEqual([[2, 61]]);
    expect(rows[11]).toEqual([
      [1, 11],
      [2, 21],
      [3, 33],
      [4, 41],
    ]);
    expect(await engine.rows("SELECT id, v FROM t ORDER BY id")).toEqual(rows[11] ?? []);
  },
);

describe("COMMIT writes the net effect", () => {
  test.each([
    ["insert and delete", "INSERT INTO t VALUES (9, 1); DELETE FROM t WHERE id = 9"],
    ["change and change back", "UPDATE t SET v = 0 WHERE id = 1; UPDATE t SET v = 10 WHERE id = 1"],
    ["delete and insert the same", "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 10)"],
    ["no change", "UPDATE t SET v = v"],
    ["nothing", "SELECT 1"],
  ])("of %s: none", async (_, statements) => {
    const before = await engine.rows("SELECT id, v, _seq FROM t");
    const results = await engine.run(`BEGIN; ${statements}; COMMIT`);
    expect(results.at(-1)?.lastSeq).toBeNull();
    expect(await engine.rows("SELECT id, v, _seq FROM t")).toEqual(before);
  });

  test("COMMIT writes one version for several changes to a key", async () => {
    await engine.run(
      "BEGIN; UPDATE t SET v = 1 WHERE id = 1; UPDATE t SET v = 2 WHERE id = 1; DELETE FROM t WHERE id = 2;" +
        "INSERT INTO t VALUES (2, 5); COMMIT",
    );
    expect(await engine.rows("SELECT id, v FROM t ORDER BY id")).toEqual([
      [1, 2],
      [2, 5],
      [3, 30],
    ]);
  });
});

describe("a transaction is isolated from a concurrent request", () => {
  async function interleaved(first: string, second: string): Promise<[string, string]> {
    const held = await clock.hold(() => engine.failure(first));
    const b = await engine.failure(second);
    return [await held.resume(), b];
  }

  test("a concurrent request wins if it changes rows that the transaction has written", async () => {
    const [a, b] = await interleaved(
      "BEGIN; UPDATE t SET v = 0 WHERE id = 2; SELECT count(*) FROM t; COMMIT",
      "UPDATE t SET v = 99 WHERE id = 2",
    );
    expect(a).toBe("SERIALIZATION_FAILURE@4");
    expect(b).toStartWith("succeeded");
    expect(await engine.rows("SELECT v FROM t WHERE id = 2")).toEqual([[99]]);
  });

  test.each([
    ["inserts a key that the transaction inserts", "INSERT INTO t VALUES (7, 7)"],
    ["deletes a row that the transaction changes", "DELETE FROM t WHERE id = 1"],
  ])("wins when it %s; no change of the loser is kept", async (_, second) => {
    const [a] = await interleaved(
      "BEGIN; INSERT INTO t VALUES (7, 0), (8, 0); UPDATE t SET v = 0 WHERE id = 1; SELECT count(*) FROM t; COMMIT",
      second,
    );
    expect(a).toStartWith("SERIALIZATION_FAILURE@5");
    expect(await engine.rows("SELECT id FROM t WHERE v = 0")).toEqual([]);
  });

  test.each([
    ["UPDATE … FROM", "UPDATE t SET v = o.v + 1 FROM t o WHERE o.id = t.id % 2 + 1 AND t.id < 3"],
    ["DELETE … USING", "DELETE FROM t USING (VALUES (1), (2)) k (id) WHERE t.id = k.id"],
    ["INSERT … SELECT", "INSERT INTO t SELECT id + 6, 0 FROM t WHERE id < 3"],
    [
      "an upsert",
      "INSERT INTO t SELECT id, 0 FROM t WHERE id < 3 ON CONFLICT (id) DO UPDATE SET v = 0",
    ],
  ])("wins over %s if it writes one of its keys, and only then", async (_, change) => {
    const text = `BEGIN; ${change}; SELECT count(*) FROM t; COMMIT`;
    const touching = change.startsWith("INSERT INTO t SELECT id + 6")
      ? "INSERT INTO t VALUES (8, 8)"
      : "UPDATE t SET v = 99 WHERE id = 2";
    const [lost] = await interleaved(text, touching);
    expect(lost).toStartWith("SERIALIZATION_FAILURE@4");
    // Another request may write rows that this transaction has only read.
    await engine.run("DELETE FROM t WHERE id > 3");
    const [won] = await interleaved(text, "UPDATE t SET v = 31 WHERE id = 3");
    expect(won).toStartWith("succeeded");
  });

  test("a concurrent commit that is not durable yet is not in the snapshot, and wins", async () => {
    const writing = engine.run("UPDATE t SET v = 11 WHERE id = 1");
    const failure = await engine.failure("BEGIN; UPDATE t SET v = v + 1 WHERE id = 1; COMMIT");
    await writing;
    expect(failure).toBe("SERIALIZATION_FAILURE@3");
    expect(await engine.rows("SELECT v FROM t WHERE id = 1")).toEqual([[11]]);
  });

  test("a concurrent request is not visible to the transaction, and does not disturb it otherwise", async () => {
    const held = await clock.hold(() =>
      engine.run(
        "BEGIN; SELECT sum(v) FROM t; UPDATE t SET v = 0 WHERE id = 1; SELECT count(*) FROM t; SELECT sum(v) FROM t; COMMIT",
      ),
    );
    await engine.run(
      "INSERT INTO t VALUES (5, 500); UPDATE t SET v = 21 WHERE id = 2; STORAGE FLUSH TABLE t",
    );
    const results = await held.resume();
    expect([results[1]?.rows, results[4]?.rows]).toEqual([[[60]], [[50]]]);
    expect(await engine.rows("SELECT sum(v) FROM t")).toEqual([[551]]);
  });

  test("a concurrent request that alters a table of the transaction makes the transaction fail", async () => {
    await engine.run("CREATE TABLE w (id INT PRIMARY KEY, v INT); INSERT INTO w VALUES (1, 1)");
    const [a] = await interleaved(
      "BEGIN; UPDATE w SET v = 2 WHERE id = 1; SELECT count(*) FROM t; COMMIT",
      "ALTER TABLE w DROP COLUMN v",
    );
    expect(a).toStartWith("SERIALIZATION_FAILURE");
    const [b] = await interleaved(
      "BEGIN; DELETE FROM w; SELECT count(*) FROM t; COMMIT",
      "DROP TABLE w",
    );
    expect(b).toMatch(/^(SERIALIZATION_FAILURE|TABLE_NOT_FOUND)/);
  });

  test("a transaction that exceeds its deadline is rolled back", async () => {
    const sql = "BEGIN; DELETE FROM t; SELECT count(*) FROM t; COMMIT";
    const held = await clock.hold(() => engine.failure(sql));
    clock.advance(6001);
    expect(await held.resume()).toBe("TRANSACTION_LIMIT@3");
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[3]]);
  });
});

describe("a transaction refuses what it cannot hold", () => {
  test.each([
    ["BEGIN; BEGIN", "INVALID_TRANSACTION_STATE@2:7"],
    ["COMMIT", "TRANSACTION_REQUIRED@1"],
    ["ROLLBACK", "TRANSACTION_REQUIRED@1"],
    ["BEGIN; DELETE FROM t", "TRANSACTION_OPEN@2"],
    ["BEGIN; CREATE TOPIC x; COMMIT", "INVALID_TRANSACTION_STATE@2:7"],
    ["BEGIN; CREATE INDEX CONCURRENTLY ON t (v); COMMIT", "INVALID_TRANSACTION_STATE@2:7"],
    ["BEGIN READ ONLY; DROP TABLE t; COMMIT", "INVALID_OPERATION@2"],
    ["BEGIN; STORAGE FLUSH TABLE t; COMMIT", "INVALID_TRANSACTION_STATE@2:7"],
    ["BEGIN; CREATE USER x INTERNAL; COMMIT", "INVALID_TRANSACTION_STATE@2:7"],
    ["SAVEPOINT a", "TRANSACTION_REQUIRED@1:0"],
    ["BEGIN; DELETE FROM t; RELEASE a; COMMIT", "OBJECT_NOT_FOUND@3:22"],
    ["BEGIN; SAVEPOINT a; DELETE FROM t; RELEASE a; ROLLBACK TO a; COMMIT", "OBJECT_NOT_FOUND@5"],
    [
      "BEGIN; DELETE FROM t; SAVEPOINT a; SELECT 1 / 0; COMMIT; ROLLBACK TO a",
      "DIVISION_BY_ZERO@4",
    ],
    [
      "BEGIN; DELETE FROM t; SAVEPOINT a; SELECT 1 / 0; ROLLBACK TO b; COMMIT",
      "DIVISION_BY_ZERO@4",
    ],
    ["BEGIN ISOLATION LEVEL SERIALIZABLE; COMMIT", "UNSUPPORTED_FEATURE@1"],
    ["BEGIN READ ONLY; DELETE FROM t; COMMIT", "INVALID_OPERATION@2"],
    ["BEGIN READ ONLY; DELETE FROM t WHERE FALSE; COMMIT", "INVALID_OPERATION@2"],
    ["BEGIN; INSERT INTO t VALUES (8, 1); INSERT INTO t VALUES (8, 2); COMMIT", "DUPLICATE_KEY@3"],
    ["BEGIN; INSERT INTO t VALUES (1, 1); COMMIT", "DUPLICATE_KEY@2"],
    ["BEGIN; INSERT INTO t VALUES (8, 1), (8, 1); COMMIT", "DUPLICATE_KEY@2"],
  ])("%s", async (sql, failure) => {
    expect(await engine.failure(sql)).toStartWith(failure);
    expect(await engine.rows("SELECT id, v FROM t ORDER BY id")).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ]);
  });

  test("a transaction refuses more bytes than limits.transaction_max_bytes", async () => {
    const rows = Array.from({ length: 20 }, (_, id) => `(${id}, '${"x".repeat(40_000)}')`).join(
      ", ",
    );
    const text = `BEGIN; INSERT INTO u VALUES ${rows}; COMMIT`;
    expect(await engine.failure(text)).toBe("TRANSACTION_LIMIT@2");
    expect(await engine.rows("SELECT count(*) FROM u")).toEqual([[0]]);
  });
});

describe("a transaction refuses a definition while a statement runs", () => {
  const AGAIN =
    "DROP TABLE d; CREATE TABLE d (id INT PRIMARY KEY, v INT); INSERT INTO d VALUES (1, 6)";

  beforeEach(async () => {
    await engine.run(
      "DROP TABLE IF EXISTS d; CREATE TABLE d (id INT PRIMARY KEY, v INT);" +
        "INSERT INTO d SELECT g, 0 FROM generate_series(1, 5000) g",
    );
  });

  async function meanwhile(first: string, second: string): Promise<SqlResponse> {
    const held = await clock.hold(() => engine.ask(first));
    await engine.run(second);
    return await held.resume();
  }

  test.each([
    ["INSERT INTO d SELECT g + 5000, 0 FROM generate_series(1, 9000) g", [9001, 6]],
    ["UPDATE d SET v = v + 1 FROM generate_series(1, 3000) g WHERE d.id = g % 5 + 1", [1, 7]],
    ["DELETE FROM d WHERE id IN (SELECT g FROM generate_series(1, 20000) g)", [0, null]],
    ["UPDATE t SET v = (SELECT max(d.v) FROM d WHERE d.id <= t.id) WHERE id < 3", [1, 6]],
  ])("that creates a table again: %s runs on the new one", async (sql, after) => {
    expect((await meanwhile(sql, AGAIN)).error).toBeUndefined();
    expect(await engine.rows("SELECT count(*), sum(v) FROM d")).toEqual([after]);
  });

  test.each([
    "INSERT INTO d SELECT g + 5000, 0 FROM generate_series(1, 3000) g",
    "UPDATE d SET v = v + 1",
  ])("that drops a table ends a transaction that is writing it: %s", async (sql) => {
    const { error } = await meanwhile(`BEGIN; ${sql}; COMMIT`, "DROP TABLE d");
    expect(error?.code).toBe("SERIALIZATION_FAILURE");
    expect(error?.message).toStartWith("Cannot continue writing default.d: it was ");
    expect(error?.statementIndex).toBe(1);
  });
});

test.each([
  ["BEGIN; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT 1; COMMIT", undefined],
  ["BEGIN; SET TRANSACTION ISOLATION LEVEL SNAPSHOT, READ WRITE; COMMIT", undefined],
  ["BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE DEFERRABLE; COMMIT", undefined],
  ["BEGIN READ ONLY, NOT DEFERRABLE; COMMIT", undefined],
  ["BEGIN DEFERRABLE, ; COMMIT", "INVALID_SQL@1:18"],
  ["SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ", undefined],
  ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "TRANSACTION_REQUIRED@1:0"],
  ["BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; COMMIT", "UNSUPPORTED_FEATURE@2"],
  ["BEGIN; SET TRANSACTION READ ONLY; COMMIT", "UNSUPPORTED_FEATURE@2"],
  ["BEGIN READ ONLY; SET TRANSACTION READ WRITE; COMMIT", "INVALID_OPERATION@2:17"],
  ["BEGIN; SET TRANSACTION; COMMIT", "INVALID_SQL@2"],
])("the modes of a transaction may be set within it: %s", async (sql, failure) => {
  if (failure === undefined) await engine.run(sql);
  else expect(await engine.failure(sql)).toStartWith(failure);
});

test("SHOW returns the isolation level and the time zone in PostgreSQL's words", async () => {
  expect((await engine.rows("SHOW TRANSACTION ISOLATION LEVEL"))[0]?.slice(0, 2)).toEqual([
    "transaction_isolation",
    "repeatable read",
  ]);
  expect((await engine.rows("SHOW TIME ZONE"))[0]?.slice(0, 2)).toEqual(["timezone", "UTC"]);
});

describe("ROLLBACK TO returns to a savepoint", () => {
  const after = async (sql: string): Promise<readonly (readonly unknown[])[]> => {
    await engine.run(`BEGIN; ${sql}; COMMIT`);
    return await engine.rows("SELECT id, v FROM t ORDER BY id");
  };

  test("ROLLBACK TO undoes changes since the savepoint, and nothing before it", async () => {
    expect(
      await after(
        "UPDATE t SET v = 11 WHERE id = 1; INSERT INTO t VALUES (4, 40); SAVEPOINT a;" +
          "UPDATE t SET v = 12 WHERE id = 1; DELETE FROM t WHERE id = 2; DELETE FROM t WHERE id = 4;" +
          "INSERT INTO t VALUES (5, 50); UPDATE t SET v = 51 WHERE id = 5; ROLLBACK TO a;" +
          "INSERT INTO t VALUES (6, 60)",
      ),
    ).toEqual([
      [1, 11],
      [2, 20],
      [3, 30],
      [4, 40],
      [6, 60],
    ]);
  });

  test("ROLLBACK TO may be repeated, and removes later savepoints", async () => {
    const text =
      "SAVEPOINT a; UPDATE t SET v = 1; SAVEPOINT b; UPDATE t SET v = 2; ROLLBACK TO a; UPDATE t SET v = 3; ROLLBACK TO a";
    expect(await after(text)).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ]);
    expect(await engine.failure(`BEGIN; ${text}; ROLLBACK TO b; COMMIT`)).toStartWith(
      "OBJECT_NOT_FOUND",
    );
  });

  test("ROLLBACK TO uses the latest savepoint of a name until it is released", async () => {
    expect(
      await after(
        "SAVEPOINT a; UPDATE t SET v = 1 WHERE id = 1; SAVEPOINT a; UPDATE t SET v = 2 WHERE id = 2; ROLLBACK TO a;" +
          "RELEASE a; UPDATE t SET v = 3 WHERE id = 3; ROLLBACK TO a; UPDATE t SET v = 9 WHERE id = 3",
      ),
    ).toEqual([
      [1, 10],
      [2, 20],
      [3, 9],
    ]);
  });

  test("ROLLBACK TO lets a text continue after a failed statement", async () => {
    const results = await engine.run(
      "BEGIN; UPDATE t SET v = 11 WHERE id = 1; SAVEPOINT a; INSERT INTO t VALUES (4, 40), (1, 1); DELETE FROM t;" +
        "ROLLBACK TO a; INSERT INTO t VALUES (5, 50); COMMIT",
    );
    expect(results.map(({ message }) => message)).toEqual([
      "Transaction started",
      "Updated 1 row(s)",
      "Savepoint a created",
      "Failed and rolled back: Cannot insert into default.t: key (id) = (1) already exists",
      "Skipped",
      "Transaction rolled back to savepoint a",
      "Inserted 1 row(s)",
      "Transaction committed",
    ]);
    expect(await engine.rows("SELECT id FROM t ORDER BY id")).toEqual([[1], [2], [3], [5]]);
  });

  test("ROLLBACK TO restores the settings at the savepoint", async () => {
    const results = await engine.run(
      "BEGIN; SET application_name = 'x'; SAVEPOINT a; SET application_name = 'y'; ROLLBACK TO a; SHOW application_name; COMMIT; SHOW application_name",
    );
    expect([results[5]?.rows?.[0]?.[1], results[7]?.rows?.[0]?.[1]]).toEqual(["x", "x"]);
  });
});

test("a transaction has at most a thousand savepoints", async () => {
  const text = `BEGIN; ${"SAVEPOINT a;".repeat(1001)} COMMIT`;
  expect(await engine.failure(text)).toStartWith("TRANSACTION_LIMIT@1002");
});

test("several transactions and single statements may follow each other in one text", async () => {
  await engine.run(
    "BEGIN; DELETE FROM t WHERE id = 1; ROLLBACK; DELETE FROM t WHERE id = 2; BEGIN READ WRITE;" +
      "DELETE FROM t WHERE id = 3; END",
  );
  expect(await engine.rows("SELECT id FROM t")).toEqual([[1]]);
});

describe("a failed request returns the entries that remain in effect", () => {
  const kept = async (sql: string): Promise<readonly (string | undefined)[]> => {
    const { error, results } = await engine.ask(sql);
    expect(error).toBeDefined();
    return results.map(({ message }) => message);
  };

  test("a failed request returns no entry of a transaction that was rolled back for any reason", async () => {
    const first = "INSERT INTO t VALUES (7, 7); BEGIN; INSERT INTO t VALUES (8, 8); SELECT 1;";
    for (const last of ["SELECT 1 / 0; COMMIT", "", "BEGIN"]) {
      expect(await kept(first + last)).toEqual(["Inserted 1 row(s)"]);
      expect(await engine.rows("SELECT id FROM t WHERE id > 3")).toEqual([[7]]);
      await engine.run("DELETE FROM t WHERE id = 7");
    }
  });

  test("a failed request returns the entries of transactions that had ended before", async () => {
    const ended = "BEGIN; INSERT INTO t VALUES (8, 8); COMMIT; BEGIN; DELETE FROM t; ROLLBACK;";
    expect(await kept(`${ended} BEGIN; DELETE FROM t; SELECT 1 / 0`)).toEqual([
      "Transaction started",
      "Inserted 1 row(s)",
      "Transaction committed",
      "Transaction started",
      "Deleted 4 row(s)",
      "Transaction rolled back",
    ]);
    expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[4]]);
  });

  test("a failed request returns the entries of a committed transaction, whatever fails after it", async () => {
    const committed = "BEGIN; INSERT INTO t VALUES (9, 9); COMMIT;";
    expect(await kept(`${committed} SELECT 1 / 0`)).toHaveLength(3);
    await engine.run("DELETE FROM t WHERE id = 9");
  });

  test("a failed request returns no entry of a transaction whose COMMIT fails", async () => {
    const held = await clock.hold(() =>
      engine.ask("BEGIN; SELECT id FROM t; UPDATE t SET v = 0 WHERE id = 1; COMMIT"),
    );
    await engine.run("UPDATE t SET v = 5 WHERE id = 1");
    const { error, results } = await held.resume();
    expect([error?.code, results]).toEqual(["SERIALIZATION_FAILURE", []]);
  });
});

test("one transaction writes rows of several owners", async () => {
  await engine.run("CREATE USER ann INTERNAL; CREATE USER ben INTERNAL");
  const text =
    "BEGIN; EXECUTE AS USER 'ann' (INSERT INTO u VALUES (1, $1)); EXECUTE AS USER 'ben' (INSERT INTO u VALUES (1, $2));" +
    "EXECUTE AS USER 'ann' (SELECT v FROM u); SELECT count(*) FROM u; COMMIT";
  const results = await engine.run(text, { params: ["a", "b"] });
  expect([results[3]?.rows, results[3]?.asUser, results[4]?.rows]).toEqual([[["a"]], "ann", [[0]]]);
  engine.userId = "ben";
  expect(await engine.rows("SELECT v FROM u")).toEqual([["b"]]);
  engine.userId = "root";
});

test("a parameter that no statement of a transaction uses is a fault of the text", async () => {
  const text = "BEGIN; SELECT $1; SELECT $3; COMMIT";
  expect(await engine.failure(text, { params: [1, 2, 3] })).toStartWith("INVALID_PARAMETER@1");
});

test("NOW() is the time of BEGIN throughout a transaction", async () => {
  const text = "BEGIN; SELECT NOW() FROM t LIMIT 1; SELECT NOW(); COMMIT; SELECT NOW()";
  const held = await clock.hold(() => engine.run(text));
  clock.advance(1000);
  const [, first, second, , after] = (await held.resume()).map((entry) => entry.rows?.[0]?.[0]);
  expect(second).toBe(first);
  expect(Number(after) - Number(first)).toBeGreaterThanOrEqual(1_000_000);
});
