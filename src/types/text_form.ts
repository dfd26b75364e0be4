/**
 * Parses and formats the text form of every type, for literals, text casts and output.
 *
 * The text forms are the same as in PostgreSQL. `textFromValue` is the inverse of `valueFromText`
 * for every type but FILE, whose values only an upload creates.
 */
import { DatabaseError } from "../base/errors.ts";
import type { ArrayValue } from "./array_shape.ts";
import { arrayFromText, arraySeparator, textFromArray } from "./array_text.ts";
import { bitsFromText } from "./bit_string.ts";
import { codePointLength, sliceCodePoints } from "./code_points.ts";
import {
  type DataType,
  type GeometricType,
  isGeometric,
  isObjectName,
  isUnsigned,
  TEXT,
  typeName,
  type UnsignedType,
} from "./data_type.ts";
import {
  roundMicros,
  roundTimestamp,
  textFromDate,
  textFromDatetime,
  textFromTimestamp,
} from "./datetime.ts";
import {
  dateFromText,
  datetimeFromText,
  timeFromText,
  timestampFromText,
  zonedTimeFromText,
} from "./datetime_text.ts";
import { decimalFromText, textFromDecimal } from "./decimal.ts";
import { enumFromText, textFromEnum } from "./enum_type.ts";
import { excerpt } from "./excerpt.ts";
import {
  doubleFromText,
  finiteFloat,
  floatFromText,
  shortestFloat,
  textFromDouble,
  textFromFloat,
} from "./float_text.ts";
import { shapeFromText } from "./geometry_text.ts";
import { hardwareFromText } from "./hardware_address.ts";
import { inetFromText, textFromInet } from "./inet_address.ts";
import { type IntegerKind, integerFromText } from "./integer.ts";
import { intervalFromText, textFromClock, textFromInterval } from "./interval_text.ts";
import { checkJson } from "./json_text.ts";
import { canonicalJson } from "./json_tree.ts";
import { canonicalPath } from "./jsonpath_text.ts";
import { moneyFromText, textFromMoney } from "./money.ts";
import { fitNumeric, numericFromText, textFromNumeric } from "./numeric.ts";
import { refuseName, textFromObjectName } from "./object_name.ts";
import { rangeFromText, textFromRange } from "./range_text.ts";
import { cellsFromRowText, textFromRow } from "./row_text.ts";
import { textFromTsQuery, tsQueryFromText } from "./tsquery.ts";
import { textFromTsVector, tsVectorFromText } from "./tsvector.ts";
import { textFromUnsigned, unsignedFromText } from "./unsigned.ts";
import type { Interval, RowValue, Value, Whole } from "./value.ts";
import { checkedXml } from "./xml_parser.ts";
import { textFromXml } from "./xml_text.ts";
import { roundedZonedTime, textFromZonedTime, zonedTimeValue } from "./zoned_time.ts";

/**
 * Parses the text form of a value.
 *
 * @param nowMicros The statement's time, for `now`, `today`, `tomorrow` and `yesterday`. If
 *   undefined, these words are refused.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE, VALUE_TOO_LONG, DIMENSION_MISMATCH
 */
export function valueFromText(type: DataType, text: string, nowMicros?: number): Value {
  switch (type.kind) {
    case "boolean":
      return booleanFromText(text);
    case "text":
      return limitedText(type.lengthMax, text);
    case "unknown":
      return checkedText(text);
    case "json":
      return type.binary ? canonicalJson(text) : jsonFromText(text);
    case "timestamp":
    case "datetime":
    case "date":
    case "time":
    case "timetz":
      return momentFromText(type, text, nowMicros);
    case "embedding":
      return embeddingFromText(type.dimensions, text);
    case "interval":
      return intervalFromText(text);
    case "enum":
      return enumFromText(type.enumType, text);
    case "array":
      return arrayFromText(
        text,
        (element) => valueFromText(type.element, element, nowMicros),
        arraySeparator(type.element),
      );
    case "row":
      return rowFromText(type, text, nowMicros);
    case "range":
    case "multirange":
      return rangeFromText(type, text, (bound) => valueFromText(type.bound, bound, nowMicros));
    case "file":
      throw new DatabaseError(
        "INVALID_VALUE",
        "Cannot read text as a file: only FILE('part') creates a file",
      );
    default:
      if (isObjectName(type)) refuseName(type.kind);
      return valueOfOneForm(type, text);
  }
}

type NamedRowType = DataType & { kind: "row" };

/**
 * Parses the text form of a row.
 * @throws {DatabaseError} INVALID_VALUE, and the errors of parsing a field.
 */
function rowFromText({ fields, named }: NamedRowType, text: string, nowMicros?: number): RowValue {
  if (named === undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as a row: only rows of a named type can be read from a ` +
        "string; use ROW(…)",
    );
  }
  const cells = cellsFromRowText(text);
  if (cells?.length === fields.length) {
    return {
      cells: fields.map(({ type }, at) => {
        const cell = cells[at] ?? null;
        return cell === null ? null : valueFromText(type, cell, nowMicros);
      }),
    };
  }
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot read ${excerpt(text)} as ${named.name}: expected ${fields.length} values in ` +
      `parentheses, as in '(1,"a b",)'`,
  );
}

