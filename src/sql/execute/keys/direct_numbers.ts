/**
 * Numbers of keys that are one whole number each, in a table that has a place for every value
 * between the smallest and the largest one: for ids and codes that lie close together, where this
 * is several times faster than hashing.
 *
 *     #table[value - #base]  number of the key + 1, or 0
 *
 * The table is given up for good when values lie too far apart for the rows there are.
 */
import { rangeOf } from "./dense_positions.ts";

/** Places of the largest table: 16 MiB. */
const PLACES_MAX: number = 2 ** 22;

/** Places for each row that was seen: a sparser table costs more than it saves. */
const PLACES_PER_ROW = 4;

export class DirectNumbers {
  #table = new Int32Array(0);
  #base = 0;
  #rowCount = 0;
  #isGivenUp = false;

  /** Bytes of the table. */
  get bytes(): number {
    return this.#table.byteLength;
  }

  /**
   * Writes the number of each row. Values that are new get the numbers from `next` on, in order of
   * first appearance.
   *
   * @returns The rows with a new value; undefined, with nothing written, when the values lie too
   * far apart.
   */
  number(
    values: Int32Array | Float64Array,
    { into, next, rowCount }: { into: Uint32Array; next: number; rowCount: number },
  ): Uint32Array | undefined {
    if (this.#isGivenUp || rowCount === 0 || !this.#cover(values, rowCount)) return undefined;
    const options = { table: this.#table, base: this.#base, into, next };
    const isInt32 = values instanceof Int32Array;
    return isInt32 ? numberInt32(values, options) : numberFloat64(values, options);
  }

  /** Sets the numbers of values that were found to be known. */
  learn(values: Int32Array | Float64Array, numbers: Uint32Array): void {
    for (let i = 0; i < values.length; i += 1) {
      this.#table[(values[i] ?? 0) - this.#base] = (numbers[i] ?? 0) + 1;
    }
  }

  /** Makes places for all values. */
  #cover(values: Int32Array | Float64Array, rowCount: number): boolean {
    this.#rowCount += rowCount;
    const { length } = this.#table;
    const range = rangeOf(values, rowCount);
    const min = length === 0 ? range.min : Math.min(range.min, this.#base);
    const end = Math.max(range.max + 1, length === 0 ? range.min : this.#base + length);
    if (length > 0 && min === this.#base && end === this.#base + length) return true;
    const needed = end - min;
    if (needed > PLACES_MAX || needed > this.#rowCount * PLACES_PER_ROW) {
      this.#isGivenUp = true;
      this.#table = new Int32Array(0);
      return false;
    }
    // Values mostly ascend: room above, so that not every batch copies the table.
    const table = new Int32Array(Math.min(PLACES_MAX, Math.max(needed, 2 * length)));
    table.set(this.#table, length === 0 ? 0 : this.#base - min);
    this.#table = table;
    this.#base = min;
    return true;
  }
}

interface Numbering {
  readonly table: Int32Array;
  readonly base: number;
  readonly into: Uint32Array;
  readonly next: number;
}

// One loop for each kind of array: a loop that meets both runs several times slower.

function numberInt32(values: Int32Array, { base, into, next, table }: Numbering): Uint32Array {
  const found: number[] = [];
  let number = next;
  for (let row = 0; row < into.length; row += 1) {
    const place = (values[row] ?? 0) - base;
    let known = table[place] ?? 0;
    if (known === 0) {
      number += 1;
      known = number;
      table[place] = known;
      found.push(row);
    }
    into[row] = known - 1;
  }
  return Uint32Array.from(found);
}

function numberFloat64(values: Float64Array, { base, into, next, table }: Numbering): Uint32Array {
  const found: number[] = [];
  let number = next;
  for (let row = 0; row < into.length; row += 1) {
    const place = ((values[row] ?? 0) - base) | 0;
    let known = table[place] ?? 0;
    if (known === 0) {
      number += 1;
      known = number;
      table[place] = known;
      found.push(row);
    }
    into[row] = known - 1;
  }
  return Uint32Array.from(found);
}
