/**
 * Merges rows from several sources in seq order. The sources may overlap, since the versions of a
 * history segment lie between versions of other segments.
 *
 * - The rows of each source ascend by seq. A source is opened only once its first row may be the
 *   next row.
 * - A step ends wherever a batch ends, because that source's next batch may contain the next row.
 */
import { assert } from "../../base/assert.ts";
import {
  concat,
  type DataType,
  type Selection,
  slice,
  take,
  type Vector,
} from "../../types/mod.ts";
import { gathered } from "../memtable/memtable_segment.ts";

export interface SeqSource<Rows> {
  /** A lower bound on the seqs of all rows that the source has yet to return. */
  readonly minSeq: number;
  /**
   * Returns rows in ascending seq order; undefined at the end. A source that may return empty
   * batches may also return no rows.
   */
  next(limit: number): Rows | undefined;
}

/** The rows `from` (inclusive) to `to` (exclusive) of a batch. */
interface Piece<Rows> {
  readonly rows: Rows;
  readonly from: number;
  readonly to: number;
}

/** Rows from several batches in seq order; empty if some source had no row yet. */
export class MergedRows<Rows> {
  readonly pieces: readonly Piece<Rows>[];
  readonly rowCount: number;
  /**
   * The indexes of the rows among all pieces of batches, in seq order; undefined if the pieces are
   * already in order.
   */
  readonly #order: Selection | undefined;

  constructor(pieces: readonly Piece<Rows>[], order: Uint32Array | undefined) {
    this.pieces = pieces;
    this.rowCount = pieces.reduce((sum, { from, to }) => sum + to - from, 0);
    this.#order = order === undefined ? undefined : { rows: order, count: order.length };
  }

  column(type: DataType, columnOf: (rows: Rows) => Vector): Vector {
    const parts = this.pieces.map(({ from, rows, to }) => slice(columnOf(rows), from, to));
    const all = concat(type, parts);
    return this.#order === undefined ? all : take(all, this.#order);
  }

  floats(floatsOf: (rows: Rows) => Float64Array): Float64Array {
    const parts = this.pieces.map(({ from, rows, to }) => floatsOf(rows).subarray(from, to));
    const [only = NO_SEQS] = parts;
    if (this.#order === undefined) return only;
    const all = joined(new Float64Array(this.rowCount), parts);
    return gathered(all, new Float64Array(this.rowCount), this.#order.rows);
  }

  flags(flagsOf: (rows: Rows) => Uint8Array): Uint8Array {
    const parts = this.pieces.map(({ from, rows, to }) => flagsOf(rows).subarray(from, to));
    const [only = new Uint8Array(0)] = parts;
    if (this.#order === undefined) return only;
    const all = joined(new Uint8Array(this.rowCount), parts);
    return gathered(all, new Uint8Array(this.rowCount), this.#order.rows);
  }
}

function joined<Numbers extends Float64Array | Uint8Array>(
  into: Numbers,
  parts: readonly Numbers[],
): Numbers {
  let at = 0;
  for (const part of parts) {
    into.set(part, at);
    at += part.length;
  }
  return into;
}

/** An open source of rows, and the rest of its last batch. */
interface SeqHead<Rows> {
  readonly source: SeqSource<Rows>;
  rows: Rows | undefined;
  seqs: Float64Array;
  next: number;
}

export class SeqMerge<Rows extends { readonly rowCount: number }> {
  readonly #seqsOf: (rows: Rows) => Float64Array;
  /** The unopened sources, in descending order of their lowest seq. */
  readonly #unread: SeqSource<Rows>[];
  #heads: SeqHead<Rows>[] = [];

  /**
   * Merges sources into one sequence of rows in ascending order of seq.
   * @param seqsOf Returns the seqs of a batch's rows, in an array of exactly that length.
   */
  constructor(sources: readonly SeqSource<Rows>[], seqsOf: (rows: Rows) => Float64Array) {
    this.#seqsOf = seqsOf;
    this.#unread = sources.toSorted((left, right) => right.minSeq - left.minSeq);
  }

  /**
   * Returns 1 to `limit` rows, or none if some source had no row yet. Returns undefined at the end.
   */
  next(limit: number): MergedRows<Rows> | undefined {
    if (!this.#fill(limit)) return new MergedRows<Rows>([], undefined);
    if (this.#heads.length === 0) return undefined;
    const firsts = this.#heads.map(({ next }) => next);
    const picked = this.#pick(limit);
    return this.#merged(firsts, picked);
  }

  /**
   * Reads a batch from every source that may contain the next row. Returns false if one of the
   * sources returned no rows.
   */
  #fill(limit: number): boolean {
    for (;;) {
      for (const head of this.#heads) {
        if (head.next < head.seqs.length) continue;
        head.rows = head.source.next(limit);
        if (head.rows?.rowCount === 0) return false;
        head.seqs = head.rows === undefined ? NO_SEQS : this.#seqsOf(head.rows);
        head.next = 0;
      }
      this.#heads = this.#heads.filter(({ rows }) => rows !== undefined);
      const lowest = this.#heads.reduce(
        (least, { next, seqs }) => Math.min(least, seqs[next] ?? Infinity),
        Infinity,
      );
      const source = this.#unread.at(-1);
      if (source === undefined || source.minSeq > lowest) return true;
      this.#unread.pop();
      this.#heads.push({ source, rows: undefined, seqs: NO_SEQS, next: 0 });
    }
  }

  /**
   * Chooses the source that provides each next row, until the batch of one source may be used up.
   * Returns the indexes of the chosen rows.
   */
  #pick(limit: number): Uint32Array {
    const heads = this.#heads;
    const unreadFrom = this.#unread.at(-1)?.minSeq ?? Infinity;
    const picked = new Uint32Array(limit);
    let count = 0;
    while (count < limit) {
      let first = 0;
      let lowest = Infinity;
      for (let index = 0; index < heads.length; index += 1) {
        const head = heads[index];
        const seq = head?.seqs[head.next] ?? Infinity;
        if (seq >= lowest) continue;
        lowest = seq;
        first = index;
      }
      const head = heads[first];
      if (head === undefined || lowest >= unreadFrom) break;
      picked[count] = first;
      count += 1;
      head.next += 1;
      if (head.next === head.seqs.length) break;
    }
    assert(count > 0, "seq merge: source returned an empty batch");
    return picked.subarray(0, count);
  }

  #merged(firsts: readonly number[], picked: Uint32Array): MergedRows<Rows> {
    const pieces: Piece<Rows>[] = [];
    // For each source, the position of its next row, counted over all pieces of batches.
    const places = new Uint32Array(firsts.length);
    let count = 0;
    for (const [index, { next: to, rows }] of this.#heads.entries()) {
      const from = firsts[index] ?? 0;
      if (rows === undefined || from === to) continue;
      places[index] = count;
      count += to - from;
      pieces.push({ rows, from, to });
    }
    if (pieces.length === 1) return new MergedRows(pieces, undefined);
    const order = new Uint32Array(picked.length);
    for (let row = 0; row < picked.length; row += 1) {
      const index = picked[row] ?? 0;
      const place = places[index] ?? 0;
      order[row] = place;
      places[index] = place + 1;
    }
    return new MergedRows(pieces, order);
  }
}

const NO_SEQS = new Float64Array(0);
