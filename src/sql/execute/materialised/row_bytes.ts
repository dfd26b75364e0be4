/**
 * Computes the size of a user's rows for `limits.storage_bytes_per_user`. The size depends only on
 * the values, not on their form in memory or on disk. A row therefore has the same size when it is
 * written and when it is read, and neither merges nor compression change the size.
 */
import type {
  Batch,
  DictionaryVector,
  Row,
  Utf8Vector,
  Value,
  Vector,
} from "../../../types/mod.ts";

/** The overhead of a row in bytes, for its seq and the seq of its previous version. */
const ROW_HEAD_BYTES = 16;

/** The overhead of a cell in bytes. A NULL takes up nothing more. */
const CELL_HEAD_BYTES = 1;

const NUMBER_BYTES = 8;
const INTERVAL_BYTES = 16;

export function rowBytes(row: Row): number {
  let bytes = ROW_HEAD_BYTES;
  for (const value of row) bytes += valueBytes(value);
  return bytes;
}

/** Returns the total size of a batch's rows, which must have the columns of a table. */
export function bytesOfRows({ columns, rowCount }: Batch): number {
  let bytes = rowCount * ROW_HEAD_BYTES;
  for (const column of columns) bytes += columnBytes(column, rowCount);
  return bytes;
}

function valueBytes(value: Value): number {
  switch (typeof value) {
    case "string":
      return CELL_HEAD_BYTES + Buffer.byteLength(value);
    case "boolean":
      return CELL_HEAD_BYTES + 1;
    case "number":
    case "bigint":
      return CELL_HEAD_BYTES + NUMBER_BYTES;
    default:
      return value === null ? CELL_HEAD_BYTES : CELL_HEAD_BYTES + objectBytes(value);
  }
}

function objectBytes(value: Extract<Value, object>): number {
  if (value instanceof Uint8Array || value instanceof Float32Array) return value.byteLength;
  if (!("length" in value)) return INTERVAL_BYTES;
  let bytes = 0;
  for (const item of value) bytes += valueBytes(item);
  return bytes;
}

function columnBytes(vector: Vector, rowCount: number): number {
  switch (vector.kind) {
    case "bool":
      return rowCount * CELL_HEAD_BYTES + presentCount(vector.nulls, rowCount);
    case "i32":
    case "f64":
      return rowCount * CELL_HEAD_BYTES + NUMBER_BYTES * presentCount(vector.nulls, rowCount);
    case "const":
      return rowCount * valueBytes(vector.value);
    case "any":
      return vector.values.reduce((bytes: number, value) => bytes + valueBytes(value), 0);
    case "utf8":
      return rowCount * CELL_HEAD_BYTES + textBytes(vector, rowCount);
    case "dict":
      return codedBytes(vector, rowCount);
  }
}

function textBytes({ nulls, offsets }: Utf8Vector, rowCount: number): number {
  if (nulls === undefined) return (offsets[rowCount] ?? 0) - (offsets[0] ?? 0);
  let bytes = 0;
  for (let row = 0; row < rowCount; row += 1) {
    if (nulls[row] !== 1) bytes += (offsets[row + 1] ?? 0) - (offsets[row] ?? 0);
  }
  return bytes;
}

function codedBytes({ codes, nulls, values }: DictionaryVector, rowCount: number): number {
  const sizes = values.map(valueBytes);
  let bytes = 0;
  for (let row = 0; row < rowCount; row += 1) {
    const isNull = nulls !== undefined && nulls[row] === 1;
    bytes += isNull ? CELL_HEAD_BYTES : (sizes[codes[row] ?? 0] ?? CELL_HEAD_BYTES);
  }
  return bytes;
}

function presentCount(nulls: Uint8Array | undefined, rowCount: number): number {
  if (nulls === undefined) return rowCount;
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) if (nulls[row] !== 1) count += 1;
  return count;
}
