/**
 * Computes a value once for each distinct one of a column, where that is cheap to see: by the codes
 * of a dictionary, and by whole numbers that lie close together, as dates do.
 */
import { type DataType, physicalKind, type Value, type Vector } from "../../../types/mod.ts";

/** Whole numbers that lie further apart are computed row by row. */
const SPAN_MAX = 65_536;

/** Where the answer of each row is found. */
interface Positions {
  readonly at: Int32Array | Uint8Array | Uint16Array | Uint32Array;
  /** Taken from each position. */
  readonly base: number;
  readonly span: number;
  readonly nulls: Uint8Array | undefined;
  valueAt(position: number): Value;
}

/**
 * The values of a function that depends on the column alone; NULL stays NULL. It is called for
 * values that some row has, and for no others. Undefined when the rows are better computed one by
 * one.
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
  /** 1 for an answer that is there, 2 for NULL. */
  const states = new Uint8Array(span);
  const into = kind === "bool" ? new Uint8Array(length) : newNumbers(kind, length);
  let missing: Uint8Array | undefined;
  for (let row = 0; row < length; row += 1) {
    const position = (at[row] ?? 0) - base;
    const isNull = nulls !== undefined && nulls[row] === 1;
    if (!isNull && states[position] === 0) {
      const answer = computed(position);
      // A whole number beyond 2^53 needs another form of vector.
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
  // What stands at a NULL row is unspecified, and would widen the span.
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

/** Whether a row may be NULL: also of a form that {@linkcode mapDistinct} does not know. */
export function mayHoldNull(vector: Vector): boolean {
  if (vector.kind === "dict" && vector.values.includes(null)) return true;
  return vector.kind === "any" || vector.kind === "const" || vector.nulls !== undefined;
}
