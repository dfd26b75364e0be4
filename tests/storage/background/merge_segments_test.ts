/**
 * Verifies that merging preserves every version, even if rows are written or read in the meantime,
 * and despite crashes.
 */
import { expect, test } from "bun:test";
import { DiskError } from "../../../src/base/errors.ts";
import { InThreadWork } from "../../../src/storage/background/segment_work.ts";
import type { LocalStore } from "../../../src/storage/mod.ts";
import type { Value } from "../../../src/types/mod.ts";
import { HastyClock } from "../../support/hasty_clock.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { noteReplacements } from "../../support/segment_files.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readChanges,
  readRows,
} from "../../support/store_fixture.ts";
import { amountOf, shareOf } from "../../support/thoroughness.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

/** Runs all ready work until background work has ended. */
async function settled(): Promise<void> {
  for (let round = 0; round < 100; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * Returns the number of segments with current versions. After a merge, there is one such segment
 * and one history segment.
 */
function currentCount(store: LocalStore): number {
  return store.segments().filter(({ kind }) => kind === "current").length;
}

/**
 * Writes seven segments with two owners' rows, which replace one another, and keeps one more batch
 * of rows in memory.
 */
async function almostDue(store: LocalStore): Promise<void> {
  for (let round = 0; round < 8; round += 1) {
    for (const owner of [1, 2]) {
      await commit(store, 1, "insert", [[round, `${owner} ${round}`]], owner);
      if (round > 0) await commit(store, 1, "update", [[round - 1, "updated"]], owner);
      if (round > 2) await commit(store, 1, "delete", [[round - 3, "deleted"]], owner);
    }
    if (round < 7) await store.flush(1);
  }
  expect(currentCount(store)).toBe(7);
}

function everything(store: LocalStore): unknown {
  return [1, 2].map((owner) => {
    const changes = readChanges(store, TABLE, { owner });
    const states = changes.map(({ seq }) =>
      readRows(store, TABLE, { owner, upTo: seq, withTombstones: seq % 2 === 0 }),
    );
    return { changes, states, live: store.liveRowCount(1, owner) };
  });
}

test("eight flushed segments become one, and every earlier seq reads as before", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  await almostDue(store);
  const before = everything(store);
  await store.flush(1);
  await settled();
  expect(currentCount(store)).toBe(1);
  expect(everything(store)).toEqual(before);
  const names = disk.list(`${DATA_PATH}/segments/1`).map(({ name }) => name);
  expect(names.toSorted()).toEqual(["10.seg", "9.seg"]);
  await store.close();
  const again = await openStore({ disk, manifest, definitions: [TABLE] });
  expect(everything(again)).toEqual(before);
  await again.close();
});

/** A clock that notes the largest number of replacements recorded in any one tick. */
class NotingClock extends HastyClock {
  mostPerTurn = 0;
  noted = 0;

  override yield(): Promise<void> {
    this.mostPerTurn = Math.max(this.mostPerTurn, this.noted);
    this.noted = 0;
    return super.yield();
  }
}

/** Returns how many replacements a merge of two segments of 50,000 rows applies in one tick. */
async function mostReplacedAtOnce({ isMerging }: { isMerging: boolean }): Promise<number> {
  const clock = new NotingClock();
  const replace = noteReplacements(() => {
    clock.noted += 1;
  });
  const store = await openStore({ clock, definitions: [TABLE] });
  const rows = Array.from({ length: 50_000 }, (_, id): [number, string] => [id, "a"]);
  await commit(store, 1, "insert", rows);
  await store.flush(1);
  await commit(store, 1, "insert", [[-1, "b"]]);
  await store.flush(1);
  if (!isMerging) await commit(store, 1, "update", rows);
  const merging = store.compact(1);
  await clock.yield();
  if (isMerging) store.apply({ writes: [{ tableId: 1, owner: 0, operation: "delete", rows }] });
  clock.noted = 0;
  clock.mostPerTurn = 0;
  const { mergedSegments } = await merging.finally(() => replace.mockRestore());
  expect(mergedSegments).toBe(2);
  expect(store.liveRowCount(1, 0)).toBe(isMerging ? 1 : 50_001);
  await store.close();
  return clock.mostPerTurn;
}

test("a merge carries over the replaced rows of its segments in many ticks", async () => {
  expect(await mostReplacedAtOnce({ isMerging: false })).toBeWithin(1, 40_000);
});

testThoroughly(
  "a merge carries over in steps the rows that a large commit replaces meanwhile",
  async () => {
    expect(await mostReplacedAtOnce({ isMerging: true })).toBeWithin(1, 40_000);
  },
);

test("rows that are replaced while their segment is merged stay replaced, or are restored", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  await almostDue(store);
  let isFull = false;
  disk.faultPlan = (operation, path) => {
    if (operation !== "write" || !path.endsWith(".wal") || !isFull) return undefined;
    isFull = false;
    return { code: "ENOSPC" };
  };
  const replaced: Promise<unknown>[] = [];
  let outcome = "committed";
  manifest.onPublish = ({ removeSegmentIds = [] }) => {
    expect(removeSegmentIds.length === 0 || replaced.length === 2).toBe(true);
  };
  disk.holdsSyncs = true;
  const flushing = store.flush(1);
  // Releases one sync after another until the merged segment has been written and is waiting for
  // its own sync.
  while (!disk.exists(`${DATA_PATH}/tmp/9.seg`)) {
    disk.releaseSyncs();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await flushing;
  disk.holdsSyncs = false;
  replaced.push(commit(store, 1, "update", [[6, "while merging"]], 1));
  await replaced[0];
  isFull = true;
  replaced.push(
    commit(store, 1, "delete", [[5, "taken back"]], 1).catch(() => {
      outcome = "taken back";
    }),
  );
  await replaced[1];
  expect(outcome).toBe("taken back");
  disk.releaseSyncs();
  await settled();
  expect(currentCount(store)).toBe(1);
  const rows = readRows(store, TABLE, { owner: 1 }).map(([, ...row]) => row);
  const expected: Value[][] = [
    [5, "updated"],
    [7, "1 7"],
    [6, "while merging"],
  ];
  expect(rows).toEqual(expected);
  const crashed = disk.crash({ keep: "none" });
  await commit(store, 1, "delete", [[5, "now"]], 1);
  const again = await openStore({
    disk: crashed,
    manifest: manifest.restart(),
    definitions: [TABLE],
  });
  expect(readRows(again, TABLE, { owner: 1 }).map(([, ...row]) => row)).toEqual(expected);
  await Promise.all([store.close(), again.close()]);
});

test("a crash before any operation of a merge changes nothing", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const random = new SeededRandom(3);
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  await almostDue(store);
  const before = everything(store);
  const moments: [string, SimulatedDisk, MemoryManifest][] = [];
  disk.faultPlan = (operation, path) => {
    if (operation === "read" || operation === "map" || operation === "list") return undefined;
    for (const keep of ["none", "some", "all"] as const) {
      const crashed = disk.crash(keep === "some" ? { keep, random } : { keep });
      moments.push([`${operation} ${path}`, crashed, manifest.restart()]);
    }
    return undefined;
  };
  await store.flush(1);
  await settled();
  disk.faultPlan = undefined;
  expect(currentCount(store)).toBe(1);
  await store.close();
  expect(moments.filter(([operation]) => operation.includes("9.seg")).length).toBeGreaterThan(10);
  for (const [operation, crashed, left] of shareOf(moments, { oneOf: 8 })) {
    const again = await openStore({ disk: crashed, manifest: left, definitions: [TABLE] });
    expect(everything(again), `crash before ${operation}`).toEqual(before);
    await again.close();
  }
});

