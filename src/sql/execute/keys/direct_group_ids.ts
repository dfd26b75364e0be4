/**
 * Assigns group ids to keys that consist of a single integer. A table has one slot for every
 * integer between the smallest and the largest key. If the keys are close together, as ids and
 * codes are, this is several times faster than hashing.
 *
 *     #table[value - #base]  id of the key + 1, or 0
 *
 * The table is abandoned permanently if the keys are too far apart for the number of rows.
 */
import { rangeOf } from "./dense_positions.ts";

/** The maximum number of slots in the table. With this many slots, the table takes up 16 MiB. */
const PLACES_MAX: number = 2 ** 22;

/**
 * The maximum number of slots per row seen so far. A sparser table would cost more than it saves.
 */
const PLACES_PER_ROW = 4;

export class DirectGroupIds {
  #table = new Int32Array(0);
  #base = 0;
  #rowCount = 0;
  #isGivenUp = false;

  /** The size of the id table in bytes. */
  get bytes(): number {
    return this.#table.byteLength;
  }

  /**
   * Writes the id of each row. New values get ids from `next` upwards, in order of first
   * appearance.
   *
   * @returns The rows with a new value; undefined, with nothing written, if the values are too far
   *   apart.
   */
  assign(
    values: Int32Array | Float64Array,
    { into, next, rowCount }: { into: Uint32Array; next: number; rowCount: number },
  ): Uint32Array | undefined {
    if (this.#isGivenUp || rowCount === 0 || !this.#cover(values, rowCount)) return undefined;
    const options = { table: this.#table, base: this.#base, into, next };
    const isInt32 = values instanceof Int32Array;
    return isInt32 ? assignInt32(values, options) : assignFloat64(values, options);
  }

  /** Records values whose group ids were assigned elsewhere. */
  learn(values: Int32Array | Float64Array, ids: Uint32Array): void {
    for (let i = 0; i < values.length; i += 1) {
      this.#table[(values[i] ?? 0) - this.#base] = (ids[i] ?? 0) + 1;
    }
  }

  /**
   * Extends the table so that it has a slot for each of the given values. Returns false if the
   * values are too far apart.
   */
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
    // Values tend to ascend, so spare slots are added at the end. Otherwise, the table might be
    // copied for every batch.
    const table = new Int32Array(Math.min(PLACES_MAX, Math.max(needed, 2 * length)));
    table.set(this.#table, length === 0 ? 0 : this.#base - min);
    this.#table = table;
    this.#base = min;
    return true;
  }
}

interface IdAssignment {
  readonly table: Int32Array;
  readonly base: number;
  readonly into: Uint32Array;
  readonly next: number;
}

// Each kind of array has its own loop, because a loop that processes both kinds is several times
// slower.

function assignInt32(values: Int32Array, { base, into, next, table }: IdAssignment): Uint32Array {
  const found: number[] = [];
  let id = next;
  for (let row = 0; row < into.length; row += 1) {
    const place = (values[row] ?? 0) - base;
    let known = table[place] ?? 0;
    if (known === 0) {
      id += 1;
      known = id;
      table[place] = known;
      found.push(row);
    }
    into[row] = known - 1;
  }
  return Uint32Array.from(found);
}

function assignFloat64(
  values: Float64Array,
  { base, into, next, table }: IdAssignment,
): Uint32Array {
  const found: number[] = [];
  let id = next;
  for (let row = 0; row < into.length; row += 1) {
    const place = ((values[row] ?? 0) - base) | 0;
    let known = table[place] ?? 0;
    if (known === 0) {
      id += 1;
      known = id;
      table[place] = known;
      found.push(row);
    }
    into[row] = known - 1;
  }
  return Uint32Array.from(found);
}
