/**
 * Converts cells of binary data to columns, according to PostgreSQL's binary format for each type.
 * Numbers are big-endian.
 *
 *     boolean            1 byte                         date          days since 2000-01-01, i32
 *     smallint … bigint  2, 4 or 8 bytes                time          microseconds, i64
 *     float, double      4 or 8 bytes                   timestamps    µs since 2000-01-01, i64
 *     text, json         UTF-8                          interval      µs i64, days i32, months i32
 *     jsonb              1, then UTF-8                  uuid, bytes   the bytes
 *     decimal            count, weight, sign, scale as u16, then digits in base 10,000
 *     embedding          count u16, 0 u16, then 4 bytes for each number
 *     array              dimensions i32, has NULLs i32, type u32; for each dimension its length and
 *                        first index as i32; then the elements of all as cells
 *     range              flags, 1 byte; then its bounds as cells, without those that the flags exclude
 *     multirange         count i32; then its ranges as cells
 *     geometric types    see `binary_shapes.ts`
 */
import { isUtf8 } from "node:buffer";
import { DatabaseError } from "../../../base/errors.ts";
import {
  checkDate,
  checkTimestamp,
  type DataType,
  DIMENSIONS_MAX,
  decimalFromText,
  fitNumeric,
  floatFromDouble,
  isFiniteDate,
  isFiniteTimestamp,
  isGeometric,
  numericFromText,
  numericScale,
  type Range,
  type RangeEnd,
  RangeMath,
  type RangeType,
  roundNumeric,
  truncateNumeric,
  typeName,
  unboundedEnd,
  type Value,
  type Vector,
  valueFromText,
  valueOfRanges,
  type Whole,
  wholeFromBigint,
} from "../../../types/mod.ts";
import { shapeAt } from "./binary_shapes.ts";
import { type CellRange, CopyCell, type CopyCells } from "./copy_cells.ts";

/**
 * The number of days from 1970-01-01 to 2000-01-01, the day from which PostgreSQL counts dates.
 */
export const EPOCH_DAYS = 10_957;
export const EPOCH_MICROS: number = EPOCH_DAYS * 86_400_000_000;

const MICROS_PER_DAY = 86_400_000_000;

/** The sign code of a negative decimal in binary data. */
export const DECIMAL_MINUS = 0x4000;

/** The number of decimal digits in one base-10,000 digit. */
const DIGITS = 4;

/**
 * Reads a column of numbers, booleans or strings. Returns undefined for other types, or if a cell
 * is faulty.
 */
export function readBinaryColumn(
  cells: CopyCells,
  column: number,
  type: DataType,
): Vector | undefined {
  if (type.kind === "text" && type.lengthMax === undefined) return readTextColumn(cells, column);
  const { bytes, columnCount, ends, kinds, rowCount: length, starts } = cells;
  const width = WIDTHS.get(type.kind);
  if (width === undefined) return undefined;
  const isWhole = type.kind === "smallint" || type.kind === "int";
  const numbers = isWhole ? new Int32Array(length) : new Float64Array(length);
  let nulls: Uint8Array | undefined;
  for (let row = 0, cell = column; row < length; row += 1, cell += columnCount) {
    if (kinds[cell] === CopyCell.null) {
      nulls ??= new Uint8Array(length);
      nulls[row] = 1;
      continue;
    }
    const start = starts[cell] ?? 0;
    if ((ends[cell] ?? 0) - start !== width) return undefined;
    const value = numberAt(bytes, start, type);
    if (value === undefined) return undefined;
    numbers[row] = value;
  }
  if (numbers instanceof Int32Array) return { kind: "i32", length, values: numbers, nulls };
  return { kind: "f64", length, values: numbers, nulls };
}

/** Reads a column of strings. Returns undefined if a string is not UTF-8 or contains NUL. */
function readTextColumn(cells: CopyCells, column: number): Vector | undefined {
  const { bytes, columnCount, ends, kinds, rowCount: length, starts } = cells;
  const offsets = new Uint32Array(length + 1);
  let byteCount = 0;
  for (let row = 0, cell = column; row < length; row += 1, cell += columnCount) {
    if (kinds[cell] !== CopyCell.null) byteCount += (ends[cell] ?? 0) - (starts[cell] ?? 0);
    offsets[row + 1] = byteCount;
  }
  const texts = Buffer.allocUnsafeSlow(byteCount);
  let nulls: Uint8Array | undefined;
  for (let row = 0, cell = column; row < length; row += 1, cell += columnCount) {
    if (kinds[cell] === CopyCell.null) {
      nulls ??= new Uint8Array(length);
      nulls[row] = 1;
      continue;
    }
    const start = starts[cell] ?? 0;
    // Each cell is checked separately, because a character split between two cells would appear
    // valid in the column as a whole.
    if (start < (ends[cell] ?? 0) && ((bytes[start] ?? 0) & 0xc0) === 0x80) return undefined;
    bytes.copy(texts, offsets[row], start, ends[cell]);
  }
  if (!isUtf8(texts) || texts.includes(0)) return undefined;
  return { kind: "utf8", length, bytes: texts, offsets, nulls };
}

