/**
 * Computes sort keys: strings whose code point order is the order of a type's values. Live queries
 * send them for types that a client cannot order by itself.
 *
 * The key of a value with parts consists of the keys of its parts. A part of variable length ends
 * with END, which sorts below every other character, so a shorter part sorts before its
 * extensions:
 *
 *     part    key, with END written as ESCAPE '1' and ESCAPE as ESCAPE '2', then END
 *     item    '0' part, or '1' for NULL, which sorts last
 *     array   '0' item, for each element, then END, the number of elements, its dimensions
 *     row     item, for each field
 *     json    '0' for an empty array that is the whole document; otherwise a node:
 *             '1' null, '2' part (string), '3' part (number), '4' '0' or '1' (boolean),
 *             '5' size, nodes (array), '6' size, then part (key) and node for each member (object)
 *     size    ten decimal digits
 */
import { type ArrayValue, dimensionsOf, elementsOf } from "./array_shape.ts";
import { type DataType, hasOrder } from "./data_type.ts";
import { intervalSpan } from "./interval.ts";
import { isJsonArray, isJsonObject, type JsonNode, jsonTree } from "./json_tree.ts";
import { numericFromText, numericKey } from "./numeric.ts";
import { OBJECT_NAME_KINDS } from "./object_name.ts";
import { typeOrder } from "./type_class.ts";
import { UNSIGNED_KINDS } from "./unsigned.ts";
import type { Interval, RowValue, Value } from "./value.ts";

const END = "\u0000";
const ESCAPE = "\u0001";
const SIZE_DIGITS = 10;

/**
 * Whether values of a type have sort keys. Text under an ICU collation has none, because its order
 * depends on the version of ICU. Text search documents and geometric values have none, either.
 */
export function hasSortKey(type: DataType): boolean {
  if (type.kind === "array") return hasSortKey(type.element);
  if (type.kind === "row") return type.fields.every((field) => hasSortKey(field.type));
  const order = typeOrder(type);
  return hasOrder(type) && order !== "collated" && order !== "search" && order !== "unknown";
}

/**
 * Returns the sort key of a value.
 * @param type A type that has sort keys.
 */
export function sortKeyOf(type: DataType, value: Value): string {
  if (type.kind === "array") return arrayKey(type.element, value as ArrayValue);
  if (type.kind === "row") {
    const { cells } = value as RowValue;
    return type.fields.map((field, index) => itemKey(field.type, cells[index] ?? null)).join("");
  }
  switch (typeOrder(type)) {
    case "whole":
    case "double":
      return numberKey((value as number | bigint).toString());
    case "interval":
      return numberKey(String(intervalSpan(value as Interval)));
    case "numeric":
      return numericKey(value as string);
    case "boolean":
      return value === true ? "1" : "0";
    case "json":
      return jsonKey(jsonTree(value as string));
    case "bytes":
      return Buffer.from(value as Uint8Array).toString("hex");
    case "embedding":
      return arrayKey({ kind: "double" }, Array.from(value as Float32Array));
    case "text":
    case "collated":
    case "search":
    case "unknown":
      return value as string;
  }
}

/** Whether a client can order the cells of a type in the form in which they are sent. */
export function isOrderedByClients(type: DataType): boolean {
  if (type.kind === "array") return isOrderedByClients(type.element);
  return !SENT_IN_ANOTHER_ORDER.has(type.kind);
}

const SENT_IN_ANOTHER_ORDER: ReadonlySet<DataType["kind"]> = new Set([
  "enum",
  "money",
  "interval",
  "timetz",
  "inet",
  "cidr",
  "range",
  "multirange",
  "json",
  "row",
  "tsvector",
  "tsquery",
  ...UNSIGNED_KINDS,
  ...OBJECT_NAME_KINDS,
]);

function numberKey(text: string): string {
  return numericKey(numericFromText(text) ?? text);
}

function arrayKey(element: DataType, value: ArrayValue): string {
  const items = elementsOf(value);
  const keys = items.map((item) => `0${itemKey(element, item)}`).join("");
  return `${keys}${END}${sizeKey(items.length)}${dimensionsKey(dimensionsOf(value))}`;
}

function dimensionsKey(dimensions: readonly number[]): string {
  return [dimensions.length, ...dimensions].map(sizeKey).join("");
}

function itemKey(type: DataType, item: Value): string {
  return item === null ? "1" : `0${partKey(sortKeyOf(type, item))}`;
}

function partKey(key: string): string {
  return `${key.replaceAll(ESCAPE, `${ESCAPE}2`).replaceAll(END, `${ESCAPE}1`)}${END}`;
}

function sizeKey(size: number): string {
  return String(size).padStart(SIZE_DIGITS, "0");
}

function jsonKey(node: JsonNode): string {
  const isEmptyArray = node !== null && isJsonArray(node) && node.length === 0;
  return isEmptyArray ? "0" : nodeKey(node);
}

function nodeKey(node: JsonNode): string {
  if (node === null) return "1";
  if (typeof node === "string") return `2${partKey(node)}`;
  if (typeof node === "boolean") return node ? "41" : "40";
  if (isJsonArray(node)) return `5${sizeKey(node.length)}${node.map(nodeKey).join("")}`;
  if (!isJsonObject(node)) return `3${partKey(numberKey(node.number))}`;
  const members = Array.from(node, ([key, value]) => `${partKey(key)}${nodeKey(value)}`);
  return `6${sizeKey(node.size)}${members.join("")}`;
}
