/** Implements JSON operators and functions on document trees. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  compareJson,
  isJsonArray,
  isJsonNumber,
  isJsonObject,
  isJsonString,
  type JsonNode,
  type JsonSlice,
  jsonElements,
  jsonKindAt,
  jsonMember,
  jsonObject,
  jsonRoot,
  jsonTree,
} from "../../../types/mod.ts";

/** Whether `outer` contains all of `inner` in the sense of `@>`. */
function jsonContains(outer: JsonNode, inner: JsonNode): boolean {
  if (isJsonObject(inner)) {
    if (!isJsonObject(outer)) return false;
    for (const [key, value] of inner) {
      const held = outer.get(key);
      if (held === undefined || !jsonContains(held, value)) return false;
    }
    return true;
  }
  if (isJsonArray(inner)) {
    if (!isJsonArray(outer)) return false;
    return inner.every((item) => outer.some((held) => jsonContains(held, item)));
  }
  return !isJsonArray(outer) && !isJsonObject(outer) && compareJson(outer, inner) === 0;
}

/**
 * The maximum number of parts in a sought document for which the text of the other document is
 * searched once per part.
 */
const SOUGHT_PARTS_MAX = 16;

/**
 * Evaluates `outer @> inner`. An array may also contain a scalar, but only at the top level. If
 * `inner` is small, `outer` is not parsed into a tree.
 */
export function jsonContainsAtTop(outer: string, inner: JsonNode): boolean {
  if (partsOf(inner, SOUGHT_PARTS_MAX) < 0) return jsonContains(jsonTree(outer), inner);
  const isScalar = !isJsonArray(inner) && !isJsonObject(inner);
  const root = jsonRoot(outer);
  if (isScalar && jsonKindAt(outer, root.start) === "array") {
    return jsonElements(outer, root).some((item) => textContains(outer, item, inner));
  }
  return textContains(outer, root, inner);
}

/**
 * Subtracts the number of parts in a document from `most`. Returns as soon as the result is
 * negative.
 */
function partsOf(node: JsonNode, most: number): number {
  let left = most - 1;
  if (!isJsonArray(node) && !isJsonObject(node)) return left;
  for (const part of node.values()) {
    left = partsOf(part, left);
    if (left < 0) break;
  }
  return left;
}

function textContains(text: string, slice: JsonSlice, inner: JsonNode): boolean {
  const kind = jsonKindAt(text, slice.start);
  if (isJsonObject(inner)) {
    if (kind !== "object") return false;
    for (const [key, value] of inner) {
      const held = jsonMember(text, slice, key);
      if (held === undefined || !textContains(text, held, value)) return false;
    }
    return true;
  }
  if (isJsonArray(inner)) {
    if (kind !== "array") return false;
    const held = jsonElements(text, slice);
    return inner.every((item) => held.some((each) => textContains(text, each, item)));
  }
  if (inner === null) return kind === "null";
  if (typeof inner === "string") return kind === "string" && isJsonString(text, slice, inner);
  if (typeof inner === "object")
    return kind === "number" && isJsonNumber(text, slice, inner.number);
  return kind === "boolean" && inner === (text.charCodeAt(slice.start) === 0x74);
}

/**
 * Caches the last result of a function on strings, because a constant argument recurs in every
 * row.
 */
export function remembered<Made>(make: (text: string) => Made): (text: string) => Made {
  let last: { readonly text: string; readonly made: Made } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, made: make(text) };
    return last.made;
  };
}

/**
 * Whether a string is a key of the JSON object, a string element of the JSON array, or equal to
 * the JSON string.
 */
export function jsonHasKey(json: string, key: string): boolean {
  const root = jsonRoot(json);
  const isKey = (slice: JsonSlice): boolean =>
    jsonKindAt(json, slice.start) === "string" && isJsonString(json, slice, key);
  switch (jsonKindAt(json, root.start)) {
    case "object":
      return jsonMember(json, root, key) !== undefined;
    case "array":
      return jsonElements(json, root).some(isKey);
    default:
      return isKey(root);
  }
}

/**
 * Evaluates the JSONB operator `||`: objects are merged; any other values are concatenated as
 * arrays.
 */
export function jsonConcat(left: JsonNode, right: JsonNode): JsonNode {
  if (isJsonObject(left) && isJsonObject(right)) return jsonObject([...left, ...right]);
  const a = isJsonArray(left) ? left : [left];
  const b = isJsonArray(right) ? right : [right];
  return [...a, ...b];
}

