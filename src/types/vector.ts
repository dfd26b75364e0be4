/**
 * Represents a column of values in memory, as produced by scans and exchanged between operators.
 *
 * The producer chooses the kind. It determines only the representation of the values, not their
 * SQL type. A consumer either has a loop for a kind or calls {@linkcode valueAt}. The possible
 * kinds of each type:
 *
 *     boolean                                          bool
 *     smallint, int, date                              i32
 *     bigint, timestamp, datetime, time, decimal       f64, or any when a value needs bigint
 *     float, double, enum                              f64
 *     text, numeric, json, uuid, file, range           utf8, dict or any
 *     every type                                       const, any
 *
 * `nulls` contains one byte per row, which is 1 if the value is NULL. It is undefined if no value
 * is NULL. In place of NULL, `values` is unspecified for the typed kinds and null for `any`. A
 * vector is immutable once it is passed on, and may share the memory of a mapped file: a scan's
 * vectors are valid until its next call.
 */
import { assert } from "../base/assert.ts";
import type { DataType } from "./data_type.ts";
import { copyText, textSourceOf } from "./text_bytes.ts";
import type { Value } from "./value.ts";

export interface BoolVector {
  readonly kind: "bool";
  readonly length: number;
  /** The truth values of the vector, 0 or 1 per row. */
  readonly values: Uint8Array;
  readonly nulls: Uint8Array | undefined;
}

export interface Int32Vector {
  readonly kind: "i32";
  readonly length: number;
  readonly values: Int32Array;
  readonly nulls: Uint8Array | undefined;
  /** Decodes only the selected numbers. Defined only until all numbers have been decoded. */
  readonly choose?: (selection: Selection) => Int32Vector | undefined;
}

export interface Float64Vector {
  readonly kind: "f64";
  readonly length: number;
  readonly values: Float64Array;
  readonly nulls: Uint8Array | undefined;
  /** Decodes only the selected numbers. Defined only until all numbers have been decoded. */
  readonly choose?: (selection: Selection) => Float64Vector | undefined;
}

export type Codes = Uint8Array | Uint16Array | Uint32Array;

/** A vector with few distinct values. The value of a row is `values[codes[row]]`. */
export interface DictionaryVector {
  readonly kind: "dict";
  readonly length: number;
  readonly codes: Codes;
  readonly values: readonly Value[];
  readonly nulls: Uint8Array | undefined;
}

/** Text that has not been decoded. Row i consists of bytes offsets[i] to offsets[i + 1]. */
export interface Utf8Vector {
  readonly kind: "utf8";
  readonly length: number;
  readonly bytes: Uint8Array;
  /**
   * The offset of each string in `bytes`, followed by the end of the last string: `length` + 1
   * ascending numbers.
   */
  readonly offsets: Uint32Array;
  readonly nulls: Uint8Array | undefined;
  /**
   * Creates only the selected strings if that costs less than creating all strings. Defined only
   * until the strings have been created.
   */
  readonly choose?: (selection: Selection) => Utf8Vector | undefined;
}

export interface AnyVector {
  readonly kind: "any";
  readonly length: number;
  readonly values: readonly Value[];
  /** NUMERIC values as doubles; defined if their strings may not have been created yet. */
  readonly short?: ShortNumerics;
  /** The array from which the values were taken; defined if many rows may share its values. */
  readonly origin?: ValueOrigin | undefined;
}

/** Finite NUMERIC values. Row i is `unscaled[i]` / 10^`scale`. */
export interface ShortNumerics {
  readonly unscaled: Float64Array;
  readonly scale: number;
  /** The number of decimal places with which each value is displayed. */
  readonly shown: Uint16Array;
  readonly nulls: Uint8Array | undefined;
}

/**
 * The array from which the values of a vector were taken. The value of row i is
 * `values[codes[i]]`.
 */
export interface ValueOrigin {
  readonly values: readonly Value[];
  readonly codes: Uint32Array;
}

export interface ConstVector {
  readonly kind: "const";
  readonly length: number;
  readonly value: Value;
}

export type Vector =
  | BoolVector
  | Int32Vector
  | Float64Vector
  | DictionaryVector
  | Utf8Vector
  | AnyVector
  | ConstVector;

/** Rows of several columns. Each column has `rowCount` rows. */
export interface Batch {
  readonly rowCount: number;
  readonly columns: readonly Vector[];
}

