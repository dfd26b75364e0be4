/**
 * Verifies that subscribers share a group if and only if they get exactly the same messages, and
 * that a query is refused if its plan cannot guarantee correct messages.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Database } from "../../../src/database.ts";
import { TEXT, vectorFromValues } from "../../../src/types/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { HastyClock } from "../../support/hasty_clock.ts";
import { subscriber } from "../../support/live_fixture.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const directory = mkdtempSync(join(tmpdir(), "tidemark-live-"));
let database: Database;

beforeAll(async () => {
  database = await openAt(directory, { config: SMALL_FILES });
  const root = { ...subscriber("root", 1), role: "system" } as const;
  const made = await database.sql.execute(root, {
    sql: "CREATE SHARED TABLE news (id INT PRIMARY KEY, who TEXT, at TIMESTAMP) WITH (ACCESS_LEVEL = 'PUBLIC')",
    params: [],
  });
  expect(made.error).toBeUndefined();
  const stream = await database.sql.execute(root, {
    sql: "CREATE STREAM TABLE ticks (who TEXT, at TIMESTAMP) WITH (TTL_SECONDS = 60)",
    params: [],
  });
  expect(stream.error).toBeUndefined();
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
  "planLive puts all callers into one group: %s",
  (sql) => {
    const [ofAnn, ofBob] = fingerprints(sql);
    expect(ofAnn).toBe(ofBob as string);
  },
);

test.each([
  "SELECT * FROM news WHERE who = CURRENT_USER",
  "SELECT * FROM news WHERE who = current_user_id()",
  'SELECT id, _seq, lower("user"()) AS me FROM news',
  "SELECT * FROM news WHERE id > 1 OR who = upper(current_role)",
])("planLive, %s: each caller has a group", (sql) => {
  const [ofAnn, ofBob] = fingerprints(sql);
  expect(ofAnn).not.toBe(ofBob as string);
});

test("planLive creates a fingerprint that is short and distinguishes parameters", () => {
  const sql = "SELECT * FROM news WHERE who = $1";
  const fingerprintOf = (who: string): string =>
    database.sql.planLive(subscriber("ann", 2), { sql, params: [who] }).fingerprint;
  const long = "x".repeat(500_000);
  expect(fingerprintOf(long).length).toBeLessThan(64);
  expect(fingerprintOf(long)).toBe(fingerprintOf(long));
  const others = [long, `${long}y`, `y${long}`, "x", "x".repeat(600)].map(fingerprintOf);
  expect(new Set(others).size).toBe(others.length);
});

test.each([
  ["SELECT id, who FROM news WHERE id > 5 AND who = 'ann'", false],
  ["SELECT id FROM news WHERE lower(who) = 'ann'", true],
  ["SELECT id, upper(who) AS loud FROM news", true],
] as const)("planLive, %s: whether it has a pace is %s", (sql, hasPace) => {
  const { pace } = database.sql.planLive(subscriber("ann", 2), { sql, params: [] });
  expect(pace !== undefined).toBe(hasPace);
});

test("planLive refuses a comparison with a word whose time would change", () => {
  const sql = "SELECT id FROM news WHERE who::TIMESTAMP > '2026-01-31'";
  const { columnIds, filter } = database.sql.planLive(subscriber("ann", 2), { sql, params: [] });
  const evaluate = (who: string): unknown =>
    filter?.evaluate({ rowCount: 1, columns: columnIds.map(() => vectorFromValues(TEXT, [who])) });
  expect(() => evaluate("2026-02-01")).not.toThrow();
  expect(() => evaluate(" Now ")).toThrow(
    "Cannot use ' Now ' as a time in a live query: its value would change even if the row " +
      "does not",
  );
});

test("planLive does not charge earlier evaluations to a plan", () => {
  const sql = "SELECT id FROM news WHERE repeat(who, 1000000) = 'x'";
  const { columnIds, filter, pace } = database.sql.planLive(subscriber("ann", 2), {
    sql,
    params: [],
  });
  expect(pace?.rows.rowsMax).toBe(1);
  // Each evaluation produces 2 MB. One evaluation may produce up to 256 MiB, so the limit must not
  // apply to their sum.
  const columns = columnIds.map(() => vectorFromValues(TEXT, ["a"]));
  for (let round = 0; round < 200; round += 1) {
    expect(filter?.evaluate({ rowCount: 1, columns }).length).toBe(1);
  }
});

function refusal(sql: string, params: readonly string[] = []): DatabaseError | undefined {
  try {
    database.sql.planLive(subscriber("ann", 2), { sql, params });
  } catch (error) {
    if (error instanceof DatabaseError) return error;
    throw error;
  }
  return undefined;
}

test.each([
  ["SELECT id FROM news WHERE at < 'now'", []],
  ["SELECT id FROM news WHERE at < CAST(' Today ' AS DATE)", []],
  ["SELECT id, at - 'yesterday'::timestamp AS age FROM news", []],
  ["SELECT id FROM news WHERE at < $1", ["tomorrow"]],
] as const)("planLive, %s %p: a word that is another time later is refused", (sql, params) => {
  const refused = refusal(sql, params);
  expect(refused?.code).toBe("UNSUPPORTED_FEATURE");
  expect(refused?.message).toMatch(/^Cannot subscribe with '.*' as a time: its value would change/);
  expect(refused?.position).toBe(sql.indexOf(params.length === 0 ? "'" : "$1"));
});

test.each([
  "SELECT id FROM news WHERE at < ('no' || 'w')::TIMESTAMP",
  "SELECT id FROM news WHERE at < CAST(CASE WHEN TRUE THEN 'now' END AS TIMESTAMP)",
  "SELECT id, lower('TODAY')::DATE AS day FROM news",
])("planLive, %s: a word that is computed is refused, too", (sql) => {
  expect(refusal(sql)).toMatchObject({
    code: "UNSUPPORTED_FEATURE",
    message: expect.stringMatching(/^Cannot subscribe with '(now|today)' as a time/),
  });
});

test.each([
  ["SELECT id FROM news WHERE at < $1", ["2026-01-31"]],
  ["SELECT id FROM news WHERE at > 'epoch' AND who = 'now'", []],
  ["SELECT ALL id FROM news", []],
  ["SELECT id FROM news WHERE at > who::TIMESTAMP AND at > (1 / 0)::TEXT::TIMESTAMP", []],
] as const)("planLive, %s %p: is accepted", (sql, params) => {
  expect(refusal(sql, params)).toBeUndefined();
});

test.each([
  ["SELECT id FROM news FOR SYSTEM_TIME AS OF '2026-01-31'", "INVALID_SQL"],
  ["SELECT user_id FROM system.users", "PERMISSION_DENIED"],
  ["SELECT user_id FROM system.my_account", "INVALID_SQL"],
] as const)("planLive refuses %s with %s", (sql, code) => {
  expect(refusal(sql)?.code).toBe(code);
});

test.each([
  ["SELECT id, lower(who), upper(CAST(RANDOM() AS TEXT)) AS loud FROM news", "RANDOM"],
  ["SELECT id FROM news WHERE who = SESSION_USER", "SESSION_USER"],
] as const)("planLive, %s: the refusal gives the position of %s", (sql, name) => {
  expect(refusal(sql)).toMatchObject({
    code: "UNSUPPORTED_FEATURE",
    message:
      `Cannot subscribe with function ${name.toLowerCase()}: its value would change even if ` +
      "the row does not",
    position: sql.indexOf(name),
  });
});

test.each([
  ["SELECT id FROM news WHERE at < NOW()", "NOW"],
  ["SELECT id FROM news WHERE at < CURRENT_DATE", "CURRENT_DATE"],
] as const)("planLive, %s: a query that reads the time is not followed row by row", (sql, name) => {
  expect(refusal(sql)).toMatchObject({
    code: "INVALID_SQL",
    message: "Cannot subscribe to a query with the time",
    position: sql.indexOf(name),
  });
});

test("planLive refuses a parameter that the text does not use", () => {
  expect(refusal("SELECT id FROM news WHERE who = $2", ["a", "b"])).toMatchObject({
    code: "INVALID_PARAMETER",
    message: "Cannot bind $1: the SQL does not use this parameter, although it uses a higher one",
  });
});

test.each([
  ["SELECT id, 7 AS _deleted FROM news", "_deleted"],
  ["SELECT id AS _deleted FROM news WHERE id > 1", "_deleted"],
  ["SELECT who, at AS _row_seq FROM ticks", "_row_seq"],
  ["SELECT who AS _deleted FROM ticks", "_deleted"],
] as const)("planLive, %s: %s is what a deletion contains", (sql, name) => {
  expect(refusal(sql)).toMatchObject({
    code: "INVALID_SQL",
    message: `Cannot subscribe to a query with an alias that hides column "${name}"`,
  });
});

test.each([
  "SELECT id, _deleted FROM news WHERE NOT _deleted",
  "SELECT id, who AS _row_seq FROM news",
])("planLive hides nothing: %s", (sql) => {
  expect(refusal(sql)).toBeUndefined();
});

/**
 * A query with so many conditions that planning it checks the clock often. The clock advances at
 * each check, so the time limit of a second is soon reached.
 */
