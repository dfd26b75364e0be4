/**
 * Tests materialised queries that compare columns with the current time. Without a commit, and
 * without polling the clock, rows must appear and disappear at the exact time at which the SELECT
 * would return a different result.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import { SEQ_EPOCH_MS } from "../../../src/base/seq.ts";
import type { Database } from "../../../src/database.ts";
import { SubscriptionError } from "../../../src/live/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { principalFor } from "../../support/principal_for.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { amountOf, shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The clock's initial time: ten o'clock on the third day. */
const START_MS = SEQ_EPOCH_MS + 58 * HOUR;

let directory: string;
let clock: ManualClock;
let database: Database;
let root: Principal;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-clock-"));
  clock = new ManualClock(START_MS);
  database = await openAt(directory, { config: SMALL_FILES, clock });
  root = principalFor(database, "root");
  await run("CREATE NAMESPACE app");
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

async function run(sql: string): Promise<readonly (readonly unknown[])[]> {
  const { error, results } = await database.sql.execute(root, {
    sql,
    params: [],
    namespace: "app",
  });
  expect(error).toBeUndefined();
  return results.at(-1)?.rows ?? [];
}

function follow(sql: string, from?: number): ResultFollower {
  const follower = new ResultFollower();
  const options = from === undefined ? {} : { options: { from_seq_id: from } };
  const spec = { id: "q", sql, namespace_id: "app", ...options };
  follower.subscription = database.live.subscribe({ principal: root, spec, sink: follower });
  return follower;
}

/** Runs all pending tasks. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await clock.yield();
}

/** Resets the tables to their initial state, and the clock to ten o'clock, for the next test. */
async function begin(): Promise<void> {
  const nextMs = START_MS + 24 * HOUR * Math.ceil((clock.nowMs() + HOUR - START_MS) / (24 * HOUR));
  clock.advance(nextMs - clock.nowMs());
  await settle();
  await run(`DROP VIEW IF EXISTS app.recent; DROP TABLE IF EXISTS app.posts; DROP TABLE IF EXISTS app.people;
    CREATE SHARED TABLE app.people (name TEXT PRIMARY KEY, seen TIMESTAMPTZ);
    CREATE SHARED TABLE app.posts (id INT PRIMARY KEY, author TEXT, at TIMESTAMPTZ, day DATE, plain TIMESTAMP);
    CREATE VIEW app.recent AS SELECT id, at AS moment FROM app.posts WHERE at > now() - INTERVAL '30 minutes';
    INSERT INTO app.people SELECT name, now() - n * INTERVAL '2 minutes' FROM (VALUES ('ada', 1), ('bo', 2), ('cy', 9)) AS v(name, n);
    INSERT INTO app.posts SELECT n, CASE n % 2 WHEN 0 THEN 'ada' ELSE 'bo' END, now() - (n - 5) * INTERVAL '20 minutes',
      CURRENT_DATE + (n - 5), now()::TIMESTAMP - (n - 5) * INTERVAL '20 minutes' FROM generate_series(1, 10) AS g(n)`);
}

