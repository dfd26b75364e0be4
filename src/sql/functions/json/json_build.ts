/** Creates the parts of the JSON documents that functions build: keys and canonical values. */
import { DatabaseError } from "../../../base/errors.ts";
import { canonicalJson, type DataType, textFromValue, type Value } from "../../../types/mod.ts";

const UNSCALAR: ReadonlySet<string> = new Set(["array", "embedding", "json", "row"]);

/**
 * Converts a value to the key of a JSON object. @throws {DatabaseError} INVALID_VALUE if the value
 * is NULL or not a scalar.
 */
export function jsonKeyOf(type: DataType, value: Value): string {
  if (value === null) {
    throw new DatabaseError("INVALID_VALUE", "Cannot build a JSON object: a key must not be NULL");
  }
  if (UNSCALAR.has(type.kind)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot build a JSON object: a key must be a scalar, not an array, a row or JSON",
    );
  }
  return JSON.stringify(textFromValue(type, value));
}

/** Returns a finished JSON document. JSON keeps its text; JSONB is converted to canonical form. */
export function finishedJson(text: string, binary: boolean): string {
  return binary ? canonicalJson(text) : text;
}

/**
 * Converts valid JSON to canonical form, for use within a larger document.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function canonicalPart(text: string): string {
  return isPlainString(text) ? text : canonicalJson(`[${text}]`).slice(1, -1);
}

/** Whether a JSON text is a string without escapes. Such a text is always canonical. */
function isPlainString(text: string): boolean {
  return text.startsWith('"') && text.endsWith('"') && !text.includes("\\") && text.isWellFormed();
}
