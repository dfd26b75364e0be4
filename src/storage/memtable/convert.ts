/**
 * Converts values stored before an ALTER TABLE widened the type of their column. SMALLINT and INT
 * widen to BIGINT, a DECIMAL gets more decimal places or becomes a NUMERIC without a precision,
 * and JSON text becomes canonical JSONB. Every other widening leaves the stored form of a value
 * unchanged.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  canonicalJson,
  type DataType,
  numericOf,
  physicalKind,
  sameType,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
  wholeFromBigint,
} from "../../types/mod.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import { MemColumn } from "./mem_column.ts";

/**
 * Returns a number that identifies the stored form of a type's values: the number of decimal
 * places for DECIMAL, 1 for JSONB, and 0 for all other types. The log records this number for each
 * column.
 */
export function formOf(type: DataType): number {
  if (type.kind === "decimal") return type.scale;
  return type.kind === "json" && type.binary ? 1 : 0;
}

/** Converts a value from the stored form `formThen` to the stored form of the type `now`. */
export function converted(value: Value, formThen: number, now: DataType): Value {
  if (value === null) return value;
  const formNow = formOf(now);
  if (now.kind === "numeric") {
    const isWhole = typeof value === "number" || typeof value === "bigint";
    return isWhole ? numericOf(value, formThen) : value;
  }
  if (now.kind === "json") {
    return formNow > formThen && typeof value === "string" ? canonicalOf(value) : value;
  }
  if (formThen === formNow) return value;
  if (typeof value !== "number" && typeof value !== "bigint") return value;
  return wholeFromBigint(BigInt(value) * 10n ** BigInt(formNow - formThen));
}

function canonicalOf(text: string): string {
  try {
    return canonicalJson(text);
  } catch (error) {
    // Keeping the text is safe: ALTER TABLE has checked every live row. Only older versions can
    // fail to convert, and they keep their values.
    if (error instanceof DatabaseError) return text;
    throw error;
  }
}

/**
 * Converts the values of a column from the type with which they were stored to its current type.
 */
export function convertVector(vector: Vector, from: DataType, to: DataType): Vector {
  if (sameType(from, to)) return vector;
  const formThen = formOf(from);
  const isKept = formThen === formOf(to) && (to.kind !== "numeric" || from.kind === "numeric");
  if (isKept) {
    // Widening an integer does not change its value, but the column may need a wider
    // representation.
    if (vector.kind !== "i32" || physicalKind(to) !== "f64") return vector;
    const { length, nulls } = vector;
    return { kind: "f64", length, values: Float64Array.from(vector.values), nulls };
  }
  const values: Value[] = [];
  for (let row = 0; row < vector.length; row += 1) {
    values.push(converted(valueAt(vector, row), formThen, to));
  }
  return vectorFromValues(to, values);
}

/** Converts a memtable's column to match its definition after ALTER TABLE. */
export function convertMemColumn(column: MemColumn, definition: StoredColumn): MemColumn {
  const { columnId, type } = definition;
  if (sameType(column.type, type)) return column;
  const wider = new MemColumn(columnId, type);
  const formThen = formOf(column.type);
  for (let row = 0; row < column.length; row += 1) {
    wider.appendRepeated(converted(column.valueAt(row), formThen, type), 1);
  }
  return wider;
}
