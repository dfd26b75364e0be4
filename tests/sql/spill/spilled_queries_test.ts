/**
 * Tests statements that need more memory than they may use. They have the same result as with
 * enough memory, report how many bytes they wrote, and leave no file behind, even if they fail.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { systemClock } from "../../../src/base/clock.ts";
import type { DiskFile, OpenOptions } from "../../../src/base/disk.ts";
import type { AnswerStream, SqlResponse } from "../../../src/sql/mod.ts";
import { ForwardingDisk } from "../../support/forwarding_disk.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { amountOf, shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

const ROW_COUNT = 8000;
const MIB = 1024 * 1024;

/** Forwards to the real disk, and counts the temporary files created on it. */
class CountingDisk extends ForwardingDisk {
  temporaryFiles = 0;

  override open(path: string, options: OpenOptions): DiskFile {
    if (path.includes("/tmp/spill.")) this.temporaryFiles += 1;
    return this.disk.open(path, options);
  }
}

const disk: CountingDisk = new CountingDisk(bunDisk);
let small: TestEngine;
let large: TestEngine;

beforeAll(async () => {
  small = await opened(`performance.query_memory_bytes = ${MIB}`);
  large = await opened("");
});

afterAll(async () => {
  await small[Symbol.asyncDispose]();
  await large[Symbol.asyncDispose]();
});

async function opened(config: string): Promise<TestEngine> {
  const engine = await TestEngine.open({ clock: systemClock, config, disk });
  await engine.run(
    "CREATE TABLE stored (id INT PRIMARY KEY, k INT, b BIGINT, d DECIMAL(30, 3), f DOUBLE, s TEXT, j JSONB, " +
      "at TIMESTAMP, flag BOOLEAN, u UUID);" +
      "CREATE VIEW t AS SELECT *, make_interval(0, id % 4, 0, id % 6) AS i FROM stored",
  );
  // The rows of an INSERT from a query count towards the statement's memory, so they are inserted
  // in portions.
  for (let first = 1; first <= ROW_COUNT; first += 1000) {
    await engine.run(
      "INSERT INTO stored SELECT n, CASE WHEN n % 11 = 0 THEN NULL ELSE (n * 7919) % 1009 END, " +
        "CASE WHEN n % 5 = 0 THEN 9007199254740993 + n ELSE n END, " +
        "(n % 700)::DECIMAL(30, 3) / 8, CASE WHEN n % 13 = 0 THEN NULL ELSE (n % 97) / 3.0 END, " +
        "CASE WHEN n % 17 = 0 THEN NULL ELSE 'täxt ' || (n * 31) % 5003 || repeat('.', n % 40) END, " +
        `('{"a": ' || n % 50 || ', "b": [' || n % 3 || ', null]}')::JSONB, ` +
        "TIMESTAMP '2024-01-01 00:00:00' + make_interval(0, 0, 0, n % 400), n % 3 = 0, " +
        "('00000000-0000-4000-8000-' || lpad((n % 3000)::TEXT, 12, '0'))::UUID " +
        `FROM generate_series(${first}, ${first + 999}) g(n)`,
    );
  }
  return engine;
}

/** Reads a long response as it arrives, so that its rows need not fit in memory. */
async function answer(engine: TestEngine, sql: string): Promise<SqlResponse> {
  const first = await engine.ask(sql, { reader: { onLeave: () => undefined } });
  return first.stream === undefined ? first : await whole(first.stream);
}

async function whole(stream: AnswerStream): Promise<SqlResponse> {
  const rows: (readonly unknown[])[] = [];
  for (;;) {
    const part = await stream.next();
    if (part.kind === "rows") rows.push(...part.rows);
    if (part.kind !== "end") continue;
    const results = [{ rows, rowCount: rows.length, asUser: "root" }];
    return part.error === undefined ? { results } : { results, error: part.error };
  }
}

async function rowsOf(engine: TestEngine, sql: string): Promise<readonly (readonly unknown[])[]> {
  const { error, results } = await answer(engine, sql);
  if (error !== undefined) throw error;
  return results.at(-1)?.rows ?? [];
}

function temporaryFiles(engine: TestEngine): readonly string[] {
  return readdirSync(join(engine.dataPath, "tmp")).filter((name) => name.startsWith("spill."));
}

