/**
 * Values as JSON cells of the wire, and parameters of a request as values.
 *
 * A cell is what JSON.stringify writes as the wire wants it: whole numbers beyond 2^53 and
 * decimals as strings, bytes and embeddings as arrays, types without a wire word as their text.
 */
import { DatabaseError } from "../base/errors.ts";
import type { DataType, TypeKind } from "./data_type.ts";
import { BIGINT, BOOLEAN, DOUBLE, typeName, UNKNOWN } from "./data_type.ts";
import { textFromDecimal } from "./decimal.ts";
import { excerpt } from "./excerpt.ts";
import { shortestFloat } from "./float_text.ts";
import { fitsInteger } from "./integer.ts";
import { textFromValue } from "./text_form.ts";
import { type Value, type Whole, wholeFromBigint } from "./value.ts";

/** The `data_type` of a schema field: one of 15 words, or an object for the two with parameters. */
export type DataTypeWord =
  | string
  | { readonly Decimal: { readonly precision: number; readonly scale: number } }
  | { readonly Embedding: number };

const WORDS: Readonly<Record<Exclude<TypeKind, "decimal" | "embedding">, string>> = {
  boolean: "Boolean",
  smallint: "SmallInt",
  int: "Int",
  bigint: "BigInt",
  float: "Float",
  double: "Double",
  text: "Text",
  json: "Json",
  timestamp: "Timestamp",
  datetime: "DateTime",
  date: "Date",
  time: "Time",
  uuid: "Uuid",
  bytes: "Bytes",
  file: "File",
  interval: "Text",
  array: "Text",
  unknown: "Text",
};

/** Types without a word of their own are sent as Text. */
export function dataTypeWord(type: DataType): DataTypeWord {
  if (type.kind === "decimal") {
    return { Decimal: { precision: type.precision, scale: type.scale } };
  }
  return type.kind === "embedding" ? { Embedding: type.dimensions } : WORDS[type.kind];
}

/** What makes cells of the values of a type, NULL included. */
export function cellMakerFor(type: DataType): (value: Value) => unknown {
  switch (type.kind) {
    case "bigint":
    case "timestamp":
    case "datetime":
      return wholeCell;
    case "decimal": {
      const { scale } = type;
      return (value) => (value === null ? null : textFromDecimal(value as Whole, scale));
    }
    case "float":
      return (value) => (value === null ? null : shortestFloat(value as number));
    case "bytes":
      return (value) => (value === null ? null : Array.from(value as Uint8Array));
    case "embedding":
      return (value) => (value === null ? null : Array.from(value as Float32Array, shortestFloat));
    case "interval":
    case "array":
      return (value) => (value === null ? null : textFromValue(type, value));
    default:
      return identity;
  }
}

/** Whether cells are the values themselves, so that a row can be sent as it is. */
export function isCellIdentity(type: DataType): boolean {
  return cellMakerFor(type) === identity;
}

function identity(value: Value): unknown {
  return value;
}

function wholeCell(value: Value): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/**
 * A parameter as it came with the request: a whole number of at most 53 bits as itself, any other
 * number with its digits.
 */
export type WireParameter = null | boolean | string | number | { readonly number: string };

/** A value with its type. A `value` of type unknown is the text of an untyped literal, or NULL. */
export interface TypedValue {
  readonly type: DataType;
  readonly value: Value;
}

/** @throws {DatabaseError} INVALID_PARAMETER */
export function valueFromParameter(parameter: WireParameter): TypedValue {
  if (parameter === null) return { type: UNKNOWN, value: null };
  if (typeof parameter === "boolean") return { type: BOOLEAN, value: parameter };
  // A zero with a sign is a zero among whole numbers.
  if (typeof parameter === "number") return { type: BIGINT, value: parameter + 0 };
  if (typeof parameter === "string") {
    if (!parameter.includes("\u0000") && parameter.isWellFormed()) {
      return { type: UNKNOWN, value: parameter };
    }
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot read ${excerpt(parameter)} as a parameter: it must not have the character NUL or half a surrogate pair`,
    );
  }
  return valueFromJsonNumber(parameter.number);
}

function valueFromJsonNumber(text: string): TypedValue {
  // The length bound keeps BigInt from hostile digits; 64 bits need 20.
  if (/^-?\d+$/.test(text) && text.length <= 40) {
    const whole = wholeFromBigint(BigInt(text));
    if (fitsInteger("bigint", whole)) return { type: BIGINT, value: whole };
  }
  const value = Number(text);
  if (Number.isFinite(value)) return { type: DOUBLE, value: value + 0 };
  throw new DatabaseError(
    "INVALID_PARAMETER",
    `Cannot read ${excerpt(text)} as a parameter: it is beyond the range of ${typeName(DOUBLE)}`,
  );
}
