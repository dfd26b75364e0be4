/**
 * Represents primary keys as numbers and strings, so that two keys are equal exactly if they are
 * equal under `===`.
 *
 * Nearly every key is a single number or a single string, which is used unchanged. The types of
 * the key columns are fixed, so a map never mixes representations of different types. The only
 * exception is whole numbers, which are numbers or bigints depending on their size. A bigint
 * becomes a string.
 */
import { assert, unreachable } from "../../base/assert.ts";
import {
  type Batch,
  isArrayValue,
  isInterval,
  type Row,
  textsOf,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";

export type Key = number | string;

/**
 * Stands for NULL in a key. No stored text contains a lone surrogate, so this string equals no
 * other key.
 */
const NULL_KEY = "\ud800";

/** Returns the key of a row. `positions` are the indexes of the key columns within the row. */
export function keyOfRow(row: Row, positions: readonly number[]): Key {
  if (positions.length === 1) return keyOfValue(row[positions[0] ?? 0] ?? null);
  let key = "";
  for (const position of positions) {
    const part = String(keyOfValue(row[position] ?? null));
    // The length prefix distinguishes ("a", "bc") from ("ab", "c").
    key += `${part.length}:${part}`;
  }
  return key;
}

/**
 * Returns the key of a row in columnar form, equal to the key that {@linkcode keyOfRow} returns.
 */
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

/** Returns the keys of all rows of a batch. */
export function keysOfColumns({ columns, rowCount }: Batch, positions: readonly number[]): Key[] {
  const column = columns[positions[0] ?? 0];
  if (positions.length === 1 && column?.kind === "utf8") {
    return textsOf(column).map((text) => text ?? "");
  }
  return Array.from({ length: rowCount }, (_, row) => keyOfColumns(columns, row, positions));
}

/** Returns the key for one or more key values. */
export function keyOfValues(values: Row): Key {
  return values.length === 1 ? keyOfValue(values[0] ?? null) : keyOfRow(values, [...values.keys()]);
}

/** Returns the key for a single key value. */
export function keyOfValue(value: Value): Key {
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
      return unreachable(value, "key encoding: unknown value type");
  }
}

function keyOfObject(value: Exclude<Value, number | string | boolean | bigint>): string {
  if (value === null) return NULL_KEY;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1");
  if (value instanceof Float32Array) return value.join(",");
  if (isInterval(value)) return `${value.months},${value.days},${value.micros}`;
  assert(isArrayValue(value), "key encoding: row values cannot be keys");
  return JSON.stringify(value.map((part) => keyOfValue(part)));
}
