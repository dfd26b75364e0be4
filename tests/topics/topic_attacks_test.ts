/**
 * Verifies that no message of a topic is lost, no acknowledged message is redelivered, and offsets
 * have no gaps, whatever consumers, clocks and administrators do. Each test is one attack on a
 * real engine.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defined } from "../../src/base/assert.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const VISIBILITY_MS = 60_000;

/** The time limit of a test. Advancing the virtual clock may fire the timers of many minutes. */
const TEST_MS_MAX = 60_000;

const CONSUME = "CONSUME FROM work GROUP 'g' FROM EARLIEST LIMIT 1000 NO ACK";

let clock: ManualClock;
let engine: TestEngine;
let root: string;

beforeEach(async () => {
  clock = new ManualClock();
  root = mkdtempSync(join(tmpdir(), "tidemark-attacks-"));
  const config = `storage.allowed_roots = ${JSON.stringify([root])}\nstorage.history_hours = 1`;
  engine = await TestEngine.open({ clock, config });
  await engine.run(`
    CREATE TABLE jobs (id INT PRIMARY KEY, size INT);
    CREATE TOPIC work;
    ALTER TOPIC work ADD SOURCE jobs ON INSERT;
    ALTER TOPIC work ADD SOURCE jobs ON UPDATE WITH (payload = 'diff')`);
}, TEST_MS_MAX);
afterEach(async () => {
  await engine[Symbol.asyncDispose]();
  rmSync(root, { recursive: true });
});

const insert = (from: number, to: number): Promise<unknown> =>
  engine.run(`INSERT INTO jobs SELECT n, n FROM generate_series(${from}, ${to}) AS t(n)`);

/** Consumes messages, and returns each as [offset, deliveries]. */
async function consume(sql = CONSUME): Promise<(readonly [number, number])[]> {
  const rows = await engine.rows(sql);
  return rows.map(([, , offset, , , , , , deliveries]) => [Number(offset), Number(deliveries)]);
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => from + index);

function topicId(): number {
  return defined(engine.database.catalog.topic("default", "work"), "the topic must exist").topicId;
}

function nack(offsets: readonly number[], delayMs: number): Promise<void> {
  const place = { topicId: topicId(), partition: 0, group: "g" };
  return engine.database.topicConsumers.nack({ ...place, offsets, delayMs });
}

test(
  "a flood of nacks redelivers each message once for each claim, and ends with its ack",
  async () => {
    await insert(0, 99);
    const offsets = range(0, 100);
    for (let round = 1; round <= 50; round += 1) {
      expect(await consume()).toEqual(offsets.map((offset) => [offset, round]));
      // Only the first of these nacks finds a claim, so the later nacks do not extend the delay.
      await nack(offsets, 0);
      for (let flood = 0; flood < 5; flood += 1) await nack(offsets, DAY_MS);
    }
    await engine.run("ACK work GROUP 'g' UPTO OFFSET 49");
    await nack(offsets, 0);
    expect(await consume()).toEqual(range(50, 100).map((offset) => [offset, 51]));
    await engine.run("ACK work GROUP 'g' UPTO OFFSET 99");
    await nack(offsets, 0);
    expect(await consume()).toEqual([]);
  },
  TEST_MS_MAX,
);

test(
  "the wall clock affects no deadline of a claim, no offset and no message, however it jumps",
  async () => {
    await insert(0, 9);
    expect(await consume()).toHaveLength(10);
    for (const jumpMs of [DAY_MS, -2 * DAY_MS, 30 * DAY_MS, -30 * DAY_MS]) {
      clock.setWall(clock.nowMs() + jumpMs);
      expect(await consume(), `claims after a jump of ${jumpMs}`).toEqual([]);
      await insert(1000 + Math.abs(jumpMs / DAY_MS) * 10 + (jumpMs > 0 ? 1 : 2), 0);
    }
    clock.setWall(clock.nowMs() - DAY_MS);
    await insert(100, 109);
    expect(await consume()).toEqual(range(10, 20).map((offset) => [offset, 1]));
    clock.advance(VISIBILITY_MS);
    expect(await consume()).toEqual(range(0, 20).map((offset) => [offset, 2]));
    await engine.restart();
    expect((await consume()).map(([offset]) => offset)).toEqual(range(0, 20));
  },
  TEST_MS_MAX,
);

test(
  "a restore returns groups to the backup: later acknowledgements are undone, but no earlier ones",
  async () => {
    await insert(0, 9);
    await consume();
    await engine.run("ACK work GROUP 'g' OFFSETS (0, 1, 5)");
    await engine.run(`BACKUP DATABASE TO '${root}/one'`);
    await engine.run("ACK work GROUP 'g' OFFSETS (2, 6)");
    await insert(10, 19);
    await engine.run(`RESTORE DATABASE FROM '${root}/one'`);
    await engine.restart();
    const left = [2, 3, 4, 6, 7, 8, 9];
    expect((await consume()).map(([offset]) => offset)).toEqual(left);
    await insert(20, 20);
    expect(await consume()).toEqual([[10, 1]]);
  },
  TEST_MS_MAX,
);

