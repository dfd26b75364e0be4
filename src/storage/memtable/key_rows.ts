/**
 * Maps each key of one owner to its newest row in a memtable.
 *
 * Nearly every key is a single number, and most keys arrive in ascending order. Ascending keys are
 * kept in a list that is searched by bisection, to which a bulk load only appends. Other numbers
 * are kept in an open-addressing hash table. Both use typed arrays, which the garbage collector
 * does not traverse; with a Map, a bulk load would be noticeably slower. Keys that are not numbers
 * are kept in a Map.
 *
 * - A number is either in the list or in the table, never in both. No number in the table is
 *   greater than the last number in the list.
 * - A removed key keeps its slot, which then has no row. Such slots are dropped when the table
 *   grows.
 * - At least one slot of the table is always free, so every search ends.
 */
import { HASH_FACTOR, HASH_SEED } from "../../base/hash_salt.ts";
import type { Key } from "../contract/key.ts";
import { newGrowth } from "./mem_column.ts";

const PLACES_MIN = 8;

/**
 * The maximum number of keys in a single hash table. More keys are divided among several tables,
 * because a growing table copies all of its keys at once, which would take too long for a tick.
 */
const UNDIVIDED_KEYS_MAX = 16_384;

/**
 * The number of hash tables among which many keys are divided. Tables of equal size would all grow
 * at the same time. Each table therefore gets 1.1 % more keys than the previous table, and the
 * last table twice as many as the first. While the number of keys doubles, each table grows once,
 * one after another.
 */
const PARTS = 64;
const SHARES = 1024;

/** For each share of the hash values, the index of the hash table to which it belongs. */
const PART_OF_SHARE: Uint8Array = Uint8Array.from({ length: SHARES }, (_, share) =>
  Math.floor(PARTS * Math.log2(1 + share / SHARES)),
);

/**
 * The content of a slot that was never used. A used slot contains a row number plus one, or
 * `FORGOTTEN` once its key is removed.
 */
const FREE = 0;
const FORGOTTEN = -1;

const NONE = -1;

/** Two views of the same memory, which split a double into two 32-bit halves for hashing. */
const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

