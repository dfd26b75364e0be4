/**
 * Reads the rows of one owner that are current at a seq, sorted by a secondary index. The scan
 * merges the indexes of segments and the sorted runs of memtables through a heap of their next
 * rows, one range of keys after the other.
 *
 * Segments stay pinned until the scan is closed.
 */
import { DatabaseError } from "../../base/errors.ts";
import { MergeHeap } from "../../base/merge_heap.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { type Row, vectorFromValues } from "../../types/mod.ts";
import type { IndexScanOptions, IndexSpan } from "../contract/index_reads.ts";
import type { OrderedScan, ScanBatch } from "../contract/scans.ts";
import type { MemIndex } from "../memtable/mem_index.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { type IndexOrder, prefixOf } from "../segment/index_order.ts";
import type { RowSpan } from "../segment/reader.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { SegmentIndex } from "../table/segment_index.ts";
import type { StoredTable } from "../table/table.ts";
import {
  columnsReadBy,
  isLiveAt,
  lookupIndex,
  memIndexOf,
  type TableIndex,
} from "../table/table_index.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { DefinitionWatch } from "./definition_watch.ts";
import { columnTypeOf } from "./segment_scan.ts";

/** Maximum number of rows that are visited in one step. */
const LOOKS_MAX = 16_384;

/** A sorted list of rows by key, at positions 0, 1, 2 … */
interface IndexPiece {
  /** All positions of the owner. */
  readonly span: RowSpan;
  /** Returns the first position at or above `from` whose key is at or above some values. */
  placeOf(values: Row, options: { isAfter: boolean; from: number }): number;
  /** Compares the key at a position with values of its first columns. */
  compareAt(place: number, values: Row): number;
  prefixAt(place: number): number;
  keyAt(place: number): Row;
  isCurrent(place: number): boolean;
  /** Moves a cursor to the row at a position. */
  stand(cursor: VersionCursor, place: number): void;
}

/** A piece, and the position of the merge in it. */
interface IndexHead {
  readonly piece: IndexPiece;
  place: number;
  readonly last: number;
  prefix: number;
  /** The key at the position, set once the key was needed. */
  key: Row | undefined;
}

/**
 * Opens a scan. Returns undefined if the index is not ready, or some of the rows are in history.
 */
export function openIndexScan(
  table: StoredTable,
  options: IndexScanOptions,
): OrderedScan | undefined {
  const index = table.readyIndex(options.indexId);
  if (index === undefined || table.historyAt(options.upTo).length > 0) return undefined;
  const key = onlyKeyIn(options.spans, index);
  if (key === undefined) return new IndexScan(table, index, options);
  const { after = SEQ_ZERO } = options;
  return new FoundRow(table, options, lookupIndex(table, { ...options, key }, after) ?? []);
}

/**
 * Returns the key if the scan requests a single key of a unique index, which at most one row has.
 */
function onlyKeyIn(spans: readonly IndexSpan[], { order, stored }: TableIndex): Row | undefined {
  const [{ max, min } = {}] = spans;
  if (spans.length !== 1 || !stored.isUnique || min === undefined || max === undefined) {
    return undefined;
  }
  const { values } = min;
  if (values.length !== order.columns.length || values.includes(null)) return undefined;
  const isOne =
    min.isInclusive &&
    max.isInclusive &&
    max.values.length === values.length &&
    order.compare(values, max.values) === 0;
  return isOne ? values : undefined;
}

/** The row of a unique key, found beforehand. */
class FoundRow implements OrderedScan {
  readonly rowCount: number;
  rowsPassed = 0;
  readonly #batch: ScanBatch;

  constructor(
    table: StoredTable,
    { columnIds }: Pick<IndexScanOptions, "columnIds">,
    rows: readonly Row[],
  ) {
    this.rowCount = rows.length;
    const columns = columnIds.map((columnId, at) =>
      vectorFromValues(
        columnTypeOf(table, columnId),
        rows.map((row) => row[at] ?? null),
      ),
    );
    this.#batch = { rowCount: rows.length, columns };
  }

