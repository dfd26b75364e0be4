/**
 * Converts SQL values to JSON text, with PostgreSQL's spacing for the documents it builds.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  canonicalJson,
  type DataType,
  isArrayValue,
  isNumeric,
  shortestFloat,
  textFromValue,
  type Value,
} from "../../../types/mod.ts";

/** Returns the JSON text of a value; NULL becomes `null`. */
export function jsonTextOf(type: DataType, value: Value): string {
  if (value === null) return "null";
  switch (type.kind) {
    case "boolean":
      return value === true ? "true" : "false";
    case "json":
    case "file":
      return value as string;
    case "array": {
      const { element } = type;
      const parts = (value as ArrayValue).map((item) =>
        jsonTextOf(item !== null && isArrayValue(item) ? type : element, item),
      );
      return `[${parts.join(",")}]`;
    }
    case "embedding":
      return `[${Array.from(value as Float32Array, shortestFloat).join(",")}]`;
    case "timestamp":
      return JSON.stringify(textFromValue(type, value).replace(" ", "T"));
    case "datetime":
      return JSON.stringify(`${textFromValue(type, value).replace(" ", "T")}:00`);
    default:
      return isNumeric(type)
        ? textFromValue(type, value)
        : JSON.stringify(textFromValue(type, value));
  }
}

/** Returns an object key. @throws {DatabaseError} INVALID_VALUE if it is NULL or not a scalar. */
export function jsonKeyOf(type: DataType, value: Value): string {
  if (value === null) {
    throw new DatabaseError("INVALID_VALUE", "Cannot build a JSON object: a key must not be NULL");
  }
  if (type.kind === "array" || type.kind === "json" || type.kind === "embedding") {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot build a JSON object: a key must be a scalar, not an array or JSON",
    );
  }
  return JSON.stringify(textFromValue(type, value));
}

/** JSON keeps the text as built; JSONB makes it canonical. */
export function finishedJson(text: string, binary: boolean): string {
  return binary ? canonicalJson(text) : text;
}

/**
 * Returns valid JSON in canonical form, for use in a larger document.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function canonicalPart(text: string): string {
  return isPlainString(text) ? text : canonicalJson(`[${text}]`).slice(1, -1);
}

/** Whether a JSON text is a string without escapes, which is already canonical. */
function isPlainString(text: string): boolean {
  return text.startsWith('"') && text.endsWith('"') && !text.includes("\\") && text.isWellFormed();
}
