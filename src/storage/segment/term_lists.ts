/**
 * Finds the rows that match a query over terms, using ascending lists of rows, and estimates their
 * number beforehand.
 */
import type { TermQuery } from "../contract/terms.ts";
import type { RowSpan } from "./reader.ts";

/** The rows that contain a term, in ascending order. */
export type RowList = Uint16Array | Uint32Array;

/** Provides the rows that contain a term. */
export interface TermLists {
  /**
   * Returns the lists of rows of all terms that equal `term` or, with `isPrefix`, begin with it.
   */
  listsOf(term: string, isPrefix: boolean): readonly RowList[];
}

/** Returns an upper bound on the number of rows in a range that match a query. */
export function countByTerms(lists: TermLists, query: TermQuery, range: RowSpan): number {
  if (query.kind === "term") {
    const found = lists.listsOf(query.term, query.isPrefix);
    return found.reduce((sum, list) => sum + within(list, range).length, 0);
  }
  const { least, parts } = query;
  if (parts.length < least) return 0;
  const counts = parts.map((part) => countByTerms(lists, part, range));
  // A row that matches lacks at most `parts.length - least` of the conditions, so it has at least
  // one of the `parts.length - least + 1` rarest conditions.
  const rarest = counts.toSorted((left, right) => left - right).slice(0, parts.length - least + 1);
  return rarest.reduce((sum, count) => sum + count, 0);
}

/** Returns the rows in a range that match a query, in ascending order. */
export function rowsByTerms(lists: TermLists, query: TermQuery, range: RowSpan): RowList {
  if (query.kind === "term") {
    const found = lists.listsOf(query.term, query.isPrefix).map((list) => within(list, range));
    return unionOf(found);
  }
  const { least, parts } = query;
  if (parts.length < least) return NO_ROWS;
  if (least === 1) return unionOf(parts.map((part) => rowsByTerms(lists, part, range)));
  if (least < parts.length) {
    return frequentIn(
      parts.map((part) => rowsByTerms(lists, part, range)),
      least,
    );
  }
  // The condition with the fewest rows comes first, so that the search can end early.
  const ordered = parts
    .map((part) => ({ part, count: countByTerms(lists, part, range) }))
    .toSorted((left, right) => left.count - right.count);
  let rows: RowList | undefined;
  for (const { part } of ordered) {
    const found: RowList = rowsByTerms(lists, part, range);
    rows = rows === undefined ? found : commonOf(rows, found);
    if (rows.length === 0) break;
  }
  return rows ?? NO_ROWS;
}

const NO_ROWS: RowList = new Uint32Array(0);

/** Returns the portion of a list that lies within a range. */
function within(list: RowList, { end, start }: RowSpan): RowList {
  const from = placeOf(list, start, 0);
  return list.subarray(from, placeOf(list, end, from));
}

/**
 * Returns the first position in a list of rows, at or after `from`, with a row at or above `row`.
 */
function placeOf(list: RowList, row: number, from: number): number {
  let low = from;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle] as number) < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the union of several lists of rows. */
export function unionOf(lists: readonly RowList[]): RowList {
  const filled = lists.filter(({ length }) => length > 0);
  const [first] = filled;
  if (first === undefined) return NO_ROWS;
  if (filled.length === 1) return first;
  const rows = new Uint32Array(filled.reduce((sum, { length }) => sum + length, 0));
  let count = 0;
  for (const list of filled) {
    rows.set(list, count);
    count += list.length;
  }
  rows.sort();
  return withoutRepeats(rows);
}

function withoutRepeats(rows: Uint32Array): Uint32Array {
  let count = 0;
  for (let at = 0; at < rows.length; at += 1) {
    const row = rows[at] as number;
    if (count > 0 && rows[count - 1] === row) continue;
    rows[count] = row;
    count += 1;
  }
  return rows.subarray(0, count);
}

/** Returns the rows that occur in at least `least` of the lists. */
function frequentIn(lists: readonly RowList[], least: number): RowList {
  const all = new Uint32Array(lists.reduce((sum, { length }) => sum + length, 0));
  let length = 0;
  for (const list of lists) {
    all.set(list, length);
    length += list.length;
  }
  all.sort();
  let count = 0;
  for (let at = 0; at < all.length; ) {
    const row = all[at] as number;
    let end = at + 1;
    while (all[end] === row) end += 1;
    if (end - at >= least) {
      all[count] = row;
      count += 1;
    }
    at = end;
  }
  return all.subarray(0, count);
}

/** Returns the rows that a short and a longer list have in common. */
function commonOf(short: RowList, long: RowList): RowList {
  const rows = new Uint32Array(short.length);
  let count = 0;
  let place = 0;
  for (let at = 0; at < short.length && place < long.length; at += 1) {
    const row = short[at] as number;
    // The steps start small, because the next common row is likely to be near.
    let step = 1;
    while (place + step < long.length && (long[place + step] as number) < row) step *= 2;
    place = placeOf(long.subarray(0, Math.min(place + step + 1, long.length)), row, place);
    if (long[place] !== row) continue;
    rows[count] = row;
    count += 1;
  }
  return rows.subarray(0, count);
}
