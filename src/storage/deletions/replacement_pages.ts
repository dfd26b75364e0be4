/**
 * Replacements of the rows of a page of 4,096, each with a seq: few are kept sorted, and of many
 * there is a number for each row.
 */
import { assert } from "../../base/assert.ts";
import { sharedFloats } from "../../base/shared_arrays.ts";
import type { SharedPage } from "../contract/shared_tables.ts";

export const PAGE_BITS = 12;
export const PAGE_ROWS: number = 1 << PAGE_BITS;
export const PAGE_MASK: number = PAGE_ROWS - 1;

/** Above this, a number for each row is faster and not much larger. */
const SPARSE_ENTRIES_MAX = 256;

/** Few replacements: rows within the page, ascending, and their seqs. */
interface SparsePage {
  readonly rows: number[];
  readonly seqs: number[];
}

/** A number for each row, 0 for none; in shared memory, because readers see it, too. */
interface DensePage {
  readonly seqByRow: Float64Array;
  count: number;
}

export type Page = SparsePage | DensePage;

/** Seq of the version that replaced a row of the page, 0 for none. */
export function seqInPage(page: Page, inPage: number): number {
  if ("seqByRow" in page) return page.seqByRow[inPage] ?? 0;
  const index = lowerBound(page.rows, inPage);
  return page.rows[index] === inPage ? (page.seqs[index] ?? 0) : 0;
}

/** Notes a row that is not in the page; returns the page that has it, which may be another one. */
export function putInPage(before: Page | undefined, inPage: number, seq: number): Page {
  let page = before ?? { rows: [], seqs: [] };
  if ("rows" in page && page.rows.length >= SPARSE_ENTRIES_MAX) page = dense(page);
  if ("seqByRow" in page) {
    page.seqByRow[inPage] = seq;
    page.count += 1;
    return page;
  }
  const { rows, seqs } = page;
  // Rows mostly come in order.
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

/** Takes out a row that is in the page. */
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

/** Puts the rows of a page into another, which has none of them; returns the page of all. */
export function mergePage(into: Page, page: Page): Page {
  let all = into;
  visitPage(page, { first: 0, from: 0, to: PAGE_ROWS }, (row, seq) => {
    assert(seqInPage(all, row) === 0, "a row is replaced once");
    all = putInPage(all, row, seq);
    return false;
  });
  return all;
}

/** Adds a number to the seq of each row. */
export function moveSeqs(page: Page, by: number): void {
  const seqs = "seqByRow" in page ? page.seqByRow : page.seqs;
  for (let index = 0; index < seqs.length; index += 1) {
    const seq = seqs[index] ?? 0;
    if (seq !== 0) seqs[index] = seq + by;
  }
}

/**
 * Visits rows `from` to `to` of the page that begins at row `first`, in order. Returns whether a
 * visit said stop.
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

/** Rows `from` to `to` of a page. */
export interface PageRange {
  readonly from: number;
  readonly to: number;
}

/** How many rows of a range are replaced at or below a seq. */
export function countInPage(page: Page, { from, to }: PageRange, upTo: number): number {
  if (upTo === Infinity && from === 0 && to === PAGE_ROWS) return countOf(page);
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
 * Sets 1 for each row of a range that is replaced at or below a seq. Returns how many those are.
 *
 * @param flags `flags[at]` is the first row of the page, which may lie before them.
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

/** The entries of a page at or below a seq. */
export function pageUpTo(page: Page, upTo: number): Page {
  if ("rows" in page) {
    const kept = [...page.rows.keys()].filter((index) => (page.seqs[index] ?? 0) <= upTo);
    return {
      rows: kept.map((index) => page.rows[index] ?? 0),
      seqs: kept.map((index) => page.seqs[index] ?? 0),
    };
  }
  const seqByRow = page.seqByRow.slice();
  if (upTo === Infinity) return { seqByRow, count: page.count };
  let count = 0;
  for (let row = 0; row < PAGE_ROWS; row += 1) {
    const seq = seqByRow[row] ?? 0;
    if (seq > upTo) seqByRow[row] = 0;
    else if (seq !== 0) count += 1;
  }
  return { seqByRow, count };
}

export function countOf(page: Page): number {
  return "seqByRow" in page ? page.count : page.rows.length;
}

function dense({ rows, seqs }: SparsePage): DensePage {
  const seqByRow = sharedFloats(PAGE_ROWS);
  for (const [index, row] of rows.entries()) seqByRow[row] = seqs[index] ?? 0;
  return { seqByRow, count: rows.length };
}

/** A page as a reader in another thread takes it. */
export function sharedPage(index: number, page: Page | undefined): SharedPage {
  if (page === undefined) return { index, rows: [], seqs: [] };
  if ("seqByRow" in page) return { index, seqByRow: page.seqByRow, rows: [], seqs: [] };
  return { index, rows: [...page.rows], seqs: [...page.seqs] };
}

/** The page that such a reader makes of it; its count is not kept up to date. */
export function pageOfShare({ rows, seqByRow, seqs }: SharedPage): Page | undefined {
  if (seqByRow !== undefined) return { seqByRow, count: PAGE_ROWS };
  return rows.length === 0 ? undefined : { rows: [...rows], seqs: [...seqs] };
}

/** Index of the first number that is at least `wanted`. */
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
