/** Tests the behaviour of the store when the disk is full, fails, or stops at any point. */

import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import type { DiskFile, OpenOptions } from "../../src/base/disk.ts";
import { DatabaseError, DiskError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import type { Seq } from "../../src/base/seq.ts";
import { dataPathsOf, deletionVectorPath, segmentPath } from "../../src/storage/files.ts";
import { type LocalStore, SHARED_OWNER, type Store } from "../../src/storage/mod.ts";
import { type Row, valuesOf } from "../../src/types/mod.ts";
import { ForwardingDisk, ForwardingFile } from "../support/forwarding_disk.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { RecordingDisk } from "../support/recording_disk.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { failNth, SimulatedDisk } from "../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readChanges,
  readRows,
} from "../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);
const OTHER = defineTable(2, [{ kind: "int" }]);
const PATHS = dataPathsOf(DATA_PATH);

function idsOf(store: Store): unknown[] {
  return readRows(store, TABLE).map(([, id]) => id);
}

async function conditionOf(promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise;
  } catch (error) {
    return error instanceof DatabaseError ? error.code : String(error);
  }
  return undefined;
}

test("every acknowledged commit was written and synced before its writer got the response", async () => {
  const disk = new RecordingDisk(new SimulatedDisk());
  const store = await openStore({ disk, definitions: [TABLE] });
  await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      for (let turn = 0; turn < index % 3; turn += 1) await systemClock.yield();
      const { lastSeq } = store.apply({
        writes: [{ tableId: 1, owner: 0, operation: "insert", rows: [[index, "x"]] }],
      });
      disk.mark(`applied ${index}`);
      await store.durable(lastSeq);
      disk.mark(`acknowledged ${index}`);
    }),
  );
  for (let index = 0; index < 20; index += 1) {
    const applied = disk.indexOf("mark", `applied ${index}`);
    const written = disk.indexOf("write", ".wal", applied);
    const syncing = disk.indexOf("syncBegin", ".wal", written);
    const synced = disk.indexOf("syncEnd", ".wal", syncing);
    const acknowledged = disk.indexOf("mark", `acknowledged ${index}`, applied);
    const order = [applied, written, syncing, synced, acknowledged];
    expect(order, disk.describe().join("\n")).toEqual(order.toSorted((a, b) => a - b));
    expect(order.includes(-1)).toBe(false);
  }
  await store.close();
});

test("a flush syncs segment and directory before it publishes, and only then removes files", async () => {
  const disk = new RecordingDisk(new SimulatedDisk());
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
  ]);
  await store.flush(1);
  await commit(store, 1, "update", [[1, "c"]]);
  await store.flush(1);
  await commit(store, 1, "update", [[2, "d"]]);
  manifest.onPublish = () => disk.mark("published");
  const from = disk.events.length;
  await store.flush(1);
  const order = [
    disk.indexOf("write", "tmp/3.seg", from),
    disk.indexOf("syncEnd", "tmp/3.seg", from),
    disk.indexOf("write", "tmp/1.2.dv", from),
    disk.indexOf("syncEnd", "tmp/1.2.dv", from),
    disk.indexOf("rename", "tmp/3.seg", from),
    disk.indexOf("rename", "tmp/1.2.dv", from),
    disk.indexOf("syncDirectory", "segments/1", from),
    disk.indexOf("mark", "published", from),
    disk.indexOf("remove", "segments/1/1.1.dv", from),
  ];
  expect(order, disk.describe().slice(from).join("\n")).toEqual(order.toSorted((a, b) => a - b));
  expect(order.includes(-1)).toBe(false);
  await store.close();
});

for (const operation of ["write", "sync"] as const) {
  test(`an error of the log's ${operation} fails all waiting commits as unknown, and stops the store`, async () => {
    const disk = new SimulatedDisk();
    let fatal: unknown;
    const onFatal = (cause: unknown): void => {
      fatal = cause;
    };
    const store = await openStore({ disk, definitions: [TABLE], onFatal });
    await commit(store, 1, "insert", [[1, "a"]]);
    let syncCount = 0;
    disk.faultPlan = (each, path) => {
      if (each === "sync") syncCount += 1;
      return each === operation && path.endsWith(".wal") ? { code: "EIO" } : undefined;
    };
    const insert = (id: number): Promise<unknown> => commit(store, 1, "insert", [[id, "b"]]);
    const conditions = await Promise.all([2, 3, 4].map((id) => conditionOf(insert(id))));
    expect(conditions).toEqual(["COMMIT_UNKNOWN", "COMMIT_UNKNOWN", "COMMIT_UNKNOWN"]);
    expect(fatal).toMatchObject({ code: "EIO" });
    const syncsBefore = syncCount;
    disk.faultPlan = undefined;
    expect(await conditionOf(insert(5))).toBe("STORAGE_UNAVAILABLE");
    expect(syncCount, "a failed sync is not tried again").toBe(syncsBefore);
    expect(idsOf(store), "a commit that is not known to be durable stays invisible").toEqual([1]);
    await store.close();
    const again = await openStore({ disk: disk.crash({ keep: "none" }), definitions: [TABLE] });
    expect(idsOf(again)).toEqual([1]);
    await again.close();
  });
}

