/**
 * Indexes the build rows of a join by key.
 *
 *     add, add, … ──finish──► keyIdsOf, starts, rows
 *
 * The rows with key id n are rows[starts[n]] up to rows[starts[n + 1]], in the order in which they
 * were added. If the key is a single column of integers that are close together, as in most
 * tables, the id of a key is its distance from the smallest key, and nothing is hashed. Otherwise,
 * a {@linkcode KeyHashTable} assigns the ids. Rows with NULL in their key have no id, because NULL
 * equals nothing.
 */
import { assert } from "../../../base/assert.ts";
import { type DataType, isWholeType, type Vector, valueAt } from "../../../types/mod.ts";
import { KeyHashTable, NO_KEY, nullKeysOf } from "../keys/key_hash_table.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";

/**
 * If the range of the keys contains at most this many integers, the keys are indexed without
 * hashing.
 */
const SPAN_MIN = 65_536;
/**
 * If the range of the keys contains at most this many integers per row, the keys are indexed
 * without hashing.
 */
const SPAN_PER_ROW = 16;
const SPAN_MAX = 2 ** 24;
/**
 * The maximum memory for the positions of a range of keys is the statement's memory divided by
 * this number. Each position temporarily takes up two numbers.
 */
const SPAN_MEMORY_SHARE = 16;

/**
 * The memory, in bytes, that a row with a hashed key takes up: for the key in the index and for
 * the number of the row.
 */
const HASHED_ROW_BYTES = 32;

/** The keys of a batch, before the range of all keys is known. */
interface WaitingKeys {
  readonly values: Int32Array | Float64Array;
  readonly nulls: Uint8Array | undefined;
}

