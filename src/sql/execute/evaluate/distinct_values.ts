/**
 * Computes a function once per distinct value of a column, provided that the distinct values are
 * cheap to find, as they are for dictionary codes and for integers that are close together, such
 * as dates.
 */
import { type DataType, physicalKind, type Value, type Vector } from "../../../types/mod.ts";

/**
 * The maximum difference between the smallest and the largest integer. If it is exceeded, the
 * function is computed row by row.
 */
const SPAN_MAX = 65_536;

/** Maps each row to the position at which its result is stored. */
interface Positions {
  readonly at: Int32Array | Uint8Array | Uint16Array | Uint32Array;
  /** The number to subtract from each entry of `at` to get the position of the result. */
  readonly base: number;
  readonly span: number;
  readonly nulls: Uint8Array | undefined;
  valueAt(position: number): Value;
}

/**
 * Returns the values of a function of a single column. NULL stays NULL. The function is called
 * only for values that occur. Returns undefined if computing row by row is cheaper.
 */
export function mapDistinct(
  vector: Vector,
  type: DataType,
  valueOf: (value: Value) => Value,
): Vector | undefined {
  const positions = positionsOf(vector);
  if (positions === undefined) return undefined;
  const kind = physicalKind(type);
  const { length } = vector;
  const { at, base, nulls, span } = positions;
  const computed = (position: number): Value => {
    const value = positions.valueAt(position);
    return value === null ? null : valueOf(value);
  };
  if (kind === "any") {
    return { kind: "any", length, values: valuesOf(positions, length, computed) };
  }
  const numbers = new Float64Array(span);
  /**
   * The state of each position: 0 before its result is computed, 1 afterwards, 2 if the result is
   * NULL.
   */
  const states = new Uint8Array(span);
  const into = kind === "bool" ? new Uint8Array(length) : newNumbers(kind, length);
  let missing: Uint8Array | undefined;
  for (let row = 0; row < length; row += 1) {
    const position = (at[row] ?? 0) - base;
    const isNull = nulls !== undefined && nulls[row] === 1;
    if (!isNull && states[position] === 0) {
      const answer = computed(position);
      // An integer beyond 2^53 requires a different representation of the results.
      if (typeof answer === "bigint") return undefined;
      states[position] = answer === null ? 2 : 1;
      numbers[position] = Number(answer ?? 0);
    }
    if (isNull || states[position] === 2) {
      missing ??= new Uint8Array(length);
      missing[row] = 1;
    } else {
      into[row] = numbers[position] ?? 0;
    }
  }
  if (into instanceof Uint8Array) return { kind: "bool", length, values: into, nulls: missing };
  if (into instanceof Int32Array) return { kind: "i32", length, values: into, nulls: missing };
  return { kind: "f64", length, values: into, nulls: missing };
}

function valuesOf(
  { at, base, nulls, span }: Positions,
  length: number,
  computed: (position: number) => Value,
): Value[] {
  const known: (Value | undefined)[] = Array.from({ length: span });
  const values: Value[] = Array.from({ length });
  for (let row = 0; row < length; row += 1) {
    const position = (at[row] ?? 0) - base;
    if (nulls?.[row] === 1) values[row] = null;
    else values[row] = known[position] ??= computed(position);
  }
  return values;
}

function newNumbers(kind: "i32" | "f64", length: number): Int32Array | Float64Array {
  return kind === "i32" ? new Int32Array(length) : new Float64Array(length);
}

function positionsOf(vector: Vector): Positions | undefined {
  if (vector.kind === "dict") {
    const { codes, nulls, values } = vector;
    const valueAt = (position: number): Value => values[position] ?? null;
    return { at: codes, base: 0, span: values.length, nulls, valueAt };
  }
  if (vector.kind !== "i32" || vector.length === 0) return undefined;
  const { nulls, values } = vector;
  // The value stored in place of a NULL is unspecified, and might extend the range of integers.
  if (nulls !== undefined) return undefined;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < min) min = value;
    if (value > max) max = value;
  }
  const span = max - min + 1;
  if (span > SPAN_MAX || span > vector.length) return undefined;
  const base = min;
  return { at: values, base, span, nulls: undefined, valueAt: (position) => position + base };
}

/**
 * Whether any row of a vector may be NULL. Unlike {@linkcode mapDistinct}, this function supports
 * every kind of vector.
 */
export function mayHoldNull(vector: Vector): boolean {
  if (vector.kind === "dict" && vector.values.includes(null)) return true;
  return vector.kind === "any" || vector.kind === "const" || vector.nulls !== undefined;
}
