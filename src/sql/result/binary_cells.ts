/**
 * Writes rows in PostgreSQL's binary format. `sql/execute/copy/binary_columns.ts` reads this
 * format and describes the bytes of each type.
 */
import {
  type Batch,
  type DataType,
  dimensionsOf,
  elementsOf,
  type GeometricKind,
  type Interval,
  isFiniteDate,
  isFiniteNumeric,
  isFiniteTimestamp,
  isGeometric,
  isRangeType,
  numbersOfShape,
  numericScale,
  type Range,
  rangesOf,
  textFromDecimal,
  textFromNumeric,
  textFromValue,
  typeName,
  type Value,
  valueAt,
  type Whole,
} from "../../types/mod.ts";
import {
  DECIMAL_MINUS,
  EPOCH_DAYS,
  EPOCH_MICROS,
  LOWER_IS_INCLUDED,
  LOWER_IS_UNBOUNDED,
  RANGE_IS_EMPTY,
  SPECIAL_SIGNS,
  UPPER_IS_INCLUDED,
  UPPER_IS_UNBOUNDED,
} from "../execute/copy/binary_columns.ts";

const HIGH = 4_294_967_296;

/**
 * PostgreSQL's type OIDs for array elements that have a binary form. Elements of all other types
 * are sent as text.
 */
const TYPE_NUMBERS: ReadonlyMap<string, number> = new Map([
  ["boolean", 16],
  ["bytes", 17],
  ["bigint", 20],
  ["smallint", 21],
  ["int", 23],
  ["json", 114],
  ["xml", 142],
  ["float", 700],
  ["double", 701],
  ["date", 1082],
  ["time", 1083],
  ["timestamp", 1114],
  ["datetime", 1184],
  ["interval", 1186],
  ["decimal", 1700],
  ["numeric", 1700],
  ["uuid", 2950],
  ["point", 600],
  ["lseg", 601],
  ["path", 602],
  ["box", 603],
  ["polygon", 604],
  ["line", 628],
  ["circle", 718],
]);
const RANGE_NUMBERS: ReadonlyMap<string, number> = new Map([
  ["int4range", 3904],
  ["numrange", 3906],
  ["tsrange", 3908],
  ["tstzrange", 3910],
  ["daterange", 3912],
  ["int8range", 3926],
  ["int4multirange", 4451],
  ["nummultirange", 4532],
  ["tsmultirange", 4533],
  ["tstzmultirange", 4534],
  ["datemultirange", 4535],
  ["int8multirange", 4536],
]);
const TEXT_NUMBER = 25;
const JSONB_NUMBER = 3802;

/** Encodes the rows of a batch, with the given columns, in PostgreSQL's binary format. */
export function binaryRows({ columns, rowCount }: Batch, types: readonly DataType[]): Buffer {
  const bytes = new GrowingBytes();
  for (let row = 0; row < rowCount; row += 1) {
    bytes.int16(types.length);
    for (const [at, type] of types.entries()) {
      const column = columns[at];
      writeCell(bytes, type, column === undefined ? null : valueAt(column, row));
    }
  }
  return bytes.written();
}

/** Writes a cell, preceded by its length. */
function writeCell(bytes: GrowingBytes, type: DataType, value: Value): void {
  const lengthAt = bytes.length;
  bytes.int32(-1);
  if (value === null) return;
  writeValue(bytes, type, value);
  bytes.setInt32(lengthAt, bytes.length - lengthAt - 4);
}

