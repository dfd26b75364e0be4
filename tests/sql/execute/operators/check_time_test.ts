/**
 * Verifies that operators that run without yielding check the time often, and leave nothing behind
 * when one of these checks ends them. The tests run statements on a table and on files, with
 * little memory. Their clock counts how often it is read, and exceeds the statement's time limit
 * at a chosen check.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { AskedClock } from "../../../support/asked_clock.ts";
import { TestEngine } from "../../../support/sql_engine.ts";
import { amountOf, shareOf } from "../../../support/thoroughness.ts";

const ROWS = 30_000;
const PIECE = 5000;
const TIMEOUT_MS = 1000;

/** A clock that exceeds a statement's time limit at a given check. */
class EndingClock extends AskedClock {
  /** The number of the check at which the time limit is exceeded; 0 for never. */
  endsAt = 0;

  override monotonicMs(): number {
    const nowMs = super.monotonicMs();
    if (this.askedCount === this.endsAt) this.advance(2 * TIMEOUT_MS);
    return this.askedCount === this.endsAt ? nowMs + 2 * TIMEOUT_MS : nowMs;
  }
}

const clock = new EndingClock();
let engine: TestEngine;

beforeAll(async () => {
  const config = `performance.query_memory_bytes = ${2 ** 22}`;
  engine = await TestEngine.open({ clock, config });
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, k INT, s TEXT, d DOUBLE)");
  for (let start = 0; start < ROWS; start += PIECE) {
    await engine.run(
      `INSERT INTO t SELECT g, g % 1000, 'row ' || (g::BIGINT * 7919) % 30011, (g * 31) % 1009 / 8.0
       FROM generate_series(${start + 1}, ${start + PIECE}) AS s(g)`,
    );
  }
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

function temporaryFiles(): readonly string[] {
  const directory = join(engine.dataPath, "tmp");
  if (!existsSync(directory)) return [];
  const isSpilled = (name: string): boolean => name.startsWith("spill.");
  return readdirSync(directory)
    .filter(isSpilled)
    .flatMap((name) => readdirSync(join(directory, name)));
}

/** Statements, each with the minimum number of times that it must check the clock. */
const STATEMENTS: readonly (readonly [name: string, sql: string, looksMin: number])[] = [
  ["a sort", "SELECT count(*) FROM (SELECT id FROM t ORDER BY s DESC, id OFFSET 1) q", 20],
  ["first rows", "SELECT id FROM t ORDER BY d, id LIMIT 7", 8],
  [
    "a window",
    "SELECT sum(n) FROM (SELECT rank() OVER (PARTITION BY k ORDER BY s) n FROM t) q",
    20,
  ],
  ["a wide frame", "SELECT max(x) FROM (SELECT sum(d) OVER (ORDER BY id) AS x FROM t) q", 20],
  ["groups", "SELECT count(*) FROM (SELECT s, count(*), max(d) FROM t GROUP BY s, k) q", 20],
  ["grouping sets", "SELECT count(*) FROM (SELECT k FROM t GROUP BY CUBE (k, s)) q", 30],
  ["distinct", "SELECT count(*), count(DISTINCT s), count(DISTINCT d) FROM t", 8],
  ["ordered aggregates", "SELECT length(string_agg(s, '' ORDER BY d)) FROM t WHERE id < 9000", 4],
  ["first of groups", "SELECT count(*) FROM (SELECT DISTINCT ON (k) id FROM t ORDER BY k, d) q", 8],
  ["a join", "SELECT count(*), max(b.s) FROM t a JOIN t b ON a.id = b.id + 1", 16],
  ["all pairs", "SELECT count(*) FROM t a, t b WHERE a.id < 100 AND a.k + b.k < 0", 300],
  ["a full join", "SELECT count(a.id) FROM t a FULL JOIN t b ON a.s = b.s AND a.d < b.d", 16],
  ["a semi join", "SELECT count(*) FROM t WHERE s IN (SELECT s FROM t x WHERE x.k > 500)", 16],
  [
    "an anti join",
    "SELECT count(*) FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.id = a.k AND b.d > a.d)",
    16,
  ],
  [
    "except",
    "SELECT count(*) FROM (SELECT s FROM t EXCEPT ALL SELECT s FROM t WHERE k < 500) q",
    16,
  ],
  [
    "a recursion",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r WHERE n < 300) SELECT sum(n) FROM r",
    300,
  ],
  [
    "shared rows",
    "WITH c AS (SELECT s, k FROM t) SELECT count(*) FROM c a JOIN c b ON a.s = b.s",
    16,
  ],
  ["lateral", "SELECT count(*) FROM t, LATERAL generate_series(1, t.k % 3) g WHERE t.id < 3000", 4],
  ["functions", "SELECT count(*) FROM generate_series(1, 100000) g WHERE g % 2 = 0", 20],
];

test.each(shareOf(STATEMENTS, { oneOf: 3 }))("%s", async (_, sql, looksMin) => {
  clock.endsAt = 0;
  clock.askedCount = 0;
  const expected = await engine.rows(sql, { timeoutMs: TIMEOUT_MS });
  const lookCount = clock.askedCount;
  expect(lookCount).toBeGreaterThanOrEqual(looksMin);

  let endedCount = 0;
  const tried = amountOf({ usual: 4, thorough: 40 });
  for (let at = 1; at <= tried; at += 1) {
    clock.askedCount = 0;
    // The request itself, not an operator, makes the first and the last check of the clock.
    clock.endsAt = Math.ceil((at * lookCount) / tried);
    const { error, results } = await engine.ask(sql, { timeoutMs: TIMEOUT_MS });
    if (error === undefined) {
      expect(results.at(-1)?.rows).toEqual(expected);
    } else {
      expect(error.code, `look ${clock.endsAt} of ${lookCount}`).toBe("STATEMENT_TIMEOUT");
      endedCount += 1;
    }
    expect(temporaryFiles()).toEqual([]);
  }
  expect(endedCount).toBeGreaterThan(0);
  clock.endsAt = 0;
  expect(await engine.rows(sql)).toEqual(expected);
});
