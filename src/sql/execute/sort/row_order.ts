/**
 * The order of held rows by some keys; equal rows by arrival.
 *
 *     first key as words ──radix sort──► rows by these ──rows with equal words──► compared
 *
 * A radix sort of 1 M doubles takes 50 to 80 ms, and one that compares them 350 to 500. Each pass
 * puts all rows in the order of eleven bits, the least significant first (Knuth, The Art of
 * Computer Programming, volume 3, 5.2.5). Bits that are the same in all rows need no pass.
 */
import { type Compare, numbersBelow, sortedNumbers, watched } from "../../../base/watched_sort.ts";
import type { HeldRows } from "../held/held_rows.ts";
import type { SortOrder } from "../held/sort_order.ts";
import type { Run } from "../run/run.ts";
import { sortWords } from "./sort_words.ts";

type Watch = Pick<Run, "checkTime">;

/** Fewer rows are compared at once. */
const WORDED_ROWS_MIN = 256;

const DIGIT_BITS = 11;
const DIGIT_COUNT = 2 ** DIGIT_BITS;
const WORD_BITS = 32;

/** Rows that are moved between two looks at the clock, in a few milliseconds. */
const MOVED_PER_LOOK = 262_144;

/** Numbers of held rows in the order of keys whose values are held from a column on. */
export function rowOrder(
  rows: HeldRows,
  keys: readonly SortOrder[],
  { keyStart, run }: { keyStart: number; run: Watch },
): Uint32Array {
  const { rowCount } = rows;
  const [key] = keys;
  if (key === undefined) return numbersBelow(rowCount);
  const compare = comparison(rows, keys, keyStart);
  const checkTime = (): void => run.checkTime();
  const worded =
    rowCount < WORDED_ROWS_MIN ? undefined : sortWords(rows, { key, position: keyStart }, run);
  if (worded === undefined) return sortedNumbers(rowCount, compare, checkTime);
  const { areExact, words } = worded;
  const order = radixOrder(words, rowCount, run);
  if (!areExact || keys.length > 1) sortEqual(order, words, watched(compare, checkTime));
  return order;
}

function comparison(rows: HeldRows, keys: readonly SortOrder[], keyStart: number): Compare {
  return (left, right) => {
    for (let i = 0; i < keys.length; i += 1) {
      const key = keys[i];
      if (key === undefined) break;
      const by = rows.compare({ key, position: keyStart + i }, left, right);
      if (by !== 0) return by;
    }
    return left - right;
  };
}

/** Rows with equal words are in the order in which they came. */
function radixOrder(words: readonly Uint32Array[], count: number, run: Watch): Uint32Array {
  let from = numbersBelow(count);
  let into = new Uint32Array(count);
  for (const word of words.toReversed()) {
    const differing = differingBits(word);
    for (let shift = 0; shift < WORD_BITS; shift += DIGIT_BITS) {
      if (((differing >>> shift) & (DIGIT_COUNT - 1)) === 0) continue;
      const digits = { word, shift, next: digitStarts(word, shift) };
      for (let start = 0; start < count; start += MOVED_PER_LOOK) {
        run.checkTime();
        moveRows(from.subarray(start, start + MOVED_PER_LOOK), into, digits);
      }
      [from, into] = [into, from];
    }
  }
  return from;
}

/** 1 for each bit that is not the same in all numbers. */
function differingBits(word: Uint32Array): number {
  const first = word[0] ?? 0;
  let differing = 0;
  for (let row = 0; row < word.length; row += 1) differing |= (word[row] ?? 0) ^ first;
  return differing;
}

/** Where the rows of each digit begin. */
function digitStarts(word: Uint32Array, shift: number): Uint32Array {
  const counts = new Uint32Array(DIGIT_COUNT);
  for (let row = 0; row < word.length; row += 1) {
    const digit = ((word[row] ?? 0) >>> shift) & (DIGIT_COUNT - 1);
    counts[digit] = (counts[digit] ?? 0) + 1;
  }
  let start = 0;
  for (let digit = 0; digit < DIGIT_COUNT; digit += 1) {
    const count = counts[digit] ?? 0;
    counts[digit] = start;
    start += count;
  }
  return counts;
}

/** Puts rows where those of their digit go next. */
function moveRows(
  from: Uint32Array,
  into: Uint32Array,
  { next, shift, word }: { word: Uint32Array; shift: number; next: Uint32Array },
): void {
  for (let i = 0; i < from.length; i += 1) {
    const row = from[i] ?? 0;
    const digit = ((word[row] ?? 0) >>> shift) & (DIGIT_COUNT - 1);
    const at = next[digit] ?? 0;
    into[at] = row;
    next[digit] = at + 1;
  }
}

/** Sorts each range of rows whose words are equal. */
function sortEqual(order: Uint32Array, words: readonly Uint32Array[], compare: Compare): void {
  for (let start = 0; start < order.length; ) {
    const first = order[start] ?? 0;
    let end = start + 1;
    while (end < order.length && areEqual(words, first, order[end] ?? 0)) end += 1;
    if (end - start === 2) sortPair(order, start, compare);
    else if (end - start > 2) order.subarray(start, end).sort(compare);
    start = end;
  }
}

function areEqual(words: readonly Uint32Array[], left: number, right: number): boolean {
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i];
    if (word !== undefined && word[left] !== word[right]) return false;
  }
  return true;
}

/** A sort of two is half of all sorts, and a comparison is all that it needs. */
function sortPair(order: Uint32Array, start: number, compare: Compare): void {
  const left = order[start] ?? 0;
  const right = order[start + 1] ?? 0;
  if (compare(left, right) <= 0) return;
  order[start] = right;
  order[start + 1] = left;
}
