/**
 * Finds the rows of a sorted window at which keys change, column by column: numbers are compared
 * in loops over arrays, all other values row by row.
 */
import { physicalKind, type Vector } from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { MaterialisedRows } from "../materialised/materialised_rows.ts";
import type { SortOrder } from "../materialised/sort_order.ts";

/** The number of rows compared between two time checks. */
const ROWS_PER_LOOK = 16_384;

export interface ComparedKeys {
  readonly keys: readonly SortOrder[];
  /** The column with the values of the first key. The other keys follow. */
  readonly keyStart: number;
  readonly context: Pick<ExecutionContext, "checkTime">;
}

/**
 * Returns 1 for each entry of `order` whose row differs from the previous one in any key, and 0
 * for all others. The first row differs from none.
 */
export function keyChanges(
  rows: MaterialisedRows,
  order: Uint32Array,
  { keys, keyStart, context }: ComparedKeys,
): Uint8Array {
  const changes = new Uint8Array(order.length);
  for (const [i, key] of keys.entries()) {
    const position = keyStart + i;
    for (let start = 0; start < order.length; start += ROWS_PER_LOOK) {
      context.checkTime();
      const first = Math.max(1, start);
      const end = Math.min(order.length, start + ROWS_PER_LOOK);
      const into = changes.subarray(first, end);
      if (
        physicalKind(key.type) !== "any" &&
        markNumbers(rows.takeColumn(position, order, { start: first - 1, end }), into)
      ) {
        continue;
      }
      for (let at = first; at < end; at += 1) {
        if (changes[at] === 1) continue;
        const by = rows.compare({ key, position }, order[at - 1] ?? 0, order[at] ?? 0);
        if (by !== 0) changes[at] = 1;
      }
    }
  }
  return changes;
}

/**
 * Marks each row, from the second on, that differs from the previous one. Returns false, without
 * any effect, if the values are not represented as numbers.
 */
function markNumbers(vector: Vector, into: Uint8Array): boolean {
  switch (vector.kind) {
    case "bool":
      markBytes(vector.values, vector.nulls, into);
      break;
    case "i32":
      markInt32(vector.values, vector.nulls, into);
      break;
    case "f64":
      markFloat64(vector.values, vector.nulls, into);
      break;
    default:
      return false;
  }
  if (vector.nulls !== undefined) markBytes(vector.nulls, undefined, into);
  return true;
}

// Each kind of array has its own loop, because a loop that processes several kinds is several
// times slower.

function markBytes(values: Uint8Array, nulls: Uint8Array | undefined, into: Uint8Array): void {
  for (let i = 0; i < into.length; i += 1) {
    if (values[i + 1] !== values[i] && nulls?.[i + 1] !== 1) into[i] = 1;
  }
}

function markInt32(values: Int32Array, nulls: Uint8Array | undefined, into: Uint8Array): void {
  for (let i = 0; i < into.length; i += 1) {
    if (values[i + 1] !== values[i] && nulls?.[i + 1] !== 1) into[i] = 1;
  }
}

/** NaN equals itself. */
function markFloat64(values: Float64Array, nulls: Uint8Array | undefined, into: Uint8Array): void {
  for (let i = 0; i < into.length; i += 1) {
    const before = values[i] ?? 0;
    const value = values[i + 1] ?? 0;
    if (value === before || nulls?.[i + 1] === 1) continue;
    if (!(Number.isNaN(value) && Number.isNaN(before))) into[i] = 1;
  }
}
