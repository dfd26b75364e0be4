/** Defines functions that change JSONB documents. */

import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  type DataType,
  isJsonArray,
  isJsonObject,
  JSON_TEXT,
  JSONB,
  type JsonNode,
  type JsonSlice,
  jsonElements,
  jsonKindAt,
  jsonMembers,
  jsonObject,
  jsonRoot,
  jsonTree,
  TEXT,
  textFromJson,
  type Value,
} from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { ScalarFunction } from "../base/function.ts";
import { jsonEdit } from "./json_math.ts";

const TEXT_ARRAY: DataType = { kind: "array", element: TEXT };

function checkedDocument(json: Value): JsonNode {
  const node = jsonTree(json as string);
  if (isJsonArray(node) || isJsonObject(node)) return node;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot set a path in a JSON scalar: the document must be an array or an object",
  );
}

function set([json = null, path = null, value = null, creates = true]: readonly Value[]): string {
  const made = jsonTree(value as string);
  return textFromJson(
    jsonEdit(checkedDocument(json), {
      path: pathOf(path),
      creates: creates === true,
      replace: () => made,
    }),
  );
}

/**
 * Evaluates jsonb_set_lax, which is like jsonb_set but has an additional option for NULL values.
 */
function setLax(values: readonly Value[]): Value {
  const [json = null, path = null, value = null, creates = true, treatment = "use_json_null"] =
    values;
  if (json === null || path === null || creates === null) return null;
  if (value !== null) return set([json, path, value, creates]);
  switch (treatment) {
    case "use_json_null":
      return set([json, path, "null", creates]);
    case "return_target":
      return json;
    case "delete_key":
      return textFromJson(
        jsonEdit(checkedDocument(json), {
          path: pathOf(path),
          creates: false,
          replace: () => undefined,
        }),
      );
    case "raise_exception":
      throw new DatabaseError(
        "INVALID_VALUE",
        "Cannot set the value at the JSON path: the new value is NULL",
      );
    default:
      throw new DatabaseError(
        "INVALID_VALUE",
        "Cannot set the value at the JSON path: the last argument must be raise_exception, " +
          "use_json_null, delete_key or return_target",
      );
  }
}

function insert([json = null, path = null, value = null, after = false]: readonly Value[]): string {
  const made = jsonTree(value as string);
  return textFromJson(
    jsonEdit(checkedDocument(json), {
      path: pathOf(path),
      creates: true,
      replace: () => made,
      insert: after === true ? "after" : "before",
    }),
  );
}

function stripNulls(node: JsonNode): JsonNode {
  if (isJsonArray(node)) return node.map(stripNulls);
  if (!isJsonObject(node)) return node;
  const kept = [...node].filter(([, value]) => value !== null);
  return jsonObject(kept.map(([key, value]) => [key, stripNulls(value)]));
}

/**
 * Removes all object members with the value null from a JSON text. The result contains no
 * whitespace.
 */
function strippedText(text: string, slice: JsonSlice): string {
  switch (jsonKindAt(text, slice.start)) {
    case "array":
      return `[${jsonElements(text, slice)
        .map((item) => strippedText(text, item))
        .join(",")}]`;
    case "object": {
      const members = jsonMembers(text, slice).filter(
        ({ value }) => jsonKindAt(text, value.start) !== "null",
      );
      const kept = members.map(
        ({ key, value }) => `${JSON.stringify(key)}:${strippedText(text, value)}`,
      );
      return `{${kept.join(",")}}`;
    }
    default:
      return text.slice(slice.start, slice.end);
  }
}

const INDENT = "    ";

function pretty(node: JsonNode, margin: string): string {
  const inner = margin + INDENT;
  if (isJsonArray(node)) {
    if (node.length === 0) return `[\n${margin}]`;
    return `[\n${node.map((item) => inner + pretty(item, inner)).join(",\n")}\n${margin}]`;
  }
  if (!isJsonObject(node)) return textFromJson(node);
  if (node.size === 0) return `{\n${margin}}`;
  const members = [...node].map(
    ([key, value]) => `${inner}${JSON.stringify(key)}: ${pretty(value, inner)}`,
  );
  return `{\n${members.join(",\n")}\n${margin}}`;
}

const SET_PARAMETERS: readonly string[] = ["jsonb_in", "path", "replacement", "create_if_missing"];

export const JSON_EDIT_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["jsonb_set"], {
    ...overload([JSONB, TEXT_ARRAY, JSONB, BOOLEAN], JSONB, set, { optionalCount: 1 }),
    parameterNames: SET_PARAMETERS,
  }),
  ...functionsNamed(["jsonb_set_lax"], {
    ...overload([JSONB, TEXT_ARRAY, JSONB, BOOLEAN, TEXT], JSONB, setLax, {
      optionalCount: 2,
      seesNull: true,
    }),
    parameterNames: [...SET_PARAMETERS, "null_value_treatment"],
    omittedTexts: [undefined, undefined, undefined, "true"],
  }),
  ...functionsNamed(["jsonb_insert"], {
    ...overload([JSONB, TEXT_ARRAY, JSONB, BOOLEAN], JSONB, insert, { optionalCount: 1 }),
    parameterNames: ["jsonb_in", "path", "replacement", "insert_after"],
  }),
  ...functionsNamed(
    ["json_strip_nulls"],
    overload([JSON_TEXT], JSON_TEXT, ([json = null]) =>
      strippedText(json as string, jsonRoot(json as string)),
    ),
  ),
  ...functionsNamed(
    ["jsonb_strip_nulls"],
    overload([JSONB], JSONB, ([json = null]) => textFromJson(stripNulls(jsonTree(json as string)))),
  ),
  ...functionsNamed(
    ["jsonb_pretty"],
    overload([JSONB], TEXT, ([json = null]) => pretty(jsonTree(json as string), "")),
  ),
];

/**
 * Returns the steps of the path for a JSONB edit. @throws {DatabaseError} INVALID_VALUE if a step
 * is NULL
 */
function pathOf(path: Value): string[] {
  const steps = textsOf(path);
  const at = (path as readonly Value[]).indexOf(null);
  if (at === -1) return steps;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot change the value at the JSON path: element ${at + 1} of the path is NULL`,
  );
}

/** Returns the strings in an array, omitting NULLs. */
export function textsOf(value: Value): string[] {
  assert(Array.isArray(value), "JSON path argument: value of type text[] is not an array");
  return (value as readonly Value[]).filter((item) => typeof item === "string");
}
