/**
 * Tests versions older than the retention period: the versions that are discarded, the versions
 * that stay readable, and the position from which every change can still be replayed.
 */
import { expect, test } from "bun:test";
import { SEQ_ZERO, type Seq, SeqGenerator, unixMsFromSeq } from "../../../src/base/seq.ts";
import type { LocalStore, LocalStoreOptions, TableDefinition } from "../../../src/storage/mod.ts";
import {
  History,
  type HistoryLimits,
  LowWatermark,
  retentionFloorSeqOf,
} from "../../../src/storage/table/history.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  defineTable,
  openStore,
  readChanges,
  readRows,
} from "../../support/store_fixture.ts";
import { amountOf } from "../../support/thoroughness.ts";

const HOUR_MS = 3_600_000;

const TABLE: TableDefinition = {
  ...defineTable(1, [{ kind: "int" }, { kind: "text" }]),
  historyMs: 24 * HOUR_MS,
  compression: "zstd",
};

interface Opened {
  readonly store: LocalStore;
  readonly clock: ManualClock;
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
}

async function open(options: Partial<LocalStoreOptions> = {}): Promise<Opened> {
  const clock = new ManualClock();
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, clock, definitions: [TABLE], options });
  return { store, clock, disk, manifest };
}

function plain(rows: readonly (readonly unknown[])[]): unknown[] {
  return rows.map(([, ...row]) => row);
}

test("retentionFloorSeqOf keeps the history of a table, and at least an hour", () => {
  const nowMs = Date.UTC(2026, 5, 1);
  const clock = new ManualClock(nowMs);
  const ids = new SeqGenerator({ clock, nodeId: 0, nodeBits: 0, last: SEQ_ZERO });
  expect(unixMsFromSeq(retentionFloorSeqOf(ids, 24 * HOUR_MS))).toBe(nowMs - 24 * HOUR_MS);
  expect(unixMsFromSeq(retentionFloorSeqOf(ids, 5))).toBe(nowMs - HOUR_MS);
  expect(retentionFloorSeqOf(ids, nowMs)).toBe(SEQ_ZERO);
});

function historyOf(limits: Partial<HistoryLimits>): History {
  const none = { retentionFloorSeq: 0, expiredSeq: 0, settledSeq: 0 };
  return new History({ ...none, replaced: [], ...limits }, [2]);
}

const VERSION = { owner: 7, source: 0, row: 0, seq: 5, isDeleted: false, isPast: false };

test("History determines the seq from which on a version is obsolete", () => {
  const replaced = [{ rows: Uint32Array.of(0), seqs: Float64Array.of(60) }];
  const history = historyOf({ replaced });
  expect(history.obsoleteSince(VERSION)).toBe(60);
  expect(history.obsoleteSince({ ...VERSION, isDeleted: true })).toBe(60);
  expect(history.obsoleteSince({ ...VERSION, row: 1 })).toBe(0);
  expect(history.obsoleteSince({ ...VERSION, row: 1, isDeleted: true })).toBe(5);
});

test("History discards versions that are obsolete by the retention floor, and separates those by the flushed seq", () => {
  const history = historyOf({ retentionFloorSeq: 100, settledSeq: 200 });
  const fates = [0, 100, 101, 200, 201].map((obsoleteSince) =>
    history.fateOf(VERSION, obsoleteSince),
  );
  expect(fates).toEqual(["current", "discarded", "past", "past", "current"]);
  const past = { ...VERSION, isPast: true };
  const ofHistory = historyOf({ retentionFloorSeq: 100 });
  expect([100, 101].map((obsoleteSince) => ofHistory.fateOf(past, obsoleteSince))).toEqual([
    "discarded",
    "past",
  ]);
});

test("History discards expired versions and erased owners in any case, and moves nothing", () => {
  const expired = historyOf({ expiredSeq: 5 });
  const erased = historyOf({ erasedOwner: 7 });
  for (const history of [expired, erased]) {
    expect(history.fateOf(VERSION, 0)).toBe("discarded");
    history.note(VERSION, { fate: "discarded", obsoleteSince: 60 });
    expect([history.discardedCount, history.lowWatermarks.size]).toEqual([1, 0]);
  }
  expect(expired.fateOf({ ...VERSION, seq: 6 }, 0)).toBe("current");
  expect(erased.fateOf({ ...VERSION, owner: 8 }, 0)).toBe("current");
});

test("History records for each owner the highest seq at which a discarded version became obsolete", () => {
  const history = historyOf({ retentionFloorSeq: 100 });
  for (const [owner, obsoleteSince] of [
    [7, 60],
    [7, 50],
    [8, 70],
  ] as const) {
    history.note({ ...VERSION, owner }, { fate: "discarded", obsoleteSince });
  }
  history.note(VERSION, { fate: "past", obsoleteSince: 80 });
  history.note(VERSION, { fate: "current", obsoleteSince: 0 });
  expect([...history.lowWatermarks]).toEqual([
    [7, 60],
    [8, 70],
  ]);
  expect([history.discardedCount, history.pastCount]).toEqual([3, 1]);
});

