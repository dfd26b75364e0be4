/**
 * Tests topics over the real engine: the contents of messages, the times at which readers are
 * woken, the effect of definitions, and the period for which messages are kept.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defined } from "../../src/base/assert.ts";
import { HOUR_MS, systemClock } from "../../src/base/clock.ts";
import type { TopicAccess, TopicMessage } from "../../src/sql/mod.ts";
import { LocalTopics, type TopicLog } from "../../src/topics/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

let clock: ManualClock;
let engine: TestEngine;

/**
 * Connects the SQL engine to the topic logs, for statements about topics. No test in this file
 * consumes through SQL.
 */
function connect(): void {
  const { topicLogs } = engine.database;
  const access: Pick<TopicAccess, "holdOffsets" | "states" | "topicsChanged"> = {
    holdOffsets: (tableId) => topicLogs.holdOffsets(tableId),
    states: () => topicLogs.states(),
    topicsChanged: () => topicLogs.topicsChanged(),
  };
  engine.database.topics = access as TopicAccess;
}

beforeEach(async () => {
  clock = new ManualClock();
  engine = await TestEngine.open({ clock, config: "storage.history_hours = 1" });
  connect();
  await engine.run(`
    CREATE NAMESPACE app;
    CREATE USER uma INTERNAL;
    CREATE TABLE app.jobs (id INT PRIMARY KEY, kind TEXT, size INT);
    CREATE USER TABLE app.notes (id INT PRIMARY KEY, text TEXT)`);
});
afterEach(() => engine[Symbol.asyncDispose]());

function logOf(name: string, namespace = "app"): TopicLog {
  const { catalog, topicLogs } = engine.database;
  const entry = defined(catalog.topic(namespace, name), "the topic must exist");
  return defined(topicLogs.log(entry.topicId), "the topic must have a log");
}

async function read(name: string, partition = 0, from = 0): Promise<readonly TopicMessage[]> {
  const log = logOf(name);
  await log.count();
  return (await log.read(partition, { from, limit: 1000 })).messages;
}

async function restart(): Promise<void> {
  await engine.restart();
  connect();
}

function payloadsOf(messages: readonly TopicMessage[]): unknown[] {
  return messages.map(({ payload }) => JSON.parse(payload) as unknown);
}

test("messages contain wire cells, the key as text, and the user who owns the row", async () => {
  await engine.run(`
    CREATE TABLE app.types (a TEXT, b INT, big BIGINT, price DECIMAL(10, 2), at TIMESTAMP,
      doc JSON, raw BYTES, PRIMARY KEY (a, b));
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.types ON INSERT;
    ALTER TOPIC app.t ADD SOURCE app.types ON DELETE WITH (payload = 'key');
    ALTER TOPIC app.t ADD SOURCE app.notes ON INSERT`);
  await engine.run(
    `INSERT INTO app.types VALUES ('x"y', 2, 9007199254740993, 1.50, NULL, '{"a": 1}', X'01ff')`,
  );
  engine.userId = "uma";
  await engine.run("INSERT INTO app.notes VALUES (7, 'hi')");
  engine.userId = "root";
  await engine.run("DELETE FROM app.types");
  const messages = await read("t");
  const [row] = await engine.rows("SELECT _seq FROM app.notes");
  expect(row).toBeUndefined();
  expect(
    messages.map(({ deliveries, key, offset, op, user }) => [offset, key, op, user, deliveries]),
  ).toEqual([
    [0, `{"a":"x\\"y","b":2}`, "Insert", undefined, 1],
    [1, "7", "Insert", "uma", 1],
    [2, `{"a":"x\\"y","b":2}`, "Delete", undefined, 1],
  ]);
  const [first, second, third] = payloadsOf(messages) as Record<string, unknown>[];
  expect(first).toMatchObject({
    a: 'x"y',
    b: 2,
    big: "9007199254740993",
    price: "1.50",
    at: null,
    raw: [1, 255],
    _deleted: false,
    _table: "app.types",
  });
  expect(second).toMatchObject({ id: 7, text: "hi", _table: "app.notes" });
  expect(third).toEqual({ a: 'x"y', b: 2 });
  expect(messages[0]?.timestampMs).toBe(clock.nowMs());
});

