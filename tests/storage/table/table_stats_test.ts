/**
 * Tests table statistics: counts, owners and bounds, wherever the rows are stored, and after an
 * owner has been erased or rows have expired.
 */
import { expect, test } from "bun:test";
import type { LocalStore, TableDefinition } from "../../../src/storage/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { commit, defineTable, openStore, readRows } from "../../support/store_fixture.ts";

const TABLE: TableDefinition = defineTable(1, [{ kind: "int" }, { kind: "text" }]);
const OWNERS = [3, 7, 9];

function idRows(first: number, count: number): [number, string][] {
  return Array.from({ length: count }, (_, index) => [first + index, `row ${first + index}`]);
}

/** Returns segments with rows of all owners, some replaced or deleted, and rows in memory. */
async function filled(definition: TableDefinition, clock = new ManualClock()): Promise<LocalStore> {
  const store = await openStore({ definitions: [definition], clock });
  for (const owner of OWNERS) await commit(store, 1, "insert", idRows(10 * owner, 10), owner);
  await store.flush(1);
  await commit(store, 1, "delete", [[30, null]], 3);
  await commit(store, 1, "update", [[31, "changed"]], 3);
  await commit(store, 1, "insert", idRows(1000, 4), 7);
  await store.flush(1);
  await commit(store, 1, "delete", [[1000, null]], 7);
  await commit(store, 1, "insert", idRows(5000, 5), 9);
  return store;
}

test("the live rows are those that a scan finds, for one owner and for all", async () => {
  const store = await filled(TABLE);
  const countOf = (owner: number): number => readRows(store, TABLE, { owner }).length;
  for (const owner of [...OWNERS, 4]) expect(store.liveRowCount(1, owner)).toBe(countOf(owner));
  expect(OWNERS.map((owner) => store.liveRowCount(1, owner))).toEqual([9, 13, 15]);
  expect(store.liveRowCount(1, undefined)).toBe(37);
  // Commits keep the total count up to date.
  await commit(store, 1, "delete", [[5000, null]], 9);
  await commit(store, 1, "insert", idRows(6000, 3), 3);
  expect(store.liveRowCount(1, undefined)).toBe(39);
  expect(store.stats(1).liveRows).toBe(39);
  await store.close();
});

test("versions are counted where they are stored, for one owner and for all", async () => {
  const store = await filled(TABLE);
  expect(store.owners(1)).toEqual(OWNERS);
  const all = store.flushedStats(1, undefined);
  expect(all).toMatchObject({ segments: 2, versions: 36, unflushedVersions: 6, isDamaged: false });
  const nine = store.flushedStats(1, 9);
  expect(nine).toMatchObject({ segments: 1, versions: 10, unflushedVersions: 5 });
  expect(nine.minSeq).toBeGreaterThan(all.minSeq);
  expect(nine.maxSeq).toBeLessThan(all.maxSeq);
  expect(store.flushedStats(1, 3)).toMatchObject({ segments: 2, versions: 12 });
  expect(store.flushedStats(1, 4)).toMatchObject({
    segments: 0,
    versions: 0,
    minSeq: 0,
    maxSeq: 0,
    unflushedVersions: 0,
  });
  const { maxSeq, minSeq, segments, unflushedVersions } = store.stats(1);
  expect([segments, unflushedVersions, minSeq, maxSeq]).toEqual([
    2,
    6,
    all.minSeq,
    store.visibleSeq,
  ]);
  await store.close();
});

test("an empty table has no statistics", async () => {
  const empty = await openStore({ definitions: [TABLE] });
  expect(empty.distinctValues(1, 1)).toBeUndefined();
  expect(empty.stats(1)).toMatchObject({ liveRows: 0, segments: 0, minSeq: 0, maxSeq: 0 });
  await empty.close();
});

test("an erased owner has no versions left, and the others keep theirs", async () => {
  const store = await filled(TABLE);
  const kept = OWNERS.slice(0, 2).map((owner) => readRows(store, TABLE, { owner }));
  // The owner's rows are in memory and in a segment.
  expect(await store.erase(1, 9)).toBe(15);
  expect(store.owners(1)).toEqual([3, 7]);
  expect(store.liveRowCount(1, undefined)).toBe(22);
  expect(readRows(store, TABLE, { owner: 9 })).toEqual([]);
  expect(OWNERS.slice(0, 2).map((owner) => readRows(store, TABLE, { owner }))).toEqual(kept);
  expect(await store.erase(1, 9)).toBe(0);
  await store.close();
});

test("segments in which every row has expired are removed, and a half-expired one is rewritten", async () => {
  const clock = new ManualClock();
  const ttlMs = 60_000;
  const definition = { ...defineTable(1, [{ kind: "int" }, { kind: "text" }], []), ttlMs };
  const store = await openStore({ definitions: [definition], clock });
  await commit(store, 1, "insert", idRows(1, 10));
  await store.flush(1);
  clock.advance(50_000);
  await commit(store, 1, "insert", idRows(11, 10));
  clock.advance(30_000);
  await commit(store, 1, "insert", idRows(21, 10));
  await store.flush(1);
  expect(store.liveRowCount(1, undefined)).toBe(20);
  store.dropExpired();
  await untilSegments(store, [20]);
  // The third group of ten rows was inserted 30 seconds after the second group, so only the second
  // group has expired by now.
  clock.advance(46_000);
  expect(store.liveRowCount(1, undefined)).toBe(10);
  store.dropExpired();
  await untilSegments(store, [10]);
  clock.advance(60_000);
  expect(store.stats(1).liveRows).toBe(0);
  store.dropExpired();
  await untilSegments(store, []);
  await store.close();
});

test("expired segments are removed although the clock was set back since", async () => {
  const clock = new ManualClock();
  const definition = { ...defineTable(1, [{ kind: "int" }, { kind: "text" }], []), ttlMs: 60_000 };
  const store = await openStore({ definitions: [definition], clock });
  await commit(store, 1, "insert", idRows(1, 10));
  await store.flush(1);
  const nowMs = clock.nowMs();
  clock.advance(60_000);
  expect(store.liveRowCount(1, undefined)).toBe(0);
  clock.setWall(nowMs);
  store.dropExpired();
  await untilSegments(store, []);
  await store.close();
});

async function untilSegments(store: LocalStore, rowCounts: readonly number[]): Promise<void> {
  const found = (): number[] => store.segments().map(({ rowCount }) => rowCount);
  for (let turn = 0; turn < 1000 && !Bun.deepEquals(found(), rowCounts); turn += 1) {
    await Bun.sleep(1);
  }
  expect(found()).toEqual([...rowCounts]);
}
