/**
 * Stores which rows in a page of 4,096 rows have been replaced, and the seqs of their
 * replacements. A page with few replacements is a sorted list. A page with many replacements is an
 * array with one seq per row.
 */
import { assert } from "../../base/assert.ts";
import { sharedFloats } from "../../base/shared_arrays.ts";
import type { SharedPage } from "../contract/shared_tables.ts";

export const PAGE_BITS = 12;
export const PAGE_ROWS: number = 1 << PAGE_BITS;
export const PAGE_MASK: number = PAGE_ROWS - 1;

/**
 * The maximum number of entries in a sparse page. With more entries, an array with one number per
 * row is faster and not much larger.
 */
const SPARSE_ENTRIES_MAX = 256;

/**
 * A sparse page: the replaced rows within the page in ascending order, and the seqs of their
 * replacements.
 */
interface SparsePage {
  readonly rows: number[];
  readonly seqs: number[];
  highest: number;
}

/**
 * A dense page: for each row, the seq that replaced it, or 0. The array is in shared memory,
 * because other threads also read it.
 */
interface DensePage {
  readonly seqByRow: Float64Array;
  count: number;
  highest: number;
}

/**
 * The replacements in a page. `highest` is an upper bound on their seqs. It is not lowered when a
 * replacement is rolled back.
 */
export type Page = SparsePage | DensePage;

/** The approximate memory of a page of replacements in bytes. */
export function bytesOfPage(page: Page): number {
  return "seqByRow" in page ? page.seqByRow.byteLength : 16 * page.rows.length;
}

/**
 * Returns the seq of the version that replaced a row of the page; 0 if the row has not been
 * replaced.
 */
export function seqInPage(page: Page, inPage: number): number {
  if ("seqByRow" in page) return page.seqByRow[inPage] ?? 0;
  const index = lowerBound(page.rows, inPage);
  return page.rows[index] === inPage ? (page.seqs[index] ?? 0) : 0;
}

/**
 * Adds a row that is not yet in the page. Returns the page that now contains it, which may be a
 * new page.
 */
export function putInPage(before: Page | undefined, inPage: number, seq: number): Page {
  let page = before ?? { rows: [], seqs: [], highest: 0 };
  page.highest = Math.max(page.highest, seq);
  if ("rows" in page && page.rows.length >= SPARSE_ENTRIES_MAX) page = dense(page);
  if ("seqByRow" in page) {
    page.seqByRow[inPage] = seq;
    page.count += 1;
    return page;
  }
  const { rows, seqs } = page;
  // Rows are usually replaced in ascending order, so appending is tried first.
  if (rows.length === 0 || inPage > (rows.at(-1) ?? 0)) {
    rows.push(inPage);
    seqs.push(seq);
    return page;
  }
  const index = lowerBound(rows, inPage);
  rows.splice(index, 0, inPage);
  seqs.splice(index, 0, seq);
  return page;
}

/** Removes a replaced row from a page. */
export function takeFromPage(page: Page, inPage: number): void {
  if ("seqByRow" in page) {
    page.seqByRow[inPage] = 0;
    page.count -= 1;
    return;
  }
  const index = lowerBound(page.rows, inPage);
  page.rows.splice(index, 1);
  page.seqs.splice(index, 1);
}

/**
 * Moves the entries of `page` into another page that contains none of its rows. Returns the merged
 * page.
 */
export function mergePage(into: Page, page: Page): Page {
  let all = into;
  visitPage(page, { first: 0, from: 0, to: PAGE_ROWS }, (row, seq) => {
    assert(seqInPage(all, row) === 0, "replacement pages: row was already replaced");
    all = putInPage(all, row, seq);
    return false;
  });
  return all;
}

/** Adds `by` to the seq of each replacement. */
export function moveSeqs(page: Page, by: number): void {
  const seqs = "seqByRow" in page ? page.seqByRow : page.seqs;
  for (let index = 0; index < seqs.length; index += 1) {
    const seq = seqs[index] ?? 0;
    if (seq !== 0) seqs[index] = seq + by;
  }
  page.highest += by;
}

/**
 * Visits the replaced rows of a range in order, until a visit returns true. Returns whether one
 * did. `first` is the page's first row.
 */
