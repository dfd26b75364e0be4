/**
 * Defines the order and equality of values of a type, and keys for hashing them.
 *
 * Callers handle NULL: these functions never receive it.
 */
import { defined } from "../base/assert.ts";
import { type ArrayValue, dimensionsOf, elementsOf, isArrayValue } from "./array_shape.ts";
import { compareCodePoints } from "./code_points.ts";
import { collationOf, isLooselyEqual, textComparatorFor, textKeyOf } from "./collation.ts";
import type { DataType, RowField } from "./data_type.ts";
import { compareWhole } from "./decimal.ts";
import { intervalSpan } from "./interval.ts";
import { compareJson, jsonGroupKey, jsonTree } from "./json_tree.ts";
import { compareNumerics, numericKey } from "./numeric.ts";
import { compareTsQueryTexts, compareTsVectorTexts, tsQueryGroupKey } from "./search_order.ts";
import { typeOrder } from "./type_class.ts";
import type { Interval, RowValue, Value, Whole } from "./value.ts";

export type Comparator = (left: Value, right: Value) => number;

/**
 * Returns a negative number, 0 or a positive number if `left` sorts before, equal to or after
 * `right`.
 */
export function compareValues(type: DataType, left: Value, right: Value): number {
  return comparatorFor(type)(left, right);
}

/**
 * Returns a version of {@linkcode compareValues} for hot loops, which branches on the type only
 * once.
 */
export function comparatorFor(type: DataType): Comparator {
  if (type.kind === "array") return compareArrays(comparatorFor(type.element));
  if (type.kind === "row") return compareRows(type.fields);
  switch (typeOrder(type)) {
    case "whole":
      return compareNumbers;
    case "double":
      return compareDoubles;
    case "numeric":
      return compareNumericValues;
    case "boolean":
      return compareNatural;
    case "text":
      return type.kind === "text" || type.kind === "jsonpath" ? compareText : compareNatural;
    case "unknown":
      return compareText;
    case "collated":
      return compareCollated(type);
    case "json":
      return compareJsonText;
    case "search":
      return type.kind === "tsvector" ? compareTsVectors : compareTsQueries;
    case "bytes":
      return compareBytes;
    case "embedding":
      return compareEmbeddings;
    case "interval":
      return compareIntervals;
  }
}

/** Compares rows field by field. NULLs equal one another, and sort after all values. */
function compareRows(fields: readonly RowField[]): Comparator {
  const comparators = fields.map(({ type }) => comparatorFor(type));
  return (left, right) => {
    const a = (left as RowValue).cells;
    const b = (right as RowValue).cells;
    for (const [index, compare] of comparators.entries()) {
      const l = a[index] ?? null;
      const r = b[index] ?? null;
      const order =
        l === null || r === null ? Number(l === null) - Number(r === null) : compare(l, r);
      if (order !== 0) return order;
    }
    return 0;
  };
}

/** Compares collated text. @throws {DatabaseError} TYPE_MISMATCH if its collation is mixed. */
function compareCollated(type: DataType): Comparator {
  const collation = defined(collationOf(type), "text comparison: collated type has no collation");
  return textComparatorFor(collation) as Comparator;
}

function compareText(left: Value, right: Value): number {
  return compareCodePoints(left as string, right as string);
}

function compareNumbers(left: Value, right: Value): number {
  return compareWhole(left as Whole, right as Whole);
}

function compareNumericValues(left: Value, right: Value): number {
  return compareNumerics(left as string, right as string);
}

