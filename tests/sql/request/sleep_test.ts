/**
 * Tests PG_SLEEP: it takes the requested time, delays no other request, is allowed only in certain
 * places, and can be ended.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { type RequestParts, TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

let clock: ManualClock;
let engine: TestEngine;

beforeEach(async () => {
  clock = new ManualClock();
  const config = "performance.request_timeout = 0\nlimits.transaction_timeout_secs = 100";
  engine = await TestEngine.open({ clock, config });
});
afterEach(() => engine[Symbol.asyncDispose]());

const RUNNING = "SELECT query_id, state FROM system.queries WHERE sql ILIKE 'SELECT pg_sl%'";

/**
 * Sends a request, and returns once the request is sleeping. `now` tells whether the request has
 * ended.
 */
async function asleep(
  sql: string,
  parts: RequestParts = {},
): Promise<{ answer: Promise<SqlResponse>; hasEnded: () => Promise<boolean> }> {
  const { timerCount } = clock;
  let isOver = false;
  const answer = engine.ask(sql, parts).finally(() => {
    isOver = true;
  });
  await until(() => isOver || clock.timerCount > timerCount);
  const hasEnded = async (): Promise<boolean> => {
    for (let turn = 0; turn < 20; turn += 1) await clock.yield();
    return isOver;
  };
  return { answer, hasEnded };
}

/**
 * Returns the response to a statement that sleeps several times, after checking that it did not
 * end early.
 */
async function afterSleeps(
  sql: string,
  { ms, times }: { ms: number; times: number },
): Promise<readonly (readonly unknown[])[]> {
  const { answer, hasEnded } = await asleep(sql);
  for (let time = 0; time < times; time += 1) {
    clock.advance(ms - 1);
    expect(await hasEnded(), `sleep ${time + 1}`).toBe(false);
    clock.advance(1);
    await hasEnded();
  }
  const { error, results } = await answer;
  expect(error?.message).toBeUndefined();
  return results.at(-1)?.rows ?? [];
}

describe("PG_SLEEP takes the requested time", () => {
  test("PG_SLEEP returns an empty string", async () => {
    expect(await afterSleeps("SELECT PG_SLEEP(1.5)", { ms: 1500, times: 1 })).toEqual([[""]]);
  });

  test("PG_SLEEP sleeps once for each row, whatever else the statement computes", async () => {
    const rows = await afterSleeps(
      "SELECT g, pg_sleep(g) FROM generate_series(2, 4) g WHERE g > 2",
      {
        ms: 1000,
        times: 7,
      },
    );
    expect(rows).toEqual([
      [3, ""],
      [4, ""],
    ]);
  });

  test.each([
    ["two in one row", "SELECT pg_sleep(1), pg_sleep(1)", [["", ""]], 2],
    ["in WHERE", "SELECT 1 WHERE pg_sleep(1) = ''", [[1]], 1],
    [
      "in a branch that is taken",
      "SELECT CASE WHEN g > 1 THEN pg_sleep(1) END FROM generate_series(1, 2) g",
      [[null], [""]],
      1,
    ],
    ["in a subquery", "SELECT 1, (SELECT pg_sleep(1))", [[1, ""]], 1],
    ["in FROM", "SELECT count(*) FROM (SELECT pg_sleep(1) FROM generate_series(1, 3)) q", [[3]], 3],
    ["in WITH", "WITH s AS (SELECT pg_sleep(1) AS x) SELECT a.x, b.x FROM s a, s b", [["", ""]], 1],
    ["in an aggregate", "SELECT count(pg_sleep(1)) FROM generate_series(1, 2)", [[2]], 2],
    [
      "in ORDER BY",
      "SELECT g FROM generate_series(1, 2) g ORDER BY pg_sleep(1), g DESC",
      [[2], [1]],
      2,
    ],
    [
      "beside another on either side of a join",
      "SELECT a.x, b.x FROM (SELECT pg_sleep(1) x) a, (SELECT pg_sleep(1) x) b",
      [["", ""]],
      2,
    ],
    ["in LIMIT", "SELECT 1 LIMIT 1 + length(pg_sleep(1))", [[1]], 1],
    ["in VALUES", "VALUES (pg_sleep(1)), (pg_sleep(1))", [[""], [""]], 2],
    [
      "in a subquery for each row",
      "SELECT (SELECT pg_sleep(1) WHERE g > 0) FROM generate_series(1, 2) g",
      [[""], [""]],
      2,
    ],
    ["in EXISTS", "SELECT EXISTS (SELECT 1 WHERE pg_sleep(1) = '')", [[true]], 1],
  ] as const)("%s", async (_, sql, expected, times) => {
    expect(await afterSleeps(sql, { ms: 1000, times })).toEqual(expected.map((row) => [...row]));
  });

  test("PG_SLEEP does not sleep for NULL, zero and negative numbers", async () => {
    const sql = "SELECT pg_sleep(NULL), pg_sleep(0), pg_sleep(-1), pg_sleep($1)";
    expect(await engine.rows(sql, { params: [0] })).toEqual([[null, "", "", ""]]);
  });

  test("PG_SLEEP lets other requests proceed", async () => {
    await engine.run("CREATE TABLE t (id INT PRIMARY KEY)");
    const { answer } = await asleep("SELECT pg_sleep(60) FROM generate_series(1, 2)");
    await engine.run("INSERT INTO t VALUES (1)");
    expect(await engine.rows("SELECT id FROM t")).toEqual([[1]]);
    expect(engine.database.sql.shutDown()).toBe(1);
    await answer;
  });
});