test("a full disk rolls the whole group of commits back, and the store recovers by itself", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
  ]);
  await store.flush(1);
  await commit(store, 1, "insert", [[3, "c"]]);
  const before = readChanges(store, TABLE);
  disk.faultPlan = (operation, path) =>
    operation === "write" && path.endsWith(".wal") && !isWipe
      ? { code: "ENOSPC", bytesWritten: 50 }
      : undefined;
  // Erasing overwrites existing bytes, for which there is always space.
  let isWipe = false;
  const plan = disk.faultPlan;
  disk.faultPlan = (operation, path) => {
    const fault = plan(operation, path);
    if (fault !== undefined) isWipe = true;
    return fault;
  };
  const group = [
    commit(store, 1, "insert", [[4, "d"]]),
    commit(store, 1, "update", [
      [1, "changed"],
      [3, "changed"],
    ]),
    commit(store, 1, "delete", [[2, "b"]]),
    commit(store, 1, "insert", [[2, "again"]]),
  ];
  const conditions = await Promise.all(group.map(conditionOf));
  expect(conditions).toEqual(["DISK_FULL", "DISK_FULL", "DISK_FULL", "DISK_FULL"]);
  expect(store.appliedSeq).toBe(store.visibleSeq);
  expect(readChanges(store, TABLE)).toEqual(before);
  expect(readRows(store, TABLE, { upTo: Number.MAX_SAFE_INTEGER }).map(([, id]) => id)).toEqual([
    1, 2, 3,
  ]);
  disk.faultPlan = undefined;
  // The keys of the refused group can be written again, because nothing of the group remains.
  await commit(store, 1, "insert", [[4, "d"]]);
  await commit(store, 1, "update", [[1, "e"]]);
  await commit(store, 1, "delete", [[2, "b"]]);
  expect(idsOf(store)).toEqual([3, 4, 1]);
  const crashed = disk.crash({ keep: "all" });
  const again = await openStore({ disk: crashed, manifest, definitions: [TABLE] });
  expect(idsOf(again)).toEqual([3, 4, 1]);
  await Promise.all([store.close(), again.close()]);
});

/** Returns the ids of all rows in order, as far as an order exists. */
function orderedIdsOf(store: Store, upTo: Seq): unknown[] {
  const scan = store.scanOrdered(1, {
    owner: SHARED_OWNER,
    upTo,
    columnId: 1,
    columnIds: [1],
    isDescending: false,
  });
  const ids: unknown[] = [];
  for (let batch = scan?.next(1000); batch !== undefined; batch = scan?.next(1000)) {
    for (const column of batch.columns) ids.push(...valuesOf(column));
  }
  scan?.close();
  return ids;
}

test("rows hidden by a deletion are visible again after a full disk has rolled it back", async () => {
  const rows = Array.from({ length: 6000 }, (_, id): Row => [id, "x"]);
  const ids = rows.map(([id]) => id);
  for (const isFlushed of [true, false]) {
    const disk = new SimulatedDisk();
    const store = await openStore({ disk, definitions: [TABLE, OTHER] });
    await commit(store, 1, "insert", rows);
    if (isFlushed) await store.flush(1);
    // The second request for this order creates its index.
    expect(orderedIdsOf(store, store.visibleSeq)).toBeEmpty();
    disk.faultPlan = failNth("write", 1, { code: "ENOSPC" });
    const { lastSeq } = store.apply({
      writes: [{ tableId: 1, owner: SHARED_OWNER, operation: "delete", rows: rows.slice(0, 5000) }],
    });
    // A statement that runs in the meantime sees the rows as deleted.
    expect(readRows(store, TABLE, { upTo: lastSeq })).toHaveLength(1000);
    expect(orderedIdsOf(store, lastSeq)).toEqual(ids.slice(5000));
    expect(await conditionOf(store.durable(lastSeq))).toBe("DISK_FULL");
    disk.faultPlan = undefined;
    await commit(store, 2, "insert", [[1]]);
    expect(store.visibleSeq).toBeGreaterThan(lastSeq);
    expect(idsOf(store)).toEqual(ids);
    expect(orderedIdsOf(store, store.visibleSeq)).toEqual(ids);
    await store.close();
  }
});

test("a disk too full for another log file makes the store read-only until there is space", async () => {
  const disk = new SimulatedDisk();
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096, minFreeBytes: 10000 };
  const store = await openStore({ disk, definitions: [TABLE], options });
  disk.capacityBytes = 30000;
  const insert = (id: number): Promise<unknown> =>
    commit(store, 1, "insert", [[id, "x".repeat(1500)]]);
  const outcomes: (string | undefined)[] = [];
  for (let id = 0; id < 15; id += 1) outcomes.push(await conditionOf(insert(id)));
  const accepted = outcomes.filter((outcome) => outcome === undefined).length;
  expect(accepted).toBeGreaterThan(5);
  expect(outcomes.slice(accepted).every((outcome) => outcome === "DISK_FULL")).toBe(true);
  expect(idsOf(store).length).toBe(accepted);
  disk.capacityBytes = 1e9;
  await insert(100);
  expect(idsOf(store).at(-1)).toBe(100);
  await store.close();
});

