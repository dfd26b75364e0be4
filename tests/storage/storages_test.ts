/** Tests how storages are created, found, examined and refused, on a simulated disk. */
import { expect, test } from "bun:test";
import type { Disk, DiskFile, OpenOptions } from "../../src/base/disk.ts";
import { DatabaseError, DiskError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import { storageFault } from "../../src/storage/files.ts";
import { type ListedStorage, Storages } from "../../src/storage/mod.ts";
import { ForwardingDisk, ForwardingFile } from "../support/forwarding_disk.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import {
  DISK_OPERATIONS,
  failNth,
  failsOnce,
  type SimulatedDisk,
} from "../support/simulated_disk.ts";
import {
  DATA_PATH,
  diskWithStorages,
  makeStorage,
  STORAGES_PATH,
} from "../support/store_fixture.ts";

const ROOT = `${STORAGES_PATH}/fast`;

const WANTED = { storageId: "fast", root: ROOT };

function storagesOn(disk: Disk, seed = 2): Storages {
  const random = new SeededRandom(seed);
  const allowedRoots = [STORAGES_PATH];
  return new Storages({ disk, log: silentLog, random, allowedRoots, dataPath: DATA_PATH });
}

function faultOf(disk: SimulatedDisk, listed: ListedStorage): string | undefined {
  const storages = storagesOn(disk);
  storages.open([listed]);
  const fault = storages.faultOf(listed.storageId);
  storages.close();
  return fault;
}

/** Returns the reason why a storage is not created. */
async function refusalOf(creation: Promise<ListedStorage>): Promise<string> {
  return await creation.then(() => "it is created", String);
}

/**
 * A disk that completes syncs of files only when a test requests it. No caller may wait for such a
 * sync synchronously.
 */
class StalledDisk extends ForwardingDisk {
  readonly synced: PromiseWithResolvers<void> = Promise.withResolvers<void>();

  override open(path: string, options: OpenOptions): DiskFile {
    return new StalledFile(super.open(path, options), this.synced.promise);
  }
}

class StalledFile extends ForwardingFile {
  readonly #synced: Promise<void>;

  constructor(file: DiskFile, synced: Promise<void>) {
    super(file);
    this.#synced = synced;
  }

  override sync(): Promise<void> {
    return this.#synced;
  }

  override syncNow(): void {
    throw new Error("nobody is held up");
  }
}

test("Storages.create is complete or undone after a loss of power at any operation", async () => {
  const disk = diskWithStorages();
  const crashed: SimulatedDisk[] = [];
  const random = new SeededRandom(3);
  disk.faultPlan = () => {
    for (const keep of ["none", "all"] as const) crashed.push(disk.crash({ keep }));
    crashed.push(disk.crash({ keep: "some", random }));
    return undefined;
  };
  const listed = await storagesOn(disk).create(WANTED);
  disk.faultPlan = undefined;
  expect(faultOf(disk.crash({ keep: "none" }), listed)).toBeUndefined();
  let wholeCount = 0;
  for (const after of crashed) {
    const isWhole = storageFault(after, listed) === undefined;
    if (isWhole) wholeCount += 1;
    if (isWhole) expect(faultOf(after, listed)).toBeUndefined();
    else if (!after.exists(`${ROOT}/STORAGE`)) {
      expect((await storagesOn(after).create(WANTED)).root).toBe(ROOT);
    }
  }
  expect(wholeCount).toBeGreaterThan(0);
  expect(crashed.length).toBeGreaterThan(30);
});

test("Storages.create yields to other work while a disk takes long to sync", async () => {
  const disk = diskWithStorages();
  disk.holdsSyncs = true;
  const storages = storagesOn(disk);
  let isCreated = false;
  const created = storages.create(WANTED).then((listed) => {
    isCreated = true;
    return listed;
  });
  // These syncs are for the root and the probe file, the parent of the root, the storage's mark
  // file, and the mark file's name.
  for (let count = 0; count < 5; count += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(isCreated).toBe(false);
    expect(storages.faultOf("fast")).toBe("the catalog does not list it");
    disk.releaseSyncs();
  }
  expect(storageFault(disk, await created)).toBeUndefined();
  expect(storages.faultOf("fast")).toBeUndefined();
  storages.close();
});

test.each([
  [
    "its name",
    { storageId: "fast", root: `${STORAGES_PATH}/other` },
    /already exists, or is being/,
  ],
  ["its directory", { storageId: "other", root: ROOT }, /storage fast is in/],
  ["a directory in it", { storageId: "other", root: `${ROOT}/tmp` }, /storage fast is in/],
])("Storages.create gives %s to the statement that came first", async (_what, other, why) => {
  const disk = diskWithStorages();
  disk.holdsSyncs = true;
  const storages = storagesOn(disk);
  const first = storages.create(WANTED);
  expect(await refusalOf(storages.create(other))).toMatch(why);
  disk.holdsSyncs = false;
  disk.releaseSyncs();
  expect(storageFault(disk, await first)).toBeUndefined();
  expect(await refusalOf(storages.create(other))).toMatch(why);
  storages.drop("fast");
  expect(storageFault(disk, await storages.create({ ...WANTED, storageId: "next" }))).toBe(
    undefined,
  );
  storages.close();
});

test("Storages.create accepts the directory of a dropped storage once its last file is gone", async () => {
  const disk = diskWithStorages();
  const storages = storagesOn(disk);
  await storages.create(WANTED);
  const held = `${ROOT}/segments/default/t/1`;
  disk.makeDirectory(held);
  disk.open(`${held}/1.seg`, { create: true }).close();
  storages.drop("fast");
  expect(await refusalOf(storages.create(WANTED))).toMatch(/the directory is not empty/);
  disk.remove(`${held}/1.seg`);
  expect(storageFault(disk, await storages.create(WANTED))).toBeUndefined();
  storages.close();
});