function writeValue(bytes: GrowingBytes, type: DataType, value: Value): void {
  switch (type.kind) {
    case "boolean":
      return bytes.int8(value === true ? 1 : 0);
    case "smallint":
    case "int":
    case "bigint":
    case "float":
    case "double":
      return writeNumber(bytes, type.kind, value as Whole);
    case "time":
      return bytes.whole(value as Whole);
    case "decimal":
      return writeDecimal(bytes, textFromDecimal(value as Whole, type.scale), type.scale);
    case "numeric":
      return writeNumeric(bytes, value as string);
    case "date":
      return writeDate(bytes, value as number);
    case "timestamp":
    case "datetime":
      return writeTimestamp(bytes, value as Whole);
    case "interval":
      return writeInterval(bytes, value as Interval);
    case "uuid":
      return bytes.add(Buffer.from((value as string).replaceAll("-", ""), "hex"));
    case "bytes":
      return bytes.add(value as Uint8Array);
    case "embedding":
      return writeEmbedding(bytes, value as Float32Array);
    case "array":
      return writeArray(bytes, type.element, value as readonly Value[]);
    case "json":
      return writeJson(bytes, value as string, type.binary);
    default:
      return writeOther(bytes, type, value);
  }
}

function writeOther(bytes: GrowingBytes, type: DataType, value: Value): void {
  switch (type.kind) {
    case "range":
      return writeRange(bytes, type.bound, rangesOf(type, value)[0]);
    case "multirange":
      return writeMultirange(bytes, type.bound, rangesOf(type, value));
    default:
      if (isGeometric(type)) return writeShape(bytes, type.kind, value as string);
      return bytes.text(textFromValue(type, value));
  }
}

function writeShape(bytes: GrowingBytes, kind: GeometricKind, value: string): void {
  const numbers = numbersOfShape(value);
  if (kind === "path") bytes.int8(value.startsWith("(") ? 1 : 0);
  if (kind === "path" || kind === "polygon") bytes.int32(numbers.length / 2);
  for (const number of numbers) bytes.double(number);
}

/**
 * Writes a date as days since PostgreSQL's epoch. An infinite date has the same encoding in both
 * epochs.
 */
function writeDate(bytes: GrowingBytes, days: number): void {
  bytes.int32(isFiniteDate(days) ? days - EPOCH_DAYS : days);
}

function writeTimestamp(bytes: GrowingBytes, micros: Whole): void {
  bytes.whole(isFiniteTimestamp(micros) ? BigInt(micros) - BigInt(EPOCH_MICROS) : micros);
}

function writeNumber(bytes: GrowingBytes, kind: DataType["kind"], value: Whole): void {
  if (kind === "bigint") return bytes.whole(value);
  const number = Number(value);
  if (kind === "smallint") return bytes.int16(number);
  if (kind === "int") return bytes.int32(number);
  return kind === "float" ? bytes.float(number) : bytes.double(number);
}

function writeInterval(bytes: GrowingBytes, { days, micros, months }: Interval): void {
  bytes.whole(micros);
  bytes.int32(days);
  bytes.int32(months);
}

function writeEmbedding(bytes: GrowingBytes, numbers: Float32Array): void {
  bytes.int16(numbers.length);
  bytes.int16(0);
  for (const number of numbers) bytes.float(number);
}

/** Writes a JSON document. The binary form of JSONB begins with a version number. */
function writeJson(bytes: GrowingBytes, text: string, isBinary: boolean): void {
  if (isBinary) bytes.int8(1);
  bytes.text(text);
}

function writeNumeric(bytes: GrowingBytes, value: string): void {
  const text = textFromNumeric(value);
  if (isFiniteNumeric(value)) return writeDecimal(bytes, text, numericScale(value));
  const sign = SPECIAL_SIGNS.get(text) ?? 0;
  for (const field of [0, 0, sign, 0]) bytes.int16(field);
}

/** Writes a decimal as its sign and its base-10,000 digits. */
function writeDecimal(bytes: GrowingBytes, text: string, scale: number): void {
  const isNegative = text.startsWith("-");
  const [whole = "", fraction = ""] = (isNegative ? text.slice(1) : text).split(".");
  const wholeDigits = whole.padStart(Math.ceil(whole.length / 4) * 4, "0");
  const all = wholeDigits + fraction.padEnd(Math.ceil(fraction.length / 4) * 4, "0");
  const groups = all.match(/.{4}/g)?.map(Number) ?? [];
  let weight = wholeDigits.length / 4 - 1;
  while (groups[0] === 0) {
    groups.shift();
    weight -= 1;
  }
  while (groups.at(-1) === 0) groups.pop();
  bytes.int16(groups.length);
  bytes.int16(groups.length === 0 ? 0 : weight);
  bytes.int16(isNegative ? DECIMAL_MINUS : 0);
  bytes.int16(scale);
  for (const group of groups) bytes.int16(group);
}

