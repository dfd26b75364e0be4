/**
 * Implements the key index of a segment, which finds the rows in the mapped file that may have a
 * given key.
 *
 * Two arrays have one entry per row version: `hashes`, in ascending order, and `rows`, in
 * descending order among equal hashes. The newest version of a key therefore comes first, since an
 * owner's rows ascend by seq. Hashes are uniformly distributed, so the position of a hash is
 * estimated by interpolation, and the search starts from there.
 *
 * A Bloom filter is checked before the arrays. For most absent keys, reading 64 bytes of the
 * filter is enough to exclude them. The filter consists of blocks of 512 bits, with 10 bits per
 * key, and each key sets 6 bits (blocked as in Putze, Sanders and Singler 2007). About 1 in 100
 * absent keys is not excluded.
 */
import { assert } from "../../base/assert.ts";

const BLOCK_BYTES = 64;
const BLOCK_WORDS: number = BLOCK_BYTES / 4;
const BITS_PER_KEY = 10;
const SPAN_31 = 2147483648;
const SPAN_32 = 4294967296;
const DIGIT_BITS = 11;
const DIGIT_SPAN: number = 1 << DIGIT_BITS;

export interface KeyEntries {
  hashes: Uint32Array;
  rows: Uint32Array;
}

/**
 * Key entries as signed integers. A loop over u32 values turns numbers of 2^31 and above into
 * doubles, which made building the filter several times slower in measurements.
 */
interface SignedEntries {
  readonly hashes: Int32Array;
  readonly rows: Int32Array;
}

function signed(numbers: Uint32Array): Int32Array {
  return new Int32Array(numbers.buffer, numbers.byteOffset, numbers.length);
}

/** The number of key index entries processed between two yields. */
const STEP_ENTRIES = 65536;

/**
 * Sorts the hashes of rows 0, 1, 2 … with a three-digit radix sort, yielding often.
 *
 * @param hashes The function takes ownership of this array.
 */
export function* sortKeys(hashes: Uint32Array): Generator<void, KeyEntries> {
  const count = hashes.length;
  const rows = new Uint32Array(count);
  const reversed = new Uint32Array(count);
  // The sort is stable. Rows that start out in descending order stay in that order among equal
  // hashes.
  for (let row = 0; row < count; row += 1) {
    rows[row] = count - 1 - row;
    reversed[row] = hashes[count - 1 - row] as number;
  }
  yield;
  let from: KeyEntries = { hashes: reversed, rows };
  let into: KeyEntries = { hashes, rows: new Uint32Array(count) };
  for (let shift = 0; shift < 32; shift += DIGIT_BITS) {
    const places = new Int32Array(DIGIT_SPAN + 1);
    const signedInto = { hashes: signed(into.hashes), rows: signed(into.rows) };
    for (let start = 0; start < count; start += STEP_ENTRIES) {
      const end = Math.min(start + STEP_ENTRIES, count);
      countDigits(signed(from.hashes.subarray(start, end)), shift, places);
      yield;
    }
    for (let digit = 0; digit < DIGIT_SPAN; digit += 1) {
      places[digit + 1] = (places[digit + 1] as number) + (places[digit] as number);
    }
    for (let start = 0; start < count; start += STEP_ENTRIES) {
      const end = Math.min(start + STEP_ENTRIES, count);
      const part = {
        hashes: signed(from.hashes.subarray(start, end)),
        rows: signed(from.rows.subarray(start, end)),
      };
      placeByDigit(part, signedInto, { shift, places });
      yield;
    }
    [from, into] = [into, from];
  }
  return from;
}

/**
 * Counts how often each digit occurs. The count of digit d is stored at index d + 1, where the
 * running sum needs it.
 */
function countDigits(hashes: Int32Array, shift: number, places: Int32Array): void {
  for (let i = 0; i < hashes.length; i += 1) {
    const digit = ((hashes[i] as number) >>> shift) & (DIGIT_SPAN - 1);
    places[digit + 1] = (places[digit + 1] as number) + 1;
  }
}

/** Moves each entry to the next free position for its digit in the radix sort. */
function placeByDigit(
  part: SignedEntries,
  into: SignedEntries,
  { shift, places }: { readonly shift: number; readonly places: Int32Array },
): void {
  for (let i = 0; i < part.hashes.length; i += 1) {
    const hash = part.hashes[i] as number;
    const digit = (hash >>> shift) & (DIGIT_SPAN - 1);
    const place = places[digit] as number;
    places[digit] = place + 1;
    into.hashes[place] = hash;
    into.rows[place] = part.rows[i] as number;
  }
}

/**
 * Called with the byte offset of each entry of the key index before the entry is read, to verify
 * its page.
 */
export interface Touched {
  touch(byteIndex: number): void;
}