test("a condition is tested on the new row, or for a delete on its last values, and NULL does not match", async () => {
  await engine.run(`
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT WHERE size > 5 AND kind = 'a';
    ALTER TOPIC app.t ADD SOURCE app.jobs ON UPDATE WHERE size > 5 WITH (payload = 'diff');
    ALTER TOPIC app.t ADD SOURCE app.jobs ON DELETE WHERE size > 5;
    INSERT INTO app.jobs VALUES (1, 'a', 6), (2, 'b', 6), (3, 'a', 5), (4, 'a', NULL);
    UPDATE app.jobs SET size = 7 WHERE id = 3;
    UPDATE app.jobs SET size = 1 WHERE id = 1;
    UPDATE app.jobs SET kind = 'b' WHERE id = 2;
    DELETE FROM app.jobs`);
  const messages = await read("t");
  expect(messages.map(({ key, op }) => `${op} ${key}`)).toEqual([
    "Insert 1",
    "Update 3",
    "Delete 2",
    "Delete 3",
  ]);
  expect(payloadsOf(messages)[1]).toMatchObject({ id: 3, changed: { size: { old: 5, new: 7 } } });
});

test("a row on which the condition fails is omitted, and the topic reports this", async () => {
  await engine.run(`
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT WHERE 10 / size > 2;
    INSERT INTO app.jobs VALUES (1, 'a', 2), (2, 'a', 0), (3, 'a', 1)`);
  expect((await read("t")).map(({ key }) => key)).toEqual(["1", "3"]);
  const [state] = engine.database.topicLogs.states();
  expect(state?.faults).toHaveLength(1);
  expect(state?.faults[0]).toStartWith(
    "changes to app.jobs are omitted, because the source's condition fails: ",
  );
});

test("onNews calls back in the tick of the commit or the next one, once for many commits, and not after its end", async () => {
  await engine.run("CREATE TOPIC app.t; ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT");
  const log = logOf("t");
  let news = 0;
  const stop = log.onNews(() => {
    news += 1;
  });
  await engine.run("INSERT INTO app.jobs VALUES (1, 'a', 1)");
  await Promise.resolve();
  expect(news).toBe(1);
  await log.count();
  expect(log.nextOffset(0)).toBe(1);
  await engine.run("INSERT INTO app.notes VALUES (1, 'not a source')");
  expect(news).toBe(1);
  stop();
  await engine.run("INSERT INTO app.jobs VALUES (2, 'a', 1)");
  expect(news).toBe(1);
});

test("an ALTER TABLE changes no issued offset, even after a restart", async () => {
  await engine.run(`
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.jobs ON UPDATE;
    INSERT INTO app.jobs VALUES (1, 'a', 1);
    UPDATE app.jobs SET kind = 'b';
    UPDATE app.jobs SET size = 2`);
  expect(await read("t")).toHaveLength(2);
  await engine.run(`
    ALTER TABLE app.jobs DROP COLUMN kind;
    UPDATE app.jobs SET size = 2;
    UPDATE app.jobs SET size = 3`);
  const before = await read("t");
  expect(payloadsOf(before)).toMatchObject([{ size: 1 }, { size: 2 }, { size: 3 }]);
  await restart();
  expect(await read("t")).toEqual(before);
});

test("a dropped table takes its messages with it, but their offsets stay", async () => {
  await engine.run(`
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT;
    ALTER TOPIC app.t ADD SOURCE app.notes ON INSERT;
    INSERT INTO app.jobs VALUES (1, 'a', 1);
    INSERT INTO app.notes VALUES (1, 'x')`);
  expect(await read("t")).toHaveLength(2);
  await engine.run("DROP TABLE app.jobs; INSERT INTO app.notes VALUES (2, 'y')");
  expect((await read("t")).map(({ key, offset }) => [offset, key])).toEqual([
    [1, "1"],
    [2, "2"],
  ]);
  const [state] = engine.database.topicLogs.states();
  expect(state?.faults.join("; ")).toContain("1 message omitted");
});