test("a log that cannot open more files rolls commits back, and continues once it can", async () => {
  const disk = new SimulatedDisk();
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  let fatal: unknown;
  const onFatal = (cause: unknown): void => {
    fatal = cause;
  };
  const store = await openStore({ disk, definitions: [TABLE], options, onFatal });
  const insert = (id: number): Promise<unknown> =>
    commit(store, 1, "insert", [[id, "x".repeat(3000)]]);
  disk.faultPlan = (operation, path) =>
    operation === "open" && path.includes("/tmp/wal.") ? { code: "EMFILE" } : undefined;
  const outcomes: (string | undefined)[] = [];
  for (let id = 0; id < 12; id += 1) outcomes.push(await conditionOf(insert(id)));
  const accepted = outcomes.filter((outcome) => outcome === undefined).length;
  expect(accepted).toBeGreaterThan(2);
  expect(new Set(outcomes.slice(accepted))).toEqual(new Set(["STORAGE_UNAVAILABLE"]));
  expect([fatal, store.isReadOnly, idsOf(store).length]).toEqual([undefined, false, accepted]);
  disk.faultPlan = undefined;
  await insert(100);
  expect(idsOf(store).at(-1)).toBe(100);
  await store.close();
});

test("a log that cannot open more files reports this now and then, not with every commit", async () => {
  const disk = new SimulatedDisk();
  const clock = new ManualClock();
  const log = new RecentLog(silentLog, clock);
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  const store = await openStore({ disk, clock, log, definitions: [TABLE], options });
  disk.faultPlan = (operation, path) =>
    operation === "open" && path.includes("/tmp/wal.") ? { code: "EMFILE" } : undefined;
  for (let id = 0; id < 40; id += 1) {
    await conditionOf(commit(store, 1, "insert", [[id, "x".repeat(id < 20 ? 900 : 3000)]]));
  }
  const told = log.lines.map(({ message }) => message);
  const ahead = "cannot create the next log file ahead of time";
  const needed = "the log needs another file, but no more can be opened";
  expect(told.toSorted()).toEqual([ahead, needed]);
  clock.advance(10_000);
  await conditionOf(commit(store, 1, "insert", [[100, "x".repeat(3000)]]));
  expect(log.lines.at(-1)?.fields["omitted"]).toBeGreaterThan(10);
  disk.faultPlan = undefined;
  await commit(store, 1, "insert", [[101, "x".repeat(3000)]]);
  await store.close();
});

test.each(["EMFILE", "EACCES"] as const)(
  "a segment that cannot be opened for %s is reported, not quarantined, and read once it can be opened",
  async (code) => {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const clock = new ManualClock();
    const first = await openStore({ disk, manifest, definitions: [TABLE] });
    await commit(first, 1, "insert", [[1, "one"]]);
    await first.flush(1);
    await first.close();
    const log = new RecentLog(silentLog, clock);
    const store = await openStore({ disk, manifest, clock, log, definitions: [TABLE] });
    disk.faultPlan = (operation, path) =>
      operation === "open" && path.endsWith(".seg") ? { code } : undefined;
    for (let count = 0; count < 3; count += 1) {
      const named = `Cannot open ${PATHS.segments}/1/1.seg: the system reports ${code}; `;
      expect(() => idsOf(store)).toThrow(
        expect.objectContaining({
          code: "STORAGE_UNAVAILABLE",
          message: expect.stringContaining(named),
        }),
      );
    }
    const errors = log.lines.filter(({ level }) => level === "error");
    expect(errors.map(({ message }) => message)).toEqual(["cannot open the files of segments"]);
    expect(store.segments().map(({ status }) => status)).toEqual(["live"]);
    disk.faultPlan = undefined;
    expect(idsOf(store)).toEqual([1]);
    await store.close();
  },
);

test("intact files that were exchanged count as damaged, and are not read as each other", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const twin = { ...TABLE, tableId: 2, name: "app.t2" };
  const definitions = [TABLE, twin];
  const store = await openStore({ disk, manifest, definitions });
  for (const tableId of [1, 2]) {
    for (const id of [10, 20]) {
      await commit(store, tableId, "insert", [
        [id, "one"],
        [id + 1, "two"],
      ]);
      await store.flush(tableId);
    }
    for (const id of [10, 21]) {
      await commit(store, tableId, "delete", [[id, null]]);
      await store.flush(tableId);
    }
  }
  const segments = manifest.load().segments.filter(({ rowCount }) => rowCount === 2);
  expect(segments.length).toBe(4);
  expect(new Set(segments.map(({ bytes }) => bytes)).size, "of one length").toBe(1);
  await store.close();
  const whole = disk.restart();
  for (const named of [segmentPath, deletionVectorPath]) {
    for (const [at, entry] of segments.entries()) {
      const other = segments[(at + 1) % segments.length] ?? entry;
      const found = whole.restart();
      const path = named(PATHS, entry);
      found.rename(named(PATHS, other), "/kept");
      found.rename(path, named(PATHS, other));
      found.rename("/kept", path);
      const again = await openStore({ disk: found, manifest: manifest.restart(), definitions });
      const table = entry.tableId === 1 ? TABLE : twin;
      expect(() => readRows(again, table), path).toThrow(path);
      await again.close();
    }
  }
  const sound = await openStore({ disk: whole, manifest, definitions });
  for (const table of definitions) {
    expect(readRows(sound, table).map(([, id]) => id)).toEqual([11, 20]);
  }
  await sound.close();
});

/**
 * Returns a segment whose deletion vector has reached its second generation, and the contents of
 * the first one.
 */
