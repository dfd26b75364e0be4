/** Defines functions that read JSON: paths, lengths, types and the shorthands `json_get…`. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  DOUBLE,
  digitsFromText,
  fitsInteger,
  INT,
  JSON_TEXT,
  type JsonSlice,
  jsonElement,
  jsonElements,
  jsonKindAt,
  jsonMember,
  jsonMembers,
  jsonPath,
  jsonRoot,
  jsonScalarText,
  jsonTree,
  rescale,
  TEXT,
  type Value,
  wholeFromBigint,
} from "../../../types/mod.ts";
import { firstType, functionsNamed, overload } from "../base/define.ts";
import type { Overload, ScalarFunction } from "../base/function.ts";
import { jsonContainsAtTop, jsonHasKey } from "./json_math.ts";

function typeOf([json = null]: readonly Value[]): string {
  const text = json as string;
  return jsonKindAt(text, jsonRoot(text).start);
}

function arrayLength([json = null]: readonly Value[]): number {
  const text = json as string;
  const root = jsonRoot(text);
  const kind = jsonKindAt(text, root.start);
  if (kind === "array") return jsonElements(text, root).length;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot count the elements of the JSON value: it is of type ${kind}, but must be an array`,
  );
}

/**
 * Returns the keys and indexes of a variadic path as strings; undefined if one of them is NULL,
 * because NULL matches nothing.
 */
function pathOf(values: readonly Value[]): string[] | undefined {
  return values.includes(null) ? undefined : (values as string[]);
}

function extractPath([json = null, ...steps]: readonly Value[], asText: boolean): Value {
  const text = json as string;
  const path = pathOf(steps);
  const slice = path === undefined ? undefined : jsonPath(text, path);
  if (slice === undefined) return null;
  return asText ? (jsonScalarText(text, slice) ?? null) : text.slice(slice.start, slice.end);
}

function ownType(types: readonly DataType[]): DataType {
  return firstType(types).kind === "json" ? firstType(types) : JSON_TEXT;
}

/**
 * Creates the JSON and JSONB versions of a function. The two versions differ in how they read
 * untyped literals.
 */
function ofBoth(name: string, make: (json: "json" | "jsonText") => Overload): ScalarFunction[] {
  return [
    { name: `json_${name}`, overloads: [make("jsonText")] },
    { name: `jsonb_${name}`, overloads: [make("json")] },
  ];
}

function extractPathOf(json: "json" | "jsonText"): Overload {
  return overload([json], ownType, (values) => extractPath(values, false), { variadic: TEXT });
}

function extractPathTextOf(json: "json" | "jsonText"): Overload {
  return overload([json], TEXT, (values) => extractPath(values, true), { variadic: TEXT });
}

/** Follows a path of keys (strings) and indexes (integers) from the root. */
function follow(text: string, steps: readonly Value[]): JsonSlice | undefined {
  let slice: JsonSlice | undefined = jsonRoot(text);
  for (const step of steps) {
    if (slice === undefined || step === null) return undefined;
    slice =
      typeof step === "string"
        ? jsonMember(text, slice, step)
        : jsonElement(text, slice, Number(step));
  }
  return slice;
}

type JsonRead = (text: string, slice: JsonSlice) => Value;

/**
 * Creates a function `json_get…(j, key…)`. The keys are strings or integers. The function returns
 * NULL if the JSON value at this path is not of the result type.
 */
function getter(result: DataType | undefined, read: JsonRead): Overload {
  return {
    ...overload(["json"], result ?? ownType, () => null, { variadic: "any" }),
    specialise: (types) => {
      const areSteps = types.slice(1).every((type) => type.kind === "text" || fitsStep(type));
      if (!areSteps) return undefined;
      return {
        result: result ?? ownType(types),
        evaluate: ([json = null, ...steps]) => {
          const text = json as string;
          const slice = follow(text, steps);
          return slice === undefined ? null : read(text, slice);
        },
      };
    },
  };
}

