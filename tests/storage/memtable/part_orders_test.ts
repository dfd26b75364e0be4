/**
 * Orders of parts of a memtable count in the cache of chunks, and go with it.
 */
import { expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import { type MemPart, PartOrders } from "../../../src/storage/memtable/part_orders.ts";
import { ChunkCache } from "../../../src/storage/segment/chunk_cache.ts";
import { type ColumnOrder, orderOf } from "../../../src/storage/segment/column_order.ts";
import { BIGINT, vectorFromValues } from "../../../src/types/mod.ts";

const ROWS = 1000;

function someOrder(): ColumnOrder {
  const values = Array.from({ length: ROWS }, (_, row) => (row * 7919) % ROWS);
  return defined(orderOf(vectorFromValues(BIGINT, values)), "numbers have an order");
}

/** Parts of `ROWS` rows each, with their orders, of a column. */
function addParts(orders: PartOrders, columnId: number, count: number): readonly MemPart[] {
  for (let index = 0; index < count; index += 1) {
    orders.add(columnId, { start: index * ROWS, end: (index + 1) * ROWS });
  }
  const parts = orders.partsOf(columnId);
  if (parts === "none") throw new Error("there are parts");
  for (const part of parts) orders.keep(part, someOrder());
  return parts;
}

test("PartOrders.keep counts an order in the cache until its part goes, whatever ends it", () => {
  const cache = new ChunkCache();
  const orders = new PartOrders(cache);
  addParts(orders, 1, 2);
  const ofTwo = cache.byteCount;
  expect(ofTwo).toBeGreaterThan(2 * ROWS * 10);
  orders.removeLast(1);
  expect(cache.byteCount).toBe(ofTwo / 2);
  addParts(orders, 2, 3);
  expect(cache.byteCount).toBe(ofTwo * 2);
  orders.refuse(2);
  expect([orders.partsOf(2), cache.byteCount]).toEqual(["none", ofTwo / 2]);
  orders.clear();
  expect([orders.partsOf(1), orders.partsOf(2), cache.byteCount]).toEqual([[], [], 0]);
});

test("PartOrders.orderOf has no order any more that had to make room for others", () => {
  const cache = new ChunkCache(ROWS * 10 * 5);
  const orders = new PartOrders(cache);
  const parts = addParts(orders, 1, 8);
  expect(cache.byteCount).toBeLessThanOrEqual(cache.bytesMax);
  const known = parts.map((part) => orders.orderOf(part) !== undefined);
  expect(known).toEqual([false, false, false, false, true, true, true, true]);
  expect(orders.partsOf(1)).toHaveLength(8);
});
