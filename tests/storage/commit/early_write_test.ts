/**
 * Tests writes that begin as soon as the disk is free. A large columnar commit is written in its
 * own tick, before its values are in the memtable. Commits that waited for a sync are written
 * before the writers of that sync are answered. Both kinds are rolled back or acknowledged like
 * any other commit.
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import type { LocalStore } from "../../../src/storage/mod.ts";
import { INT, type Row, TEXT } from "../../../src/types/mod.ts";
import { laterErrorCodeOf } from "../../support/error_codes.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { RecordingDisk } from "../../support/recording_disk.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  byColumns,
  commit,
  defineTable,
  failNextLogWrite,
  openStore,
  readRows,
} from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [INT, TEXT]);
const TEXT_OF_ROW = "x".repeat(200);
/** With this log file size, all early writes of a test fit into one file. */
const ONE_FILE = { walSegmentBytes: 1_048_576 };
/**
 * A number of rows, of more than 200 bytes each, that exceeds the threshold for an early write.
 */
const LARGE = 200;

function rowsFrom(first: number, count: number): Row[] {
  return Array.from({ length: count }, (_, index) => [first + index, `${TEXT_OF_ROW}${index}`]);
}

/** Inserts rows in columnar form. Returns the seq of the last row. */
function insert(store: LocalStore, rows: readonly Row[]): Seq {
  const write = { tableId: 1, owner: 0, operation: "insert", rows } as const;
  return store.apply({ writes: [byColumns(write, TABLE)] }).lastSeq;
}

function contentOf(store: LocalStore): Row[] {
  return readRows(store, TABLE).map(([, ...row]) => row);
}

/** Asserts that events with the given indexes exist, and occurred in the given order. */
function expectInOrder(disk: RecordingDisk, events: readonly number[]): void {
  expect(events, disk.describe().join("\n")).toEqual(events.toSorted((a, b) => a - b));
  expect(events.includes(-1)).toBe(false);
}

test("a large batch is written before its writer continues, and a small one with its group", async () => {
  const disk = new RecordingDisk(new SimulatedDisk());
  const store = await openStore({ disk, definitions: [TABLE], options: ONE_FILE });
  const small = insert(store, rowsFrom(0, 1));
  disk.mark("small applied");
  await store.durable(small);
  const large = insert(store, rowsFrom(1000, LARGE));
  disk.mark("large applied");
  await store.durable(large);
  disk.mark("large acknowledged");
  const smallApplied = disk.indexOf("mark", "small applied");
  const smallWritten = disk.indexOf("write", ".wal", smallApplied);
  const largeWritten = disk.indexOf("write", ".wal", smallWritten + 1);
  expectInOrder(disk, [
    smallApplied,
    smallWritten,
    largeWritten,
    disk.indexOf("mark", "large applied"),
    disk.indexOf("syncEnd", ".wal", largeWritten),
    disk.indexOf("mark", "large acknowledged"),
  ]);
  expect(contentOf(store)).toEqual([...rowsFrom(0, 1), ...rowsFrom(1000, LARGE)]);
  await store.close();
});

test("a large batch waits for the sync before it, and later writes for their own", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE], options: ONE_FILE });
  const seqs = [0, 1, 2, 3, 4].map((index) => insert(store, rowsFrom(index * 1000, LARGE)));
  await commit(store, 1, "update", [[1000, "changed"]]);
  await Promise.all(seqs.map((seq) => store.durable(seq)));
  const expected = [0, 1, 2, 3, 4].flatMap((index) => rowsFrom(index * 1000, LARGE));
  const unchanged = expected.filter(([id]) => id !== 1000);
  expect(contentOf(store)).toEqual([...unchanged, [1000, "changed"]]);
  const again = await openStore({ disk: disk.crash({ keep: "none" }), definitions: [TABLE] });
  expect(contentOf(again)).toEqual(contentOf(store));
  await Promise.all([store.close(), again.close()]);
});

test("commits that wait for a sync are written before the writers of that sync get their responses", async () => {
  const disk = new RecordingDisk(new SimulatedDisk());
  const store = await openStore({ disk, definitions: [TABLE], options: ONE_FILE });
  disk.mark("begin");
  const first = insert(store, rowsFrom(0, LARGE));
  const second = insert(store, rowsFrom(1000, 1));
  await store.durable(first);
  disk.mark("first acknowledged");
  expect(store.visibleSeq).toBe(first);
  await store.durable(second);
  disk.mark("second acknowledged");
  const firstWritten = disk.indexOf("write", ".wal", disk.indexOf("mark", "begin"));
  const secondWritten = disk.indexOf("write", ".wal", firstWritten + 1);
  expectInOrder(disk, [
    firstWritten,
    disk.indexOf("syncEnd", ".wal", firstWritten),
    secondWritten,
    disk.indexOf("mark", "first acknowledged"),
    disk.indexOf("syncEnd", ".wal", secondWritten),
    disk.indexOf("mark", "second acknowledged"),
  ]);
  await store.close();
});

