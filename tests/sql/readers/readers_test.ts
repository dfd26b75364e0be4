/**
 * Verifies that a query has the same result in a reader as on the event loop, from memtables and
 * segments alike, whatever was written, flushed, merged, altered or rolled back before.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ManualClock } from "../../support/manual_clock.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { amountOf, isThorough } from "../../support/thoroughness.ts";

let here: TestEngine;
let elsewhere: TestEngine;

beforeAll(async () => {
  here = await TestEngine.open({ readsElsewhere: false });
  elsewhere = await TestEngine.open({ readsElsewhere: true });
});

afterAll(async () => {
  await here[Symbol.asyncDispose]();
  await elsewhere[Symbol.asyncDispose]();
});

/** Runs SQL on both engines. The rows of its last statement must be the same. */
async function both(sql: string): Promise<readonly (readonly unknown[])[]> {
  const expected = await here.ask(sql);
  const actual = await elsewhere.ask(sql);
  const told = ({ error, results }: typeof actual): unknown => [
    error?.code,
    error?.message,
    error?.position,
    results.at(-1)?.rows,
    results.at(-1)?.schema,
  ];
  expect(told(actual)).toEqual(told(expected));
  return actual.results.at(-1)?.rows ?? [];
}

/** Runs a statement on both engines, and asserts that it succeeds. */
async function change(sql: string): Promise<void> {
  await here.run(sql);
  await elsewhere.run(sql);
}

/** A query that yields values of every type, including types that are not in shared memory. */
const VALUES = `SELECT g, g % 7, g * 1.5, 'text ' || g, g % 3 = 0, g + 9007199254740993::BIGINT,
  (g * 123456789012345.12)::DECIMAL(30,2), TIMESTAMP '2026-01-01' + g * INTERVAL '1 hour',
  DATE '2026-01-01' + g, ('{"g":' || g || '}')::JSONB, decode(lpad(to_hex(g), 8, '0'), 'hex'),
  ('[' || g || ',0.5]')::EMBEDDING(2), CASE WHEN g % 5 = 0 THEN NULL ELSE g::TEXT END
  FROM generate_series`;

/** A VALUES list with so many literal rows that it is read from the text without a tree. */
const LITERALS: string = Array.from({ length: 300 }, (_, i) => `(${i - 5}, 'né ${i}')`).join(", ");

const READS = [
  "SELECT * FROM r.t ORDER BY id",
  "SELECT count(*), sum(k), avg(x), min(s), max(big), sum(exact) FROM r.t",
  "SELECT k, count(*), array_agg(id ORDER BY id) FROM r.t GROUP BY k ORDER BY k",
  "SELECT * FROM r.t WHERE id = 17",
  "SELECT id, s FROM r.t WHERE id IN (3, 5, 1999, 100000) ORDER BY id",
  "SELECT a.id, b.s FROM r.t a JOIN r.t b ON a.id = b.id + 1 WHERE b.k = 3 ORDER BY 1",
  "SELECT count(DISTINCT j), count(DISTINCT raw), count(near) FROM r.t",
  "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM r.t ORDER BY id LIMIT 20",
  "SELECT id FROM r.t WHERE EXISTS (SELECT 1 FROM r.t i WHERE i.id = t.id + 7) ORDER BY id DESC",
  "WITH RECURSIVE n(i) AS (SELECT min(id) FROM r.t UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT * FROM n",
  "SELECT id, raw, near, exact, big FROM r.v WHERE maybe IS NULL ORDER BY id",
  "SELECT id FROM r.t WHERE 10 / (id - 10) > 3",
  "SELECT j ->> 'g', t FROM r.t ORDER BY x DESC, id LIMIT 5 OFFSET 3",
  "SELECT current_user, count(*) FROM r.t",
  "SELECT count(*) FROM r.t WHERE snowflake_id() > 0",
  `SELECT l.n, l.s, count(t.id) FROM (VALUES ${LITERALS}) AS l(n, s) LEFT JOIN r.t ON t.id = l.n GROUP BY 1, 2 ORDER BY 1`,
  "SELECT id, CASE WHEN id < 400 THEN 1 ELSE snowflake_id() END > 0 FROM r.t ORDER BY id",
] as const;