/**
 * Evaluates the JSONB operator `- text`: removes the given keys from an object, or all equal
 * strings from an array.
 */
export function jsonWithoutKeys(node: JsonNode, keys: readonly string[]): JsonNode {
  if (isJsonObject(node)) {
    return jsonObject([...node].filter(([key]) => !keys.includes(key)));
  }
  if (isJsonArray(node)) {
    return node.filter((item) => typeof item !== "string" || !keys.includes(item));
  }
  throw cannotDelete("a scalar");
}

/**
 * Evaluates the JSONB operator `- integer`: removes the array element at an index. A negative
 * index counts from the end.
 */
export function jsonWithoutIndex(node: JsonNode, index: number): JsonNode {
  if (!isJsonArray(node))
    throw isJsonObject(node)
      ? cannotDelete("an object by index", "an array")
      : cannotDelete("a scalar");
  const at = index < 0 ? node.length + index : index;
  return node.filter((_, position) => position !== at);
}

/** Evaluates the JSONB operator `#- path`: removes the value at a path. */
export function jsonWithoutPath(node: JsonNode, path: readonly string[]): JsonNode {
  if (!isJsonArray(node) && !isJsonObject(node)) throw cannotDelete("a scalar");
  // If the document is an empty array, the operator ignores the path.
  if (isJsonArray(node) && node.length === 0) return node;
  return jsonEdit(node, { path, creates: false, replace: () => undefined });
}

function cannotDelete(what: string, expected = "an array or object"): DatabaseError {
  return new DatabaseError("INVALID_VALUE", `Cannot delete from ${what}: expected ${expected}`);
}

export interface PathEdit {
  readonly path: readonly string[];
  /**
   * Whether the last step of the path is created as an object member or array element if it is
   * missing.
   */
  readonly creates: boolean;
  /**
   * Receives the existing node, or undefined if there is none, and returns its replacement. If the
   * result is undefined, the node is removed.
   */
  readonly replace: (node: JsonNode | undefined) => JsonNode | undefined;
  /** For arrays: whether to insert the new node before or after the existing node. */
  readonly insert?: "before" | "after";
}

/** Changes the value at a path. If the path does not exist, nothing changes. */
export function jsonEdit(node: JsonNode, edit: PathEdit, depth = 0): JsonNode {
  const step = edit.path[depth];
  if (step === undefined) return node;
  if (isJsonObject(node)) return editMember(node, edit, depth);
  return isJsonArray(node) ? editElement(node, edit, depth) : node;
}

function editMember(node: ReadonlyMap<string, JsonNode>, edit: PathEdit, depth: number): JsonNode {
  const key = edit.path[depth] ?? "";
  const held = node.get(key);
  const isLast = depth === edit.path.length - 1;
  if (!isLast) {
    if (held === undefined) return node;
    return jsonObject([...node, [key, jsonEdit(held, edit, depth + 1)]]);
  }
  if (held === undefined && !edit.creates) return node;
  if (held !== undefined && edit.insert !== undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot insert the key "${key}": it already exists; to replace its value, use jsonb_set`,
    );
  }
  const made = edit.replace(held);
  if (made !== undefined) return jsonObject([...node, [key, made]]);
  return jsonObject([...node].filter(([other]) => other !== key));
}

function editElement(node: readonly JsonNode[], edit: PathEdit, depth: number): JsonNode {
  const step = edit.path[depth] ?? "";
  const index = Number(step);
  if (!/^[+-]?\d+$/.test(step) || !Number.isSafeInteger(index)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot follow the JSON path: element ${depth + 1} of the path, "${step}", must be an ` +
        "integer",
    );
  }
  const at = index < 0 ? node.length + index : index;
  const held = node[at];
  if (depth < edit.path.length - 1) {
    return held === undefined ? node : node.with(at, jsonEdit(held, edit, depth + 1));
  }
  if (held === undefined) {
    const made = edit.creates ? edit.replace(undefined) : undefined;
    if (made === undefined) return node;
    return at < 0 ? [made, ...node] : [...node, made];
  }
  const made = edit.replace(held);
  if (edit.insert !== undefined && made !== undefined) {
    return node.toSpliced(edit.insert === "before" ? at : at + 1, 0, made);
  }
  return made === undefined ? node.toSpliced(at, 1) : node.with(at, made);
}
