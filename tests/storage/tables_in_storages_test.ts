/**
 * Verifies that tables in separate storages lose nothing, whatever the disk does in the meantime.
 */
import { describe, expect, test } from "bun:test";
import { CorruptionError, DatabaseError, DiskError, isExpected } from "../../src/base/errors.ts";
import { type LogFields, silentLog } from "../../src/base/log.ts";
import { storageFault } from "../../src/storage/files.ts";
import type { ListedStorage, LocalStore } from "../../src/storage/mod.ts";
import { laterErrorCodeOf } from "../support/error_codes.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import {
  DISK_OPERATIONS,
  failNth,
  failsOnce,
  type SimulatedDisk,
} from "../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  diskWithStorages,
  inStorage,
  makeStorage,
  openStore,
  readRows,
  SMALL_MERGES,
  STORAGES_PATH,
} from "../support/store_fixture.ts";

const ROOT = `${STORAGES_PATH}/fast`;

const WANTED = { storageId: "fast", root: ROOT };

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

/** Returns the segment files below a directory. */
function filesIn(disk: SimulatedDisk, directory: string): string[] {
  return disk.list(directory).flatMap(({ isDirectory, name }) => {
    const path = `${directory}/${name}`;
    return isDirectory ? filesIn(disk, path) : [path];
  });
}

/** Returns the reason why a storage is not created. */
async function refusalOf(creation: Promise<ListedStorage>): Promise<string> {
  return await creation.then(() => "it is created", String);
}