test("messages are kept for the hours of the topic, and history is held for them as long", async () => {
  const { store } = engine.database;
  await engine.run(`
    CREATE TOPIC app.t WITH (RETENTION_HOURS = 16);
    ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT;
    ALTER TOPIC app.t ADD SOURCE app.jobs ON DELETE;
    INSERT INTO app.jobs VALUES (1, 'a', 1);
    DELETE FROM app.jobs`);
  await engine.run("STORAGE FLUSH TABLE app.jobs");
  const tableId = defined(
    engine.database.catalog.table("app", "jobs"),
    "the table must exist",
  ).tableId;
  clock.advance(10 * HOUR_MS);
  await tidied();
  await store.compact(tableId);
  expect(await read("t")).toHaveLength(2);
  const [state] = engine.database.topicLogs.states();
  expect(state).toMatchObject({ messages: 2, heldVersions: 2, faults: [] });
  expect(state?.heldBytes).toBeGreaterThan(0);
  clock.advance(10 * HOUR_MS);
  await tidied();
  await engine.run("INSERT INTO app.jobs VALUES (2, 'a', 1)");
  expect((await read("t")).map(({ key, offset }) => [offset, key])).toEqual([[2, "2"]]);
  await store.compact(tableId);
  expect(engine.database.topicLogs.states()[0]).toMatchObject({ messages: 1, heldVersions: 0 });
  await restart();
  expect((await read("t")).map(({ offset }) => offset)).toEqual([2]);
});

test("the oldest messages are dropped if a topic has more bytes than it may keep", async () => {
  await engine.run(`
    CREATE TOPIC app.t WITH (RETENTION_BYTES = 100000);
    ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT;
    INSERT INTO app.jobs SELECT n, 'a', n FROM generate_series(1, 5000) AS t(n)`);
  const log = logOf("t");
  await log.count();
  expect(log.nextOffset(0)).toBe(5000);
  await tidied();
  const [state] = engine.database.topicLogs.states();
  expect(state?.bytes).toBeLessThanOrEqual(100_000);
  expect(state?.bytes).toBeGreaterThan(50_000);
  const earliest = log.earliestOffset(0);
  const [first] = await read("t");
  expect(first).toMatchObject({ offset: earliest, key: String(earliest + 1) });
});

test("CLEAR TOPIC discards earlier messages, and offsets continue", async () => {
  await engine.run(`
    CREATE TOPIC app.t PARTITIONS 2;
    ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT;
    INSERT INTO app.jobs SELECT n, 'a', n FROM generate_series(1, 20) AS t(n)`);
  const log = logOf("t");
  await log.count();
  const next = [log.nextOffset(0), log.nextOffset(1)];
  await engine.run("CLEAR TOPIC app.t");
  await tidied();
  expect([log.earliestOffset(0), log.earliestOffset(1)]).toEqual(next);
  await engine.run("INSERT INTO app.jobs VALUES (21, 'a', 1)");
  const messages = [...(await read("t", 0)), ...(await read("t", 1))];
  expect(messages.map(({ key }) => key)).toEqual(["21"]);
});

test("a dropped topic leaves no row, and its readers are notified", async () => {
  await engine.run(`
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT;
    INSERT INTO app.jobs VALUES (1, 'a', 1)`);
  const log = logOf("t");
  let news = 0;
  log.onNews(() => {
    news += 1;
  });
  await log.count();
  await restart();
  await read("t");
  const again = logOf("t");
  again.onNews(() => {
    news += 1;
  });
  await engine.run("DROP TOPIC app.t");
  expect(news).toBeGreaterThan(0);
  const failure = await again.count().catch((error: unknown) => error);
  expect(String(failure)).toContain("Cannot read topic app.t: the topic has been dropped");
  await tidied();
  const { store } = engine.database;
  expect(store.liveRowCount(0xffff_fffd, undefined)).toBe(0);
});

/** Discards expired messages, as the periodic check does every few seconds. */
async function tidied(): Promise<void> {
  const { topicLogs } = engine.database;
  if (!(topicLogs instanceof LocalTopics)) throw new Error("the database has topics");
  await topicLogs.looked();
  topicLogs.look();
  await topicLogs.looked();
}

