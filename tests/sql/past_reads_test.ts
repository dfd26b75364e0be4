/**
 * Tests FOR SYSTEM_TIME AS OF, which reads tables as they were at an earlier seq or time. Covers
 * every kind of query block, on the event loop, in a reader and divided among readers. Also tests
 * the rights that callers need, and reads beyond the limit of history.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ManualClock } from "../support/manual_clock.ts";
import { type EngineOptions, TestEngine } from "../support/sql_engine.ts";
import { shareOf } from "../support/thoroughness.ts";

const PLACES: readonly (readonly [string, EngineOptions])[] = [
  ["on the event loop", { readsElsewhere: false }],
  ["in a reader", { readsElsewhere: true }],
  ["in three readers", { divides: true }],
  ["in threads", { inThreads: true }],
];

const FILL = `CREATE NAMESPACE app; USE app;
  CREATE TABLE t (id INT PRIMARY KEY, v INT);
  CREATE INDEX t_v ON t (v);
  CREATE USER TABLE mine (id INT PRIMARY KEY, t INT);
  INSERT INTO t SELECT g, g FROM generate_series(1, 400) g;
  INSERT INTO mine SELECT g, g * 2 FROM generate_series(1, 100) g`;

/**
 * Changes that replace most rows, some of them twice, delete some rows, and insert some of the
 * deleted rows again.
 */
const CHANGES = [
  "STORAGE FLUSH TABLE app.t",
  "UPDATE app.t SET v = -v WHERE id % 3 = 0",
  "DELETE FROM app.t WHERE id % 4 = 0",
  "UPDATE app.mine SET t = 0",
  "STORAGE FLUSH TABLE app.t; STORAGE FLUSH TABLE app.mine; STORAGE COMPACT TABLE app.t",
  "INSERT INTO app.t SELECT g * 4, 0 FROM generate_series(1, 50) g",
  "STORAGE FLUSH TABLE app.t",
  "UPDATE app.t SET v = 7 WHERE id < 9",
];

/** Queries in which $1 stands for the earlier time. */
const QUERIES = [
  "SELECT count(*), sum(id), sum(v), min(v), max(v) FROM app.t AT",
  "SELECT * FROM app.t AT ORDER BY id",
  "SELECT id, v, _seq FROM app.t AT ORDER BY _seq DESC LIMIT 5",
  "SELECT id FROM app.t AT ORDER BY _seq",
  "SELECT id, v FROM app.t AT WHERE id = 3",
  "SELECT v FROM app.t AT WHERE id IN (3, 4, 5, 6) ORDER BY id",
  "SELECT id FROM app.t AT WHERE v = 12",
  "SELECT id FROM app.t AT WHERE v BETWEEN 10 AND 30 ORDER BY v, id",
  "SELECT id, v FROM app.t AT ORDER BY v LIMIT 6",
  "SELECT v % 5 AS k, count(*) FROM app.t AT GROUP BY 1 ORDER BY 1",
  "SELECT m.id, t.v FROM app.mine AT m JOIN app.t AT t ON t.id = m.t WHERE m.id < 20 ORDER BY 1",
  "SELECT count(*) FROM app.mine AT m LEFT JOIN app.t AT t ON t.id = m.t WHERE t.v IS NULL",
  "SELECT id FROM app.t AT WHERE id NOT IN (SELECT t FROM app.mine AT) ORDER BY id LIMIT 7",
  "WITH w AS (SELECT * FROM app.t AT WHERE v > 5) SELECT count(*), max(id) FROM w",
  "SELECT (SELECT sum(v) FROM app.t AT), (SELECT count(*) FROM app.mine AT)",
  "SELECT id FROM app.t AT WHERE v > 200 UNION SELECT t FROM app.mine AT ORDER BY 1 LIMIT 30",
  "SELECT DISTINCT v FROM app.t AT ORDER BY v LIMIT 20",
  "SELECT id, row_number() OVER (ORDER BY v, id) FROM app.t AT ORDER BY 2 LIMIT 9",
];