  next(): ScanBatch | undefined {
    return this.#isTaken() ? undefined : this.#batch;
  }

  skip(): number | undefined {
    return this.#isTaken() ? undefined : this.rowCount;
  }

  close(): void {
    // No file is pinned.
  }

  /** Whether the row was already read or skipped, or no row has the key. */
  #isTaken(): boolean {
    const isTaken = this.rowsPassed === this.rowCount;
    this.rowsPassed = this.rowCount;
    return isTaken;
  }
}

/** Number of rows that are compared between two yields. */
const COMPARED_PER_STEP = 4096;

/**
 * Searches for two live rows of an owner with the same key that contains no NULL. Yields the share
 * of the rows that were read. Returns the key, or undefined if no two rows have the same key.
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
  /** The positions within each piece, if there is only one range. */
  #known: readonly RowSpan[] = [];
  /** The next range to read. */
  #spanIndex: number;
  /** The last row that was compared. */
  #last: { readonly piece: IndexPiece; readonly place: number } | undefined;
  #isOpen = true;

  constructor(table: StoredTable, index: TableIndex, options: IndexScanOptions) {
    const { columnIds, isDescending, spans } = options;
    this.#table = table;
    this.#options = options;
    this.#order = index.order;
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

  /** Searches for two neighbouring rows with the same key. Returns undefined at the end. */
  nextDuplicate(rowsMax: number): Row | "none yet" | undefined {
    let found: Row | undefined;
    const isMore = this.#walk(rowsMax, (piece, place) => {
      const last = this.#last;
      this.#last = { piece, place };
      if (last === undefined || found !== undefined) return;
      if (piece.prefixAt(place) !== last.piece.prefixAt(last.place)) return;
      const key = piece.keyAt(place);
      if (key.includes(null)) return;
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

  /** Visits the next current rows, a few in each step. Returns whether there may be more. */
  #walk(rowsMax: number, visit: (piece: IndexPiece, place: number) => void): boolean {
    this.#watch.check();
    this.#requireIndex();
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

  /** @throws {DatabaseError} SERIALIZATION_FAILURE if the index was dropped. */
  #requireIndex(): void {
    const { indexId } = this.#options;
    if (this.#table.indexes.some(({ stored }) => stored.indexId === indexId)) return;
    throw new DatabaseError(
      "SERIALIZATION_FAILURE",
      `Cannot continue reading ${this.#table.definition.name}: an index was dropped in the meantime`,
      { hint: "run the statement again" },
    );
  }

  /** Fills the heap with the rows of the next range. Returns false if no range is left. */
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

  /** Moves to the next row of the first piece, and restores the heap. */
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

/** Returns the positions of a piece within a range of keys. */
function placesIn(piece: IndexPiece, { max, min }: IndexSpan): RowSpan {
  const { span } = piece;
  const start =
    min === undefined
      ? span.start
      : piece.placeOf(min.values, { isAfter: !min.isInclusive, from: span.start });
  if (max === undefined || start === span.end) return { start, end: span.end };
  // If the scan requests a single key, most pieces have no row with this key and need no second
  // search.
  const order = piece.compareAt(start, max.values);
  if (order > 0 || (order === 0 && !max.isInclusive)) return { start, end: start };
  return { start, end: piece.placeOf(max.values, { isAfter: max.isInclusive, from: start }) };
}

function piecesOf(
  table: StoredTable,
  index: TableIndex,
  { after = SEQ_ZERO, owner, upTo }: Pick<IndexScanOptions, "after" | "owner" | "upTo">,
): IndexPiece[] {
  const bounds: SeqBounds = { expiredSeq: after, upTo };
  const pieces: IndexPiece[] = [];
  for (const segment of table.segments) {
    if (segment.entry.minSeq > upTo || segment.entry.maxSeq <= after) continue;
    const span = segment.rowsOf(owner);
    if (span !== undefined) {
      pieces.push(new SegmentRowsPiece({ segment, keys: segment.index(index), span, bounds }));
    }
  }
  for (const memtable of table.memtables()) {
    const partition = memtable.partitions.get(owner);
    if (partition === undefined) continue;
    const keys = memIndexOf(memtable, index);
    for (const rows of keys.runsOf(partition)) {
      pieces.push(new MemRowsPiece({ memtable, keys, rows, order: index.order, bounds }));
    }
  }
  return pieces;
}

interface SeqBounds {
  /** Rows up to this seq are skipped. */
  readonly expiredSeq: number;
  readonly upTo: number;
}

class SegmentRowsPiece implements IndexPiece {
  readonly span: RowSpan;
  readonly #segment: OpenSegment;
  readonly #keys: SegmentIndex;
  readonly #bounds: SeqBounds;

  constructor(parts: {
    readonly segment: OpenSegment;
    readonly keys: SegmentIndex;
    readonly span: RowSpan;
    readonly bounds: SeqBounds;
  }) {
    this.span = parts.span;
    this.#segment = parts.segment;
    this.#keys = parts.keys;
    this.#bounds = parts.bounds;
  }

  placeOf(values: Row, { from, isAfter }: { isAfter: boolean; from: number }): number {
    return this.#keys.placeOf({ start: from, end: this.span.end }, values, isAfter);
  }

  compareAt(place: number, values: Row): number {
    return this.#keys.compareAt(place, values);
  }

  prefixAt(place: number): number {
    return this.#keys.prefixAt(place);
  }

  keyAt(place: number): Row {
    return this.#keys.keyAt(place);
  }

  isCurrent(place: number): boolean {
    return isLiveAt(this.#segment, this.#keys.rowAt(place), this.#bounds);
  }

  stand(cursor: VersionCursor, place: number): void {
    cursor.standInSegment(this.#segment, this.#keys.rowAt(place));
  }
}

class MemRowsPiece implements IndexPiece {
  readonly span: RowSpan;
  readonly #memtable: Memtable;
  readonly #keys: MemIndex;
  readonly #rows: Uint32Array;
  readonly #order: IndexOrder;
  readonly #bounds: SeqBounds;

  constructor(parts: {
    readonly memtable: Memtable;
    readonly keys: MemIndex;
    readonly rows: Uint32Array;
    readonly order: IndexOrder;
    readonly bounds: SeqBounds;
  }) {
    this.span = { start: 0, end: parts.rows.length };
    this.#memtable = parts.memtable;
    this.#keys = parts.keys;
    this.#rows = parts.rows;
    this.#order = parts.order;
    this.#bounds = parts.bounds;
  }

  compareAt(place: number, values: Row): number {
    return this.#compareWith(this.#rows[place] ?? 0, values);
  }

  placeOf(values: Row, { from, isAfter }: { isAfter: boolean; from: number }): number {
    let low = from;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.#compareWith(this.#rows[middle] ?? 0, values);
      if (order < 0 || (isAfter && order === 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compareWith(row: number, values: Row): number {
    for (let at = 0; at < values.length; at += 1) {
      const order = this.#order.compareAt(at, this.#keys.valueAt(at, row), values[at] ?? null);
      if (order !== 0) return order;
    }
    return 0;
  }

  prefixAt(place: number): number {
    return prefixOf(this.#keys.valueAt(0, this.#rows[place] ?? 0));
  }

  keyAt(place: number): Row {
    return this.#keys.valuesAt(this.#rows[place] ?? 0);
  }

  isCurrent(place: number): boolean {
    const { expiredSeq, upTo } = this.#bounds;
    const { deleted, replacedBy, seqs } = this.#memtable;
    const row = this.#rows[place] ?? 0;
    const seq = seqs[row] ?? 0;
    const replacement = replacedBy[row] ?? 0;
    if (seq > upTo || seq <= expiredSeq || deleted[row] === 1) return false;
    return replacement === 0 || replacement > upTo;
  }

  stand(cursor: VersionCursor, place: number): void {
    cursor.standInMemtable(this.#memtable, this.#rows[place] ?? 0);
  }
}
