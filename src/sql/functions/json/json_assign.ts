/**
 * Assigns to a part of a JSONB document, as in `UPDATE … SET j['a'][0] = '1'`.
 *
 * Unlike jsonb_set, the assignment creates everything that is missing along the path: object
 * members and array elements, with nulls in any gap. Nothing is created within a scalar.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type JsonNode,
  jsonObject,
  jsonTree,
  textFromJson,
  type Value,
} from "../../../types/mod.ts";
import { checkMadeLength } from "../base/made_length.ts";

/**
 * Returns a copy of a document in which a value is assigned at a path.
 * @param json The document. NULL is treated as an empty array if the first step is an integer, and
 *   as an empty object otherwise.
 * @param steps The path, as strings (keys) or integers (indexes).
 * @param value The JSONB document to assign. NULL assigns JSON null.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function withJsonPart(json: Value, steps: readonly Value[], value: Value): string {
  const path = steps.map((step) => {
    if (typeof step === "string" || typeof step === "number") return `${step}`;
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot assign to a part of a JSON value: one of the subscripts is NULL",
    );
  });
  const empty = typeof steps[0] === "string" ? jsonObject([]) : [];
  const root = json === null ? empty : jsonTree(json as string);
  const part = value === null ? null : jsonTree(value as string);
  return textFromJson(assigned(root, path, part));
}

const INTEGER = /^[+-]?\d+$/;

function assigned(node: JsonNode, [step, ...rest]: readonly string[], part: JsonNode): JsonNode {
  if (step === undefined) return part;
  if (isJsonObject(node)) {
    const member = node.get(step);
    const next = member === undefined ? emptyFor(rest) : member;
    return jsonObject([...node, [step, assigned(next, rest, part)]]);
  }
  if (isJsonArray(node)) return withItem(node, [step, ...rest], part);
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot assign to the member "${step}": its parent is neither an object nor an array`,
  );
}

/**
 * Returns the empty array or object in which the next step of a path can be created, or null if no
 * steps are left.
 */
function emptyFor([step]: readonly string[]): JsonNode {
  if (step === undefined) return null;
  return INTEGER.test(step) ? [] : jsonObject([]);
}

function withItem(
  items: readonly JsonNode[],
  [step = "", ...rest]: readonly string[],
  part: JsonNode,
): JsonNode {
  if (!INTEGER.test(step)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot assign to element "${step}" of a JSON array: the subscript must be an integer`,
    );
  }
  const position = Number(step);
  const index = position < 0 ? items.length + position : position;
  if (index < 0) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot assign to element ${step} of a JSON array: the array has only ${items.length} ` +
        "elements",
    );
  }
  checkMadeLength(index);
  const all = [...items];
  while (all.length < index) all.push(null);
  const held = all[index];
  all[index] = assigned(held === undefined ? emptyFor(rest) : held, rest, part);
  return all;
}
