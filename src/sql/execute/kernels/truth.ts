/** Combines truth values (true, false, unknown) and compares text, in loops over vectors. */
import {
  BOOLEAN,
  constVector,
  isNullAt,
  type Utf8Vector,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { ComparisonOperator } from "../../bind/bound_expressions.ts";

interface Truths {
  readonly values: Uint8Array;
  readonly nulls: Uint8Array | undefined;
}

function truthsOf(vector: Vector): Truths {
  if (vector.kind === "bool") return vector;
  const values = new Uint8Array(vector.length);
  let nulls: Uint8Array | undefined;
  for (let row = 0; row < vector.length; row += 1) {
    const value = valueAt(vector, row);
    if (value === true) {
      values[row] = 1;
    } else if (value === null) {
      nulls ??= new Uint8Array(vector.length);
      nulls[row] = 1;
    }
  }
  return { values, nulls };
}

/** Computes AND or OR of two vectors of equal length. */
export function combineTruth(kind: "and" | "or", left: Vector, right: Vector): Vector {
  const l = truthsOf(left);
  const r = truthsOf(right);
  const length = left.length;
  const values = new Uint8Array(length);
  if (l.nulls === undefined && r.nulls === undefined) {
    if (kind === "and") {
      for (let i = 0; i < length; i += 1) values[i] = (l.values[i] ?? 0) & (r.values[i] ?? 0);
    } else {
      for (let i = 0; i < length; i += 1) values[i] = (l.values[i] ?? 0) | (r.values[i] ?? 0);
    }
    return { kind: "bool", length, values, nulls: undefined };
  }
  return combineUnknown(l, r, { settling: kind === "or" ? 1 : 0, length });
}

/**
 * Computes AND or OR for rows that may be unknown. A deciding value alone determines the result.
 * Without a deciding value, an unknown operand makes the result unknown.
 */
function combineUnknown(
  left: Truths,
  right: Truths,
  { length, settling }: { settling: 0 | 1; length: number },
): Vector {
  const values = new Uint8Array(length);
  const nulls = new Uint8Array(length);
  for (let i = 0; i < length; i += 1) {
    // In this loop, truth values are numbers: 0 is false, 1 is true, and 2 is unknown.
    const l = left.nulls?.[i] === 1 ? 2 : (left.values[i] ?? 0);
    const r = right.nulls?.[i] === 1 ? 2 : (right.values[i] ?? 0);
    if (l === settling || r === settling) values[i] = settling;
    else if (l === 2 || r === 2) nulls[i] = 1;
    else values[i] = 1 - settling;
  }
  return { kind: "bool", length, values, nulls };
}

/** Computes NOT. An unknown operand gives an unknown result. */
export function negate(vector: Vector, rowCount: number): Vector {
  if (vector.kind === "const") {
    return constVector(vector.value === null ? null : vector.value !== true, rowCount);
  }
  const { values, nulls } = truthsOf(vector);
  const negated = new Uint8Array(values.length);
  for (let i = 0; i < values.length; i += 1) negated[i] = (values[i] ?? 0) ^ 1;
  return { kind: "bool", length: values.length, values: negated, nulls };
}

/** Computes IS [NOT] NULL, TRUE or FALSE. The result is never unknown. */
export function truthTest(
  vector: Vector,
  { test, negated }: { test: "null" | "true" | "false"; negated: boolean },
): Vector {
  const length = vector.length;
  const wanted = test === "null" ? null : test === "true";
  if (vector.kind === "const") return constVector((vector.value === wanted) !== negated, length);
  const values = new Uint8Array(length);
  if (wanted === null && vector.kind !== "any" && vector.kind !== "dict") {
    const { nulls } = vector;
    if (nulls === undefined) return constVector(negated, length);
    if (!negated) return { kind: "bool", length, values: nulls, nulls: undefined };
    for (let row = 0; row < length; row += 1) values[row] = (nulls[row] ?? 0) ^ 1;
    return { kind: "bool", length, values, nulls: undefined };
  }
  for (let row = 0; row < length; row += 1) {
    const isWanted = wanted === null ? isNullAt(vector, row) : valueAt(vector, row) === wanted;
    values[row] = isWanted === negated ? 0 : 1;
  }
  return { kind: "bool", length, values, nulls: undefined };
}

/**
 * The cached results of comparing the values of a dictionary. The batches of a row group share a
 * dictionary.
 */
export interface DictionaryMemo {
  values: readonly Value[] | undefined;
  constant: Value;
  truths: readonly Value[];
  /** Contains 1 for each value whose comparison is true; undefined if a comparison is unknown. */
  table: Uint8Array | undefined;
}

/** Compares each value of a dictionary with a constant once, instead of comparing each row. */
export function compareDictionary(
  left: Vector,
  right: Vector,
  compare: (left: Value, right: Value) => Value,
  memo: DictionaryMemo,
): Vector | undefined {
  const isLeft = left.kind === "dict" && right.kind === "const";
  const isRight = right.kind === "dict" && left.kind === "const";
  if (!isLeft && !isRight) return undefined;
  const dictionary = isLeft ? left : right;
  const constant = isLeft ? right : left;
  if (dictionary.kind !== "dict" || constant.kind !== "const") return undefined;
  const { codes, nulls, length } = dictionary;
  if (memo.values !== dictionary.values || memo.constant !== constant.value) {
    memo.values = dictionary.values;
    memo.constant = constant.value;
    memo.truths = dictionary.values.map((value) =>
      isLeft ? compare(value, constant.value) : compare(constant.value, value),
    );
    memo.table = memo.truths.includes(null)
      ? undefined
      : Uint8Array.from(memo.truths, (truth) => (truth === true ? 1 : 0));
  }
  const { table, truths } = memo;
  if (table === undefined) {
    const all: Value[] = Array.from({ length });
    for (let row = 0; row < length; row += 1) {
      all[row] = isNullAt(dictionary, row) ? null : (truths[codes[row] ?? 0] ?? null);
    }
    return vectorFromValues(BOOLEAN, all);
  }
  const values = new Uint8Array(length);
  for (let row = 0; row < length; row += 1) values[row] = table[codes[row] ?? 0] ?? 0;
  return { kind: "bool", length, values, nulls };
}

/**
 * Tests whether text equals a constant. Returns undefined if the operands are in a representation
 * that is not supported.
 */
export function compareText(
  operator: ComparisonOperator,
  left: Vector,
  right: Vector,
): Vector | undefined {
  if (operator !== "=" && operator !== "<>") return undefined;
  if (right.kind !== "const" || typeof right.value !== "string") return undefined;
  if (left.kind !== "any" && left.kind !== "utf8") return undefined;
  const wanted = right.value;
  const whenEqual = operator === "=" ? 1 : 0;
  if (left.kind === "utf8") return compareBytes(left, wanted, whenEqual);
  const length = left.length;
  const values = new Uint8Array(length);
  let nulls: Uint8Array | undefined;
  for (let row = 0; row < length; row += 1) {
    const value = valueAt(left, row);
    if (value === null) {
      nulls ??= new Uint8Array(length);
      nulls[row] = 1;
    } else {
      values[row] = value === wanted ? whenEqual : 1 - whenEqual;
    }
  }
  return { kind: "bool", length, values, nulls };
}

function compareBytes(
  { bytes, length, nulls, offsets }: Utf8Vector,
  text: string,
  whenEqual: number,
): Vector {
  const wanted = Buffer.from(text, "utf8");
  const values = new Uint8Array(length);
  for (let row = 0; row < length; row += 1) {
    const start = offsets[row] ?? 0;
    const isEqual =
      (offsets[row + 1] ?? 0) - start === wanted.length && holdsAt(bytes, start, wanted);
    values[row] = isEqual ? whenEqual : 1 - whenEqual;
  }
  return { kind: "bool", length, values, nulls };
}

function holdsAt(bytes: Uint8Array, start: number, wanted: Uint8Array): boolean {
  for (let i = 0; i < wanted.length; i += 1) if (bytes[start + i] !== wanted[i]) return false;
  return true;
}
