/**
 * Creates chunk caches and the column orders that they keep, for tests of the parts that fill them.
 */
import { defined } from "../../src/base/assert.ts";
import { ChunkCache, sharedCache } from "../../src/storage/segment/chunk_cache.ts";
import { type ColumnOrder, orderOf } from "../../src/storage/segment/column_order.ts";
import { BIGINT, vectorFromValues } from "../../src/types/mod.ts";

/** Returns an empty cache, with the usual size limit if none is given. */
export function newCache(bytesMax?: number): ChunkCache {
  return bytesMax === undefined ? new ChunkCache() : new ChunkCache(bytesMax);
}

/** Returns the bytes in the cache that all stores share. */
export function sharedCacheBytes(): number {
  return sharedCache.byteCount;
}

/** Empties the cache that all stores share. */
export function evictSharedCache(): void {
  const { bytesMax } = sharedCache;
  sharedCache.bound(0);
  sharedCache.bound(bytesMax);
}

/** Returns the order of a column with these numbers. */
export function orderOfNumbers(values: readonly number[]): ColumnOrder {
  return defined(orderOf(vectorFromValues(BIGINT, values)), "numbers must have an order");
}