const WIDTHS: ReadonlyMap<string, number> = new Map([
  ["smallint", 2],
  ["int", 4],
  ["bigint", 8],
  ["double", 8],
]);

/** Returns the number in a cell; undefined if `binaryValue` has to read the cell. */
function numberAt(bytes: Buffer, at: number, { kind }: DataType): number | undefined {
  switch (kind) {
    case "smallint":
      return bytes.readInt16BE(at);
    case "int":
      return bytes.readInt32BE(at);
    case "bigint": {
      const value = bytes.readInt32BE(at) * 4_294_967_296 + bytes.readUInt32BE(at + 4);
      return Number.isSafeInteger(value) ? value : undefined;
    }
    default: {
      const value = bytes.readDoubleBE(at);
      return Number.isNaN(value) ? Number.NaN : value;
    }
  }
}

/**
 * Reads a cell that is not NULL.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE, VALUE_TOO_LONG, DIMENSION_MISMATCH
 */
export function binaryValue(bytes: Buffer, range: CellRange, type: DataType): Value {
  const { end, start } = range;
  const require = (length: number): void => {
    if (end - start === length) return;
    throw refuse(type, `the value has ${end - start} bytes instead of ${length}`);
  };
  if (isGeometric(type)) return shapeAt(bytes, range, type.kind);
  switch (type.kind) {
    case "boolean":
      require(1);
      if ((bytes[start] ?? 0) > 1) throw refuse(type, "the value is neither 0 nor 1");
      return bytes[start] === 1;
    case "decimal": {
      const text = decimalText(bytes, range, type);
      const value = decimalFromText(text, type.precision, type.scale);
      if (value === undefined) throw refuse(type, "the value is not a number");
      return value;
    }
    case "numeric":
      return numericAt(bytes, range, type);
    case "uuid":
      require(16);
      return valueFromText(type, bytes.toString("hex", start, end));
    case "bytes":
      return new Uint8Array(bytes.subarray(start, end));
    case "embedding":
      return embeddingAt(bytes, range, type);
    case "array":
      return arrayAt(bytes, range, type);
    case "range":
    case "multirange":
      return rangesAt(bytes, range, type);
    case "json":
      if (!type.binary) return valueFromText(type, textAt(bytes, range));
      if (bytes[start] !== 1 || end === start)
        throw refuse(type, "the version of the value is not 1");
      return valueFromText(type, textAt(bytes, { start: start + 1, end }));
    default: {
      const width = VALUE_BYTES.get(type.kind);
      if (width === undefined) return valueFromText(type, textAt(bytes, range));
      require(width);
      return numberOrTime(bytes, start, type);
    }
  }
}

/** The size in bytes of each type with a fixed width. */
const VALUE_BYTES: ReadonlyMap<string, number> = new Map([
  ...WIDTHS,
  ["float", 4],
  ["date", 4],
  ["time", 8],
  ["timestamp", 8],
  ["datetime", 8],
  ["interval", 16],
]);

function numberOrTime(bytes: Buffer, start: number, type: DataType): Value {
  switch (type.kind) {
    case "smallint":
      return bytes.readInt16BE(start);
    case "int":
      return bytes.readInt32BE(start);
    case "float":
      return floatFromDouble(bytes.readFloatBE(start));
    case "double":
      return bytes.readDoubleBE(start);
    case "date":
      return dateSince(bytes.readInt32BE(start));
    case "timestamp":
    case "datetime":
      return timestampSince(wholeAt(bytes, start));
    case "time": {
      const micros = Number(wholeAt(bytes, start));
      if (micros < 0 || micros > MICROS_PER_DAY)
        throw refuse(type, "the value is not a time of day");
      return micros;
    }
    case "interval":
      return {
        micros: Number(wholeAt(bytes, start)),
        days: bytes.readInt32BE(start + 8),
        months: bytes.readInt32BE(start + 12),
      };
    default:
      return wholeAt(bytes, start);
  }
}