async function secondGeneration(): Promise<{
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  readonly older: Uint8Array;
  readonly path: string;
}> {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  const rows = [1, 2, 3].map((id) => [id, "one"]);
  await commit(store, 1, "insert", rows);
  await store.flush(1);
  const paths: string[] = [];
  const contents: Uint8Array[] = [];
  for (const id of [1, 2]) {
    await commit(store, 1, "delete", [[id, null]]);
    await store.flush(1);
    const path = pathOfFirstVector(manifest);
    paths.push(path);
    contents.push(disk.readFile(path));
  }
  await store.close();
  const [older, newer] = contents;
  const path = paths[1];
  if (older === undefined || newer === undefined || path === undefined) throw new Error("no file");
  expect(paths[0]).not.toBe(path);
  expect(older).not.toEqual(newer);
  return { disk: disk.restart(), manifest: manifest.restart(), older, path };
}

function pathOfFirstVector(manifest: MemoryManifest): string {
  const [entry] = manifest.load().segments;
  if (entry === undefined) throw new Error("there is no segment");
  return deletionVectorPath(PATHS, entry);
}

test("a deletion vector of an older generation under the newer file name counts as damage", async () => {
  const { disk, manifest, older, path } = await secondGeneration();
  const file = disk.open(path, {});
  file.truncate(0);
  file.write(older, 0);
  file.close();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  const what =
    "it is another deletion vector of segment 1, with 1 replaced rows, not generation 2, which the manifest lists";
  expect(() => idsOf(store)).toThrow(expect.objectContaining({ path, what }));
  expect(store.segments()[0]?.status).toBe("quarantined");
  await store.close();
});

test.each([
  ["without a hash, as older servers list it", undefined],
  ["with the hash of an earlier generation, as an older server leaves it", 1],
])("a deletion vector that is listed %s is read", async (_what, generation) => {
  const { disk, manifest } = await secondGeneration();
  const listed = generation === undefined ? {} : { deletionHash: { generation, low: 1, high: 2 } };
  const changeSegments = manifest.load().segments.map((entry) => {
    const { deletionHash, ...rest } = entry;
    return deletionHash === undefined ? entry : Object.assign(rest, listed);
  });
  manifest.publish({ changeSegments });
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  expect(idsOf(store)).toEqual([3]);
  await store.close();
});

/** A disk that does not report its free space. */
class SilentDisk extends ForwardingDisk {
  isSilent = false;

  override freeBytes(path: string): number {
    if (this.isSilent) throw new DiskError("EIO", path, "stat");
    return super.freeBytes(path);
  }
}

test("a disk that does not report its free space does not prevent writes", async () => {
  const disk = new SilentDisk(new SimulatedDisk());
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  let fatal: unknown;
  const onFatal = (cause: unknown): void => {
    fatal = cause;
  };
  const store = await openStore({ disk, definitions: [TABLE], options, onFatal });
  disk.isSilent = true;
  // There is space for another log file, and time for a check of the free space.
  for (let id = 0; id < 300; id += 1) await commit(store, 1, "insert", [[id, "x".repeat(100)]]);
  expect([fatal, idsOf(store).length]).toEqual([undefined, 300]);
  expect(() => store.lookAtSpace()).toThrow(DiskError);
  await store.close();
});

/**
 * A full disk that refuses to sync the first log file if the sync is requested in the same tick.
 */
class FullAtRollDisk extends ForwardingDisk {
  override open(path: string, options: OpenOptions): DiskFile {
    const file = super.open(path, options);
    return path.endsWith("/0000000001.wal") ? new FullAtRollFile(file) : file;
  }
}

class FullAtRollFile extends ForwardingFile {
  override syncNow(): void {
    throw new DiskError("ENOSPC", this.path, "sync");
  }
}

/** Returns a full disk that refuses to make the directory entry of the second log file durable. */
function fullAtName(): SimulatedDisk {
  const disk = new SimulatedDisk();
  disk.faultPlan = (operation, path) =>
    operation === "syncDirectory" && path === PATHS.wal && disk.exists(`${path}/0000000002.wal`)
      ? { code: "ENOSPC" }
      : undefined;
  return disk;
}

// The store waits if the disk is full, but not if the state of the disk is unknown.
test.each([
  ["the sync of the file before", "relaxed", () => new FullAtRollDisk(new SimulatedDisk())],
  ["the name of the new file", "sync", fullAtName],
] as const)("a full disk that fails %s is fatal to the log", async (_what, durability, diskOf) => {
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096, durability };
  let fatal: unknown;
  const onFatal = (cause: unknown): void => {
    fatal = cause;
  };
  const store = await openStore({ disk: diskOf(), definitions: [TABLE], options, onFatal });
  for (let id = 0; id < 12; id += 1) {
    await conditionOf(commit(store, 1, "insert", [[id, "x".repeat(3000)]]));
    if (fatal !== undefined) break;
  }
  expect(fatal).toMatchObject({ code: "ENOSPC" });
  await store.close();
});

test("a commit that a full disk rolls back does not affect a table that was dropped after it", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE, OTHER] });
  await commit(store, 1, "insert", [[1, "a"]]);
  await store.flush(1);
  disk.faultPlan = failNth("write", 1, { code: "ENOSPC" });
  const undone = conditionOf(commit(store, 1, "update", [[1, "b"]]));
  store.dropTable(1);
  expect(await undone).toBe("DISK_FULL");
  await commit(store, 2, "insert", [[7]]);
  await store.close();
});

test("snowflakeId reports that the disk is full, and continues once there is space", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE] });
  disk.faultPlan = (operation, path) =>
    operation === "write" && path.endsWith("/IDS") ? { code: "ENOSPC" } : undefined;
  const id = Promise.try(() => store.snowflakeId());
  expect(await conditionOf(id)).toBe("DISK_FULL");
  disk.faultPlan = undefined;
  expect(store.snowflakeId()).toBeGreaterThan(0);
  await store.close();
});

