/**
 * Verifies that a scan in the order of a column returns the rows of a normal scan, sorted. The
 * test compares random versions of two owners, replaced, deleted, rolled back, flushed and merged,
 * with a sort of a scan.
 */
import { describe, expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import type { Seq } from "../../../src/base/seq.ts";
import {
  type LocalStore,
  type OrderedScan,
  SEQ_COLUMN_ID,
  type TableDefinition,
} from "../../../src/storage/mod.ts";
import {
  BIGINT,
  comparatorFor,
  JSON_TEXT,
  type Row,
  TEXT,
  type Value,
  valuesOf,
} from "../../../src/types/mod.ts";
import { evictSharedCache, sharedCacheBytes } from "../../support/chunk_caches.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { commit, defineTable, openStore, readRows } from "../../support/store_fixture.ts";
import { amountOf } from "../../support/thoroughness.ts";

const TABLE = defineTable(1, [BIGINT, TEXT, BIGINT]);
const OWNERS = [0, 5];

interface Asked {
  readonly columnId: number;
  readonly isDescending?: boolean;
  readonly min?: Value;
  readonly max?: Value;
  readonly owner?: number;
  readonly upTo?: number;
  readonly after?: number;
  readonly batchRows?: number;
}

function open(store: LocalStore, { tableId, columns }: TableDefinition, asked: Asked): OrderedScan {
  const {
    batchRows: _,
    isDescending = false,
    owner = 0,
    upTo = store.visibleSeq,
    after = 0,
  } = asked;
  const options = {
    ...asked,
    isDescending,
    owner,
    upTo: upTo as Seq,
    after: after as Seq,
    columnIds: [SEQ_COLUMN_ID, ...columns.map(({ columnId }) => columnId)],
  };
  // An order is built only when it is requested for the second time.
  const scan = store.scanOrdered(tableId, options) ?? store.scanOrdered(tableId, options);
  return defined(scan, "there must be an order");
}

function readOrdered(store: LocalStore, table: TableDefinition, asked: Asked): Value[][] {
  const scan = open(store, table, asked);
  const rows: Value[][] = [];
  for (;;) {
    const batch = scan.next(asked.batchRows ?? 100);
    if (batch === undefined) break;
    const vectors = batch.columns.map((column) => valuesOf(column));
    for (let row = 0; row < batch.rowCount; row += 1) {
      rows.push(vectors.map((values) => values[row] ?? null));
    }
  }
  scan.close();
  return rows;
}

/**
 * Asserts that an ordered scan returns the same rows as a normal scan, in order. Rows with equal
 * values may come in any order.
 */
function expectSame(store: LocalStore, table: TableDefinition, asked: Asked): void {
  const { columnId, isDescending = false, max, min, owner = 0, upTo = store.visibleSeq } = asked;
  const column = defined(table.columns[columnId - 1], "the position must be in the table");
  const compare = comparatorFor(column.type);
  const valueOf = (row: readonly Value[]): Value => row[columnId] ?? null;
  const expected = readRows(store, table, { owner, upTo, after: asked.after ?? 0 }).filter(
    (row) =>
      (min === undefined || compare(valueOf(row), min) >= 0) &&
      (max === undefined || compare(valueOf(row), max) <= 0),
  );
  const found = readOrdered(store, table, asked);
  const isInOrder = found.every((row, i) => {
    const by = i === 0 ? 0 : compare(valueOf(found[i - 1] ?? []), valueOf(row));
    return isDescending ? by >= 0 : by <= 0;
  });
  expect(isInOrder).toBe(true);
  const bySeq = (left: Row, right: Row): number => Number(left[0]) - Number(right[0]);
  // Compares the rows as text, because comparing so many rows one by one takes seconds.
  const textOf = (rows: readonly Row[]): string => rows.toSorted(bySeq).map(String).join("\n");
  expect(textOf(found)).toBe(textOf(expected));
}

function expectSameOfAll(store: LocalStore, upTo: number): void {
  for (const owner of OWNERS) {
    for (const isDescending of [false, true]) {
      expectSame(store, TABLE, { columnId: 1, isDescending, owner, upTo });
      expectSame(store, TABLE, { columnId: 1, isDescending, owner, upTo, min: 9000, max: 20_000 });
      expectSame(store, TABLE, { columnId: 2, isDescending, owner, upTo, min: "k5", max: "k7" });
      expectSame(store, TABLE, { columnId: 3, isDescending, owner, upTo, min: 3 });
    }
  }
}

/**
 * Returns a store with versions of every kind in memory, in segments and in history, and the seqs
 * between the steps that created them.
 */
async function filledStore(): Promise<{ store: LocalStore; seqs: number[] }> {
  const random = new SeededRandom(3);
  const store = await openStore({ definitions: [TABLE] });
  const seqs: number[] = [];
  const rowOf = (key: number): Row => [key, `k${random.below(1000)}`, random.below(50)];
  for (const [round, flushes] of [true, true, false].entries()) {
    for (const owner of OWNERS) {
      const keys = Array.from({ length: 2500 }, (_, i) => ((i * 3 + round) * 7919) % 40_009);
      await commit(store, 1, "insert", keys.map(rowOf), owner);
      seqs.push(store.visibleSeq);
      const others = keys.filter(() => random.chance(0.1));
      await commit(store, 1, "update", others.map(rowOf), owner);
      const gone = keys.filter(() => random.chance(0.1));
      await commit(store, 1, "delete", gone.map(rowOf), owner);
      seqs.push(store.visibleSeq);
    }
    if (flushes) await store.flush(1);
  }
  return { store, seqs };
}

describe("scanOrdered reads rows in order", () => {
  test("scanOrdered reads the rows of a scan in order, at every seq and after a merge", async () => {
    const { store, seqs } = await filledStore();
    for (const seq of seqs.slice(-amountOf({ usual: 1, thorough: 3 }))) expectSameOfAll(store, seq);
    await store.flush(1);
    await store.compact(1);
    expectSameOfAll(store, store.visibleSeq);
    // Rows that were replaced after this seq are in history, which has no orders.
    const older = { columnId: 1, upTo: defined(seqs.at(-2), "there must be an earlier state") };
    expect(() => open(store, TABLE, older)).toThrow("there must be an order");
    await store.close();
  });

  test("scanOrdered reads no rows at or below its lower seq, and the rows since its last order", async () => {
    const { store, seqs } = await filledStore();
    const after = seqs[1] ?? 0;
    for (const columnId of [1, 2, 3]) expectSame(store, TABLE, { columnId, after });
    for (let key = 50_000; key < 50_020; key += 1) {
      await commit(store, 1, "insert", [[key, `k${key % 1000}`, 7]]);
      expectSame(store, TABLE, { columnId: 2, after, min: "k0", max: "k02" });
    }
    await store.close();
  });

  test("scanOrdered continues while its rows are replaced, flushed and merged", async () => {
    const { store } = await filledStore();
    const expected = readRows(store, TABLE).map(([seq]) => Number(seq));
    const scan = open(store, TABLE, { columnId: 1 });
    const found: number[] = [];
    const take = (): void => {
      const batch = scan.next(3000);
      const [seqs] = batch?.columns ?? [];
      if (seqs !== undefined) found.push(...valuesOf(seqs).map(Number));
    };
    for (let i = 0; i < 4; i += 1) take();
    await commit(
      store,
      1,
      "delete",
      readRows(store, TABLE).map(([, ...row]) => row),
    );
    take();
    await store.flush(1);
    take();
    await store.compact(1);
    for (let i = 0; i < 40; i += 1) take();
    scan.close();
    expect(found.toSorted((a, b) => a - b)).toEqual(expected);
    await store.close();
  });

  test("scanOrdered sorts only the groups that it reaches", async () => {
    const store = await openStore({ definitions: [TABLE] });
    for (let start = 0; start < 20_000; start += 5000) {
      const rows = Array.from({ length: 5000 }, (_, i): Row => [start + i, "t", 0]);
      await commit(store, 1, "insert", rows);
      await store.flush(1);
    }
    const scan = open(store, TABLE, { columnId: 1, min: 7000 });
    // The first step sorts a group and the second reads it. No third step is needed.
    expect(scan.next(10)?.rowCount).toBe(0);
    expect(valuesOf(defined(scan.next(10)?.columns[1], "there must be a key"))[0]).toBe(7000);
    expect(scan.rowsPassed).toBe(10);
    scan.close();
    await store.close();
  });

  test("scanOrdered.skip skips the rows that next would read", async () => {
    const { store } = await filledStore();
    const all = readOrdered(store, TABLE, { columnId: 1 }).map(([, key]) => key ?? null);
    const scan = open(store, TABLE, { columnId: 1 });
    let count = 0;
    while (count < 1234) count += scan.skip(1234 - count) ?? 0;
    expect(valuesOf(defined(scan.next(5)?.columns[1], "there must be a key"))).toEqual(
      all.slice(1234, 1239),
    );
    let isMore = true;
    while (isMore) isMore = scan.skip(10_000) !== undefined;
    expect(scan.next(1)).toBeUndefined();
    scan.close();
    await store.close();
  });

  test("scanOrdered between two values continues if a group turns out to have no order", async () => {
    const store = await openStore({ definitions: [TABLE] });
    const rows = Array.from({ length: 5000 }, (_, i): Row => [i, `${"a".repeat(i % 500)}b${i}`, 0]);
    await commit(store, 1, "insert", rows);
    await store.flush(1);
    const where = { owner: 0, upTo: store.visibleSeq, columnIds: [1] };
    const keySpans = { columnId: 2, spans: [{ min: "b", max: "c" }] };
    for (const _ of [1, 2]) {
      const scan = store.scan(1, { ...where, keySpans });
      expect(scan.next()?.rowCount).toBeGreaterThan(9);
      scan.close();
    }
    const order = { ...where, columnId: 2, isDescending: false };
    expect(store.scanOrdered(1, order)).toBeUndefined();
    await store.close();
  });

  test("scanOrdered gives up if rows turn out to have no order, in segments and memtables", async () => {
    const store = await openStore({ definitions: [TABLE] });
    const options = { owner: 0, columnIds: [1], columnId: 2, isDescending: false };
    const ask = (): OrderedScan | undefined =>
      store.scanOrdered(1, { ...options, upTo: store.visibleSeq });
    const rowsFrom = (start: number): Row[] =>
      Array.from({ length: 5000 }, (_, i) => [start + i, `${"a".repeat(i % 500)}b${i}`, 0]);
    // Rows in memory have no order until a scan reaches them.
    await commit(store, 1, "insert", rowsFrom(0));
    ask()?.close();
    const inMemory = defined(ask(), "there may be an order");
    expect(inMemory.rowsPassed).toBe(0);
    expect(inMemory.next(10)?.rowCount).toBe(0);
    expect(inMemory.rowsPassed).toBe(Number.POSITIVE_INFINITY);
    inMemory.close();
    expect(ask()).toBeUndefined();
    await store.flush(1);
    const inSegment = defined(ask(), "there may be an order");
    expect(inSegment.next(10)?.rowCount).toBe(0);
    expect(inSegment.rowsPassed).toBe(Number.POSITIVE_INFINITY);
    inSegment.close();
    expect(ask()).toBeUndefined();
    await store.close();
  });

  test("scanOrdered sorts rows in memory one part at a time", async () => {
    const flush = { ...TABLE.flush, rowsMax: 1_000_000 };
    const store = await openStore({ definitions: [{ ...TABLE, flush }] });
    for (let start = 0; start < 70_000; start += 35_000) {
      const rows = Array.from({ length: 35_000 }, (_, i): Row => [start + i, "t", 0]);
      await commit(store, 1, "insert", rows);
    }
    const scan = open(store, TABLE, { columnId: 1, isDescending: true });
    expect(scan.next(10)?.rowCount).toBe(0);
    expect(scan.next(10)?.rowCount).toBe(0);
    expect(valuesOf(defined(scan.next(10)?.columns[1], "there must be a key"))[0]).toBe(69_999);
    scan.close();
    await store.close();
  });

  test("scanOrdered supports the long strings of one owner among the short ones of another", async () => {
    // The table is not compressed, because packed strings are not sorted.
    const flush = { ...TABLE.flush, rowsMax: 100_000 };
    const table: TableDefinition = { ...TABLE, flush, compression: "none" };
    const store = await openStore({ definitions: [table] });
    const rowsOf = (rowCount: number, characters: number): Row[] =>
      Array.from({ length: rowCount }, (_, key) => {
        return [key, `${(key * 7919) % rowCount}`.padEnd(characters, "x"), 0];
      });
    await commit(store, 1, "insert", rowsOf(4200, 600), 5);
    await commit(store, 1, "insert", rowsOf(13_000, 1));
    await store.flush(1);
    await store.compact(1);
    expectSame(store, table, { columnId: 2, owner: 5 });
    await store.close();
  });

  test("scanOrdered is unavailable for few rows, a column with NULL or without an order, and at first", async () => {
    const definition = defineTable(2, [BIGINT, BIGINT, JSON_TEXT]);
    const store = await openStore({ definitions: [definition], clock: new ManualClock() });
    const ask = (columnId: number): OrderedScan | undefined =>
      store.scanOrdered(2, {
        owner: 0,
        upTo: store.visibleSeq,
        columnIds: [1],
        columnId,
        isDescending: false,
      });
    await commit(store, 2, "insert", [[-1, 5, "{}"]]);
    expect(ask(1)).toBeUndefined();
    expect(ask(1)).toBeUndefined();
    const rows = Array.from({ length: 5000 }, (_, i): Value[] => [i, i === 77 ? null : i, "{}"]);
    await commit(store, 2, "insert", rows);
    for (const _ of [1, 2]) {
      expect(ask(2)).toBeUndefined();
      expect(ask(2)).toBeUndefined();
      expect(ask(3)).toBeUndefined();
      expect(ask(3)).toBeUndefined();
      await store.flush(2);
    }
    ask(1)?.close();
    expect(ask(1)?.rowCount).toBe(5001);
    await store.close();
  });
});

test("the order of rows in memory counts in the cache, and is created again after an eviction", async () => {
  const store = await openStore({ definitions: [TABLE] });
  const rows = Array.from({ length: 20_000 }, (_, i): Row => [(i * 7919) % 20_011, "a", i % 50]);
  await commit(store, 1, "insert", rows);
  const before = sharedCacheBytes();
  expectSame(store, TABLE, { columnId: 1 });
  expect(sharedCacheBytes() - before).toBeGreaterThan(rows.length * 9);
  evictSharedCache();
  expect(sharedCacheBytes()).toBe(0);
  expectSame(store, TABLE, { columnId: 1, isDescending: true });
  expect(sharedCacheBytes()).toBeGreaterThan(rows.length * 9);
  await store.close();
});

testThoroughly(
  "an ordered scan skips few deleted rows, and has all rows at any bound",
  async () => {
    const idsOf = (first: number, count: number): Row[] =>
      Array.from({ length: count }, (_, index) => [first + index, "text", 1]);
    for (const isFlushed of [true, false]) {
      const store = await openStore({
        definitions: [{ ...TABLE, flush: { rowsMax: 999_999, ageMsMax: 86_399_000 } }],
      });
      await commit(store, 1, "insert", idsOf(0, 20_000));
      if (isFlushed) await store.flush(1);
      const all = store.visibleSeq;
      const order = { columnId: 1 };
      expect(readOrdered(store, TABLE, order)).toHaveLength(20_000);
      const bounds: Seq[] = [all];
      // An order is rebuilt once half of its rows, and at least 512, have been deleted.
      for (const [first, count, passedMax] of [
        [0, 9000, 9001],
        [9000, 6000, 1],
        [15_000, 300, 301],
        [15_300, 4000, 1],
      ] as const) {
        await commit(store, 1, "delete", idsOf(first, count));
        bounds.push(store.visibleSeq);
        const scan = open(store, TABLE, order);
        let batch = scan.next(1);
        // Sorting the rows takes a step of its own.
        while (batch?.rowCount === 0) batch = scan.next(1);
        expect(valuesOf(defined(batch?.columns[1], "there must be a row"))).toEqual([
          first + count,
        ]);
        expect(scan.rowsPassed).toBeLessThanOrEqual(passedMax);
        scan.close();
      }
      // A reader at a lower seq gets the rows as of that seq, even if an order of the current rows
      // has been built in the meantime.
      for (const upTo of bounds.toReversed()) {
        expectSame(store, TABLE, { ...order, upTo });
        expectSame(store, TABLE, { ...order, upTo, min: 8000, max: 15_500, isDescending: true });
      }
      expectSame(store, TABLE, order);
      await store.close();
    }
  },
);

function expectNewest(store: LocalStore, { max, min, ...asked }: Omit<Asked, "columnId">): void {
  const { owner = 0, upTo = store.visibleSeq, after = 0 } = asked;
  const expected = readRows(store, TABLE, { owner, upTo, after }).filter(
    ([seq]) => Number(seq) >= Number(min ?? 0) && Number(seq) <= Number(max ?? Infinity),
  );
  const order = { ...asked, columnId: SEQ_COLUMN_ID, isDescending: true };
  const found = readOrdered(store, TABLE, {
    ...order,
    ...(max === undefined ? {} : { max }),
    ...(min === undefined ? {} : { min }),
  });
  expect(found.map(String)).toEqual(expected.toReversed().map(String));
}

testThoroughly(
  "rows are read from the newest one on, at every seq and within bounds, wherever they are stored",
  async () => {
    const { seqs, store } = await filledStore();
    for (const isFlushed of [false, true]) {
      if (isFlushed) await store.flush(1);
      for (const owner of [...OWNERS, 99]) {
        for (const upTo of [...seqs.slice(-4), store.visibleSeq])
          expectNewest(store, { owner, upTo });
        const [first = 0, second = 0, third = 0, fourth = 0] = seqs;
        expectNewest(store, { owner, after: second, batchRows: 7 });
        expectNewest(store, { owner, min: first, max: fourth });
        expectNewest(store, { owner, min: second + 0.5, max: third - 0.5 });
      }
    }
    await store.compact(1);
    for (const owner of OWNERS) expectNewest(store, { owner });
    await store.close();
  },
);

test("the newest rows are read without visiting earlier ones, even if all are deleted", async () => {
  const { store } = await filledStore();
  const expected = readRows(store, TABLE).map(([seq]) => Number(seq));
  const order = { columnId: SEQ_COLUMN_ID, isDescending: true };
  const scan = open(store, TABLE, order);
  expect(scan.skip(10)).toBe(10);
  const found: number[] = [];
  const take = (): void => {
    const batch = scan.next(1000);
    const [seqs] = batch?.columns ?? [];
    if (seqs !== undefined) found.push(...valuesOf(seqs).map(Number));
  };
  take();
  expect(scan.rowsPassed).toBe(1010);
  const rows = readRows(store, TABLE).map(([, ...row]) => row);
  await commit(store, 1, "delete", rows);
  take();
  await store.flush(1);
  take();
  await store.compact(1);
  for (let i = 0; i < 40; i += 1) take();
  expect(scan.next(1)).toBeUndefined();
  expect(scan.skip(1)).toBeUndefined();
  scan.close();
  expect(found).toEqual(expected.toReversed().slice(10));
  expectNewest(store, {});
  await store.close();
});