async function spilledBytes(engine: TestEngine, sql: string): Promise<number> {
  const lines = await rowsOf(engine, `EXPLAIN ANALYZE ${sql}`);
  let sum = 0;
  for (const [line] of lines) sum += Number(/spilled bytes: (\d+)/.exec(String(line))?.[1] ?? 0);
  return sum;
}

function sorted(rows: readonly (readonly unknown[])[]): readonly string[] {
  return rows.map((row) => JSON.stringify(row)).toSorted();
}

const ORDERED: readonly string[] = [
  "SELECT * FROM t ORDER BY s DESC NULLS FIRST, id",
  "SELECT id, d, f FROM t ORDER BY f NULLS FIRST, d DESC, id",
  "SELECT id, b, s FROM t ORDER BY b DESC",
  "SELECT id, j, s FROM t ORDER BY j, id DESC",
  "SELECT id, i, u FROM t ORDER BY i, u DESC, at, id",
  "SELECT id, s, flag FROM t ORDER BY k NULLS LAST, id LIMIT 3000 OFFSET 5000",
  "SELECT id, k, s FROM t ORDER BY k NULLS FIRST, id LIMIT 7000",
  "SELECT DISTINCT ON (s) s, id, j FROM t ORDER BY s NULLS FIRST, id DESC",
  "SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY id), sum(d) OVER (PARTITION BY k ORDER BY id), " +
    "lag(s) OVER (PARTITION BY k ORDER BY id) FROM t ORDER BY id",
  "SELECT k, id, max(s) OVER (PARTITION BY u) FROM t ORDER BY id",
];

const UNORDERED: readonly string[] = [
  "SELECT DISTINCT s, k FROM t",
  "SELECT DISTINCT j, i, d, u FROM t",
  "SELECT s, u, count(*), sum(b), min(d), max(f), avg(d), bool_or(flag) FROM t GROUP BY s, u",
  "SELECT id % 9000, count(*) FILTER (WHERE k > 500), sum(1000 / k) FILTER (WHERE k > 0), min(s) FROM t GROUP BY 1",
  "SELECT s, d, grouping(s, d), count(*), sum(f::DECIMAL(20, 6)) FROM t GROUP BY GROUPING SETS ((s), (d), (s, d), ())",
  "SELECT count(DISTINCT s), count(DISTINCT b), sum(DISTINCT d), count(DISTINCT (u)) FROM t",
  "SELECT k % 5, count(DISTINCT s), count(*), max(DISTINCT id) FROM t GROUP BY 1",
  "SELECT k % 3, length(string_agg((id % 10)::TEXT, '' ORDER BY s, id)) FROM t WHERE id < 9000 GROUP BY 1",
  "SELECT id, count(DISTINCT s), min(u::TEXT) FROM t GROUP BY id",
  "SELECT s, d FROM t UNION SELECT s || '!', d FROM t",
  "SELECT s, k FROM t WHERE id % 2 = 0 INTERSECT SELECT s, k FROM t WHERE id % 3 = 0",
  "SELECT s, k FROM t EXCEPT SELECT s, k FROM t WHERE id % 3 = 0",
  "SELECT u, k % 7 FROM t WHERE id % 2 = 0 INTERSECT ALL SELECT u, k % 7 FROM t WHERE id % 3 = 0",
  "SELECT u, k % 7, s FROM t EXCEPT ALL SELECT u, k % 7, s FROM t WHERE id % 3 = 0",
  "SELECT a.id, b.id, b.s FROM t a JOIN t b ON a.s = b.s AND a.u = b.u",
  "SELECT a.id, b.id, b.j FROM t a LEFT JOIN t b ON a.b = b.b + 3 AND b.k > 100",
  "SELECT a.id, a.s, b.id, b.s FROM t a FULL JOIN t b ON a.u = b.u AND a.id = b.id + 3000",
  "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id > 2000 AND b.s = a.s AND b.u = a.u AND b.b = a.b)",
  "SELECT id FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.s = a.s AND b.id > a.id)",
  "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.u = a.u AND b.d < a.d)",
  "SELECT id, s, j FROM stored WHERE id < 9000 AND (u, s) IN (SELECT u, s FROM stored)",
  "SELECT id, s, j FROM t a WHERE id < 9000 AND NOT EXISTS (SELECT 1 FROM t b WHERE b.s = a.s AND b.u = a.u AND b.id <> a.id)",
  "SELECT id FROM stored a WHERE EXISTS (SELECT 1 FROM stored b JOIN stored c ON b.u = c.u WHERE b.id = a.id)",
  "SELECT u, k, flag, count(DISTINCT s), string_agg((id % 10)::TEXT, '' ORDER BY s || j::TEXT, s, id), max(DISTINCT f) FROM t " +
    "WHERE id < 1500 GROUP BY GROUPING SETS ((u), (flag), (k), ())",
  "WITH c AS (SELECT id, s, j FROM t) SELECT a.id, b.s FROM c a JOIN c b ON a.id = b.id + 1",
];

