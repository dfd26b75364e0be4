/**
 * Tests blobs: a published blob is durable, a discarded blob is gone, and no blob is ever outside
 * the data directory.
 */
import { expect, test } from "bun:test";
import { AssertionError } from "../../../src/base/assert.ts";
import type { Disk } from "../../../src/base/disk.ts";
import { DiskError } from "../../../src/base/errors.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { BlobPath } from "../../../src/storage/contract/blob_store.ts";
import { LocalBlobStore } from "../../../src/storage/mod.ts";
import { RecordingDisk } from "../../support/recording_disk.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { failNth, SimulatedDisk } from "../../support/simulated_disk.ts";
import { SlowDisk } from "../../support/slow_disk.ts";

const PATH: BlobPath = { tableId: 4, owner: 12, sub: "f0001", storedName: "1-photo.png" };
const BYTES: Uint8Array<ArrayBuffer> = new TextEncoder().encode("hello");

function newDisk(): SimulatedDisk {
  const disk = new SimulatedDisk();
  disk.makeDirectory("/data");
  disk.syncDirectory("/");
  return disk;
}

function storeOn(disk: Disk): LocalBlobStore {
  return new LocalBlobStore({
    disk,
    dataPath: "/data",
    log: silentLog,
    random: new SeededRandom(1),
  });
}

/** Stages and publishes one blob. */
async function put(store: LocalBlobStore, change: Partial<BlobPath> = {}): Promise<BlobPath> {
  const path = { ...PATH, ...change };
  store.publish([{ blob: await store.stage(BYTES), path }]);
  return path;
}

/**
 * Runs some work, and returns the directories that it syncs, in order, as paths relative to the
 * data directory.
 */
async function syncedBy(disk: SimulatedDisk, work: () => Promise<unknown>): Promise<string[]> {
  const synced: string[] = [];
  disk.faultPlan = (operation, path) => {
    if (operation === "syncDirectory") synced.push(path.slice("/data".length));
    return undefined;
  };
  await work();
  disk.faultPlan = undefined;
  return synced;
}