function textAt(bytes: Buffer, { end, start }: CellRange): string {
  const text = bytes.subarray(start, end);
  if (isUtf8(text)) return text.toString();
  throw new DatabaseError("INVALID_VALUE", "Cannot read the text: it is not valid UTF-8");
}

function wholeAt(bytes: Buffer, at: number): Whole {
  const value = bytes.readInt32BE(at) * 4_294_967_296 + bytes.readUInt32BE(at + 4);
  return Number.isSafeInteger(value) ? value : wholeFromBigint(bytes.readBigInt64BE(at));
}

/**
 * Converts days since 2000-01-01 to days since 1970-01-01. The value that represents an infinite
 * date stays the same.
 */
function dateSince(days: number): number {
  return isFiniteDate(days) ? checkDate(days + EPOCH_DAYS) : days;
}

function timestampSince(micros: Whole): Whole {
  if (!isFiniteTimestamp(micros)) return micros;
  return checkTimestamp(wholeFromBigint(BigInt(micros) + BigInt(EPOCH_MICROS)));
}

/** The sign codes of NaN and the infinities, keyed by their text. */
export const SPECIAL_SIGNS: ReadonlyMap<string, number> = new Map([
  ["NaN", 0xc000 - 0x10000],
  ["Infinity", 0xd000 - 0x10000],
  ["-Infinity", 0xf000 - 0x10000],
]);

/** Reads a NUMERIC: NaN, an infinity, or a number whose scale is given in its bytes. */
function numericAt(bytes: Buffer, range: CellRange, type: DataType & { kind: "numeric" }): Value {
  const { end, start } = range;
  const sign = end - start < 8 ? 0 : bytes.readInt16BE(start + 4);
  for (const [text, special] of SPECIAL_SIGNS) {
    if (sign === special) return valueFromText(type, text);
  }
  const value = numericFromText(decimalText(bytes, range, type));
  if (value === undefined) throw refuse(type, "the value is not a number");
  const scale = bytes.readUInt16BE(start + 6);
  // The base-10,000 digits may have more trailing zeros than the scale of the number allows.
  const shown =
    numericScale(value) < scale ? roundNumeric(value, scale) : truncateNumeric(value, scale);
  return fitNumeric(shown, type);
}

/**
 * Reads a decimal and returns its text.
 * @throws {DatabaseError} INVALID_VALUE
 */
function decimalText(bytes: Buffer, { end, start }: CellRange, type: DataType): string {
  if (end - start < 8) throw refuse(type, "the value is shorter than 8 bytes");
  const count = bytes.readUInt16BE(start);
  const weight = bytes.readInt16BE(start + 2);
  const sign = bytes.readUInt16BE(start + 4);
  const scale = bytes.readUInt16BE(start + 6);
  if (end - start !== 8 + 2 * count)
    throw refuse(type, `the length of the value does not match its count of ${count} digits`);
  if (sign !== 0 && sign !== DECIMAL_MINUS) throw refuse(type, "the value is not a finite number");
  let digits = "";
  for (let i = 0; i < count; i += 1) {
    const digit = bytes.readUInt16BE(start + 8 + 2 * i);
    if (digit > 9999) throw refuse(type, `the digit ${digit} is greater than 9999`);
    digits += String(digit).padStart(DIGITS, "0");
  }
  // The first base-10,000 digit is multiplied by 10,000 to the power of the weight.
  const exponent = DIGITS * (weight + 1) - digits.length;
  if (scale > 0x3fff) throw refuse(type, `the scale ${scale} is greater than 16383`);
  return `${sign === 0 ? "" : "-"}${digits === "" ? "0" : digits}e${exponent}`;
}

function embeddingAt(
  bytes: Buffer,
  { end, start }: CellRange,
  type: DataType & { kind: "embedding" },
): Value {
  const count = end - start < 4 ? 0 : bytes.readUInt16BE(start);
  if (end - start !== 4 + 4 * count)
    throw refuse(type, `the length of the value does not match its count of ${count} numbers`);
  const numbers: number[] = [];
  for (let i = 0; i < count; i += 1) numbers.push(bytes.readFloatBE(start + 4 + 4 * i));
  if (!numbers.every(Number.isFinite)) throw refuse(type, "a number is not finite");
  // The cast to EMBEDDING checks the number of dimensions.
  return valueFromText(type, `[${numbers.join(",")}]`);
}

