/**
 * Goal: subscribers share a group exactly when every message to them is the same.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { parseConfig } from "../../src/config.ts";
import { type Database, openDatabase } from "../../src/database.ts";
import { subscriber } from "../support/live_fixture.ts";

const directory = mkdtempSync(join(tmpdir(), "tidemark-live-"));
let database: Database;

beforeAll(async () => {
  const text = `storage.data_path = ${JSON.stringify(directory)}`;
  database = await openDatabase(parseConfig(text, "test.toml", {}).config, {
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    jwtSecret: () => new Uint8Array(32).fill(7),
    version: "0.0.0",
    onFatal: (cause) => {
      throw cause;
    },
  });
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
