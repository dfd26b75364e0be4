/**
 * Into which parts the rows of a partition are cut for the order of a column. The orders themselves
 * lie in the cache of chunks, as those of segments do: one bound is for all of them, and what goes
 * when there is no room is made anew when somebody asks. Those of a memtable that was flushed are
 * asked for by nobody, and go first.
 */
import { type ChunkCache, sharedCache } from "../segment/chunk_cache.ts";
import type { ColumnOrder } from "../segment/column_order.ts";

/** Rows `start` to `end` of a partition's list; those of the order are counted from `start`. */
export interface MemPart {
  readonly start: number;
  readonly end: number;
  /** Its number in the cache. */
  readonly cacheKey: number;
}

/** Each part has one order. */
const ORDER_INDEX = 0;

export class PartOrders {
  readonly #cache: ChunkCache;
  /** By columns; "none" once a row has been found that has no place in an order. */
  #columns: Map<number, MemPart[] | "none"> | undefined;

  constructor(cache: ChunkCache = sharedCache) {
    this.#cache = cache;
  }

  /** In the order of the list; "none" where some rows have no order. */
  partsOf(columnId: number): readonly MemPart[] | "none" {
    return this.#columns?.get(columnId) ?? [];
  }

  /** Adds a part behind the others. */
  add(columnId: number, { end, start }: Pick<MemPart, "start" | "end">): void {
    const part = { start, end, cacheKey: this.#cache.addReader() };
    this.#columns ??= new Map();
    const parts = this.#columns.get(columnId);
    if (parts === undefined || parts === "none") this.#columns.set(columnId, [part]);
    else parts.push(part);
  }

  /** Takes the last part away. */
  removeLast(columnId: number): void {
    const parts = this.#columns?.get(columnId);
    if (parts === undefined || parts === "none") return;
    const part = parts.pop();
    if (part !== undefined) this.#forget(part);
  }

  /** A row has no place in an order. */
  refuse(columnId: number): void {
    this.#forgetAll(this.partsOf(columnId));
    this.#columns ??= new Map();
    this.#columns.set(columnId, "none");
  }

  /** The list, or its values, are not what they were. */
  clear(): void {
    for (const parts of this.#columns?.values() ?? []) this.#forgetAll(parts);
    this.#columns = undefined;
  }

  /** Undefined until it was made, and when it had to make room since. */
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
