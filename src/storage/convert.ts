/**
 * Values that were stored before ALTER TABLE widened their column, as the column's type now holds
 * them: SMALLINT and INT grow to BIGINT, and a DECIMAL gets more digits behind the point. Every
 * other widening keeps the form of the value.
 */
import {
  type DataType,
  physicalKind,
  sameType,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
  wholeFromBigint,
} from "../types/mod.ts";
import { MemColumn } from "./mem_column.ts";
import type { StoredColumn } from "./store.ts";

/** A DECIMAL with `scaleNow` digits behind the point, stored when there were `scaleThen`. */
export function rescaled(value: Value, scaleThen: number, scaleNow: number): Value {
  if (scaleThen === scaleNow || value === null) return value;
  if (typeof value !== "number" && typeof value !== "bigint") return value;
  return wholeFromBigint(BigInt(value) * 10n ** BigInt(scaleNow - scaleThen));
}

export function scaleOf(type: DataType): number {
  return type.kind === "decimal" ? type.scale : 0;
}

/** A vector of a column that was stored with another type. */
export function convertVector(vector: Vector, from: DataType, to: DataType): Vector {
  if (sameType(from, to)) return vector;
  const scaleThen = scaleOf(from);
  const scaleNow = scaleOf(to);
  if (scaleThen === scaleNow) {
    // The same values, perhaps in wider numbers.
    if (vector.kind !== "i32" || physicalKind(to) !== "f64") return vector;
    return { ...vector, kind: "f64", values: Float64Array.from(vector.values) };
  }
  const values: Value[] = [];
  for (let row = 0; row < vector.length; row += 1) {
    values.push(rescaled(valueAt(vector, row), scaleThen, scaleNow));
  }
  return vectorFromValues(to, values);
}

/** A memtable's column after ALTER TABLE. */
export function convertMemColumn(column: MemColumn, definition: StoredColumn): MemColumn {
  const { columnId, type } = definition;
  if (sameType(column.type, type)) return column;
  const converted = new MemColumn(columnId, type);
  const scaleThen = scaleOf(column.type);
  for (let row = 0; row < column.length; row += 1) {
    converted.appendRepeated(rescaled(column.valueAt(row), scaleThen, scaleOf(type)), 1);
  }
  return converted;
}
