/**
 * Assigns a row to one of a topic's partitions. The algorithm is part of the storage format:
 * committed consumer offsets depend on it, so it never changes.
 *
 *     hash     32 bits, from 0; each word of the input is mixed in as MurmurHash3 does it
 *     input    table id, owner, then each value of the primary key in the order of its columns;
 *              without a primary key, the seq of the row version
 *     number   the two words of its double, low first; -0 is 0; a bigint is the double next to it
 *     text     its length, then each UTF-16 code unit
 *     boolean  1 or 0
 *     other    its text form as JSON
 *     result   hash mod the number of partitions
 */
import type { Value } from "../types/mod.ts";

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);

/** Mixes a 32-bit word into a hash. */
function mixed(hash: number, word: number): number {
  let k = Math.imul(word, 0xcc9e2d51);
  k = Math.imul((k << 15) | (k >>> 17), 0x1b873593);
  const h = hash ^ k;
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
}

/** Mixes a number into a hash. */
export function hashOfNumber(hash: number, value: number): number {
  // Adding 0 turns -0 into 0.
  double[0] = value + 0;
  return mixed(mixed(hash, words[0] ?? 0), words[1] ?? 0);
}

/** Mixes a value into a hash. */
export function hashOfValue(hash: number, value: Value): number {
  switch (typeof value) {
    case "number":
      return hashOfNumber(hash, value);
    case "bigint":
      return hashOfNumber(hash, Number(value));
    case "boolean":
      return hashOfNumber(hash, value ? 1 : 0);
    case "string":
      return hashOfText(hash, value);
    default:
      return hashOfText(hash, JSON.stringify(value));
  }
}

function hashOfText(hash: number, text: string): number {
  let h = mixed(hash, text.length);
  for (let index = 0; index < text.length; index += 1) h = mixed(h, text.charCodeAt(index));
  return h;
}

/** Returns the partition that a hash belongs to, from 0 to `partitions` - 1. */
export function partitionOf(hash: number, partitions: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) % partitions;
}
