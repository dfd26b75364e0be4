/**
 * Joins, fills and searches arrays, which may have several dimensions.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  arrayOfArrays,
  type DataType,
  DIMENSIONS_MAX,
  dimensionsOf,
  haveSameGroupKey,
  isArrayValue,
  tooDeep,
  type Value,
} from "../../../types/mod.ts";
import { checkMadeLength } from "./made_length.ts";
import { requireOrder } from "./required_order.ts";

/** Returns the items of an array; an empty list for NULL. */
export function itemsOf(value: Value): ArrayValue {
  return value !== null && isArrayValue(value) ? value : [];
}

/**
 * Returns the element at the given positions. Returns NULL for positions outside the array, or if
 * their number differs from the number of dimensions.
 */
export function elementAt(array: Value, positions: readonly Value[]): Value {
  let value = array;
  for (const position of positions) {
    if (!isArrayValue(value)) return null;
    value = value[Number(position) - 1] ?? null;
  }
  return isArrayValue(value) ? null : value;
}

/** Returns the elements of an array, which must be one-dimensional. */
export function flatItems(
  value: Value,
  doing: string,
  code: "INVALID_VALUE" | "UNSUPPORTED_FEATURE" = "UNSUPPORTED_FEATURE",
): ArrayValue {
  const items = itemsOf(value);
  if (!items.some(isArrayValue)) return items;
  throw new DatabaseError(
    code,
    `Cannot ${doing} a multidimensional array: the array must have only one dimension`,
    { hint: "pass a one-dimensional part of it, or list its elements with unnest" },
  );
}

/** Whether two array elements are equal. NULL equals NULL here. */
export function sameElement(type: DataType, left: Value, right: Value): boolean {
  if (left === null || right === null) return left === right;
  requireOrder(type, "a search for elements");
  return haveSameGroupKey(type, left, right);
}

/**
 * Joins two arrays along the first dimension. If one array has one dimension less than the other,
 * it becomes an element of the other array. NULL is treated as an empty array.
 *
 * @throws {DatabaseError} INVALID_VALUE if their dimensions do not match.
 */
export function joined(left: Value, right: Value): Value {
  if (left === null || right === null) return left ?? right;
  const [a, b] = [itemsOf(left), itemsOf(right)];
  if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a;
  const depth = dimensionsOf(a).length - dimensionsOf(b).length;
  if (depth === 1) return checkedJoin([...a, b]);
  if (depth === -1) return checkedJoin([a, ...b]);
  if (depth === 0) return isArrayValue(a[0] ?? null) ? checkedJoin([...a, ...b]) : [...a, ...b];
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot concatenate the arrays: their numbers of dimensions must be equal, or differ by one",
  );
}

function checkedJoin(parts: ArrayValue): ArrayValue {
  return arrayOfArrays(parts);
}

/**
 * Returns an array of the given sizes, filled with a single value.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_TOO_LONG
 */
export function filled([value = null, sizes = null, bounds]: readonly Value[]): Value {
  const lengths = flatItems(sizes, "fill an array by");
  if (sizes === null || bounds === null || lengths.includes(null)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot create a filled array: its dimensions must not be NULL",
    );
  }
  if (itemsOf(bounds ?? null).some((bound) => bound !== 1)) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot create a filled array with lower bounds other than 1: all arrays start at position 1",
    );
  }
  if (bounds !== undefined && itemsOf(bounds).length !== lengths.length) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot create a filled array: ${itemsOf(bounds).length} lower bounds are given for ` +
        `${lengths.length} dimensions, but each dimension must have exactly one`,
    );
  }
  if (lengths.length > DIMENSIONS_MAX) throw tooDeep(lengths.length);
  let count = 1;
  for (const length of lengths as readonly number[]) {
    if (length < 0) {
      throw new DatabaseError(
        "VALUE_OUT_OF_RANGE",
        `Cannot create a filled array: the length of a dimension is ${length}, but must not be ` +
          "negative",
      );
    }
    count *= length;
  }
  checkMadeLength(count);
  if (count === 0 || lengths.length === 0) return [];
  return (lengths as readonly number[]).reduceRight<Value>(
    (part, length) => Array.from({ length }, () => part),
    value,
  );
}