/**
 * Row indexes. All code uses the same kind of array, which keeps loops over row indexes
 * monomorphic.
 */
export type RowNumbers = Uint32Array;

/** A selection of the rows of a batch: the first `count` entries of `rows`, which ascend. */
export interface Selection {
  readonly rows: RowNumbers;
  readonly count: number;
}

/**
 * Returns the in-memory representation of a type's values, provided that no value is NULL and all
 * numbers are small enough.
 */
export function physicalKind(type: DataType): "bool" | "i32" | "f64" | "any" {
  switch (type.kind) {
    case "boolean":
      return "bool";
    case "smallint":
    case "int":
    case "date":
      return "i32";
    case "bigint":
    case "timestamp":
    case "datetime":
    case "time":
    case "money":
    case "decimal":
    case "float":
    case "double":
    case "enum":
      return "f64";
    default:
      return "any";
  }
}

export function isNullAt(vector: Vector, row: number): boolean {
  if (vector.kind === "any") return vector.values[row] === null;
  if (vector.kind === "const") return vector.value === null;
  return vector.nulls !== undefined && vector.nulls[row] === 1;
}

/** Whether a vector of doubles may contain NaN, which JavaScript's operators do not order. */
export function mayHoldNan(vector: Vector): boolean {
  if (vector.kind === "const") return Number.isNaN(vector.value);
  if (vector.kind !== "f64") return vector.kind === "any";
  const { values } = vector;
  for (let row = 0; row < values.length; row += 1) {
    if (Number.isNaN(values[row])) return true;
  }
  return false;
}

/** Whether all doubles are finite, including the unspecified ones in place of NULL. */
export function areFinite(values: Float64Array): boolean {
  // Infinity minus itself is NaN, and so is every sum that includes NaN. A loop without a branch
  // is faster.
  let sum = 0;
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? 0;
    sum += value - value;
  }
  return sum === 0;
}

/** Returns the value of one row, in the form defined by `value.ts`. */
export function valueAt(vector: Vector, row: number): Value {
  switch (vector.kind) {
    case "any":
      return vector.values[row] ?? null;
    case "const":
      return vector.value;
    default:
      if (vector.nulls !== undefined && vector.nulls[row] === 1) return null;
  }
  switch (vector.kind) {
    case "bool":
      return vector.values[row] === 1;
    case "i32":
    case "f64":
      return vector.values[row] ?? null;
    case "dict":
      return vector.values[vector.codes[row] ?? 0] ?? null;
    case "utf8":
      return textAt(vector, row);
  }
}

function textAt(vector: Utf8Vector, row: number): string {
  const bytes = vector.bytes;
  const start = vector.offsets[row] ?? 0;
  const end = vector.offsets[row + 1] ?? start;
  const buffer =
    bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString("utf8", start, end);
}

/**
 * Returns all strings of a vector as a new array. They may share memory, so keeping a few of them
 * may keep the memory of all.
 *
 * If all strings are ASCII, they are decoded in a single call, which is four times as fast as one
 * call per string.
 */
export function textsOf(vector: Utf8Vector): (string | null)[] {
  const { bytes, length, nulls, offsets } = vector;
  const texts: (string | null)[] = Array.from({ length });
  const start = offsets[0] ?? 0;
  const end = offsets[length] ?? start;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const all = buffer.toString("utf8", start, end);
  // The text is ASCII only if it has as many UTF-16 code units as UTF-8 bytes, because any other
  // character takes fewer code units than bytes.
  const isAscii = all.length === end - start;
  for (let row = 0; row < length; row += 1) {
    const from = offsets[row] ?? 0;
    const to = offsets[row + 1] ?? from;
    if (nulls !== undefined && nulls[row] === 1) texts[row] = null;
    else if (isAscii) texts[row] = all.slice(from - start, to - start);
    else texts[row] = buffer.toString("utf8", from, to);
  }
  return texts;
}

/** Returns all values of a vector as a new array. */
export function valuesOf(vector: Vector): Value[] {
  const values: Value[] = Array.from({ length: vector.length });
  for (let row = 0; row < vector.length; row += 1) values[row] = valueAt(vector, row);
  return values;
}

/**
 * Creates a vector of the most compact kind for the type. The vector may keep the array of values
 * without copying it.
 */