function fitsStep({ kind }: DataType): boolean {
  return kind === "smallint" || kind === "int" || kind === "bigint";
}

function sliceText(text: string, { start, end }: JsonSlice): string {
  return text.slice(start, end);
}

function readString(text: string, slice: JsonSlice): Value {
  if (jsonKindAt(text, slice.start) !== "string") return null;
  return jsonScalarText(text, slice) ?? null;
}

function readInteger(text: string, slice: JsonSlice): Value {
  if (jsonKindAt(text, slice.start) !== "number") return null;
  const digits = digitsFromText(sliceText(text, slice));
  if (digits === undefined) return null;
  const whole = wholeFromBigint(digits.unscaled);
  const rounded = rescale(whole, digits.scale, 0);
  const isWhole = rescale(rounded, 0, digits.scale) === whole;
  return isWhole && fitsInteger("bigint", rounded) ? rounded : null;
}

function readDouble(text: string, slice: JsonSlice): Value {
  if (jsonKindAt(text, slice.start) !== "number") return null;
  const value = Number(sliceText(text, slice));
  return Number.isFinite(value) ? value + 0 : null;
}

function readBoolean(text: string, slice: JsonSlice): Value {
  const kind = jsonKindAt(text, slice.start);
  return kind === "boolean" ? text.startsWith("true", slice.start) : null;
}

function readArray(text: string, slice: JsonSlice): Value {
  if (jsonKindAt(text, slice.start) !== "array") return null;
  return jsonElements(text, slice).map((element) => sliceText(text, element));
}

function readLength(text: string, slice: JsonSlice): Value {
  const kind = jsonKindAt(text, slice.start);
  if (kind === "array") return jsonElements(text, slice).length;
  return kind === "object" ? jsonMembers(text, slice).length : null;
}

/** The overload of the function that tests whether a path exists in a document. */
const CONTAINS: Overload = {
  ...overload(["json"], BOOLEAN, () => null, { variadic: "any" }),
  specialise: (types) => {
    const [, second] = types;
    if (types.length === 2 && second?.kind === "json") {
      return {
        result: BOOLEAN,
        evaluate: ([outer = null, inner = null]) =>
          jsonContainsAtTop(outer as string, jsonTree(inner as string)),
      };
    }
    const areSteps = types.slice(1).every((type) => type.kind === "text" || fitsStep(type));
    if (!areSteps || types.length < 2) return undefined;
    return {
      result: BOOLEAN,
      evaluate: ([json = null, ...steps]) => follow(json as string, steps) !== undefined,
    };
  },
};

export const JSON_FUNCTIONS: readonly ScalarFunction[] = [
  ...ofBoth("typeof", (json) => overload([json], TEXT, typeOf)),
  ...ofBoth("array_length", (json) => overload([json], INT, arrayLength)),
  ...ofBoth("extract_path", extractPathOf),
  ...ofBoth("extract_path_text", extractPathTextOf),
  ...functionsNamed(
    ["jsonb_exists"],
    overload(["json", TEXT], BOOLEAN, ([json = null, key = null]) =>
      jsonHasKey(json as string, key as string),
    ),
  ),
  ...functionsNamed(["json_get", "json_get_json"], getter(undefined, sliceText)),
  ...functionsNamed(["json_get_str"], getter(TEXT, readString)),
  ...functionsNamed(["json_get_int"], getter(BIGINT, readInteger)),
  ...functionsNamed(["json_get_float"], getter(DOUBLE, readDouble)),
  ...functionsNamed(["json_get_bool"], getter(BOOLEAN, readBoolean)),
  ...functionsNamed(["json_get_array"], getter({ kind: "array", element: JSON_TEXT }, readArray)),
  ...functionsNamed(
    ["json_as_text"],
    getter(TEXT, (text, slice) => jsonScalarText(text, slice) ?? null),
  ),
  ...functionsNamed(["json_contains"], CONTAINS),
  ...functionsNamed(["json_length"], getter(BIGINT, readLength)),
];
