/** Defines functions that create JSON documents. */
import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  BOOLEAN,
  type DataType,
  dimensionsOf,
  elementsOf,
  JSON_TEXT,
  JSONB,
  jsonOfFields,
  jsonTextOf,
  type RowValue,
  TEXT,
  type Value,
} from "../../../types/mod.ts";
import { flatItems } from "../base/array_shapes.ts";
import { firstType, functionsNamed, overload } from "../base/define.ts";
import type { Overload, ScalarFunction } from "../base/function.ts";
import { finishedJson, jsonKeyOf } from "./json_build.ts";

/** The type of a parameter that accepts any row. */
const ROW: DataType = { kind: "row", fields: [] };

const TEXT_ARRAY: DataType = { kind: "array", element: TEXT };

type Build = (values: readonly Value[], types: readonly DataType[]) => string;

/** Creates the JSON and JSONB variants of a builder function. */
function both(
  names: { json: readonly string[]; jsonb: readonly string[] },
  make: (binary: boolean) => readonly Overload[],
): ScalarFunction[] {
  return [
    ...functionsNamed(names.json, ...make(false)),
    ...functionsNamed(names.jsonb, ...make(true)),
  ];
}

function building(
  parameters: Overload["parameters"],
  build: Build,
  options: { binary: boolean; isVariadic?: boolean; seesNull?: boolean },
): Overload {
  const { binary, isVariadic = false, seesNull = false } = options;
  return overload(
    parameters,
    binary ? JSONB : JSON_TEXT,
    (values, _, types) => finishedJson(build(values, types), binary),
    isVariadic ? { variadic: "any", seesNull: true } : { seesNull },
  );
}

function buildArray(values: readonly Value[], types: readonly DataType[]): string {
  return `[${values.map((value, index) => jsonTextOf(types[index] ?? TEXT, value)).join(", ")}]`;
}

function buildObject(values: readonly Value[], types: readonly DataType[]): string {
  if (values.length % 2 !== 0) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot build a JSON object: the number of arguments must be even, because each key " +
        "needs a value",
    );
  }
  const members: string[] = [];
  for (let at = 0; at < values.length; at += 2) {
    const key = jsonKeyOf(types[at] ?? TEXT, values[at] ?? null);
    members.push(`${key} : ${jsonTextOf(types[at + 1] ?? TEXT, values[at + 1] ?? null)}`);
  }
  return `{${members.join(", ")}}`;
}

function objectOfPairs(keys: readonly Value[], values: readonly Value[]): string {
  const members = keys.map(
    (key, index) => `${jsonKeyOf(TEXT, key)} : ${jsonTextOf(TEXT, values[index] ?? null)}`,
  );
  return `{${members.join(", ")}}`;
}

/**
 * Creates an object from an array of alternating keys and values, or from a two-dimensional array
 * of key-value pairs.
 */
function objectOfArray([array = null]: readonly Value[]): string {
  const dimensions = dimensionsOf(array as ArrayValue);
  if (dimensions.length > 2 || (dimensions.length === 2 && dimensions[1] !== 2)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot build a JSON object: a multidimensional array must consist of key-value pairs",
    );
  }
  const items = elementsOf(array as ArrayValue);
  if (items.length % 2 !== 0) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot build a JSON object: the last key has no value",
    );
  }
  return objectOfPairs(
    items.filter((_, index) => index % 2 === 0),
    items.filter((_, index) => index % 2 === 1),
  );
}

function objectOfArrays([keys = null, values = null]: readonly Value[]): string {
  const names = flatItems(keys, "build a JSON object from");
  const held = flatItems(values, "build a JSON object from");
  if (names.length === held.length) return objectOfPairs(names, held);
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot build a JSON object: there are ${names.length} keys, but ${held.length} values`,
  );
}

function toJson([value = null]: readonly Value[], types: readonly DataType[]): string {
  return jsonTextOf(firstType(types), value);
}

/** Converts a row to JSON. If the second argument is TRUE, each field begins a new line. */
function rowToJson(
  [row = null, isSpread = false]: readonly Value[],
  types: readonly DataType[],
): string {
  const type = firstType(types);
  assert(type.kind === "row", "row_to_json: argument is not a row");
  return jsonOfFields(type.fields, row as RowValue, isSpread === true ? ",\n " : ",");
}

/** Converts an array to JSON. If the second argument is TRUE, each element begins a new line. */
function arrayToJson(
  [array = null, isSpread = false]: readonly Value[],
  types: readonly DataType[],
): string {
  if (isSpread !== true || array === null) return toJson([array], types);
  const type = firstType(types);
  assert(type.kind === "array", "array_to_json: argument is not an array");
  const inner: readonly Value[] = array as readonly Value[];
  const isDeep = inner.some((each) => Array.isArray(each));
  const elements = inner.map((each) => toJson([each], [isDeep ? type : type.element]));
  return `[${elements.join(",\n ")}]`;
}

export const JSON_BUILD_FUNCTIONS: readonly ScalarFunction[] = [
  ...both({ json: ["to_json", "json_from_scalar"], jsonb: ["to_jsonb"] }, (binary) => [
    building(["any"], toJson, { binary }),
  ]),
  ...functionsNamed(
    ["row_to_json"],
    building([ROW], rowToJson, { binary: false }),
    building([ROW, BOOLEAN], rowToJson, { binary: false }),
  ),
  ...functionsNamed(
    ["array_to_json"],
    building(["array"], toJson, { binary: false }),
    building(["array", BOOLEAN], arrayToJson, { binary: false }),
  ),
  ...both({ json: ["json_build_array"], jsonb: ["jsonb_build_array"] }, (binary) => [
    building([], buildArray, { binary, isVariadic: true }),
  ]),
  ...both({ json: ["json_build_object"], jsonb: ["jsonb_build_object"] }, (binary) => [
    building([], buildObject, { binary, isVariadic: true }),
  ]),
  ...both({ json: ["json_object"], jsonb: ["jsonb_object"] }, (binary) => [
    building([TEXT_ARRAY], objectOfArray, { binary }),
    building([TEXT_ARRAY, TEXT_ARRAY], objectOfArrays, { binary }),
  ]),
];
