/**
 * The orders of the row groups of a segment by its columns: made when they are asked for, and kept
 * in the cache of chunks while they are used.
 */
import { assert, defined } from "../../base/assert.ts";
import type { DataType } from "../../types/mod.ts";
import { type ChunkCache, sharedCache } from "./chunk_cache.ts";
import { type ColumnOrder, isOrderedKind, orderOf, TEXT_BYTES_MAX } from "./column_order.ts";
import { layoutOf } from "./format.ts";
import type { RowSpan, SegmentReader } from "./reader.ts";

/** Of one row of an order, with its number. */
const ROW_BYTES = 10;

/** Which share of the cache the orders of one column may take. */
const CACHE_SHARE_MAX = 0.5;

/** Whether the orders of so many rows are kept until they are asked for again. */
export function areOrdersKept(rowCount: number, cache: ChunkCache = sharedCache): boolean {
  return rowCount * ROW_BYTES <= cache.bytesMax * CACHE_SHARE_MAX;
}

export class ColumnOrders {
  readonly #reader: SegmentReader;
  readonly #cache: ChunkCache;
  readonly #cacheKey: number;
  /** Columns in the order in which they were asked for: their orders are numbered by it. */
  readonly #columnNumbers = new Map<number, number>();

  constructor(reader: SegmentReader, cache: ChunkCache = sharedCache) {
    this.#reader = reader;
    this.#cache = cache;
    this.#cacheKey = cache.addReader();
  }

  /** Whether the rows of a group can be put in order, found out without reading them. */
  has(columnId: number, group: number): boolean {
    const type = this.#reader.columnType(columnId);
    const entry = this.#reader.chunkEntry(columnId, group);
    if (type === undefined || entry === undefined || !isOrderedKind(type)) return false;
    if (entry.nullCount > 0 || entry.isPacked) return false;
    return isText(type)
      ? entry.byteCount <= this.#reader.groupRows(group) * TEXT_BYTES_MAX
      : this.#reader.zone(columnId, group) !== undefined;
  }

  /** Whether the order of a group is there already. */
  isKnown(columnId: number, group: number): boolean {
    return this.#cache.order(this.#cacheKey, this.#numberOf(columnId, group)) !== undefined;
  }

  /**
   * The order of all rows of a group that can be put in order; to make it takes milliseconds.
   * Undefined where it would take more than that, which nobody remembers.
   */
  ofGroup(columnId: number, group: number): ColumnOrder | undefined {
    const number = this.#numberOf(columnId, group);
    const known = this.#cache.order(this.#cacheKey, number);
    if (known !== undefined) return known;
    const order = this.ofRows(columnId, group, { start: 0, end: this.#reader.groupRows(group) });
    if (order !== undefined) this.#cache.putOrder(this.#cacheKey, number, order);
    return order;
  }

  /** The same of some rows of a group, counted from their first one; nobody keeps it. */
  ofRows(columnId: number, group: number, span: RowSpan): ColumnOrder | undefined {
    assert(this.has(columnId, group), "the rows can be put in order");
    const vector = defined(this.#reader.columnRows(columnId, group, span), "it has the column");
    return orderOf(vector);
  }

  /** Forgets all orders: the file is let go of. */
  release(): void {
    this.#cache.removeReader(this.#cacheKey, this.#columnNumbers.size * this.#reader.groupCount);
  }

  #numberOf(columnId: number, group: number): number {
    let number = this.#columnNumbers.get(columnId);
    if (number === undefined) {
      number = this.#columnNumbers.size;
      this.#columnNumbers.set(columnId, number);
    }
    return number * this.#reader.groupCount + group;
  }
}

function isText(type: DataType): boolean {
  return layoutOf(type) === "text";
}
