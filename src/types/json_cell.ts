/**
 * Converts values to JSON cells for responses, and request parameters to values.
 *
 * JSON.stringify turns a cell into its wire form. Integers beyond 2^53, decimals, NaN and infinity
 * (including infinite dates) are strings. Bytes, embeddings and arrays are arrays. Rows, like JSON
 * values, are strings of JSON text. Values of types that have no name in the wire format are sent
 * as strings.
 */

import { DatabaseError } from "../base/errors.ts";
import { isArrayValue } from "./array_shape.ts";
import { isLikelyMoment } from "./cast_time.ts";
import type { DataType, TypeKind } from "./data_type.ts";
import { BIGINT, BOOLEAN, DOUBLE, typeName, UNKNOWN, UNKNOWN_JSON } from "./data_type.ts";
import { isFiniteDate, isFiniteTimestamp, textFromDate, textFromTimestamp } from "./datetime.ts";
import { textFromDecimal } from "./decimal.ts";
import { excerpt } from "./excerpt.ts";
import { shortestFloat } from "./float_text.ts";
import { fitsInteger } from "./integer.ts";
import { jsonTextOf } from "./json_of_value.ts";
import { OBJECT_NAME_KINDS } from "./object_name.ts";
import { textFromValue } from "./text_form.ts";
import { UNSIGNED_KINDS } from "./unsigned.ts";
import { type Value, type Whole, wholeFromBigint } from "./value.ts";

/** The `data_type` of a schema field: one of 15 names, or an object for a type with parameters. */
export type DataTypeJson =
  | string
  | { readonly Array: DataTypeJson }
  | { readonly Decimal: { readonly precision: number; readonly scale: number } }
  | { readonly Embedding: number };

const WORDS: Readonly<
  Record<Exclude<TypeKind, "array" | "decimal" | "embedding" | "numeric">, string>
> = {
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
  timetz: "Text",
  uuid: "Uuid",
  money: "Text",
  bit: "Text",
  inet: "Text",
  cidr: "Text",
  macaddr: "Text",
  macaddr8: "Text",
  oid: "Text",
  xid: "Text",
  xid8: "Text",
  pg_lsn: "Text",
  regclass: "Text",
  regcollation: "Text",
  regnamespace: "Text",
  regproc: "Text",
  regprocedure: "Text",
  regrole: "Text",
  regtype: "Text",
  bytes: "Bytes",
  file: "File",
  interval: "Text",
  jsonpath: "Text",
  xml: "Text",
  enum: "Text",
  row: "Json",
  range: "Text",
  multirange: "Text",
  point: "Text",
  lseg: "Text",
  line: "Text",
  box: "Text",
  path: "Text",
  polygon: "Text",
  circle: "Text",
  tsvector: "Text",
  tsquery: "Text",
  unknown: "Text",
};

/** The wire format's representation of a NUMERIC without a precision and scale. */
const UNSIZED = { precision: 0, scale: 0 };

/** Returns the `data_type` of a type. Types without a name in the wire format are sent as Text. */
export function dataTypeWord(type: DataType): DataTypeJson {
  if (type.kind === "numeric") return { Decimal: type.size ?? UNSIZED };
  if (type.kind === "decimal") {
    return { Decimal: { precision: type.precision, scale: type.scale } };
  }
  if (type.kind === "array") return { Array: dataTypeWord(type.element) };
  return type.kind === "embedding" ? { Embedding: type.dimensions } : WORDS[type.kind];
}

/** Returns a function that converts values of a type, including NULL, to cells. */
export function cellMakerFor(type: DataType): (value: Value) => unknown {
  switch (type.kind) {
    case "bigint":
      return wholeCell;
    case "timestamp":
    case "datetime":
      return timestampCell;
    case "date":
      return dateCell;
    case "decimal": {
      const { scale } = type;
      return (value) => (value === null ? null : textFromDecimal(value as Whole, scale));
    }
    case "float":
      return (value) => (value === null ? null : numberCell(shortestFloat(value as number)));
    case "double":
      return doubleCell;
    case "bytes":
      return (value) => (value === null ? null : Array.from(value as Uint8Array));
    case "embedding":
      return (value) => (value === null ? null : Array.from(value as Float32Array, shortestFloat));
    case "row":
      return (value) => (value === null ? null : jsonTextOf(type, value));
    case "array":
      return arrayCellMaker(cellMakerFor(type.element));
    default:
      return SENT_AS_TEXT.has(type.kind) ? textCellMaker(type) : identity;
  }
}

/** Types whose values are sent as text but are not strings of that text in memory. */
const SENT_AS_TEXT: ReadonlySet<TypeKind> = new Set<TypeKind>([
  "interval",
  "numeric",
  "timetz",
  "money",
  "inet",
  "cidr",
  "xml",
  "enum",
  "range",
  "multirange",
  ...UNSIGNED_KINDS,
  ...OBJECT_NAME_KINDS,
]);