export function vectorFromValues(type: DataType, values: readonly Value[]): Vector {
  const kind = physicalKind(type);
  if (kind === "any") return { kind: "any", length: values.length, values };
  const length = values.length;
  let nulls: Uint8Array | undefined;
  const into =
    kind === "bool"
      ? new Uint8Array(length)
      : kind === "i32"
        ? new Int32Array(length)
        : new Float64Array(length);
  for (let row = 0; row < length; row += 1) {
    const value = values[row];
    if (value === null || value === undefined) {
      nulls ??= new Uint8Array(length);
      nulls[row] = 1;
    } else if (typeof value === "number") {
      into[row] = value;
    } else if (typeof value === "boolean") {
      into[row] = value ? 1 : 0;
    } else {
      // An integer beyond 2^53 requires a slower representation, so vectors without such integers
      // avoid it.
      assert(typeof value === "bigint", "vector: value of a numeric column is not a number");
      return { kind: "any", length, values };
    }
  }
  if (into instanceof Uint8Array) return { kind: "bool", length, values: into, nulls };
  if (into instanceof Int32Array) return { kind: "i32", length, values: into, nulls };
  return { kind: "f64", length, values: into, nulls };
}

/** Creates a vector of strings as UTF-8 bytes. Returns undefined if a value is not text. */
export function vectorFromTexts(values: readonly Value[]): Utf8Vector | undefined {
  const { length } = values;
  let units = 0;
  for (const value of values) {
    if (typeof value === "string") units += value.length;
    else if (value !== null) return undefined;
  }
  const bytes = Buffer.allocUnsafeSlow(3 * units);
  const offsets = new Uint32Array(length + 1);
  let nulls: Uint8Array | undefined;
  let end = 0;
  for (let row = 0; row < length; row += 1) {
    const value = values[row];
    if (typeof value === "string") {
      end += bytes.write(value, end, "utf8");
    } else {
      nulls ??= new Uint8Array(length);
      nulls[row] = 1;
    }
    offsets[row + 1] = end;
  }
  return { kind: "utf8", length, bytes: bytes.subarray(0, end), offsets, nulls };
}

/** Returns a vector that repeats one value `length` times. */
export function constVector(value: Value, length: number): Vector {
  return { kind: "const", length, value };
}

/** Returns the chosen rows, in the order of the selection, as a new vector. */
export function take(vector: Vector, { rows, count }: Selection): Vector {
  switch (vector.kind) {
    case "const":
      return { kind: "const", length: count, value: vector.value };
    case "any":
      return takeValues(vector, rows, count);
    case "utf8":
      return vector.choose?.({ rows, count }) ?? takeTexts(vector, rows, count);
    case "bool": {
      const values = gatherBytes(vector.values, rows, count);
      return { kind: "bool", length: count, values, nulls: takeNulls(vector.nulls, rows, count) };
    }
    case "i32": {
      const chosen = vector.choose?.({ rows, count });
      if (chosen !== undefined) return chosen;
      const values = gatherInt32(vector.values, rows, count);
      return { kind: "i32", length: count, values, nulls: takeNulls(vector.nulls, rows, count) };
    }
    case "f64": {
      const chosen = vector.choose?.({ rows, count });
      if (chosen !== undefined) return chosen;
      const values = gatherFloat64(vector.values, rows, count);
      return { kind: "f64", length: count, values, nulls: takeNulls(vector.nulls, rows, count) };
    }
    case "dict": {
      const codes = takeCodes(vector.codes, rows, count);
      const nulls = takeNulls(vector.nulls, rows, count);
      return { kind: "dict", length: count, codes, values: vector.values, nulls };
    }
  }
}

function takeValues({ origin, values }: AnyVector, rows: RowNumbers, length: number): AnyVector {
  const taken: Value[] = Array.from({ length });
  for (let i = 0; i < length; i += 1) taken[i] = values[rows[i] ?? 0] ?? null;
  if (origin === undefined) return { kind: "any", length, values: taken };
  const codes = new Uint32Array(length);
  for (let i = 0; i < length; i += 1) codes[i] = origin.codes[rows[i] ?? 0] ?? 0;
  return { kind: "any", length, values: taken, origin: { values: origin.values, codes } };
}

/**
 * Returns rows `start` (inclusive) to `end` (exclusive) of a batch. Where possible, the result
 * shares the batch's memory.
 */
