/**
 * Represents JSON as a tree, for functions that change or compare documents, and writes its
 * canonical text (JSONB).
 *
 * Canonical form: members are ordered by the length of their key in bytes, then by its bytes. If a
 * key repeats, its last member wins. Numbers keep their exact value and written scale (`1.50`),
 * without an exponent. One space follows `:` and `,`.
 */
import { DatabaseError } from "../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../base/limits.ts";
import { compareCodePoints } from "./code_points.ts";
import { compareWhole, digitsFromText, rescale, textFromDecimal } from "./decimal.ts";
import {
  checkJson,
  type JsonSlice,
  jsonElements,
  jsonKindAt,
  jsonMembers,
  jsonRoot,
  jsonString,
} from "./json_text.ts";
import { withoutFractionZeros } from "./trailing_zeros.ts";
import { wholeFromBigint } from "./value.ts";

/** A number, kept as canonical text so that no digits are lost. */
interface JsonNumber {
  readonly number: string;
}

/** The members of an object, in canonical order. */
export type JsonObject = ReadonlyMap<string, JsonNode>;

export type JsonNode = null | boolean | string | JsonNumber | readonly JsonNode[] | JsonObject;

/**
 * The maximum number of digits written without an exponent. Otherwise `1e999999` would become a
 * megabyte of text.
 */
const NUMBER_DIGITS_MAX = 1000;

export function isJsonArray(node: JsonNode): node is readonly JsonNode[] {
  return Array.isArray(node);
}

export function isJsonObject(node: JsonNode): node is JsonObject {
  return node instanceof Map;
}

/**
 * Parses valid JSON text into a tree. @throws {DatabaseError} VALUE_OUT_OF_RANGE, INVALID_VALUE
 */
export function jsonTree(text: string): JsonNode {
  return nodeAt(text, jsonRoot(text), { left: Number.POSITIVE_INFINITY });
}

/**
 * Validates a JSON document and returns its canonical text.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function canonicalJson(text: string): string {
  checkJson(text);
  return textFromJson(nodeAt(text, jsonRoot(text), { left: PARTS_OF_TEXT_MAX }));
}

/**
 * Parses a slice of JSON text into nodes.
 * @param parts How many more nodes the tree may have.
 */
function nodeAt(text: string, slice: JsonSlice, parts: { left: number }): JsonNode {
  parts.left -= 1;
  if (parts.left < 0) throw tooManyParts();
  switch (jsonKindAt(text, slice.start)) {
    case "null":
      return null;
    case "boolean":
      return text.charCodeAt(slice.start) === 0x74;
    case "string":
      return checkedString(jsonString(text, slice));
    case "number":
      return { number: canonicalNumber(text.slice(slice.start, slice.end)) };
    case "array":
      return jsonElements(text, slice).map((element) => nodeAt(text, element, parts));
    case "object":
      return jsonObject(
        jsonMembers(text, slice).map(({ key, value }) => [
          checkedString(key),
          nodeAt(text, value, parts),
        ]),
      );
  }
}

function tooManyParts(): DatabaseError {
  return new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot convert the JSON value to JSONB: it has more than ${PARTS_OF_TEXT_MAX} parts`,
    { hint: "use the type JSON, which stores the text unchanged, or split the value" },
  );
}

function checkedString(text: string): string {
  if (!text.includes("\u0000") && text.isWellFormed()) return text;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot convert the JSON string to JSONB: it contains the character \\u0000 or an unpaired " +
      "surrogate",
  );
}

/**
 * Returns a number without an exponent, as JSONB stores it.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function canonicalNumber(text: string): string {
  if (text.length <= NUMBER_DIGITS_MAX && /^(?:0|-?[1-9]\d*)(?:\.\d+)?$/.test(text)) return text;
  const digits = text.length <= NUMBER_DIGITS_MAX ? digitsFromText(text) : undefined;
  if (digits !== undefined && digits.scale <= NUMBER_DIGITS_MAX) {
    const written = textFromDecimal(digits.unscaled, digits.scale);
    if (written.length <= NUMBER_DIGITS_MAX) return written;
  }
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot convert the JSON number to JSONB: it has more than ${NUMBER_DIGITS_MAX} digits`,
  );
}