const QUERIES: readonly (readonly [what: string, sql: string])[] = [
  ["rows of one table leave", "SELECT id, author FROM posts WHERE at > now() - INTERVAL '1 hour'"],
  ["the boundary counts", "SELECT id, author FROM posts WHERE at >= now() - INTERVAL '1 hour'"],
  ["rows of one table come", "SELECT id FROM posts WHERE now() >= at"],
  ["they come once the clock is past them", "SELECT id FROM posts WHERE at < CURRENT_TIMESTAMP"],
  [
    "rows come and go",
    "SELECT id FROM posts WHERE at BETWEEN now() - INTERVAL '1 hour' AND now() OR at = now() + INTERVAL '1 hour'",
  ],
  ["a column without a time zone", "SELECT id FROM posts WHERE plain > LOCALTIMESTAMP"],
  ["a day", "SELECT id FROM posts WHERE day = CURRENT_DATE"],
  ["days since then", "SELECT id FROM posts WHERE day >= CURRENT_DATE - 2 AND day <> CURRENT_DATE"],
  ["a day beside a moment", "SELECT id FROM posts WHERE day > now() - INTERVAL '36 hours'"],
  ["since midnight", "SELECT id FROM posts WHERE at >= date_trunc('day', now())"],
  ["within the hour", "SELECT count(*) FROM posts WHERE date_trunc('hour', now()) <= at"],
  [
    "presence",
    "SELECT name, seen > now() - INTERVAL '5 minutes' AS is_online FROM people ORDER BY name",
  ],
  [
    "groups",
    "SELECT author, count(*) FILTER (WHERE at > now() - INTERVAL '1 hour') FROM posts GROUP BY author",
  ],
  [
    "groups that leave",
    "SELECT author FROM posts GROUP BY author HAVING min(at) > now() - INTERVAL '2 hours'",
  ],
  [
    "a join",
    "SELECT p.id, e.name FROM posts p JOIN people e ON e.name = p.author AND e.seen > now() - INTERVAL '6 minutes'",
  ],
  ["a window of rows", "SELECT id FROM posts WHERE at <= now() ORDER BY at DESC LIMIT 2"],
  [
    "a correlated subquery",
    "SELECT name, (SELECT count(*) FROM posts WHERE author = name AND at <= now()) FROM people",
  ],
  [
    "an outer column in a subquery",
    "SELECT id FROM posts p WHERE EXISTS (SELECT 1 FROM people WHERE name = p.author AND p.at > now())",
  ],
  ["a derived table", "SELECT moment FROM (SELECT at AS moment FROM posts) d WHERE moment > now()"],
  [
    "WITH",
    "WITH d AS (SELECT author, max(at) AS last FROM posts WHERE id > 5 GROUP BY author) SELECT author FROM d WHERE last > now() - INTERVAL '1 hour'",
  ],
  [
    "a set operation",
    "SELECT m FROM (SELECT at AS m FROM posts UNION SELECT seen FROM people) d WHERE m > now() - INTERVAL '10 minutes'",
  ],
  ["a view", "SELECT id FROM recent"],
  ["a parameter as the interval", "SELECT id FROM posts WHERE at > now() - '45 minutes'::INTERVAL"],
];

/**
 * The number of minutes that a test lets pass minute by minute, before it continues hour by hour.
 * A thorough run covers two hours and then three days.
 */
const MINUTES = amountOf({ usual: 6, thorough: 120 });
const HOURS = amountOf({ usual: 25, thorough: 72 });

/**
 * The steps by which a test advances the clock, in milliseconds: just before and just after each
 * full minute, then each full hour.
 */
const STEPS_MS: readonly number[] = [
  ...Array.from({ length: MINUTES }, () => [1, MINUTE - 2, 1]).flat(),
  ...Array.from({ length: HOURS }, () => [1, HOUR - 2, 1]).flat(),
];

describe("rows change as time passes", () => {
  for (const [what, sql] of shareOf(QUERIES, { oneOf: 12 })) {
    test(what, async () => {
      await begin();
      const follower = follow(sql);
      await settle();
      let changeCount = 0;
      let shown = JSON.stringify(cellsOf(follower, await run(sql)));
      for (const ms of STEPS_MS) {
        clock.advance(ms);
        await settle();
        const rows = await run(sql);
        const now = JSON.stringify(cellsOf(follower, rows));
        expect(now).toBe(JSON.stringify(sorted(rows)));
        if (now !== shown) changeCount += 1;
        shown = now;
      }
      expect(changeCount).toBeGreaterThan(0);
      expect(follower.failure).toBeUndefined();
      follower.subscription?.close();
    });
  }
});