describe("a reader returns the same result as the event loop", () => {
  test("a reader returns the same for rows in memory and in segments, including replaced and deleted ones", async () => {
    await change(`CREATE NAMESPACE r; CREATE TABLE r.t (id INT PRIMARY KEY, k INT, x DOUBLE, s TEXT,
      b BOOLEAN, big BIGINT, exact DECIMAL(30,2), t TIMESTAMP, d DATE, j JSONB, raw BYTES,
      near EMBEDDING(2), maybe TEXT) WITH (TYPE = 'SHARED')`);
    await change("CREATE VIEW r.v AS SELECT * FROM r.t WHERE k < 5");
    const changes = [
      `INSERT INTO r.t ${VALUES}(1, 500) AS x(g)`,
      "DELETE FROM r.t WHERE id % 11 = 0",
      "STORAGE FLUSH TABLE r.t",
      `INSERT INTO r.t ${VALUES}(1000, 1400) AS x(g)`,
      "UPDATE r.t SET s = s || '!', x = x + 1 WHERE id % 4 = 0",
      "STORAGE FLUSH TABLE r.t",
      "UPDATE r.t SET near = NULL, raw = NULL, big = id WHERE id % 6 = 1",
      `INSERT INTO r.t ${VALUES}(2000, 2100) AS x(g)`,
      "DELETE FROM r.t WHERE k = 2",
      "STORAGE COMPACT TABLE r.t",
      "ALTER TABLE r.t ALTER COLUMN k TYPE BIGINT",
      "UPDATE r.t SET k = 9007199254740999 WHERE id = 5",
      "ALTER TABLE r.t ADD COLUMN late INT DEFAULT 4",
      "UPDATE r.t SET late = 5 WHERE id < 50",
    ];
    for (const [at, sql] of changes.entries()) {
      await change(sql);
      // A usual run tries a twelfth of the queries after each change.
      const reads = READS.filter((_, index) => isThorough || (index + at) % 12 === 0);
      for (const read of reads) await both(withoutSeqs(read));
    }
  });

  test("a reader returns the same after random changes", async () => {
    const random = new SeededRandom(29);
    await change("CREATE TABLE r.n (id INT PRIMARY KEY, v BIGINT, s TEXT) WITH (TYPE = 'SHARED')");
    const below = (count: number): number => Math.floor(random.unit() * count);
    for (let step = 0; step < amountOf({ usual: 15, thorough: 60 }); step += 1) {
      const id = below(300);
      const sql = [
        `INSERT INTO r.n VALUES (${id}, ${step}, 's${step}') ON CONFLICT (id) DO UPDATE SET v = excluded.v`,
        `INSERT INTO r.n SELECT g, ${step}, NULL FROM generate_series(${id}, ${id + 40}) AS x(g) ON CONFLICT DO NOTHING`,
        `UPDATE r.n SET v = v + 1 WHERE id >= ${id}`,
        `DELETE FROM r.n WHERE id BETWEEN ${id} AND ${id + below(30)}`,
        "STORAGE FLUSH TABLE r.n",
        "STORAGE COMPACT TABLE r.n",
      ][below(step % 10 === 0 ? 6 : 4)];
      await change(sql ?? "");
      await both("SELECT count(*), sum(v), sum(id), max(s) FROM r.n");
      await both(`SELECT id, v, s FROM r.n WHERE id = ${below(300)}`);
    }
  });

  test("a reader returns the same for the rows of one user", async () => {
    await change("CREATE USER ann INTERNAL ROLE user");
    await change("CREATE TABLE r.own (id INT PRIMARY KEY, v TEXT) WITH (TYPE = 'USER')");
    for (const userId of ["ann", "root"]) {
      here.userId = userId;
      elsewhere.userId = userId;
      await both(`INSERT INTO r.own SELECT g, '${userId}' FROM generate_series(1, 9) AS x(g)`);
    }
    for (const userId of ["ann", "root"]) {
      here.userId = userId;
      elsewhere.userId = userId;
      expect(await both("SELECT v, count(*) FROM r.own GROUP BY v")).toEqual([[userId, 9]]);
      expect(await both("SELECT v FROM r.own WHERE id = 3")).toEqual([[userId]]);
    }
  });

  test("a reader returns the same if ids are taken only after many rows", async () => {
    await change(`CREATE TABLE r.many (id INT PRIMARY KEY, v INT, s TEXT CHECK (s <> 'bad'))
      WITH (TYPE = 'SHARED'); INSERT INTO r.many SELECT g, 0, 'x' FROM generate_series(1, 20000) AS x(g)`);
    const rows = await both(
      "SELECT id, CASE WHEN id < 15000 THEN 1 ELSE snowflake_id() END > 0 FROM r.many",
    );
    expect(rows).toHaveLength(20_000);
  });

  test("a reader returns the same in a transaction, before and after it has written", async () => {
    await both(
      "BEGIN; SELECT count(*) FROM r.own; INSERT INTO r.own VALUES (99, 'x'); SELECT count(*) FROM r.own; ROLLBACK",
    );
    await both("SELECT count(*) FROM r.own");
  });
});