test("stage returns size and hash, and publish moves the bytes to their place", async () => {
  const disk = newDisk();
  const store = storeOn(disk);
  const staged = await store.stage(BYTES);
  expect(staged.size).toBe(5);
  expect(staged.sha256).toBe("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  expect(store.read(PATH)).toBeUndefined();
  store.publish([{ blob: staged, path: PATH }]);
  expect(await store.read(PATH)?.bytes()).toEqual(BYTES);
  expect(disk.readFile("/data/files/4/12/f0001/1-photo.png")).toEqual(BYTES);
  expect(disk.list("/data/tmp")).toEqual([]);
});

test("a published blob survives every crash", async () => {
  const disk = newDisk();
  const store = storeOn(disk);
  const staged = await store.stage(BYTES);
  store.publish([{ blob: staged, path: PATH }]);
  for (let seed = 0; seed < 50; seed += 1) {
    const after = disk.crash({ keep: "some", random: new SeededRandom(seed) });
    expect(await storeOn(after).read(PATH)?.bytes()).toEqual(BYTES);
  }
});

test("a published blob survives a crash after a killed process had created its directory", async () => {
  const disk = newDisk();
  disk.makeDirectory("/data/files/4/12/f0001");
  const store = storeOn(disk);
  const staged = await store.stage(BYTES);
  store.publish([{ blob: staged, path: PATH }]);
  expect(storeOn(disk.crash({ keep: "none" })).read(PATH)).toBeDefined();
});

test("publish moves only synced bytes, and syncs the directory afterwards", async () => {
  const disk = new RecordingDisk(newDisk());
  const store = storeOn(disk);
  const staged = await store.stage(BYTES);
  store.publish([{ blob: staged, path: PATH }]);
  const written = disk.indexOf("write", ".blob");
  const synced = disk.indexOf("syncEnd", ".blob", written);
  const moved = disk.indexOf("rename", ".blob", synced);
  const named = disk.indexOf("syncDirectory", "/f0001", moved);
  expect([written, synced, moved, named].every((at) => at >= 0)).toBe(true);
});

test("publish syncs each directory once for everything that it moves, the upper ones first", async () => {
  const disk = newDisk();
  const store = storeOn(disk);
  const placed = await Promise.all(
    [12, 12, 13].map(async (owner, index) => {
      const path = { ...PATH, owner, storedName: `${index}.bin` };
      return { blob: await store.stage(BYTES), path };
    }),
  );
  const synced = await syncedBy(disk, async () => store.publish(placed));
  const [top, files, table, ...rest] = synced;
  expect([top, files, table]).toEqual(["", "/files", "/files/4"]);
  const owners = ["/files/4/12", "/files/4/13"];
  const subs = owners.map((owner) => `${owner}/f0001`);
  expect(rest).toEqual([...owners, ...subs]);
  for (let seed = 0; seed < 50; seed += 1) {
    const after = storeOn(disk.crash({ keep: "some", random: new SeededRandom(seed) }));
    for (const { path } of placed) expect(await after.read(path)?.bytes()).toEqual(BYTES);
  }
});

test("publish syncs no directory whose names are known to be durable", async () => {
  const disk = newDisk();
  const store = storeOn(disk);
  await put(store);
  const again = await syncedBy(disk, () => put(store, { storedName: "2.bin" }));
  expect(again).toEqual(["/files/4/12/f0001"]);
  const another = await syncedBy(disk, () => put(store, { sub: "f0002" }));
  expect(another).toEqual(["/files/4/12", "/files/4/12/f0002"]);
  // A newly opened store does not yet know any owner's directory.
  const opened = await syncedBy(disk, () => put(storeOn(disk), { storedName: "3.bin" }));
  expect(opened).toEqual(["", "/files", "/files/4", "/files/4/12", "/files/4/12/f0001"]);
});

test("publish does not rely on a directory whose sync failed, or that was removed", async () => {
  const disk = newDisk();
  const store = storeOn(disk);
  const failToPut = async (unsynced: string): Promise<void> => {
    disk.faultPlan = (operation, path) =>
      operation === "syncDirectory" && path === unsynced ? { code: "EIO" } : undefined;
    const blob = await store.stage(BYTES);
    expect(() => store.publish([{ blob, path: PATH }])).toThrow(DiskError);
    blob.discard();
  };
  await failToPut("/data/files");
  const all = ["", "/files", "/files/4", "/files/4/12", "/files/4/12/f0001"];
  expect(await syncedBy(disk, () => put(store))).toEqual(all);
  await store.removeOwner(12);
  expect(await syncedBy(disk, () => put(store))).toEqual(all.slice(2));
  await store.removeTable(4);
  expect(await syncedBy(disk, () => put(store))).toEqual(all.slice(1));
  await store.removeTable(4);
  await failToPut("/data/files");
  expect(await syncedBy(disk, () => put(store))).toEqual(all.slice(1));
  expect(storeOn(disk.crash({ keep: "none" })).read(PATH)).toBeDefined();
});

test("discard removes the bytes, staged or published, and can be repeated", async () => {
  const disk = newDisk();
  const store = storeOn(disk);
  const first = await store.stage(BYTES);
  first.discard();
  first.discard();
  expect(disk.list("/data/tmp")).toEqual([]);
  expect(() => store.publish([{ blob: first, path: PATH }])).toThrow(AssertionError);
  const second = await store.stage(BYTES);
  store.publish([{ blob: second, path: PATH }]);
  second.discard();
  expect(store.read(PATH)).toBeUndefined();
});

test("a failed write or sync leaves nothing behind", async () => {
  for (const operation of ["write", "sync"] as const) {
    const disk = newDisk();
    disk.faultPlan = failNth(operation, 1, { code: "ENOSPC", bytesWritten: 2 });
    const error: unknown = await storeOn(disk)
      .stage(BYTES)
      .catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(DiskError);
    expect(disk.list("/data/tmp")).toEqual([]);
  }
});

test("remove and removeTable remove files, and accept missing ones", async () => {
  const disk = newDisk();
  const store = storeOn(disk);
  for (const [index, owner] of [12, 13, 13].entries()) {
    const staged = await store.stage(BYTES);
    store.publish([{ blob: staged, path: { ...PATH, owner, storedName: `${index}.bin` } }]);
  }
  const other = { ...PATH, tableId: 5 };
  const staged = await store.stage(BYTES);
  store.publish([{ blob: staged, path: other }]);
  store.remove({ ...PATH, storedName: "0.bin" });
  store.remove({ ...PATH, storedName: "0.bin" });
  expect(store.read({ ...PATH, storedName: "0.bin" })).toBeUndefined();
  await store.removeTable(4);
  await store.removeTable(4);
  expect(disk.list("/data/files").map(({ name }) => name)).toEqual(["5"]);
  expect(store.read(other)).toBeDefined();
});

test("removeOwner removes the files of an owner in every table, and tableIds lists the tables", async () => {
  const disk = newDisk();
  const store = storeOn(disk);
  expect(store.tableIds()).toEqual([]);
  for (const [tableId, owner] of [
    [4, 12],
    [4, 13],
    [5, 12],
  ] as const) {
    await put(store, { tableId, owner });
  }
  disk.makeDirectory("/data/files/stray");
  expect(store.tableIds()).toEqual([4, 5]);
  const release = store.hold();
  await store.removeOwner(12);
  expect(store.read(PATH)).toBeDefined();
  release();
  // This call runs after the postponed removals.
  await store.removeOwner(12);
  expect(store.read(PATH)).toBeUndefined();
  expect(disk.list("/data/files/4").map(({ name }) => name)).toEqual(["13"]);
  expect(disk.list("/data/files/5")).toEqual([]);
});

test("a path that does not consist of plain names is refused", () => {
  const store = storeOn(newDisk());
  const bad: Partial<BlobPath>[] = [
    { storedName: ".." },
    { storedName: "../x" },
    { storedName: "a/b" },
    { storedName: "a\\b" },
    { storedName: "a\0" },
    { storedName: "" },
    { storedName: ".hidden" },
    { storedName: "x".repeat(300) },
    { sub: "../f0001" },
    { sub: "f1" },
    { sub: "" },
    { tableId: 0 },
    { tableId: -1 },
    { tableId: 1.5 },
    { owner: -1 },
    { owner: Number.NaN },
  ];
  for (const each of bad) {
    expect(() => store.read({ ...PATH, ...each }), JSON.stringify(each)).toThrow(AssertionError);
    expect(() => store.remove({ ...PATH, ...each })).toThrow(AssertionError);
  }
});

test("removeTable requests one file after the other, even if it is called twice", async () => {
  const disk = new SlowDisk(newDisk());
  const store = storeOn(disk);
  for (const owner of [12, 13, 14]) await put(store, { owner });
  const removed = Promise.all([store.removeTable(4), store.removeTable(4)]);
  await new Promise((resolve) => setImmediate(resolve));
  for (const count of [1, 2, 3]) {
    expect(disk.asked).toHaveLength(count);
    await disk.finish();
  }
  await removed;
  expect(disk.asked).toHaveLength(3);
  expect(store.tableIds()).toEqual([]);
});
