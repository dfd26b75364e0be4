/** Defines functions on arrays. Positions count from 1 in each dimension. */
import { DatabaseError } from "../../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../../base/limits.ts";
import {
  type DataType,
  dimensionsOf,
  elementsOf,
  INT,
  mapElements,
  outputText,
  TEXT,
  type Value,
} from "../../types/mod.ts";
import { filled, flatItems, itemsOf, joined, sameElement } from "./base/array_shapes.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";
import { checkMadeItems } from "./base/made_length.ts";

const TEXT_ARRAY: DataType = { kind: "array", element: TEXT };

function elementOf(type: DataType): DataType {
  return type.kind === "array" ? type.element : TEXT;
}

function arrayOf(type: DataType): DataType {
  return { kind: "array", element: type };
}

/**
 * Creates a function that returns a property of one dimension of an array; NULL if the array has
 * no such dimension.
 */
function ofDimension(fact: (length: number) => number): Overload {
  return overload(["array", INT], INT, ([array = null, dimension = null]) => {
    const length = dimensionsOf(itemsOf(array))[(dimension as number) - 1];
    return length === undefined ? null : fact(length);
  });
}

function position([array = null, wanted = null, from]: readonly Value[], type: DataType): Value {
  if (array === null) return null;
  const items = flatItems(array, "search");
  const start = Math.max(1, (from as number | undefined) ?? 1);
  for (let at = start - 1; at < items.length; at += 1) {
    if (sameElement(type, items[at] ?? null, wanted)) return at + 1;
  }
  return null;
}

function positions([array = null, wanted = null]: readonly Value[], type: DataType): Value {
  if (array === null) return null;
  const found: number[] = [];
  for (const [index, item] of flatItems(array, "search").entries()) {
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
  for (const item of elementsOf(itemsOf(array))) {
    if (item !== null) texts.push(outputText(type, item));
    else if (typeof forNull === "string") texts.push(forNull);
  }
  return texts.join(separator as string);
}

/**
 * Splits a string. A NULL separator splits it into characters; an empty separator does not split
 * it at all.
 */
function splitText(text: string, separator: string | null): string[] {
  if (text === "") return [];
  // A character has at most two UTF-16 code units, so half of the length is a lower bound on the
  // number of items.
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
  const why =
    removed < 0 ? "the number must not be negative" : `the array has only ${items.length}`;
  throw new DatabaseError("VALUE_OUT_OF_RANGE", `Cannot trim ${removed} elements: ${why}`);
}

const SEES_NULL = { seesNull: true } as const;

export const ARRAY_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["array_length", "array_upper"],
    ofDimension((length) => length),
  ),
  ...functionsNamed(
    ["array_lower"],
    ofDimension(() => 1),
  ),
  ...functionsNamed(
    ["cardinality"],
    overload(["array"], INT, ([array = null]) => elementsOf(itemsOf(array)).length),
  ),
  ...functionsNamed(
    ["array_ndims"],
    overload(["array"], INT, ([array = null]) => dimensionsOf(itemsOf(array)).length || null),
  ),
  ...functionsNamed(
    ["array_dims"],
    overload(["array"], TEXT, ([array = null]) => {
      const dimensions = dimensionsOf(itemsOf(array));
      return dimensions.map((length) => `[1:${length}]`).join("") || null;
    }),
  ),
  ...functionsNamed(
    ["array_append"],
    overload(
      ["array", "element"],
      firstType,
      ([array = null, item = null]) => [...flatItems(array, "append to", "INVALID_VALUE"), item],
      SEES_NULL,
    ),
  ),
  ...functionsNamed(
    ["array_prepend"],
    overload(
      ["element", "array"],
      (types) => types[1] ?? TEXT_ARRAY,
      ([item = null, array = null]) => [item, ...flatItems(array, "prepend to", "INVALID_VALUE")],
      SEES_NULL,
    ),
  ),
  ...functionsNamed(
    ["array_cat"],
    overload(
      ["array", "array"],
      firstType,
      ([left = null, right = null]) => joined(left, right),
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
        return flatItems(array, "remove elements of").filter(
          (item) => !sameElement(type, item, wanted),
        );
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
        return mapElements(itemsOf(array), (item) => (sameElement(type, item, wanted) ? by : item));
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
    overload(["any", arrayOf(INT), arrayOf(INT)], (types) => arrayOf(firstType(types)), filled, {
      optionalCount: 1,
      seesNull: true,
    }),
  ),
];
