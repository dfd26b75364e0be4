/** Computes the prefixes of a column for an index, and sorts rows whose prefixes are equal. */
import { assert } from "../../base/assert.ts";
import {
  isNullAt,
  textSourceOf,
  type Value,
  type Vector,
  valueAt as valueOf,
} from "../../types/mod.ts";
import { type IndexOrder, prefixAfter, prefixOf, prefixOfBytes } from "./index_order.ts";
import { sortByKey } from "./index_sort.ts";

/** The maximum number of rows sorted by value between two yields. */
const STEP_ROWS = 4096;

/**
 * Fills in the prefixes of the values in some rows of a vector.
 *
 * @param rows The rows, one per prefix.
 * @param commonBytes How many bytes to skip at the beginning of each string.
 */
export function fillPrefixes(
  prefixes: Float64Array,
  vector: Vector,
  { commonBytes = 0, rows }: { rows: Uint32Array; commonBytes?: number },
): void {
  const { length } = prefixes;
  if (vector.kind === "f64" || vector.kind === "i32") {
    const { values } = vector;
    for (let at = 0; at < length; at += 1) prefixes[at] = prefixOf(values[rows[at] ?? 0] ?? null);
  } else if (vector.kind === "utf8") {
    const { bytes } = textSourceOf(vector.bytes);
    const { offsets } = vector;
    for (let at = 0; at < length; at += 1) {
      const row = rows[at] ?? 0;
      const start = (offsets[row] ?? 0) + commonBytes;
      prefixes[at] = prefixOfBytes(bytes, start, offsets[row + 1] ?? 0);
    }
  } else {
    for (let at = 0; at < length; at += 1) {
      prefixes[at] = prefixAfter(valueOf(vector, rows[at] ?? 0), commonBytes);
    }
    return;
  }
  if (vector.nulls === undefined) return;
  for (let at = 0; at < length; at += 1) {
    if (isNullAt(vector, rows[at] ?? 0)) prefixes[at] = Number.POSITIVE_INFINITY;
  }
}

/**
 * The first string in a column, and the length of the prefix that all strings read so far share
 * with it.
 */
export interface CommonBytes {
  readonly first: Uint8Array;
  readonly count: number;
}

/** Returns the length of the common prefix of all strings up to the end of a vector. */
export function commonWith(
  before: CommonBytes | undefined,
  vector: Vector,
): CommonBytes | undefined {
  let common = before;
  const { length } = vector;
  for (let row = 0; row < length && common?.count !== 0; row += 1) {
    const value = valueOf(vector, row);
    if (typeof value !== "string") continue;
    const bytes = Buffer.from(value);
    if (common === undefined) common = { first: bytes, count: bytes.length };
    else common = { first: common.first, count: sameBytes(common, bytes) };
    // All rows of a constant vector have the same value.
    if (vector.kind === "const") break;
  }
  return common;
}

function sameBytes({ count, first }: CommonBytes, bytes: Uint8Array): number {
  const end = Math.min(count, bytes.length);
  let same = 0;
  while (same < end && first[same] === bytes[same]) same += 1;
  return same;
}

/** Sorts rows with equal prefixes by their values, one column at a time. */
export class TieSorter {
  readonly #order: IndexOrder;
  readonly #valueAt: (at: number, row: number) => Value;

  /**
   * Creates a sorter for rows whose key prefixes are equal.
   * @param valueAt Returns a row's value for the key column at index `at`.
   */
  constructor(order: IndexOrder, valueAt: (at: number, row: number) => Value) {
    this.#order = order;
    this.#valueAt = valueAt;
  }

  /**
   * Sorts each run of rows with equal prefixes.
   *
   * @param keys The prefixes of column `at`, ascending. In all earlier columns, the rows are
   *   equal.
   */
  *sort(keys: Float64Array, rows: Uint32Array, at: number): Generator<void, void> {
    let start = 0;
    for (let end = 1; end <= rows.length; end += 1) {
      if (end < rows.length && keys[end] === keys[start]) continue;
      if (end - start > 1) {
        const isExact = this.#order.isExactAt(at, keys[start] ?? 0);
        yield* this.#sortRun(rows.subarray(start, end), at, isExact);
      }
      start = end;
    }
  }

  /** Sorts rows that have the same prefix in column `at`. */
  *#sortRun(rows: Uint32Array, at: number, isExact: boolean): Generator<void, void> {
    if (isExact) {
      yield* this.#sortByNext(rows, at);
      return;
    }
    const values = this.#values(rows, at);
    if (rows.length > STEP_ROWS) yield;
    const [first = null] = values;
    if (values.some((value) => this.#order.compareAt(at, value, first) !== 0)) {
      sortWithValues(rows, values, (left, right) => this.#order.compareAt(at, left, right));
    }
    let start = 0;
    for (let end = 1; end <= rows.length; end += 1) {
      const isSame =
        end < rows.length &&
        this.#order.compareAt(at, values[end] ?? null, values[start] ?? null) === 0;
      if (isSame) continue;
      if (end - start > 1) yield* this.#sortByNext(rows.subarray(start, end), at);
      start = end;
    }
  }

  /** Sorts rows whose values are equal in all columns up to `at` by the remaining columns. */
  *#sortByNext(rows: Uint32Array, at: number): Generator<void, void> {
    const next = at + 1;
    // Rows with equal keys are already in row order, since every sort is stable.
    if (next === this.#order.columns.length) return;
    const keys = Float64Array.from(this.#values(rows, next), prefixOf);
    if (rows.length > STEP_ROWS) yield;
    yield* sortByKey(keys, rows);
    yield* this.sort(keys, rows, next);
  }

  #values(rows: Uint32Array, at: number): Value[] {
    return Array.from(rows, (row) => this.#valueAt(at, row));
  }
}

/** Sorts rows by their values, and reorders the array of values in the same way. */
function sortWithValues(
  rows: Uint32Array,
  values: Value[],
  compare: (left: Value, right: Value) => number,
): void {
  assert(
    rows.length === values.length,
    "index sort: number of values differs from the number of rows",
  );
  const order = Uint32Array.from(rows.keys()).toSorted(
    (left, right) => compare(values[left] ?? null, values[right] ?? null) || left - right,
  );
  const rowsBefore = rows.slice();
  const valuesBefore = [...values];
  for (const [to, from] of order.entries()) {
    rows[to] = rowsBefore[from] ?? 0;
    values[to] = valuesBefore[from] ?? null;
  }
}
