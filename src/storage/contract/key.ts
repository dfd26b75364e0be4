/**
 * Primary keys as numbers and strings: two keys are equal exactly when these are `===`.
 *
 * A single number stays a number and a single string stays itself, which is what nearly every key
 * is. The types of the key columns are fixed, so the forms of different types never meet in one
 * map, but for a whole number, which is a number or a bigint by its size: the latter is a string.
 */
import { unreachable } from "../../base/assert.ts";
import {
  type Batch,
  isInterval,
  type Row,
  textsOf,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";

export type Key = number | string;

/** The key in a row; `positions` are the places of the key columns in it. */
export function keyOfRow(row: Row, positions: readonly number[]): Key {
  if (positions.length === 1) return keyOfValue(row[positions[0] ?? 0] ?? null);
  let key = "";
  for (const position of positions) {
    const part = String(keyOfValue(row[position] ?? null));
    // The length makes ("a", "bc") and ("ab", "c") differ.
    key += `${part.length}:${part}`;
  }
  return key;
}

/** The key in a row of columns, as {@linkcode keyOfRow} gives it. */
export function keyOfColumns(
  columns: readonly Vector[],
  row: number,
  positions: readonly number[],
): Key {
  const column = columns[positions[0] ?? 0];
  if (positions.length === 1 && (column?.kind === "f64" || column?.kind === "i32")) {
    return column.values[row] ?? 0;
  }
  return keyOfValues(
    positions.map((position) => {
      const part = columns[position];
      return part === undefined ? null : valueAt(part, row);
    }),
  );
}

/** The keys of all rows of columns. */
export function keysOfColumns({ columns, rowCount }: Batch, positions: readonly number[]): Key[] {
  const column = columns[positions[0] ?? 0];
  if (positions.length === 1 && column?.kind === "utf8") {
    return textsOf(column).map((text) => text ?? "");
  }
  return Array.from({ length: rowCount }, (_, row) => keyOfColumns(columns, row, positions));
}

/** The key that consists of these values alone. */
export function keyOfValues(values: Row): Key {
  return values.length === 1 ? keyOfValue(values[0] ?? null) : keyOfRow(values, [...values.keys()]);
}

function keyOfValue(value: Value): Key {
  switch (typeof value) {
    case "number":
    case "string":
      return value;
    case "boolean":
      return value ? 1 : 0;
    case "bigint":
      return String(value);
    case "object":
      return keyOfObject(value);
    default:
      return unreachable(value, "a value is of a known form");
  }
}

function keyOfObject(value: Exclude<Value, number | string | boolean | bigint>): string {
  if (value === null) return "";
  if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1");
  if (value instanceof Float32Array) return value.join(",");
  if (isInterval(value)) return `${value.months},${value.days},${value.micros}`;
  return JSON.stringify(value.map((part) => keyOfValue(part)));
}
