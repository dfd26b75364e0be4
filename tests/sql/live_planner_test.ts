/**
 * Goal: subscribers share a group exactly when every message to them is the same.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../src/database.ts";
import { TEXT, vectorFromValues } from "../../src/types/mod.ts";
import { openAt, SMALL_FILES } from "../support/database.ts";
import { subscriber } from "../support/live_fixture.ts";

const directory = mkdtempSync(join(tmpdir(), "tidemark-live-"));
let database: Database;

beforeAll(async () => {
  database = await openAt(directory, { config: SMALL_FILES });
  const root = { ...subscriber("root", 1), role: "system" } as const;
  const made = await database.sql.execute(root, {
    sql: "CREATE SHARED TABLE news (id INT PRIMARY KEY, who TEXT) WITH (ACCESS_LEVEL = 'PUBLIC')",
    params: [],
  });
  expect(made.error).toBeUndefined();
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

function fingerprints(sql: string): string[] {
  return ["ann", "bob"].map(
    (userId) => database.sql.planLive(subscriber(userId, 2), { sql, params: [] }).fingerprint,
  );
}

test.each(["SELECT * FROM news", "SELECT * FROM news WHERE who = 'current_user'"])(
  "planLive, %s: all callers share one group",
  (sql) => {
    const [ofAnn, ofBob] = fingerprints(sql);
    expect(ofAnn).toBe(ofBob as string);
  },
);

test.each([
  "SELECT * FROM news WHERE who = CURRENT_USER",
  "SELECT * FROM news WHERE who = current_user_id()",
  'SELECT id, _seq, lower("session_user"()) AS me FROM news',
  "SELECT * FROM news WHERE id > 1 OR who = upper(current_role)",
])("planLive, %s: each caller has a group", (sql) => {
  const [ofAnn, ofBob] = fingerprints(sql);
  expect(ofAnn).not.toBe(ofBob as string);
});

test.each([
  ["SELECT id, who FROM news WHERE id > 5 AND who = 'ann'", false],
  ["SELECT id FROM news WHERE lower(who) = 'ann'", true],
  ["SELECT id, upper(who) AS loud FROM news", true],
] as const)("planLive, %s: whether it has a pace is %s", (sql, hasPace) => {
  const { pace } = database.sql.planLive(subscriber("ann", 2), { sql, params: [] });
  expect(pace !== undefined).toBe(hasPace);
});

test("planLive: what a plan evaluated before does not count against it", () => {
  const sql = "SELECT id FROM news WHERE repeat(who, 1000000) = 'x'";
  const { columnIds, filter, pace } = database.sql.planLive(subscriber("ann", 2), {
    sql,
    params: [],
  });
  // 2 MB a time: what one evaluation may make is 256 MiB.
  const columns = columnIds.map(() => vectorFromValues(TEXT, ["a"]));
  for (let round = 0; round < 200; round += 1) {
    const verdict = pace?.attempt(1, () => filter?.evaluate({ rowCount: 1, columns }) ?? {});
    expect(verdict).toBeDefined();
  }
});