/** Statements that each contain one kind of operator that can spill rows to disk. */
const ANALYZED: readonly string[] = [
  "SELECT id, b, s FROM t ORDER BY b DESC",
  "SELECT DISTINCT s, k FROM t",
  "SELECT s, u, count(*) FROM t GROUP BY s, u",
  "SELECT k % 5, count(DISTINCT s) FROM t GROUP BY 1",
  "SELECT s, k FROM t WHERE id % 2 = 0 INTERSECT SELECT s, k FROM t WHERE id % 3 = 0",
  "SELECT a.id, b.id, b.s FROM t a JOIN t b ON a.s = b.s AND a.u = b.u",
  "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id > 2000 AND b.s = a.s AND b.u = a.u AND b.b = a.b)",
  "SELECT k, id, max(s) OVER (PARTITION BY u) FROM t",
  "WITH c AS (SELECT id, s, j FROM t) SELECT a.id, b.s FROM c a JOIN c b ON a.id = b.id + 1",
];

/** Returns the rows of a statement, after checking that it has spilled. */
async function spilledRows(sql: string): Promise<readonly (readonly unknown[])[]> {
  const before = disk.temporaryFiles;
  const rows = await rowsOf(small, sql);
  expect(disk.temporaryFiles).toBeGreaterThan(before);
  return rows;
}

describe("a statement that exceeds its memory limit is spilled to disk", () => {
  test.each(shareOf(ORDERED, { oneOf: 12 }))(
    "a spilled statement returns rows in the same order: %s",
    async (sql) => {
      expect(await spilledRows(sql)).toEqual(await rowsOf(large, sql));
      expect(temporaryFiles(small)).toEqual([]);
    },
  );

  test.each(shareOf(UNORDERED, { oneOf: 12 }))(
    "a spilled statement returns the same rows: %s",
    async (sql) => {
      expect(sorted(await spilledRows(sql))).toEqual(sorted(await rowsOf(large, sql)));
      expect(temporaryFiles(small)).toEqual([]);
    },
  );

  test.each(shareOf(ANALYZED, { oneOf: 5 }))(
    "a spilled statement reports how much it wrote: %s",
    async (sql) => {
      expect(await spilledBytes(small, sql)).toBeGreaterThan(0);
    },
  );

  test("a spilled sort keeps equal rows in their original order", async () => {
    const sql = "SELECT k, id, s, j FROM (SELECT * FROM t ORDER BY id) q ORDER BY k % 3";
    const rows = await rowsOf(small, sql);
    expect(rows).toEqual(await rowsOf(large, sql));
  });
});

const ROUNDS = amountOf({ usual: 1, thorough: 15 });
const SEED = Number(process.env["SEED"] ?? 20_261_122);

