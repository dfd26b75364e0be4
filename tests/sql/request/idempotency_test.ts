/**
 * Tests requests with an idempotency key: each request runs once and completely, for its own user,
 * within a time limit, and across a restart.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const clock = new ManualClock();
let engine: TestEngine;
let keyCount = 0;

beforeAll(async () => {
  engine = await TestEngine.open({ clock });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (ACCESS_LEVEL = 'PUBLIC');" +
      "CREATE USER ann INTERNAL ROLE service",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  await engine.run("DELETE FROM t; INSERT INTO t VALUES (1, 10)");
});

function freshKey(): string {
  keyCount += 1;
  return `key-${keyCount}`;
}

function ask(sql: string, key: string, digest = sql): Promise<SqlResponse> {
  return engine.ask(sql, { idempotency: { key, digest } });
}

const count = async () => (await engine.rows("SELECT count(*) FROM t"))[0]?.[0];

test("a repeated request gets the first response, whatever happened since", async () => {
  const key = freshKey();
  const sql = "INSERT INTO t SELECT id + 1, v FROM t RETURNING id, v, 1.5::decimal(3,2), 'x'";
  const first = await ask(sql, key);
  expect(first.isReplayed).toBeUndefined();
  expect(first.results[0]?.rows).toEqual([[2, 10, "1.50", "x"]]);
  await engine.run("DELETE FROM t");
  const { isReplayed, results } = await ask(sql, key);
  expect(results).toEqual(JSON.parse(JSON.stringify(first.results)));
  expect([isReplayed, await count()]).toEqual([true, 0]);
});

test("all statements of a text are one transaction", async () => {
  const key = freshKey();
  const failing = "INSERT INTO t VALUES (2, 1); INSERT INTO t VALUES (1, 1)";
  const { error, results } = await ask(failing, key);
  expect([error?.code, error?.statementIndex]).toEqual(["DUPLICATE_KEY", 1]);
  expect(results).toEqual([]);
  expect(await count()).toBe(1);
  // A failed request leaves no record, so its key may be used again, even with a different body.
  const text = "INSERT INTO t VALUES (2, 1); UPDATE t SET v = v + 1; SELECT sum(v) FROM t";
  expect((await ask(text, key)).results.map(({ rowCount }) => rowCount)).toEqual([1, 2, 1]);
  expect((await ask(text, key)).results[2]?.rows).toEqual([[13]]);
  expect(await engine.rows("SELECT id, v FROM t ORDER BY id")).toEqual([
    [1, 11],
    [2, 2],
  ]);
});

test("a repeated BEGIN … COMMIT returns the same last_seq", async () => {
  const key = freshKey();
  const text = "BEGIN; INSERT INTO t VALUES (2, 1); COMMIT";
  const first = await ask(text, key);
  expect(first.results[2]?.lastSeq).toBeNumber();
  expect((await ask(text, key)).results).toEqual(JSON.parse(JSON.stringify(first.results)));
  const reading = freshKey();
  expect((await ask("BEGIN; SELECT 1; COMMIT", reading)).results[2]?.lastSeq).toBeNull();
  expect((await ask("BEGIN; SELECT 1; COMMIT", reading)).results[2]?.lastSeq).toBeNull();
});

test("without BEGIN, the last change has the last_seq, even in a repeated response", async () => {
  const key = freshKey();
  const text = "INSERT INTO t VALUES (2, 1); DELETE FROM t WHERE id = 9; SELECT 1";
  const first = await ask(text, key);
  const [inserted, deleted] = first.results;
  expect(inserted?.lastSeq).toBeGreaterThanOrEqual(
    Number((await engine.rows("SELECT _seq FROM t WHERE id = 2"))[0]?.[0]),
  );
  expect(deleted?.lastSeq).toBeNull();
  expect((await ask(text, key)).results).toEqual(JSON.parse(JSON.stringify(first.results)));
  const without = "INSERT INTO t VALUES (3, 1); DELETE FROM t WHERE id = 3";
  const none = (await ask(without, freshKey())).results;
  expect(none.map(({ lastSeq }) => lastSeq)).toEqual([null, null]);
});

test("a key with a different body is refused, and another user's key is independent", async () => {
  const key = freshKey();
  await ask("INSERT INTO t VALUES (2, 1)", key);
  const { error, results } = await ask("INSERT INTO t VALUES (3, 1)", key);
  expect([error?.code, results.length]).toEqual(["IDEMPOTENCY_CONFLICT", 0]);
  engine.userId = "ann";
  const other = await ask("INSERT INTO t VALUES (3, 1)", key);
  engine.userId = "root";
  expect([other.error, other.isReplayed, await count()]).toEqual([undefined, undefined, 3]);
});

test("a request that is repeated while the first one runs waits for it", async () => {
  const key = freshKey();
  const sql = "INSERT INTO t VALUES (2, 1)";
  const [first, second, other] = await Promise.all([
    ask(sql, key),
    ask(sql, key),
    ask("SELECT 1", key),
  ]);
  expect([first.error, first.isReplayed, second.error, second.isReplayed]).toEqual([
    undefined,
    undefined,
    undefined,
    true,
  ]);
  expect(other.error?.code).toBe("IDEMPOTENCY_CONFLICT");
  const failing = freshKey();
  const both = await Promise.all([ask(sql, failing), ask(sql, failing)]);
  expect(both.map(({ error }) => error?.code)).toEqual(["DUPLICATE_KEY", "DUPLICATE_KEY"]);
});

test("records of idempotency keys survive a restart, from the log and from a segment", async () => {
  const key = freshKey();
  const sql = "INSERT INTO t VALUES (2, 1)";
  const first = await ask(sql, key);
  await engine.restart();
  expect(await ask(sql, key)).toEqual({ ...first, isReplayed: true });
  const tableId = 0xffff_ffff;
  expect((await engine.database.store.flush(tableId)).versions).toBeGreaterThan(0);
  await engine.restart();
  expect(await ask(sql, key)).toEqual({ ...first, isReplayed: true });
});

test("an expired key can be used again, and its record is removed", async () => {
  const key = freshKey();
  await ask("INSERT INTO t VALUES (2, 1)", key);
  clock.advance(599_000);
  expect((await ask("INSERT INTO t VALUES (2, 1)", key)).isReplayed).toBe(true);
  clock.advance(1_000);
  expect((await ask("INSERT INTO t VALUES (3, 1)", key)).error).toBeUndefined();
  await ask("UPDATE t SET v = v + 1 WHERE id = 1", freshKey());
  const owner = engine.database.catalog.accounts.ownerNumber("root");
  expect(engine.database.store.liveRowCount(0xffff_ffff, owner)).toBe(2);
});

/**
 * Returns the segments that contain idempotency records, after the store has had time to drop some
 * of these segments.
 */
