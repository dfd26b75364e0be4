/**
 * Numbers keys: equal keys get the same dense number, in order of first appearance. Grouping and
 * joins share it.
 *
 * Each column of a key becomes one double a row (`column_codes.ts`). The doubles of a key go
 * through one table with open addressing, and lie side by side, so that comparing a key is one miss
 * of the cache and not one a column:
 *
 *     #slots                      number of a key by its hash (`hash_slots.ts`)
 *     #keys[number * width + i]   the double of column i of that key
 *
 * A key of one text needs none of that: its number is that of the text (`text_table.ts`).
 */
import { defined } from "../../../base/assert.ts";
import { HASH_FACTOR, HASH_SEED } from "../../../base/hash_salt.ts";
import { type DataType, isNullAt, type Vector } from "../../../types/mod.ts";
import { CELL_BYTES, ColumnCodes } from "./column_codes.ts";
import { HashSlots } from "./hash_slots.ts";
import type { TextTable } from "./text_table.ts";

/** Stands for no key: of rows whose key is not known, or has a NULL that equals nothing. */
export const NO_KEY = -1;

/** Hashes of a batch, and keys, that there is room for at first. */
const HASHES_MIN = 64;
const KEYS_MIN = 32;
const UINT32_SPAN = 4_294_967_296;

export class KeyIndex {
  readonly #codes: readonly ColumnCodes[];
  /** Columns of a key. */
  readonly #width: number;
  #keys: Float64Array<ArrayBuffer>;
  readonly #slots = new HashSlots();
  /** Of a key of one text: its numbers are those of the keys. */
  readonly #texts: TextTable | undefined;
  /** Used again by each call: batches may be of one row. */
  #hashes = new Int32Array(HASHES_MIN);
  #count = 0;

  constructor(types: readonly DataType[]) {
    this.#codes = types.map((type) => new ColumnCodes(type));
    this.#texts = types.length === 1 ? this.#codes[0]?.texts : undefined;
    this.#width = types.length;
    this.#keys = new Float64Array(KEYS_MIN * types.length);
  }

  /** How many different keys there are. */
  get count(): number {
    return this.#texts?.count ?? this.#count;
  }

  /** The values of a column of keys that follow each other; of whole numbers and texts only. */
  vectorOf(position: number, start: number, end: number): Vector {
    if (this.#texts !== undefined) return this.#texts.rangeOf(start, end);
    const keys = this.#keys;
    const width = this.#width;
    const codes = new Float64Array(end - start);
    for (let i = 0, at = start * width + position; i < codes.length; i += 1, at += width) {
      codes[i] = keys[at] ?? 0;
    }
    return defined(this.#codes[position], "a key has its columns").vectorOf(codes);
  }

  /** Bytes that the keys take. */
  get bytes(): number {
    if (this.#texts !== undefined) return this.#texts.bytes;
    let bytes = this.#count * (8 + CELL_BYTES * this.#width);
    for (const codes of this.#codes) bytes += codes.bytes;
    return bytes;
  }

  /** The numbers of the keys of all rows; new ones are added. NULLs are equal to each other. */
  add(vectors: readonly Vector[], rowCount: number): Int32Array {
    return this.#numbersOf(vectors, rowCount, true);
  }

  /** The numbers of the keys of all rows, or NO_KEY. */
  find(vectors: readonly Vector[], rowCount: number): Int32Array {
    return this.#numbersOf(vectors, rowCount, false);
  }

  #numbersOf(vectors: readonly Vector[], rowCount: number, isAdding: boolean): Int32Array {
    const [only] = vectors;
    if (this.#texts !== undefined && only !== undefined) {
      return this.#texts.numbersOf(only, rowCount, isAdding);
    }
    const codes = vectors.map((vector, i) =>
      defined(this.#codes[i], "a key has its columns").codesOf(vector, rowCount, isAdding),
    );
    const numbers = new Int32Array(rowCount);
    const hashes = this.#hashesOf(codes, rowCount);
    this.#slots.guess(hashes, numbers);
    for (const [position, column] of codes.entries()) this.#confirm(position, column, numbers);
    this.#numberRest(codes, hashes, { into: numbers, isAdding });
    return numbers;
  }

  /** Leaves only numbers whose keys have the codes of their rows in this column. */
  #confirm(position: number, codes: Float64Array, numbers: Int32Array): void {
    const keys = this.#keys;
    const width = this.#width;
    for (let row = 0; row < numbers.length; row += 1) {
      const number = numbers[row] ?? NO_KEY;
      if (number >= 0 && keys[number * width + position] !== codes[row]) numbers[row] = NO_KEY;
    }
  }

  #hashesOf(codes: readonly Float64Array[], rowCount: number): Int32Array {
    if (this.#hashes.length < rowCount) this.#hashes = new Int32Array(rowCount);
    fillHashes(codes, this.#hashes, rowCount);
    return this.#hashes;
  }

  /** Numbers rows that have none. Where a key is not found is where it is put. */
  #numberRest(
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
      let number = NO_KEY;
      for (; ; slot = (slot + 2) & mask) {
        number = (slots[slot + 1] ?? 0) - 1;
        if (number === NO_KEY || (slots[slot] === hash && isKeyAt(keys, number, key))) break;
      }
      if (number === NO_KEY && isAdding) {
        number = this.#count;
        const start = number * width;
        if (start === keys.length) keys = this.#growKeys();
        for (let i = 0; i < width; i += 1) keys[start + i] = key[i] ?? 0;
        this.#slots.addAt(slot, hash, number);
        this.#count += 1;
      }
      into[row] = number;
    }
  }

  #growKeys(): Float64Array<ArrayBuffer> {
    const larger = new Float64Array(2 * this.#keys.length);
    larger.set(this.#keys);
    this.#keys = larger;
    return larger;
  }
}

function isKeyAt(keys: Float64Array, number: number, key: Float64Array): boolean {
  const start = number * key.length;
  for (let i = 0; i < key.length; i += 1) if (keys[start + i] !== key[i]) return false;
  return true;
}

/** Whether each row has a NULL in its key; undefined when none has. */
export function nullKeysOf(vectors: readonly Vector[], rowCount: number): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  for (const vector of vectors) {
    const mayHave = vector.kind === "any" || vector.kind === "const" || vector.nulls !== undefined;
    if (!mayHave) continue;
    for (let row = 0; row < rowCount; row += 1) {
      if (!isNullAt(vector, row)) continue;
      found ??= new Uint8Array(rowCount);
      found[row] = 1;
    }
  }
  return found;
}

function fillHashes(codes: readonly Float64Array[], hashes: Int32Array, rowCount: number): void {
  hashes.fill(HASH_SEED, 0, rowCount);
  for (const column of codes) mix(column, hashes, rowCount);
}

// The constants are those of MurmurHash3 (Austin Appleby); sums are cut to 32 bits, so that none
// becomes a double.

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