test("below the reserve, only deletes are accepted", async () => {
  const disk = new SimulatedDisk();
  const options = { minFreeBytes: 1000 };
  const store = await openStore({ disk, definitions: [TABLE], options });
  await commit(store, 1, "insert", [[1, "a"]]);
  disk.capacityBytes = 65536;
  for (let id = 2; id < 600; id += 1) {
    if ((await conditionOf(commit(store, 1, "insert", [[id, "a"]]))) === "DISK_FULL") break;
  }
  expect(await conditionOf(commit(store, 1, "insert", [[1000, "a"]]))).toBe("DISK_FULL");
  expect(await conditionOf(commit(store, 1, "update", [[1, "b"]]))).toBe("DISK_FULL");
  expect(await conditionOf(commit(store, 1, "delete", [[1, "a"]]))).toBeUndefined();
  disk.capacityBytes = 1e9;
  expect(await conditionOf(commit(store, 1, "insert", [[1000, "a"]]))).toBeUndefined();
  await store.close();
});

test("the log reports a disk with less than a tenth free, once each time", async () => {
  const disk = new SimulatedDisk();
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (text: string) => warnings.push(text) };
  const store = await openStore({ disk, log, definitions: [TABLE] });
  const used = disk.byteCount();
  const wanted: [number, number][] = [
    [0.11, 0],
    [0.099, 1],
    [0.105, 1],
    [0.01, 1],
    [0.13, 1],
    [0.09, 2],
  ];
  for (const [freeShare, count] of wanted) {
    disk.capacityBytes = Math.ceil(used / (1 - freeShare));
    store.lookAtSpace();
    expect([freeShare, warnings.length]).toEqual([freeShare, count]);
  }
  expect(new Set(warnings)).toEqual(new Set(["less than a tenth of the disk is free"]));
  disk.capacityBytes = 1e9;
  await store.close();
});

test("a flush that fails leaves the rows readable, and is repeated", async () => {
  for (const operation of ["open", "write", "sync", "rename", "syncDirectory"] as const) {
    const disk = new SimulatedDisk();
    const clock = new ManualClock();
    const manifest = new MemoryManifest();
    const store = await openStore({ disk, clock, manifest, definitions: [TABLE] });
    await commit(store, 1, "insert", [
      [1, "a"],
      [2, "b"],
    ]);
    disk.faultPlan = failNth(operation, 1, { code: "EIO" });
    expect(await store.flush(1).catch(() => "failed")).toBe("failed");
    disk.faultPlan = undefined;
    expect(idsOf(store)).toEqual([1, 2]);
    await commit(store, 1, "delete", [[1, "a"]]);
    clock.advance(5000);
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    // The failed flush and the later writes produce one segment each.
    expect(store.stats(1), operation).toMatchObject({ segments: 2, unflushedVersions: 0 });
    expect(idsOf(store)).toEqual([2]);
    const crashed = disk.crash({ keep: "none" });
    const again = await openStore({ disk: crashed, manifest, definitions: [TABLE] });
    expect(idsOf(again)).toEqual([2]);
    await Promise.all([store.close(), again.close()]);
  }
});

test("damage in a segment makes its table fail, quarantines the file, and leaves other tables readable", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
  const store = await openStore({ disk, manifest, definitions: [TABLE, other] });
  const rows = Array.from({ length: 500 }, (_, id): Row => [id, `text ${id * 7919}`]);
  await commit(store, 1, "insert", rows);
  await commit(store, 2, "insert", rows);
  await store.flush(1);
  await store.flush(2);
  await store.close();
  const path = `${PATHS.segments}/1/1.seg`;
  for (let at = 70; at < 6000; at += 40) disk.damage(path, at);
  const again = await openStore({ disk, manifest, definitions: [TABLE, other] });
  expect(() => idsOf(again)).toThrow(expect.objectContaining({ path, isLogged: true }));
  expect(again.segments().map(({ status }) => status)).toEqual(["quarantined", "live"]);
  expect(manifest.load().segments[0]?.quarantined).toBe(true);
  expect(await conditionOf(Promise.resolve().then(() => idsOf(again)))).toBe("DATA_DAMAGED");
  expect(readRows(again, other).length).toBe(500);
  await again.close();
});

test.each([
  ["segment", "1.seg"],
  ["deletion vector", "1.1.dv"],
])("startup continues if a %s that the log refers to is damaged", async (_what, name) => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
  const definitions = [TABLE, other];
  const store = await openStore({ disk, manifest, definitions });
  const rows = Array.from({ length: 300 }, (_, id): Row => [id, `text ${id * 7919}`]);
  await commit(store, 1, "insert", rows);
  await commit(store, 2, "insert", rows);
  await store.flush(1);
  await commit(store, 1, "update", [[1, "replaced in a segment"]]);
  await store.flush(1);
  await commit(store, 1, "update", [[2, "replaced in the log"]]);
  await store.close();
  for (let at = 8; at < 6000; at += 40) disk.damage(`${PATHS.segments}/1/${name}`, at);
  // The first start finds the damage; the second already knows of it.
  for (let start = 0; start < 2; start += 1) {
    const again = await openStore({ disk, manifest, definitions });
    expect(manifest.load().segments.map(({ quarantined }) => quarantined)).toEqual([true, false]);
    expect(() => idsOf(again)).toThrow(`${PATHS.segments}/1/1.seg`);
    expect(await conditionOf(Promise.resolve().then(() => idsOf(again)))).toBe("DATA_DAMAGED");
    // A version newer than the damage is returned unchanged.
    const lookup = { owner: SHARED_OWNER, columnIds: [2], upTo: again.visibleSeq };
    expect(again.lookup(1, { ...lookup, key: [2] })).toEqual(["replaced in the log"]);
    expect(() => again.lookup(1, { ...lookup, key: [3] })).toThrow();
    expect(await conditionOf(commit(again, 1, "insert", [[3, "again"]]))).toBe("DATA_DAMAGED");
    expect(readRows(again, other).length).toBe(300);
    await again.close();
  }
});