test("LowWatermark never falls, and owners beyond the limit share the highest one", () => {
  const some = new LowWatermark().raisedBy(new Map([[1, 50]]));
  expect([some.of(1), some.of(2)]).toEqual([50, 0]);
  expect(some.raisedBy(new Map([[1, 40]])).of(1)).toBe(50);
  expect(new LowWatermark(some.floor, some.entries()).of(1)).toBe(50);
  const many = Array.from({ length: 1001 }, (_, owner): [number, number] => [owner, owner + 1]);
  const shared = some.raisedBy(new Map(many));
  expect([shared.floor, shared.of(5000), shared.entries().length]).toEqual([1001, 1001, 0]);
});

test("COMPACT discards old versions and tombstones, for each owner separately", async () => {
  const { store, clock, disk, manifest } = await open();
  await commit(
    store,
    1,
    "insert",
    [
      [1, "a"],
      [2, "b"],
    ],
    1,
  );
  await commit(store, 1, "insert", [[1, "x"]], 2);
  await commit(store, 1, "update", [[1, "a2"]], 1);
  const { lastSeq: deletedSeq } = await commit(store, 1, "delete", [[2, "b"]], 1);
  await store.flush(1);
  clock.advance(25 * HOUR_MS);
  const { lastSeq: newestSeq } = await commit(store, 1, "update", [[1, "a3"]], 1);
  await store.flush(1);
  expect(store.earliestSeq(1, 1)).toBe(0 as Seq);

  expect(await store.compact(1)).toEqual({ mergedSegments: 2, discardedVersions: 3 });
  expect(store.segments().map(({ kind }) => kind)).toEqual(["current", "history"]);
  expect([store.earliestSeq(1, 1), store.earliestSeq(1, 2)]).toEqual([deletedSeq, 0 as Seq]);
  const check = (opened: LocalStore): void => {
    expect(plain(readRows(opened, TABLE, { owner: 1, withTombstones: true }))).toEqual([[1, "a3"]]);
    expect(plain(readRows(opened, TABLE, { owner: 1, upTo: newestSeq - 1 }))).toEqual([[1, "a2"]]);
    expect(plain(readRows(opened, TABLE, { owner: 2 }))).toEqual([[1, "x"]]);
    const changes = readChanges(opened, TABLE, { owner: 1, after: deletedSeq });
    expect(changes.map(({ row, old }) => [row, old])).toEqual([
      [
        [1, "a3"],
        [1, "a2"],
      ],
    ]);
    const upTo = opened.visibleSeq;
    expect(opened.lookup(1, { owner: 1, key: [2], upTo, columnIds: [2] })).toBeUndefined();
    expect(opened.liveRowCount(1, undefined)).toBe(2);
  };
  check(store);
  expect(await store.compact(1)).toEqual({ mergedSegments: 0, discardedVersions: 0 });

  await commit(store, 1, "insert", [[2, "again"]], 1);
  await commit(store, 1, "delete", [[2, "again"]], 1);
  await commit(store, 1, "insert", [[2, "and again"]], 1);
  await store.close();
  const again = await openStore({ disk, manifest, clock, definitions: [TABLE] });
  expect(again.earliestSeq(1, 1)).toBe(deletedSeq);
  expect(again.earliestSeq(1, 2)).toBe(0 as Seq);
  expect(plain(readRows(again, TABLE, { owner: 1 }))).toEqual([
    [1, "a3"],
    [2, "and again"],
  ]);
  await again.close();
});

test("a table without rows keeps no segment, and its seqs continue above the old ones", async () => {
  const { store, clock, disk, manifest } = await open();
  await commit(store, 1, "insert", [[1, "a"]]);
  const { lastSeq } = await commit(store, 1, "delete", [[1, "a"]]);
  await store.flush(1);
  clock.advance(25 * HOUR_MS);
  // Both versions in the only segment are discarded: one was replaced long ago, and the other is a
  // tombstone.
  expect(await store.compact(1)).toEqual({ mergedSegments: 1, discardedVersions: 2 });
  expect(store.segments()).toEqual([]);
  expect(disk.list("/data/segments/1")).toEqual([]);
  expect(disk.list("/data/tmp")).toEqual([]);
  expect(store.earliestSeq(1, 0)).toBe(lastSeq);
  await store.close();
  const again = await openStore({ disk, manifest, clock, definitions: [TABLE] });
  expect(readRows(again, TABLE, { withTombstones: true })).toEqual([]);
  const next = await commit(again, 1, "insert", [[1, "b"]]);
  expect(next.firstSeq).toBeGreaterThan(lastSeq);
  expect(again.earliestSeq(1, 0)).toBe(lastSeq);
  await again.close();
});