test.each([
  ["ENOSPC", "DISK_FULL"],
  ["EIO", "COMMIT_UNKNOWN"],
] as const)(
  "%p while waiting commits are written leaves the synced ones acknowledged",
  async (code, errorCode) => {
    const disk = new SimulatedDisk();
    const store = await openStore({ disk, definitions: [TABLE], options: ONE_FILE });
    const first = insert(store, rowsFrom(0, LARGE));
    const hasFailed = failNextLogWrite(disk, { code });
    const second = laterErrorCodeOf(() => store.durable(insert(store, rowsFrom(1000, 1))));
    await store.durable(first);
    expect(hasFailed(), "the second was written by then").toBe(true);
    expect(await second).toBe(errorCode);
    expect(contentOf(store)).toEqual(rowsFrom(0, LARGE));
    await store.close();
    const again = await openStore({ disk: disk.crash({ keep: "all" }), definitions: [TABLE] });
    expect(contentOf(again)).toEqual(rowsFrom(0, LARGE));
    await again.close();
  },
);

test("a full disk rolls back a batch that was written early, and everything after it", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE], options: ONE_FILE });
  await store.durable(insert(store, rowsFrom(0, LARGE)));
  failNextLogWrite(disk, { code: "ENOSPC", bytesWritten: 5000 });
  const early = insert(store, rowsFrom(1000, LARGE));
  const behind = [insert(store, rowsFrom(2000, LARGE)), insert(store, rowsFrom(3000, 1))];
  const update = commit(store, 1, "update", [[1001, "changed"]]);
  const waiting = [early, ...behind].map((seq) => store.durable(seq));
  const refusals = await Promise.all(
    [...waiting, update].map((durable) => laterErrorCodeOf(() => durable)),
  );
  expect(refusals).toEqual(["DISK_FULL", "DISK_FULL", "DISK_FULL", "DISK_FULL"]);
  expect(store.appliedSeq).toBe(store.visibleSeq);
  expect(contentOf(store)).toEqual(rowsFrom(0, LARGE));
  // The keys of the refused batch can be inserted again. After the next frame, no trace of the
  // batch is left in the log.
  await store.durable(insert(store, rowsFrom(1000, 3)));
  const expected = [...rowsFrom(0, LARGE), ...rowsFrom(1000, 3)];
  expect(contentOf(store)).toEqual(expected);
  const again = await openStore({
    disk: disk.crash({ keep: "all" }),
    manifest,
    definitions: [TABLE],
  });
  expect(contentOf(again)).toEqual(expected);
  await Promise.all([store.close(), again.close()]);
});

test("any other failure of an early write is fatal, and no writer receives a refusal", async () => {
  const disk = new SimulatedDisk();
  let fatal: unknown;
  const onFatal = (cause: unknown): void => {
    fatal = cause;
  };
  const store = await openStore({ disk, definitions: [TABLE], options: ONE_FILE, onFatal });
  await store.durable(insert(store, rowsFrom(0, LARGE)));
  disk.faultPlan = (operation, path) =>
    operation === "write" && path.endsWith(".wal") ? { code: "EIO" } : undefined;
  const seqs = [insert(store, rowsFrom(1000, LARGE)), insert(store, rowsFrom(2000, 1))];
  expect(fatal, "its events belong to a later turn").toBeUndefined();
  const errorCodes = await Promise.all(
    seqs.map((seq) => laterErrorCodeOf(() => store.durable(seq))),
  );
  expect(errorCodes).toEqual(["COMMIT_UNKNOWN", "COMMIT_UNKNOWN"]);
  expect(fatal).toMatchObject({ code: "EIO" });
  expect(contentOf(store)).toEqual(rowsFrom(0, LARGE));
  await store.close();
});

test("close waits for the refusal of an early write", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE], options: ONE_FILE });
  disk.faultPlan = (operation, path) =>
    operation === "write" && path.endsWith(".wal") ? { code: "ENOSPC" } : undefined;
  const seq = insert(store, rowsFrom(0, LARGE));
  const refusal = laterErrorCodeOf(() => store.durable(seq));
  await store.close();
  expect(["DISK_FULL", "COMMIT_UNKNOWN"]).toContain((await refusal) ?? "none");
});

test("early writes continue over the ends of log files", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({
    disk,
    manifest,
    definitions: [TABLE],
    options: { walSegmentBytes: 262_144 },
  });
  const expected: Row[] = [];
  for (let index = 0; index < 20; index += 1) {
    const rows = rowsFrom(index * 1000, LARGE + index * 7);
    await store.durable(insert(store, rows));
    expected.push(...rows);
  }
  expect(contentOf(store)).toEqual(expected);
  const crashed = disk.crash({ keep: "none" });
  const again = await openStore({ disk: crashed, manifest, definitions: [TABLE] });
  expect(contentOf(again)).toEqual(expected);
  await Promise.all([store.close(), again.close()]);
});