// Verifies that a file that is temporarily missing makes its table unavailable for the rest of the
// process, but loses no row. The file is missing when it is first read, and one of its rows, which
// was replaced before, is replaced again in the meantime.
test.each(["ENOENT", "EIO"])(
  "a segment that could not be read because of %s is intact after a restart",
  async (code) => {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const definitions = [TABLE];
    const path = `${PATHS.segments}/1/1.seg`;
    const store = await openStore({ disk, manifest, definitions });
    await commit(store, 1, "insert", [
      [1, "first"],
      [2, "first"],
    ]);
    await store.flush(1);
    await commit(store, 1, "update", [[1, "before"]]);
    await store.flush(1);
    await store.close();

    const again = await openStore({ disk, manifest, definitions });
    if (code === "ENOENT") disk.rename(path, `${path}.away`);
    else disk.faultPlan = (_operation, touched) => (touched === path ? { code: "EIO" } : undefined);
    expect(() => idsOf(again)).toThrow(code);
    if (code === "ENOENT") disk.rename(`${path}.away`, path);
    disk.faultPlan = undefined;
    expect(() => idsOf(again)).toThrow("could not be read and is quarantined");
    expect(again.segments().map(({ status }) => status)).toEqual(["quarantined", "live"]);
    expect(await conditionOf(commit(again, 1, "insert", [[2, "again"]]))).toBe("DATA_DAMAGED");
    await commit(again, 1, "update", [[1, "after"]]);
    await again.flush(1);
    await again.close();

    const last = await openStore({ disk, manifest, definitions });
    expect(readRows(last, TABLE).map(([, ...row]) => row)).toEqual([
      [2, "first"],
      [1, "after"],
    ]);
    expect(last.segments().map(({ status }) => status)).toEqual(["live", "live", "live"]);
    await last.close();
  },
);

// Verifies that a replacement that was rolled back while the segment of the replaced row could not
// be read does not hide the row permanently. The test makes both the log and the segment fail after
// one update.
test("a segment with recorded replacements that were rolled back meanwhile stays quarantined", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const definitions = [TABLE];
  const path = `${PATHS.segments}/1/1.seg`;
  const store = await openStore({ disk, manifest, definitions });
  await commit(store, 1, "insert", [
    [1, "first"],
    [2, "first"],
  ]);
  await store.flush(1);
  await commit(store, 1, "insert", [[3, "first"]]);
  const { lastSeq } = store.apply({
    writes: [{ tableId: 1, owner: SHARED_OWNER, operation: "update", rows: [[1, "taken back"]] }],
  });
  const durable = conditionOf(store.durable(lastSeq));
  const fullOnce = failNth("write", 1, { code: "ENOSPC" });
  disk.faultPlan = (operation, touched) =>
    operation === "read" && touched === path ? { code: "EIO" } : fullOnce(operation, touched);
  expect(() => idsOf(store)).toThrow("the disk reports EIO");
  expect(await durable).toBe("DISK_FULL");
  disk.faultPlan = undefined;
  await commit(store, 1, "update", [[3, "later"]]);
  await store.flush(1);
  await store.close();

  const last = await openStore({ disk, manifest, definitions });
  expect(last.segments()[0]?.status).toBe("quarantined");
  expect(() => idsOf(last)).toThrow("is damaged and quarantined");
  await last.close();
});

test("a part of a segment that the disk cannot read counts as damage in that segment, with its position", async () => {
  const disk = new SimulatedDisk();
  const definitions = [TABLE, OTHER];
  const path = `${PATHS.segments}/1/1.seg`;
  const store = await openStore({ disk, definitions });
  await commit(store, 1, "insert", [[1, "a"]]);
  await commit(store, 2, "insert", [[1]]);
  await store.flush(1);
  // Opens the file, but reads no chunk of it.
  const key = { owner: SHARED_OWNER, key: [2], columnIds: [2], upTo: store.visibleSeq };
  expect(store.lookup(1, key)).toBeUndefined();
  disk.faultPlan = (operation, touched) =>
    operation === "read" && touched === path ? { code: "EIO" } : undefined;
  expect(() => idsOf(store)).toThrow(/1\.seg at byte [1-9][0-9]*: the disk reports EIO/);
  disk.faultPlan = undefined;
  expect(() => idsOf(store)).toThrow("could not be read and is quarantined");
  expect(readRows(store, OTHER).length).toBe(1);
  await store.close();
});