describe("PG_SLEEP can be used in a transaction", () => {
  beforeEach(async () => {
    await engine.run("CREATE TABLE kv (a INT PRIMARY KEY, v INT); INSERT INTO kv VALUES (2, 30)");
  });

  test("PG_SLEEP in a transaction allows a conflict, in which the first committer wins", async () => {
    const text = "BEGIN; UPDATE kv SET v = v + 1 WHERE a = 2; SELECT PG_SLEEP(0.5); COMMIT";
    const { answer } = await asleep(text);
    await engine.run("UPDATE kv SET v = 99 WHERE a = 2");
    clock.advance(500);
    expect((await answer).error?.code).toBe("SERIALIZATION_FAILURE");
    expect(await engine.rows("SELECT v FROM kv")).toEqual([[99]]);
  });

  test("PG_SLEEP in a transaction does not change its snapshot", async () => {
    const count = "SELECT count(*) FROM kv";
    const { answer } = await asleep(`BEGIN; ${count}; SELECT PG_SLEEP(0.5); ${count}; COMMIT`);
    await engine.run("INSERT INTO kv VALUES (4, 0)");
    clock.advance(500);
    const { error, results } = await answer;
    expect(error).toBeUndefined();
    expect([results[1]?.rows, results[3]?.rows]).toEqual([[[1]], [[1]]]);
    expect(await engine.rows(count)).toEqual([[2]]);
  });
});

describe("PG_SLEEP ends early if its request ends", () => {
  test("PG_SLEEP ends at once with KILL QUERY", async () => {
    const { answer } = await asleep("SELECT pg_sleep(3000)");
    const [running] = await engine.rows(RUNNING);
    expect(running?.[1]).toBe("running");
    await engine.run(`KILL QUERY '${String(running?.[0])}'`);
    expect((await answer).error?.code).toBe("CANCELLED");
  });

  test("PG_SLEEP ends when the server stops", async () => {
    const { answer } = await asleep("SELECT pg_sleep(3000)");
    engine.database.sql.shutDown();
    expect((await answer).error?.code).toBe("SHUTTING_DOWN");
  });

  test("PG_SLEEP ends when its reader leaves, even below EXPLAIN ANALYZE", async () => {
    for (const explain of ["", "EXPLAIN ANALYZE "]) {
      let leave = (): void => undefined;
      const reader = { onLeave: (callback: () => void) => void (leave = callback) };
      const { answer } = await asleep(`${explain}SELECT pg_sleep(3000)`, { reader });
      leave();
      expect((await answer).error?.code, explain).toBe("CANCELLED");
    }
  });

  test("PG_SLEEP ends at the time limit of its statement", async () => {
    const { answer, hasEnded } = await asleep("SELECT pg_sleep(3000)", { timeoutMs: 2000 });
    clock.advance(1999);
    expect(await hasEnded()).toBe(false);
    clock.advance(1);
    expect((await answer).error?.code).toBe("STATEMENT_TIMEOUT");
  });

  test("PG_SLEEP ends at the time limit of its transaction", async () => {
    const { answer } = await asleep("BEGIN; SELECT pg_sleep(3000); COMMIT");
    clock.advance(100_001);
    expect((await answer).error?.code).toBe("TRANSACTION_LIMIT");
  });

  test("PG_SLEEP ends after an hour in a request without a time limit", async () => {
    expect(await engine.failure("SELECT pg_sleep(3601)")).toBe("LIMIT_EXCEEDED@1");
    const { answer, hasEnded } = await asleep("SELECT pg_sleep(2000) FROM generate_series(1, 9)");
    clock.advance(2_000_000);
    expect(await hasEnded()).toBe(true);
    expect((await answer).error?.message).toBe(
      "Cannot sleep for 2000 s: a request may sleep for at most 3600 s in total",
    );
  });
});

