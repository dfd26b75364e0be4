/**
 * The newest row of each key of one owner in a memtable.
 *
 * Nearly every key is one number, and most ascend: those are a list that is searched by halves, and
 * which a bulk load only appends to. Numbers that come in another order are in an open table. Both
 * are typed arrays, which the garbage collector does not look into: a Map made a fifth of the time
 * of a bulk load. Keys that are no numbers are in a Map.
 *
 * - A number is in one of the two once at most, and none of the table is above the end of the list.
 * - What was forgotten keeps its place without a row: in the table until that grows.
 * - A slot of the table is always free, so that a search ends.
 */
import { HASH_FACTOR, HASH_SEED } from "../../base/hash_salt.ts";
import type { Key } from "../contract/key.ts";
import { grown, roomFor } from "./mem_column.ts";

const PLACES_MIN = 8;

/** What a place holds beside row numbers, which are one more there. */
const FREE = 0;
const FORGOTTEN = -1;

const NONE = -1;

/** To take a double apart for its hash. */
const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

export class KeyRows {
  readonly #ascending = new AscendingKeys();
  /** Made with the first that needs it, as is the map: an owner may have a few rows only. */
  #table: KeyTable | undefined;
  #others: Map<Key, number> | undefined;

  get(key: Key): number | undefined {
    if (!isNumber(key)) return this.#others?.get(key);
    const row = this.#ascending.rowOf(key) ?? this.#table?.rowOf(key) ?? FREE;
    return row > FREE ? row - 1 : undefined;
  }

  set(key: Key, row: number): void {
    if (!isNumber(key)) {
      this.#others ??= new Map();
      this.#others.set(key, row);
    } else if (!this.#ascending.set(key, row + 1)) {
      this.#table ??= new KeyTable();
      this.#table.set(key, row + 1);
    }
  }

  /** Notes rows from `first` on for ascending numbers, above every number that is here. */
  append(keys: Float64Array | Int32Array, first: number): void {
    this.#ascending.appendAll(keys, first + 1);
  }

  forget(key: Key): void {
    if (!isNumber(key)) this.#others?.delete(key);
    else if (this.#ascending.rowOf(key) !== undefined) this.#ascending.set(key, FORGOTTEN);
    else if (this.#table?.rowOf(key) !== undefined) this.#table.set(key, FORGOTTEN);
  }

  /** Every key with its row. */
  visit(visit: (key: Key, row: number) => void): void {
    for (const list of [this.#ascending, this.#table]) {
      if (list === undefined) continue;
      const { keys, rows } = list;
      for (let place = 0; place < rows.length; place += 1) {
        const row = rows[place] ?? FREE;
        if (row > FREE) visit(keys[place] ?? 0, row - 1);
      }
    }
    for (const [key, row] of this.#others ?? []) visit(key, row);
  }
}

/** Keys that came in ascending order. */
class AscendingKeys {
  keys: Float64Array = new Float64Array(0);
  rows: Int32Array = new Int32Array(0);
  #count = 0;
  #last: number = Number.NEGATIVE_INFINITY;

  /** What is noted of a key; undefined when it is not in the list. */
  rowOf(key: number): number | undefined {
    const place = this.#placeOf(key);
    return place === NONE ? undefined : this.rows[place];
  }

  /** Notes a row for a key that is in the list or belongs at its end. Returns whether it does. */
  set(key: number, row: number): boolean {
    if (key > this.#last || this.#count === 0) {
      this.#append(key, row);
      return true;
    }
    const place = this.#placeOf(key);
    if (place === NONE) return false;
    this.rows[place] = row;
    return true;
  }

  /** Notes rows from `row` on for keys that ascend from above the last one. */
  appendAll(keys: Float64Array | Int32Array, row: number): void {
    const place = this.#count;
    const count = place + keys.length;
    this.#reserve(count);
    this.keys.set(keys, place);
    for (let index = 0; index < keys.length; index += 1) this.rows[place + index] = row + index;
    this.#last = keys.at(-1) ?? this.#last;
    this.#count = count;
  }

  #append(key: number, row: number): void {
    const place = this.#count;
    this.#reserve(place + 1);
    this.keys[place] = key;
    this.rows[place] = row;
    this.#last = key;
    this.#count = place + 1;
  }

  #reserve(count: number): void {
    // At other numbers of rows than the arrays of a memtable.
    const keyRoom = roomFor(count, this.keys.length, 4.5);
    const rowRoom = roomFor(count, this.rows.length, 5.5);
    if (keyRoom !== undefined) {
      this.keys = grown(this.keys, new Float64Array(Math.max(PLACES_MIN, keyRoom)));
    }
    if (rowRoom !== undefined) {
      this.rows = grown(this.rows, new Int32Array(Math.max(PLACES_MIN, rowRoom)));
    }
  }

  #placeOf(key: number): number {
    if (!(key <= this.#last)) return NONE;
    const { keys } = this;
    let low = 0;
    let high = this.#count - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((keys[middle] ?? 0) < key) low = middle + 1;
      else high = middle;
    }
    return keys[low] === key ? low : NONE;
  }
}

/** Keys in an open table, by a hash of all their bits. */
class KeyTable {
  keys: Float64Array = new Float64Array(PLACES_MIN);
  rows: Int32Array = new Int32Array(PLACES_MIN);
  #usedCount = 0;

  rowOf(key: number): number | undefined {
    const row = this.rows[this.#placeOf(key)] ?? FREE;
    return row === FREE ? undefined : row;
  }

  set(key: number, row: number): void {
    // A third of the places stays free, or searches would grow long.
    if (this.#usedCount * 3 >= this.rows.length * 2) this.#grow();
    const place = this.#placeOf(key);
    if (this.rows[place] === FREE) {
      this.keys[place] = key;
      this.#usedCount += 1;
    }
    this.rows[place] = row;
  }

  /** The place of a number, or the free one where it belongs. */
  #placeOf(key: number): number {
    const { keys, rows } = this;
    const last = rows.length - 1;
    let place = hashOf(key) >>> Math.clz32(last);
    while (rows[place] !== FREE && keys[place] !== key) place = (place + 1) & last;
    return place;
  }

  #grow(): void {
    const { keys, rows } = this;
    this.keys = new Float64Array(rows.length * 2);
    this.rows = new Int32Array(rows.length * 2);
    this.#usedCount = 0;
    for (let from = 0; from < rows.length; from += 1) {
      const row = rows[from] ?? FREE;
      if (row <= FREE) continue;
      const key = keys[from] ?? 0;
      const place = this.#placeOf(key);
      this.keys[place] = key;
      this.rows[place] = row;
      this.#usedCount += 1;
    }
  }
}

/** NaN is no number that is equal to itself. */
function isNumber(key: Key): key is number {
  return typeof key === "number" && !Number.isNaN(key);
}

/** Mixes all bits, for the upper ones to be used. @returns Any 32 bits. */
function hashOf(key: number): number {
  // 0 and -0 are the same key.
  double[0] = key + 0;
  const high = Math.imul((halves[1] ?? 0) ^ HASH_SEED, HASH_FACTOR);
  let hash = Math.imul((halves[0] ?? 0) ^ high, 0x9e3779b1);
  hash ^= hash >>> 15;
  return Math.imul(hash, 0xc2b2ae35);
}
