/**
 * Sorts numbers along with their row numbers. Short lists are sorted by insertion. Longer lists
 * are radix-sorted on their bits, from the least to the most significant digit. Both sorts are
 * stable.
 *
 * The bits of doubles sort like the numbers once the sign bit is inverted and, for negative
 * numbers, all other bits as well (Herf 2001, "Radix tricks").
 */
import { assert } from "../../base/assert.ts";

/** The maximum length of a list sorted by insertion. */
const INSERTED_MAX = 32;

/** The length of a list from which a digit of the radix sort has 11 bits instead of 8. */
const LARGE_MIN = 8192;

const SIGN = 0x8000_0000;

/**
 * Sorts keys in ascending order, and moves their rows with them. If there are many keys, yields
 * after each pass.
 *
 * @param keys Must not contain NaN. Equal keys keep their order.
 */
export function* sortByKey(keys: Float64Array, rows: Uint32Array): Generator<void, void> {
  assert(keys.length === rows.length, "index sort: number of rows differs from the number of keys");
  if (isAscending(keys)) return;
  if (keys.length <= INSERTED_MAX) insertSorted(keys, rows);
  else yield* radixSort(keys, rows);
}

function isAscending(keys: Float64Array): boolean {
  let last = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at] as number;
    if (key < last) return false;
    last = key;
  }
  return true;
}

function insertSorted(keys: Float64Array, rows: Uint32Array): void {
  for (let at = 1; at < keys.length; at += 1) {
    const key = keys[at] as number;
    const row = rows[at] as number;
    let to = at;
    while (to > 0 && (keys[to - 1] as number) > key) {
      keys[to] = keys[to - 1] as number;
      rows[to] = rows[to - 1] as number;
      to -= 1;
    }
    keys[to] = key;
    rows[to] = row;
  }
}

/** The keys as pairs of u32, low half first, and their rows. */
interface Sorted {
  readonly words: Uint32Array;
  readonly rows: Uint32Array;
}

interface Digit {
  /** The half of a key that contains the digit: 0 for the low half, 1 for the high half. */
  readonly word: number;
  readonly shift: number;
  readonly mask: number;
}

function* radixSort(keys: Float64Array, rows: Uint32Array): Generator<void, void> {
  const count = keys.length;
  const words = new Uint32Array(keys.buffer, keys.byteOffset, 2 * count);
  for (let at = 1; at < 2 * count; at += 2) {
    const high = words[at] as number;
    if (high >= SIGN) {
      words[at] = ~high;
      words[at - 1] = ~(words[at - 1] as number);
    } else words[at] = high + SIGN;
  }
  let from: Sorted = { words, rows };
  let into: Sorted = { words: new Uint32Array(2 * count), rows: new Uint32Array(count) };
  for (const digit of digitsFor(count)) {
    if (!moved(from, into, digit)) continue;
    [from, into] = [into, from];
    yield;
  }
  if (from.words !== words) {
    words.set(from.words);
    rows.set(from.rows);
  }
  for (let at = 1; at < 2 * count; at += 2) {
    const high = words[at] as number;
    if (high >= SIGN) words[at] = high - SIGN;
    else {
      words[at] = ~high;
      words[at - 1] = ~(words[at - 1] as number);
    }
  }
}

function digitsFor(count: number): readonly Digit[] {
  const bits = count < LARGE_MIN ? 8 : 11;
  const mask = 2 ** bits - 1;
  const digits: Digit[] = [];
  for (let word = 0; word < 2; word += 1) {
    for (let shift = 0; shift < 32; shift += bits) digits.push({ word, shift, mask });
  }
  return digits;
}

/**
 * Moves each key to its position according to one digit. Returns false if all keys have the same
 * digit.
 */
function moved(from: Sorted, into: Sorted, { mask, shift, word }: Digit): boolean {
  const count = from.rows.length;
  const { words, rows } = from;
  const places = new Uint32Array(mask + 2);
  for (let at = word; at < 2 * count; at += 2) {
    const digit = (((words[at] as number) >>> shift) & mask) + 1;
    places[digit] = (places[digit] as number) + 1;
  }
  const first = ((words[word] as number) >>> shift) & mask;
  if (places[first + 1] === count) return false;
  for (let digit = 1; digit <= mask; digit += 1) {
    places[digit] = (places[digit] as number) + (places[digit - 1] as number);
  }
  for (let at = 0; at < count; at += 1) {
    const digit = ((words[2 * at + word] as number) >>> shift) & mask;
    const place = places[digit] as number;
    places[digit] = place + 1;
    into.words[2 * place] = words[2 * at] as number;
    into.words[2 * place + 1] = words[2 * at + 1] as number;
    into.rows[place] = rows[at] as number;
  }
  return true;
}
