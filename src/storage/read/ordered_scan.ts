/**
 * Reads one owner's rows that are current at a seq, sorted by one column. The scan merges
 * separately sorted pieces (`ordered_piece.ts`) through a heap of their next rows.
 *
 * The order of a row group is computed when it is requested for the second time, and then stays in
 * the chunk cache. It consists of sorted 64-bit words, each with 48 bits of a value and the 16-bit
 * number of its row. If segments contained sorted indexes instead, every merge would have to sort.
 *
 * - In the heap, the key of an unsorted piece is the bound of its values, and the piece is sorted
 *   only when it reaches the top. If a column ascends with time, all but one or two pieces are
 *   therefore never sorted.
 * - Segments stay pinned until the scan is closed.
 */
import { defined } from "../../base/assert.ts";
import { MergeHeap } from "../../base/merge_heap.ts";
import {
  type Comparator,
  storedComparatorFor,
  type Value,
  vectorFromValues,
} from "../../types/mod.ts";
import type { OrderedScan, OrderedScanOptions, ScanBatch } from "../contract/scans.ts";
import { SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { type ColumnOrder, placesWithin } from "../segment/column_order.ts";
import { areOrdersKept } from "../segment/column_orders.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { DefinitionWatch } from "./definition_watch.ts";
import { NewestScan } from "./newest_scan.ts";
import { type OrderedPiece, piecesOf } from "./ordered_piece.ts";
import { columnTypeOf } from "./segment_scan.ts";

/**
 * The minimum number of rows for an ordered scan. Fewer rows can be scanned just as fast without a
 * sort order.
 */
const ORDERED_ROWS_MIN = 4096;

/**
 * The maximum number of rows skipped in one step. Skipping a version that is not current takes as
 * long as skipping a current version.
 */
const LOOKS_MAX = 16_384;

/** A separately sorted piece of the rows, and the position of the merge in it. */
interface OrderedHead {
  readonly piece: OrderedPiece;
  order: ColumnOrder | undefined;
  /** The position of the next row in the sort order. */
  place: number;
  last: number;
  /**
   * The value at the next position or, for an unsorted piece, the bound of its values; undefined
   * if the bound is unknown.
   */
  value: Value | undefined;
}

/**
 * Opens an ordered scan. Returns undefined if the rows cannot be read in the requested order, or
 * if the order is requested for the first time.
 */
export function openInOrder(
  table: StoredTable,
  options: OrderedScanOptions,
): OrderedScan | undefined {
  if (options.columnId === SEQ_COLUMN_ID) return NewestScan.open(table, options);
  return table.isOrderWanted(options.columnId) ? StoreOrderedScan.open(table, options) : undefined;
}

class StoreOrderedScan implements OrderedScan {
  readonly rowCount: number;
  rowsPassed = 0;
  readonly #table: StoredTable;
  readonly #options: OrderedScanOptions;
  readonly #ascending: Comparator;
  /** Compares two values in the order of the scan. */
  readonly #compare: Comparator;
  readonly #watch: DefinitionWatch;
  readonly #pinned: readonly OpenSegment[];
  readonly #heads = new MergeHeap<OrderedHead>((left, right) => this.#isBefore(left, right));
  readonly #step: 1 | -1;
  readonly #cursor = new VersionCursor();
  #rowsOrdered = 0;
  #isOpen = true;

  private constructor(
    table: StoredTable,
    options: OrderedScanOptions,
    pieces: readonly OrderedPiece[],
  ) {
    const { columnId, columnIds, isDescending } = options;
    const { type } = defined(
      table.column(columnId),
      "ordered scan: column is missing from the table",
    );
    const ascending = storedComparatorFor(type);
    this.#ascending = ascending;
    this.#table = table;
    this.#options = options;
    this.#compare = isDescending ? (left, right) => ascending(right, left) : ascending;
    this.#watch = new DefinitionWatch(table, [...columnIds, columnId]);
    this.#step = isDescending ? -1 : 1;
    this.#pinned = [...table.segments];
    for (const segment of this.#pinned) segment.pin();
    this.rowCount = pieces.reduce((sum, piece) => sum + piece.rowCount, 0);
    for (const piece of pieces) {
      if (!this.#mayHave(piece)) continue;
      const value = isDescending ? piece.zone?.max : piece.zone?.min;
      this.#heads.push({ piece, order: undefined, place: 0, last: 0, value });
    }
  }

  /**
   * Opens an ordered scan. Returns undefined if the rows cannot be sorted, or if there are too few
   * rows for sorting to pay off.
   */
  static open(table: StoredTable, options: OrderedScanOptions): StoreOrderedScan | undefined {
    const { after = 0, columnId, owner, upTo } = options;
    const pieces = piecesOf(table, { owner, after, seqMax: upTo, upTo, columnId });
    if (pieces === undefined) return undefined;
    const rowCount = pieces.reduce((sum, piece) => sum + piece.rowCount, 0);
    return rowCount < ORDERED_ROWS_MIN ? undefined : new StoreOrderedScan(table, options, pieces);
  }

  next(rowsMax: number): ScanBatch | undefined {
    const pieces: OrderedPiece[] = [];
    const rows: number[] = [];
    const isMore = this.#walk(rowsMax, (piece, row) => {
      pieces.push(piece);
      rows.push(row);
    });
    if (rows.length === 0 && !isMore) return undefined;
    const columns = this.#options.columnIds.map((columnId) => {
      const values = rows.map((row, i) => {
        defined(pieces[i], "ordered scan: row belongs to no source").stand(this.#cursor, row);
        return this.#table.valueAt(this.#cursor, columnId);
      });
      return vectorFromValues(columnTypeOf(this.#table, columnId), values);
    });
    return { rowCount: rows.length, columns };
  }

  skip(rowsMax: number): number | undefined {
    let count = 0;
    const isMore = this.#walk(rowsMax, () => {
      count += 1;
    });
    return count === 0 && !isMore ? undefined : count;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#heads.clear();
    for (const segment of this.#pinned) segment.unpin();
  }

  /**
   * Visits the next current rows, a bounded number per call. Returns whether there may be more.
   */
  #walk(rowsMax: number, visit: (piece: OrderedPiece, row: number) => void): boolean {
    this.#watch.check();
    let count = 0;
    for (let looks = 0; looks < LOOKS_MAX && count < rowsMax; looks += 1) {
      const { first: head } = this.#heads;
      if (head === undefined) return false;
      if (head.order === undefined) {
        if (head.piece.isReady()) {
          this.#open(head);
          continue;
        }
        if (this.#mayOrder(head.piece)) this.#open(head);
        // Sorting a piece takes a whole step, so this step ends here.
        return true;
      }
      const row = head.order.rowAt(head.place);
      this.rowsPassed += 1;
      if (head.piece.isCurrent(row)) {
        visit(head.piece, row);
        count += 1;
      }
      this.#advance(head);
    }
    return true;
  }

  /**
   * Whether the cache has room to keep the sort order of this piece. Otherwise each scan would
   * have to sort the piece again.
   */
  #mayOrder({ rowCount }: OrderedPiece): boolean {
    this.#rowsOrdered += rowCount;
    if (areOrdersKept(this.#rowsOrdered)) return true;
    this.#table.refuseOrder(this.#options.columnId);
    this.#giveUp();
    return false;
  }

  /** Makes the caller fall back to another plan, because reading in order takes too long. */
  #giveUp(): void {
    this.rowsPassed = Number.POSITIVE_INFINITY;
  }

  /** Sorts the piece at the top of the heap, and moves to its first row within the bounds. */
  #open(head: OrderedHead): void {
    const { isDescending } = this.#options;
    const order = head.piece.order();
    if (order === undefined) {
      this.#giveUp();
      return;
    }
    const valueAt = (place: number): Value => valueOf(head.piece, order, place);
    const { end, start: first } = placesWithin(order, this.#options, {
      compare: this.#ascending,
      valueAt,
    });
    head.order = order;
    // The scan starts one position before the first row, because `#advance` moves on to the first
    // row.
    head.place = isDescending ? end : first - 1;
    head.last = isDescending ? first : end - 1;
    if (first >= end) this.#heads.removeFirst();
    else this.#advance(head);
  }

  /** Moves the piece at the top of the heap to its next row, and restores the heap. */
  #advance(head: OrderedHead): void {
    const order = defined(head.order, "ordered scan: source has no sort order");
    if (head.place === head.last) {
      this.#heads.removeFirst();
      return;
    }
    head.place += this.#step;
    head.value = valueOf(head.piece, order, head.place);
    this.#heads.restoreFirst();
  }

  #mayHave({ zone }: OrderedPiece): boolean {
    const { max, min } = this.#options;
    if (zone === undefined) return true;
    if (typeof min === "number" && zone.max < min) return false;
    return typeof max !== "number" || zone.min <= max;
  }

  #isBefore(left: OrderedHead, right: OrderedHead): boolean {
    // A piece whose first value is unknown comes first in the heap.
    if (left.value === undefined) return true;
    if (right.value === undefined) return false;
    return this.#compare(left.value, right.value) < 0;
  }
}

function valueOf(piece: OrderedPiece, order: ColumnOrder, place: number): Value {
  return order.numberAt(place) ?? piece.valueAt(order.rowAt(place));
}
