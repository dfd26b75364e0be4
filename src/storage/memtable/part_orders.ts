/**
 * Divides the rows of a partition into parts, each of which is sorted by a column. The orders
 * themselves are in the chunk cache, as for segments, so a single limit covers all orders. An
 * order that was evicted is computed again on demand. The orders of a flushed memtable are no
 * longer used, so they are evicted first.
 */
import { type ChunkCache, sharedCache } from "../segment/chunk_cache.ts";
import type { ColumnOrder } from "../segment/column_order.ts";

/**
 * Rows `start` (inclusive) to `end` (exclusive) of a partition's list. The part's order counts
 * rows from `start`.
 */
export interface MemPart {
  readonly start: number;
  readonly end: number;
  /** The key under which the part's sort order is in the chunk cache. */
  readonly cacheKey: number;
}

/**
 * The index under which the cache keeps the sort order of a part, since each part has only one.
 */
const ORDER_INDEX = 0;

export class PartOrders {
  readonly #cache: ChunkCache;
  /**
   * For each column, the separately sorted parts; "none" once a row has been found that cannot be
   * sorted.
   */
  #columns: Map<number, MemPart[] | "none"> | undefined;

  constructor(cache: ChunkCache = sharedCache) {
    this.#cache = cache;
  }

  /** Returns the parts of a column in list order; "none" if some rows cannot be sorted. */
  partsOf(columnId: number): readonly MemPart[] | "none" {
    return this.#columns?.get(columnId) ?? [];
  }

  /** Adds a part after the last part of a column. */
  add(columnId: number, { end, start }: Pick<MemPart, "start" | "end">): void {
    const part = { start, end, cacheKey: this.#cache.addReader() };
    this.#columns ??= new Map();
    const parts = this.#columns.get(columnId);
    if (parts === undefined || parts === "none") this.#columns.set(columnId, [part]);
    else parts.push(part);
  }

  /** Removes the last part of a column. */
  removeLast(columnId: number): void {
    const parts = this.#columns?.get(columnId);
    if (parts === undefined || parts === "none") return;
    const part = parts.pop();
    if (part !== undefined) this.#forget(part);
  }

  /** Records that not all rows can be sorted by a column. */
  refuse(columnId: number): void {
    this.#forgetAll(this.partsOf(columnId));
    this.#columns ??= new Map();
    this.#columns.set(columnId, "none");
  }

  /** Drops the parts of all columns, because the list of rows or its values have changed. */
  clear(): void {
    for (const parts of this.#columns?.values() ?? []) this.#forgetAll(parts);
    this.#columns = undefined;
  }

  /**
   * Returns the sort order of a part; undefined if it has not been computed or has been evicted.
   */
  orderOf({ cacheKey }: MemPart): ColumnOrder | undefined {
    return this.#cache.order(cacheKey, ORDER_INDEX);
  }

  keep({ cacheKey }: MemPart, order: ColumnOrder): void {
    this.#cache.putOrder(cacheKey, ORDER_INDEX, order);
  }

  #forgetAll(parts: readonly MemPart[] | "none"): void {
    if (parts === "none") return;
    for (const part of parts) this.#forget(part);
  }

  #forget({ cacheKey }: MemPart): void {
    this.#cache.removeReader(cacheKey, ORDER_INDEX + 1);
  }
}
