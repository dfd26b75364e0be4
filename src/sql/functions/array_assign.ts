/**
 * Assigns to an element or a slice of an array, as in `UPDATE … SET a[2] = 5`.
 *
 * A one-dimensional array grows as needed, and any gap is filled with NULL. NULL is treated as an
 * empty array. An array with several dimensions keeps its dimensions. Unlike in PostgreSQL,
 * subscripts cannot be below 1.
 */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type ArrayValue,
  DIMENSIONS_MAX,
  dimensionsOf,
  elementsOf,
  isArrayValue,
  tooDeep,
  type Value,
} from "../../types/mod.ts";
import { itemsOf } from "./base/array_shapes.ts";
import { checkMadeLength } from "./base/made_length.ts";

/**
 * Returns a copy of the array in which one element is replaced.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function withElement(array: Value, positions: readonly Value[], element: Value): ArrayValue {
  const ranges = positions.map((position): AssignedRange => {
    const at = checkedPosition(position);
    return { from: at, to: at };
  });
  const items = prepared(itemsOf(array), ranges);
  return placed(items, ranges, [element].values());
}

/** The bounds of a slice in one dimension. A bound that the statement omits is undefined. */
export interface SliceBounds {
  readonly from: Value | undefined;
  readonly to: Value | undefined;
}

/**
 * Returns a copy of the array in which a slice is replaced. A NULL source changes nothing.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function withSlice(array: Value, bounds: readonly SliceBounds[], source: Value): Value {
  if (source === null) return array;
  const items = itemsOf(array);
  const dimensions = dimensionsOf(items);
  const ranges = bounds.map(({ from, to }, at): AssignedRange => {
    const length = dimensions[at];
    if (length === undefined && (from === undefined || to === undefined)) {
      throw new DatabaseError(
        "INVALID_VALUE",
        "Cannot assign to a slice of an empty array: the slice must have a lower and an upper " +
          "bound",
      );
    }
    const range = {
      from: from === undefined ? 1 : checkedPosition(from),
      to: to === undefined ? (length ?? 0) : checkedPosition(to, 0),
    };
    if (range.from <= range.to + 1) return range;
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot assign to the slice [${range.from}:${range.to}]: its lower bound is greater than ` +
        "its upper bound",
    );
  });
  const given = elementsOf(itemsOf(source));
  const wanted = ranges.reduce((count, { from, to }) => count * (to - from + 1), 1);
  if (given.length < wanted) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot assign to the slice: it has ${wanted} elements, but the assigned array has only ` +
        given.length,
    );
  }
  if (wanted === 0) return items;
  return placed(prepared(items, ranges), ranges, given.values());
}

interface AssignedRange {
  readonly from: number;
  readonly to: number;
}

function checkedPosition(position: Value, min = 1): number {
  if (position === null) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot assign to an array element: the subscript is NULL",
    );
  }
  const at = Number(position);
  if (at >= min) return at;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot assign to position ${at} of an array: positions start at 1`,
  );
}

/** Returns the array, enlarged so that it contains the given ranges. */
function prepared(items: ArrayValue, ranges: readonly AssignedRange[]): ArrayValue {
  if (ranges.length > DIMENSIONS_MAX) throw tooDeep(ranges.length);
  const dimensions = dimensionsOf(items);
  if (dimensions.length === 0) {
    const count = ranges.reduce((product, { to }) => product * to, 1);
    checkMadeLength(count);
    return ranges.reduceRight<Value>(
      (part, { to }) => Array.from({ length: to }, () => part),
      null,
    ) as ArrayValue;
  }
  if (dimensions.length !== ranges.length) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot assign to an array element with ${counted(ranges.length, "subscript")}: the ` +
        `array has ${counted(dimensions.length, "dimension")}`,
    );
  }
  const [length = 0] = dimensions;
  const [range] = ranges;
  if (range !== undefined && ranges.length === 1 && range.to > length) {
    checkMadeLength(range.to);
    return [...items, ...Array.from({ length: range.to - length }, () => null)];
  }
  for (const [at, { to }] of ranges.entries()) {
    if (to <= (dimensions[at] ?? 0)) continue;
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot assign to position ${to} of dimension ${at + 1}: this dimension has only ` +
        `${dimensions[at] ?? 0} elements`,
    );
  }
  return items;
}

/** Replaces the elements within the ranges with consecutive elements of `source`. */
function placed(
  items: ArrayValue,
  [range, ...inner]: readonly AssignedRange[],
  source: Iterator<Value>,
): ArrayValue {
  if (range === undefined) return items;
  return items.map((item, index) => {
    if (index + 1 < range.from || index + 1 > range.to) return item;
    if (inner.length > 0 && isArrayValue(item)) return placed(item, inner, source);
    return source.next().value ?? null;
  });
}