for (const [place, options] of shareOf(PLACES, { oneOf: 2 })) {
  test(`an earlier state ${place} equals the results of queries at that time`, async () => {
    await using engine = await TestEngine.open({ clock: new ManualClock(), ...options });
    await engine.run(FILL);
    const queries = shareOf(QUERIES, { oneOf: 2 });
    const states: { seq: number; answers: (readonly (readonly unknown[])[])[] }[] = [];
    const note = async (): Promise<void> => {
      const answers: (readonly (readonly unknown[])[])[] = [];
      for (const sql of queries) answers.push(await engine.rows(sql.replaceAll(" AT", "")));
      states.push({ seq: engine.database.store.visibleSeq, answers });
    };
    await note();
    for (const sql of CHANGES) {
      await engine.run(sql);
      await note();
    }
    for (const { answers, seq } of [0, 3, 6, 8].flatMap((at) => states[at] ?? [])) {
      for (const [index, sql] of queries.entries()) {
        const past = sql.replaceAll(" AT", " FOR SYSTEM_TIME AS OF $1");
        expect([sql, await engine.rows(past, { params: [seq] })]).toEqual([
          sql,
          answers[index] ?? [],
        ]);
      }
    }
    expect(states.at(-1)?.answers).not.toEqual(states[0]?.answers);
  });
}