function arrayAt(
  bytes: Buffer,
  { end, start }: CellRange,
  type: DataType & { kind: "array" },
): Value {
  const depth = end - start < 12 ? -1 : bytes.readInt32BE(start);
  if (depth < 0 || depth > DIMENSIONS_MAX || end - start < 12 + 8 * depth) {
    throw refuse(type, `the number of dimensions, ${depth}, is not valid`);
  }
  const lengths: number[] = [];
  for (let i = 0; i < depth; i += 1) lengths.push(bytes.readInt32BE(start + 12 + 8 * i));
  const count = depth === 0 ? 0 : lengths.reduce((product, length) => product * length, 1);
  // The length field of each element takes up at least four bytes, so a wrong count is detected
  // before anything is allocated.
  if (lengths.some((length) => length < 1) || 4 * count > end - start) {
    throw refuse(type, "the dimensions do not match the length of the array");
  }
  const items: Value[] = [];
  let at = start + 12 + 8 * depth;
  for (let i = 0; i < count; i += 1) {
    const length = at + 4 > end ? -2 : bytes.readInt32BE(at);
    at += 4;
    if (length < -1 || at + length > end) throw refuse(type, "the array ends within an element");
    if (length === -1) {
      items.push(null);
      continue;
    }
    items.push(binaryValue(bytes, { start: at, end: at + length }, type.element));
    at += length;
  }
  if (at !== end) throw refuse(type, "there are bytes after the last element");
  return nested(items, lengths.slice(1));
}

/** The flag bits in the first byte of a range. */
export const RANGE_IS_EMPTY = 1;
export const LOWER_IS_INCLUDED = 2;
export const UPPER_IS_INCLUDED = 4;
export const LOWER_IS_UNBOUNDED = 8;
export const UPPER_IS_UNBOUNDED = 16;

function rangesAt(bytes: Buffer, { end, start }: CellRange, type: RangeType): Value {
  if (type.kind === "range") {
    const range = rangeAt(bytes, { start, end }, type);
    return valueOfRanges(type, range === undefined ? [] : [range]);
  }
  const count = end - start < 4 ? -1 : bytes.readInt32BE(start);
  // Each range takes up at least five bytes, so a wrong count is detected before anything is read.
  if (count < 0 || 5 * count > end - start) throw refuse(type, "the count of ranges is not valid");
  const ranges: Range[] = [];
  let at = start + 4;
  for (let i = 0; i < count; i += 1) {
    const cell = innerCell(bytes, { start: at, end }, type);
    const range = rangeAt(bytes, cell, type);
    if (range !== undefined) ranges.push(range);
    at = cell.end;
  }
  if (at !== end) throw refuse(type, "there are bytes after the last range");
  return valueOfRanges(type, new RangeMath(type).union(ranges));
}

function rangeAt(bytes: Buffer, { end, start }: CellRange, type: RangeType): Range | undefined {
  const flags = end === start ? RANGE_IS_EMPTY : (bytes[start] ?? 0);
  let at = start + 1;
  const readEnd = (isLower: boolean): RangeEnd => {
    if ((flags & (isLower ? LOWER_IS_UNBOUNDED : UPPER_IS_UNBOUNDED)) !== 0) {
      return unboundedEnd(isLower);
    }
    const cell = innerCell(bytes, { start: at, end }, type);
    at = cell.end;
    const isIncluded = (flags & (isLower ? LOWER_IS_INCLUDED : UPPER_IS_INCLUDED)) !== 0;
    return { value: binaryValue(bytes, cell, type.bound), isIncluded, isLower };
  };
  const isEmpty = (flags & RANGE_IS_EMPTY) !== 0;
  const range = isEmpty ? undefined : new RangeMath(type).canonical(readEnd(true), readEnd(false));
  if (at !== end) throw refuse(type, "the length of the range does not match its flags");
  return range;
}

/** Returns the byte range of a cell inside a value. The cell is preceded by its length. */
function innerCell(bytes: Buffer, { end, start }: CellRange, type: DataType): CellRange {
  const length = start + 4 > end ? -1 : bytes.readInt32BE(start);
  if (length < 0 || start + 4 + length > end)
    throw refuse(type, "the value ends in the middle of a field");
  return { start: start + 4, end: start + 4 + length };
}

/**
 * Divides elements into nested arrays of the given lengths. The last length is the length of the
 * innermost arrays.
 */
function nested(items: readonly Value[], lengths: readonly number[]): readonly Value[] {
  let parts = items;
  for (const length of lengths.toReversed()) {
    const grouped: Value[] = [];
    for (let at = 0; at < parts.length; at += length) grouped.push(parts.slice(at, at + length));
    parts = grouped;
  }
  return parts;
}

function refuse(type: DataType, why: string): DatabaseError {
  return new DatabaseError("INVALID_VALUE", `Cannot read the bytes as ${typeName(type)}: ${why}`);
}
