/**
 * Tests how the store behaves when the disk is full or nearly full: commits are rolled back
 * completely, and the ballast provides the space in which deletes are still accepted.
 */
import { expect, test } from "bun:test";
import { DiskError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import type { Seq } from "../../src/base/seq.ts";
import { type LocalStore, SHARED_OWNER, type Store } from "../../src/storage/mod.ts";
import { type Row, valuesOf } from "../../src/types/mod.ts";
import { ForwardingDisk } from "../support/forwarding_disk.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { failNth, SimulatedDisk } from "../support/simulated_disk.ts";
import {
  commit,
  conditionOf,
  DATA_PATH,
  defineTable,
  openStore,
  readChanges,
  readRows,
} from "../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

const OTHER = defineTable(2, [{ kind: "int" }]);

function idsOf(store: Store): unknown[] {
  return readRows(store, TABLE).map(([, id]) => id);
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
  // Wiping overwrites existing bytes of the log, for which there is always space.
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
  // The keys of the refused group can be inserted again, because nothing of the group remains.
  await commit(store, 1, "insert", [[4, "d"]]);
  await commit(store, 1, "update", [[1, "e"]]);
  await commit(store, 1, "delete", [[2, "b"]]);
  expect(idsOf(store)).toEqual([3, 4, 1]);
  const crashed = disk.crash({ keep: "all" });
  const again = await openStore({ disk: crashed, manifest, definitions: [TABLE] });
  expect(idsOf(again)).toEqual([3, 4, 1]);
  await Promise.all([store.close(), again.close()]);
});

/** Returns the ids of all rows in an ordered scan; empty until the order has been built. */
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
    // The second request for this order builds it.
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
  // There is space for another log file. The commits are numerous enough to trigger a check of the
  // free space.
  for (let id = 0; id < 300; id += 1) await commit(store, 1, "insert", [[id, "x".repeat(100)]]);
  expect([fatal, idsOf(store).length]).toEqual([undefined, 300]);
  expect(() => store.lookAtSpace()).toThrow(DiskError);
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
  // Free space for one more file of that size is not enough, because rows must not use the
  // ballast.
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
