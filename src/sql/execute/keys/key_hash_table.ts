/**
 * Implements a hash table of keys: equal keys get the same dense id, in order of first appearance.
 * Grouping and joins both use it.
 *
 * Each column of a key is represented by one double per row (`column_codes.ts`). The doubles of a
 * key are looked up in a single open-addressing table and stored side by side, so that comparing
 * two keys costs a single cache miss instead of one per column:
 *
 *     #slots                      id of a key by its hash       (`hash_slots.ts`)
 *     #keys[id * width + i]       the double of column i of that key
 *
 * A key that is a single string needs no codes: its id is the id of the interned string
 * (`text_interner.ts`).
 */
import { defined } from "../../../base/assert.ts";
import { HASH_FACTOR, HASH_SEED } from "../../../base/hash_salt.ts";
import { type DataType, isNullAt, type Vector } from "../../../types/mod.ts";
import { CELL_BYTES, ColumnCodes } from "./column_codes.ts";
import { HashSlots } from "./hash_slots.ts";
import type { TextInterner } from "./text_interner.ts";

/**
 * The id for a row whose key is not in the table, or contains a NULL where NULL equals nothing.
 */
export const NO_KEY = -1;

/** The initial capacities of the hash buffer for a batch and of the array of keys. */
const HASHES_MIN = 64;
const KEYS_MIN = 32;
const UINT32_SPAN = 4_294_967_296;

export class KeyHashTable {
  readonly #codes: readonly ColumnCodes[];
  /** The number of columns that form a key. */
  readonly #width: number;
  #keys: Float64Array<ArrayBuffer>;
  readonly #slots = new HashSlots();
  /**
   * The interner, if each key is a single string. The ids of the strings are then also the ids of
   * the keys.
   */
  readonly #texts: TextInterner | undefined;
  /** These buffers are reused by every call, because a batch may have only one row. */
  #hashes = new Int32Array(HASHES_MIN);
  #count = 0;

  constructor(types: readonly DataType[]) {
    this.#codes = types.map((type) => new ColumnCodes(type));
    this.#texts = types.length === 1 ? this.#codes[0]?.texts : undefined;
    this.#width = types.length;
    this.#keys = new Float64Array(KEYS_MIN * types.length);
  }

  /** The number of distinct keys in the table. */
  get count(): number {
    return this.#texts?.count ?? this.#count;
  }

