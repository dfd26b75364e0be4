/**
 * Converts values to JSON text with PostgreSQL's spacing.
 */
import { type ArrayValue, isArrayValue } from "./array_shape.ts";
import { type DataType, isNumeric, type RowField } from "./data_type.ts";
import { isoTextOf } from "./datetime.ts";
import { shortestFloat } from "./float_text.ts";
import { isFiniteNumeric } from "./numeric.ts";
import { textFromValue } from "./text_form.ts";
import type { RowValue, Value, Whole } from "./value.ts";

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
    case "row":
      return jsonOfFields(type.fields, value as RowValue);
    case "embedding":
      return `[${Array.from(value as Float32Array, shortestFloat).join(",")}]`;
    case "timestamp":
      return JSON.stringify(isoTextOf(value as Whole, ""));
    case "datetime":
      return JSON.stringify(isoTextOf(value as Whole, "+00:00"));
    default: {
      // JSON has no representation for NaN and infinity, so they are strings.
      const isNumber =
        type.kind === "numeric"
          ? isFiniteNumeric(value as string)
          : isNumeric(type) && (typeof value === "bigint" || Number.isFinite(value));
      return isNumber ? textFromValue(type, value) : JSON.stringify(textFromValue(type, value));
    }
  }
}

/** Returns the fields of a row as a JSON object. @param separator The text between two fields. */
export function jsonOfFields(
  fields: readonly RowField[],
  { cells }: RowValue,
  separator = ",",
): string {
  const members = fields.map(
    ({ name, type }, index) => `${JSON.stringify(name)}:${jsonTextOf(type, cells[index] ?? null)}`,
  );
  return `{${members.join(separator)}}`;
}
