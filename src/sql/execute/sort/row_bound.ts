/**
 * Leaves out rows that cannot be among the first n of a sort: those that do not come before the
 * last of n rows that are held, and those behind n others of their own batch. Most rows of a long
 * input are left out by their first key, which is compared as it lies in its vector: nothing is
 * made for them.
 *
 * Of rows that arrive in the opposite order, as the newest n of a table do, each comes before all
 * that are held: only the batch itself says which are too many.
 */
import {
  compareTextBytes,
  type Selection,
  type Utf8Vector,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import { compareByKey } from "../held/sort_order.ts";
import { type SortKey } from "./sort_key.ts";

type Ordering = Omit<SortKey, "evaluate">;

interface KeyBound {
  readonly key: Ordering;
  readonly value: Value;
  /** Of text. */
  readonly bytes: Buffer | undefined;
}

export class RowBound {
  readonly #keys: readonly KeyBound[];

  /** @param values The keys of the last row that is held. */
  constructor(keys: readonly Ordering[], values: readonly Value[]) {
    this.#keys = keys.map((key, i) => {
      const value = values[i] ?? null;
      const isText = key.type.kind === "text" && typeof value === "string";
      return { key, value, bytes: isText ? Buffer.from(value, "utf8") : undefined };
    });
  }

  /** The rows that come before the bound; one that equals it came later, so it does not. */
  rowsBefore(vectors: readonly Vector[], rowCount: number): Selection {
    const rows = new Uint32Array(rowCount);
    let count = 0;
    const [first] = this.#keys;
    const [vector] = vectors;
    const isNumber =
      typeof first?.value === "number" && (vector?.kind === "i32" || vector?.kind === "f64");
    if (!isNumber || vector.nulls !== undefined) {
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

/** So many times n rows of a batch are worth a look at each other. */
const LEADING_SHARE = 4;

/**
 * Of the chosen rows of a batch those that are not behind n others of them by the first key; rows
 * that equal the last of these stay. All of them, where that is not found out cheaply.
 */
export function leadingRows(
  chosen: Selection,
  rowsMax: number,
  { isDescending, vector }: { isDescending: boolean; vector: Vector | undefined },
): Selection {
  const isNumber = (vector?.kind === "i32" || vector?.kind === "f64") && vector.nulls === undefined;
  if (!isNumber || rowsMax < 1 || chosen.count < LEADING_SHARE * rowsMax) return chosen;
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

/** Puts a value in place of the first of a binary heap, whose first is the least. */
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