test(`random queries have the same result with little memory as with much (seed ${SEED})`, async () => {
  const random = new SeededRandom(SEED);
  const chosen = (from: readonly string[]): string => from[random.below(from.length)] ?? "";
  const columns = ["k", "b", "d", "f", "s", "j", "at", "flag", "i", "u", "id % 4000", "k % 4"];
  const list = (count: number): string[] => Array.from({ length: count }, () => chosen(columns));
  const calls = [
    "count(*)",
    "sum(d)",
    "min(s)",
    "max(b)",
    "count(DISTINCT s)",
    "max(at)",
    "sum(k)",
  ];
  for (let round = 0; round < ROUNDS; round += 1) {
    const keys = list(1 + random.below(3));
    const filter = `id % ${2 + random.below(9)} <> 1`;
    const directions = keys.map((key) => `${key} ${chosen(["ASC", "DESC", "ASC NULLS FIRST"])}`);
    const set = chosen(["UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]);
    const joined = chosen(["JOIN", "LEFT JOIN", "FULL JOIN"]);
    const sql = chosen([
      `SELECT *, 1 FROM t WHERE ${filter} ORDER BY ${directions.join()}, id`,
      `SELECT DISTINCT ${keys.join()}, s FROM t WHERE ${filter}`,
      `SELECT ${keys.join()}, s, ${chosen(calls)}, ${chosen(calls)} FROM t WHERE ${filter} GROUP BY ${keys.join()}, s`,
      `SELECT ${keys.join()}, s FROM t WHERE ${filter} ${set} SELECT ${keys.join()}, s FROM t WHERE id % 3 = 0`,
      `SELECT a.id, a.s, b.id, b.j FROM t a ${joined} t b ON a.id = b.id + ${random.below(3)} AND a.k = b.k`,
      `SELECT id, ${keys[0]}, rank() OVER (PARTITION BY ${chosen(["k", "u", "d", "at"])} ORDER BY s), s, j FROM t WHERE ${filter}`,
    ]);
    const few = await rowsOf(small, sql);
    const many = await rowsOf(large, sql);
    expect(sorted(few), sql).toEqual(sorted(many));
    if (sql.endsWith(", id")) expect(few, sql).toEqual(many as unknown[][]);
  }
  expect(temporaryFiles(small)).toEqual([]);
});

describe("temporary files of a statement are removed", () => {
  const sql =
    "SELECT n, repeat('x', 50) AS t FROM generate_series(1, 5000000) g(n) ORDER BY n % 1000, n";

  testThoroughly("temporary files are removed when the statement is killed", async () => {
    await using threaded = await TestEngine.open({
      clock: systemClock,
      config: `performance.query_memory_bytes = ${MIB}`,
      inThreads: true,
    });
    const asked = threaded.ask(sql);
    await until(() => temporaryFiles(threaded).length > 0);
    const [row] = await threaded.rows(
      "SELECT query_id FROM system.queries WHERE sql NOT LIKE '%system.queries%'",
    );
    await threaded.run(`KILL QUERY '${String(row?.[0])}'`);
    expect((await asked).error?.code).toBe("CANCELLED");
    await until(() => temporaryFiles(threaded).length === 0);
  });

  test("temporary files are removed when the statement exceeds its time limit", async () => {
    expect(await small.failure(sql, { timeoutMs: 300 })).toBe("STATEMENT_TIMEOUT@1");
    expect(temporaryFiles(small)).toEqual([]);
  });

  testThoroughly(
    "temporary files are removed when the statement fails after it has written",
    async () => {
      const failing =
        "SELECT 1 / (n - 1) FROM (SELECT n, repeat('x', 50) AS t FROM generate_series(1, 60000) g(n) ORDER BY t, n DESC OFFSET 0) q";
      expect(await small.failure(`SELECT count(*) FROM (${failing} ORDER BY 1) p`)).toBe(
        "DIVISION_BY_ZERO@1",
      );
      expect(temporaryFiles(small)).toEqual([]);
    },
  );

  test("temporary files are limited in size", async () => {
    const limited = await TestEngine.open({
      clock: systemClock,
      config: `performance.query_memory_bytes = ${MIB}\nperformance.query_temporary_bytes = ${8 * MIB}`,
    });
    const { error } = await limited.ask(sql);
    expect(error?.code).toBe("MEMORY_EXCEEDED");
    expect(error?.message).toBe(
      `Cannot run the statement: it needs more than ${8 * MIB} bytes of temporary files`,
    );
    expect(temporaryFiles(limited)).toEqual([]);
    await limited[Symbol.asyncDispose]();
  });

  test("temporary files of a process that died are removed at the next start", async () => {
    const left = join(small.dataPath, "tmp", "spill.999999");
    await Bun.write(left, "rows");
    await small.restart();
    expect(existsSync(left)).toBe(false);
  });
});
