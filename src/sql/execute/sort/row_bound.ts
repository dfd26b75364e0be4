/**
 * Drops rows that cannot be among the first n rows of a sort: rows that do not precede the last of
 * n materialised rows, and rows that come after n other rows of their own batch. In a long input,
 * most rows are dropped by their first key, which is compared within its vector without allocating
 * anything.
 *
 * If rows arrive in reverse order, for example in a query for the newest n rows of a table, each
 * row precedes all materialised rows, so only the comparison within the batch drops surplus rows.
 */
import {
  compareTextBytes,
  isTextType,
  mayHoldNan,
  type Selection,
  type Utf8Vector,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import { compareByKey } from "../materialised/sort_order.ts";
import { type SortKey } from "./sort_key.ts";

type Ordering = Omit<SortKey, "evaluate">;

interface KeyBound {
  readonly key: Ordering;
  readonly value: Value;
  /** The UTF-8 bytes of the bound's first key, if that key is a string. */
  readonly bytes: Buffer | undefined;
}

/**
 * Whether a comparison with the bound may involve NaN, for which the comparison operators for
 * numbers define no order.
 */
function isNanAmong(bound: Value, vector: Vector): boolean {
  return Number.isNaN(bound) || mayHoldNan(vector);
}

export class RowBound {
  readonly #keys: readonly KeyBound[];

  /**
   * Creates the bound that further rows must precede.
   * @param values The keys of the last of the n materialised rows.
   */
  constructor(keys: readonly Ordering[], values: readonly Value[]) {
    this.#keys = keys.map((key, i) => {
      const value = values[i] ?? null;
      const isText = isTextType(key.type) && typeof value === "string";
      return { key, value, bytes: isText ? Buffer.from(value, "utf8") : undefined };
    });
  }

  /**
   * Returns the rows that precede the bound. A row equal to the bound does not precede it, because
   * it arrived later.
   */
  rowsBefore(vectors: readonly Vector[], rowCount: number): Selection {
    const rows = new Uint32Array(rowCount);
    let count = 0;
    const [first] = this.#keys;
    const [vector] = vectors;
    const isNumber =
      typeof first?.value === "number" && (vector?.kind === "i32" || vector?.kind === "f64");
    if (!isNumber || vector.nulls !== undefined || isNanAmong(first.value, vector)) {
      for (let row = 0; row < rowCount; row += 1) {
        if (!this.#isBefore(vectors, row, 0)) continue;
        rows[count] = row;
        count += 1;
      }
      return { rows, count };
    }
    const { values } = vector;
    const bound = first.value;
    const { isDescending } = first.key;
    for (let row = 0; row < rowCount; row += 1) {
      const value = values[row] ?? 0;
      const isBefore = isDescending ? value > bound : value < bound;
      if (!isBefore && (value !== bound || !this.#isBefore(vectors, row, 1))) continue;
      rows[count] = row;
      count += 1;
    }
    return { rows, count };
  }

  #isBefore(vectors: readonly Vector[], row: number, from: number): boolean {
    for (let i = from; i < this.#keys.length; i += 1) {
      const bound = this.#keys[i];
      const vector = vectors[i];
      if (bound === undefined || vector === undefined) break;
      const order = orderOf(bound, vector, row);
      if (order !== 0) return order < 0;
    }
    return false;
  }
}

/**
 * The minimum size of a batch, as a multiple of n, for which its rows are compared with one
 * another.
 */
const LEADING_SHARE = 4;

/**
 * Removes rows that are preceded by n other chosen rows of the batch, by the first key. Rows equal
 * to the n-th row stay. If the n-th row cannot be determined cheaply, all chosen rows are
 * returned.
 */
export function leadingRows(
  chosen: Selection,
  rowsMax: number,
  { isDescending, vector }: { isDescending: boolean; vector: Vector | undefined },
): Selection {
  const isNumber = (vector?.kind === "i32" || vector?.kind === "f64") && vector.nulls === undefined;
  if (!isNumber || rowsMax < 1 || chosen.count < LEADING_SHARE * rowsMax) return chosen;
  if (mayHoldNan(vector)) return chosen;
  const { values } = vector;
  const sign = isDescending ? 1 : -1;
  const valueOf = (i: number): number => sign * (values[chosen.rows[i] ?? 0] ?? 0);
  const best = new Float64Array(rowsMax);
  for (let i = 0; i < rowsMax; i += 1) best[i] = valueOf(i);
  best.sort();
  for (let i = rowsMax; i < chosen.count; i += 1) {
    const value = valueOf(i);
    if (value > (best[0] ?? 0)) replaceLeast(best, value);
  }
  const least = best[0] ?? 0;
  const rows = new Uint32Array(chosen.count);
  let count = 0;
  for (let i = 0; i < chosen.count; i += 1) {
    if (valueOf(i) < least) continue;
    rows[count] = chosen.rows[i] ?? 0;
    count += 1;
  }
  return { rows, count };
}

/** Replaces the smallest value in a binary heap, which is the first element. */
function replaceLeast(heap: Float64Array, value: number): void {
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && (heap[child + 1] ?? 0) < (heap[child] ?? 0)) child += 1;
    if ((heap[child] ?? 0) >= value) break;
    heap[at] = heap[child] ?? 0;
    at = child;
  }
  heap[at] = value;
}

function orderOf({ bytes, key, value }: KeyBound, vector: Vector, row: number): number {
  if (bytes !== undefined && vector.kind === "utf8" && vector.nulls?.[row] !== 1) {
    const order = compareTextBytes(vector.bytes, rangeOf(vector, row), bytes);
    return key.isDescending ? -order : order;
  }
  return compareByKey(key, valueAt(vector, row), value);
}

function rangeOf({ offsets }: Utf8Vector, row: number): { start: number; end: number } {
  return { start: offsets[row] ?? 0, end: offsets[row + 1] ?? 0 };
}