type AddressType = DataType & { kind: "inet" | "cidr" | "macaddr" | "macaddr8" };
type NumberType = DataType & { kind: IntegerKind | "float" | "double" | "decimal" | "numeric" };

/** Parses a value of a type whose text depends on neither another type nor the current time. */
function valueOfOneForm(
  type:
    | NumberType
    | (DataType & { kind: "jsonpath" | "xml" | "tsvector" | "tsquery" | "uuid" | "bytes" })
    | AddressType
    | GeometricType
    | UnsignedType
    | (DataType & { kind: "bit" | "money" }),
  text: string,
): Value {
  if (isGeometric(type)) return shapeFromText(type.kind, text);
  if (isUnsigned(type)) return unsignedFromText(type.kind, text);
  switch (type.kind) {
    case "bit":
      return bitsFromText(type, text);
    case "money":
      return moneyFromText(text);
    case "inet":
    case "cidr":
      return inetFromText(type.kind, text);
    case "macaddr":
    case "macaddr8":
      return hardwareFromText(type.kind, text);
    case "jsonpath":
      return canonicalPath(text);
    case "xml":
      return checkedXml(text, "content");
    case "tsvector":
      return textFromTsVector(tsVectorFromText(checkedText(text)));
    case "tsquery":
      return textFromTsQuery(tsQueryFromText(checkedText(text)));
    case "uuid":
      return uuidFromText(text);
    case "bytes":
      return bytesFromText(text);
    default:
      return numberFromText(type, text);
  }
}

function numberFromText(type: NumberType, text: string): Value {
  switch (type.kind) {
    case "decimal":
      return decimalFromText(text.trim(), type.precision, type.scale) ?? refuseDecimal(type, text);
    case "numeric":
      return fitNumeric(numericFromText(text) ?? refuse(type, text), type);
    case "float":
      return floatFromText(text, typeName(type));
    case "double":
      return doubleFromText(text, typeName(type));
    default:
      return integerFromText(type.kind, text);
  }
}

function momentFromText(
  type: DataType & { kind: "timestamp" | "datetime" | "date" | "time" | "timetz" },
  text: string,
  nowMicros: number | undefined,
): Value {
  const now = { nowMicros };
  switch (type.kind) {
    case "date":
      return dateFromText(text, now);
    case "time":
      return roundMicros(timeFromText(text, now), type.digits ?? 6);
    case "timetz":
      return zonedTimeValue(roundedZonedTime(zonedTimeFromText(text, now), type.digits ?? 6));
    case "timestamp":
      return roundTimestamp(timestampFromText(text, now), type.digits ?? 6);
    case "datetime":
      return roundTimestamp(datetimeFromText(text, now), type.digits ?? 6);
  }
}

/**
 * Returns the text of a value within arrays, `concat` and `format`. Booleans are `t` and `f`; any
 * other value has the text that `textFromValue` returns.
 */
export function outputText(type: DataType, value: Value): string {
  return type.kind === "boolean" ? (value === true ? "t" : "f") : textFromValue(type, value);
}

/** Returns the text of a value that is not NULL. */
export function textFromValue(type: DataType, value: Value): string {
  switch (type.kind) {
    case "boolean":
      return value === true ? "true" : "false";
    case "float":
      return textFromFloat(value as number);
    case "double":
      return textFromDouble(value as number);
    case "decimal":
      return textFromDecimal(value as Whole, type.scale);
    case "numeric":
      return textFromNumeric(value as string);
    case "timestamp":
      return textFromTimestamp(value as Whole);
    case "datetime":
      return textFromDatetime(value as Whole);
    case "date":
      return textFromDate(value as number);
    case "time":
      return textFromClock(value as number);
    case "bytes":
      return `\\x${Buffer.from(value as Uint8Array).toString("hex")}`;
    case "embedding":
      return `[${Array.from(value as Float32Array, shortestFloat).join(",")}]`;
    case "interval":
      return textFromInterval(value as Interval);
    case "enum":
      return textFromEnum(type.enumType, value as number);
    case "array": {
      const { element } = type;
      return textFromArray(
        value as ArrayValue,
        (item) => outputText(element, item),
        arraySeparator(element),
      );
    }
    case "row": {
      const { fields } = type;
      const { cells } = value as RowValue;
      return textFromRow(cells, (cell, at) => outputText(fields[at]?.type ?? TEXT, cell));
    }
    default:
      return textFromPlain(type, value);
  }
}

function textFromPlain(type: DataType, value: Value): string {
  if (isUnsigned(type)) return textFromUnsigned(type.kind, value as string);
  if (isObjectName(type)) return textFromObjectName(value as string);
  switch (type.kind) {
    case "timetz":
      return textFromZonedTime(value as string);
    case "money":
      return textFromMoney(value as Whole);
    case "inet":
    case "cidr":
      return textFromInet(type.kind, value as string);
    case "xml":
      return textFromXml(value as string);
    case "range":
    case "multirange":
      return textFromRange(type, value, (bound) => outputText(type.bound, bound));
    default:
      // All remaining types are integers, or types whose values are their own text.
      return typeof value === "string" ? value : (value as Whole).toString();
  }
}