function textCellMaker(type: DataType): (value: Value) => unknown {
  return (value) => (value === null ? null : textFromValue(type, value));
}

/**
 * Returns a function that creates cells that can be assigned to a column without changing the
 * value. A date or timestamp is a string if its year is outside the range accepted for numbers.
 */
export function readableCellMakerFor(type: DataType): (value: Value) => unknown {
  switch (type.kind) {
    case "date":
    case "timestamp":
    case "datetime": {
      const cellOf = cellMakerFor(type);
      return (value) =>
        value === null || isLikelyMoment(type, value as Whole)
          ? cellOf(value)
          : textFromValue(type, value);
    }
    case "array":
      return arrayCellMaker(readableCellMakerFor(type.element));
    default:
      return cellMakerFor(type);
  }
}

/**
 * Returns a function that creates cells in which integers beyond 2^53 stay bigint. The encoder of
 * a message decides how to write them.
 */
export function exactCellMakerFor(type: DataType): (value: Value) => unknown {
  switch (type.kind) {
    case "bigint":
      return identity;
    case "timestamp":
    case "datetime":
      return (value) => (isInfiniteMoment(value) ? timestampCell(value) : value);
    case "array":
      return arrayCellMaker(exactCellMakerFor(type.element));
    default:
      return cellMakerFor(type);
  }
}

/**
 * Whether a type's values can be used as cells unchanged, so that a row can be sent without
 * conversion.
 */
export function isCellIdentity(type: DataType): boolean {
  return cellMakerFor(type) === identity;
}

function arrayCellMaker(cellOf: (element: Value) => unknown): (value: Value) => unknown {
  const make = (value: Value): unknown => {
    if (!isArrayValue(value)) return value === null ? null : cellOf(value);
    return value.map(make);
  };
  return make;
}

function identity(value: Value): unknown {
  return value;
}

function doubleCell(value: Value): unknown {
  return typeof value === "number" ? numberCell(value) : value;
}

/** JSON has no representation for NaN and infinity, so they are strings. */
function numberCell(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}

function isInfiniteMoment(value: Value): boolean {
  return typeof value === "bigint" && !isFiniteTimestamp(value);
}

/** JSON cannot represent an infinite timestamp, so it is a string. */
function timestampCell(value: Value): unknown {
  return isInfiniteMoment(value) ? textFromTimestamp(value as Whole) : wholeCell(value);
}

function dateCell(value: Value): unknown {
  return value === null || isFiniteDate(value as number) ? value : textFromDate(value as number);
}

function wholeCell(value: Value): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/**
 * A request parameter. An integer of at most 53 bits is a number, any other number keeps its
 * digits, and a list or an object is JSON text.
 */
export type WireParameter =
  | null
  | boolean
  | string
  | number
  | { readonly number: string }
  | { readonly json: string };

/**
 * A value with its type. If the type is unknown, the value is NULL or the text of an untyped
 * literal.
 */
export interface TypedValue {
  readonly type: DataType;
  readonly value: Value;
}

/** Converts a request parameter to a value. @throws {DatabaseError} INVALID_PARAMETER */
export function valueFromParameter(parameter: WireParameter): TypedValue {
  if (parameter === null) return { type: UNKNOWN, value: null };
  if (typeof parameter === "boolean") return { type: BOOLEAN, value: parameter };
  // Adding 0 turns -0 into 0, because integers have no negative zero.
  if (typeof parameter === "number") return { type: BIGINT, value: parameter + 0 };
  if (typeof parameter === "string") return { type: UNKNOWN, value: checkedText(parameter) };
  if ("json" in parameter) return { type: UNKNOWN_JSON, value: checkedText(parameter.json) };
  return valueFromJsonNumber(parameter.number);
}

function checkedText(text: string): string {
  if (!text.includes("\u0000") && text.isWellFormed()) return text;
  throw new DatabaseError(
    "INVALID_PARAMETER",
    `Cannot read ${excerpt(text)} as a parameter: it contains a NUL character or an unpaired ` +
      "surrogate",
  );
}

function valueFromJsonNumber(text: string): TypedValue {
  // The length limit protects BigInt from malicious input; 64-bit integers take at most 20
  // characters.
  if (/^-?\d+$/.test(text) && text.length <= 40) {
    const whole = wholeFromBigint(BigInt(text));
    if (fitsInteger("bigint", whole)) return { type: BIGINT, value: whole };
  }
  const value = Number(text);
  if (Number.isFinite(value)) return { type: DOUBLE, value: value + 0 };
  throw new DatabaseError(
    "INVALID_PARAMETER",
    `Cannot read ${excerpt(text)} as a parameter: it is outside the range of ${typeName(DOUBLE)}`,
  );
}