/** Returns the first index of a hash in an ascending array; -1 if it is absent. */
export function findHash(hashes: Uint32Array, wanted: number, pages: Touched): number {
  const count = hashes.length;
  // Each of two rounds subtracts the error of the previous estimate. With 1 million hashes, the
  // first estimate is off by about 500 entries and the next by about 20.
  let guess = clamp((wanted / SPAN_32) * count, count);
  for (let round = 0; round < 2; round += 1) {
    pages.touch(guess * 4);
    guess = clamp(guess + ((wanted - (hashes[guess] as number)) / SPAN_32) * count, count);
  }
  const { low, high } = bracket(hashes, { wanted, guess, pages });
  const first = lowerBound(hashes, { wanted, low, high, pages });
  if (first === count) return -1;
  pages.touch(first * 4);
  return hashes[first] === wanted ? first : -1;
}

function clamp(index: number, count: number): number {
  return Math.max(0, Math.min(count - 1, Math.floor(index)));
}

interface Bracket {
  readonly low: number;
  readonly high: number;
}

/**
 * Finds bounds with hashes[low - 1] < wanted <= hashes[high] by looking at increasing distances
 * from the estimate.
 */
function bracket(
  hashes: Uint32Array,
  options: { wanted: number; guess: number; pages: Touched },
): Bracket {
  const { wanted, guess, pages } = options;
  const count = hashes.length;
  let step = 4;
  pages.touch(guess * 4);
  if ((hashes[guess] as number) < wanted) {
    let low = guess + 1;
    for (let at = guess + step; at < count; at += step) {
      pages.touch(at * 4);
      if ((hashes[at] as number) >= wanted) return { low, high: at };
      low = at + 1;
      step *= 2;
    }
    return { low, high: count };
  }
  let high = guess;
  for (let at = guess - step; at >= 0; at -= step) {
    pages.touch(at * 4);
    if ((hashes[at] as number) < wanted) return { low: at + 1, high };
    high = at;
    step *= 2;
  }
  return { low: 0, high };
}

function lowerBound(
  hashes: Uint32Array,
  options: Bracket & { wanted: number; pages: Touched },
): number {
  const { wanted, pages } = options;
  let { low, high } = options;
  while (low < high) {
    const middle = (low + high) >>> 1;
    pages.touch(middle * 4);
    if ((hashes[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Builds the Bloom filter for some hashes, yielding often. */
export function* buildFilter(hashes: Uint32Array): Generator<void, Uint8Array> {
  assert(hashes.length > 0, "key filter: cannot build a filter without keys");
  const blockCount = Math.ceil((hashes.length * BITS_PER_KEY) / (BLOCK_BYTES * 8));
  const words = new Int32Array(blockCount * BLOCK_WORDS);
  for (let start = 0; start < hashes.length; start += STEP_ENTRIES) {
    addToFilter(words, signed(hashes.subarray(start, start + STEP_ENTRIES)));
    yield;
  }
  return new Uint8Array(words.buffer);
}

function addToFilter(words: Int32Array, hashes: Int32Array): void {
  const blockCount = words.length / BLOCK_WORDS;
  for (let i = 0; i < hashes.length; i += 1) {
    const hash = hashes[i] as number;
    const block = blockOf(hash, blockCount) * BLOCK_WORDS;
    let bits = scatter(hash);
    for (let round = 0; round < 6; round += 1) {
      if (round === 3) bits = scatter(~hash);
      const at = block + ((bits >>> 5) & 15);
      words[at] = (words[at] as number) | (1 << (bits & 31));
      bits >>>= 9;
    }
  }
}

/** Returns the offset of the 64-byte block of the filter to which a hash belongs. */
export function filterOffset(hash: number, filterBytes: number): number {
  return blockOf(hash, filterBytes / BLOCK_BYTES) * BLOCK_BYTES;
}

/** Returns false if it is certain that no key has this hash. */
export function filterHas(filter: Uint8Array, hash: number): boolean {
  const block = filterOffset(hash, filter.byteLength);
  let bits = scatter(hash | 0);
  for (let round = 0; round < 6; round += 1) {
    if (round === 3) bits = scatter(~hash);
    // Reads single bytes of the 32-bit words, which the writer stored with low bytes first.
    const at = block + ((bits >>> 3) & 63);
    if ((((filter[at] as number) >> (bits & 7)) & 1) === 0) return false;
    bits >>>= 9;
  }
  return true;
}

function blockOf(hash: number, blockCount: number): number {
  // The hash is mixed again. Otherwise adjacent hashes in the sorted list would share a block.
  return Math.floor(((scatter(hash ^ 0x9e3779b9) >>> 1) / SPAN_31) * blockCount);
}

/** Derives 32 different bits from a hash, as a signed integer. */
function scatter(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return mixed ^ (mixed >>> 15);
}