async function segmentsOfRecords(wanted: number): Promise<string[]> {
  const directory = join(engine.dataPath, "segments", "4294967295");
  const listed = (): string[] => readdirSync(directory).filter((name) => name.endsWith(".seg"));
  for (let round = 0; round < 500 && listed().length !== wanted; round += 1) await Bun.sleep(10);
  return listed().map((name) => join(directory, name));
}

test("records of idempotency keys of an owner who never returns are also removed", async () => {
  for (let made = 0; made < 40; made += 1) await ask("UPDATE t SET v = v + 1", freshKey());
  await engine.database.store.flush(0xffff_ffff);
  expect((await segmentsOfRecords(1)).length).toBeGreaterThan(0);
  clock.advance(620_000);
  const owner = engine.database.catalog.accounts.ownerNumber("root");
  expect(engine.database.store.liveRowCount(0xffff_ffff, owner)).toBe(0);
  expect(await segmentsOfRecords(0)).toEqual([]);
});

test("damaged records block the users who may need them, but only for the lifetime of the records", async () => {
  const key = freshKey();
  const sql = "INSERT INTO t VALUES (2, 1)";
  await ask(sql, key);
  await engine.database.store.flush(0xffff_ffff);
  const [path = ""] = await segmentsOfRecords(1);
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0x55, bytes.length >> 2));
  await engine.restart();
  const { error } = await ask(sql, key);
  expect(error?.code).toBe("DATA_DAMAGED");
  expect(error?.message).toContain(path);
  expect(error?.hint).toContain("expire 600 s after they were written");
  expect(error?.hint).not.toContain("drop the table");
  expect(await count()).toBe(2);
  clock.advance(620_000);
  expect(await segmentsOfRecords(0)).toEqual([]);
  await engine.run("DELETE FROM t WHERE id = 2");
  expect((await ask(sql, key)).error).toBeUndefined();
  expect((await ask(sql, key)).isReplayed).toBe(true);
});