test(
  "a source whose own history has ended loses no message to updates, flushes and merges",
  async () => {
    await engine.run("ALTER TABLE jobs SET (DELETED_RETENTION_HOURS = 1)");
    await insert(0, 19);
    for (let round = 1; round <= 5; round += 1) {
      await engine.run(`UPDATE jobs SET size = size + 1000; STORAGE FLUSH TABLE jobs`);
      clock.advance(2 * HOUR_MS);
      await engine.run("STORAGE COMPACT TABLE jobs");
    }
    await engine.run("DELETE FROM jobs");
    clock.advance(2 * HOUR_MS);
    await engine.run("STORAGE FLUSH TABLE jobs; STORAGE COMPACT TABLE jobs");
    const rows = await engine.rows(CONSUME);
    expect(rows.map(([, , offset]) => Number(offset))).toEqual(range(0, 120));
    const last = JSON.parse(String(rows.at(-1)?.[4])) as { changed: { size: unknown } };
    expect(last.changed.size).toEqual({ old: 4019, new: 5019 });
    expect(await engine.rows("SELECT status FROM system.topics")).toEqual([["ok"]]);
  },
  TEST_MS_MAX,
);

test(
  "a long transaction acknowledges alongside others, or fails as a whole and may be repeated",
  async () => {
    await engine.run("CREATE TABLE effects (id INT PRIMARY KEY)");
    await insert(0, 49);
    await consume();
    const long = `BEGIN; INSERT INTO effects SELECT n FROM generate_series(1, 60000) AS t(n);
    ACK work GROUP 'g' OFFSETS (0); COMMIT`;
    const progress = { isOver: false };
    const running = engine.ask(long).finally(() => {
      progress.isOver = true;
    });
    let offset = 1;
    while (!progress.isOver && offset < 50) {
      await engine.run(`ACK work GROUP 'g' OFFSETS (${offset})`);
      offset += 1;
      for (let turn = 0; turn < 20; turn += 1) await clock.yield();
    }
    const { error } = await running;
    const [[count] = []] = await engine.rows("SELECT count(*) FROM effects");
    if (error === undefined) expect(count).toBe(60_000);
    else {
      expect(error.code).toBe("SERIALIZATION_FAILURE");
      expect(count).toBe(0);
      expect((await engine.ask(long)).error).toBeUndefined();
    }
    // The long request acknowledges offset 0, and leaves all later acknowledgements in effect.
    const [[last] = []] = await engine.rows("SELECT last_acked_offset FROM system.topic_offsets");
    expect(last).toBe(offset - 1);
    expect((await engine.ask(long)).error?.code).toBe("DUPLICATE_KEY");
  },
  TEST_MS_MAX,
);

test(
  "a source that is altered and dropped while a group works keeps messages that were read, and reports gaps",
  async () => {
    await insert(0, 9);
    expect(await consume(CONSUME.replace("1000", "4"))).toHaveLength(4);
    await engine.run("ALTER TABLE jobs ADD COLUMN note TEXT DEFAULT 'none'");
    await insert(10, 10).catch(() => undefined);
    await engine.run("INSERT INTO jobs (id, size, note) VALUES (11, 11, 'new')");
    await engine.run("ALTER TABLE jobs RENAME COLUMN size TO weight");
    await engine.run("UPDATE jobs SET weight = -1 WHERE id = 0");
    const rows = await engine.rows(CONSUME);
    const offsets = rows.map(([, , offset]) => Number(offset));
    expect(offsets).toEqual(range(4, 4 + offsets.length));
    expect(String(rows.at(-1)?.[4])).toContain('"weight"');
    await engine.run("ACK work GROUP 'g' OFFSETS (0, 4)");
    await engine.run("DROP TABLE jobs");
    clock.advance(VISIBILITY_MS);
    // The rows behind these messages no longer exist, so the messages are left out, and the group
    // advances past them.
    expect(await consume()).toEqual([]);
    const [[status] = []] = await engine.rows("SELECT status FROM system.topics");
    expect(String(status)).toContain("dropped");
    await engine.run("CREATE TABLE jobs (id INT PRIMARY KEY)");
    await engine.run("ALTER TOPIC work ADD SOURCE jobs ON INSERT; INSERT INTO jobs VALUES (1)");
    expect(await consume()).toEqual([[4 + offsets.length, 1]]);
  },
  TEST_MS_MAX,
);
