/**
 * Tests the ten queries in docs/live.md for which readers often ask. Each query is followed while
 * commits and the passage of time change its rows, and each state must equal the result of the
 * SELECT.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../src/auth/mod.ts";
import { SEQ_EPOCH_MS } from "../../src/base/seq.ts";
import type { Database } from "../../src/database.ts";
import { openAt, SMALL_FILES } from "../support/database.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { principalFor } from "../support/principal_for.ts";
import { ResultFollower } from "../support/result_follower.ts";
import { rowsOf } from "../support/rows_of.ts";

const HOUR_MS = 3_600_000;
const PAGE = readFileSync(join(import.meta.dir, "../../docs/live.md"), "utf8");

/** The code block of docs/live.md that contains the tables and the queries. */
const BLOCK =
  /```sql\n(CREATE SHARED TABLE IF NOT EXISTS chat\.rooms[^`]*)```/.exec(PAGE)?.[1] ?? "";

const TABLES = BLOCK.slice(0, BLOCK.indexOf("\n-- "));

/**
 * The queries of docs/live.md, keyed by the text before the colon in the comment above each query.
 */
const QUERIES: ReadonlyMap<string, string> = new Map(
  [...BLOCK.matchAll(/^-- ([^:\n]+).*\nSUBSCRIBE TO ([^;]+);/gm)].map(([, name = "", sql = ""]) => [
    name,
    sql,
  ]),
);

/**
 * The statements that change the rows of each query. A number advances the clock by that many
 * seconds.
 */
const CHANGES: Readonly<Record<string, readonly (string | number)[]>> = {
  "a feed": [
    "INSERT INTO chat.posts VALUES (20, 1, 'bo', 'new', now(), 0)",
    "INSERT INTO chat.friends VALUES ('root', 'cy')",
    "DELETE FROM chat.posts WHERE id = 20",
  ],
  "an inbox": [
    "INSERT INTO chat.posts VALUES (20, 1, 'bo', 'new', now(), 0)",
    "UPDATE chat.seen SET post = 20 WHERE reader = 'root' AND room = 1",
    "UPDATE chat.rooms SET name = 'hall' WHERE id = 2",
  ],
  presence: [
    "UPDATE chat.online SET at = now(), room = 2 WHERE person = 'cy'",
    61,
    "INSERT INTO chat.online VALUES ('di', 1, now())",
  ],
  "a leaderboard": [
    "UPDATE chat.posts SET stars = 50 WHERE id = 3",
    "DELETE FROM chat.posts WHERE author = 'cy'",
  ],
  "a kanban board": [
    "UPDATE chat.rooms SET state = 'done' WHERE id = 1",
    "INSERT INTO chat.rooms VALUES (0, 'first', 'done')",
  ],
  "counters of a dashboard": [
    "INSERT INTO chat.posts VALUES (20, 1, 'eve', 'new', now(), 0)",
    "DELETE FROM chat.posts",
  ],
  "search as you type": [
    "INSERT INTO chat.posts VALUES (20, 1, 'bo', 'High tide', now(), 0)",
    "UPDATE chat.posts SET text = 'ebb' WHERE id = 20",
  ],
  "the last message of each room": [
    "INSERT INTO chat.posts VALUES (20, 1, 'bo', 'new', now(), 0)",
    "DELETE FROM chat.posts WHERE room = 2",
    "INSERT INTO chat.rooms VALUES (3, 'empty', 'open')",
  ],
  "friends of friends": [
    "INSERT INTO chat.friends VALUES ('bo', 'eve')",
    "INSERT INTO chat.friends VALUES ('root', 'cy')",
    "DELETE FROM chat.friends WHERE person = 'bo'",
  ],
  "activity by hour": [
    "INSERT INTO chat.posts VALUES (20, 1, 'bo', 'new', now(), 0)",
    24 * 3600,
    "INSERT INTO chat.posts VALUES (21, 1, 'bo', 'new', now(), 0)",
  ],
};

let directory: string;
let clock: ManualClock;
let database: Database;
let root: Principal;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-live-queries-"));
  clock = new ManualClock(SEQ_EPOCH_MS + 100 * HOUR_MS);
  database = await openAt(directory, { config: SMALL_FILES, clock });
  root = principalFor(database, "root");
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

function run(sql: string): Promise<readonly (readonly unknown[])[]> {
  return rowsOf(database, root, sql);
}

/** Runs all tasks that are due. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await clock.yield();
}

async function begin(): Promise<void> {
  await run(`DROP NAMESPACE IF EXISTS chat CASCADE; CREATE NAMESPACE chat; ${TABLES};
    INSERT INTO chat.rooms VALUES (1, 'lobby', 'open'), (2, 'attic', 'done');
    INSERT INTO chat.posts SELECT n, 1 + n % 2, CASE n % 3 WHEN 0 THEN 'bo' WHEN 1 THEN 'cy' ELSE 'di' END,
      CASE n % 2 WHEN 0 THEN 'ebb' ELSE 'low tide' END, now() - n * INTERVAL '3 hours', n % 5 FROM generate_series(1, 12) AS g(n);
    INSERT INTO chat.seen VALUES ('root', 1, 4);
    INSERT INTO chat.online VALUES ('bo', 1, now()), ('cy', 1, now() - INTERVAL '10 minutes');
    INSERT INTO chat.friends VALUES ('root', 'bo'), ('bo', 'cy'), ('bo', 'di'), ('cy', 'fay')`);
}

test("the page has ten queries, and this test changes the rows of each", () => {
  expect([...QUERIES.keys()]).toEqual(Object.keys(CHANGES));
  expect(QUERIES.size).toBe(10);
});

describe("each state equals the result of the SELECT", () => {
  for (const [name, changes] of Object.entries(CHANGES)) {
    test(name, async () => {
      const sql = QUERIES.get(name) ?? "";
      await begin();
      const follower = new ResultFollower();
      const spec = { id: "q", sql };
      follower.subscription = database.live.subscribe({ principal: root, spec, sink: follower });
      await settle();
      for (const change of changes) {
        const before = cellsOf(follower, await run(sql));
        if (typeof change === "number") clock.advance(change * 1000);
        else await run(change);
        await settle();
        // The server waits a while before it evaluates the same query again, so the test advances
        // the clock.
        clock.advance(1);
        await settle();
        const rows = await run(sql);
        const after = cellsOf(follower, rows);
        expect(after).toEqual(texts(rows));
        expect(after).not.toEqual(before);
      }
      follower.subscription?.close();
    });
  }
});

/** Returns a follower's rows as sorted texts, with only the columns that the SELECT returns. */
function cellsOf(
  { ack, rows }: ResultFollower,
  selected: readonly (readonly unknown[])[],
): string[] {
  const names = ack?.schema.map(({ name }) => name).slice(0, selected[0]?.length) ?? [];
  return texts(rows.map((row) => names.map((name) => row[name] ?? null)));
}

function texts(rows: readonly (readonly unknown[])[]): string[] {
  return rows.map((row) => JSON.stringify(row)).toSorted();
}
