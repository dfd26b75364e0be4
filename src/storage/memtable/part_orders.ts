/**
 * Divides the rows of a partition into parts that are sorted by a column. The orders themselves are
 * in the chunk cache, like the orders of segments, so that one bound covers all orders. An evicted
 * order is made again on demand. The orders of a flushed memtable are evicted first, since they are
 * no longer used.
 */
import { type ChunkCache, sharedCache } from "../segment/chunk_cache.ts";
import type { ColumnOrder } from "../segment/column_order.ts";

/** Rows `start` to `end` of a partition's list. Row numbers in the order count from `start`. */
export interface MemPart {
  readonly start: number;
  readonly end: number;
  /** The number that identifies the part's order in the cache. */
  readonly cacheKey: number;
}

/** Each part has one order. */
const ORDER_INDEX = 0;

export class PartOrders {
  readonly #cache: ChunkCache;
  /** The parts by column; "none" once a row has been found that cannot be ordered. */
  #columns: Map<number, MemPart[] | "none"> | undefined;

  constructor(cache: ChunkCache = sharedCache) {
    this.#cache = cache;
  }

  /** Parts in the order of the list; "none" if some rows have no order. */
  partsOf(columnId: number): readonly MemPart[] | "none" {
    return this.#columns?.get(columnId) ?? [];
  }

  /** Adds a part after the others. */
  add(columnId: number, { end, start }: Pick<MemPart, "start" | "end">): void {
    const part = { start, end, cacheKey: this.#cache.addReader() };
    this.#columns ??= new Map();
    const parts = this.#columns.get(columnId);
    if (parts === undefined || parts === "none") this.#columns.set(columnId, [part]);
    else parts.push(part);
  }

  /** Removes the last part. */
  removeLast(columnId: number): void {
    const parts = this.#columns?.get(columnId);
    if (parts === undefined || parts === "none") return;
    const part = parts.pop();
    if (part !== undefined) this.#forget(part);
  }

  /** Records that a row cannot be ordered. */
  refuse(columnId: number): void {
    this.#forgetAll(this.partsOf(columnId));
    this.#columns ??= new Map();
    this.#columns.set(columnId, "none");
  }

  /** Drops all parts, because the list or its values have changed. */
  clear(): void {
    for (const parts of this.#columns?.values() ?? []) this.#forgetAll(parts);
    this.#columns = undefined;
  }

  /** Returns the order of a part; undefined if it has not been made or was evicted. */
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