/** Changes to all rows of `r.c`. Its first column is its key. */
const CHANGES = [
  "INSERT INTO r.c SELECT g, g % 5, g::TEXT FROM generate_series(1, 9000) AS x(g)",
  "INSERT INTO r.c (s, id) SELECT s || '!', id + 20000 FROM r.c WHERE id > 4000 ORDER BY id DESC",
  "INSERT INTO r.c SELECT id, v, s FROM r.c WHERE id % 2 = 0 ON CONFLICT DO NOTHING",
  "INSERT INTO r.c SELECT id + 3, 50, NULL FROM r.c ON CONFLICT (id) DO UPDATE SET v = c.v + excluded.v WHERE c.v < 20",
  "UPDATE r.c SET v = v + 1 RETURNING id, v, s",
  "UPDATE r.c SET v = DEFAULT, s = upper(s) WHERE id % 3 = 1",
  "UPDATE r.c SET v = m.v FROM r.c m WHERE m.id = c.id + 1 AND c.id < 6000",
  "UPDATE r.c SET s = (SELECT max(s) FROM r.c i WHERE i.v = c.v) WHERE id < 300",
  "WITH few AS (SELECT id FROM r.c WHERE v = 3) UPDATE r.c SET v = 0 FROM few WHERE few.id = c.id RETURNING few.id, c.v",
  "DELETE FROM r.c USING r.c o WHERE o.id = c.id + 1 AND o.v < 2 RETURNING c.id",
  "DELETE FROM r.c WHERE id % 7 = 0",
  "BEGIN; UPDATE r.c SET v = v + 2; DELETE FROM r.c WHERE v > 4; INSERT INTO r.c SELECT id + 50000, 1, s FROM r.c; COMMIT",
  "BEGIN READ ONLY; DELETE FROM r.c WHERE v = -1; COMMIT",
  "INSERT INTO r.k SELECT id % 10, s FROM r.c",
  "INSERT INTO r.c VALUES ((SELECT max(id) + 1 FROM r.c), (SELECT count(*) FROM r.k), 'x') RETURNING id, v",
  "DELETE FROM r.k WHERE n < 4",
  "INSERT INTO r.k SELECT n + 10, s FROM r.k RETURNING n",
  // Each of these changes fails at its first invalid row.
  "INSERT INTO r.c SELECT CASE WHEN id = 8000 THEN NULL ELSE id + 900000 END, 1, s FROM r.c",
  "INSERT INTO r.c SELECT id + 700000 / (id - 8500), 1, s FROM r.c WHERE id > 3",
  "INSERT INTO r.c SELECT id + 400000, 1, CASE WHEN id < 5000 THEN 'x' ELSE 'bad' END FROM r.c",
  "INSERT INTO r.c SELECT id + 400000, id * 1000000, 'x' FROM r.c",
  "UPDATE r.c SET v = 10 / (id - 7001)",
  "UPDATE r.c SET s = CASE WHEN id = 5 THEN 'bad' ELSE s END, v = 10 / (8000 - id) RETURNING id",
  "DELETE FROM r.c WHERE 10 / (id - 8005) > 3",
];