export function visitPage(
  page: Page,
  { first, from, to }: { first: number; from: number; to: number },
  visit: (row: number, seq: number) => boolean,
): boolean {
  if ("seqByRow" in page) {
    for (let inPage = from; inPage < to; inPage += 1) {
      const seq = page.seqByRow[inPage] ?? 0;
      if (seq !== 0 && visit(first + inPage, seq)) return true;
    }
    return false;
  }
  for (let index = lowerBound(page.rows, from); index < page.rows.length; index += 1) {
    const inPage = page.rows[index] ?? 0;
    if (inPage >= to) break;
    if (visit(first + inPage, page.seqs[index] ?? 0)) return true;
  }
  return false;
}

/** The rows `from` (inclusive) to `to` (exclusive) of a page. */
export interface PageRange {
  readonly from: number;
  readonly to: number;
}

/** Counts the rows in a range of a page that were replaced at or below `upTo`. */
export function countInPage(page: Page, { from, to }: PageRange, upTo: number): number {
  if (upTo >= page.highest && from === 0 && to === PAGE_ROWS) return countOf(page);
  let count = 0;
  if ("seqByRow" in page) {
    for (let inPage = from; inPage < to; inPage += 1) {
      const seq = page.seqByRow[inPage] ?? 0;
      if (seq !== 0 && seq <= upTo) count += 1;
    }
    return count;
  }
  visitPage(page, { first: 0, from, to }, (_row, seq) => {
    if (seq <= upTo) count += 1;
    return false;
  });
  return count;
}

/**
 * Sets the flag to 1 for each row in a range of a page that was replaced at or below `upTo`.
 * Returns the number of these rows.
 *
 * @param flags `flags[at]` is the first row of the page, which may lie before the range.
 */
export function markInPage(
  page: Page,
  { from, to }: PageRange,
  { at, flags, upTo }: { flags: Uint8Array; at: number; upTo: number },
): number {
  let count = 0;
  if ("seqByRow" in page) {
    for (let inPage = from; inPage < to; inPage += 1) {
      const seq = page.seqByRow[inPage] ?? 0;
      if (seq === 0 || seq > upTo) continue;
      flags[at + inPage] = 1;
      count += 1;
    }
    return count;
  }
  visitPage(page, { first: at, from, to }, (row, seq) => {
    if (seq > upTo) return false;
    flags[row] = 1;
    count += 1;
    return false;
  });
  return count;
}

/** Returns a page with only the entries at or below `upTo`. */
export function pageUpTo(page: Page, upTo: number): Page {
  const highest = Math.min(page.highest, upTo);
  if ("rows" in page) {
    const kept = [...page.rows.keys()].filter((index) => (page.seqs[index] ?? 0) <= upTo);
    return {
      rows: kept.map((index) => page.rows[index] ?? 0),
      seqs: kept.map((index) => page.seqs[index] ?? 0),
      highest,
    };
  }
  const seqByRow = page.seqByRow.slice();
  if (upTo >= page.highest) return { seqByRow, count: page.count, highest };
  let count = 0;
  for (let row = 0; row < PAGE_ROWS; row += 1) {
    const seq = seqByRow[row] ?? 0;
    if (seq > upTo) seqByRow[row] = 0;
    else if (seq !== 0) count += 1;
  }
  return { seqByRow, count, highest };
}

export function countOf(page: Page): number {
  return "seqByRow" in page ? page.count : page.rows.length;
}

function dense({ highest, rows, seqs }: SparsePage): DensePage {
  const seqByRow = sharedFloats(PAGE_ROWS);
  for (const [index, row] of rows.entries()) seqByRow[row] = seqs[index] ?? 0;
  return { seqByRow, count: rows.length, highest };
}

/** Converts a page to the form that is sent to readers in other threads. */
export function sharedPage(index: number, page: Page | undefined): SharedPage {
  if (page === undefined) return { index, rows: [], seqs: [], count: 0, highest: 0 };
  const { highest } = page;
  const count = countOf(page);
  if ("seqByRow" in page) {
    return { index, seqByRow: page.seqByRow, rows: [], seqs: [], count, highest };
  }
  return { index, rows: [...page.rows], seqs: [...page.seqs], count, highest };
}

/**
 * Restores a page in a reader thread. The event loop may later record replacements in the same
 * memory, with seqs above those that the reader reads. `count` and `highest` do not include them.
 */
export function pageOfShare({
  count,
  highest,
  rows,
  seqByRow,
  seqs,
}: SharedPage): Page | undefined {
  if (seqByRow !== undefined) return { seqByRow, count, highest };
  return rows.length === 0 ? undefined : { rows: [...rows], seqs: [...seqs], highest };
}

/** Returns the index of the first number in an ascending list that is at least `wanted`. */
function lowerBound(ascending: readonly number[], wanted: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
