/**
 * Combines the values that the operands of CASE and COALESCE yield for different rows. Rows that
 * belong to no operand are NULL.
 *
 * Numbers and truth values are copied from array to array. Each pair of kinds has its own loop,
 * because a loop that processes several kinds is several times slower.
 */
import {
  constVector,
  type DataType,
  physicalKind,
  type Selection,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";

/** The maximum number of different codes in one byte. */
const CODES_MAX = 255;

/** Values, with the rows for which they were computed. */
export interface Answered {
  readonly rows: Selection;
  readonly values: Vector;
}

/** Returns the values of all rows. If a row has several answers, the last one counts. */
export function placed(type: DataType, answers: readonly Answered[], rowCount: number): Vector {
  const kind = physicalKind(type);
  const found =
    kind === "any" ? placedConstants(answers, rowCount) : placedNumbers(kind, answers, rowCount);
  if (found !== undefined) return found;
  const results: Value[] = Array.from({ length: rowCount }, () => null);
  for (const { rows, values } of answers) {
    for (let i = 0; i < rows.count; i += 1) results[rows.rows[i] ?? 0] = valueAt(values, i);
  }
  return vectorFromValues(type, results);
}

/**
 * Represents the results as a dictionary, provided that each branch has the same value for all of
 * its rows. Returns undefined if a branch yields several values.
 */
function placedConstants(answers: readonly Answered[], rowCount: number): Vector | undefined {
  if (answers.length >= CODES_MAX) return undefined;
  const values: Value[] = [];
  const codes = new Uint8Array(rowCount).fill(CODES_MAX);
  let placedCount = 0;
  for (const answer of answers) {
    if (answer.values.kind !== "const") return undefined;
    const { value } = answer.values;
    if (value === null) continue;
    const { rows, count } = answer.rows;
    const code = values.push(value) - 1;
    for (let i = 0; i < count; i += 1) codes[rows[i] ?? 0] = code;
    placedCount += count;
  }
  if (placedCount === 0) return constVector(null, rowCount);
  if (placedCount === rowCount) {
    return { kind: "dict", length: rowCount, codes, values, nulls: undefined };
  }
  const nulls = new Uint8Array(rowCount);
  for (let row = 0; row < rowCount; row += 1) {
    if (codes[row] !== CODES_MAX) continue;
    codes[row] = 0;
    nulls[row] = 1;
  }
  return { kind: "dict", length: rowCount, codes, values, nulls };
}

type Numbers = Uint8Array | Int32Array | Float64Array;

/**
 * Returns the values as numbers of a kind. Returns undefined if a branch yields values in a
 * different representation.
 */
function placedNumbers(
  kind: "bool" | "i32" | "f64",
  answers: readonly Answered[],
  rowCount: number,
): Vector | undefined {
  const into = numbersOf(kind, rowCount);
  const nulls = new Uint8Array(rowCount).fill(1);
  for (const { rows, values } of answers) {
    if (values.kind !== "const") {
      if (!copyNumbers(into, values, rows)) return undefined;
      markNulls(nulls, values, rows);
    } else if (typeof values.value === "number" || typeof values.value === "boolean") {
      repeatNumber(into, Number(values.value), rows);
      markNulls(nulls, values, rows);
    } else if (values.value !== null) {
      return undefined;
    }
  }
  return vectorOf(into, nulls.includes(1) ? nulls : undefined);
}

function numbersOf(kind: "bool" | "i32" | "f64", length: number): Numbers {
  if (kind === "bool") return new Uint8Array(length);
  return kind === "i32" ? new Int32Array(length) : new Float64Array(length);
}

function vectorOf(values: Numbers, nulls: Uint8Array | undefined): Vector {
  const { length } = values;
  if (values instanceof Uint8Array) return { kind: "bool", length, values, nulls };
  if (values instanceof Int32Array) return { kind: "i32", length, values, nulls };
  return { kind: "f64", length, values, nulls };
}

/** Copies the flags of NULLs. The flags of all rows are initially set. */
function markNulls(into: Uint8Array, values: Vector, rows: Selection): void {
  const nulls = values.kind === "const" || values.kind === "any" ? undefined : values.nulls;
  if (nulls === undefined) repeatByte(into, 0, rows);
  else copyBytes(into, nulls, rows);
}

/** Returns false, without any effect, if there is no loop for the two kinds. */
function copyNumbers(into: Numbers, from: Vector, rows: Selection): boolean {
  if (from.kind === "bool" && into instanceof Uint8Array) copyBytes(into, from.values, rows);
  else if (from.kind === "i32" && into instanceof Int32Array) copyInt32(into, from.values, rows);
  else if (from.kind === "i32" && into instanceof Float64Array) widen(into, from.values, rows);
  else if (from.kind === "f64" && into instanceof Float64Array) {
    copyFloat64(into, from.values, rows);
  } else return false;
  return true;
}

function repeatNumber(into: Numbers, value: number, rows: Selection): void {
  if (into instanceof Uint8Array) repeatByte(into, value, rows);
  else if (into instanceof Int32Array) repeatInt32(into, value, rows);
  else repeatFloat64(into, value, rows);
}

function copyBytes(into: Uint8Array, from: Uint8Array, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) into[rows[i] ?? 0] = from[i] ?? 0;
}

function copyInt32(into: Int32Array, from: Int32Array, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) into[rows[i] ?? 0] = from[i] ?? 0;
}

function copyFloat64(into: Float64Array, from: Float64Array, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) into[rows[i] ?? 0] = from[i] ?? 0;
}

function widen(into: Float64Array, from: Int32Array, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) into[rows[i] ?? 0] = from[i] ?? 0;
}

function repeatByte(into: Uint8Array, value: number, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) into[rows[i] ?? 0] = value;
}

function repeatInt32(into: Int32Array, value: number, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) into[rows[i] ?? 0] = value;
}

function repeatFloat64(into: Float64Array, value: number, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) into[rows[i] ?? 0] = value;
}
