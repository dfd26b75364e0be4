/**
 * Reads lists and objects among the parameters of a request, according to their type in the
 * statement:
 *
 *     list as an array     each item as a parameter of the element type would be read; lists within
 *                          it are further dimensions, unless the elements are JSON or BYTES
 *     list as BYTES        the numbers of the bytes, as in a cell
 *     list as EMBEDDING    its numbers
 *     either as JSON       the unchanged document
 *
 * The JSON text of a list is therefore never mistaken for the text form of an array or of bytes.
 */
import { DatabaseError } from "../base/errors.ts";
import { type ArrayValue, arrayOfArrays } from "./array_shape.ts";
import { type DataType, typeName } from "./data_type.ts";
import { excerpt } from "./excerpt.ts";
import {
  type JsonSlice,
  jsonElements,
  jsonKindAt,
  jsonRoot,
  jsonString,
  textOfJsonString,
} from "./json_text.ts";
import { valueFromText } from "./text_form.ts";
import type { Value } from "./value.ts";

/** @throws {DatabaseError} INVALID_VALUE, and the errors of reading an item. */
export function valueFromJsonParameter(type: DataType, text: string, nowMicros?: number): Value {
  const root = jsonRoot(text);
  const isList = jsonKindAt(text, root.start) === "array";
  if (type.kind === "array" && isList) {
    return listValue(type.element, text, { list: root, nowMicros });
  }
  if (type.kind === "bytes" && isList) return bytesFromList(text, root);
  if (type.kind === "json" || (type.kind === "embedding" && isList)) {
    return valueFromText(type, text.slice(root.start, root.end));
  }
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot read ${excerpt(text)} as ${typeName(type)}: the parameter is ${isList ? "a list" : "an object"}`,
  );
}

interface ListPlace {
  readonly list: JsonSlice;
  readonly nowMicros: number | undefined;
}

function listValue(element: DataType, text: string, { list, nowMicros }: ListPlace): ArrayValue {
  const isDeep = element.kind !== "json" && element.kind !== "bytes";
  let depth = 0;
  const items = jsonElements(text, list).map((item): Value => {
    const raw = text.slice(item.start, item.end);
    const kind = jsonKindAt(text, item.start);
    if (kind === "null") return null;
    if (kind === "string") {
      return valueFromText(element, textOfJsonString(jsonString(text, item)), nowMicros);
    }
    if (kind === "array" && isDeep) {
      depth += 1;
      return listValue(element, text, { list: item, nowMicros });
    }
    if (kind === "array" || kind === "object")
      return valueFromJsonParameter(element, raw, nowMicros);
    return valueFromText(element, raw, nowMicros);
  });
  return depth === 0 ? items : arrayOfArrays(items);
}

function bytesFromList(text: string, root: JsonSlice): Uint8Array {
  return Uint8Array.from(jsonElements(text, root), ({ start, end }) => {
    const raw = text.slice(start, end);
    const byte = /^\d{1,3}$/.test(raw) ? Number(raw) : 256;
    if (byte <= 255) return byte;
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(raw)} as a byte: an item of a list for bytea must be an integer from 0 to 255`,
    );
  });
}
