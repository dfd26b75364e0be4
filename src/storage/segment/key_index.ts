/**
 * The key index of a segment: which rows may hold a key, found in the mapped file.
 *
 * Two arrays of one entry a row version: `hashes`, ascending, and `rows`, descending among equal
 * hashes, so that of the versions of one key the newest comes first (rows of one owner ascend by
 * seq). Hashes are uniform, so the place of one is guessed and then searched for around the guess.
 *
 * Before them stands a filter, which says "no" for most keys that are not there after one look at
 * 64 bytes: blocks of 512 bits, 10 bits a key, 6 of them set (a Bloom filter, blocked as in Putze,
 * Sanders and Singler 2007; about 1 in 100 says "maybe" for nothing).
 */
import { assert } from "../../base/assert.ts";

const BLOCK_BYTES = 64;
const BLOCK_WORDS: number = BLOCK_BYTES / 4;
const BITS_PER_KEY = 10;
const DIGIT_BITS = 11;
const DIGIT_SPAN: number = 1 << DIGIT_BITS;

export interface KeyEntries {
  hashes: Uint32Array;
  rows: Uint32Array;
}

/**
 * Sorts the hashes of rows 0, 1, 2 …, in three steps of a few milliseconds per million rows.
 *
 * @param hashes Taken over.
 */
export function* sortKeys(hashes: Uint32Array): Generator<void, KeyEntries> {
  const count = hashes.length;
  const rows = new Uint32Array(count);
  const reversed = new Uint32Array(count);
  // The sort is stable: what begins descending stays so among equal hashes.
  for (let row = 0; row < count; row += 1) {
    rows[row] = count - 1 - row;
    reversed[row] = hashes[count - 1 - row] as number;
  }
  let from: KeyEntries = { hashes: reversed, rows };
  let into: KeyEntries = { hashes, rows: new Uint32Array(count) };
  for (let shift = 0; shift < 32; shift += DIGIT_BITS) {
    sortByDigit(from, into, shift);
    [from, into] = [into, from];
    yield;
  }
  return from;
}

function sortByDigit(from: KeyEntries, into: KeyEntries, shift: number): void {
  const count = from.hashes.length;
  const places = new Uint32Array(DIGIT_SPAN + 1);
  for (let i = 0; i < count; i += 1) {
    const digit = ((from.hashes[i] as number) >>> shift) & (DIGIT_SPAN - 1);
    places[digit + 1] = (places[digit + 1] as number) + 1;
  }
  for (let digit = 0; digit < DIGIT_SPAN; digit += 1) {
    places[digit + 1] = (places[digit + 1] as number) + (places[digit] as number);
  }
  for (let i = 0; i < count; i += 1) {
    const hash = from.hashes[i] as number;
    const digit = (hash >>> shift) & (DIGIT_SPAN - 1);
    const place = places[digit] as number;
    places[digit] = place + 1;
    into.hashes[place] = hash;
    into.rows[place] = from.rows[i] as number;
  }
}

/** First index of a hash among ascending ones, or -1. `touch` is told each index before it is read. */
export function findHash(
  hashes: Uint32Array,
  wanted: number,
  touch: (index: number) => void,
): number {
  const count = hashes.length;
  const guess = Math.min(count - 1, Math.floor((wanted / 4294967296) * count));
  // Invariant: hashes[low - 1] < wanted <= hashes[high], with sentinels at both ends.
  let low = 0;
  let high = count;
  let step = 16;
  touch(guess);
  if ((hashes[guess] as number) < wanted) {
    low = guess + 1;
    for (let at = guess + step; at < count; at += step) {
      touch(at);
      if ((hashes[at] as number) >= wanted) {
        high = at;
        break;
      }
      low = at + 1;
      step *= 2;
    }
  } else {
    high = guess;
    for (let at = guess - step; at >= 0; at -= step) {
      touch(at);
      if ((hashes[at] as number) < wanted) {
        low = at + 1;
        break;
      }
      high = at;
      step *= 2;
    }
  }
  while (low < high) {
    const middle = (low + high) >>> 1;
    touch(middle);
    if ((hashes[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  if (low === count) return -1;
  touch(low);
  return hashes[low] === wanted ? low : -1;
}

/** The filter over some hashes. */
export function buildFilter(hashes: Uint32Array): Uint8Array {
  assert(hashes.length > 0, "a filter has a key");
  const blockCount = Math.ceil((hashes.length * BITS_PER_KEY) / (BLOCK_BYTES * 8));
  const words = new Uint32Array(blockCount * BLOCK_WORDS);
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
  return new Uint8Array(words.buffer);
}

/** Offset in the filter of the 64 bytes that decide about a hash. */
export function filterOffset(hash: number, filterBytes: number): number {
  return blockOf(hash, filterBytes / BLOCK_BYTES) * BLOCK_BYTES;
}

/** False when no key has this hash. */
export function filterHas(filter: Uint8Array, hash: number): boolean {
  const block = filterOffset(hash, filter.byteLength);
  let bits = scatter(hash);
  for (let round = 0; round < 6; round += 1) {
    if (round === 3) bits = scatter(~hash);
    // The words of the writer, byte by byte: low bytes first.
    const at = block + ((bits >>> 3) & 63);
    if ((((filter[at] as number) >> (bits & 7)) & 1) === 0) return false;
    bits >>>= 9;
  }
  return true;
}

function blockOf(hash: number, blockCount: number): number {
  // Not the hash itself: neighbours in the sorted hashes would share their block.
  return Math.floor((scatter(hash ^ 0x9e3779b9) / 4294967296) * blockCount);
}

function scatter(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
