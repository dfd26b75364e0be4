/**
 * Reads request parameters that are lists or objects, according to their type in the statement:
 *
 *     list as an array     each item is read like a parameter of the element type; lists within it
 *                          are further dimensions, unless the elements are JSON or BYTES
 *     list as BYTES        the numbers are the bytes, as in a cell
 *     list as EMBEDDING    the numbers of the embedding
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

/**
 * Reads a parameter sent as JSON text.
 * @throws {DatabaseError} INVALID_VALUE, and the errors of reading an item.
 */
export function valueFromJsonParameter(type: DataType, text: string, nowMicros?: number): Value {
  const root = jsonRoot(text);
  const isList = jsonKindAt(text, root.start) === "array";
  if (type.kind === "array" && isList) {
    const { element } = type;
    return arrayFromJsonList(element, text, (raw, isString) =>
      isString || !/^[[{]/.test(raw)
        ? valueFromText(element, raw, nowMicros)
        : valueFromJsonParameter(element, raw, nowMicros),
    );
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

/** Reads a list item that is neither null nor a nested dimension. */
type ReadItem = (raw: string, isString: boolean) => Value;

/**
 * Reads a list as an array, calling `read` for each item. `read` receives the content of a string
 * item, and the JSON text of any other item.
 *
 * @throws {DatabaseError} The errors of `read`.
 */
export function arrayFromJsonList(element: DataType, text: string, read: ReadItem): ArrayValue {
  return listValue(element, text, { list: jsonRoot(text), read });
}

interface ListPlace {
  readonly list: JsonSlice;
  readonly read: ReadItem;
}

function listValue(element: DataType, text: string, { list, read }: ListPlace): ArrayValue {
  const isDeep = element.kind !== "json" && element.kind !== "bytes";
  let depth = 0;
  const items = jsonElements(text, list).map((item): Value => {
    const kind = jsonKindAt(text, item.start);
    if (kind === "null") return null;
    if (kind === "string") return read(textOfJsonString(jsonString(text, item)), true);
    if (kind === "array" && isDeep) {
      depth += 1;
      return listValue(element, text, { list: item, read });
    }
    return read(text.slice(item.start, item.end), false);
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
      `Cannot read ${excerpt(raw)} as a byte: every item in a list for bytea must be an ` +
        "integer from 0 to 255",
    );
  });
}
