/**
 * Which rows of one memtable or segment a large commit will replace, noted over many turns before
 * its seqs are known: in the turn of the commit they are moved by its first seq, and whole pages
 * become part of a deletion vector.
 *
 * - Until `begin` each row has the distance of its replacement from the first seq, plus 1; from
 *   then on its seq.
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

  /** By number of the page. */
  get pages(): ReadonlyMap<number, Page> {
    return this.#pages;
  }

  /** The least and the highest seq of a replacement, once they are known. */
  get seqs(): { least: number; most: number } {
    assert(this.#isBegun, "the commit has seqs");
    return { least: this.#least, most: this.#most };
  }

  /** Notes a row that was not noted before. @param seqOffset From the first seq of the commit. */
  note(row: number, seqOffset: number): void {
    const number = row >>> PAGE_BITS;
    const inPage = row & PAGE_MASK;
    const page = this.#pages.get(number);
    if (page !== undefined) assert(seqInPage(page, inPage) === 0, "a row is replaced once");
    const noted = putInPage(page, inPage, seqOffset + 1);
    if (noted !== page) this.#pages.set(number, noted);
    this.#least = Math.min(this.#least, seqOffset + 1);
    this.#most = Math.max(this.#most, seqOffset + 1);
  }

  /** The commit has its seqs. */
  begin(firstSeq: Seq): void {
    assert(!this.#isBegun, "a commit begins once");
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

  /** Whether a row is one that is asked for; asks for no more then. */
  some(isWanted: (row: number, seq: number) => boolean): boolean {
    for (const [number, page] of this.#pages) {
      if (visitPage(page, { first: number * PAGE_ROWS, from: 0, to: PAGE_ROWS }, isWanted)) {
        return true;
      }
    }
    return false;
  }
}
