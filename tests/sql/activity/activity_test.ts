/** Tests how running requests are listed and killed, and how statements are counted. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { slowSql } from "../../../src/sql/activity/activity.ts";
import { QueryStat } from "../../../src/sql/activity/query_stats.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

/**
 * The maximum time that a killed query may take to end on an otherwise idle machine, in
 * milliseconds.
 */
const KILL_MS_MAX = 250;

let engine: TestEngine;

beforeAll(async () => {
  const config = "performance.query_memory_bytes = 1073741824\nlimits.max_timeout_ms = 30000";
  engine = await TestEngine.open({ clock: systemClock, config, inThreads: true });
  await engine.run(
    "CREATE TABLE s (id INT PRIMARY KEY, a INT, t TEXT);" +
      "INSERT INTO s SELECT g, g % 100, 'text ' || g FROM generate_series(1, 3000) g;" +
      "CREATE USER ann WITH PASSWORD 'Correct-horse-9'",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const RUNNING = "SELECT query_id, user_id, as_user, state, rows_read, sql FROM system.queries";

describe("KILL QUERY ends statements", () => {
  const LONG: readonly string[] = [
    "SELECT count(*) FROM s a, s b, s c WHERE a.a + b.a + c.a < 0",
    "SELECT a.t FROM s a, s b ORDER BY a.t DESC, b.t",
    "SELECT count(*) FROM generate_series(1, 9000000000)",
    "SELECT count(*) FROM s x WHERE x.a < (SELECT count(*) FROM s y, s z WHERE y.a + z.a > x.id)",
    "SELECT x.id, (SELECT count(*) FROM s y, s z WHERE y.a = z.a AND y.id > x.id) FROM s x ORDER BY 2",
    "SELECT count(*) FROM s x WHERE x.a < (SELECT max(y.a) FROM s y WHERE y.a < " +
      "(SELECT count(*) FROM s z, s w WHERE z.id + w.id > y.id + x.id))",
    "SELECT sum(n) FROM s x, LATERAL (SELECT count(*) AS n FROM s y, s z WHERE y.a + z.a > x.id) q",
    "SELECT string_agg(a.t, ',' ORDER BY b.t) FROM s a, s b",
    "SELECT a.t || b.t FROM s a, s b UNION SELECT 'x'",
  ];
  for (const sql of shareOf(LONG, { oneOf: 8 })) {
    test(sql, async () => {
      const asked = engine.ask(sql);
      const found = async (): Promise<readonly unknown[] | undefined> =>
        (await engine.rows(RUNNING)).find((row) => !String(row[5]).includes("system.queries"));
      await until(async () => (await found())?.[3] === "running");
      const [queryId, userId, asUser, state] = (await found()) ?? [];
      expect([userId, asUser, state]).toEqual(["root", "root", "running"]);
      const startMs = systemClock.monotonicMs();
      const [killed] = await engine.run(`KILL QUERY '${String(queryId)}'`);
      expect(killed?.message).toBe(`Query ${String(queryId)} killed`);
      const { error } = await asked;
      expect(error?.code).toBe("CANCELLED");
      expect(systemClock.monotonicMs() - startMs).toBeLessThan(4 * KILL_MS_MAX);
      expect(await engine.failure(`KILL QUERY '${String(queryId)}'`)).toBe("OBJECT_NOT_FOUND@1:0");
    });
  }

  test("a killed request of several statements keeps its commits and runs no further statement", async () => {
    const asked = engine.ask(
      `CREATE TABLE k (id INT PRIMARY KEY); INSERT INTO k VALUES (1); ${LONG[0]}; INSERT INTO k VALUES (2)`,
    );
    const id = async (): Promise<unknown> =>
      (await engine.rows(`${RUNNING} WHERE sql LIKE '%INSERT INTO k%' AND rows_read > 0`)).find(
        (row) => !String(row[5]).includes("system.queries"),
      )?.[0];
    await until(async () => (await id()) !== undefined);
    await engine.run(`KILL QUERY '${String(await id())}'`);
    const { error, results } = await asked;
    expect([error?.code, error?.statementIndex, results.length]).toEqual(["CANCELLED", 2, 2]);
    expect(await engine.rows("SELECT id FROM k")).toEqual([[1]]);
  });

  test("the literals of other users' statements are not shown", async () => {
    await engine.run("CREATE USER una WITH INTERNAL");
    const sql = "SELECT count(*) FROM generate_series(1, 9000000000) g WHERE 'of una' <> g::text";
    for (const [user, isShown] of [
      ["una", false],
      ["root", true],
    ] as const) {
      engine.userId = user;
      const asked = engine.ask(sql);
      engine.userId = "root";
      const found = async (): Promise<readonly unknown[] | undefined> =>
        (await engine.rows(RUNNING)).find((row) => String(row[5]).includes("generate_series"));
      await until(async () => (await found()) !== undefined);
      const [queryId, userId, , , , shown] = (await found()) ?? [];
      await engine.run(`KILL QUERY '${String(queryId)}'`);
      await asked;
      expect(userId).toBe(user);
      expect(String(shown).includes("of una")).toBe(isShown);
      expect(String(shown).includes("9000000000")).toBe(isShown);
    }
  });

  test("the list of running statements requires the role dba, and shows no password", async () => {
    engine.userId = "ann";
    try {
      for (const sql of [
        "SELECT * FROM system.queries",
        "SELECT * FROM system.query_stats",
        "KILL QUERY 'QU1'",
      ]) {
        expect(await engine.failure(sql)).toStartWith("PERMISSION_DENIED@1");
      }
    } finally {
      engine.userId = "root";
    }
    const asked = engine.ask("CREATE USER eva WITH PASSWORD 'Correct-horse-7'");
    const rows = await engine.rows("SELECT sql FROM system.queries WHERE sql LIKE 'CREATE%'");
    await asked;
    expect(rows).toEqual([["CREATE USER 'eva' WITH PASSWORD '***'"]]);
    const stats = await engine.rows("SELECT sql FROM system.query_stats WHERE sql LIKE '%eva%'");
    expect(JSON.stringify(stats)).not.toContain("horse");
  });

  test("the list of running statements omits ended requests", async () => {
    await engine.ask("SELECT 1 / 0; SELECT 2");
    await engine.ask("SELECT count(*) FROM s a, s b", { timeoutMs: 1 });
    const rows = await engine.rows(RUNNING);
    expect(rows.filter((row) => !String(row[5]).includes("system.queries"))).toEqual([]);
  });
});

test("DROP USER ends only the requests of the user and those that run as that user", async () => {
  const long = "SELECT count(*) FROM generate_series(1, 9000000000)";
  const asIda = `EXECUTE AS USER 'ida' (${long})`;
  await engine.run("CREATE USER ida WITH INTERNAL; CREATE USER idb WITH INTERNAL");
  const ask = (user: string, sql: string): ReturnType<TestEngine["ask"]> => {
    engine.userId = user;
    const asked = engine.ask(sql);
    engine.userId = "root";
    return asked;
  };
  const ended = [ask("ida", long), ask("root", `SELECT 1; ${asIda}; SELECT 2`)];
  const others = [ask("idb", long), ask("root", long)];
  const asIdaCount = "SELECT count(*) FROM system.queries WHERE as_user = 'ida'";
  await until(async () => (await engine.rows(asIdaCount))[0]?.[0] === 2);
  await engine.run("DROP USER ida");

  for (const { error } of await Promise.all(ended)) {
    expect(error).toMatchObject({ code: "CANCELLED" });
    expect(error?.message).toEndWith("Cannot finish the statement: its user has been deleted");
  }
  const left = await engine.rows(RUNNING);
  const leftIds = left.filter(
    ([, , , state, , text]) => state !== "cancelling" && !String(text).includes("queries"),
  );
  expect(leftIds.map(([, userId]) => userId)).toEqual(["idb", "root"]);
  for (const [id] of leftIds) await engine.run(`KILL QUERY '${String(id)}'`);
  await Promise.all(others);
});

test("a request that begins while all requests are being ended is ended too", async () => {
  await using stopped = await TestEngine.open({ clock: systemClock });
  expect(stopped.database.sql.shutDown()).toBe(0);
  const sql = "SELECT count(*) FROM generate_series(1, 200000) g WHERE g % 7 = 0";
  expect(await stopped.failure(sql)).toStartWith("SHUTTING_DOWN");
});

test("durations have at most three decimals", async () => {
  let nowMs = 1000;
  const clock = new ManualClock();
  clock.monotonicMs = () => (nowMs += 0.123_456_7);
  await using ticking = await TestEngine.open({ clock });
  await ticking.run("SELECT 1; SELECT 1");
  const rows = await ticking.rows(
    "SELECT total_ms, mean_ms, p50_ms, p99_ms, max_ms FROM system.query_stats UNION ALL " +
      "SELECT elapsed_ms, NULL, NULL, NULL, NULL FROM system.queries",
  );
  const [checked] = await ticking.rows("STORAGE CHECK local");
  const [plan] = await ticking.rows("EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1");
  const shown = `${JSON.stringify(rows)} ${JSON.stringify(checked)} ${String(plan)}`;
  expect(shown).toMatch(/\d\.\d{3}/);
  expect(shown).not.toMatch(/\.\d{4}/);
});

describe("system.query_stats aggregates executions by text", () => {
  test("system.query_stats counts loads with any number of rows as one statement, without their values", async () => {
    await engine.run("CREATE TABLE loaded (id INT PRIMARY KEY, note TEXT)");
    for (const [from, count] of [
      [0, 60],
      [60, 300],
    ] as const) {
      const rows = Array.from(
        { length: count },
        (_, i) => `(${from + i}, ${i % 2 ? "NULL" : "'n'"})`,
      );
      await engine.run(`INSERT INTO loaded (id, note) VALUES ${rows.join(", ")}`);
    }
    const found = await engine.rows(
      "SELECT sql, calls, rows FROM system.query_stats WHERE sql LIKE 'INSERT INTO loaded%'",
    );
    expect(found).toEqual([["INSERT INTO loaded (id, note) VALUES (?, ?)", 2, 360]]);
  });

  test("system.query_stats counts calls, rows and errors of a text without its literals", async () => {
    for (const id of [1, 2, 3]) await engine.rows(`SELECT t FROM s WHERE id = ${id}`);
    await engine.rows("SELECT t FROM s WHERE id = 99999");
    await engine.failure("SELECT 1 / a FROM s WHERE id = 100");
    const sql =
      "SELECT sql, calls, errors, rows, p50_ms <= p95_ms AND p95_ms <= p99_ms AND p99_ms <= max_ms, " +
      "total_ms >= max_ms, last_seen IS NOT NULL FROM system.query_stats WHERE sql LIKE '%FROM s WHERE id =%'";
    expect(await engine.rows(sql)).toEqual([
      ["SELECT t FROM s WHERE id = ?", 4, 0, 3, true, true, true],
      ["SELECT 1 / a FROM s WHERE id = ?", 1, 1, 0, true, true, true],
    ]);
  });

  test("system.query_stats counts the statements of a longer request separately", async () => {
    await engine.run("INSERT INTO s VALUES (5001, 1, 'a'); INSERT INTO s VALUES (5002, 1, 'b')");
    const sql =
      "SELECT sum(calls), sum(rows) FROM system.query_stats WHERE sql LIKE 'INSERT INTO s VALUES%'";
    expect(await engine.rows(sql)).toEqual([["2", "2"]]);
  });

  test("system.query_stats keeps a bounded number of texts", async () => {
    for (let i = 0; i < 1200; i += 1) await engine.rows(`SELECT ${i} AS c${i}`);
    const [[count] = []] = await engine.rows("SELECT count(*) FROM system.query_stats");
    expect(Number(count)).toBeLessThanOrEqual(1000);
  });

  test("system.query_stats exceeds an exact percentile by at most 6 %", () => {
    const stat = new QueryStat("f", "s");
    for (let ms = 1; ms <= 1000; ms += 1) stat.note(ms, { ms, rows: 1 });
    for (const share of [0.5, 0.95, 0.99]) {
      const exact = share * 1000;
      expect(stat.percentile(share)).toBeGreaterThanOrEqual(exact);
      expect(stat.percentile(share)).toBeLessThanOrEqual(exact * 1.06);
    }
    expect(stat.percentile(1)).toBe(1000);
  });
});

test("the log names the request of a slow query", async () => {
  const config = "logging.slow_query_threshold_ms = 1";
  await using slow = await TestEngine.open({ clock: systemClock, config });
  const origin = { address: "127.0.0.1", requestId: "mine-1" };
  await slow.ask("SELECT count(*) FROM generate_series(1, 1000000)", { origin });
  const logged = "SELECT fields ->> 'request' FROM system.logs WHERE message = 'slow query'";
  expect(await slow.rows(logged)).toEqual([["mine-1"]]);
});

test("a statement that starts a job does not count as a slow query", async () => {
  const roots = mkdtempSync(join(tmpdir(), "tidemark-"));
  const config = `logging.slow_query_threshold_ms = 1\nstorage.allowed_roots = ["${roots}"]`;
  await using slow = await TestEngine.open({ clock: systemClock, config });
  await slow.run(`BACKUP DATABASE TO '${roots}/b'`);
  await slow.run("SELECT count(*) FROM generate_series(1, 1000000)");
  const logged = "SELECT fields ->> 'sql' FROM system.logs WHERE message = 'slow query'";
  const texts = (await slow.rows(logged)).map(([text]) => String(text));
  expect(texts.filter((text) => /generate_series/i.test(text))).toHaveLength(1);
  expect(texts.filter((text) => /backup/i.test(text))).toEqual([]);
  rmSync(roots, { recursive: true });
});

describe("slow SQL statements are logged", () => {
  const limits = { sqlBytesMax: 1000, parametersMax: 10, nestingMax: 10 };

  test.each([
    "BACKUP DATABASE TO '/b'",
    "RESTORE DATABASE FROM '/b'",
    "STORAGE FLUSH TABLE t",
    "STORAGE COMPACT ALL",
    "DROP USER ann PURGE",
  ])("slowSql does not report %s, whose work is a job", (sql) => {
    expect(slowSql({ sql }, limits)).toBeUndefined();
  });

  test.each([
    "STORAGE CHECK local",
    "DROP USER ann",
    "SHOW TABLES",
    "STORAGE FLUSH ALL; STORAGE CHECK local",
  ])("slowSql reports %s, for which the caller has waited", (sql) => {
    expect(slowSql({ sql }, limits)).toBeDefined();
  });
});