  /**
   * Returns the values of consecutive keys in one column. Only columns of integers and strings are
   * supported.
   */
  vectorOf(position: number, start: number, end: number): Vector {
    if (this.#texts !== undefined) return this.#texts.rangeOf(start, end);
    const keys = this.#keys;
    const width = this.#width;
    const codes = new Float64Array(end - start);
    for (let i = 0, at = start * width + position; i < codes.length; i += 1, at += width) {
      codes[i] = keys[at] ?? 0;
    }
    return defined(this.#codes[position], "key hash table: key column has no codes").vectorOf(
      codes,
    );
  }

  /** The memory that the keys of the table take up, in bytes. */
  get bytes(): number {
    if (this.#texts !== undefined) return this.#texts.bytes;
    let bytes = this.#count * (8 + CELL_BYTES * this.#width);
    for (const codes of this.#codes) bytes += codes.bytes;
    return bytes;
  }

  /**
   * Returns the id of each row's key, after adding the keys that are new. NULLs equal each other.
   */
  add(vectors: readonly Vector[], rowCount: number): Int32Array {
    return this.#idsOf(vectors, rowCount, true);
  }

  /** Returns the id of each row's key, or NO_KEY for a key that is not in the table. */
  find(vectors: readonly Vector[], rowCount: number): Int32Array {
    return this.#idsOf(vectors, rowCount, false);
  }

  #idsOf(vectors: readonly Vector[], rowCount: number, isAdding: boolean): Int32Array {
    const [only] = vectors;
    if (this.#texts !== undefined && only !== undefined) {
      return this.#texts.idsOf(only, rowCount, isAdding);
    }
    const codes = vectors.map((vector, i) =>
      defined(this.#codes[i], "key hash table: key column has no codes").codesOf(
        vector,
        rowCount,
        isAdding,
      ),
    );
    const ids = new Int32Array(rowCount);
    const hashes = this.#hashesOf(codes, rowCount);
    this.#slots.guess(hashes, ids);
    for (const [position, column] of codes.entries()) this.#confirm(position, column, ids);
    this.#assignRest(codes, hashes, { into: ids, isAdding });
    return ids;
  }

  /** Discards the candidate ids of rows that differ in this column from the key with that id. */
  #confirm(position: number, codes: Float64Array, ids: Int32Array): void {
    const keys = this.#keys;
    const width = this.#width;
    for (let row = 0; row < ids.length; row += 1) {
      const id = ids[row] ?? NO_KEY;
      if (id >= 0 && keys[id * width + position] !== codes[row]) ids[row] = NO_KEY;
    }
  }

  #hashesOf(codes: readonly Float64Array[], rowCount: number): Int32Array {
    if (this.#hashes.length < rowCount) this.#hashes = new Int32Array(rowCount);
    fillHashes(codes, this.#hashes, rowCount);
    return this.#hashes;
  }

  /**
   * Assigns ids to the rows that have none yet. A key that is not found is added at the slot where
   * probing ended.
   */
  #assignRest(
    codes: readonly Float64Array[],
    hashes: Int32Array,
    { into, isAdding }: { into: Int32Array; isAdding: boolean },
  ): void {
    const width = this.#width;
    const key = new Float64Array(width);
    let keys = this.#keys;
    for (let row = 0; row < into.length; row += 1) {
      if (into[row] !== NO_KEY) continue;
      const hash = hashes[row] ?? 0;
      for (let i = 0; i < width; i += 1) key[i] = codes[i]?.[row] ?? 0;
      const { slots } = this.#slots;
      const mask = slots.length - 1;
      let slot = (hash << 1) & mask;
      let id = NO_KEY;
      for (; ; slot = (slot + 2) & mask) {
        id = (slots[slot + 1] ?? 0) - 1;
        if (id === NO_KEY || (slots[slot] === hash && isKeyAt(keys, id, key))) break;
      }
      if (id === NO_KEY && isAdding) {
        id = this.#count;
        const start = id * width;
        if (start === keys.length) keys = this.#growKeys();
        for (let i = 0; i < width; i += 1) keys[start + i] = key[i] ?? 0;
        this.#slots.addAt(slot, hash, id);
        this.#count += 1;
      }
      into[row] = id;
    }
  }

  #growKeys(): Float64Array<ArrayBuffer> {
    const larger = new Float64Array(2 * this.#keys.length);
    larger.set(this.#keys);
    this.#keys = larger;
    return larger;
  }
}

function isKeyAt(keys: Float64Array, id: number, key: Float64Array): boolean {
  const start = id * key.length;
  for (let i = 0; i < key.length; i += 1) if (keys[start + i] !== key[i]) return false;
  return true;
}

/** Returns a flag for each row whose key contains NULL; undefined if no key does. */
export function nullKeysOf(vectors: readonly Vector[], rowCount: number): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  for (const vector of vectors) {
    if (vector.kind === "any" || vector.kind === "const") {
      for (let row = 0; row < rowCount; row += 1) {
        if (!isNullAt(vector, row)) continue;
        found ??= new Uint8Array(rowCount);
        found[row] = 1;
      }
    } else if (vector.nulls !== undefined) {
      found ??= new Uint8Array(rowCount);
      const { nulls } = vector;
      for (let row = 0; row < rowCount; row += 1) if (nulls[row] === 1) found[row] = 1;
    }
  }
  return found;
}

function fillHashes(codes: readonly Float64Array[], hashes: Int32Array, rowCount: number): void {
  hashes.fill(HASH_SEED, 0, rowCount);
  for (const column of codes) mix(column, hashes, rowCount);
}

// The constants of MurmurHash3 (Austin Appleby). Sums are truncated to 32 bits, so that they never
// become doubles.

const FIRST_MIX = 0x85ebca6b | 0;
const SECOND_MIX = 0xc2b2ae35 | 0;

function mix(values: Float64Array, hashes: Int32Array, rowCount: number): void {
  for (let row = 0; row < rowCount; row += 1) {
    const value = values[row] ?? 0;
    const low = value | 0;
    const high = low === value ? 0 : Math.imul((value / UINT32_SPAN) | 0, HASH_FACTOR);
    let hash = Math.imul(((hashes[row] ?? 0) + (low ^ high)) | 0, FIRST_MIX);
    hash = Math.imul(hash ^ (hash >>> 13), SECOND_MIX);
    hashes[row] = hash ^ (hash >>> 16);
  }
}
