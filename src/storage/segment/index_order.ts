/**
 * Defines the order of keys in a secondary index: by the columns of the index, ascending, with
 * NULL last.
 *
 * Each key has a **prefix**, a number that depends only on the first value of the key. Prefixes
 * sort in the same order as keys, but different keys may have equal prefixes; their values are
 * then compared. A number is its own prefix. The prefix of a string or of bytes is its first 48
 * bits, and the prefix of NULL is Infinity.
 */
import {
  type Comparator,
  type DataType,
  hasKeyForm,
  isNumberType,
  keyFormOf,
  type Row,
  storedComparatorFor,
  type Value,
} from "../../types/mod.ts";
import type { IndexColumn } from "../contract/key_expressions.ts";

/** The maximum number of bytes of a string that its prefix contains. */
const PREFIX_BYTES = 6;

const encoder = new TextEncoder();

export class IndexOrder {
  /** The columns of the index, in key order. */
  readonly columns: readonly IndexColumn[];
  /** Whether NULLs are equal when whole keys are compared. */
  readonly #equalNulls: boolean;
  readonly #comparators: readonly Comparator[];
  readonly #areNumbers: readonly boolean[];

  constructor(columns: readonly IndexColumn[], equalNulls = false) {
    this.columns = columns;
    this.#equalNulls = equalNulls;
    this.#comparators = columns.map(({ type }) => storedComparatorFor(type));
    this.#areNumbers = columns.map(({ type }) => isNumber(type));
  }

  /** Whether another row can have a key that equals this key. */
  canRecur(key: Row): boolean {
    return this.#equalNulls || !key.includes(null);
  }

  /** Compares two keys, over as many values as both of them have. */
  compare(left: Row, right: Row): number {
    const count = Math.min(left.length, right.length);
    for (let at = 0; at < count; at += 1) {
      const order = this.compareAt(at, left[at] ?? null, right[at] ?? null);
      if (order !== 0) return order;
    }
    return 0;
  }

  /** Compares two values of the column at index `at`. */
  compareAt(at: number, left: Value, right: Value): number {
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return this.#comparators[at]?.(left, right) ?? 0;
  }

  /** Converts a search value for the first column to the form that keys contain. */
  firstFormOf(value: Value): Value {
    const [first] = this.columns;
    return first === undefined ? value : keyFormOf(first.type, value);
  }

  /** Converts a whole key to the form that the index contains. */
  formOf(values: Row): Row {
    const { columns } = this;
    if (!columns.some(({ type }) => hasKeyForm(type))) return values;
    return columns.map(({ type }, at) => keyFormOf(type, values[at] ?? null));
  }

  /** Whether keys with this prefix are all equal. */
  isExact(prefix: number): boolean {
    return this.columns.length === 1 && this.isExactAt(0, prefix);
  }

  /** Whether values with this prefix in the column at index `at` are all equal. */
  isExactAt(at: number, prefix: number): boolean {
    return this.#areNumbers[at] === true && Math.abs(prefix) <= Number.MAX_SAFE_INTEGER;
  }
}

export function prefixOf(value: Value): number {
  switch (typeof value) {
    case "number":
      // NaN is greater than every number. Adding 0 turns -0 into 0.
      return Number.isNaN(value) ? Number.POSITIVE_INFINITY : value + 0;
    case "bigint":
      return Number(value);
    case "boolean":
      return value ? 1 : 0;
    case "string":
      return prefixOfText(value);
    default:
      return value instanceof Uint8Array
        ? prefixOfBytes(value, 0, value.length)
        : Number.POSITIVE_INFINITY;
  }
}

/**
 * Returns the prefix of a value. For a string, it starts after the `commonBytes` bytes that all
 * strings have in common.
 */
export function prefixAfter(value: Value, commonBytes: number): number {
  if (commonBytes === 0 || typeof value !== "string") return prefixOf(value);
  const bytes = Buffer.from(value);
  return prefixOfBytes(bytes, commonBytes, bytes.length);
}

/** Returns the prefix of the bytes from `start` (inclusive) to `end` (exclusive). */
export function prefixOfBytes(bytes: Uint8Array, start: number, end: number): number {
  let high = 0;
  let low = 0;
  for (let at = start; at < start + 3; at += 1)
    high = (high << 8) | (at < end ? (bytes[at] ?? 0) : 0);
  for (let at = start + 3; at < start + PREFIX_BYTES; at += 1) {
    low = (low << 8) | (at < end ? (bytes[at] ?? 0) : 0);
  }
  return high * 0x1000000 + low;
}

let scratch: Uint8Array = new Uint8Array(0);

/**
 * Returns the prefix of a string from position `start` on. All characters before this position
 * must be ASCII.
 */
export function prefixOfText(text: string, start = 0): number {
  let high = 0;
  let low = 0;
  for (let at = 0; at < PREFIX_BYTES; at += 1) {
    const unit = start + at < text.length ? text.charCodeAt(start + at) : 0;
    if (unit >= 0x80) return prefixOfUtf8(text, start);
    if (at < 3) high = (high << 8) | unit;
    else low = (low << 8) | unit;
  }
  return high * 0x1000000 + low;
}

function prefixOfUtf8(text: string, start: number): number {
  if (scratch.length === 0) scratch = new Uint8Array(3 * (PREFIX_BYTES + 1));
  // Encodes one more code unit than the prefix needs, so as not to split a surrogate pair within
  // the prefix.
  const { written } = encoder.encodeInto(text.slice(start, start + PREFIX_BYTES + 1), scratch);
  return prefixOfBytes(scratch, 0, written);
}

/** Whether a value of this type is its own prefix, unless the value is very large. */
function isNumber(type: DataType): boolean {
  return isNumberType(type) || type.kind === "boolean";
}