export class KeyRows {
  readonly #ascending = new AscendingKeys();
  /**
   * The hash tables of numeric keys. Like the map, they are created on first use, since an owner
   * may have only a few rows.
   */
  #table: KeyTables | undefined;
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
      this.#table ??= new KeyTables();
      this.#table.set(key, row + 1);
    }
  }

  /**
   * Records consecutive rows, starting at `first`, for ascending numeric keys greater than all
   * existing keys.
   */
  append(keys: Float64Array | Int32Array, first: number): void {
    this.#ascending.appendAll(keys, first + 1);
  }

  forget(key: Key): void {
    if (!isNumber(key)) this.#others?.delete(key);
    else if (this.#ascending.rowOf(key) !== undefined) this.#ascending.set(key, FORGOTTEN);
    else if (this.#table?.rowOf(key) !== undefined) this.#table.set(key, FORGOTTEN);
  }

  /** Releases the capacity reserved for further keys. */
  releaseGrowth(): void {
    this.#ascending.releaseGrowth();
  }

  /** Calls `visit` with every key and its row. */
  visit(visit: Visit): void {
    this.#ascending.visit(visit);
    this.#table?.visit(visit);
    for (const [key, row] of this.#others ?? []) visit(key, row);
  }
}

type Visit = (key: Key, row: number) => void;

/** The growth strategy shared by all key lists that are short. */
const SMALL_KEYS = newGrowth<Float64Array>((capacity) => new Float64Array(capacity));
const SMALL_ROWS = newGrowth<Int32Array>((capacity) => new Int32Array(capacity));

/** A list of numeric keys that arrived in ascending order. */
class AscendingKeys {
  keys: Float64Array = new Float64Array(0);
  rows: Int32Array = new Int32Array(0);
  #keyGrowth = SMALL_KEYS;
  #rowGrowth = SMALL_ROWS;
  #count = 0;
  #last: number = Number.NEGATIVE_INFINITY;

  /** Returns the row of a key; undefined if the key is not in the list. */
  rowOf(key: number): number | undefined {
    const place = this.#placeOf(key);
    return place === NONE ? undefined : this.rows[place];
  }

  /**
   * Records a row if its key is in the list or can be appended to it. Returns whether the row was
   * recorded.
   */
  set(key: number, row: number): boolean {
    if (key > this.#last || this.#count === 0) {
      this.#append(key, row);
      return true;
    }
    const place = this.#placeOf(key);
    if (place === NONE) return false;
    this.rows[place] = row;
    this.#rowGrowth.noteChanged(place, row);
    return true;
  }

  /**
   * Records consecutive rows, starting at `row`, for ascending keys that are all above the last
   * key.
   */
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

  #reserve(needed: number): void {
    this.#keyGrowth = this.#keyGrowth.ownFor(this.keys);
    this.#rowGrowth = this.#rowGrowth.ownFor(this.rows);
    this.keys = this.#keyGrowth.arrayFor(this.keys, this.#count, needed);
    this.rows = this.#rowGrowth.arrayFor(this.rows, this.#count, needed);
  }

  releaseGrowth(): void {
    this.#keyGrowth.release();
    this.#rowGrowth.release();
  }

  visit(visit: Visit): void {
    visitPlaces(this.keys, this.rows, visit);
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

/** Visits each slot that has a row. The number stored in the slot is the row number plus one. */
function visitPlaces(keys: Float64Array, rows: Int32Array, visit: Visit): void {
  for (let place = 0; place < rows.length; place += 1) {
    const row = rows[place] ?? FREE;
    if (row > FREE) visit(keys[place] ?? 0, row - 1);
  }
}

/** Keys in a hash table or, if there are many keys, in several hash tables. */
class KeyTables {
  #tables: readonly KeyTable[] = [new KeyTable()];

  rowOf(key: number): number | undefined {
    const hash = hashOf(key);
    return this.#tableOf(hash).rowOf(key, hash);
  }

  set(key: number, row: number): void {
    const hash = hashOf(key);
    const table = this.#tableOf(hash);
    table.set(key, row, hash);
    if (table.usedCount <= UNDIVIDED_KEYS_MAX || this.#tables.length > 1) return;
    this.#tables = Array.from({ length: PARTS }, () => new KeyTable());
    table.visit((known, itsRow) => this.set(Number(known), itsRow + 1));
  }

  visit(visit: Visit): void {
    for (const table of this.#tables) table.visit(visit);
  }

  #tableOf(hash: number): KeyTable {
    const tables = this.#tables;
    // The lower bits choose the table, because each table uses the upper bits to choose a slot.
    const index = tables.length === 1 ? 0 : PART_OF_SHARE[hash & (SHARES - 1)];
    return tables[index ?? 0] as KeyTable;
  }
}

/** Keys in an open-addressing hash table. The hash covers all bits of a key. */
class KeyTable {
  keys: Float64Array = new Float64Array(PLACES_MIN);
  rows: Int32Array = new Int32Array(PLACES_MIN);
  #usedCount = 0;

  /** The number of slots in use, including the slots of removed keys. */
  get usedCount(): number {
    return this.#usedCount;
  }

  visit(visit: Visit): void {
    visitPlaces(this.keys, this.rows, visit);
  }

  rowOf(key: number, hash: number): number | undefined {
    const row = this.rows[this.#placeOf(key, hash)] ?? FREE;
    return row === FREE ? undefined : row;
  }

  set(key: number, row: number, hash: number): void {
    // At least a third of the slots stay free, because searches would otherwise become slow.
    if (this.#usedCount * 3 >= this.rows.length * 2) this.#grow();
    const place = this.#placeOf(key, hash);
    if (this.rows[place] === FREE) {
      this.keys[place] = key;
      this.#usedCount += 1;
    }
    this.rows[place] = row;
  }

  /** Returns the slot of a numeric key, or the free slot where the key would be stored. */
  #placeOf(key: number, hash: number): number {
    const { keys, rows } = this;
    const last = rows.length - 1;
    let place = hash >>> Math.clz32(last);
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
      const place = this.#placeOf(key, hashOf(key));
      this.keys[place] = key;
      this.rows[place] = row;
      this.#usedCount += 1;
    }
  }
}

/** Whether a key is a number other than NaN, which does not equal itself. */
function isNumber(key: Key): key is number {
  return typeof key === "number" && !Number.isNaN(key);
}

/** Mixes all bits of a number into the upper bits of a 32-bit hash. */
function hashOf(key: number): number {
  // Adding 0 turns -0 into 0, because 0 and -0 are the same key.
  double[0] = key + 0;
  const high = Math.imul((halves[1] ?? 0) ^ HASH_SEED, HASH_FACTOR);
  let hash = Math.imul((halves[0] ?? 0) ^ high, 0x9e3779b1);
  hash ^= hash >>> 15;
  return Math.imul(hash, 0xc2b2ae35);
}