function compareDoubles(left: Value, right: Value): number {
  const a = left as number;
  const b = right as number;
  if (a < b) return -1;
  if (a > b) return 1;
  return a === b ? 0 : Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

/** Compares booleans (false < true), or strings of ASCII characters. */
function compareNatural(left: Value, right: Value): number {
  const a = left as string;
  const b = right as string;
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareBytes(left: Value, right: Value): number {
  return Buffer.compare(left as Uint8Array, right as Uint8Array);
}

function compareIntervals(left: Value, right: Value): number {
  return compareWhole(intervalSpan(left as Interval), intervalSpan(right as Interval));
}

function compareJsonText(left: Value, right: Value): number {
  if (left === right) return 0;
  return compareJson(jsonTree(left as string), jsonTree(right as string));
}

function compareTsVectors(left: Value, right: Value): number {
  return left === right ? 0 : compareTsVectorTexts(left as string, right as string);
}

function compareTsQueries(left: Value, right: Value): number {
  return left === right ? 0 : compareTsQueryTexts(left as string, right as string);
}

function compareEmbeddings(left: Value, right: Value): number {
  const a = left as Float32Array;
  const b = right as Float32Array;
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const order = (a[at] ?? 0) - (b[at] ?? 0);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/**
 * Compares arrays by the elements of all dimensions in order, then by the number of elements, and
 * then by the dimensions. A NULL element sorts after every value and equals NULL.
 */
function compareArrays(compareElements: Comparator): Comparator {
  return (left, right) => {
    const a = elementsOf(left as ArrayValue);
    const b = elementsOf(right as ArrayValue);
    const length = Math.min(a.length, b.length);
    for (let at = 0; at < length; at += 1) {
      const x = a[at] ?? null;
      const y = b[at] ?? null;
      const order =
        x === null || y === null ? Number(x === null) - Number(y === null) : compareElements(x, y);
      if (order !== 0) return order;
    }
    if (a.length !== b.length || (a === left && b === right)) return a.length - b.length;
    return compareDimensions(dimensionsOf(left as ArrayValue), dimensionsOf(right as ArrayValue));
  };
}

function compareDimensions(left: readonly number[], right: readonly number[]): number {
  if (left.length !== right.length) return left.length - right.length;
  for (const [at, length] of left.entries()) {
    const order = length - (right[at] ?? 0);
    if (order !== 0) return order;
  }
  return 0;
}

export type GroupKey = string | number | bigint | boolean;

/**
 * Returns a primitive to use as a Set or Map key. Two values have the same key if and only if
 * SQL's `=` considers them equal.
 */
export function groupKeyOf(type: DataType, value: Value): GroupKey {
  if (type.kind === "array") {
    const { element } = type;
    return (value as readonly Value[]).map((item) => elementKey(element, item)).join("");
  }
  if (type.kind === "row") {
    const { cells } = value as RowValue;
    return type.fields.map((field, index) => keyPart(field.type, cells[index] ?? null)).join("");
  }
  switch (typeOrder(type)) {
    case "json":
      return jsonGroupKey(value as string);
    case "search":
      return type.kind === "tsquery" ? tsQueryGroupKey(value as string) : (value as string);
    case "bytes":
      return Buffer.from(value as Uint8Array).toString("latin1");
    case "embedding":
      return (value as Float32Array).join(",");
    case "interval":
      return intervalSpan(value as Interval);
    case "numeric":
      return numericKey(value as string);
    case "collated":
      return collatedKey(type, value);
    case "whole":
    case "double":
    case "boolean":
    case "text":
    case "unknown":
      return value as GroupKey;
  }
}

/**
 * Returns the key form of a value, which represents the value in keys. Equal values have the same
 * key form. For most types, the key form is the value itself.
 */
export function keyFormOf(type: DataType, value: Value): Value {
  if (typeof value !== "string" || !hasKeyForm(type)) return value;
  return typeOrder(type) === "numeric" ? numericKey(value) : collatedKey(type, value);
}

function collatedKey(type: DataType, value: Value): string {
  const collation = defined(collationOf(type), "text comparison: collated type has no collation");
  return textKeyOf(collation, value as string);
}

/**
 * Whether equal values of a type may look different, in which case keys contain a common form: 1.5
 * and 1.50 of a NUMERIC without a precision, ranges with such bounds, or text under a
 * nondeterministic collation.
 */
export function hasKeyForm(type: DataType): boolean {
  return typeOrder(type) === "numeric" || (type.kind === "text" && isLooselyEqual(type));
}

/**
 * Returns the comparison function for the values of a type in keys and in stored columns. It is
 * the usual comparison, except that collated text is ordered by the code points of its key form. A
 * new version of ICU thus does not change the order within files.
 */
export function storedComparatorFor(type: DataType): Comparator {
  if (typeOrder(type) !== "collated") return comparatorFor(type);
  if (!isLooselyEqual(type)) return compareText;
  return (left, right) => compareText(keyFormOf(type, left), keyFormOf(type, right));
}

/** Whether SQL's `=` considers two values equal. NaN equals NaN, and 0 equals -0. */
export function haveSameGroupKey(type: DataType, left: Value, right: Value): boolean {
  const [a, b] = [groupKeyOf(type, left), groupKeyOf(type, right)];
  return a === b || Object.is(a, b);
}

/**
 * Returns the key of an array element. The key begins with its own length, which distinguishes
 * ['a,b'] from ['a', 'b'].
 */
function elementKey(type: DataType, value: Value): string {
  if (isArrayValue(value)) return `[${value.map((item) => elementKey(type, item)).join("")}]`;
  return keyPart(type, value);
}

function keyPart(type: DataType, value: Value): string {
  if (value === null) return "N";
  const key = String(groupKeyOf(type, value));
  return `${key.length}:${key}`;
}

/**
 * Returns a version of {@linkcode groupKeyOf} for hot loops; undefined if each value is its own
 * key.
 */
export function groupKeyMakerFor(type: DataType): ((value: Value) => GroupKey) | undefined {
  switch (typeOrder(type)) {
    case "json":
    case "search":
    case "bytes":
    case "embedding":
    case "interval":
    case "numeric":
    case "array":
    case "row":
    case "collated":
      return (value) => groupKeyOf(type, value);
    case "whole":
    case "double":
    case "boolean":
    case "text":
    case "unknown":
      return undefined;
  }
}