function writeRange(bytes: GrowingBytes, bound: DataType, range: Range | undefined): void {
  if (range === undefined) return bytes.int8(RANGE_IS_EMPTY);
  const { lower, upper } = range;
  bytes.int8(
    (lower.isIncluded ? LOWER_IS_INCLUDED : 0) |
      (upper.isIncluded ? UPPER_IS_INCLUDED : 0) |
      (lower.value === null ? LOWER_IS_UNBOUNDED : 0) |
      (upper.value === null ? UPPER_IS_UNBOUNDED : 0),
  );
  for (const { value } of [lower, upper]) if (value !== null) writeCell(bytes, bound, value);
}

function writeMultirange(bytes: GrowingBytes, bound: DataType, ranges: readonly Range[]): void {
  bytes.int32(ranges.length);
  for (const range of ranges) {
    const lengthAt = bytes.length;
    bytes.int32(0);
    writeRange(bytes, bound, range);
    bytes.setInt32(lengthAt, bytes.length - lengthAt - 4);
  }
}

/** Returns the OID by which PostgreSQL identifies the type of an array element. */
function numberOfType(element: DataType): number {
  if (element.kind === "json" && element.binary) return JSONB_NUMBER;
  const known = isRangeType(element)
    ? RANGE_NUMBERS.get(typeName(element))
    : TYPE_NUMBERS.get(element.kind);
  return known ?? TEXT_NUMBER;
}

function writeArray(bytes: GrowingBytes, element: DataType, array: readonly Value[]): void {
  const lengths = dimensionsOf(array);
  const elements = elementsOf(array);
  bytes.int32(lengths.length);
  bytes.int32(elements.includes(null) ? 1 : 0);
  bytes.int32(numberOfType(element));
  for (const length of lengths) {
    bytes.int32(length);
    bytes.int32(1);
  }
  for (const item of elements) writeCell(bytes, element, item);
}

/** A byte buffer that grows as values are appended. Numbers are big-endian. */
class GrowingBytes {
  #buffer: Buffer = Buffer.allocUnsafeSlow(64 * 1024);
  length = 0;

  int8(value: number): void {
    this.#reserve(1);
    this.#buffer[this.length] = value;
    this.length += 1;
  }

  int16(value: number): void {
    this.#reserve(2);
    this.length = this.#buffer.writeInt16BE(value, this.length);
  }

  int32(value: number): void {
    this.#reserve(4);
    this.length = this.#buffer.writeInt32BE(value, this.length);
  }

  setInt32(at: number, value: number): void {
    this.#buffer.writeInt32BE(value, at);
  }

  whole(value: Whole): void {
    this.#reserve(8);
    if (typeof value === "bigint") {
      this.length = this.#buffer.writeBigInt64BE(value, this.length);
      return;
    }
    const high = Math.floor(value / HIGH);
    this.#buffer.writeInt32BE(high, this.length);
    this.length = this.#buffer.writeUInt32BE(value - high * HIGH, this.length + 4);
  }

  float(value: number): void {
    this.#reserve(4);
    this.length = this.#buffer.writeFloatBE(value, this.length);
  }

  double(value: number): void {
    this.#reserve(8);
    this.length = this.#buffer.writeDoubleBE(value, this.length);
  }

  text(text: string): void {
    this.#reserve(3 * text.length);
    this.length += this.#buffer.write(text, this.length, "utf8");
  }

  add(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  written(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }

  #reserve(bytes: number): void {
    if (this.length + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#buffer.length, this.length + bytes));
    this.#buffer.copy(larger, 0, 0, this.length);
    this.#buffer = larger;
  }
}
