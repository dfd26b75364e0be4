/**
 * Manages the sort orders of a segment's row groups, one per requested column and group. An order
 * is computed on demand, and stays in the chunk cache while it is in use.
 */
import { assert, defined } from "../../base/assert.ts";
import type { DataType } from "../../types/mod.ts";
import { type ChunkCache, sharedCache } from "./chunk_cache.ts";
import {
  type ColumnOrder,
  isOrderedKind,
  type LiveRows,
  liveOrderOf,
  TEXT_BYTES_MAX,
} from "./column_order.ts";
import { layoutOf } from "./format.ts";
import type { RowSpan, SegmentReader } from "./reader.ts";

/** The memory in bytes that a sort order takes per row, including the row number. */
const ROW_BYTES = 10;

/** The maximum share of the cache that the sort orders of one column may take up. */
const CACHE_SHARE_MAX = 0.5;

/**
 * Whether sort orders of `rowCount` rows in total would stay in the cache until they are requested
 * again.
 */
export function areOrdersKept(rowCount: number, cache: ChunkCache = sharedCache): boolean {
  return rowCount * ROW_BYTES <= cache.bytesMax * CACHE_SHARE_MAX;
}

export class ColumnOrders {
  readonly #reader: SegmentReader;
  readonly #cache: ChunkCache;
  readonly #cacheKey: number;
  /**
   * A number for each column, in order of first use, which identifies the column's sort orders in
   * the cache.
   */
  readonly #columnNumbers = new Map<number, number>();

  constructor(reader: SegmentReader, cache: ChunkCache = sharedCache) {
    this.#reader = reader;
    this.#cache = cache;
    this.#cacheKey = cache.addReader();
  }

  /**
   * Whether the rows of a row group can be sorted by a column. Determined without reading rows.
   */
  has(columnId: number, group: number): boolean {
    const type = this.#reader.columnType(columnId);
    const entry = this.#reader.chunkEntry(columnId, group);
    if (type === undefined || entry === undefined || !isOrderedKind(type)) return false;
    if (entry.nullCount > 0 || entry.isPacked) return false;
    return isText(type)
      ? entry.byteCount <= this.#reader.groupRows(group) * TEXT_BYTES_MAX
      : this.#reader.zone(columnId, group) !== undefined;
  }

  /** Whether the sort order of a row group for a given read is cached. */
  isKnown(columnId: number, group: number, live: LiveRows): boolean {
    const order = this.#cache.order(this.#cacheKey, this.#numberOf(columnId, group));
    return order?.isFor(live) === true;
  }

  /**
   * Returns the sort order of all rows of a row group that a read may need; undefined if sorting
   * would take longer than a few milliseconds. A failed attempt is not remembered.
   */
  ofGroup(columnId: number, group: number, live: LiveRows): ColumnOrder | undefined {
    const number = this.#numberOf(columnId, group);
    const known = this.#cache.order(this.#cacheKey, number);
    if (known?.isFor(live) === true) return known;
    const rows = { start: 0, end: this.#reader.groupRows(group), live };
    const order = this.ofRows(columnId, group, rows);
    // Only the sort order for the newest bound on seqs is kept, since most reads are at the newest
    // seq.
    const isOlder = known !== undefined && known.liveFrom > live.upTo;
    if (order !== undefined && !isOlder) this.#cache.putOrder(this.#cacheKey, number, order);
    return order;
  }

  /**
   * Sorts a range of rows in a row group, numbered from the first row of the range. The result is
   * not cached.
   */
  ofRows(
    columnId: number,
    group: number,
    { end, live, start }: RowSpan & { readonly live: LiveRows },
  ): ColumnOrder | undefined {
    assert(this.has(columnId, group), "column order: column has no sort order");
    const rows = this.#reader.columnRows(columnId, group, { start, end });
    return liveOrderOf(defined(rows, "column order: column is missing from the segment"), live);
  }

  /** Drops all sort orders, because the file is being closed. */
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
