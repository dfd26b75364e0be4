/**
 * Verifies that a scan of a table in which most rows are not current yields to other work, and
 * that a scan that skips rows decodes only the rest.
 */
import { afterAll, expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import type { Seq } from "../../../src/base/seq.ts";
import type { LocalStore, Scan } from "../../../src/storage/mod.ts";
import { take, valuesOf } from "../../../src/types/mod.ts";
import { commit, defineTable, openStore } from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }]);
const ROWS = 150_000;

/**
 * Returns a table in which every row but the last is deleted. Its rows are in a segment or in
 * memory.
 */
async function makeMostlyDeleted({ isFlushed }: { isFlushed: boolean }): Promise<LocalStore> {
  const store = await openStore({ definitions: [TABLE] });
  const rows = Array.from({ length: ROWS + 1 }, (_, id) => [id]);
  await commit(store, 1, "insert", rows);
  if (isFlushed) await store.flush(1);
  await commit(store, 1, "delete", rows.slice(0, ROWS));
  return store;
}

const made = new Map<boolean, Promise<LocalStore>>();

/**
 * Returns a table in which most rows are deleted. The table is created only once, because the
 * tests only read it.
 */
function mostlyDeleted({ isFlushed }: { isFlushed: boolean }): Promise<LocalStore> {
  let store = made.get(isFlushed);
  if (store === undefined) made.set(isFlushed, (store = makeMostlyDeleted({ isFlushed })));
  return store;
}

afterAll(async () => {
  for (const store of made.values()) await (await store).close();
});

function scanOf(store: LocalStore, options: { mayBeEmpty?: boolean; batchRows?: number }): Scan {
  const upTo = store.visibleSeq;
  return store.scan(1, { owner: 0, upTo, columnIds: [1], ...options });
}

/** Returns the number of empty batches before the only row. */
function emptyBatchesOf(scan: Scan): number {
  let count = 0;
  for (let batch = scan.next(); batch?.rowCount === 0; batch = scan.next()) count += 1;
  return count;
}

for (const isFlushed of [true, false]) {
  const place = isFlushed ? "segment" : "memtable";
  test(`a scan with mayBeEmpty pauses among the hidden rows of a ${place}, and finds the others`, async () => {
    const store = await mostlyDeleted({ isFlushed });
    const scan = scanOf(store, { mayBeEmpty: true });
    expect(emptyBatchesOf(scan)).toBeWithin(1, 5);
    let rowCount = 1;
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      rowCount += batch.rowCount;
    }
    expect(rowCount).toBe(1);
    scan.close();
    const unbroken = scanOf(store, {});
    expect(unbroken.next()?.rowCount).toBe(1);
    expect(unbroken.next()).toBeUndefined();
    unbroken.close();
  });
}

test("a scan with defersNumbers decodes unselected values when they are read", async () => {
  const store = await openStore({ definitions: [TABLE] });
  const ids = [7, 1, 200, 5];
  await commit(
    store,
    1,
    "insert",
    ids.map((id) => [id]),
  );
  await store.flush(1);
  const options = { owner: 0, upTo: store.visibleSeq, columnIds: [1], reusesMemory: true };
  for (const defersNumbers of [false, true]) {
    const scan = store.scan(1, { ...options, defersNumbers });
    const column = defined(scan.next()?.columns[0], "the scan must have the column");
    expect("choose" in column).toBe(defersNumbers);
    expect(valuesOf(take(column, { rows: Uint32Array.of(0, 3), count: 2 }))).toEqual([7, 5]);
    expect(valuesOf(column)).toEqual(ids);
    scan.close();
  }
  await store.close();
});

test("a scan that returns one row at a time skips many hidden rows at once", async () => {
  const store = await mostlyDeleted({ isFlushed: true });
  const scan = scanOf(store, { mayBeEmpty: true, batchRows: 1 });
  expect(emptyBatchesOf(scan)).toBeLessThan(10);
  scan.close();
});

test("a scan prunes only row groups whose rows were all replaced by then", async () => {
  const store = await makeMostlyDeleted({ isFlushed: true });
  const before = (store.visibleSeq - ROWS) as Seq;
  // The deletions are recorded in memory at first, and then in a segment.
  for (const isFlushed of [false, true]) {
    if (isFlushed) await store.flush(1);
    const newest = scanOf(store, {});
    expect(newest.next()?.rowCount).toBe(1);
    expect(newest.next()).toBeUndefined();
    expect(newest.groupsRead).toBe(1);
    expect(newest.groupsPruned).toBe(isFlushed ? 5 : 2);
    newest.close();
    const older = store.scan(1, { owner: 0, upTo: before, columnIds: [1] });
    let rowCount = 0;
    for (let batch = older.next(); batch !== undefined; batch = older.next()) {
      rowCount += batch.rowCount;
    }
    expect(rowCount).toBe(ROWS + 1);
    expect(older.groupsRead).toBe(3);
    older.close();
    // A reader that asks for tombstones gets them.
    const all = store.scan(1, {
      owner: 0,
      upTo: store.visibleSeq,
      columnIds: [1],
      withTombstones: true,
      after: before,
    });
    let tombstoneCount = 0;
    for (let batch = all.next(); batch !== undefined; batch = all.next()) {
      tombstoneCount += batch.rowCount;
    }
    expect(tombstoneCount).toBe(ROWS);
    all.close();
  }
  await store.close();
});
