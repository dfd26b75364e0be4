/**
 * Verifies that a flush or a merge holds up no other work while it waits for the directory entries
 * of its new files to become durable. In the meantime, rows can be changed and tables can be
 * dropped.
 */
import { afterEach, describe, expect, test } from "bun:test";
import type { DiskFile, OpenOptions } from "../../../src/base/disk.ts";
import type { LocalStore } from "../../../src/storage/mod.ts";
import { ForwardingDisk } from "../../support/forwarding_disk.ts";
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
const SEGMENTS = `${DATA_PATH}/segments/1`;

/** The file name of the segment that a flush or a merge creates. */
const SEGMENT_OF = { flush: "1.seg", compact: "3.seg" } as const;

/**
 * A disk that can be stopped. From then on, it syncs directories only when a test requests it. No
 * caller may wait for such a sync synchronously.
 */
class GatedDisk extends ForwardingDisk {
  isShut = false;
  readonly reached: PromiseWithResolvers<void> = Promise.withResolvers<void>();
  readonly opened: PromiseWithResolvers<void> = Promise.withResolvers<void>();
  /** The paths of unpublished segments that were not opened for durable writes. */
  readonly delayed: string[] = [];

  override open(path: string, options: OpenOptions): DiskFile {
    const isPending = options.create === true && path.endsWith(".seg");
    if (isPending && options.writesThrough !== true) this.delayed.push(path);
    return super.open(path, options);
  }

  override syncDirectory(path: string): void {
    if (this.isShut) throw new Error(`nobody is held up by ${path}`);
    super.syncDirectory(path);
  }

  override async syncDirectorySoon(path: string): Promise<void> {
    if (this.isShut) {
      this.reached.resolve();
      await this.opened.promise;
    }
    await this.disk.syncDirectorySoon(path);
  }
}

const stores: LocalStore[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

async function opened(disk: GatedDisk, manifest: MemoryManifest): Promise<LocalStore> {
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  stores.push(store);
  return store;
}

describe.each(["flush", "compact"] as const)("names stay consistent during a %s", (work) => {
  /**
   * Starts a flush or a merge, and returns while the directory entries of its files are being
   * synced.
   */
  async function begun(): Promise<{
    disk: GatedDisk;
    manifest: MemoryManifest;
    store: LocalStore;
    ended: Promise<unknown>;
  }> {
    const disk = new GatedDisk(new SimulatedDisk());
    const manifest = new MemoryManifest();
    const store = await opened(disk, manifest);
    await commit(store, 1, "insert", [[1, "a"]]);
    if (work === "compact") await store.flush(1);
    await commit(store, 1, "insert", [[2, "b"]]);
    if (work === "compact") await store.flush(1);
    disk.isShut = true;
    const ended = store[work](1).catch((error: unknown) => error);
    await disk.reached.promise;
    return { disk, manifest, store, ended };
  }

  const rowsOf = (store: LocalStore): unknown => readRows(store, TABLE).map(([, ...row]) => row);

  test("rows that change while file names are synced stay changed, even after a restart", async () => {
    const { disk, ended, manifest, store } = await begun();
    await commit(store, 1, "update", [[1, "c"]]);
    await commit(store, 1, "delete", [[2, null]]);
    disk.opened.resolve();
    expect(await ended).not.toBeInstanceOf(Error);
    expect(disk.list(SEGMENTS).map(({ name }) => name)).toContain(SEGMENT_OF[work]);
    expect(rowsOf(store)).toEqual([[1, "c"]]);
    expect(disk.delayed).toEqual([]);
    disk.isShut = false;
    await store.close();
    stores.length = 0;
    expect(rowsOf(await opened(disk, manifest.restart()))).toEqual([[1, "c"]]);
  });

  test("a table that is dropped while file names are synced leaves no file", async () => {
    const { disk, ended, store } = await begun();
    store.dropTable(1);
    disk.opened.resolve();
    expect(await ended).not.toBeInstanceOf(Error);
    expect(disk.exists(SEGMENTS) ? disk.list(SEGMENTS) : []).toEqual([]);
    expect(disk.list(`${DATA_PATH}/tmp`)).toEqual([]);
  });
});