test("a long response is recorded as row counts", async () => {
  const key = freshKey();
  const sql = "UPDATE t SET v = v + 1 RETURNING repeat('x', 1100000)";
  const [first] = (await ask(sql, key)).results;
  expect(first?.rows).toHaveLength(1);
  const { isReplayed, results } = await ask(sql, key);
  expect([isReplayed, results]).toEqual([
    true,
    [{ rowCount: 1, asUser: "root", lastSeq: first?.lastSeq ?? null }],
  ]);
});

test("a request that changes no row leaves no record, and runs again", async () => {
  const owner = engine.database.catalog.accounts.ownerNumber("root");
  const recordCount = (): number => engine.database.store.liveRowCount(0xffff_ffff, owner);
  const before = recordCount();
  for (const sql of [
    "SELECT repeat('a', 1000000)",
    "BEGIN; SELECT 1; COMMIT",
    "UPDATE t SET v = 1 WHERE id = 99",
    "INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING",
  ]) {
    const key = freshKey();
    expect((await ask(sql, key)).error, sql).toBeUndefined();
    const again = await ask(sql, key);
    expect([again.error, again.isReplayed], sql).toEqual([undefined, undefined]);
  }
  expect(recordCount()).toBe(before);
});

test("a request that would exceed a user's limit for records is refused and rolled back", async () => {
  await using other = await TestEngine.open({
    clock,
    config: "[limits]\nidempotency_bytes_per_user = 3000000",
  });
  await other.run("CREATE TABLE t (id INT PRIMARY KEY); CREATE USER ann INTERNAL ROLE service");
  const insert = (id: number): Promise<SqlResponse> => {
    const sql = `INSERT INTO t VALUES (${id}) RETURNING repeat('x', 990000)`;
    return other.ask(sql, { idempotency: { key: `bound-${id}`, digest: sql } });
  };
  for (const id of [1, 2, 3]) expect((await insert(id)).error).toBeUndefined();
  const { error } = await insert(4);
  expect(error?.code).toBe("LIMIT_EXCEEDED");
  expect(error?.message).toContain("3000000 bytes");
  expect(error?.hint).toContain("limits.idempotency_bytes_per_user");
  expect(await other.rows("SELECT count(*) FROM t")).toEqual([[3]]);
  expect((await insert(3)).isReplayed).toBe(true);
  other.userId = "ann";
  expect((await insert(5)).error).toBeUndefined();
  other.userId = "root";
  clock.advance(620_000);
  expect((await insert(4)).error).toBeUndefined();
});

describe("a text that cannot be one transaction is refused before anything runs", () => {
  test.each([
    ["INSERT INTO t VALUES (2, 1); DROP TABLE t", "INVALID_INPUT", 1],
    ["INSERT INTO t VALUES (2, 1); BEGIN; SELECT 1; COMMIT", "INVALID_INPUT", 1],
    ["SHOW TABLES", "INVALID_INPUT", 0],
    ["EXPLAIN ANALYZE INSERT INTO t VALUES (2, 1)", "INVALID_INPUT", 0],
    ["BEGIN; SELECT 1; COMMIT; SELECT 1", "INVALID_INPUT", 0],
    ["BEGIN; SELECT 1; SHOW TABLES; COMMIT", "INVALID_INPUT", 2],
    ["BEGIN; SELECT 1; ROLLBACK", "INVALID_INPUT", 0],
    ["BEGIN; COMMIT; BEGIN; COMMIT", "INVALID_INPUT", 0],
    ["COMMIT", "INVALID_INPUT", 0],
    ["SELECT nope", "COLUMN_NOT_FOUND", 0],
  ])("%s: %s in statement %p", async (sql, code, statementIndex) => {
    const { error, results } = await ask(sql, freshKey());
    expect(error).toMatchObject({ code, statementIndex });
    expect([results.length, await count()]).toEqual([0, 1]);
  });
});
