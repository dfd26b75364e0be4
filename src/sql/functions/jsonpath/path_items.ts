/** Defines the items that a JSON path processes: parts of a document, and dates and times. */
import { DatabaseError, type ErrorCode } from "../../../base/errors.ts";
import { isJsonArray, isJsonObject, type JsonNode } from "../../../types/mod.ts";
import { PathMoment } from "./path_moments.ts";
import { digitsOf, firstGroup } from "./path_numbers.ts";

export type PathItem = JsonNode | PathMoment;

/** An error that makes a JSON path condition unknown. Functions with silent mode suppress it. */
export class PathFault extends DatabaseError {
  constructor(why: string, code: ErrorCode = "INVALID_VALUE") {
    super(code, `Cannot evaluate the JSON path: ${why}`);
  }
}

export function isArrayItem(item: PathItem): item is readonly JsonNode[] {
  return Array.isArray(item);
}

export function isObjectItem(item: PathItem): item is ReadonlyMap<string, JsonNode> {
  return item instanceof Map;
}

/** Returns the text of a numeric item; undefined for any other item. */
export function numberOf(item: PathItem): string | undefined {
  if (item === null || typeof item !== "object" || item instanceof PathMoment) return undefined;
  return isJsonArray(item) || isJsonObject(item) ? undefined : item.number;
}

/** Returns the name of an item's type, as `.type()` does. */
export function itemType(item: PathItem): string {
  if (item === null) return "null";
  if (item instanceof PathMoment) return item.typeName;
  if (isArrayItem(item)) return "array";
  if (isObjectItem(item)) return "object";
  return typeof item === "object" ? "number" : typeof item;
}

/** Converts a JSON path item to a node of a document. */
export function nodeOf(item: PathItem): JsonNode {
  return item instanceof PathMoment ? item.text : item;
}

/** Returns the elements of an array or the values of an object; undefined for a scalar. */
export function partsOf(item: PathItem): Iterable<JsonNode> | undefined {
  if (isArrayItem(item)) return item;
  return isObjectItem(item) ? item.values() : undefined;
}

const HEADER_BYTES = 4;

/**
 * Returns the offset that an object would have in PostgreSQL's binary form of a document, or
 * undefined if the document does not contain the object. `.keyvalue()` identifies objects by this
 * offset.
 *
 *     container   header, an entry of 4 bytes for each key and value, keys, values
 *     number      padded to 4 bytes: a header, the weight, two bytes for each four digits
 */
export function offsetWithin(document: JsonNode, sought: PathItem): number | undefined {
  let at = 0;
  const pad = (): void => {
    at = Math.ceil(at / 4) * 4;
  };
  const visit = (node: JsonNode): number | undefined => {
    if (typeof node === "string") at += Buffer.byteLength(node);
    if (node === null || typeof node !== "object") return undefined;
    pad();
    if (node === sought) return at;
    if (isJsonArray(node)) return visitAll(node, node.length);
    if (!isJsonObject(node)) {
      at += numberBytes(node.number);
      return undefined;
    }
    at += HEADER_BYTES + node.size * 8;
    for (const key of node.keys()) at += Buffer.byteLength(key);
    return visitAll(node.values(), -1);
  };
  const visitAll = (nodes: Iterable<JsonNode>, entryCount: number): number | undefined => {
    if (entryCount >= 0) at += HEADER_BYTES + entryCount * 4;
    for (const node of nodes) {
      const found = visit(node);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return visit(document);
}

function numberBytes(text: string): number {
  const digits = digitsOf(text);
  if (digits.unscaled === 0n) return HEADER_BYTES + 2;
  const { weight } = firstGroup(digits);
  const fractionZeros = /\.\d*?(0*)$/.exec(text)?.[1]?.length ?? 0;
  const fraction = Math.ceil((digits.scale - fractionZeros) / 4);
  const wholeZeros = fraction === 0 ? (/^[^.]*?(0*)(?:\.0*)?$/.exec(text)?.[1]?.length ?? 0) : 0;
  const groups = weight + 1 + fraction - Math.floor(wholeZeros / 4);
  const isShort = digits.scale <= 63 && weight >= -64 && weight <= 63;
  return HEADER_BYTES + (isShort ? 2 : 4) + groups * 2;
}