export class JoinTable {
  readonly #index: KeyHashTable;
  readonly #memory: MemoryBudget;
  readonly #isBare: boolean;
  /**
   * The keys of all batches so far, before they are indexed; undefined once the keys must be
   * hashed.
   */
  #waiting: WaitingKeys[] | undefined;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  #rowCount = 0;
  /**
   * The number of bytes reserved for the result of {@linkcode finish} while keys are being
   * collected.
   */
  #reservedBytes = 0;
  /** The key ids of the rows so far, batch by batch, once keys are hashed. */
  #keyIds: Int32Array[] = [];
  #isDense = false;
  #isUnique = false;
  #starts = new Int32Array(0);
  #rows = new Uint32Array(0);

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#index = new KeyHashTable(types);
    this.#memory = memory;
    this.#isBare = types.length === 0;
    const [only] = types;
    this.#waiting = types.length === 1 && only !== undefined && isWholeType(only) ? [] : undefined;
  }

  /**
   * Returns, for each key id, the position in `rows` at which the rows with this key begin. An
   * additional entry marks the end.
   */
  get starts(): Int32Array {
    return this.#starts;
  }

  get rows(): Uint32Array {
    return this.#rows;
  }

  /** Whether every key of the build side has at most one row. */
  get isUnique(): boolean {
    return this.#isUnique;
  }

  /**
   * Adds the rows of a batch. If the join has no keys, all rows get the key id 0.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  add(keys: readonly Vector[], rowCount: number): void {
    this.#rowCount += rowCount;
    const [only] = keys;
    if (this.#waiting !== undefined) {
      if (only !== undefined && (only.kind === "i32" || only.kind === "f64")) {
        this.#memory.take(8 * rowCount);
        this.#wait(only, rowCount);
        this.#reserve();
        return;
      }
      this.#stopWaiting();
    }
    this.#addHashed(keys, rowCount);
  }

  /**
   * Builds the index. It must be called after the last rows have been added.
   *
   * @param checkTime Called at intervals.
   */
  finish(checkTime: () => void): void {
    this.#release();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined && this.#liesClose()) {
      const span = this.#max - this.#min + 1;
      this.#isDense = true;
      this.#keyIds = waiting.map(({ nulls, values }) => {
        const keyIds =
          values instanceof Int32Array
            ? distancesOfInt32(values, this.#min)
            : distancesOfFloat64(values, this.#min);
        clearNulls(keyIds, nulls);
        return keyIds;
      });
      this.#memory.take(4 * span);
      this.#sort(span, checkTime);
    } else {
      for (const { nulls, values } of waiting ?? []) {
        checkTime();
        this.#addHashed([vectorOf(values, nulls)], values.length);
      }
      this.#sort(this.#isBare ? 1 : this.#index.count, checkTime);
    }
    this.#keyIds = [];
  }

  /** Returns the key id of each row, or NO_KEY if no build row has the same key. */
  keyIdsOf(keys: readonly Vector[], rowCount: number): Int32Array {
    if (this.#isBare) return new Int32Array(rowCount);
    const [only] = keys;
    if (this.#isDense && only !== undefined) return this.#distancesOf(only, rowCount);
    const keyIds = this.#index.find(keys, rowCount);
    clearNulls(keyIds, nullKeysOf(keys, rowCount));
    return keyIds;
  }

  /**
   * Like {@linkcode keyIdsOf}, but also returns NO_KEY for a key id to which no build row belongs.
   */
  builtKeyIdsOf(keys: readonly Vector[], rowCount: number): Int32Array {
    const keyIds = this.keyIdsOf(keys, rowCount);
    const starts = this.#starts;
    for (let row = 0; row < rowCount; row += 1) {
      const keyId = keyIds[row] ?? NO_KEY;
      if (keyId !== NO_KEY && starts[keyId] === starts[keyId + 1]) keyIds[row] = NO_KEY;
    }
    return keyIds;
  }

  /**
   * Whether the keys so far are close enough together that reserving a position for every integer
   * in their range is worthwhile.
   */
  #liesClose(): boolean {
    const span = this.#max - this.#min + 1;
    const rowsMax = Math.max(SPAN_MIN, SPAN_PER_ROW * this.#rowCount);
    const memoryMax = this.#memory.bytesMax / SPAN_MEMORY_SHARE;
    return span > 0 && span <= Math.min(SPAN_MAX, rowsMax, memoryMax);
  }

  /**
   * Reserves memory for the finished index in advance, so that the join starts spilling its rows
   * in time.
   */
  #reserve(): void {
    const span = this.#max - this.#min + 1;
    const bytes = this.#liesClose() ? 4 * span : HASHED_ROW_BYTES * this.#rowCount;
    this.#release();
    this.#memory.take(bytes);
    this.#reservedBytes = bytes;
  }

  #release(): void {
    this.#memory.release(this.#reservedBytes);
    this.#reservedBytes = 0;
  }

  #wait(vector: Extract<Vector, { kind: "i32" | "f64" }>, rowCount: number): void {
    // The input's vectors are valid only until the next call to the input, so the keys are copied.
    const values = vector.values.slice(0, rowCount);
    const nulls = vector.nulls?.slice(0, rowCount);
    const bounds = nulls === undefined ? boundsOf(values) : boundsOfKnown(values, nulls);
    this.#min = Math.min(this.#min, bounds.min);
    this.#max = Math.max(this.#max, bounds.max);
    this.#waiting?.push({ values, nulls });
  }

  /** Stops collecting keys, and switches to hashing. */
  #stopWaiting(): void {
    this.#release();
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const { nulls, values } of waiting)
      this.#addHashed([vectorOf(values, nulls)], values.length);
  }

  #addHashed(keys: readonly Vector[], rowCount: number): void {
    const bytesBefore = this.#index.bytes;
    const keyIds = this.#isBare ? new Int32Array(rowCount) : this.#index.add(keys, rowCount);
    clearNulls(keyIds, nullKeysOf(keys, rowCount));
    this.#memory.take(this.#index.bytes - bytesBefore + 8 * rowCount);
    this.#keyIds.push(keyIds);
  }

  /** Sorts the rows by key id with a counting sort. Rows with the same key id keep their order. */
  #sort(keyCount: number, checkTime: () => void): void {
    const starts = new Int32Array(keyCount + 1);
    let most = 0;
    for (const keyIds of this.#keyIds) {
      checkTime();
      most = Math.max(most, countNumbers(keyIds, starts));
    }
    addUp(starts);
    const rows = new Uint32Array(starts[keyCount] ?? 0);
    let row = 0;
    for (const keyIds of this.#keyIds) {
      checkTime();
      placeRows(keyIds, rows, { next: starts, firstRow: row });
      row += keyIds.length;
    }
    assert(row === this.#rowCount, "hash join: not all build rows were placed");
    // By now, each start has been advanced to the start of the next key id.
    starts.copyWithin(1, 0, keyCount);
    starts[0] = 0;
    this.#starts = starts;
    this.#rows = rows;
    this.#isUnique = most <= 1;
  }

  #distancesOf(vector: Vector, rowCount: number): Int32Array {
    const count = this.#starts.length - 1;
    const min = this.#min;
    if (vector.kind === "i32" || vector.kind === "f64") {
      const keyIds =
        vector.values instanceof Int32Array
          ? placesOfInt32(vector.values, { min, count, rowCount })
          : placesOfFloat64(vector.values, { min, count, rowCount });
      clearNulls(keyIds, vector.nulls);
      return keyIds;
    }
    const keyIds = new Int32Array(rowCount);
    for (let row = 0; row < rowCount; row += 1) keyIds[row] = placeOf(vector, row, { min, count });
    return keyIds;
  }
}