const LONG_QUERY = `SELECT id FROM t WHERE ${Array.from({ length: 10_000 }, (_, i) => `id > ${i}`).join(" AND ")}`;

test("planLive stops at the time limit of the request", async () => {
  const config = "performance.request_timeout = 1";
  await using engine = await TestEngine.open({ clock: new HastyClock(), config });
  await engine.run("CREATE SHARED TABLE t (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC')");
  const plan = (sql: string): unknown =>
    engine.database.sql.planLive(subscriber("ann", 2), { sql, params: [] });

  expect(() => plan(LONG_QUERY)).toThrow("Cannot finish the statement: its time limit has passed");
  expect(() => plan("SELECT id FROM t WHERE id > 1 AND id > 2")).not.toThrow();
});

test.each(["SUBSCRIBE TO", "EXPLAIN SUBSCRIBE TO", "CREATE VIEW long AS"])(
  "%s stops a long query at the time limit of its request",
  async (before) => {
    await using engine = await TestEngine.open({ clock: new HastyClock() });
    await engine.run("CREATE SHARED TABLE t (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC')");
    const sql = `${before} ${LONG_QUERY}`;

    expect(await engine.failure(sql, { timeoutMs: 1000 })).toStartWith("STATEMENT_TIMEOUT");
    await engine.run(sql, { timeoutMs: 1_000_000 });
  },
);

test("planLive may stop between two constants with which rows are compared", async () => {
  const config = "performance.request_timeout = 1";
  await using engine = await TestEngine.open({ clock: new HastyClock(), config });
  await engine.run(
    "CREATE SHARED TABLE t (id INT PRIMARY KEY, at TIMESTAMP) WITH (ACCESS_LEVEL = 'PUBLIC')",
  );
  const times = Array.from({ length: 200 }, () => "at > repeat('2026-01-01', 1)::TIMESTAMP");
  const sql = `SELECT id FROM t WHERE ${times.join(" AND ")}`;

  expect(() => engine.database.sql.planLive(subscriber("ann", 2), { sql, params: [] })).toThrow(
    "Cannot finish the statement: its time limit has passed",
  );
});
