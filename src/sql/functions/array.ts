/**
 * Functions on arrays. Positions count from 1; arrays have one dimension.
 */
import { DatabaseError } from "../../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../../base/limits.ts";
import { type DataType, groupKeyOf, INT, outputText, TEXT, type Value } from "../../types/mod.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";
import { checkMadeItems, checkMadeLength } from "./base/made_length.ts";

type Items = readonly Value[];

const TEXT_ARRAY: DataType = { kind: "array", element: TEXT };

function itemsOf(value: Value): Items {
  return (value ?? []) as Items;
}

function elementOf(type: DataType): DataType {
  return type.kind === "array" ? type.element : TEXT;
}

function arrayOf(type: DataType): DataType {
  return { kind: "array", element: type };
}

/** Whether two elements are the same; NULL is the same as NULL. */
function sameElement(type: DataType, left: Value, right: Value): boolean {
  if (left === null || right === null) return left === right;
  return groupKeyOf(type, left) === groupKeyOf(type, right);
}

/** A fact about dimension 1; of other dimensions, and of an empty array, it is NULL. */
function ofDimension(fact: (items: Items) => number): Overload {
  return overload(["array", INT], INT, ([array = null, dimension = null]) => {
    const items = itemsOf(array);
    return dimension === 1 && items.length > 0 ? fact(items) : null;
  });
}

function position([array = null, wanted = null, from]: readonly Value[], type: DataType): Value {
  if (array === null) return null;
  const items = itemsOf(array);
  const start = Math.max(1, (from as number | undefined) ?? 1);
  for (let at = start - 1; at < items.length; at += 1) {
    if (sameElement(type, items[at] ?? null, wanted)) return at + 1;
  }
  return null;
}

function positions([array = null, wanted = null]: readonly Value[], type: DataType): Value {
  if (array === null) return null;
  const found: number[] = [];
  for (const [index, item] of itemsOf(array).entries()) {
    if (sameElement(type, item, wanted)) found.push(index + 1);
  }
  return found;
}

function toText(
  [array = null, separator = null, forNull]: readonly Value[],
  type: DataType,
): Value {
  if (array === null || separator === null) return null;
  const texts: string[] = [];
  for (const item of itemsOf(array)) {
    if (item !== null) texts.push(outputText(type, item));
    else if (typeof forNull === "string") texts.push(forNull);
  }
  return texts.join(separator as string);
}

/** A NULL separator splits into characters, an empty one does not split. */
function splitText(text: string, separator: string | null): string[] {
  if (text === "") return [];
  // A character has at most two UTF-16 units, so this is a lower bound.
  if (separator === null) checkMadeItems(text.length / 2);
  const parts =
    separator === null
      ? Array.from(text)
      : separator === ""
        ? [text]
        : text.split(separator, PARTS_OF_TEXT_MAX + 1);
  checkMadeItems(parts.length);
  return parts;
}

export function fromText([text = null, separator = null, asNull]: readonly Value[]): Value {
  if (text === null) return null;
  const parts = splitText(text as string, separator as string | null);
  return parts.map((part) => (part === asNull ? null : part));
}

function trimArray([array = null, count = null]: readonly Value[]): Value {
  const items = itemsOf(array);
  const removed = count as number;
  if (removed >= 0 && removed <= items.length) return items.slice(0, items.length - removed);
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot trim ${removed} elements: the array has ${items.length}`,
  );
}

function fill([value = null, dimensions = null]: readonly Value[]): Value {
  const sizes = itemsOf(dimensions);
  const [size = null] = sizes;
  if (sizes.length !== 1 || typeof size !== "number" || size < 0) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot fill an array: expected one dimension that is not negative",
    );
  }
  checkMadeLength(size);
  return Array.from({ length: size }, () => value);
}

const SEES_NULL = { seesNull: true } as const;

export const ARRAY_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["array_length", "array_upper"],
    ofDimension((items) => items.length),
  ),
  ...functionsNamed(
    ["array_lower"],
    ofDimension(() => 1),
  ),
  ...functionsNamed(
    ["cardinality"],
    overload(["array"], INT, ([array = null]) => itemsOf(array).length),
  ),
  ...functionsNamed(
    ["array_ndims"],
    overload(["array"], INT, ([array = null]) => (itemsOf(array).length > 0 ? 1 : null)),
  ),
  ...functionsNamed(
    ["array_append"],
    overload(
      ["array", "element"],
      firstType,
      ([array = null, item = null]) => [...itemsOf(array), item],
      SEES_NULL,
    ),
  ),
  ...functionsNamed(
    ["array_prepend"],
    overload(
      ["element", "array"],
      (types) => types[1] ?? TEXT_ARRAY,
      ([item = null, array = null]) => [item, ...itemsOf(array)],
      SEES_NULL,
    ),
  ),
  ...functionsNamed(
    ["array_cat"],
    overload(
      ["array", "array"],
      firstType,
      ([left = null, right = null]) =>
        left === null && right === null ? null : [...itemsOf(left), ...itemsOf(right)],
      SEES_NULL,
    ),
  ),
  ...functionsNamed(
    ["array_remove"],
    overload(
      ["array", "element"],
      firstType,
      ([array = null, wanted = null], _, types) => {
        if (array === null) return null;
        const type = elementOf(firstType(types));
        return itemsOf(array).filter((item) => !sameElement(type, item, wanted));
      },
      SEES_NULL,
    ),
  ),
  ...functionsNamed(
    ["array_replace"],
    overload(
      ["array", "element", "element"],
      firstType,
      ([array = null, wanted = null, by = null], _, types) => {
        if (array === null) return null;
        const type = elementOf(firstType(types));
        return itemsOf(array).map((item) => (sameElement(type, item, wanted) ? by : item));
      },
      SEES_NULL,
    ),
  ),
  ...functionsNamed(
    ["array_position"],
    overload(
      ["array", "element", INT],
      INT,
      (values, _, types) => position(values, elementOf(firstType(types))),
      { optionalCount: 1, seesNull: true },
    ),
  ),
  ...functionsNamed(
    ["array_positions"],
    overload(
      ["array", "element"],
      arrayOf(INT),
      (values, _, types) => positions(values, elementOf(firstType(types))),
      SEES_NULL,
    ),
  ),
  ...functionsNamed(
    ["array_to_string"],
    overload(
      ["array", TEXT, TEXT],
      TEXT,
      (values, _, types) => toText(values, elementOf(firstType(types))),
      { optionalCount: 1, seesNull: true },
    ),
  ),
  ...functionsNamed(
    ["string_to_array"],
    overload([TEXT, TEXT, TEXT], TEXT_ARRAY, fromText, {
      optionalCount: 1,
      seesNull: true,
    }),
  ),
  ...functionsNamed(["trim_array"], overload(["array", INT], firstType, trimArray)),
  ...functionsNamed(
    ["array_fill"],
    overload(
      ["any", arrayOf(INT)],
      (types) => arrayOf(firstType(types)),
      (values) => (values[1] === null ? null : fill(values)),
      SEES_NULL,
    ),
  ),
];
