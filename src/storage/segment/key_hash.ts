/**
 * Computes the hash of (owner, primary key) by which a segment's key index is sorted.
 *
 * The hash has 32 bits, mixed as in MurmurHash3 (Austin Appleby, public domain). Text and bytes
 * are represented by their xxHash32. Equal keys have equal hashes, whichever kind of vector they
 * are in. Different keys may have the same hash, so a reader also compares the values.
 */
import { assert } from "../../base/assert.ts";
import { type Row, type Value, type Vector, valueAt } from "../../types/mod.ts";

/**
 * The two halves of a number as signed integers, so that loops compute with integers instead of
 * doubles.
 */
const words: Int32Array = new Int32Array(2);
const number: Float64Array = new Float64Array(words.buffer);

/** The number of rows hashed between two yields. */
const STEP_ROWS = 16384;

/** Hashes the keys of rows, yielding often. */
export function* hashKeys(
  owners: Float64Array,
  keyVectors: readonly Vector[],
): Generator<void, Uint32Array> {
  const hashes = new Int32Array(owners.length);
  mixNumbers(hashes, owners, 0);
  for (const vector of keyVectors) {
    assert(
      vector.length === hashes.length,
      "key hash: key column length differs from the row count",
    );
    for (let start = 0; start < hashes.length; start += STEP_ROWS) {
      mixVector(hashes.subarray(start, start + STEP_ROWS), vector, start);
      yield;
    }
  }
  for (let row = 0; row < hashes.length; row += 1) hashes[row] = finishHash(hashes[row] as number);
  return new Uint32Array(hashes.buffer);
}

/** Mixes a vector's values into the key hashes of some rows. */
function mixVector(hashes: Int32Array, vector: Vector, start: number): void {
  if (vector.kind === "i32" || vector.kind === "f64") {
    mixNumbers(hashes, vector.values, start);
    return;
  }
  for (let i = 0; i < hashes.length; i += 1) {
    hashes[i] = mixValue(hashes[i] as number, valueAt(vector, start + i));
  }
}

function mixNumbers(hashes: Int32Array, values: Int32Array | Float64Array, start: number): void {
  for (let i = 0; i < hashes.length; i += 1) {
    hashes[i] = mixNumber(hashes[i] as number, values[start + i] as number);
  }
}

/** Returns the hash of a single key, equal to the hash that {@linkcode hashKeys} computes. */
export function hashOfKey(owner: number, key: Row): number {
  let hash = mixNumber(0, owner);
  for (const value of key) hash = mixValue(hash, value);
  return finishHash(hash) >>> 0;
}

function mixValue(hash: number, value: Value): number {
  switch (typeof value) {
    case "number":
      return mixNumber(hash, value);
    case "boolean":
      return mixNumber(hash, value ? 1 : 0);
    case "string":
      return mix(mix(hash, Bun.hash.xxHash32(value)), value.length);
    case "bigint":
      return mixWide(hash, value);
    default:
      assert(value instanceof Uint8Array, "key hash: key value is NULL or not a scalar");
      return mix(mix(hash, Bun.hash.xxHash32(value)), value.length);
  }
}

function mixNumber(hash: number, value: number): number {
  // 0 and -0 are the same key, and so are all bit patterns of NaN.
  number[0] = Number.isNaN(value) ? Number.NaN : value + 0;
  return mix(mix(hash, words[0] ?? 0), words[1] ?? 0);
}

function mixWide(hash: number, value: bigint): number {
  let mixed = hash;
  for (let shift = 0n; shift < 128n; shift += 32n) {
    mixed = mix(mixed, Number((value >> shift) & 0xffffffffn));
  }
  return mixed;
}

function mix(hash: number, word: number): number {
  let mixed = Math.imul(word, 0xcc9e2d51);
  mixed = (mixed << 15) | (mixed >>> 17);
  mixed = hash ^ Math.imul(mixed, 0x1b873593);
  mixed = (mixed << 13) | (mixed >>> 19);
  return (Math.imul(mixed, 5) + 0xe6546b64) | 0;
}

function finishHash(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