// Verifies that a segment that recovery could not read loses no more than one that a statement
// could not read. One of its rows was replaced according to the log alone, and the disk can read
// the segment again before the flush that lets the log discard this record, during that flush, or
// not even then.
test.each([
  ["before the next start", "live"],
  ["before the flush", "live"],
  ["never", "quarantined"],
] as const)(
  "a segment that recovery could not read and that returns %s is %s",
  async (when, status) => {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const definitions = [TABLE, OTHER];
    const path = `${PATHS.segments}/1/1.seg`;
    const store = await openStore({ disk, manifest, definitions });
    for (const id of [1, 2, 3]) await commit(store, 1, "insert", [[id, "old"]]);
    await store.flush(1);
    await commit(store, 1, "update", [[1, "new"]]);
    await commit(store, 1, "delete", [[2, ""]]);
    await commit(store, 2, "insert", [[1]]);
    await store.close();

    // The file opens, but its rows cannot be read.
    let readCount = 0;
    disk.faultPlan = (operation, touched) => {
      if (operation !== "read" || touched !== path) return undefined;
      readCount += 1;
      return readCount > 4 ? { code: "EIO" } : undefined;
    };
    const again = await openStore({ disk, manifest, definitions });
    expect(readCount, "recovery met the fault").toBeGreaterThan(4);
    expect(readRows(again, OTHER).length).toBe(1);
    expect(() => idsOf(again)).toThrow("could not be read and is quarantined");
    if (when === "before the flush") disk.faultPlan = undefined;
    if (when !== "before the next start") await again.flush(1);
    await again.close();

    disk.faultPlan = undefined;
    const last = await openStore({ disk, manifest, definitions });
    expect(last.segments()[0]?.status).toBe(status);
    const rows = (): unknown[] => readRows(last, TABLE).map(([, ...row]) => row);
    if (status === "quarantined") expect(rows).toThrow("is damaged and quarantined");
    else
      expect(rows()).toEqual([
        [3, "old"],
        [1, "new"],
      ]);
    await last.close();
  },
);

/** The acknowledged rows of a run at one moment, and the disk that the next process would find. */
interface Moment {
  readonly operation: string;
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  /** The text of each acknowledged row; undefined for a deleted row. */
  readonly acked: ReadonlyMap<number, string | undefined>;
  /** The pending write, which may or may not be present. */
  readonly pending: { readonly id: number; readonly text: string | undefined } | undefined;
}

/**
 * Verifies that a crash before any single disk operation loses nothing that was acknowledged, and
 * reveals nothing that was never written. The test makes one run of commits, updates, deletes and
 * flushes over several log files. Before each of its operations, the disk is crashed in three ways
 * and opened again.
 */
test("LocalStore recovers from a crash before any disk operation", async () => {
  const moments: Moment[] = [];
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const random = new SeededRandom(11);
  const acked = new Map<number, string | undefined>();
  let pending: Moment["pending"];
  disk.faultPlan = (operation, path) => {
    if (operation === "read" || operation === "map" || operation === "list") return undefined;
    for (const keep of ["none", "some", "all"] as const) {
      moments.push({
        operation: `${operation} ${path}`,
        disk: disk.crash(keep === "some" ? { keep, random } : { keep }),
        manifest: manifest.restart(),
        acked: new Map(acked),
        pending,
      });
    }
    return undefined;
  };
  const options = { walSegmentBytes: 4096, rowBytesMax: 1024, walMaxBytes: 8192 };
  const store = await openStore({ disk, manifest, definitions: [TABLE], options });
  async function write(
    operation: "insert" | "update" | "delete",
    id: number,
    text: string,
  ): Promise<void> {
    pending = { id, text: operation === "delete" ? undefined : text };
    await commit(store, 1, operation, [[id, text]]);
    acked.set(id, pending.text);
    pending = undefined;
  }
  for (let round = 0; round < 3; round += 1) {
    for (let id = round * 10; id < round * 10 + 4; id += 1) {
      await write("insert", id, `${round}`.repeat(300));
    }
    const flushing = store.flush(1);
    await write("update", round * 10, "updated while flushing");
    await flushing;
    await write("delete", round * 10 + 1, "");
    if (round > 0) await write("update", round * 10 - 8, "updated after its flush");
  }
  disk.faultPlan = undefined;
  await store.close();
  expect(moments.length).toBeGreaterThan(200);

  for (const moment of moments) await checkMoment(moment, options);
});

async function checkMoment(moment: Moment, options: object): Promise<void> {
  const { disk, manifest, acked, pending, operation } = moment;
  let store: LocalStore;
  try {
    store = await openStore({ disk, manifest, definitions: [TABLE], options });
  } catch (error) {
    throw new Error(`crash before ${operation}`, { cause: error });
  }
  const found = new Map(readRows(store, TABLE).map(([, id, text]) => [id, text] as const));
  for (const id of new Set([...acked.keys(), ...(pending === undefined ? [] : [pending.id])])) {
    const text = found.get(id);
    found.delete(id);
    if (pending?.id === id && text === pending.text) continue;
    expect(text, `crash before ${operation}: row ${id}`).toBe(acked.get(id));
  }
  expect([...found.keys()], `crash before ${operation}`).toEqual([]);
  // The recovered store accepts further commits.
  await commit(store, 1, "insert", [[999, "after"]]);
  expect(idsOf(store).at(-1)).toBe(999);
  await store.close();
}