describe("PG_SLEEP is refused to roles that may not use it", () => {
  test("PG_SLEEP is refused to roles below service, also under EXECUTE AS and through a view", async () => {
    await engine.run(
      "CREATE USER ann INTERNAL; CREATE NAMESPACE app;" +
        "CREATE VIEW app.naps AS SELECT pg_sleep(0) AS nap",
    );
    expect(await engine.failure("EXECUTE AS 'ann' (SELECT pg_sleep(0))")).toBe(
      "PERMISSION_DENIED@1:25",
    );
    engine.userId = "ann";
    for (const sql of ["SELECT pg_sleep(0)", "SELECT nap FROM app.naps"]) {
      const { error } = await engine.ask(sql);
      expect(error?.code, sql).toBe("PERMISSION_DENIED");
      expect(error?.message, sql).toBe(
        "Cannot call PG_SLEEP: this requires the role service or higher",
      );
    }
    expect(await engine.rows("SELECT table_name FROM information_schema.views")).toEqual([]);
  });

  test.each([
    "INSERT INTO t SELECT 1, pg_sleep(0)",
    "INSERT INTO t VALUES (1, pg_sleep(0))",
    "UPDATE t SET x = '' WHERE pg_sleep(0) = ''",
    "WITH s AS (SELECT pg_sleep(0) AS x) DELETE FROM t USING s WHERE t.x = s.x",
    "CREATE TABLE u (id INT PRIMARY KEY, x TEXT DEFAULT pg_sleep(0))",
    "SELECT * FROM pg_sleep(0)",
  ])("where nobody can wait for it: %s", async (sql) => {
    await engine.run("CREATE TABLE t (id INT PRIMARY KEY, x TEXT)");
    const { error } = await engine.ask(sql);
    expect(error?.code).toBe("UNSUPPORTED_FEATURE");
    expect(error?.message).toStartWith("Cannot call PG_SLEEP");
    expect(error?.hint).toMatch(/SELECT PG_SLEEP|select list/);
  });

  test("PG_SLEEP is refused with other arguments", async () => {
    for (const call of ["pg_sleep()", "pg_sleep(1, 2)", "pg_sleep(DATE '2025-01-01')"]) {
      expect(await engine.failure(`SELECT ${call}`), call).toBe("FUNCTION_NOT_FOUND@1:7");
    }
    expect(await engine.failure("SELECT pg_sleep('x')")).toStartWith("INVALID_VALUE@1");
  });
});

test("PG_SLEEP in a query whose table is altered while it sleeps binds the query again", async () => {
  await engine.run("CREATE TABLE altered (id INT PRIMARY KEY, v INT)");
  await engine.run("INSERT INTO altered VALUES (1, 10)");
  for (const [change, answer] of [
    ["ALTER TABLE altered ALTER COLUMN v TYPE BIGINT", [[1, 10, ""]]],
    ["ALTER TABLE altered DROP COLUMN v", undefined],
  ] as const) {
    const sleeping = await asleep("SELECT id, v, pg_sleep(1) FROM altered");
    await engine.run(change);
    clock.advance(1000);
    const { error, results } = await sleeping.answer;
    expect([error?.code, results[0]?.rows]).toEqual([
      answer === undefined ? "COLUMN_NOT_FOUND" : undefined,
      answer,
    ]);
  }
});
