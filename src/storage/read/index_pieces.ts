/** Presents one owner's rows in a segment or a memtable as lists sorted by an index. */
import { SEQ_ZERO } from "../../base/seq.ts";
import type { Row } from "../../types/mod.ts";
import type { IndexScanOptions, IndexSpan } from "../contract/index_reads.ts";
import type { MemIndex, SortedRun } from "../memtable/mem_index.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { type IndexOrder, prefixOf } from "../segment/index_order.ts";
import type { RowSpan } from "../segment/reader.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { SegmentIndex } from "../table/segment_index.ts";
import type { StoredTable } from "../table/table.ts";
import { isLiveAt, memIndexOf, type TableIndex } from "../table/table_index.ts";
import type { VersionCursor } from "../table/version_cursor.ts";

/** A list of rows sorted by the key of an index. Positions in it count from 0. */
export interface IndexPiece {
  /** The range of positions with the owner's rows. */
  readonly span: RowSpan;
  /**
   * Returns the first position, at or above `from`, whose key is at or above `values` or, if
   * `isAfter` is set, above `values`.
   */
  placeOf(values: Row, options: { isAfter: boolean; from: number }): number;
  /**
   * Compares the key at a position in the sorted list with values for the index's leading columns.
   */
  compareAt(place: number, values: Row): number;
  prefixAt(place: number): number;
  keyAt(place: number): Row;
  /** Returns the row at a position in the sorted list. */
  rowAt(place: number): number;
  isCurrent(place: number): boolean;
  /**
   * Returns the seq that replaced the row at a position, provided that all rows of the list were
   * committed before that seq. Otherwise, and for a tombstone, returns 0.
   */
  outlivedBySeq(place: number): number;
  /** Moves a cursor to the row at a position in the sorted list. */
  stand(cursor: VersionCursor, place: number): void;
}

/** Returns the positions of a sorted list of rows that lie within a range of keys. */
export function placesIn(piece: IndexPiece, { max, min }: IndexSpan): RowSpan {
  const { span } = piece;
  const start =
    min === undefined
      ? span.start
      : piece.placeOf(min.values, { isAfter: !min.isInclusive, from: span.start });
  if (max === undefined || start === span.end) return { start, end: span.end };
  // When a single key is requested, most lists contain no row with the key, and this check saves a
  // second search.
  const order = piece.compareAt(start, max.values);
  if (order > 0 || (order === 0 && !max.isInclusive)) return { start, end: start };
  return { start, end: piece.placeOf(max.values, { isAfter: max.isInclusive, from: start }) };
}

/**
 * Returns the sorted lists of rows of all segments and memtables that contain rows of an owner.
 */
export function piecesOf(
  table: StoredTable,
  index: TableIndex,
  { after = SEQ_ZERO, owner, upTo }: Pick<IndexScanOptions, "after" | "owner" | "upTo">,
): IndexPiece[] {
  const read: OwnerRead = { owner, bounds: { expiredSeq: after, upTo } };
  return [
    ...table.segments.flatMap((segment) => piecesInSegment(segment, index, read)),
    ...table.memtables().flatMap((memtable) => piecesInMemtable(memtable, index, read)),
  ];
}

/** The owner whose rows are read, and the bounds on their seqs. */
export interface OwnerRead {
  readonly owner: number;
  readonly bounds: SeqBounds;
}

/**
 * Returns the owner's rows in a segment as lists sorted by an index. Returns no list if no row is
 * within the bounds.
 */
export function piecesInSegment(
  segment: OpenSegment,
  index: TableIndex,
  { bounds, owner }: OwnerRead,
): IndexPiece[] {
  const span = rowsWithin(segment, { bounds, owner });
  if (span === undefined) return [];
  return [new SegmentRowsPiece({ segment, keys: segment.index(index), span, bounds })];
}

/** Returns an owner's rows in a segment; undefined if none of them is within the bounds. */
export function rowsWithin(
  segment: OpenSegment,
  { bounds, owner }: OwnerRead,
): RowSpan | undefined {
  const { maxSeq, minSeq } = segment.entry;
  return minSeq > bounds.upTo || maxSeq <= bounds.expiredSeq ? undefined : segment.rowsOf(owner);
}

/**
 * Returns an owner's rows in a memtable, in runs sorted by an index.
 *
 * @param end The memtable row before which the runs end; undefined for all rows.
 */
export function piecesInMemtable(
  memtable: Memtable,
  index: TableIndex,
  { bounds, owner }: OwnerRead,
  end?: number,
): IndexPiece[] {
  const partition = memtable.partitions.get(owner);
  if (partition === undefined) return [];
  const keys = memIndexOf(memtable, index);
  return keys
    .runsOf(partition, end)
    .map((run) => new MemRowsPiece({ memtable, keys, run, order: index.order, bounds }));
}

export interface SeqBounds {
  /** The seq up to which rows have expired and are skipped. */
  readonly expiredSeq: number;
  readonly upTo: number;
}

/** Whether a row of a memtable is live within the bounds. */
export function isCurrentIn(
  { deleted, replacedBy, seqs }: Memtable,
  row: number,
  { expiredSeq, upTo }: SeqBounds,
): boolean {
  const seq = seqs[row] ?? 0;
  const replacement = replacedBy[row] ?? 0;
  if (seq > upTo || seq <= expiredSeq || deleted[row] === 1) return false;
  return replacement === 0 || replacement > upTo;
}

class SegmentRowsPiece implements IndexPiece {
  readonly span: RowSpan;
  readonly #segment: OpenSegment;
  readonly #keys: SegmentIndex;
  readonly #bounds: SeqBounds;
  #newestCommitSeq: number | undefined;

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

  rowAt(place: number): number {
    return this.#keys.rowAt(place);
  }

  isCurrent(place: number): boolean {
    return isLiveAt(this.#segment, this.#keys.rowAt(place), this.#bounds);
  }

  outlivedBySeq(place: number): number {
    const segment = this.#segment;
    const row = this.#keys.rowAt(place);
    if (segment.isDeletedAt(row)) return 0;
    this.#newestCommitSeq ??= segment.guard(() => segment.reader.commitSeqAt(this.span.end - 1));
    const replacement = segment.replacedByAt(row);
    return replacement > this.#newestCommitSeq ? replacement : 0;
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
  readonly #newest: number;
  readonly #order: IndexOrder;
  readonly #bounds: SeqBounds;

  constructor(parts: {
    readonly memtable: Memtable;
    readonly keys: MemIndex;
    readonly run: SortedRun;
    readonly order: IndexOrder;
    readonly bounds: SeqBounds;
  }) {
    this.span = { start: 0, end: parts.run.rows.length };
    this.#memtable = parts.memtable;
    this.#keys = parts.keys;
    this.#rows = parts.run.rows;
    this.#newest = parts.run.newest;
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

  rowAt(place: number): number {
    return this.#rows[place] ?? 0;
  }

  isCurrent(place: number): boolean {
    return isCurrentIn(this.#memtable, this.rowAt(place), this.#bounds);
  }

  outlivedBySeq(place: number): number {
    const { commitSeqs, deleted, replacedBy } = this.#memtable;
    const row = this.rowAt(place);
    const replacement = replacedBy[row] ?? 0;
    return deleted[row] !== 1 && replacement > (commitSeqs[this.#newest] ?? 0) ? replacement : 0;
  }

  stand(cursor: VersionCursor, place: number): void {
    cursor.standInMemtable(this.#memtable, this.#rows[place] ?? 0);
  }
}