test("a damaged segment does not prevent a store from opening, even if the log replaces its rows", async () => {
  for (const file of ["1.seg", "1.1.dv"]) {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const definitions = [TABLE, OTHER];
    const store = await openStore({ disk, manifest, definitions });
    for (const id of [1, 2, 3]) await commit(store, 1, "insert", [[id, "old"]]);
    await store.flush(1);
    await commit(store, 1, "update", [[1, "new"]]);
    await store.flush(1);
    await commit(store, 1, "update", [[2, "new"]]);
    await commit(store, 2, "insert", [[1]]);
    await store.close();
    disk.damage(`${PATHS.segments}/1/${file}`, 7);
    // The first start finds the damage; the second already knows of it.
    for (let start = 1; start <= 2; start += 1) {
      const again = await openStore({ disk, manifest, definitions });
      expect(readRows(again, OTHER).length).toBe(1);
      expect(() => readRows(again, TABLE)).toThrow(/damaged/);
      await commit(again, 2, "update", [[1]]);
      await again.flush(1);
      await again.flush(2);
      expect(manifest.load().segments.find(({ segmentId }) => segmentId === 1)?.quarantined).toBe(
        true,
      );
      await again.close();
    }
  }
});

/** Returns a store that has allocated its ballast. */
async function storeWithBallast(disk: SimulatedDisk): Promise<LocalStore> {
  const options = { minFreeBytes: 20_000, ballastBytes: 100_000, walSegmentBytes: 16384 };
  const store = await openStore({ disk, definitions: [TABLE], options });
  store.lookAtSpace();
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return store;
}

const BALLAST = `${DATA_PATH}/ballast`;

test("the ballast is released when the disk is full, and allocated again when there is space", async () => {
  const disk = new SimulatedDisk();
  const store = await storeWithBallast(disk);
  await commit(store, 1, "insert", [[1, "a"]]);
  expect(disk.sizeOf(BALLAST)).toBe(100_000);
  disk.capacityBytes = 130_000;
  store.lookAtSpace();
  expect(disk.exists(BALLAST)).toBe(false);
  expect(await conditionOf(commit(store, 1, "insert", [[2, "b"]]))).toBe("DISK_FULL");
  expect(await conditionOf(commit(store, 1, "delete", [[1, "a"]]))).toBeUndefined();
  // Free space for one more file of that size is not enough, because rows may not use the ballast.
  store.lookAtSpace();
  expect(await conditionOf(commit(store, 1, "insert", [[2, "b"]]))).toBe("DISK_FULL");
  disk.capacityBytes = 1e9;
  expect(await conditionOf(commit(store, 1, "insert", [[2, "b"]]))).toBeUndefined();
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(disk.sizeOf(BALLAST)).toBe(100_000);
  await store.close();
  expect(disk.sizeOf(BALLAST)).toBe(100_000);
});

test("LocalStore.noteFullDisk releases the ballast once, and then accepts only deletes", async () => {
  const disk = new SimulatedDisk();
  const store = await storeWithBallast(disk);
  await commit(store, 1, "insert", [[1, "a"]]);
  disk.capacityBytes = disk.byteCount();
  expect([store.noteFullDisk(), store.noteFullDisk()]).toEqual([true, false]);
  expect(disk.exists(BALLAST)).toBe(false);
  expect(await conditionOf(commit(store, 1, "insert", [[2, "b"]]))).toBe("DISK_FULL");
  expect(await conditionOf(commit(store, 1, "delete", [[1, "a"]]))).toBeUndefined();
  const write = { tableId: 1, owner: 0, operation: "insert", rows: [[3, "c"]] } as const;
  const noted = Promise.try(() => store.apply({ writes: [write], usesReserve: true }).lastSeq);
  expect(await conditionOf(noted.then((seq) => store.durable(seq)))).toBeUndefined();
  expect(idsOf(store)).toEqual([3]);
  await store.close();
});

test.each([
  { missingBytes: 1, isTaken: false },
  { missingBytes: 0, isTaken: true },
])(
  "the ballast is allocated only if the reserve stays free: $missingBytes bytes missing",
  async ({ isTaken, missingBytes }) => {
    const disk = new SimulatedDisk();
    const options = { minFreeBytes: 50_000, ballastBytes: 100_000 };
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (message: string): void => void warnings.push(message) };
    const store = await openStore({ disk, definitions: [TABLE], options, log });
    disk.capacityBytes = disk.byteCount() + 150_000 - missingBytes;
    for (let look = 0; look < 3; look += 1) {
      store.lookAtSpace();
      for (let turn = 0; turn < 50; turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
    }
    expect(disk.exists(BALLAST)).toBe(isTaken);
    expect(warnings.filter((warning) => warning.includes("ballast_bytes"))).toHaveLength(
      isTaken ? 0 : 1,
    );
    expect(await conditionOf(commit(store, 1, "insert", [[1, "a"]]))).toBeUndefined();
    await store.close();
  },
);

test("without space for the ballast, none is allocated, and the store continues", async () => {
  const disk = new SimulatedDisk();
  disk.faultPlan = (operation, path) =>
    path === BALLAST && (operation === "write" || operation === "sync")
      ? { code: "ENOSPC" }
      : undefined;
  const store = await storeWithBallast(disk);
  expect(disk.exists(BALLAST)).toBe(false);
  await commit(store, 1, "insert", [[1, "a"]]);
  disk.faultPlan = undefined;
  store.lookAtSpace();
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(disk.sizeOf(BALLAST)).toBe(100_000);
  await store.close();
});

test("a store that closes while it allocates the ballast leaves none behind", async () => {
  const disk = new SimulatedDisk();
  const options = { minFreeBytes: 0, ballastBytes: 5_000_000 };
  const store = await openStore({ disk, definitions: [TABLE], options });
  store.lookAtSpace();
  await store.close();
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(disk.exists(BALLAST)).toBe(false);
});
