/**
 * Reads one owner's rows that are current at a seq, sorted by a secondary index. Key ranges are
 * processed one after another. Within each range, the scan merges the indexes of segments and the
 * sorted runs of memtables through a heap of their next rows.
 *
 * Segments stay pinned until the scan is closed.
 */
import { DatabaseError } from "../../base/errors.ts";
import { MergeHeap } from "../../base/merge_heap.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { type Row, slice, vectorFromValues } from "../../types/mod.ts";
import type { IndexScanOptions, IndexSpan } from "../contract/index_reads.ts";
import type { OrderedScan, ScanBatch } from "../contract/scans.ts";
import type { IndexOrder } from "../segment/index_order.ts";
import type { RowSpan } from "../segment/reader.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { columnsReadBy, lookupIndex, type TableIndex } from "../table/table_index.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { DefinitionWatch } from "./definition_watch.ts";
import { type IndexPiece, piecesOf, placesIn } from "./index_pieces.ts";
import { Overlaps } from "./overlaps.ts";
import { columnTypeOf } from "./segment_scan.ts";

/** The maximum number of rows visited in one step. */
const LOOKS_MAX = 16_384;

/** The maximum number of versions of a single key that are looked up when a scan is opened. */
const FOUND_MAX = 16;

/** A sorted list of rows, and the position of the merge in it. */
interface IndexHead {
  readonly piece: IndexPiece;
  place: number;
  readonly last: number;
  prefix: number;
  /** The key of the row at the current position. It is read when first needed. */
  key: Row | undefined;
}

/**
 * Opens a scan in index order. Returns undefined if the index is not ready, or if some of the rows
 * are in history.
 */
export function openIndexScan(
  table: StoredTable,
  options: IndexScanOptions,
): OrderedScan | undefined {
  const index = table.readyIndex(options.indexId);
  if (index === undefined || table.historyAt(options.upTo).length > 0) return undefined;
  const key = onlyKeyIn(options.spans, index);
  const { after = SEQ_ZERO } = options;
  const found = key && lookupIndex(table, { ...options, key, versionsMax: FOUND_MAX }, after);
  if (found === undefined) return new IndexScan(table, index, options);
  return new KnownRows(table, options, found);
}

/**
 * Returns the key that a scan requests, if it requests a single, complete key without NULL;
 * undefined otherwise.
 */
function onlyKeyIn(spans: readonly IndexSpan[], { order }: TableIndex): Row | undefined {
  const [{ max, min } = {}] = spans;
  if (spans.length !== 1 || min === undefined || max === undefined) return undefined;
  const { values } = min;
  if (values.length !== order.columns.length || values.includes(null)) return undefined;
  const isOne =
    min.isInclusive &&
    max.isInclusive &&
    max.values.length === values.length &&
    order.compare(values, max.values) === 0;
  return isOne ? values : undefined;
}

/** The few rows with a requested key, found when the scan was opened. */
class KnownRows implements OrderedScan {
  readonly rowCount: number;
  rowsPassed = 0;
  readonly #columns: ScanBatch["columns"];

  constructor(
    table: StoredTable,
    { columnIds }: Pick<IndexScanOptions, "columnIds">,
    rows: readonly Row[],
  ) {
    this.rowCount = rows.length;
    this.#columns = columnIds.map((columnId, at) =>
      vectorFromValues(
        columnTypeOf(table, columnId),
        rows.map((row) => row[at] ?? null),
      ),
    );
  }

  next(rowsMax: number): ScanBatch | undefined {
    const start = this.rowsPassed;
    const rowCount = this.skip(rowsMax);
    if (rowCount === undefined) return undefined;
    const columns =
      rowCount === this.rowCount
        ? this.#columns
        : this.#columns.map((column) => slice(column, start, start + rowCount));
    return { rowCount, columns };
  }

  skip(rowsMax: number): number | undefined {
    const count = Math.min(rowsMax, this.rowCount - this.rowsPassed);
    this.rowsPassed += count;
    return count === 0 ? undefined : count;
  }

  close(): void {
    // Nothing to release: this scan pins no file.
  }
}

