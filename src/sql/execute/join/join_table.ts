/**
 * The held rows of a join by their keys.
 *
 *     add, add, … ──finish──► numbersOf, starts, rows
 *
 * Rows of key number n are rows[starts[n]] up to rows[starts[n + 1]], in the order in which they
 * came. Where the key is one column of whole numbers that lie close together, as those of most
 * tables do, its number is its distance from the smallest and nothing is hashed; all others are
 * numbered by a {@linkcode KeyIndex}. Rows with a NULL in their key have no number: NULL equals
 * nothing.
 */
import { assert } from "../../../base/assert.ts";
import { type DataType, isWholeType, type Vector, valueAt } from "../../../types/mod.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { KeyIndex, NO_KEY, nullKeysOf } from "../keys/key_index.ts";

/** Numbers may lie this far apart in any case, … */
const SPAN_MIN = 65_536;
/** … and this many times as far as there are rows. */
const SPAN_PER_ROW = 16;
const SPAN_MAX = 2 ** 24;
/** A place costs two numbers for a while, which must not be most of the memory. */
const SPAN_MEMORY_SHARE = 16;

/** What a row takes whose key is hashed: the key in its index, and the number of the row. */
const HASHED_ROW_BYTES = 32;

/** Keys of one batch, before it is known how far apart all lie. */
interface Waiting {
  readonly values: Int32Array | Float64Array;
  readonly nulls: Uint8Array | undefined;
}

export class JoinTable {
  readonly #index: KeyIndex;
  readonly #memory: MemoryBudget;
  readonly #isBare: boolean;
  /** Undefined once the keys must be hashed. */
  #waiting: Waiting[] | undefined;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  #rowCount = 0;
  /** Bytes taken for what {@linkcode finish} will make of keys that wait. */
  #reservedBytes = 0;
  /** Numbers of the rows so far, batch by batch, once keys are hashed. */
  #numbers: Int32Array[] = [];
  #isDense = false;
  #isUnique = false;
  #starts = new Int32Array(0);
  #rows = new Uint32Array(0);

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#index = new KeyIndex(types);
    this.#memory = memory;
    this.#isBare = types.length === 0;
    const [only] = types;
    this.#waiting = types.length === 1 && only !== undefined && isWholeType(only) ? [] : undefined;
  }

  /** Where the rows of each number begin in `rows`; one more than there are numbers. */
  get starts(): Int32Array {
    return this.#starts;
  }

  get rows(): Uint32Array {
    return this.#rows;
  }

  /** Whether no key has two rows. */
  get isUnique(): boolean {
    return this.#isUnique;
  }

  /**
   * Adds the rows of a batch; without keys all have the number 0.
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

  /** Nothing is added from now on. @param checkTime Called from time to time. */
  finish(checkTime: () => void): void {
    this.#release();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined && this.#liesClose()) {
      const span = this.#max - this.#min + 1;
      this.#isDense = true;
      this.#numbers = waiting.map(({ nulls, values }) => {
        const numbers =
          values instanceof Int32Array
            ? distancesOfInt32(values, this.#min)
            : distancesOfFloat64(values, this.#min);
        clearNulls(numbers, nulls);
        return numbers;
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
    this.#numbers = [];
  }

  /** The number of each row's key, or NO_KEY where no held row can have it. */
  numbersOf(keys: readonly Vector[], rowCount: number): Int32Array {
    if (this.#isBare) return new Int32Array(rowCount);
    const [only] = keys;
    if (this.#isDense && only !== undefined) return this.#distancesOf(only, rowCount);
    const numbers = this.#index.find(keys, rowCount);
    clearNulls(numbers, nullKeysOf(keys, rowCount));
    return numbers;
  }

  /** The same, but NO_KEY also where no held row has the key. */
  heldNumbersOf(keys: readonly Vector[], rowCount: number): Int32Array {
    const numbers = this.numbersOf(keys, rowCount);
    const starts = this.#starts;
    for (let row = 0; row < rowCount; row += 1) {
      const number = numbers[row] ?? NO_KEY;
      if (number !== NO_KEY && starts[number] === starts[number + 1]) numbers[row] = NO_KEY;
    }
    return numbers;
  }

  /** Whether the keys so far are close enough for a place for each number between them. */
  #liesClose(): boolean {
    const span = this.#max - this.#min + 1;
    const rowsMax = Math.max(SPAN_MIN, SPAN_PER_ROW * this.#rowCount);
    const memoryMax = this.#memory.bytesMax / SPAN_MEMORY_SHARE;
    return span > 0 && span <= Math.min(SPAN_MAX, rowsMax, memoryMax);
  }

  /** Takes the memory of the table now, so that who holds the rows goes to disk in time. */
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
    // What the scan hands out is valid until its next call.
    const values = vector.values.slice(0, rowCount);
    const nulls = vector.nulls?.slice(0, rowCount);
    const bounds = nulls === undefined ? boundsOf(values) : boundsOfKnown(values, nulls);
    this.#min = Math.min(this.#min, bounds.min);
    this.#max = Math.max(this.#max, bounds.max);
    this.#waiting?.push({ values, nulls });
  }

  /** Goes over to hashing. */
  #stopWaiting(): void {
    this.#release();
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const { nulls, values } of waiting)
      this.#addHashed([vectorOf(values, nulls)], values.length);
  }

  #addHashed(keys: readonly Vector[], rowCount: number): void {
    const bytesBefore = this.#index.bytes;
    const numbers = this.#isBare ? new Int32Array(rowCount) : this.#index.add(keys, rowCount);
    clearNulls(numbers, nullKeysOf(keys, rowCount));
    this.#memory.take(this.#index.bytes - bytesBefore + 8 * rowCount);
    this.#numbers.push(numbers);
  }

  /** Sorts the rows by their numbers, by counting; those of one number keep their order. */
  #sort(keyCount: number, checkTime: () => void): void {
    const starts = new Int32Array(keyCount + 1);
    let most = 0;
    for (const numbers of this.#numbers) {
      checkTime();
      most = Math.max(most, countNumbers(numbers, starts));
    }
    addUp(starts);
    const rows = new Uint32Array(starts[keyCount] ?? 0);
    let row = 0;
    for (const numbers of this.#numbers) {
      checkTime();
      placeRows(numbers, rows, { next: starts, firstRow: row });
      row += numbers.length;
    }
    assert(row === this.#rowCount, "every held row was numbered");
    // Each start has moved to the next one.
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
      const numbers =
        vector.values instanceof Int32Array
          ? placesOfInt32(vector.values, { min, count, rowCount })
          : placesOfFloat64(vector.values, { min, count, rowCount });
      clearNulls(numbers, vector.nulls);
      return numbers;
    }
    const numbers = new Int32Array(rowCount);
    for (let row = 0; row < rowCount; row += 1) numbers[row] = placeOf(vector, row, { min, count });
    return numbers;
  }
}

