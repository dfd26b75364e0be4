/**
 * Verifies that the orders of memtable parts count towards the chunk cache, and are removed along
 * with their parts.
 */
import { expect, test } from "bun:test";
import { type MemPart, PartOrders } from "../../../src/storage/memtable/part_orders.ts";
import { newCache, orderOfNumbers } from "../../support/chunk_caches.ts";

const ROWS = 1000;

function someOrder(): ReturnType<typeof orderOfNumbers> {
  return orderOfNumbers(Array.from({ length: ROWS }, (_, row) => (row * 7919) % ROWS));
}

/** Adds memtable parts of `ROWS` rows each, with their orders by one column. */
function addParts(orders: PartOrders, columnId: number, count: number): readonly MemPart[] {
  for (let index = 0; index < count; index += 1) {
    orders.add(columnId, { start: index * ROWS, end: (index + 1) * ROWS });
  }
  const parts = orders.partsOf(columnId);
  if (parts === "none") throw new Error("there are parts");
  for (const part of parts) orders.keep(part, someOrder());
  return parts;
}

test("PartOrders.keep counts an order in the cache until its part is gone, for whatever reason", () => {
  const cache = newCache();
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

test("PartOrders.orderOf no longer finds an order that was evicted", () => {
  const cache = newCache(ROWS * 10 * 5);
  const orders = new PartOrders(cache);
  const parts = addParts(orders, 1, 8);
  expect(cache.byteCount).toBeLessThanOrEqual(cache.bytesMax);
  const known = parts.map((part) => orders.orderOf(part) !== undefined);
  expect(known).toEqual([false, false, false, false, true, true, true, true]);
  expect(orders.partsOf(1)).toHaveLength(8);
});
