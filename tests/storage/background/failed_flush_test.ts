/**
 * Verifies that an interrupted flush leaves nothing behind that harms the next flush, and
 * publishes nothing that a crash could still partly undo.
 */
import { expect, test } from "bun:test";
import type { DiskFile } from "../../../src/base/disk.ts";
import { DatabaseError, DiskError } from "../../../src/base/errors.ts";
import { JobList, type LocalStore } from "../../../src/storage/mod.ts";
import type { Row } from "../../../src/types/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readRows,
} from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);
const NEXT = defineTable(2, [{ kind: "int" }]);

const SEGMENTS = `${DATA_PATH}/segments/1`;

/** Creates one segment with a row that has since been replaced. */
async function changedSince(disk: SimulatedDisk, manifest: MemoryManifest): Promise<LocalStore> {
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
  ]);
  await store.flush(1);
  await commit(store, 1, "update", [[1, "c"]]);
  return store;
}

function namesIn(disk: SimulatedDisk, directory: string): string[] {
  return disk
    .list(directory)
    .map(({ name }) => name)
    .toSorted();
}

/** Prevents the next segment file from being renamed into place. */
function refuseNextSegment(disk: SimulatedDisk): void {
  let isRefused = false;
  disk.faultPlan = (operation, path) => {
    if (isRefused || operation !== "rename" || !path.endsWith(".seg")) return undefined;
    isRefused = true;
    return { code: "ENOSPC" };
  };
}

async function liveRows(disk: SimulatedDisk, manifest: MemoryManifest): Promise<unknown> {
  const again = await openStore({ disk, manifest, definitions: [TABLE] });
  const rows = readRows(again, TABLE).map(([, ...row]) => row);
  await again.close();
  return rows;
}

const CHANGED = [
  [2, "b"],
  [1, "c"],
];

test("after a hold, the remains of a failed flush are removed, but nothing that its retry published", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await changedSince(disk, manifest);
  const snapshot = store.snapshot();
  refuseNextSegment(disk);
  expect(await store.flush(1).catch((error: unknown) => error)).toBeInstanceOf(DiskError);
  await store.flush(1);
  snapshot.release();
  expect(namesIn(disk, SEGMENTS)).toEqual(["1.2.dv", "1.seg", "3.seg"]);
  await store.close();
  expect(await liveRows(disk, manifest.restart())).toEqual(CHANGED);
});

// Verifies that files that the manifest may list are kept. The catalog reports that a write failed
// although it succeeded, as can happen when an error occurs during the catalog's commit. The next
// start sees the actual state of the disk.
test("files that may or may not have been published stay until the next start", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await changedSince(disk, manifest);
  let onDisk: MemoryManifest | undefined;
  manifest.onPublish = (change) => {
    if (onDisk === undefined) {
      onDisk = manifest.restart();
      onDisk.publish(change);
    }
    throw new DatabaseError("STORAGE_UNAVAILABLE", "the catalog takes nothing more");
  };
  expect(await store.flush(1).catch(String)).toContain("takes nothing more");
  refuseNextSegment(disk);
  expect(await store.flush(1).catch((error: unknown) => error)).toBeInstanceOf(DiskError);
  await store.close();
  expect(onDisk?.load().segments.length).toBe(2);
  expect(await liveRows(disk, onDisk?.restart() ?? manifest)).toEqual(CHANGED);
});

test("a catalog that accepts no more changes is not offered a segment every few seconds", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const clock = new ManualClock();
  const flush = { rowsMax: 1, ageMsMax: 1000 };
  const definitions = [{ ...TABLE, flush }];
  const store = await openStore({ disk, manifest, clock, definitions });
  let publishCount = 0;
  manifest.onPublish = () => {
    publishCount += 1;
    manifest.isBroken = true;
    throw new DatabaseError("STORAGE_UNAVAILABLE", "the catalog takes nothing more");
  };
  for (let id = 0; id < 20; id += 1) {
    await commit(store, 1, "insert", [[id, "row"]]);
    clock.advance(10_000);
    for (let turn = 0; turn < 50; turn += 1) await new Promise((next) => setImmediate(next));
  }
  expect(publishCount).toBe(1);
  await store.close();
});

test("neither a flush nor a merge writes a segment while the catalog is broken", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const clock = new ManualClock();
  const historyMs = 3_600_000;
  const store = await openStore({ disk, manifest, clock, definitions: [{ ...TABLE, historyMs }] });
  await commit(store, 1, "insert", [[1, "a"]]);
  await store.flush(1);
  await commit(store, 1, "update", [[1, "b"]]);
  await store.flush(1);
  await commit(store, 1, "update", [[1, "c"]]);
  clock.advance(3 * historyMs);
  const before = namesIn(disk, SEGMENTS);
  manifest.isBroken = true;
  store.discardHistory();
  expect(await store.flush(1).catch(String)).toContain("broken");
  for (let turn = 0; turn < 100; turn += 1) await new Promise((next) => setImmediate(next));
  expect(namesIn(disk, SEGMENTS)).toEqual(before);
  expect(namesIn(disk, `${DATA_PATH}/tmp`)).toEqual([]);
  await store.close();
});