test("a restore assigns the same offset to the same change, and continues after it", async () => {
  const root = mkdtempSync(join(tmpdir(), "tidemark-backups-"));
  await using restored = await TestEngine.open({
    clock: systemClock,
    config: `storage.allowed_roots = ${JSON.stringify([root])}`,
  });
  try {
    const before = engine;
    engine = restored;
    try {
      connect();
      await engine.run(`
        CREATE TABLE default.jobs (id INT PRIMARY KEY, size INT);
        CREATE TOPIC default.t PARTITIONS 2;
        ALTER TOPIC default.t ADD SOURCE default.jobs ON INSERT;
        ALTER TOPIC default.t ADD SOURCE default.jobs ON UPDATE WITH (payload = 'diff');
        INSERT INTO default.jobs SELECT n, n FROM generate_series(1, 600) AS t(n);
        UPDATE default.jobs SET size = 0 WHERE id % 7 = 0`);
      const seen = await allOf("default", "t");
      await engine.run(`BACKUP DATABASE TO '${root}/one'`);
      await engine.run("INSERT INTO default.jobs VALUES (1001, 1)");
      expect(await allOf("default", "t")).toHaveLength(seen.length + 1);
      await engine.run(`RESTORE DATABASE FROM '${root}/one'`);
      await restart();
      expect(await allOf("default", "t")).toEqual(seen);
      await engine.run("INSERT INTO default.jobs VALUES (1002, 1)");
      const after = await allOf("default", "t");
      expect(after.filter(({ key }) => key === "1002")).toHaveLength(1);
      expect(after).toHaveLength(seen.length + 1);
    } finally {
      engine = before;
    }
  } finally {
    rmSync(root, { recursive: true });
  }
});

/** Returns all messages of a topic, partition by partition. */
async function allOf(namespace: string, name: string): Promise<TopicMessage[]> {
  const log = logOf(name, namespace);
  await log.count();
  const messages: TopicMessage[] = [];
  for (let partition = 0; partition < log.entry.partitions; partition += 1) {
    messages.push(...(await log.read(partition, { from: 0, limit: 10_000 })).messages);
  }
  return messages;
}

test("rows in a damaged segment are omitted, and other messages keep their offsets", async () => {
  await engine.run(`
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT;
    ALTER TOPIC app.t ADD SOURCE app.notes ON INSERT;
    INSERT INTO app.jobs VALUES (1, 'a', 1), (2, 'b', 1)`);
  await engine.run("STORAGE FLUSH TABLE app.jobs");
  await engine.run("INSERT INTO app.jobs VALUES (3, 'c', 1)");
  expect(await read("t")).toHaveLength(3);
  const segment = engine.database.store.segments().find(({ tableId }) => tableId === 1);
  const path = join(
    engine.dataPath,
    "segments",
    "1",
    `${defined(segment, "the table must have a segment").segmentId}.seg`,
  );
  await engine.database.close();
  const bytes = readFileSync(path);
  bytes.fill(0xee, Math.floor(bytes.length / 3), Math.floor(bytes.length / 2));
  writeFileSync(path, bytes);
  await engine.reopen();
  connect();
  const log = logOf("t");
  // The first read encounters the damage, and the segment is quarantined.
  await log.read(0, { from: 0, limit: 10 }).catch(() => undefined);
  await engine.run("INSERT INTO app.notes VALUES (4, 'd')");
  expect((await read("t")).map(({ key, offset }) => [offset, key])).toEqual([
    [2, "3"],
    [3, "4"],
  ]);
});

test("several simultaneous holds store the same offsets once, and counting waits for the last of them", async () => {
  await engine.run("CREATE TOPIC app.t; ALTER TOPIC app.t ADD SOURCE app.jobs ON INSERT");
  await engine.run("INSERT INTO app.jobs VALUES (1, 'a', 1)");
  const log = logOf("t");
  await log.count();
  const { catalog, topicLogs } = engine.database;
  const { tableId } = defined(catalog.table("app", "jobs"), "the table must exist");
  const holds = await Promise.all([1, 2, 3, 4].map(() => topicLogs.holdOffsets(tableId)));
  await engine.run("INSERT INTO app.jobs VALUES (2, 'a', 1)");
  let isCounted = false;
  const counting = log.count().then(() => {
    isCounted = true;
    return undefined;
  });
  for (const release of holds) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(isCounted).toBe(false);
    expect(log.nextOffset(0)).toBe(1);
    release();
  }
  await counting;
  expect(log.nextOffset(0)).toBe(2);
});