test("a merge in which the disk fails once at any point changes nothing, and is done later", async () => {
  const step = amountOf({ usual: 13, thorough: 3 });
  for (let nth = 1, isPast = false; !isPast; nth += step) {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const store = await openStore({ disk, manifest, definitions: [TABLE] });
    await almostDue(store);
    const before = everything(store);
    const code = nth % 2 === 0 ? "EIO" : "ENOSPC";
    let count = 0;
    disk.faultPlan = (operation, path) => {
      // A segment that the disk cannot read is treated as damaged, which a different test covers.
      const counts = !["read", "map"].includes(operation) && !path.endsWith(".wal");
      if (!counts || (operation === "open" && path.includes("/segments/"))) return undefined;
      count += 1;
      return count === nth ? { code } : undefined;
    };
    const failure = await store.flush(1).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure !== undefined) expect(failure, `operation ${nth}`).toBeInstanceOf(DiskError);
    await settled();
    isPast = count < nth;
    disk.faultPlan = undefined;
    expect(everything(store), `operation ${nth}, ${code}`).toEqual(before);
    await commit(store, 1, "insert", [[1000, "later"]], 3);
    await store.flush(1);
    await settled();
    expect(currentCount(store), `operation ${nth}, ${code}`).toBeLessThanOrEqual(2);
    await store.close();
    const left = disk.crash({ keep: "none" });
    const again = await openStore({ disk: left, manifest, definitions: [TABLE] });
    expect(everything(again), `operation ${nth}, ${code}`).toEqual(before);
    await again.close();
  }
});

