/**
 * Finds live rows whose ranges overlap, for exclusion constraints. The index of such a constraint
 * is sorted by its other columns, in which the rows must be equal, and then by the range.
 *
 * The live rows that already met the constraint do not overlap each other, so only the neighbours
 * of a range in the order of the index can overlap it.
 */
import { defined } from "../../base/assert.ts";
import { isRangeType, type Range, RangeMath, type Row, rangesOf } from "../../types/mod.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";
import { memIndexOf, type TableIndex } from "../table/table_index.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { type IndexPiece, piecesInMemtable, piecesInSegment } from "./index_pieces.ts";

/** The rows of one owner among which to search for overlapping ranges. */
export interface OverlapSearch {
  readonly owner: number;
  /** Rows up to this seq have expired. */
  readonly expiredSeq: number;
}

export class Overlaps {
  readonly #index: TableIndex;
  readonly #math: RangeMath;
  /** The position of the range in each key. */
  readonly #at: number;

  constructor(index: TableIndex) {
    const { columns } = index.order;
    const type = columns.at(-1)?.type;
    this.#index = index;
    this.#at = columns.length - 1;
    const bound = type !== undefined && isRangeType(type) ? type.bound : undefined;
    this.#math = new RangeMath(defined(bound, "an exclusion constraint must end with a range"));
  }

  /** Whether a row with a key can violate the constraint: a NULL or an empty range never does. */
  canOverlap(key: Row): boolean {
    return !key.includes(null) && this.#rangeIn(key) !== undefined;
  }

  /** Whether two keys violate the constraint together. Both must be able to. */
  doOverlap(left: Row, right: Row): boolean {
    if (this.#index.order.compare(left.slice(0, this.#at), right) !== 0) return false;
    return this.#math.overlap(this.#mustHaveRange(left), this.#mustHaveRange(right));
  }

  /**
   * Moves a cursor to each live row of a table that overlaps a key. Rows that the commit has added
   * to a memtable, from `added.firstRow` on, are left out. Each position is valid until the next
   * one.
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

  /** Does the same for the rows of a memtable before `end`. */
  rowsIn(
    memtable: Memtable,
    key: Row,
    { end, ...search }: OverlapSearch & { readonly end?: number | undefined },
  ): Generator<VersionCursor, void> {
    return this.#among(piecesInMemtable(memtable, this.#index, readOf(search), end), key);
  }

  /**
   * Returns a key of a new row that overlaps the key of another new row; undefined if none does.
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

  /** Yields the positions of the neighbours of a key that overlap it, on both sides. */
  *#placesIn(piece: IndexPiece, key: Row): Generator<number, void> {
    const { end, start } = piece.span;
    const middle = piece.placeOf(key, { isAfter: false, from: start });
    for (let place = middle - 1; place >= start; place -= 1) {
      const isPassed = this.#isApart(piece, place, key);
      if (isPassed === true) break;
      if (isPassed === false) yield place;
    }
    for (let place = middle; place < end; place += 1) {
      const isPassed = this.#isApart(piece, place, key);
      if (isPassed === true) break;
      if (isPassed === false) yield place;
    }
  }

  /** Whether a row does not overlap a key; undefined if it is not live or has no range. */
  #isApart(piece: IndexPiece, place: number, key: Row): boolean | undefined {
    const found = piece.keyAt(place);
    if (this.#index.order.compare(found.slice(0, this.#at), key) !== 0) return true;
    if (!piece.isCurrent(place) || !this.canOverlap(found)) return undefined;
    return !this.doOverlap(found, key);
  }

  #mustHaveRange(key: Row): Range {
    return defined(this.#rangeIn(key), "the key must have a range that is not empty");
  }

  #rangeIn(key: Row): Range | undefined {
    const { columns } = this.#index.order;
    const column = defined(columns[this.#at], "an index must have columns");
    return rangesOf(column.type, key[this.#at] ?? null)[0];
  }
}

function readOf({ expiredSeq, owner }: OverlapSearch): Parameters<typeof piecesInSegment>[2] {
  return { owner, bounds: { expiredSeq, upTo: Number.POSITIVE_INFINITY } };
}