/** Returns a follower's rows, sorted, with only the columns that the SELECT returns. */
function cellsOf(follower: ResultFollower, rows: readonly (readonly unknown[])[]): unknown[][] {
  const names = follower.ack?.schema.map(({ name }) => name) ?? [];
  const shown = names.slice(0, rows[0]?.length);
  return sorted(follower.rows.map((row) => shown.map((name) => row[name] ?? null)));
}

function sorted(rows: readonly (readonly unknown[])[]): unknown[][] {
  return rows
    .map((row) => [...row])
    .toSorted((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1));
}

test("a commit between two moments counts, and the next moment is found again", async () => {
  await begin();
  const follower = follow("SELECT id FROM posts WHERE at > now() - INTERVAL '1 hour'");
  await settle();
  await run("UPDATE app.posts SET at = now() - INTERVAL '59 minutes 59.999 seconds' WHERE id = 1");
  await until(() => follower.rows.some(({ id }) => id === 1));
  clock.advance(1);
  await until(() => follower.rows.every(({ id }) => id !== 1));
});

test("a row that the time shows has the seq of the state", async () => {
  await begin();
  const follower = follow("SELECT id FROM posts WHERE at <= now()");
  await settle();
  const before = database.store.visibleSeq;
  expect(follower.rows.some(({ id }) => id === 4)).toBe(false);
  clock.advance(HOUR);
  await until(() => follower.rows.some(({ id }) => id === 4));
  expect(Number(follower.rows.find(({ id }) => id === 4)?.["_seq"])).toBe(before);
});

test("a query whose rows will not change by time waits for a commit", async () => {
  await begin();
  const timerCount = clock.timerCount;
  const follower = follow("SELECT id FROM posts WHERE at > now() + INTERVAL '10 hours'");
  await settle();
  expect(follower.ack).toBeDefined();
  expect(clock.timerCount).toBe(timerCount);
});

test("a client that resumes takes a new snapshot", async () => {
  await begin();
  const sql = "SELECT id FROM posts WHERE at > now() - INTERVAL '1 hour'";
  const { seq } = follow(sql);
  await settle();
  expect(() => follow(sql, seq ?? Number(database.store.visibleSeq))).toThrow(SubscriptionError);
});

const REFUSED: readonly (readonly [sql: string, name: string])[] = [
  ["SELECT now() AS t, id FROM posts", "now"],
  ["SELECT id FROM posts WHERE now() - at < INTERVAL '1 hour'", "now"],
  ["SELECT id FROM posts WHERE extract(hour FROM now()) > id", "now"],
  ["SELECT id FROM posts WHERE at > now() - id * INTERVAL '1 hour'", "now"],
  ["SELECT id FROM posts WHERE now() BETWEEN at AND at + INTERVAL '1 hour'", "now"],
  ["SELECT count(*) FROM posts WHERE at > clock_timestamp()", "clock_timestamp"],
  ["SELECT id FROM posts WHERE CURRENT_TIME > '10:00' ORDER BY 1 LIMIT 1", "current_time"],
];

test("every other use of the time is refused by name and with a hint", async () => {
  await begin();
  for (const [sql, name] of REFUSED) {
    let refusal: SubscriptionError | undefined;
    try {
      follow(sql);
    } catch (error) {
      if (error instanceof SubscriptionError) refusal = error;
    }
    expect(refusal?.response).toMatchObject({
      code: "UNSUPPORTED",
      message: `Cannot subscribe with function ${name}: its value would change even if the row does not`,
      position: sql.toLowerCase().indexOf(name),
    });
    expect(refusal?.response.hint).toContain("pass the value as a parameter");
  }
});

test("EXPLAIN SUBSCRIBE TO reports that time changes the rows", async () => {
  await begin();
  const lines = await run("EXPLAIN SUBSCRIBE TO SELECT id FROM app.posts WHERE at > now()");
  expect(lines.flat()).toContain(
    "  evaluated: after a commit that changes one of these tables, and when a comparison with the clock changes over time, for at most a quarter of the time",
  );
  expect(lines[0]).toEqual(["The live query is materialised because it has the time"]);
});
