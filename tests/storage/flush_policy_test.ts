/**
 * Tests when tables are flushed, which depends on their number of rows, their age, and the sizes
 * of the memtables and the log.
 */
import { expect, test } from "bun:test";
import type { LocalStore, Store } from "../../src/storage/mod.ts";
import { laterErrorCodeOf } from "../support/error_codes.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { commit, defineTable, openStore, readRows } from "../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

const OTHER = defineTable(2, [{ kind: "int" }, { kind: "text" }]);

function rowsOf(store: Store, upTo?: number): unknown[][] {
  return readRows(store, TABLE, upTo === undefined ? {} : { upTo }).map(([, ...row]) => row);
}

test("a table is flushed when it has many rows or old ones", async () => {
  const clock = new ManualClock();
  const byRows = { ...TABLE, flush: { rowsMax: 3, ageMsMax: 1e12 } };
  const byAge = { ...OTHER, flush: { rowsMax: 1e9, ageMsMax: 1000 } };
  const store = await openStore({ clock, definitions: [byRows, byAge] });
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
  ]);
  await commit(store, 2, "insert", [[1, "a"]]);
  expect(store.segments()).toEqual([]);
  await commit(store, 1, "insert", [[3, "c"]]);
  await store.flush(1);
  expect(store.segments().map(({ tableId, rowCount }) => [tableId, rowCount])).toEqual([[1, 3]]);
  clock.advance(999);
  expect(store.stats(2).unflushedVersions).toBe(1);
  clock.advance(1);
  await store.flush(2);
  expect(store.segments().map(({ tableId }) => tableId)).toEqual([1, 2]);
  await store.close();
});

test("a table with fast writes is flushed every four seconds, or when its memtable is large", async () => {
  const clock = new ManualClock();
  const byRows = { ...TABLE, flush: { rowsMax: 2, ageMsMax: 1e12 } };
  const options = { walMaxBytes: 256 * 1024 };
  const store = await openStore({ clock, definitions: [byRows], options });
  let id = 0;
  const add = (body: string): Promise<unknown> => {
    id += 2;
    return commit(store, 1, "insert", [
      [id, body],
      [id + 1, body],
    ]);
  };
  const flushes = async (): Promise<number> => {
    for (let turn = 0; turn < 100; turn += 1) await clock.yield();
    return store.segments().length;
  };
  await add("a");
  expect(await flushes()).toBe(1);
  await add("b");
  await add("c");
  clock.advance(3999);
  expect(await flushes()).toBe(1);
  clock.advance(1);
  expect(await flushes()).toBe(2);
  while (store.stats(1).unflushedVersions < 8) await add("d".repeat(4000));
  expect(await flushes()).toBe(2);
  while (store.stats(1).unflushedVersions < 16) await add("e".repeat(4000));
  expect(await flushes()).toBe(3);
  await store.close();
});

test("a large memtable is flushed when the log begins another file, and on startup", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const clock = new ManualClock();
  const patient = { ...TABLE, flush: { rowsMax: 999_999, ageMsMax: 1e12 } };
  const parts = { disk, manifest, clock, definitions: [patient] };
  const bounds = { walMaxBytes: 1 << 30, memtableBytesMax: 100_000 };
  const store = await openStore({ ...parts, options: bounds });
  let id = 0;
  const others = async (): Promise<void> => {
    for (let turn = 0; turn < 100; turn += 1) await clock.yield();
  };
  const add = async (bytes: number): Promise<void> => {
    for (const end = bytes / 4000; id < end; id += 1) {
      await commit(store, 1, "insert", [[id, "x".repeat(4000)]]);
    }
    await others();
  };
  await add(96_000);
  expect(store.segments()).toEqual([]);
  await add(200_000);
  expect(store.segments()).toHaveLength(1);
  await store.close();

  const leftOver = await openStore({ ...parts, options: { ...bounds, memtableBytesMax: 1000 } });
  await others();
  expect(leftOver.segments()).toHaveLength(2);
  expect(leftOver.stats(1).unflushedVersions).toBe(0);
  await leftOver.close();
});