function vectorOf(values: Int32Array | Float64Array, nulls: Uint8Array | undefined): Vector {
  const { length } = values;
  return values instanceof Int32Array
    ? { kind: "i32", length, values, nulls }
    : { kind: "f64", length, values, nulls };
}

/** Counts the rows of each key id, shifted by one position. Returns the largest count so far. */
function countNumbers(keyIds: Int32Array, counts: Int32Array): number {
  let most = 0;
  for (let i = 0; i < keyIds.length; i += 1) {
    const keyId = keyIds[i] ?? NO_KEY;
    if (keyId === NO_KEY) continue;
    const count = (counts[keyId + 1] ?? 0) + 1;
    counts[keyId + 1] = count;
    if (count > most) most = count;
  }
  return most;
}

function addUp(counts: Int32Array): void {
  let sum = 0;
  for (let i = 0; i < counts.length; i += 1) {
    sum += counts[i] ?? 0;
    counts[i] = sum;
  }
}

/** Stores each row at the next position for its key id. */
function placeRows(
  keyIds: Int32Array,
  rows: Uint32Array,
  { next, firstRow }: { next: Int32Array; firstRow: number },
): void {
  for (let i = 0; i < keyIds.length; i += 1) {
    const keyId = keyIds[i] ?? NO_KEY;
    if (keyId === NO_KEY) continue;
    const position = next[keyId] ?? 0;
    rows[position] = firstRow + i;
    next[keyId] = position + 1;
  }
}

function clearNulls(keyIds: Int32Array, nulls: Uint8Array | undefined): void {
  if (nulls === undefined) return;
  for (let row = 0; row < keyIds.length; row += 1) if (nulls[row] === 1) keyIds[row] = NO_KEY;
}

function boundsOf(values: Int32Array | Float64Array): { min: number; max: number } {
  return values instanceof Int32Array ? boundsOfInt32(values) : boundsOfFloat64(values);
}

// Each kind of array has its own loop, because a loop that processes both kinds is several times
// slower.

function boundsOfInt32(values: Int32Array): { min: number; max: number } {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i] ?? 0;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return { min, max };
}

function boundsOfFloat64(values: Float64Array): { min: number; max: number } {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i] ?? 0;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return { min, max };
}

function boundsOfKnown(
  values: Int32Array | Float64Array,
  nulls: Uint8Array,
): { min: number; max: number } {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < values.length; i += 1) {
    if (nulls[i] === 1) continue;
    const value = values[i] ?? 0;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return { min, max };
}

function distancesOfInt32(values: Int32Array, min: number): Int32Array {
  const keyIds = new Int32Array(values.length);
  for (let i = 0; i < values.length; i += 1) keyIds[i] = (values[i] ?? 0) - min;
  return keyIds;
}

function distancesOfFloat64(values: Float64Array, min: number): Int32Array {
  const keyIds = new Int32Array(values.length);
  for (let i = 0; i < values.length; i += 1) keyIds[i] = (values[i] ?? 0) - min;
  return keyIds;
}

interface KeySpan {
  readonly min: number;
  readonly count: number;
}

function placesOfInt32(
  values: Int32Array,
  { count, min, rowCount }: KeySpan & { readonly rowCount: number },
): Int32Array {
  const keyIds = new Int32Array(rowCount);
  for (let i = 0; i < rowCount; i += 1) {
    const place = (values[i] ?? 0) - min;
    keyIds[i] = place >= 0 && place < count ? place : NO_KEY;
  }
  return keyIds;
}

function placesOfFloat64(
  values: Float64Array,
  { count, min, rowCount }: KeySpan & { readonly rowCount: number },
): Int32Array {
  const keyIds = new Int32Array(rowCount);
  for (let i = 0; i < rowCount; i += 1) {
    const place = (values[i] ?? 0) - min;
    keyIds[i] = place >= 0 && place < count ? place : NO_KEY;
  }
  return keyIds;
}

function placeOf(vector: Vector, row: number, { count, min }: KeySpan): number {
  const value = valueAt(vector, row);
  // A bigint is beyond 2^53 and therefore greater than every build key.
  if (typeof value !== "number") return NO_KEY;
  const place = value - min;
  return place >= 0 && place < count ? place : NO_KEY;
}