describe("a table whose segments are in a storage", () => {
  test.each([false, true])(
    "a table that is dropped with its storage leaves its files to the last reader, and others' files alone: %p",
    async (isTaken) => {
      const disk = diskWithStorages();
      const storage = makeStorage(disk, "fast");
      const definitions = [inStorage(TABLE, storage)];
      const store = await openStore({ disk, storages: [storage], definitions });
      const { storages } = store;
      await commit(store, 1, "insert", [[1, "a"]]);
      await store.flush(1);
      await commit(store, 1, "update", [[1, "b"]]);
      await store.flush(1);
      const scan = store.scan(1, { owner: 0, upTo: store.visibleSeq, columnIds: [1] });
      store.dropTable(1);
      await storages.filesGone();
      storages.drop("fast");
      const segments = `${ROOT}/segments`;
      expect(filesIn(disk, segments)).toHaveLength(3);
      expect(await refusalOf(storages.create(WANTED))).toMatch(/the directory is not empty/);
      if (isTaken) disk.open(`${ROOT}/STORAGE`, { create: true }).close();
      scan.close();
      await storages.filesGone();
      if (isTaken) expect(filesIn(disk, segments)).toHaveLength(3);
      else expect(disk.list(ROOT)).toEqual([]);
      if (!isTaken) expect(storageFault(disk, await storages.create(WANTED))).toBeUndefined();
      await store.close();
    },
  );

  /** Drops a storage with a table while an open reader keeps the table's files. */
  async function droppedWhileRead(disk: SimulatedDisk): Promise<{
    store: LocalStore;
    scan: { close(): void };
  }> {
    const storage = makeStorage(disk, "fast");
    const definitions = [inStorage(TABLE, storage)];
    const store = await openStore({ disk, storages: [storage], definitions });
    await commit(store, 1, "insert", [[1, "a"]]);
    await store.flush(1);
    const scan = store.scan(1, { owner: 0, upTo: store.visibleSeq, columnIds: [1] });
    store.dropTable(1);
    await store.storages.filesGone();
    store.storages.drop("fast");
    return { store, scan };
  }

  test("a table that is dropped with its storage keeps files that others have put there in the meantime", async () => {
    const disk = diskWithStorages();
    const { scan, store } = await droppedWhileRead(disk);
    const others = [`${ROOT}/tmp/theirs`, `${ROOT}/segments/theirs/1.seg`];
    for (const path of others) {
      disk.makeDirectory(path.slice(0, path.lastIndexOf("/")));
      disk.open(path, { create: true }).close();
    }
    scan.close();
    await store.storages.filesGone();
    expect(filesIn(disk, ROOT).toSorted()).toEqual(others.toSorted());
    expect(disk.list(`${ROOT}/segments`).map(({ name }) => name)).toEqual(["theirs"]);
    await store.close();
  });

  test("a table that is dropped with its storage keeps a directory that another process locks", async () => {
    const disk = diskWithStorages();
    const { scan, store } = await droppedWhileRead(disk);
    const release = disk.lock(`${ROOT}/LOCK`);
    scan.close();
    await store.storages.filesGone();
    expect(disk.exists(`${ROOT}/segments/app/t/1`)).toBe(true);
    expect(filesIn(disk, ROOT)).toEqual([`${ROOT}/LOCK`]);
    release?.();
    store.storages.tidyDropped();
    expect(disk.list(ROOT)).toEqual([]);
    await store.close();
  });

  test.each(DISK_OPERATIONS)(
    "a table that is dropped with its storage can be created again after a failed %s",
    async (at) => {
      for (let nth = 1; ; nth += 1) {
        const disk = diskWithStorages();
        const { scan, store } = await droppedWhileRead(disk);
        const isMet = failsOnce(disk, failNth(at, nth, { code: "EIO" }));
        scan.close();
        await store.storages.filesGone();
        disk.faultPlan = undefined;
        if (disk.exists(`${ROOT}/segments`)) {
          for (const path of filesIn(disk, `${ROOT}/segments`)) disk.remove(path);
        }
        expect(storageFault(disk, await store.storages.create(WANTED))).toBeUndefined();
        await store.close();
        if (!isMet()) break;
      }
    },
  );

  test("a table in a storage has its files there, and unlisted files go to the storage's lost+found", async () => {
    const disk = diskWithStorages();
    const storages = [makeStorage(disk, "fast")];
    const manifest = new MemoryManifest();
    const definitions = [inStorage(TABLE, storages[0] ?? { ...WANTED, key: "" })];
    const parts = { disk, storages, manifest, definitions };
    const store = await openStore(parts);
    await commit(store, 1, "insert", [[1, "a"]]);
    await store.flush(1);
    expect(manifest.load().segments[0]?.home?.storageId).toBe("fast");
    expect(filesIn(disk, `${DATA_PATH}/segments`)).toEqual([]);
    await store.close();
    disk.open(`${ROOT}/segments/app/t/1/99.seg`, { create: true }).close();
    disk.open(`${ROOT}/tmp/98.seg`, { create: true }).close();
    const again = await openStore(parts);
    expect(filesIn(disk, `${ROOT}/segments`)).toEqual([`${ROOT}/segments/app/t/1/1.seg`]);
    expect(filesIn(disk, `${ROOT}/lost+found`)).toEqual([`${ROOT}/lost+found/1-99.seg`]);
    expect(filesIn(disk, `${ROOT}/tmp`)).toEqual([]);
    expect(readRows(again, TABLE).map(([, id]) => id)).toEqual([1]);
    await again.close();
  });

  test("a table is read although its storage cannot be swept, and the next start sweeps the storage", async () => {
    const disk = diskWithStorages();
    const storage = makeStorage(disk, "fast");
    const parts = {
      disk,
      storages: [storage],
      manifest: new MemoryManifest(),
      definitions: [inStorage(TABLE, storage)],
    };
    const store = await openStore(parts);
    await commit(store, 1, "insert", [[1, "a"]]);
    await store.flush(1);
    await store.close();
    const left = `${ROOT}/segments/app/t/1/99.seg`;
    disk.open(left, { create: true }).close();
    disk.faultPlan = (operation, path) =>
      operation === "rename" && path.startsWith(ROOT) ? { code: "ENOSPC" } : undefined;
    const unswept = await openStore(parts);
    expect(readRows(unswept, TABLE).map(([, id]) => id)).toEqual([1]);
    await unswept.close();
    expect(disk.exists(left)).toBe(true);
    disk.faultPlan = undefined;
    await (await openStore(parts)).close();
    expect(disk.exists(left)).toBe(false);
  });

  test("a table keeps deletion vectors of older segments in the data directory, until merges move them", async () => {
    const disk = diskWithStorages();
    const storage = makeStorage(disk, "fast");
    const manifest = new MemoryManifest();
    const options = { mergeBounds: { ...SMALL_MERGES, fanIn: 100 } };
    const before = await openStore({ disk, manifest, definitions: [TABLE], options });
    await commit(before, 1, "insert", [
      [1, "a"],
      [2, "b"],
    ]);
    await before.flush(1);
    await before.close();
    const definitions = [inStorage(TABLE, storage)];
    const parts = { disk, storages: [storage], manifest, definitions, options };
    const store = await openStore(parts);
    await commit(store, 1, "update", [[1, "c"]]);
    await store.flush(1);
    expect(filesIn(disk, `${DATA_PATH}/segments`).toSorted()).toEqual([
      `${DATA_PATH}/segments/1/1.1.dv`,
      `${DATA_PATH}/segments/1/1.seg`,
    ]);
    expect(filesIn(disk, `${ROOT}/segments`)).toEqual([`${ROOT}/segments/app/t/1/2.seg`]);
    await store.close();
    const again = await openStore(parts);
    expect(readRows(again, TABLE).map(([, id, text]) => [id, text])).toEqual([
      [2, "b"],
      [1, "c"],
    ]);
    await again.compact(1);
    expect(filesIn(disk, `${DATA_PATH}/segments`)).toEqual([]);
    // The listed segments are the current segment and its history segment.
    expect(manifest.load().segments.map(({ home }) => home?.storageId)).toEqual(["fast", "fast"]);
    await again.close();
  });

  test.each(DISK_OPERATIONS)(
    "a table in a storage loses nothing if a %s fails in a flush or a merge",
    async (operation) => {
      for (let nth = 1; nth < 60; nth += 1) {
        const disk = diskWithStorages();
        const storage = makeStorage(disk, "fast");
        const manifest = new MemoryManifest();
        const definitions = [inStorage(TABLE, storage)];
        const parts = { disk, storages: [storage], manifest, definitions };
        const store = await openStore(parts);
        await commit(store, 1, "insert", [
          [1, "a"],
          [2, "b"],
        ]);
        await store.flush(1);
        await commit(store, 1, "update", [[1, "c"]]);
        const plan = failNth(operation, nth, { code: "EIO" });
        const isMet = failsOnce(disk, (...args) =>
          args[1].startsWith(STORAGES_PATH) ? plan(...args) : undefined,
        );
        const pass = (error: unknown): void => {
          if (!isExpected(error)) throw error;
        };
        await store.flush(1).catch(pass);
        await store.compact(1).catch(pass);
        disk.faultPlan = undefined;
        await store.close();
        const again = await openStore({ ...parts, disk: disk.crash({ keep: "none" }) });
        expect(
          readRows(again, TABLE).map(([, id, text]) => [id, text]),
          `${operation} ${nth}`,
        ).toEqual([
          [2, "b"],
          [1, "c"],
        ]);
        await again.close();
        if (!isMet()) break;
      }
    },
  );

  test("a table in a storage accepts no rows while its disk is full, but other tables do", async () => {
    const disk = diskWithStorages();
    const storage = makeStorage(disk, "fast");
    const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
    const definitions = [inStorage(TABLE, storage), other];
    const store = await openStore({ disk, storages: [storage], definitions });
    await commit(store, 1, "insert", [[1, "a"]]);
    disk.faultPlan = (operation, path) =>
      operation === "write" && path.startsWith(ROOT) ? { code: "ENOSPC" } : undefined;
    await store.flush(1).catch((error: unknown) => expect(error).toBeInstanceOf(DiskError));
    const insert = (): unknown => commit(store, 1, "insert", [[2, "b"]]);
    expect(await laterErrorCodeOf(insert)).toBe("DISK_FULL");
    await commit(store, 1, "delete", [[1, "a"]]);
    await commit(store, 2, "insert", [[1, "a"]]);
    expect(store.isReadOnly).toBe(false);
    disk.faultPlan = undefined;
    await store.flush(1);
    await commit(store, 1, "insert", [[2, "b"]]);
    expect(readRows(store, TABLE).map(([, id]) => id)).toEqual([2]);
    await store.close();
  });

  test("a table in a storage accepts no rows while the storage is missing, until a flush finds it again", async () => {
    const disk = diskWithStorages();
    const storage = makeStorage(disk, "fast");
    const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
    const clock = new ManualClock();
    const definitions = [inStorage(TABLE, storage), other];
    const store = await openStore({ disk, clock, storages: [storage], definitions });
    const insert = (id: number): Promise<unknown> => commit(store, 1, "insert", [[id, "a"]]);
    const failedFlush = async (): Promise<void> => {
      await store.flush(1).catch((error: unknown) => expect(isExpected(error)).toBe(true));
    };
    await insert(1);
    disk.rename(ROOT, `${STORAGES_PATH}/away`);
    await failedFlush();
    expect(() => insert(2)).toThrow(/storage fast does not accept its rows: .* no directory/);
    expect(await laterErrorCodeOf(() => insert(2))).toBe("STORAGE_UNAVAILABLE");
    await commit(store, 2, "insert", [[1, "a"]]);
    disk.rename(`${STORAGES_PATH}/away`, ROOT);
    clock.advance(5000);
    await store.flush(1);
    await insert(2);
    disk.faultPlan = (operation, path) =>
      operation === "open" && path.startsWith(`${ROOT}/tmp`) ? { code: "EACCES" } : undefined;
    await failedFlush();
    expect(await laterErrorCodeOf(() => insert(3))).toBe("STORAGE_UNAVAILABLE");
    expect(readRows(store, TABLE).map(([, id]) => id)).toEqual([1, 2]);
    disk.faultPlan = undefined;
    await store.flush(1);
    await insert(3);
    await store.close();
  });

  test("a table with a missing storage is named when the log grows, and the log shrinks once it is back", async () => {
    const disk = diskWithStorages();
    const storage = makeStorage(disk, "fast");
    const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
    const warnings: string[] = [];
    const parts = {
      disk,
      storages: [storage],
      manifest: new MemoryManifest(),
      definitions: [inStorage(TABLE, storage), other],
      options: { walSegmentBytes: 65_536, walMaxBytes: 262_144, rowBytesMax: 16_384 },
      log: {
        ...silentLog,
        warn: (message: string, fields?: LogFields) => {
          warnings.push(`${message}: ${String(fields?.["table"])}`);
        },
      },
    };
    const before = await openStore(parts);
    await commit(before, 1, "insert", [[1, "a"]]);
    await before.close();
    disk.rename(ROOT, `${STORAGES_PATH}/away`);
    const without = await openStore(parts);
    for (let id = 0; id < 40; id += 1) {
      await commit(without, 2, "insert", [[id, "x".repeat(10_000)]]);
    }
    await without.flush(2);
    expect(without.condition().logBytes).toBeGreaterThan(262_144);
    expect(new Set(warnings)).toEqual(
      new Set(["the log keeps growing because a table cannot be flushed: app.t1"]),
    );
    await without.close();
    disk.rename(`${STORAGES_PATH}/away`, ROOT);
    const again = await openStore(parts);
    await again.flush(1);
    expect(again.condition().logBytes).toBeLessThanOrEqual(262_144);
    await again.close();
  });

  test("a table in a storage does not count as full when the disk of the data directory is", async () => {
    const disk = diskWithStorages();
    const storage = makeStorage(disk, "fast");
    const manifest = new MemoryManifest();
    const definitions = [inStorage(TABLE, storage)];
    const store = await openStore({ disk, manifest, storages: [storage], definitions });
    await commit(store, 1, "insert", [[1, "a"]]);
    const publish = manifest.publish.bind(manifest);
    manifest.publish = () => {
      throw new DatabaseError("DISK_FULL", "Cannot change the catalog: the disk is full");
    };
    await store.flush(1).catch((error: unknown) => expect(error).toBeInstanceOf(DatabaseError));
    manifest.publish = publish;
    expect(store.isReadOnly).toBe(true);
    await store.close();
  });

  describe("a table whose storage was replaced by another while open", () => {
    const entryPath = `${ROOT}/segments/app/t/1/1.seg`;

    /**
     * Returns a store with a flushed table whose segment has been replaced by a file from a
     * different storage.
     */
    async function withAnother(): Promise<{
      disk: SimulatedDisk;
      manifest: MemoryManifest;
      again: () => Promise<LocalStore>;
    }> {
      const disk = diskWithStorages();
      const storage = makeStorage(disk, "fast");
      const manifest = new MemoryManifest();
      const parts = {
        disk,
        storages: [storage],
        manifest,
        definitions: [inStorage(TABLE, storage)],
      };
      const before = await openStore(parts);
      await commit(before, 1, "insert", [[1, "a"]]);
      await before.flush(1);
      await before.close();
      return { disk, manifest, again: () => openStore(parts) };
    }

    function swap(disk: SimulatedDisk): void {
      disk.rename(ROOT, `${STORAGES_PATH}/away`);
      disk.rename(makeStorage(disk, "other").root, ROOT);
      disk.makeDirectory(entryPath.slice(0, entryPath.lastIndexOf("/")));
      const file = disk.open(entryPath, { create: true });
      file.write(Buffer.alloc(4096, 1), 0);
      file.close();
    }

    async function expectWhole(
      disk: SimulatedDisk,
      manifest: MemoryManifest,
      again: () => Promise<LocalStore>,
    ): Promise<void> {
      expect(disk.exists(entryPath)).toBe(true);
      expect(manifest.load().segments.some(({ quarantined }) => quarantined)).toBe(false);
      disk.rename(ROOT, `${STORAGES_PATH}/another`);
      disk.rename(`${STORAGES_PATH}/away`, ROOT);
      const store = await again();
      expect(readRows(store, TABLE).map(([, id]) => id)).toEqual([1]);
      await store.close();
    }

    test("a table whose storage was replaced is refused, and none of its segments counts as damaged", async () => {
      const { again, disk, manifest } = await withAnother();
      const store = await again();
      swap(disk);
      expect(() => readRows(store, TABLE)).toThrow(
        /Cannot read storage fast: .* a different storage or database/,
      );
      expect(() => readRows(store, TABLE)).toThrow(
        /Cannot use table .* a different storage or database/,
      );
      await store.close();
      await expectWhole(disk, manifest, again);
    });

    test("a table whose storage returns forgets the damage in the replacement", async () => {
      const { again, disk, manifest } = await withAnother();
      const store = await again();
      swap(disk);
      const [entry] = manifest.load().segments;
      if (entry === undefined) throw new Error("there is a segment");
      store.noteDamage(entry, new CorruptionError(entryPath, 0, "its checksum is wrong"));
      expect(() => readRows(store, TABLE)).toThrow(/a different storage or database/);
      await store.close();
      await expectWhole(disk, manifest, again);
    });

    test("a table whose storage was replaced removes no file there when it is dropped", async () => {
      const { again, disk } = await withAnother();
      const store = await again();
      swap(disk);
      store.dropTable(1);
      await store.close();
      expect(disk.exists(entryPath)).toBe(true);
    });
  });

  test("a table is refused while its storage is missing, and its rows in the log are kept", async () => {
    const disk = diskWithStorages();
    const storage = makeStorage(disk, "fast");
    const manifest = new MemoryManifest();
    const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
    const definitions = [inStorage(TABLE, storage), other];
    const parts = { disk, storages: [storage], manifest, definitions };
    const store = await openStore(parts);
    await commit(store, 1, "insert", [
      [1, "a"],
      [2, "b"],
    ]);
    await store.flush(1);
    await commit(store, 1, "update", [[1, "c"]]);
    await store.close();
    disk.rename(ROOT, `${STORAGES_PATH}/away`);
    for (let start = 0; start < 2; start += 1) {
      const without = await openStore(parts);
      expect(() => readRows(without, TABLE)).toThrow(/storage fast/);
      expect(() =>
        without.lookup(1, { owner: 0, key: [1], upTo: without.visibleSeq, columnIds: [] }),
      ).toThrow(/storage fast/);
      const insert = (): unknown => commit(without, 1, "insert", [[3, "d"]]);
      expect(await laterErrorCodeOf(insert)).toBe("STORAGE_UNAVAILABLE");
      expect(() =>
        without.stage({}).add({ tableId: 1, owner: 0, operation: "insert", rows: [[3, "d"]] }),
      ).toThrow(/storage fast/);
      expect(() => without.flush(1)).toThrow(/storage fast/);
      await commit(without, 2, "insert", [[start, "x"]]);
      await without.flush(2);
      expect(manifest.load().segments.some(({ quarantined }) => quarantined)).toBe(false);
      await without.close();
    }
    disk.rename(`${STORAGES_PATH}/away`, ROOT);
    const again = await openStore(parts);
    expect(readRows(again, TABLE).map(([, id, text]) => [id, text])).toEqual([
      [2, "b"],
      [1, "c"],
    ]);
    await again.close();
  });
});
