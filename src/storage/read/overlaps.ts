/**
 * Finds live rows whose ranges overlap, for exclusion constraints. The index of such a constraint
 * is sorted first by its other columns, whose values must be equal, and then by the range.
 *
 * Live rows that already satisfy the constraint do not overlap each other, so only the live
 * neighbours of a range in index order can overlap it. Replaced rows between them are skipped
 * without reading their keys.
 */
import { defined } from "../../base/assert.ts";
import {
  asRangeType,
  type DataType,
  type Range,
  RangeMath,
  type Row,
  rangesOf,
  unboundedEnd,
  valueOfRanges,
} from "../../types/mod.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";
import { memIndexOf, type TableIndex } from "../table/table_index.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { type IndexPiece, piecesInMemtable, piecesInSegment } from "./index_pieces.ts";

/** Selects the rows to search for overlapping ranges. */
export interface OverlapSearch {
  readonly owner: number;
  /** The seq up to which rows have expired. */
  readonly expiredSeq: number;
}

export class Overlaps {
  readonly #index: TableIndex;
  readonly #math: RangeMath;
  readonly #type: DataType;
  /** The index of the range among the values of each key. */
  readonly #at: number;

  constructor(index: TableIndex) {
    const { columns } = index.order;
    this.#index = index;
    this.#at = columns.length - 1;
    this.#type = defined(columns.at(-1), "overlap search: index has no columns").type;
    this.#math = new RangeMath(asRangeType(this.#type));
  }

  /**
   * Whether a row with this key can violate the exclusion constraint at all. It cannot if the key
   * contains NULL or its range is empty.
   */
  canOverlap(key: Row): boolean {
    return !key.includes(null) && this.#rangeIn(key) !== undefined;
  }

  /**
   * Whether two rows with these keys violate the exclusion constraint. `canOverlap` must hold for
   * both.
   */
  doOverlap(left: Row, right: Row): boolean {
    if (this.#index.order.compare(left.slice(0, this.#at), right) !== 0) return false;
    return this.#math.overlap(this.#mustHaveRange(left), this.#mustHaveRange(right));
  }

  /**
   * Moves a cursor to each live row of a table that overlaps `key`. Rows that the commit has added
   * to a memtable, from `added.firstRow` on, are left out. The cursor is valid until the next row
   * is requested.
   */
  *rowsOf(
    table: StoredTable,
    key: Row,
    {
      added,
      ...search
    }: OverlapSearch & {
      readonly added?: { readonly memtable: Memtable; readonly firstRow: number };
    },
  ): Generator<VersionCursor, void> {
    for (const memtable of table.memtables()) {
      const end = memtable === added?.memtable ? added.firstRow : undefined;
      yield* this.rowsIn(memtable, key, { ...search, end });
    }
    const read = readOf(search);
    for (const segment of table.segments) {
      yield* this.#among(piecesInSegment(segment, this.#index, read), key);
    }
  }

  /**
   * Does the same as {@linkcode rowsOf}, but only for the rows of a single memtable before `end`.
   */
  rowsIn(
    memtable: Memtable,
    key: Row,
    { end, ...search }: OverlapSearch & { readonly end?: number | undefined },
  ): Generator<VersionCursor, void> {
    return this.#among(piecesInMemtable(memtable, this.#index, readOf(search), end), key);
  }

  /**
   * Returns the key of a new row whose range overlaps another new row's; undefined if there is
   * none.
   */
  keyAmong(memtable: Memtable, rows: readonly number[]): Row | undefined {
    const indexed = memIndexOf(memtable, this.#index);
    const { order } = this.#index;
    const keys = rows
      .map((row) => ({ owner: memtable.owners[row] ?? 0, key: indexed.valuesAt(row) }))
      .filter(({ key }) => this.canOverlap(key))
      .toSorted((left, right) => left.owner - right.owner || order.compare(left.key, right.key));
    for (const [at, { key, owner }] of keys.entries()) {
      const next = keys[at + 1];
      if (next?.owner === owner && this.doOverlap(key, next.key)) return next.key;
    }
    return undefined;
  }

  *#among(pieces: readonly IndexPiece[], key: Row): Generator<VersionCursor, void> {
    const cursor = new VersionCursor();
    for (const piece of pieces) {
      for (const place of this.#placesIn(piece, key)) {
        piece.stand(cursor, place);
        yield cursor;
      }
    }
  }

  /** Yields the positions of the key's neighbours, on both sides, that overlap it. */
  *#placesIn(piece: IndexPiece, key: Row): Generator<number, void> {
    const { from, middle, to } = this.#limitsIn(piece, key);
    for (let place = middle - 1; place >= from; place -= 1) {
      if (piece.isCurrent(place)) {
        if (this.#isApart(piece, place, key)) break;
        yield place;
      } else if (this.#endsBefore(piece, place, key)) break;
    }
    for (let place = middle; place < to; place += 1) {
      if (!piece.isCurrent(place)) continue;
      if (this.#isApart(piece, place, key)) break;
      yield place;
    }
  }

  /**
   * Returns three positions: the start of the rows with equal leading values, the position at
   * which the key belongs, and the end of the rows whose ranges begin before the key's range ends.
   */
  #limitsIn(
    piece: IndexPiece,
    key: Row,
  ): { readonly from: number; readonly middle: number; readonly to: number } {
    const { end, start } = piece.span;
    const equal = key.slice(0, this.#at);
    const isWhole = equal.length === 0;
    const from = isWhole ? start : piece.placeOf(equal, { isAfter: false, from: start });
    const middle = piece.placeOf(key, { isAfter: false, from });
    const { upper } = this.#mustHaveRange(key);
    if (upper.value === null) {
      return { from, middle, to: isWhole ? end : piece.placeOf(equal, { isAfter: true, from }) };
    }
    const lower = { value: upper.value, isIncluded: !upper.isIncluded, isLower: true };
    const next = valueOfRanges(this.#type, [{ lower, upper: unboundedEnd(false) }]);
    const values = this.#index.order.formOf([...equal, next]);
    return { from, middle, to: piece.placeOf(values, { isAfter: false, from: middle }) };
  }

  /** Whether a live row with equal leading values does not overlap the key. */
  #isApart(piece: IndexPiece, place: number, key: Row): boolean {
    const found = piece.keyAt(place);
    return !this.canOverlap(found) || !this.doOverlap(found, key);
  }

  /**
   * Whether a replaced row proves that no row before it overlaps the key. All rows of the list
   * were live at the same time as this row, so ranges that begin before its range also end before
   * it.
   */
  #endsBefore(piece: IndexPiece, place: number, key: Row): boolean {
    const { enforcedSeq = 0, state } = this.#index.stored;
    // Until the existing rows have been checked, some of them may overlap each other.
    if (state !== "ready" || piece.outlivedBySeq(place) <= enforcedSeq) return false;
    return this.#isApart(piece, place, key);
  }

  #mustHaveRange(key: Row): Range {
    return defined(this.#rangeIn(key), "overlap search: key has no range or an empty one");
  }

  #rangeIn(key: Row): Range | undefined {
    return rangesOf(this.#type, key[this.#at] ?? null)[0];
  }
}

function readOf({ expiredSeq, owner }: OverlapSearch): Parameters<typeof piecesInSegment>[2] {
  return { owner, bounds: { expiredSeq, upTo: Number.POSITIVE_INFINITY } };
}