test("a scan that was opened before a merge continues with the files that the merge replaced", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE] });
  await almostDue(store);
  const expected = readRows(store, TABLE, { owner: 1 });
  const scan = store.scan(1, { owner: 1, upTo: store.visibleSeq, columnIds: [-1], batchRows: 1 });
  await store.flush(1);
  await settled();
  expect(currentCount(store)).toBe(1);
  let rowCount = 0;
  for (let batch = scan.next(); batch !== undefined; batch = scan.next())
    rowCount += batch.rowCount;
  expect(rowCount).toBe(expected.length);
  scan.close();
  expect(disk.list(`${DATA_PATH}/segments/1`).length).toBe(2);
  await store.close();
});

/** Starts each merge only when the test calls `letGo`. */
class HeldMerges extends InThreadWork {
  readonly #held: (() => void)[] = [];

  override async merge(
    ...args: Parameters<InThreadWork["merge"]>
  ): ReturnType<InThreadWork["merge"]> {
    await new Promise<void>((resolve) => this.#held.push(resolve));
    return await super.merge(...args);
  }

  /** Starts the oldest merge that is held. Returns false if there is none. */
  letGo(): boolean {
    const next = this.#held.shift();
    next?.();
    return next !== undefined;
  }
}

test("a table is flushed while it is merged, and the changes of both survive a crash", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const clock = new ManualClock();
  const segmentWork = new HeldMerges({ disk, clock });
  const store = await openStore({ disk, manifest, clock, segmentWork, definitions: [TABLE] });
  await almostDue(store);
  await store.flush(1);
  // The merge has already copied the deletion vectors of its sources, without these changes.
  await commit(store, 1, "update", [[7, "while merged"]], 1);
  await commit(store, 1, "delete", [[7, "7"]], 2);
  await store.flush(1);
  await commit(store, 1, "update", [[6, "in the log only"]], 1);
  expect([currentCount(store), store.stats(1).unflushedVersions]).toEqual([9, 1]);
  const before = everything(store);
  expect(segmentWork.letGo()).toBe(true);
  await settled();
  expect(currentCount(store)).toBe(2);
  expect(everything(store)).toEqual(before);
  // The merged segment has the deletion vector written by the merge.
  const merged = manifest.load().segments.find(({ segmentId }) => segmentId === 9);
  expect([merged?.deletionGeneration, merged?.deletionHash?.generation]).toEqual([1, 1]);
  const left = { disk: disk.crash({ keep: "none" }), manifest: manifest.restart() };
  await store.close();
  const again = await openStore({ ...left, clock, definitions: [TABLE] });
  expect(everything(again)).toEqual(before);
  await again.close();
});

test("a flush that failed during a merge is repeated, and the merge after the next flush", async () => {
  const disk = new SimulatedDisk();
  const clock = new ManualClock();
  const segmentWork = new HeldMerges({ disk, clock });
  const store = await openStore({ disk, clock, segmentWork, definitions: [TABLE] });
  await almostDue(store);
  await store.flush(1);
  await commit(store, 1, "insert", [[100, "late"]]);
  disk.faultPlan = (operation, path) =>
    operation === "write" && path.includes("/tmp/") ? { code: "EIO" } : undefined;
  const failure = await store.flush(1).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(DiskError);
  expect(segmentWork.letGo()).toBe(true);
  await settled();
  expect([currentCount(store), store.stats(1).unflushedVersions]).toEqual([8, 1]);
  disk.faultPlan = undefined;
  clock.advance(5000);
  await settled();
  expect([currentCount(store), store.stats(1).unflushedVersions]).toEqual([9, 0]);
  expect(segmentWork.letGo()).toBe(true);
  await settled();
  expect(currentCount(store)).toBe(2);
  await store.close();
});