const BOOLEAN_WORDS: ReadonlyMap<string, boolean> = new Map([
  ...["t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"].map((word) => [word, true] as const),
  ...["f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"].map(
    (word) => [word, false] as const,
  ),
]);

function booleanFromText(text: string): boolean {
  return BOOLEAN_WORDS.get(text.trim().toLowerCase()) ?? refuse({ kind: "boolean" }, text);
}

/** Explains in error messages why a NUMERIC with a declared precision cannot be NaN. */
const NO_SPECIALS = "a NUMERIC of up to 38 digits cannot represent NaN or infinity";
const SPECIALS_HINT = "use NUMERIC without a size, which can represent NaN and infinity";

/**
 * Refuses text that is not a number of this type.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE, INVALID_VALUE
 */
function refuseDecimal(type: DataType, text: string): never {
  if (!/^\s*(?:nan|[+-]?inf(?:inity)?)\s*$/i.test(text)) return refuse(type, text);
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot read ${excerpt(text)} as ${typeName(type)}: ${NO_SPECIALS}`,
    { hint: SPECIALS_HINT },
  );
}

function refuse(type: DataType, text: string): never {
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot read ${excerpt(text)} as ${typeName(type)}: it is not a valid value of this type`,
  );
}

/**
 * Checks that a string can be stored.
 * @throws {DatabaseError} INVALID_VALUE if it contains NUL or is not well-formed Unicode.
 */
function checkedText(text: string): string {
  if (!text.includes("\u0000") && text.isWellFormed()) return text;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot represent the text: it contains a NUL character or an unpaired surrogate",
  );
}

/**
 * Checks that a string is not longer than its type allows.
 * @throws {DatabaseError} VALUE_TOO_LONG
 */
export function limitedText(lengthMax: number | undefined, text: string): string {
  checkedText(text);
  if (lengthMax === undefined || text.length <= lengthMax) return text;
  const length = codePointLength(text);
  if (length <= lengthMax) return text;
  // As the SQL standard allows, spaces beyond the declared length are removed.
  const kept = sliceCodePoints(text, 0, lengthMax);
  if (/^ +$/.test(text.slice(kept.length))) return kept;
  throw new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot store ${excerpt(text)} as character varying(${lengthMax}): it has ${length} characters`,
  );
}

function jsonFromText(text: string): string {
  checkJson(text);
  return checkedText(text);
}

function uuidFromText(text: string): string {
  const trimmed = text.trim();
  const bare = trimmed.startsWith("{") && trimmed.endsWith("}") ? trimmed.slice(1, -1) : trimmed;
  if (!/^[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}$/i.test(bare)) refuse({ kind: "uuid" }, text);
  const hex = bare.replaceAll("-", "").toLowerCase();
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Parses bytes in hexadecimal form (`\x00ff`) or escape form (`a\\b\001`). */
function bytesFromText(text: string): Uint8Array {
  if (text.startsWith("\\x")) {
    const hex = text.slice(2).replaceAll(/\s/g, "");
    if (hex.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(hex)) refuse({ kind: "bytes" }, text);
    return new Uint8Array(Buffer.from(hex, "hex"));
  }
  if (!text.includes("\\")) return new Uint8Array(Buffer.from(text, "utf8"));
  const parts: Buffer[] = [];
  for (const [part] of text.matchAll(/\\\\|\\[0-3][0-7]{2}|[^\\]+|\\/g)) {
    if (part === "\\") refuse({ kind: "bytes" }, text);
    if (part === "\\\\") parts.push(Buffer.from("\\"));
    else if (part.startsWith("\\")) parts.push(Buffer.from([Number.parseInt(part.slice(1), 8)]));
    else parts.push(Buffer.from(part, "utf8"));
  }
  return new Uint8Array(Buffer.concat(parts));
}

/**
 * Parses an embedding such as `[1,2.5,-3e-2]`, which must have as many finite numbers as the type
 * has dimensions.
 */
export function embeddingFromText(dimensions: number, text: string): Float32Array {
  const trimmed = text.trim();
  if (!trimmed.startsWith("[") || !trimmed.endsWith("]")) {
    refuse({ kind: "embedding", dimensions }, text);
  }
  const inner = trimmed.slice(1, -1).trim();
  const items = inner === "" ? [] : inner.split(",");
  checkDimensions(dimensions, items.length);
  return Float32Array.from(items, (item) => finiteFloat(doubleFromText(item, "real")) + 0);
}

/**
 * Checks that an embedding has the expected number of dimensions.
 * @throws {DatabaseError} DIMENSION_MISMATCH
 */
export function checkDimensions(expected: number, found: number): void {
  if (expected === found) return;
  throw new DatabaseError(
    "DIMENSION_MISMATCH",
    `Cannot convert ${found} numbers to embedding(${expected}): expected exactly ${expected}`,
  );
}