/** Sorts members into canonical order. If a key repeats, its last member wins. */
export function jsonObject(members: readonly (readonly [string, JsonNode])[]): JsonObject {
  if (members.length < 2) return new Map(members);
  const byKey = new Map(members);
  const keys = [...byKey.keys()].toSorted(compareKeys);
  return new Map(keys.map((key) => [key, byKey.get(key) ?? null]));
}

function compareKeys(left: string, right: string): number {
  return Buffer.byteLength(left) - Buffer.byteLength(right) || compareCodePoints(left, right);
}

export function textFromJson(node: JsonNode): string {
  if (node === null) return "null";
  if (typeof node === "boolean") return node ? "true" : "false";
  if (typeof node === "string") return JSON.stringify(node);
  if (isJsonArray(node)) return `[${node.map(textFromJson).join(", ")}]`;
  if (!isJsonObject(node)) return node.number;
  const members: string[] = [];
  for (const [key, value] of node) members.push(`${JSON.stringify(key)}: ${textFromJson(value)}`);
  return `{${members.join(", ")}}`;
}

/**
 * Compares JSONB values as PostgreSQL does: Object > Array > Boolean > Number > String > Null,
 * except that an empty array, as a whole document, sorts below everything else. Arrays and objects
 * are compared by size first, then by their parts. Members are compared in canonical order, with
 * their keys as strings.
 */
export function compareJson(left: JsonNode, right: JsonNode): number {
  const isEmptyLeft = isEmptyArray(left);
  if (isEmptyLeft || isEmptyArray(right)) return Number(isEmptyArray(right)) - Number(isEmptyLeft);
  return compareParts(left, right);
}

function isEmptyArray(node: JsonNode): boolean {
  return node !== null && isJsonArray(node) && node.length === 0;
}

function compareParts(left: JsonNode, right: JsonNode): number {
  const rank = rankOf(left) - rankOf(right);
  if (rank !== 0) return rank;
  if (left === null || right === null) return 0;
  if (typeof left === "string") return compareCodePoints(left, right as string);
  if (typeof left === "boolean") return Number(left) - Number(right);
  if (isJsonArray(left)) return compareArrays(left, right as readonly JsonNode[]);
  if (isJsonObject(left)) return compareObjects(left, right as JsonObject);
  return compareNumbers(left.number, (right as JsonNumber).number);
}

function rankOf(node: JsonNode): number {
  if (node === null) return 1;
  if (typeof node === "string") return 2;
  if (typeof node === "boolean") return 4;
  if (isJsonArray(node)) return 5;
  return isJsonObject(node) ? 6 : 3;
}

function compareArrays(left: readonly JsonNode[], right: readonly JsonNode[]): number {
  if (left.length !== right.length) return left.length - right.length;
  for (const [index, element] of left.entries()) {
    const order = compareParts(element, right[index] ?? null);
    if (order !== 0) return order;
  }
  return 0;
}

function compareObjects(left: JsonObject, right: JsonObject): number {
  if (left.size !== right.size) return left.size - right.size;
  const others = [...right];
  let index = 0;
  for (const [key, value] of left) {
    const [otherKey, otherValue] = others[index] ?? ["", null];
    const order = compareCodePoints(key, otherKey) || compareParts(value, otherValue);
    if (order !== 0) return order;
    index += 1;
  }
  return 0;
}

function compareNumbers(left: string, right: string): number {
  if (left === right) return 0;
  const a = digitsFromText(left);
  const b = digitsFromText(right);
  if (a === undefined || b === undefined) return 0;
  const scale = Math.max(a.scale, b.scale);
  return compareWhole(
    rescale(wholeFromBigint(a.unscaled), a.scale, scale),
    rescale(wholeFromBigint(b.unscaled), b.scale, scale),
  );
}

/**
 * Returns a key for grouping documents. Two documents have the same key if and only if they are
 * equal, as `1.0` and `1` are.
 */
export function jsonGroupKey(text: string): string {
  return keyOf(jsonTree(text));
}

function keyOf(node: JsonNode): string {
  if (node === null || typeof node !== "object") return JSON.stringify(node);
  if (isJsonArray(node)) return `[${node.map(keyOf).join(",")}]`;
  if (!isJsonObject(node)) return normalNumber(node.number);
  const members: string[] = [];
  for (const [key, value] of node) members.push(`${JSON.stringify(key)}:${keyOf(value)}`);
  return `{${members.join(",")}}`;
}

function normalNumber(text: string): string {
  const shortest = withoutFractionZeros(text);
  return shortest === "-0" ? "0" : shortest;
}
