/**
 * Defines one part of an inverted index: the terms of one row group, and the rows that contain
 * each term.
 *
 *     OFFSET SIZE     little-endian
 *          0    4     u32 terms, t
 *          4    4     u32 rows of all terms together, r
 *          8    4     u32 bytes of all terms together, b
 *         12    4     u32 number of the first row of the group
 *         16    4t+4  u32 first byte of each term, then b
 *      20+4t    4t+4  u32 place of the first row of each term, then r
 *      24+8t    2r    u16 rows of each term, ascending, counted from the first row of the group
 *   24+8t+2r    b     the terms in UTF-8, ascending by their bytes; zeros to a multiple of 8
 */
import { assert } from "../../base/assert.ts";
import { viewOf } from "../../base/bytes.ts";
import { compareCodePoints } from "../../types/mod.ts";
import { padded } from "./format.ts";
import type { RowList, TermLists } from "./term_lists.ts";

const HEAD_BYTES = 16;

/** The maximum number of rows in a part. */
const ROWS_MAX = 0x10000;

/** Returns the length in bytes of the part that begins at an offset. */
export function partLengthAt(bytes: Uint8Array, offset: number): number {
  const view = viewOf(bytes);
  return partLength({
    termCount: view.getUint32(offset, true),
    rowCount: view.getUint32(offset + 4, true),
    textBytes: view.getUint32(offset + 8, true),
  });
}

interface PartSizes {
  readonly termCount: number;
  readonly rowCount: number;
  readonly textBytes: number;
}

function partLength({ rowCount, termCount, textBytes }: PartSizes): number {
  return padded(HEAD_BYTES + 8 * (termCount + 1) + 2 * rowCount + textBytes);
}

export class TermPart implements TermLists {
  readonly bytes: Uint8Array;
  readonly firstRow: number;
  readonly #termCount: number;
  readonly #textStarts: Uint32Array;
  readonly #rowStarts: Uint32Array;
  readonly #rows: Uint16Array;
  readonly #texts: Buffer;

  /** Reads a part of an inverted index. @param bytes A whole part, 8-aligned. */
  constructor(bytes: Uint8Array) {
    const { buffer, byteOffset } = bytes;
    const [termCount = 0, rowCount = 0, textBytes = 0, firstRow = 0] = new Uint32Array(
      buffer,
      byteOffset,
      HEAD_BYTES / 4,
    );
    this.bytes = bytes;
    this.firstRow = firstRow;
    this.#termCount = termCount;
    let at = byteOffset + HEAD_BYTES;
    this.#textStarts = new Uint32Array(buffer, at, termCount + 1);
    at += 4 * (termCount + 1);
    this.#rowStarts = new Uint32Array(buffer, at, termCount + 1);
    at += 4 * (termCount + 1);
    this.#rows = new Uint16Array(buffer, at, rowCount);
    at += 2 * rowCount;
    this.#texts = Buffer.from(buffer, at, textBytes);
  }

  /** Returns the lists of rows for a term, numbered from the first row of the row group. */
  listsOf(term: string, isPrefix: boolean): RowList[] {
    const wanted = Buffer.from(term);
    const lists: RowList[] = [];
    for (let at = this.#placeOf(wanted); at < this.#termCount; at += 1) {
      const start = this.#textStarts[at] as number;
      const end = this.#textStarts[at + 1] as number;
      const isLonger = end - start > wanted.length;
      if (end - start < wanted.length || (isLonger && !isPrefix)) break;
      if (wanted.compare(this.#texts, start, start + wanted.length) !== 0) break;
      lists.push(this.#rows.subarray(this.#rowStarts[at], this.#rowStarts[at + 1]));
      if (!isPrefix) break;
    }
    return lists;
  }

  /** Returns the position of the first term that is not below the given bytes. */
  #placeOf(wanted: Buffer): number {
    let low = 0;
    let high = this.#termCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const start = this.#textStarts[middle] as number;
      const end = this.#textStarts[middle + 1] as number;
      if (wanted.compare(this.#texts, start, end) > 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Collects the terms of the rows in one row group. */
export class TermPartBuilder {
  readonly #firstRow: number;
  readonly #numbers = new Map<string, number>();
  /** For each term, the number of rows that contain it, and the last of these rows. */
  readonly #counts: number[] = [];
  readonly #lastRows: number[] = [];
  /** The term numbers of all rows, one row after another. */
  #entries: Uint32Array = new Uint32Array(1024);
  #entryCount = 0;
  /** For each row, the number of entries of all rows up to and including this row. */
  readonly #ends: number[] = [];

  constructor(firstRow: number) {
    this.#firstRow = firstRow;
  }

  /** Adds the terms of the next row of the row group. */
  add(terms: readonly string[]): void {
    const row = this.#ends.length;
    assert(row < ROWS_MAX, "inverted index: row group has more than 65,536 rows");
    for (const term of terms) this.#addTerm(term, row);
    this.#ends.push(this.#entryCount);
  }

  #addTerm(term: string, row: number): void {
    let number = this.#numbers.get(term);
    if (number === undefined) {
      number = this.#counts.length;
      this.#numbers.set(term, number);
      this.#counts.push(0);
      this.#lastRows.push(-1);
    }
    if (this.#lastRows[number] === row) return;
    this.#lastRows[number] = row;
    this.#counts[number] = (this.#counts[number] ?? 0) + 1;
    if (this.#entryCount === this.#entries.length) {
      const larger = new Uint32Array(2 * this.#entries.length);
      larger.set(this.#entries);
      this.#entries = larger;
    }
    this.#entries[this.#entryCount] = number;
    this.#entryCount += 1;
  }

  finished(): TermPart {
    const terms = [...this.#numbers.keys()].toSorted(compareCodePoints);
    const texts = Buffer.from(terms.join(""));
    const sizes = {
      termCount: terms.length,
      rowCount: this.#entryCount,
      textBytes: texts.length,
    };
    const bytes = new Uint8Array(partLength(sizes));
    const head = [sizes.termCount, sizes.rowCount, sizes.textBytes, this.#firstRow];
    new Uint32Array(bytes.buffer, 0, head.length).set(head);
    const starts = new Uint32Array(bytes.buffer, HEAD_BYTES, 2 * (terms.length + 1));
    const rowsAt = HEAD_BYTES + starts.byteLength;
    const rows = new Uint16Array(bytes.buffer, rowsAt, this.#entryCount);
    bytes.set(texts, rowsAt + rows.byteLength);
    this.#placeRows(rows, this.#placeTerms(terms, starts));
    return new TermPart(bytes);
  }

  /**
   * Computes the position at which each term's list begins. Returns, for each term, the position
   * at which its next row is to be stored.
   */
  #placeTerms(terms: readonly string[], starts: Uint32Array): Uint32Array {
    const places = new Uint32Array(terms.length);
    let textAt = 0;
    let rowAt = 0;
    for (let at = 0; at <= terms.length; at += 1) {
      starts[at] = textAt;
      starts[terms.length + 1 + at] = rowAt;
      const term = terms[at];
      if (term === undefined) break;
      const number = this.#numbers.get(term) ?? 0;
      places[number] = rowAt;
      textAt += Buffer.byteLength(term);
      rowAt += this.#counts[number] ?? 0;
    }
    return places;
  }

  #placeRows(rows: Uint16Array, places: Uint32Array): void {
    let entry = 0;
    for (const [row, end] of this.#ends.entries()) {
      for (; entry < end; entry += 1) {
        const number = this.#entries[entry] as number;
        const place = places[number] as number;
        rows[place] = row;
        places[number] = place + 1;
      }
    }
  }
}