export function partOf(batch: Batch, start: number, end: number): Batch {
  if (start === 0 && end === batch.rowCount) return batch;
  return {
    rowCount: end - start,
    columns: batch.columns.map((column) => slice(column, start, end)),
  };
}

/**
 * Returns the chosen rows of a batch. The selection contains no row twice, so if it contains all
 * rows, the batch itself is returned.
 */
export function keepRows(batch: Batch, kept: Selection): Batch {
  if (kept.count === batch.rowCount) return batch;
  return { rowCount: kept.count, columns: batch.columns.map((column) => take(column, kept)) };
}

function takeCodes(codes: Codes, rows: RowNumbers, count: number): Codes {
  if (codes instanceof Uint8Array) return gatherBytes(codes, rows, count);
  if (codes instanceof Uint16Array) {
    const into = new Uint16Array(count);
    for (let i = 0; i < count; i += 1) into[i] = codes[rows[i] ?? 0] ?? 0;
    return into;
  }
  const into = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) into[i] = codes[rows[i] ?? 0] ?? 0;
  return into;
}

function takeTexts(vector: Utf8Vector, rows: RowNumbers, count: number): Utf8Vector {
  const from = vector.offsets;
  const offsets = new Uint32Array(count + 1);
  let byteCount = 0;
  for (let i = 0; i < count; i += 1) {
    const row = rows[i] ?? 0;
    byteCount += (from[row + 1] ?? 0) - (from[row] ?? 0);
    offsets[i + 1] = byteCount;
  }
  const source = textSourceOf(vector.bytes);
  const into = textSourceOf(Buffer.allocUnsafeSlow(byteCount));
  for (let i = 0; i < count; i += 1) {
    const row = rows[i] ?? 0;
    const range = { start: from[row] ?? 0, end: from[row + 1] ?? 0 };
    copyText(source, range, into.view, offsets[i] ?? 0);
  }
  const nulls = takeNulls(vector.nulls, rows, count);
  return { kind: "utf8", length: count, bytes: into.bytes, offsets, nulls };
}

function takeNulls(
  nulls: Uint8Array | undefined,
  rows: RowNumbers,
  count: number,
): Uint8Array | undefined {
  return nulls === undefined ? undefined : gatherBytes(nulls, rows, count);
}

// Each kind of array has its own function, because a loop that handles several kinds runs 4 times
// slower.

export function gatherBytes(from: Uint8Array, rows: RowNumbers, count: number): Uint8Array {
  const into = new Uint8Array(count);
  for (let i = 0; i < count; i += 1) into[i] = from[rows[i] ?? 0] ?? 0;
  return into;
}

export function gatherInt32(from: Int32Array, rows: RowNumbers, count: number): Int32Array {
  const into = new Int32Array(count);
  for (let i = 0; i < count; i += 1) into[i] = from[rows[i] ?? 0] ?? 0;
  return into;
}

export function gatherFloat64(from: Float64Array, rows: RowNumbers, count: number): Float64Array {
  const into = new Float64Array(count);
  for (let i = 0; i < count; i += 1) into[i] = from[rows[i] ?? 0] ?? 0;
  return into;
}

/**
 * Returns rows `start` (inclusive) to `end` (exclusive) of a vector. Where possible, the result
 * shares the vector's memory.
 */
export function slice(vector: Vector, start: number, end: number): Vector {
  const length = end - start;
  switch (vector.kind) {
    case "const":
      return { kind: "const", length, value: vector.value };
    case "any":
      return { kind: "any", length, values: vector.values.slice(start, end) };
    case "utf8": {
      const offsets = vector.offsets.subarray(start, end + 1);
      const nulls = vector.nulls?.subarray(start, end);
      return { kind: "utf8", length, bytes: vector.bytes, offsets, nulls };
    }
    case "bool": {
      const nulls = vector.nulls?.subarray(start, end);
      return { kind: "bool", length, values: vector.values.subarray(start, end), nulls };
    }
    case "i32": {
      const nulls = vector.nulls?.subarray(start, end);
      return { kind: "i32", length, values: vector.values.subarray(start, end), nulls };
    }
    case "f64": {
      const nulls = vector.nulls?.subarray(start, end);
      return { kind: "f64", length, values: vector.values.subarray(start, end), nulls };
    }
    case "dict": {
      const nulls = vector.nulls?.subarray(start, end);
      const codes = vector.codes.subarray(start, end);
      return { kind: "dict", length, codes, values: vector.values, nulls };
    }
  }
}