/** The number of rows compared between two yields. */
const COMPARED_PER_STEP = 4096;

/**
 * Searches for two live rows of an owner with the same key. Keys that contain NULL are ignored.
 * Yields the share of the rows read so far. Returns the duplicate key; undefined if all keys are
 * distinct.
 */
export function* findDuplicate(
  table: StoredTable,
  index: TableIndex,
  { after, owner, upTo }: { owner: number; upTo: number; after: number },
): Generator<number, Row | undefined> {
  const { indexId } = index.stored;
  const bounds = { owner, upTo: upTo as Seq, after: after as Seq };
  const options = { ...bounds, indexId, columnIds: [], spans: [{}], isDescending: false };
  const scan = new IndexScan(table, index, options);
  try {
    for (;;) {
      const found = scan.nextDuplicate(COMPARED_PER_STEP);
      if (found !== "none yet") return found;
      yield scan.rowsPassed / Math.max(1, scan.rowCount);
    }
  } finally {
    scan.close();
  }
}

/**
 * Checks that an index still exists.
 * @throws {DatabaseError} SERIALIZATION_FAILURE if it was dropped during a scan.
 */
export function requireIndex({ definition, indexes }: StoredTable, indexId: number): void {
  if (indexes.some(({ stored }) => stored.indexId === indexId)) return;
  throw new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot continue reading ${definition.name}: an index was dropped in the meantime`,
    { hint: "run the statement again" },
  );
}

class IndexScan implements OrderedScan {
  readonly rowCount: number;
  rowsPassed = 0;
  readonly #table: StoredTable;
  readonly #options: IndexScanOptions;
  readonly #order: IndexOrder;
  readonly #watch: DefinitionWatch;
  readonly #pinned: readonly OpenSegment[];
  readonly #pieces: readonly IndexPiece[];
  readonly #heads = new MergeHeap<IndexHead>((left, right) => this.#isBefore(left, right));
  readonly #step: 1 | -1;
  readonly #cursor = new VersionCursor();
  /**
   * If there is a single key range, the positions within the range in each sorted list of rows.
   */
  #known: readonly RowSpan[] = [];
  /** The index of the key range to read next. */
  #spanIndex: number;
  /** Compares ranges for overlaps; defined only if the index enforces an exclusion constraint. */
  readonly #overlaps: Overlaps | undefined;
  /** The row that was compared most recently; undefined before the first comparison. */
  #last: { readonly piece: IndexPiece; readonly place: number } | undefined;
  #isOpen = true;

  constructor(table: StoredTable, index: TableIndex, options: IndexScanOptions) {
    const { columnIds, isDescending, spans } = options;
    this.#table = table;
    this.#options = options;
    this.#order = index.order;
    this.#overlaps = index.stored.isExclusion === true ? new Overlaps(index) : undefined;
    this.#step = isDescending ? -1 : 1;
    this.#watch = new DefinitionWatch(table, [...columnIds, ...columnsReadBy(index)]);
    this.#pinned = [...table.segments];
    for (const segment of this.#pinned) segment.pin();
    this.#spanIndex = isDescending ? spans.length - 1 : 0;
    try {
      this.#pieces = piecesOf(table, index, options);
      this.rowCount = this.#rowsIn(spans);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  next(rowsMax: number): ScanBatch | undefined {
    const values = this.#options.columnIds.map((): Row[number][] => []);
    let rowCount = 0;
    const isMore = this.#walk(rowsMax, (piece, place) => {
      piece.stand(this.#cursor, place);
      for (const [at, columnId] of this.#options.columnIds.entries()) {
        values[at]?.push(this.#table.valueAt(this.#cursor, columnId));
      }
      rowCount += 1;
    });
    if (rowCount === 0 && !isMore) return undefined;
    const columns = this.#options.columnIds.map((columnId, at) =>
      vectorFromValues(columnTypeOf(this.#table, columnId), values[at] ?? []),
    );
    return { rowCount, columns };
  }

  skip(rowsMax: number): number | undefined {
    let count = 0;
    const isMore = this.#walk(rowsMax, () => {
      count += 1;
    });
    return count === 0 && !isMore ? undefined : count;
  }

  /**
   * Searches for two adjacent rows with the same key. Returns "none yet" if the search has to
   * continue, and undefined at the end.
   */
  nextDuplicate(rowsMax: number): Row | "none yet" | undefined {
    let found: Row | undefined;
    const isMore = this.#walk(rowsMax, (piece, place) => {
      const last = this.#last;
      this.#last = { piece, place };
      if (this.#overlaps !== undefined) {
        const key = piece.keyAt(place);
        if (!this.#overlaps.canOverlap(key)) this.#last = undefined;
        else if (
          last !== undefined &&
          this.#overlaps.doOverlap(last.piece.keyAt(last.place), key)
        ) {
          found = key;
        }
        return;
      }
      if (last === undefined || found !== undefined) return;
      if (piece.prefixAt(place) !== last.piece.prefixAt(last.place)) return;
      const key = piece.keyAt(place);
      if (!this.#order.canRecur(key)) return;
      if (this.#order.compare(key, last.piece.keyAt(last.place)) === 0) found = key;
    });
    return found ?? (isMore ? "none yet" : undefined);
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
  #walk(rowsMax: number, visit: (piece: IndexPiece, place: number) => void): boolean {
    this.#watch.check();
    requireIndex(this.#table, this.#options.indexId);
    let count = 0;
    for (let looks = 0; looks < LOOKS_MAX && count < rowsMax; looks += 1) {
      const { first: head } = this.#heads;
      if (head === undefined) {
        if (!this.#openSpan()) return false;
        continue;
      }
      this.rowsPassed += 1;
      if (head.piece.isCurrent(head.place)) {
        visit(head.piece, head.place);
        count += 1;
      }
      this.#advance(head);
    }
    return true;
  }

  /**
   * Fills the heap with the first rows of the next key range. Returns false if there is no further
   * range.
   */
  #openSpan(): boolean {
    const span = this.#options.spans[this.#spanIndex];
    if (span === undefined) return false;
    this.#spanIndex += this.#step;
    for (const [at, piece] of this.#pieces.entries()) {
      const { end, start } = this.#known[at] ?? placesIn(piece, span);
      if (start >= end) continue;
      const place = this.#step === 1 ? start : end - 1;
      const last = this.#step === 1 ? end - 1 : start;
      this.#heads.push({ piece, place, last, prefix: piece.prefixAt(place), key: undefined });
    }
    return true;
  }

  #rowsIn(spans: readonly IndexSpan[]): number {
    let count = 0;
    const [only, ...others] = spans;
    if (only !== undefined && others.length === 0) {
      this.#known = this.#pieces.map((piece) => placesIn(piece, only));
      for (const { end, start } of this.#known) count += end - start;
      return count;
    }
    for (const span of spans) {
      for (const piece of this.#pieces) {
        const { end, start } = placesIn(piece, span);
        count += Math.max(0, end - start);
      }
    }
    return count;
  }

  /** Moves the sorted list at the top of the heap to its next row, and restores the heap. */
  #advance(head: IndexHead): void {
    if (head.place === head.last) {
      this.#heads.removeFirst();
      return;
    }
    head.place += this.#step;
    head.prefix = head.piece.prefixAt(head.place);
    head.key = undefined;
    this.#heads.restoreFirst();
  }

  #isBefore(left: IndexHead, right: IndexHead): boolean {
    if (left.prefix !== right.prefix) return left.prefix < right.prefix === (this.#step === 1);
    if (this.#order.isExact(left.prefix)) return false;
    left.key ??= left.piece.keyAt(left.place);
    right.key ??= right.piece.keyAt(right.place);
    return this.#order.compare(left.key, right.key) * this.#step < 0;
  }
}
