/**
 * Handles the dimensions of arrays.
 *
 * A multidimensional array is an array of arrays that all have the same dimensions. It has the
 * same type as a one-dimensional array. An empty array has no dimensions. Subscripts start at 1 in
 * each dimension.
 */
import { DatabaseError } from "../base/errors.ts";
import type { Value } from "./value.ts";

export type ArrayValue = readonly Value[];

/** The maximum number of dimensions of an array, as in PostgreSQL. */
export const DIMENSIONS_MAX = 6;

export function isArrayValue(value: Value): value is ArrayValue {
  return Array.isArray(value);
}

/** Returns the length of each dimension of an array. An empty array has no dimensions. */
export function dimensionsOf(array: ArrayValue): number[] {
  const dimensions: number[] = [];
  for (let part: Value = array; isArrayValue(part) && part.length > 0; part = part[0] ?? null) {
    dimensions.push(part.length);
  }
  return dimensions;
}

/**
 * Returns the elements of all dimensions, in order. A one-dimensional array is returned as it is.
 */
export function elementsOf(array: ArrayValue): ArrayValue {
  const [first = null] = array;
  return isArrayValue(first) ? array.flatMap((part) => elementsOf(part as ArrayValue)) : array;
}

/** Maps every element of an array. The result has the same dimensions as the array. */
export function mapElements(array: ArrayValue, map: (element: Value) => Value): ArrayValue {
  const [first = null] = array;
  if (!isArrayValue(first)) return array.map(map);
  return array.map((part) => mapElements(part as ArrayValue, map));
}

/**
 * Combines arrays into an array with one more dimension. If all of them are empty or NULL, the
 * result is an empty array, as in PostgreSQL.
 *
 * @throws {DatabaseError} INVALID_VALUE if the arrays have different dimensions.
 */
export function arrayOfArrays(parts: ArrayValue): ArrayValue {
  if (parts.every((part) => part === null || (isArrayValue(part) && part.length === 0))) return [];
  const shapes = parts.map((part) => (isArrayValue(part) ? dimensionsOf(part) : []));
  const [wanted = []] = shapes;
  if (wanted.length + 1 > DIMENSIONS_MAX) throw tooDeep(wanted.length + 1);
  if (shapes.every((shape) => isSameShape(shape, wanted))) return parts;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot create an array: its subarrays must all have the same dimensions",
  );
}

/**
 * Gathers the arrays of several rows into an array with one more dimension.
 *
 * @throws {DatabaseError} INVALID_VALUE if the arrays have different dimensions, or if there are
 *   several and any of them is empty or NULL.
 */
export function gatheredArray(values: ArrayValue): ArrayValue {
  if (values.every((value) => isArrayValue(value) && value.length > 0))
    return arrayOfArrays(values);
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot aggregate the arrays: one of them is empty or NULL",
  );
}

export function isSameShape(left: readonly number[], right: readonly number[]): boolean {
  return left.length === right.length && left.every((length, at) => length === right[at]);
}

export function tooDeep(count: number): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot create an array with ${count} dimensions: the maximum is ${DIMENSIONS_MAX}`,
  );
}
