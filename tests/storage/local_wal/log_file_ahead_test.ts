/**
 * Tests a log that reaches the end of its file while the next file is still being created. The
 * commits that begin the next file wait for the file, in order, and none of them creates another
 * file.
 */
import { expect, test } from "bun:test";
import type { DiskFile, OpenOptions } from "../../../src/base/disk.ts";
import { DiskError } from "../../../src/base/errors.ts";
import type { LocalStore } from "../../../src/storage/mod.ts";
import { ForwardingDisk, ForwardingFile } from "../../support/forwarding_disk.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { commit, defineTable, openStore, readRows } from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

/** With these options, seven rows of a test fill a file. */
const OPTIONS = { walSegmentBytes: 16384, rowBytesMax: 4096 };

/** Delays the sync of log files created ahead of time until a test lets it finish. */
class GatedDisk extends ForwardingDisk {
  readonly gate = Promise.withResolvers<void>();
  aheadCount = 0;
  /** How many log files were created synchronously, within a tick. */
  atOnceCount = 0;

  override open(path: string, options: OpenOptions): DiskFile {
    const file = super.open(path, options);
    const isMade = options.exclusive === true && path.includes("/tmp/wal.");
    return isMade ? new GatedFile(file, this) : file;
  }
}

class GatedFile extends ForwardingFile {
  readonly #disk: GatedDisk;

  constructor(file: DiskFile, disk: GatedDisk) {
    super(file);
    this.#disk = disk;
  }

  override async sync(): Promise<void> {
    this.#disk.aheadCount += 1;
    await this.#disk.gate.promise;
    await super.sync();
  }

  override syncNow(): void {
    this.#disk.atOnceCount += 1;
    super.syncNow();
  }
}

interface Writing {
  readonly disk: GatedDisk;
  readonly below: SimulatedDisk;
  readonly store: LocalStore;
  /** The ids of the rows whose writers have been answered, in order. */
  readonly answered: number[];
  /** Settles once all writers have been answered. */
  readonly all: Promise<unknown>;
}

const IDS: readonly number[] = Array.from({ length: 12 }, (_, index) => index + 1);

/** Starts twelve commits, which need two files, and waits until the first file is full. */
async function writeToEnd(durability: "sync" | "relaxed"): Promise<Writing> {
  const below = new SimulatedDisk();
  const disk = new GatedDisk(below);
  const options = { ...OPTIONS, durability };
  const store = await openStore({ disk, definitions: [TABLE], options });
  expect(disk.atOnceCount, "the first file is made when the log begins").toBe(1);
  const answered: number[] = [];
  const all = Promise.all(
    IDS.map(async (id) => {
      await commit(store, 1, "insert", [[id, "x".repeat(2000)]]);
      answered.push(id);
    }),
  );
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return { below, disk, store, answered, all };
}

async function idsOn(disk: SimulatedDisk): Promise<unknown[]> {
  const store = await openStore({ disk, definitions: [TABLE], options: OPTIONS });
  const ids = readRows(store, TABLE).map(([, id]) => id);
  await store.close();
  return ids;
}

test.each(["sync", "relaxed"] as const)(
  "a log that is %s waits for its next file while the file is being created, and creates no other",
  async (durability) => {
    const { all, answered, below, disk, store } = await writeToEnd(durability);
    expect(answered.length).toBeGreaterThan(3);
    expect(answered).toEqual(IDS.slice(0, answered.length));
    expect(answered.length).toBeLessThan(IDS.length);
    expect(store.logFiles()).toHaveLength(1);
    disk.gate.resolve();
    await all;
    expect(answered).toEqual([...IDS]);
    expect(store.logFiles()).toHaveLength(2);
    expect([disk.aheadCount, disk.atOnceCount]).toEqual([1, 1]);
    await store.close();
    expect(await idsOn(below.crash({ keep: "none" }))).toEqual([...IDS]);
  },
);

test("a log whose next file could not be created ahead creates it when needed, and continues", async () => {
  const { all, answered, below, disk, store } = await writeToEnd("sync");
  disk.gate.reject(new DiskError("ENOSPC", "wal.2", "sync"));
  await all;
  expect(answered).toEqual([...IDS]);
  expect([disk.aheadCount, disk.atOnceCount]).toEqual([1, 2]);
  expect(await idsOn(below.crash({ keep: "none" }))).toEqual([...IDS]);
  await store.close();
});

test("a log that closes waits for the commits that wait for its next file", async () => {
  const { all, answered, below, disk, store } = await writeToEnd("sync");
  let isClosed = false;
  const close = async (): Promise<void> => {
    await store.close();
    isClosed = true;
  };
  const closing = close();
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  disk.gate.resolve();
  await Promise.all([all, closing]);
  expect(answered).toEqual([...IDS]);
  expect(await idsOn(below.crash({ keep: "none" }))).toEqual([...IDS]);
});
