/**
 * Records which rows of a memtable or segment a large commit will replace. The record is filled
 * over many ticks, before the commit's seqs are known. In the commit's tick, the first seq is
 * added to every replacement, and whole pages become part of a deletion vector.
 *
 * Before `begin`, a replacement is stored as its offset from the first seq, plus 1. After `begin`,
 * it is stored as its seq.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import {
  moveSeqs,
  PAGE_BITS,
  PAGE_MASK,
  PAGE_ROWS,
  type Page,
  putInPage,
  seqInPage,
  visitPage,
} from "./replacement_pages.ts";

export class PreparedReplacements {
  readonly #pages = new Map<number, Page>();
  #least = Infinity;
  #most = 0;
  #isBegun = false;

  /** The pages of replacements, keyed by page number. */
  get pages(): ReadonlyMap<number, Page> {
    return this.#pages;
  }

  /** The lowest and the highest seq of any replacement. Valid only after `begin`. */
  get seqs(): { least: number; most: number } {
    assert(this.#isBegun, "prepared replacements: commit has not begun and has no seqs");
    return { least: this.#least, most: this.#most };
  }

  /**
   * Records the replacement of a row. May be called at most once per row.
   *
   * @param seqOffset The offset from the first seq of the commit.
   */
  note(row: number, seqOffset: number): void {
    const number = row >>> PAGE_BITS;
    const inPage = row & PAGE_MASK;
    const page = this.#pages.get(number);
    if (page !== undefined)
      assert(seqInPage(page, inPage) === 0, "prepared replacements: row was already replaced");
    const noted = putInPage(page, inPage, seqOffset + 1);
    if (noted !== page) this.#pages.set(number, noted);
    this.#least = Math.min(this.#least, seqOffset + 1);
    this.#most = Math.max(this.#most, seqOffset + 1);
  }

  /** Converts offsets to seqs once the commit's seqs are known. */
  begin(firstSeq: Seq): void {
    assert(!this.#isBegun, "prepared replacements: commit has already begun");
    this.#isBegun = true;
    for (const page of this.#pages.values()) moveSeqs(page, firstSeq - 1);
    this.#least += firstSeq - 1;
    this.#most += firstSeq - 1;
  }

  visit(visit: (row: number, seq: number) => void): void {
    this.some((row, seq) => {
      visit(row, seq);
      return false;
    });
  }

  /**
   * Returns whether any replacement is wanted. Calls `isWanted` for one replacement after another
   * until it returns true.
   */
  some(isWanted: (row: number, seq: number) => boolean): boolean {
    for (const [number, page] of this.#pages) {
      if (visitPage(page, { first: number * PAGE_ROWS, from: 0, to: PAGE_ROWS }, isWanted)) {
        return true;
      }
    }
    return false;
  }
}
