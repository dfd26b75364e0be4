/**
 * Creates chunk caches and the column orders kept in them, for tests of the code that fills them.
 */
import { defined } from "../../src/base/assert.ts";
import { ChunkCache, sharedCache } from "../../src/storage/segment/chunk_cache.ts";
import { type ColumnOrder, orderOf } from "../../src/storage/segment/column_order.ts";
import { BIGINT, vectorFromValues } from "../../src/types/mod.ts";

/** Returns an empty chunk cache with the given size limit; by default, the usual limit. */
export function newCache(bytesMax?: number): ChunkCache {
  return bytesMax === undefined ? new ChunkCache() : new ChunkCache(bytesMax);
}

/** Returns the number of bytes in the cache shared by all stores. */
export function sharedCacheBytes(): number {
  return sharedCache.byteCount;
}

/** Empties the cache shared by all stores. */
export function evictSharedCache(): void {
  const { bytesMax } = sharedCache;
  sharedCache.bound(0);
  sharedCache.bound(bytesMax);
}

/** Returns the order of a column with the given numbers. */
export function orderOfNumbers(values: readonly number[]): ColumnOrder {
  return defined(orderOf(vectorFromValues(BIGINT, values)), "numbers must have an order");
}