function vectorOf(values: Int32Array | Float64Array, nulls: Uint8Array | undefined): Vector {
  const { length } = values;
  return values instanceof Int32Array
    ? { kind: "i32", length, values, nulls }
    : { kind: "f64", length, values, nulls };
}

/** Counts the rows of each number one place behind it. Returns the most that one has now. */
function countNumbers(numbers: Int32Array, counts: Int32Array): number {
  let most = 0;
  for (let i = 0; i < numbers.length; i += 1) {
    const number = numbers[i] ?? NO_KEY;
    if (number === NO_KEY) continue;
    const count = (counts[number + 1] ?? 0) + 1;
    counts[number + 1] = count;
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

/** Puts rows where those of their number go next. */
function placeRows(
  numbers: Int32Array,
  rows: Uint32Array,
  { next, firstRow }: { next: Int32Array; firstRow: number },
): void {
  for (let i = 0; i < numbers.length; i += 1) {
    const number = numbers[i] ?? NO_KEY;
    if (number === NO_KEY) continue;
    const position = next[number] ?? 0;
    rows[position] = firstRow + i;
    next[number] = position + 1;
  }
}

function clearNulls(numbers: Int32Array, nulls: Uint8Array | undefined): void {
  if (nulls === undefined) return;
  for (let row = 0; row < numbers.length; row += 1) if (nulls[row] === 1) numbers[row] = NO_KEY;
}

function boundsOf(values: Int32Array | Float64Array): { min: number; max: number } {
  return values instanceof Int32Array ? boundsOfInt32(values) : boundsOfFloat64(values);
}

// One loop for each kind of array: a loop that meets both runs several times slower.

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
  const numbers = new Int32Array(values.length);
  for (let i = 0; i < values.length; i += 1) numbers[i] = (values[i] ?? 0) - min;
  return numbers;
}

function distancesOfFloat64(values: Float64Array, min: number): Int32Array {
  const numbers = new Int32Array(values.length);
  for (let i = 0; i < values.length; i += 1) numbers[i] = (values[i] ?? 0) - min;
  return numbers;
}

interface Places {
  readonly min: number;
  readonly count: number;
}

function placesOfInt32(
  values: Int32Array,
  { count, min, rowCount }: Places & { readonly rowCount: number },
): Int32Array {
  const numbers = new Int32Array(rowCount);
  for (let i = 0; i < rowCount; i += 1) {
    const place = (values[i] ?? 0) - min;
    numbers[i] = place >= 0 && place < count ? place : NO_KEY;
  }
  return numbers;
}

function placesOfFloat64(
  values: Float64Array,
  { count, min, rowCount }: Places & { readonly rowCount: number },
): Int32Array {
  const numbers = new Int32Array(rowCount);
  for (let i = 0; i < rowCount; i += 1) {
    const place = (values[i] ?? 0) - min;
    numbers[i] = place >= 0 && place < count ? place : NO_KEY;
  }
  return numbers;
}

function placeOf(vector: Vector, row: number, { count, min }: Places): number {
  const value = valueAt(vector, row);
  // A bigint is beyond 2^53, where no held key is.
  if (typeof value !== "number") return NO_KEY;
  const place = value - min;
  return place >= 0 && place < count ? place : NO_KEY;
}