test.each(DISK_OPERATIONS)(
  "Storages.create can be repeated after it failed at a %s",
  async (operation) => {
    for (let nth = 1; ; nth += 1) {
      const disk = diskWithStorages();
      const storages = storagesOn(disk);
      const isMet = failsOnce(disk, failNth(operation, nth, { code: "EIO" }));
      try {
        await storages.create(WANTED);
        expect(isMet() && operation !== "list").toBe(false);
      } catch (error) {
        expect(error).toBeInstanceOf(DatabaseError);
        expect((error as DatabaseError).code).toBe("STORAGE_UNAVAILABLE");
        disk.faultPlan = undefined;
        const listed = await storages.create(WANTED);
        expect(storageFault(disk, listed)).toBeUndefined();
      }
      storages.close();
      if (!isMet()) break;
    }
  },
);

test.each(DISK_OPERATIONS)(
  "Storages.drop releases the directory after it failed at a %s",
  async (operation) => {
    for (let nth = 1; ; nth += 1) {
      const disk = diskWithStorages();
      const storages = storagesOn(disk);
      await storages.create(WANTED);
      const isMet = failsOnce(disk, failNth(operation, nth, { code: "EIO" }));
      storages.drop("fast");
      disk.faultPlan = undefined;
      // The directory may still belong to a storage only if its mark file could not be removed.
      if (disk.exists(`${ROOT}/STORAGE`)) disk.remove(`${ROOT}/STORAGE`);
      expect(storageFault(disk, await storages.create(WANTED))).toBeUndefined();
      storages.close();
      if (!isMet()) break;
    }
  },
);

test("Storages.drop removes every directory except the root and those that contain a file", () => {
  for (const [path, left] of [
    ["lost+found", []],
    ["lost+found/1-99.seg", ["lost+found"]],
  ] as const) {
    const disk = diskWithStorages();
    const storages = storagesOn(disk);
    storages.open([makeStorage(disk, "fast")]);
    disk.makeDirectory(`${ROOT}/lost+found`);
    disk.makeDirectory(`${ROOT}/segments/default/t/1`);
    if (path !== "lost+found") disk.open(`${ROOT}/${path}`, { create: true }).close();
    storages.drop("fast");
    expect(disk.list(ROOT).map(({ name }) => name)).toEqual([...left]);
  }
});

test("Storages.open refuses a marker with any byte changed, and the marker of another storage", () => {
  const disk = diskWithStorages();
  const listed = makeStorage(disk, "fast");
  const bytes = disk.sizeOf(`${ROOT}/STORAGE`) ?? 0;
  for (let at = 0; at < bytes; at += 1) {
    const damaged = disk.restart();
    damaged.damage(`${ROOT}/STORAGE`, at);
    expect(faultOf(damaged, listed), `byte ${at}`).toBeDefined();
  }
  expect(faultOf(disk, { ...listed, key: "other" })).toMatch(/belongs to a different storage/);
  expect(faultOf(disk, { ...listed, storageId: "slow" })).toMatch(/belongs to a different storage/);
  expect(faultOf(disk, { ...listed, root: `${STORAGES_PATH}/slow` })).toMatch(/no directory/);
  expect(faultOf(disk, listed)).toBeUndefined();
});

test("Storages.open refuses a storage that another process uses, and one with a newer segment", () => {
  const disk = diskWithStorages();
  const listed = makeStorage(disk, "fast");
  const first = storagesOn(disk);
  first.open([listed]);
  expect(faultOf(disk, listed)).toMatch(/another process/);
  first.close();
  expect(faultOf(disk, listed)).toBeUndefined();
});

test("Storages.open reports a storage that cannot be written to until startup finds it writable", () => {
  const disk = diskWithStorages();
  const listed = makeStorage(disk, "fast");
  disk.faultPlan = (operation, path) =>
    operation === "open" && path === `${ROOT}/LOCK` ? { code: "EACCES" } : undefined;
  expect(faultOf(disk, listed)).toBe(`Cannot open ${ROOT}/LOCK: EACCES`);
  disk.faultPlan = undefined;
  expect(faultOf(disk, listed)).toBeUndefined();
});

test("Storages.adopt accepts only an existing, empty directory", () => {
  const disk = diskWithStorages();
  const storages = storagesOn(disk);
  expect(storages.adopt(WANTED)).toBeUndefined();
  disk.makeDirectory(ROOT);
  const adopted = storages.adopt(WANTED);
  expect(adopted?.key).toHaveLength(32);
  expect(storages.adopt(WANTED)).toBeUndefined();
  if (adopted !== undefined) expect(faultOf(disk, adopted)).toBeUndefined();
});

test("Storages.examine yields to other work while a disk takes long to sync", async () => {
  const disk = diskWithStorages();
  const listed = makeStorage(disk, "fast");
  const stalled = new StalledDisk(disk);
  const storages = storagesOn(stalled);
  storages.open([listed]);
  const examined = storages.examine("fast");
  expect(disk.list(`${ROOT}/tmp`)).toHaveLength(1);
  stalled.synced.reject(new DiskError("EIO", "/probe", "sync"));
  expect(await examined).toEqual({
    isReadable: true,
    isWritable: false,
    isListable: true,
    isDeletable: true,
    fault: "Cannot sync /probe: EIO",
  });
  expect(disk.list(`${ROOT}/tmp`)).toEqual([]);
  storages.close();
});
