/**
 * Tests the `_seq` of unchanged rows that a materialised query begins to show because of a policy
 * or a window. It must be above the previous state, so that a client that discards older rows does
 * not lose them.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import type { SubscriptionSpec } from "../../../src/protocol/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { principalFor } from "../../support/principal_for.ts";
import { ResultFollower } from "../../support/result_follower.ts";

const WAYS = ["maintained", "evaluated"] as const;

let directory: string;
let database: Database;
let root: Principal;
let bob: Principal;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-seqs-"));
  database = await openAt(directory, { config: SMALL_FILES });
  root = principalFor(database, "root");
  await run("CREATE NAMESPACE app; CREATE USER bob INTERNAL");
  bob = principalFor(database, "bob");
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

beforeEach(async () => {
  await run(`DROP VIEW IF EXISTS app.bodies; DROP TABLE IF EXISTS app.notes; DROP TABLE IF EXISTS app.members;
    CREATE SHARED TABLE app.members (room INT, guest TEXT, PRIMARY KEY (room, guest));
    CREATE INDEX ON app.members (guest);
    CREATE SHARED TABLE app.notes (id INT PRIMARY KEY, room INT, body TEXT, stars INT)
      WITH (ACCESS_LEVEL = 'RESTRICTED');
    CREATE INDEX ON app.notes (room);
    CREATE POLICY members_read ON app.notes FOR SELECT USING
      (EXISTS (SELECT 1 FROM app.members m WHERE m.room = room AND m.guest = CURRENT_USER()));
    CREATE VIEW app.bodies AS SELECT id, body, room FROM app.notes;
    INSERT INTO app.members VALUES (1, 'bob');
    INSERT INTO app.notes VALUES (1, 1, 'one', 1), (2, 2, 'two', 2), (3, 1, 'three', 3)`);
});

/** Runs statements. Returns the seq of the last commit. */
async function run(sql: string): Promise<number> {
  const { error, results } = await database.sql.execute(root, {
    sql,
    params: [],
    namespace: "app",
  });
  expect(error).toBeUndefined();
  return Number(results.at(-1)?.lastSeq);
}

function follow(
  sql: string,
  way: (typeof WAYS)[number],
  { held, ...given }: Partial<SubscriptionSpec> & { held?: ResultFollower } = {},
): ResultFollower {
  const follower = new ResultFollower(held === undefined ? {} : { held });
  const options = { ...given.options, way };
  const spec = { id: "q", sql, namespace_id: "app", ...given, options };
  follower.subscription = database.live.subscribe({ principal: bob, spec, sink: follower });
  return follower;
}

async function current(follower: ResultFollower): Promise<ResultFollower> {
  await follower.reaches(database.store.visibleSeq);
  return follower;
}

/** Returns the seqs of a follower's rows, keyed by id. */
function seqsOf({ rows }: ResultFollower): Record<string, number> {
  return Object.fromEntries(rows.map(({ _seq, id }) => [String(id), Number(_seq)]));
}

describe.each([
  ["SELECT id, body FROM notes", "a table"],
  ["SELECT n.id, n.body, o.id AS other FROM notes n JOIN notes o ON o.id = n.id", "a self join"],
  ["SELECT id, body FROM bodies", "a view"],
  ["SELECT id, body FROM notes ORDER BY id LIMIT 5", "a window"],
  ["SELECT id, count(*) AS n FROM notes GROUP BY id", "groups"],
])("%s", (sql) => {
  test.each(WAYS)("a membership shows rows with its seq: %s", async (way) => {
    const follower = await current(follow(sql, way));
    expect(Object.keys(seqsOf(follower))).toEqual(["1", "3"]);
    const granted = await run("INSERT INTO members VALUES (2, 'bob')");
    await current(follower);
    expect(seqsOf(follower)).toMatchObject({ 2: granted });
    follower.subscription?.close();
  });

  test.each(WAYS)("a resume brings them with a later seq than the position: %s", async (way) => {
    const held = await current(follow(sql, way));
    held.subscription?.close();
    const granted = await run("INSERT INTO members VALUES (2, 'bob')");
    await run("UPDATE notes SET stars = 9 WHERE id = 3");
    const options = { from_seq_id: Number(held.seq) };
    const back = await current(follow(sql, way, { held, options }));
    const { "2": seq = 0 } = seqsOf(back);
    expect(Object.keys(seqsOf(back)).toSorted()).toEqual(["1", "2", "3"]);
    expect(seq).toBeGreaterThanOrEqual(granted);
    back.subscription?.close();
  });
});

test("rows have the seq of the membership, even if they changed just before", async () => {
  const follower = await current(follow("SELECT id, body FROM notes", "maintained"));
  // The feed processes these commits together, because they become visible before it runs again.
  const seqs = await Promise.all([
    run("UPDATE notes SET body = 'zwei' WHERE id = 2"),
    run("INSERT INTO members VALUES (2, 'bob')"),
    run("UPDATE notes SET body = 'drei' WHERE id = 3"),
  ]);
  const [changed, granted, other] = seqs;
  await current(follower);
  expect(seqsOf(follower)).toMatchObject({ 2: Math.max(changed, granted), 3: other });
  follower.subscription?.close();
});

test.each(WAYS)("a row that enters a window has the seq of the commit: %s", async (way) => {
  const sql = "SELECT id FROM notes ORDER BY stars, id LIMIT 1";
  const follower = await current(follow(sql, way));
  const removed = await run("DELETE FROM notes WHERE id = 1");
  await current(follower);
  expect(seqsOf(follower)).toEqual({ 3: removed });
  follower.subscription?.close();
});