describe("a change whose rows a reader reads is the same", () => {
  beforeAll(async () => {
    await change(`CREATE NAMESPACE IF NOT EXISTS r;
      CREATE TABLE r.c (id INT PRIMARY KEY, v INT DEFAULT 7, s TEXT CHECK (s <> 'bad')) WITH (TYPE = 'SHARED');
      CREATE TABLE r.k (n INT, s TEXT) WITH (TYPE = 'STREAM', TTL_SECONDS = 86400)`);
  });

  /** Compares all rows, in the order in which they were last written. */
  async function sameRows(): Promise<void> {
    await both("SELECT id, v, s FROM r.c ORDER BY _seq");
    await both("SELECT n, s FROM r.k ORDER BY _seq");
  }

  test("a change with a query in VALUES is the same", async () => {
    const before = elsewhere.database.readerCounts()?.queries ?? 0;
    await elsewhere.run(
      "BEGIN; INSERT INTO r.c VALUES ((SELECT -1 - count(*) FROM r.c), 0, 'x'); ROLLBACK",
    );
    expect(elsewhere.database.readerCounts()?.queries).toBe(before + 1);
  });

  test("changes in succession are the same", async () => {
    for (const [at, sql] of CHANGES.entries()) {
      await both(sql);
      if (isThorough || at % 12 === 5) await sameRows();
    }
  });

  test("changes in any order, between flushes and merges, are the same", async () => {
    const random = new SeededRandom(292);
    const steps = [...CHANGES, "STORAGE FLUSH TABLE r.c", "STORAGE COMPACT TABLE r.c"];
    for (let step = 0; step < amountOf({ usual: 8, thorough: 30 }); step += 1) {
      await both(steps[Math.floor(random.unit() * steps.length)] ?? "");
      await sameRows();
    }
  });
});

test("a reader can use an older snapshot after a newer one, and continues", async () => {
  const clock = new ManualClock();
  await using engine = await TestEngine.open({
    clock,
    readsElsewhere: true,
    config: "server.workers = 1",
  });
  const read = "SELECT count(*), sum(d), sum(n) FROM t";
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(30,2), n INT); INSERT INTO t SELECT g, g, 1 FROM generate_series(1, 100) g",
  );
  const state = { isOver: false };
  const older = engine.ask(`BEGIN; SELECT pg_sleep(1); ${read}; ${read}; COMMIT`).finally(() => {
    state.isOver = true;
  });
  await engine.run("INSERT INTO t SELECT g, g, 1 FROM generate_series(101, 200) g");
  expect(await engine.rows(read)).toEqual([[200, "20100.00", 200]]);
  while (!state.isOver) {
    clock.advance(1000);
    await clock.yield();
  }
  const { error, results } = await older;
  expect(error).toBeUndefined();
  const told = results.map(({ rows }) => rows).slice(2, 4);
  expect(told).toEqual(Array.from({ length: 2 }, () => [[100, "5050.00", 100]]));
  expect(await engine.rows(read)).toEqual([[200, "20100.00", 200]]);
  await engine.run("INSERT INTO t VALUES (0, NULL, 5)");
  expect(await engine.rows(read)).toEqual([[201, "20100.00", 205]]);
});

/** Returns the query without `_seq`, which differs between the two engines. */
function withoutSeqs(read: string): string {
  return read.startsWith("SELECT * FROM r.t")
    ? read.replace("*", "id, k, x, s, b, big, exact, t, d, j, raw, near, maybe")
    : read;
}