test("a flush whose publication is refused for lack of space leaves no file", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await changedSince(disk, manifest);
  manifest.onPublish = () => {
    throw new DatabaseError("DISK_FULL", "the catalog's disk is full");
  };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    expect(await store.flush(1).catch(String)).toContain("is full");
  }
  expect(namesIn(disk, SEGMENTS)).toEqual(["1.seg"]);
  expect(namesIn(disk, `${DATA_PATH}/tmp`)).toEqual([]);
  manifest.onPublish = () => {};
  await store.flush(1);
  await store.close();
  expect(await liveRows(disk, manifest.restart())).toEqual(CHANGED);
});

/** A disk that blocks syncs of some log files until they are released. */
class SlowLogDisk extends SimulatedDisk {
  /** The suffix of the paths whose syncs block; undefined if no syncs block. */
  hangs: string | undefined;
  #waiting: (() => void)[] = [];

  override open(path: string, options: { create?: boolean }): DiskFile {
    const file = super.open(path, options);
    if (!/wal\/\d+\.wal$/.test(path)) return file;
    const sync = file.sync.bind(file);
    file.sync = async () => {
      const isHeld = this.hangs !== undefined && path.endsWith(this.hangs);
      if (isHeld) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      await sync();
    };
    return file;
  }

  letGo(): void {
    this.hangs = undefined;
    for (const go of this.#waiting.splice(0)) go();
  }
}

test("in relaxed mode, a flush waits for the log, so that a power loss keeps or loses commits as a whole", async () => {
  const disk = new SlowLogDisk();
  const manifest = new MemoryManifest();
  const options = { durability: "relaxed" } as const;
  const definitions = [TABLE, NEXT];
  const store = await openStore({ disk, manifest, definitions, options });
  disk.hangs = ".wal";
  const done = store.apply({
    writes: [
      { tableId: 1, owner: 0, operation: "insert", rows: [[1, "both"]] },
      { tableId: 2, owner: 0, operation: "insert", rows: [[1]] },
    ],
  });
  await store.durable(done.lastSeq);
  const flushing = store.flush(1);
  for (let turn = 0; turn < 200; turn += 1) await new Promise((next) => setImmediate(next));
  expect(store.segments()).toEqual([]);
  const crashed = await openStore({
    disk: disk.crash({ keep: "none" }),
    manifest: manifest.restart(),
    definitions,
    options,
  });
  expect(readRows(crashed, TABLE).length).toBe(readRows(crashed, NEXT).length);
  await crashed.close();
  disk.letGo();
  await flushing;
  expect(store.segments().length).toBe(1);
  await store.close();
});

// Verifies that a flush does not mistake the last row of its table for the end of the commit. The
// commit continues in the next log file, whose sync hangs. The first file was synced when the log
// moved on to the next file.
test("in relaxed mode, a flush waits for a whole commit that spans log files", async () => {
  const disk = new SlowLogDisk();
  const manifest = new MemoryManifest();
  const options = { durability: "relaxed" } as const;
  const definitions = [TABLE, { ...TABLE, tableId: 2 }];
  const store = await openStore({ disk, manifest, definitions, options });
  disk.hangs = "2.wal";
  const rows = (count: number): Row[] =>
    Array.from({ length: count }, (_, id) => [id, "x".repeat(4000)]);
  const done = store.apply({
    writes: [
      { tableId: 1, owner: 0, operation: "insert", rows: rows(5) },
      { tableId: 2, owner: 0, operation: "insert", rows: rows(20) },
    ],
  });
  await store.durable(done.lastSeq);
  const flushing = store.flush(1);
  for (let turn = 0; turn < 300; turn += 1) await new Promise((next) => setImmediate(next));
  expect(disk.exists(`${DATA_PATH}/wal/0000000002.wal`)).toBe(true);
  expect(store.segments()).toEqual([]);
  disk.letGo();
  await flushing;
  expect(store.segments().length).toBe(1);
  await store.close();
});

test("a flush that joins another is a job that has already begun, and ends with it", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [[1, "a"]]);
  const jobs = new JobList(new ManualClock());
  const both = [1, 2].map(() => jobs.begin({ kind: "flush", tableId: 1 }));
  const flushed = both.map((job) => store.flush(1, job));
  expect(both.map(({ status }) => status)).toEqual(["running", "running"]);
  expect(await Promise.all(flushed)).toEqual([{ versions: 1 }, { versions: 1 }]);
  await store.close();
});
