/**
 * A database with tables of rooms and messages, and followers of live queries over them. Each test
 * begins with the same rows.
 */
import { afterAll, beforeAll, beforeEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import type { SubscriptionSpec } from "../../../src/protocol/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { principalFor } from "../../support/principal_for.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { rowsOf } from "../../support/rows_of.ts";

let directory: string;
export let database: Database;
export let root: Principal;

/** Opens the database for the tests of a file, and fills the tables before each of them. */
export function useRooms(): void {
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "tidemark-results-"));
    database = await openAt(directory, { config: SMALL_FILES });
    root = principalFor(database, "root");
    await run("CREATE NAMESPACE app");
  });

  afterAll(async () => {
    await database.close();
    rmSync(directory, { recursive: true, force: true });
  });

  beforeEach(async () => {
    await run(`DROP VIEW IF EXISTS app.open_rooms;
      DROP TABLE IF EXISTS app.messages; DROP TABLE IF EXISTS app.rooms;
      CREATE SHARED TABLE app.rooms (id INT PRIMARY KEY, name TEXT);
      CREATE SHARED TABLE app.messages (id INT PRIMARY KEY, room INT, text TEXT, stars INT);
      INSERT INTO app.rooms VALUES (1, 'lobby'), (2, 'attic'), (3, NULL);
      INSERT INTO app.messages VALUES (10, 1, 'hi', 3), (11, 1, 'ho', NULL), (12, 2, 'dust', 1)`);
  });
}

export function run(sql: string, as: Principal = root): Promise<readonly (readonly unknown[])[]> {
  return rowsOf(database, as, sql);
}

export function follow(
  sql: string,
  {
    as = root,
    held,
    ...given
  }: Partial<SubscriptionSpec> & {
    as?: Principal;
    held?: ResultFollower;
  } = {},
): ResultFollower {
  const follower = new ResultFollower(held === undefined ? {} : { held });
  const spec = { id: "q", sql, ...given };
  follower.subscription = database.live.subscribe({ principal: as, spec, sink: follower });
  return follower;
}

/** Resolves once a follower has received everything that is visible at the time of the call. */
export async function current(follower: ResultFollower): Promise<ResultFollower> {
  await follower.reaches(database.store.visibleSeq);
  return follower;
}

/** Returns a follower's rows as sorted lists of cells, without `_key` and `_seq`. */
export function cellsOf(follower: ResultFollower): unknown[][] {
  const names = follower.ack?.schema.map(({ name }) => name) ?? [];
  const shown = names.filter((name) => name !== "_key" && name !== "_seq");
  return sorted(follower.rows.map((row) => shown.map((name) => row[name] ?? null)));
}

export function sorted(rows: readonly (readonly unknown[])[]): unknown[][] {
  return rows
    .map((row) => [...row])
    .toSorted((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1));
}

/** Commits that change the result of most queries over the tables. */
export const COMMITS: readonly string[] = [
  "INSERT INTO app.messages VALUES (13, 2, 'web', 5)",
  "UPDATE app.messages SET room = 2 WHERE id = 10",
  "UPDATE app.rooms SET name = 'hall' WHERE id = 1",
  "BEGIN; DELETE FROM app.messages WHERE id = 12; INSERT INTO app.rooms VALUES (4, 'hall'); COMMIT",
  "INSERT INTO app.messages VALUES (14, 4, 'hi', 3), (15, 4, 'hi', 3), (16, NULL, 'lost', 0)",
  "UPDATE app.messages SET stars = NULL WHERE stars = 3",
  "DELETE FROM app.rooms WHERE id = 2",
  "DELETE FROM app.messages",
  "INSERT INTO app.messages VALUES (10, 1, 'again', 1)",
];