test("a few rows keep at most one full log file, even after a restart", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const clock = new ManualClock();
  const flush = { rowsMax: 999_999, ageMsMax: 1e12 };
  const definitions = [1, 2].map((tableId) =>
    Object.assign({}, TABLE, { tableId, name: `chat.messages${tableId}`, flush }),
  );
  const options = { walMaxBytes: 1 << 30, walSegmentBytes: 1 << 20 };
  const parts = { disk, manifest, clock, definitions };
  const others = async (): Promise<void> => {
    for (let turn = 0; turn < 100; turn += 1) await clock.yield();
  };
  const store = await openStore({ ...parts, options });
  let id = 0;
  /** Fills roughly the given number of log files with rows of the first table. */
  const fill = async (fileCount: number): Promise<void> => {
    for (const end = id + fileCount * 262; id < end; id += 1) {
      await commit(store, 1, "insert", [[id, "x".repeat(4000)]]);
    }
    await others();
  };
  const firstFile = (): number => manifest.load().firstLogFile ?? 0;
  const flushed = (of: LocalStore): readonly number[] => of.segments().map((each) => each.tableId);
  await commit(store, 2, "insert", [[1, "a"]]);
  await fill(0.5);
  expect(flushed(store)).toEqual([]);
  await fill(1);
  // Most rows in the log belong to the first table. The second table has only one row, but the log
  // would have to keep a whole file for it.
  expect(flushed(store)).toEqual([2]);
  expect(firstFile()).toBeLessThan(2);
  await store.flush(1);
  expect(firstFile()).toBe(2);
  await commit(store, 2, "insert", [[2, "b"]]);
  await fill(1);
  await store.flush(1);
  // Flushes that shorten the log are at least four seconds apart.
  expect(store.stats(2).unflushedVersions).toBe(1);
  await store.close();

  const started = await openStore({ ...parts, options });
  await others();
  expect(started.stats(2).unflushedVersions).toBe(0);
  expect(firstFile()).toBe(3);
  await started.close();
});

test("memtables that are too large together are flushed, largest first, down to half", async () => {
  const clock = new ManualClock();
  const flush = { rowsMax: 999_999, ageMsMax: 1e12 };
  const table = (tableId: number): typeof TABLE =>
    Object.assign({}, TABLE, { tableId, name: `chat.messages${tableId}`, flush });
  const store = await openStore({
    clock,
    definitions: [table(1), table(2), table(3)],
    options: { walMaxBytes: 1 << 30, memtableBytesMax: 100_000 },
  });
  const add = async (tableId: number, count: number): Promise<void> => {
    for (let id = 0; id < count; id += 1) {
      await commit(store, tableId, "insert", [[id, "x".repeat(4000)]]);
    }
    for (let turn = 0; turn < 100; turn += 1) await clock.yield();
  };
  const flushed = (): readonly number[] => store.segments().map(({ tableId }) => tableId);
  await add(1, 8);
  await add(2, 12);
  expect(flushed()).toEqual([]);
  await add(3, 6);
  // The second table has more rows than any other table. The other tables together have slightly
  // more than half of the rows.
  expect(flushed().toSorted((left, right) => left - right)).toEqual([1, 2]);
  expect(store.stats(3).unflushedVersions).toBe(6);
  await store.close();
});

test("rows that wait for the flush interval are flushed no later than their age requires", async () => {
  const clock = new ManualClock();
  const both = { ...TABLE, flush: { rowsMax: 2, ageMsMax: 3000 } };
  const store = await openStore({ clock, definitions: [both] });
  const flushes = async (): Promise<number> => {
    for (let turn = 0; turn < 100; turn += 1) await clock.yield();
    return store.segments().length;
  };
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
  ]);
  expect(await flushes()).toBe(1);
  await commit(store, 1, "insert", [[3, "c"]]);
  clock.advance(500);
  await commit(store, 1, "insert", [[4, "d"]]);
  clock.advance(2499);
  expect(await flushes()).toBe(1);
  clock.advance(1);
  expect(await flushes()).toBe(2);
  await store.close();
});

test("flush of an empty table writes nothing, and two simultaneous flushes write each row once", async () => {
  const store = await openStore({ definitions: [TABLE] });
  expect(await store.flush(1)).toEqual({ versions: 0 });
  await commit(store, 1, "insert", [[1, "a"]]);
  const first = store.flush(1);
  await commit(store, 1, "insert", [[2, "b"]]);
  const second = store.flush(1);
  expect((await first).versions).toBe(1);
  await second;
  expect(rowsOf(store)).toEqual([
    [1, "a"],
    [2, "b"],
  ]);
  expect(store.stats(1).unflushedVersions).toBe(0);
  await store.close();
});

test("a flush policy without an age sets no timer, and log files too small for a row are refused", async () => {
  const clock = new ManualClock();
  const ageless = { ...TABLE, flush: { rowsMax: Infinity, ageMsMax: Infinity } };
  const store = await openStore({ clock, definitions: [ageless] });
  await commit(store, 1, "insert", [[1, "a"]]);
  expect(clock.timerCount).toBe(0);
  await store.close();
  const small = { walSegmentBytes: 8192, rowBytesMax: 8192 };
  expect(await laterErrorCodeOf(() => openStore({ definitions: [TABLE], options: small }))).toBe(
    "INVALID_OPTION",
  );
});
