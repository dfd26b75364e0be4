/**
 * Tests the order in which the store writes and syncs files, and its behaviour when files cannot be
 * opened, a flush fails, or the disk stops at any point.
 */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import type { DiskFile, OpenOptions } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import { dataPathsOf } from "../../src/storage/files.ts";
import type { LocalStore, Store } from "../../src/storage/mod.ts";
import { ForwardingDisk, ForwardingFile } from "../support/forwarding_disk.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { RecordingDisk } from "../support/recording_disk.ts";
import { testThoroughly } from "../support/requirements.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { failNth, SimulatedDisk } from "../support/simulated_disk.ts";
import {
  commit,
  conditionOf,
  DATA_PATH,
  defineTable,
  openStore,
  readRows,
} from "../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

const PATHS = dataPathsOf(DATA_PATH);

function idsOf(store: Store): unknown[] {
  return readRows(store, TABLE).map(([, id]) => id);
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
  const needed = "the log needs another file, but the server cannot open any more files";
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

/** A full disk that refuses to sync the first log file if the sync is requested within a tick. */
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

/** Returns a full disk that refuses to make the second log file's directory entry durable. */
function fullAtName(): SimulatedDisk {
  const disk = new SimulatedDisk();
  disk.faultPlan = (operation, path) =>
    operation === "syncDirectory" && path === PATHS.wal && disk.exists(`${path}/0000000002.wal`)
      ? { code: "ENOSPC" }
      : undefined;
  return disk;
}

// In these cases, the state of a full disk is unknown, so the store stops instead of waiting for
// free space.
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
    // The failed flush and the later writes result in one segment each.
    expect(store.stats(1), operation).toMatchObject({ segments: 2, unflushedVersions: 0 });
    expect(idsOf(store)).toEqual([2]);
    const crashed = disk.crash({ keep: "none" });
    const again = await openStore({ disk: crashed, manifest, definitions: [TABLE] });
    expect(idsOf(again)).toEqual([2]);
    await Promise.all([store.close(), again.close()]);
  }
});

/** The acknowledged rows at one moment of a run, and the disk that the next process would find. */
interface Moment {
  readonly operation: string;
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  /** The text of each acknowledged row; undefined for a deleted row. */
  readonly acked: ReadonlyMap<number, string | undefined>;
  /** The pending write, which may or may not have survived. */
  readonly pending: { readonly id: number; readonly text: string | undefined } | undefined;
}

/**
 * Verifies that a crash before any single disk operation loses nothing that was acknowledged, and
 * reveals nothing that was never written. The test makes one run of commits, updates, deletes and
 * flushes over several log files. Before each operation, the disk is crashed in three ways and
 * opened again.
 */
testThoroughly("LocalStore recovers from a crash before any disk operation", async () => {
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
  // The recovered store accepts more commits.
  await commit(store, 1, "insert", [[999, "after"]]);
  expect(idsOf(store).at(-1)).toBe(999);
  await store.close();
}