describe("a moment of FOR SYSTEM_TIME AS OF selects an earlier state", () => {
  let engine: TestEngine;
  let clock: ManualClock;

  beforeAll(async () => {
    clock = new ManualClock();
    engine = await TestEngine.open({ clock });
    await engine.run(
      "CREATE NAMESPACE app; USE app; CREATE TABLE t (id INT PRIMARY KEY, v INT);" +
        "CREATE TABLE pair (id INT PRIMARY KEY); CREATE STREAM TABLE feed (id INT)" +
        " WITH (TTL_SECONDS = 60); CREATE VIEW seen AS SELECT * FROM t",
    );
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  const past = (moment: string): string =>
    `SELECT v FROM app.t FOR SYSTEM_TIME AS OF ${moment} AS x`;

  test("a moment is a seq, a time with or without a zone, a string, or an expression of these", async () => {
    await engine.run("INSERT INTO app.t VALUES (1, 1)");
    const seq = engine.database.store.visibleSeq;
    clock.advance(60_000);
    const [[time = ""] = []] = await engine.rows("SELECT NOW()::text");
    clock.advance(60_000);
    await engine.run("UPDATE app.t SET v = 2");
    for (const moment of [
      String(seq),
      `${seq - 5}::bigint + 5`,
      `TIMESTAMPTZ '${String(time)}'`,
      `'${String(time)}'`,
      `TIMESTAMP '${String(time).slice(0, 19)}'`,
      "NOW() - INTERVAL '1 minute'",
      `SEQ_TIME(${seq})`,
    ]) {
      expect([moment, await engine.rows(past(moment))]).toEqual([moment, [[1]]]);
    }
    expect(await engine.rows(past("$1"), { params: [String(time)] })).toEqual([[1]]);
    expect(await engine.rows(past("NOW()"))).toEqual([[2]]);
    expect(await engine.rows(past("0"))).toEqual([]);
    expect(await engine.rows(past("TIMESTAMP '2001-01-01'"))).toEqual([]);
  });

  test("a moment within a commit shows no part of the commit", async () => {
    const before = engine.database.store.visibleSeq;
    await engine.run(
      "BEGIN; INSERT INTO app.pair VALUES (1), (2), (3); UPDATE app.t SET v = 3; COMMIT",
    );
    const [[first = 0] = [], , [third = 0] = []] = await engine.rows(
      "SELECT _seq FROM app.pair ORDER BY id",
    );
    const end = engine.database.store.visibleSeq;
    const ids = (seq: number): Promise<readonly (readonly unknown[])[]> =>
      engine.rows(
        "SELECT p.id, t.v FROM app.t FOR SYSTEM_TIME AS OF $1 t" +
          " LEFT JOIN app.pair FOR SYSTEM_TIME AS OF $1 p ON TRUE ORDER BY 1",
        { params: [seq] },
      );
    for (const way of ["in memory", "in a segment", "in history"]) {
      for (const seq of [before, Number(first), Number(third)]) {
        expect([way, seq, await ids(seq)]).toEqual([way, seq, [[null, 2]]]);
      }
      const whole = [1, 2, 3].map((id) => [id, 3]);
      expect([way, await ids(end)]).toEqual([way, whole]);
      if (way === "in a segment") await engine.run("DELETE FROM app.pair");
      await engine.run("STORAGE FLUSH TABLE app.pair; STORAGE FLUSH TABLE app.t");
      await engine.run("STORAGE COMPACT TABLE app.pair; STORAGE COMPACT TABLE app.t");
    }
  });

  test("a moment in a transaction does not show staged rows", async () => {
    const results = await engine.run(`BEGIN; UPDATE app.t SET v = 99; ${past("NOW()")}; ROLLBACK`);
    expect(results.at(-2)?.rows).toEqual([[3]]);
  });

  test("a moment can be the source of INSERT and UPDATE", async () => {
    const seq = engine.database.store.visibleSeq;
    await engine.run("DELETE FROM app.t");
    await engine.run("INSERT INTO app.t SELECT id, v FROM app.t FOR SYSTEM_TIME AS OF $1", {
      params: [seq],
    });
    expect(await engine.rows("SELECT id, v FROM app.t")).toEqual([[1, 3]]);
    await engine.run("UPDATE app.t SET v = 8");
    await engine.run(
      "UPDATE app.t SET v = old.v FROM app.t FOR SYSTEM_TIME AS OF $1 AS old WHERE old.id = t.id",
      { params: [seq] },
    );
    expect(await engine.rows("SELECT id, v FROM app.t")).toEqual([[1, 3]]);
  });

  test("a moment shows its tombstones if a condition names _deleted", async () => {
    await engine.run("INSERT INTO app.t VALUES (5, 5); DELETE FROM app.t WHERE id = 5");
    const seq = engine.database.store.visibleSeq;
    await engine.run("INSERT INTO app.t VALUES (5, 6)");
    const sql = "SELECT id, v FROM app.t FOR SYSTEM_TIME AS OF $1 WHERE _deleted";
    expect(await engine.rows(sql, { params: [seq] })).toEqual([[5, 5]]);
    expect(await engine.rows(sql, { params: [engine.database.store.visibleSeq] })).toEqual([]);
  });

  test("a moment has the columns of the current definition", async () => {
    const seq = engine.database.store.visibleSeq;
    await engine.run("ALTER TABLE app.t ADD COLUMN note TEXT DEFAULT 'none'");
    await engine.run("ALTER TABLE app.t RENAME COLUMN v TO w; UPDATE app.t SET note = 'some'");
    const sql = "SELECT w, note FROM app.t FOR SYSTEM_TIME AS OF $1 WHERE id = 1";
    expect(await engine.rows(sql, { params: [seq] })).toEqual([[3, "none"]]);
    await engine.run("ALTER TABLE app.t RENAME COLUMN w TO v");
  });

  test("a moment may be part of a view", async () => {
    const seq = engine.database.store.visibleSeq;
    await engine.run(`CREATE VIEW app.old AS SELECT id FROM app.t FOR SYSTEM_TIME AS OF ${seq}`);
    const before = await engine.rows("SELECT * FROM app.old ORDER BY id");
    await engine.run("DELETE FROM app.t WHERE id > 1");
    expect(await engine.rows("SELECT * FROM app.old ORDER BY id")).toEqual(before);
    expect(await engine.rows("SELECT count(*) FROM app.t")).toEqual([[1]]);
  });

  test.each([
    ["9007199254740991", "VALUE_OUT_OF_RANGE@1"],
    ["-1", "VALUE_OUT_OF_RANGE@1"],
    ["NULL", "VALUE_OUT_OF_RANGE@1"],
    ["NULL::bigint", "VALUE_OUT_OF_RANGE@1"],
    ["NOW() + INTERVAL '1 second'", "VALUE_OUT_OF_RANGE@1"],
    ["x.id", "TABLE_NOT_FOUND@1:42"],
    ["id", "COLUMN_NOT_FOUND@1:42"],
    ["(SELECT 1)", "INVALID_QUERY@1:43"],
    ["TRUE", "TYPE_MISMATCH@1:42"],
    ["1.5", "TYPE_MISMATCH@1:42"],
    ["DATE '2026-01-01'", "TYPE_MISMATCH@1:42"],
    ["'yesterday-ish'", "INVALID_VALUE@1:42"],
    ["count(*)", "INVALID_QUERY@1:42"],
  ])("%s is refused", async (moment, failure) => {
    expect(await engine.failure(past(moment))).toBe(failure);
  });

  test.each([["app.feed"], ["app.seen"], ["system.tables"], ["information_schema.tables"]])(
    "%s has no earlier states",
    async (name) => {
      const sql = `SELECT * FROM ${name} FOR SYSTEM_TIME AS OF 1`;
      expect(await engine.failure(sql)).toMatch(/^INVALID_OPERATION@1:/);
    },
  );

  test("an entry of WITH has no earlier states, and rows of an earlier state cannot be locked", async () => {
    expect(
      await engine.failure("WITH w AS (SELECT 1) SELECT * FROM w FOR SYSTEM_TIME AS OF 1"),
    ).toMatch(/^INVALID_OPERATION@1:/);
    expect(await engine.failure(`BEGIN; ${past("1")} FOR UPDATE`)).toMatch(/^INVALID_OPERATION@2/);
  });
});

test("a moment is refused, rather than read in part, if its history was discarded", async () => {
  const clock = new ManualClock();
  await using engine = await TestEngine.open({ clock });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (DELETED_RETENTION_HOURS = 1);" +
      "INSERT INTO t VALUES (1, 1), (2, 2)",
  );
  const early = engine.database.store.visibleSeq;
  await engine.run("UPDATE t SET v = 10 WHERE id = 1");
  const late = engine.database.store.visibleSeq;
  await engine.run("STORAGE FLUSH TABLE t");
  clock.advance(3 * 3_600_000);
  await engine.run("INSERT INTO t VALUES (3, 3); STORAGE FLUSH TABLE t; STORAGE COMPACT TABLE t");
  const sql = "SELECT v FROM t FOR SYSTEM_TIME AS OF $1 ORDER BY id";
  const { error } = await engine.ask(sql, { params: [early] });
  expect(error?.code).toBe("HISTORY_TOO_OLD");
  expect(error?.message).toContain(`_seq ${error?.earliestSeq}`);
  expect(await engine.rows(sql, { params: [error?.earliestSeq ?? 0] })).toEqual([[10], [2]]);
  expect(await engine.rows(sql, { params: [late] })).toEqual([[10], [2]]);
  expect(await engine.failure("SELECT v FROM t FOR SYSTEM_TIME AS OF 0 WHERE id = 1")).toBe(
    "HISTORY_TOO_OLD@1",
  );
});

test("earlier states are available to the owner of the rows, and to administrators of the table", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; USE app; CREATE TABLE t (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC');" +
      "CREATE USER TABLE mine (id INT PRIMARY KEY); INSERT INTO mine VALUES (1); INSERT INTO t VALUES (1);" +
      "CREATE USER alice WITH INTERNAL; CREATE USER sam WITH INTERNAL ROLE service;" +
      "CREATE USER dora WITH INTERNAL ROLE dba; CREATE VIEW old AS SELECT id FROM t FOR SYSTEM_TIME AS OF NOW()",
  );
  const shared = "SELECT id FROM app.t FOR SYSTEM_TIME AS OF NOW()";
  const own = "SELECT id FROM app.mine FOR SYSTEM_TIME AS OF NOW()";
  for (const [userId, sees] of [
    ["alice", false],
    ["sam", false],
    ["dora", true],
    ["root", true],
  ] as const) {
    engine.userId = userId;
    expect(await engine.rows(own)).toEqual(userId === "root" ? [[1]] : []);
    expect(await engine.rows("SELECT id FROM app.t")).toEqual([[1]]);
    for (const sql of [shared, "SELECT id FROM app.old"]) {
      // The second run uses a plan from the cache, which all callers share.
      for (let run = 0; run < 2; run += 1) {
        const answer = sees ? await engine.rows(sql) : await engine.failure(sql);
        expect([userId, sql, answer]).toEqual([userId, sql, sees ? [[1]] : "PERMISSION_DENIED@1"]);
      }
    }
  }
  engine.userId = "root";
  expect(await engine.failure(`EXECUTE AS 'alice' (${shared})`)).toMatch(/^PERMISSION_DENIED/);
  expect(await engine.rows(`EXECUTE AS 'alice' (${own})`)).toEqual([]);
  await engine.run("ALTER NAMESPACE app OWNER TO alice");
  engine.userId = "alice";
  expect(await engine.rows(shared)).toEqual([[1]]);
});