// Verifies that rows that must stay hidden do not become live again, although no deletion vector
// records their replacements. The middle one of three segments is unreadable for a moment during
// startup.
test("COMPACT leaves a quarantined segment unchanged, wherever it is", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  for (const id of [1, 3, 5]) {
    await commit(store, 1, "insert", [
      [id, "old"],
      [id + 1, "old"],
    ]);
    await store.flush(1);
  }
  await commit(store, 1, "delete", [[3, "old"]]);
  await commit(store, 1, "update", [[4, "new"]]);
  await store.close();
  disk.faultPlan = (_operation, path) =>
    path.endsWith("/2.seg") ? { code: "EIO" as const } : undefined;
  const kept = manifest.restart();
  const again = await openStore({ disk, manifest: kept, definitions: [TABLE] });
  // Only the log recorded the replacements of the segment's rows. The flush removes it, which
  // makes the quarantine permanent.
  await again.flush(1);
  disk.faultPlan = undefined;
  const listed = kept.load().segments.find(({ segmentId }) => segmentId === 2);
  expect(listed?.quarantined).toBe(true);
  await again.compact(1);
  const current = again.segments().filter(({ kind }) => kind === "current");
  const statuses = current.map(({ segmentId, status }) => `${segmentId} ${status}`);
  expect(statuses).toEqual(["1 live", "2 quarantined", "5 live"]);
  expect(() => readRows(again, TABLE)).toThrow("quarantined");
  await again.close();
});

test("expired history is removed from all segments of a table, one after the other", async () => {
  const clock = new ManualClock();
  const historyMs = 3_600_000;
  const store = await openStore({ clock, definitions: [{ ...TABLE, historyMs }] });
  const rows = (text: string): Value[][] => Array.from({ length: 20 }, (_, id) => [id, text]);
  await commit(store, 1, "insert", rows("0"));
  for (let round = 1; round < 6; round += 1) {
    await store.flush(1);
    await commit(store, 1, "update", rows(String(round)));
  }
  await store.flush(1);
  expect(store.segments().length).toBe(6);
  clock.advance(3 * historyMs);
  store.discardHistory();
  await settled();
  expect(store.segments().map(({ rowCount }) => rowCount)).toEqual([20]);
  await store.close();
});

test("an owner whose only row in memory was refused is erased", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [[1, "row"]], 7);
  await store.flush(1);
  const again = commit(store, 1, "insert", [[1, "again"]], 7);
  expect(await again.catch(String)).toContain("already exists");
  expect(await store.erase(1, 7)).toBe(1);
  expect(readRows(store, TABLE, { owner: 7 })).toEqual([]);
  await store.close();
});

test("an erasure in a closed store ends without erasing anything", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [[1, "row"]], 7);
  await store.close();
  expect(await store.erase(1, 7)).toBe(0);
});

/** Flips bits in a segment. A second call restores them. */
function flip(disk: SimulatedDisk, name: string): void {
  for (let at = 70; at < 400; at += 8) disk.damage(`${DATA_PATH}/segments/1/${name}`, at);
}

test("an erasure that encounters damage fails, and does not count as done", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  await commit(store, 1, "insert", [[1, "row"]], 7);
  await store.flush(1);
  await store.close();
  const clock = new ManualClock();
  const segmentWork = new HeldMerges({ disk, clock });
  const kept = manifest.restart();
  const again = await openStore({ disk, manifest: kept, clock, definitions: [TABLE], segmentWork });
  const erasing = again.erase(1, 7).catch(String);
  await settled();
  // The merge finds the file intact, but a reader finds damage in it while the merge is running.
  flip(disk, "1.seg");
  expect(() => readRows(again, TABLE, { owner: 7 })).toThrow();
  flip(disk, "1.seg");
  segmentWork.letGo();
  expect(await erasing).toContain("quarantined");
  await again.close();
});

test("a damaged deletion vector prevents history from being discarded only in its segment", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const clock = new ManualClock();
  const historyMs = 3_600_000;
  const definitions = [{ ...TABLE, historyMs }];
  const store = await openStore({ disk, manifest, clock, definitions });
  const rows = (text: string): Value[][] => Array.from({ length: 20 }, (_, id) => [id, text]);
  await commit(store, 1, "insert", rows("0"));
  for (let round = 1; round < 4; round += 1) {
    await store.flush(1);
    await commit(store, 1, "update", rows(String(round)));
  }
  await store.flush(1);
  await store.close();
  const names = disk.list(`${DATA_PATH}/segments/1`).map(({ name }) => name);
  const vector = names.find((name) => name.startsWith("2.") && name.endsWith(".dv")) ?? "";
  for (let at = 8; at < 60; at += 4) disk.damage(`${DATA_PATH}/segments/1/${vector}`, at);
  clock.advance(3 * historyMs);
  const again = await openStore({ disk, manifest: manifest.restart(), clock, definitions });
  again.discardHistory();
  await settled();
  const left = again.segments().map(({ rowCount, status }) => `${rowCount} ${status}`);
  expect(left).toEqual(["20 quarantined", "20 live"]);
  await again.close();
});
