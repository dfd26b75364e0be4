/**
 * Yields the strings of a JSON document that text search indexes, in document order. A key comes
 * directly before its value. A filter, which is itself JSON, selects the kinds of strings.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type JsonNode,
  jsonTree,
  textFromJson,
} from "../../../types/mod.ts";

const KINDS = ["string", "numeric", "boolean", "key"] as const;

type StringKind = (typeof KINDS)[number];

export const STRINGS_ONLY: ReadonlySet<StringKind> = new Set<StringKind>(["string"]);

export function* jsonStrings(node: JsonNode, kinds: ReadonlySet<StringKind>): Generator<string> {
  if (node === null) return;
  if (typeof node === "string") {
    if (kinds.has("string")) yield node;
  } else if (typeof node === "boolean") {
    if (kinds.has("boolean")) yield String(node);
  } else if (isJsonArray(node)) {
    for (const element of node) yield* jsonStrings(element, kinds);
  } else if (isJsonObject(node)) {
    for (const [key, value] of node) {
      if (kinds.has("key")) yield key;
      yield* jsonStrings(value, kinds);
    }
  } else if (kinds.has("numeric")) yield node.number;
}

/**
 * Parses a filter: the name of a kind of strings, `"all"`, or an array of kinds.
 * @throws {DatabaseError} INVALID_VALUE
 */
export function jsonFilter(text: string): ReadonlySet<StringKind> {
  const filter = jsonTree(text);
  const names = filter !== null && isJsonArray(filter) ? filter : [filter];
  return new Set(names.flatMap(kindsNamed));
}

function kindsNamed(name: JsonNode): readonly StringKind[] {
  if (name === "all") return KINDS;
  const kind = KINDS.find((each) => each === name);
  if (kind !== undefined) return [kind];
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use ${textFromJson(name)} as a filter for JSON values: it must be "string", ` +
      '"numeric", "boolean", "key", "all" or an array of these',
  );
}