test("old history is discarded automatically if it is a large part of a segment", async () => {
  const { store, clock } = await open();
  const keys = Array.from({ length: 10 }, (_, key) => key);
  await commit(
    store,
    1,
    "insert",
    keys.map((key) => [key, "old"]),
  );
  await store.flush(1);
  for (const key of [0, 1]) await commit(store, 1, "update", [[key, "new"]]);
  await store.flush(1);
  const settled = async (): Promise<void> => {
    for (let round = 0; round < 50; round += 1) await new Promise((done) => setImmediate(done));
  };
  clock.advance(25 * HOUR_MS);
  store.discardHistory();
  await settled();
  expect(store.earliestSeq(1, 0)).toBe(0 as Seq);
  await commit(store, 1, "update", [[2, "new"]]);
  await store.flush(1);
  clock.advance(25 * HOUR_MS);
  store.discardHistory();
  await settled();
  expect(store.earliestSeq(1, 0)).toBeGreaterThan(0);
  expect(readRows(store, TABLE)).toHaveLength(10);
  await store.close();
});

test("history that takes too much space is discarded early, the oldest first", async () => {
  const { store, clock } = await open({ historyBytesMax: 1 });
  const settled = async (): Promise<void> => {
    for (let round = 0; round < 50; round += 1) await new Promise((done) => setImmediate(done));
  };
  const keys = Array.from({ length: 100 }, (_, key) => key);
  await commit(
    store,
    1,
    "insert",
    keys.map((key) => [key, "old"]),
  );
  await store.flush(1);
  const seqs: number[] = [];
  for (const [key, pauseMs] of [HOUR_MS, HOUR_MS, HOUR_MS / 2].entries()) {
    seqs.push((await commit(store, 1, "update", [[key, "new"]])).lastSeq);
    clock.advance(pauseMs);
  }
  // No version replaced within the last hour is discarded, whatever its size.
  store.boundHistory();
  await settled();
  expect(store.earliestSeq(1, 0)).toBe(seqs[1] as Seq);
  expect(readRows(store, TABLE)).toHaveLength(100);
  clock.advance(HOUR_MS);
  store.boundHistory();
  await settled();
  expect(store.earliestSeq(1, 0)).toBe(seqs[2] as Seq);
  expect(readRows(store, TABLE)).toHaveLength(100);
  await store.close();
});

const HISTORIES = amountOf({ usual: 5, thorough: 40 });

test("everything within the retention period reads as before, whatever is written, flushed and compacted", async () => {
  for (let seed = 1; seed <= HISTORIES; seed += 1) await oneHistory(new SeededRandom(seed));
});

/** Compares all possible reads of a table with a random history before and after COMPACT. */
async function oneHistory(random: SeededRandom): Promise<void> {
  const { store, clock, disk, manifest } = await open();
  const live = new Map<string, number>();
  const choose = (count: number): number => Math.floor(random.unit() * count);
  for (let step = 0; step < 60; step += 1) {
    const owner = choose(3);
    const key = choose(6);
    const name = `${owner} ${key}`;
    const row = [key, `${step}`];
    if (!live.has(name)) {
      await commit(store, 1, "insert", [row], owner);
      live.set(name, step);
    } else if (choose(3) === 0) {
      await commit(store, 1, "delete", [row], owner);
      live.delete(name);
    } else {
      await commit(store, 1, "update", [row], owner);
    }
    if (choose(5) === 0) await store.flush(1);
    if (choose(4) === 0) clock.advance(choose(12) * HOUR_MS);
  }
  const retentionFloorSeq = store.agedSeq(TABLE.historyMs);
  const seen = (opened: LocalStore): unknown =>
    [0, 1, 2].map((owner) => {
      const changes = readChanges(opened, TABLE, { owner, after: retentionFloorSeq });
      const states = [retentionFloorSeq, ...changes.map(({ seq }) => seq), opened.visibleSeq].map(
        (upTo) => readRows(opened, TABLE, { owner, upTo }),
      );
      return { changes, states, count: opened.liveRowCount(1, owner) };
    });
  const before = seen(store);
  await store.compact(1);
  expect(seen(store)).toEqual(before);
  for (const owner of [0, 1, 2]) {
    expect(store.earliestSeq(1, owner)).toBeLessThanOrEqual(retentionFloorSeq);
  }
  const crashed = disk.crash({ keep: "none" });
  const again = await openStore({
    disk: crashed,
    manifest: manifest.restart(),
    clock,
    definitions: [TABLE],
  });
  expect(seen(again)).toEqual(before);
  await again.compact(1);
  expect(seen(again)).toEqual(before);
  await Promise.all([store.close(), again.close()]);
}
