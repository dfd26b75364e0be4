/**
 * Converts the cells of COPY FROM to columns.
 *
 * The common types are read from the bytes into typed arrays, one column at a time. If a cell is
 * written in an unusual form, the whole column is read again, using the casts of its type, which
 * accept every valid form and refuse anything else.
 */

import { DatabaseError } from "../../../base/errors.ts";
import {
  arrayFromJsonList,
  BIGINT,
  BOOLEAN,
  castValue,
  checkJson,
  type DataType,
  UNKNOWN,
  type Value,
  type Vector,
  valueFromNumberText,
  wholeFromBigint,
} from "../../../types/mod.ts";
import { CopyCell, type CopyCells, type CopyScanner } from "./copy_cells.ts";

/** The maximum number of digits for which an integer is certain to fit into an INT. */
const INT_DIGITS_MAX = 9;
const SMALLINT_DIGITS_MAX = 4;

/** The maximum number of digits for which a double is certain to represent a number exactly. */
const EXACT_DIGITS_MAX = 15;

const POWERS_OF_TEN: readonly number[] = Array.from({ length: 23 }, (_, n) => Number(`1e${n}`));

/**
 * The maximum length of a string for which copying it in a loop is faster than calling a function
 * that copies a range.
 */
const SHORT_TEXT_BYTES_MAX = 16;

const PLUS = 43;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const LOWER_F = 102;
const LOWER_T = 116;

/**
 * Converts the cells of a column to a vector. Returns undefined if a cell needs a cast or a
 * default.
 */
export function readCopyColumn(
  cells: CopyCells,
  column: number,
  { scanner, type }: { scanner: CopyScanner; type: DataType },
): Vector | undefined {
  const length = cells.rowCount;
  switch (type.kind) {
    case "smallint":
    case "int": {
      const values = new Int32Array(length);
      const digitsMax = type.kind === "int" ? INT_DIGITS_MAX : SMALLINT_DIGITS_MAX;
      if (!readWhole(cells, column, { values, digitsMax })) return undefined;
      return { kind: "i32", length, values, nulls: nullsOf(cells, column) };
    }
    case "bigint": {
      const values = new Float64Array(length);
      if (!readWhole(cells, column, { values, digitsMax: EXACT_DIGITS_MAX })) return undefined;
      return { kind: "f64", length, values, nulls: nullsOf(cells, column) };
    }
    case "double": {
      const values = new Float64Array(length);
      if (!readDecimals(cells, column, values)) return undefined;
      return { kind: "f64", length, values, nulls: nullsOf(cells, column) };
    }
    case "decimal": {
      const values = new Float64Array(length);
      if (!readScaled(cells, column, { values, ...type })) return undefined;
      return { kind: "f64", length, values, nulls: nullsOf(cells, column) };
    }
    case "boolean":
      return readBooleans(cells, column);
    case "text":
      return type.lengthMax === undefined ? readTexts(cells, column, scanner) : undefined;
    default:
      return undefined;
  }
}

/**
 * Returns one byte per row, which is 1 if the value is NULL; undefined if the column contains no
 * NULL.
 */
function nullsOf(
  { columnCount, kinds, rowCount }: CopyCells,
  column: number,
): Uint8Array | undefined {
  let nulls: Uint8Array | undefined;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    if (kinds[cell] !== CopyCell.null) continue;
    nulls ??= new Uint8Array(rowCount);
    nulls[row] = 1;
  }
  return nulls;
}

function isWritten(kind: number | undefined): boolean {
  return kind === CopyCell.plain || kind === CopyCell.json;
}

/** Reads integers with few digits. Returns whether every cell is such an integer or NULL. */
function readWhole(
  { bytes, columnCount, ends, kinds, rowCount, starts }: CopyCells,
  column: number,
  { digitsMax, values }: { values: Int32Array | Float64Array; digitsMax: number },
): boolean {
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    if (kind === CopyCell.null) continue;
    if (!isWritten(kind)) return false;
    const start = starts[cell] ?? 0;
    const end = ends[cell] ?? 0;
    const isNegative = bytes[start] === MINUS;
    const first = isNegative ? start + 1 : start;
    if (first === end || end - first > digitsMax) return false;
    let value = 0;
    for (let at = first; at < end; at += 1) {
      const digit = (bytes[at] ?? 0) - ZERO;
      if (digit < 0 || digit > 9) return false;
      value = value * 10 + digit;
    }
    // The value is subtracted from 0 rather than negated, because integers have no -0.
    values[row] = isNegative ? 0 - value : value;
  }
  return true;
}

/** The digits and scale of the number most recently read by {@linkcode readNumber}. */
const read = { digits: 0, scale: 0, isNegative: false };

/**
 * Reads a number with few digits and no exponent into `read`. Returns false for any other number.
 */
function readNumber(bytes: Buffer, start: number, end: number): boolean {
  const sign = bytes[start];
  const first = sign === MINUS || sign === PLUS ? start + 1 : start;
  let digits = 0;
  let count = 0;
  let point = -1;
  for (let at = first; at < end; at += 1) {
    const code = bytes[at] ?? 0;
    if (code === DOT && point === -1) {
      point = at;
      continue;
    }
    const digit = code - ZERO;
    if (digit < 0 || digit > 9) return false;
    digits = digits * 10 + digit;
    count += 1;
  }
  if (count === 0 || count > EXACT_DIGITS_MAX) return false;
  read.digits = digits;
  read.scale = point === -1 ? 0 : end - point - 1;
  read.isNegative = sign === MINUS;
  return true;
}

/**
 * Reads doubles. The quotient of two exactly represented numbers is rounded once, so it is the
 * nearest double (Clinger, "How to read floating point numbers accurately", 1990).
 */
function readDecimals(
  { bytes, columnCount, ends, kinds, rowCount, starts }: CopyCells,
  column: number,
  values: Float64Array,
): boolean {
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    if (kind === CopyCell.null) continue;
    if (!isWritten(kind)) return false;
    const start = starts[cell] ?? 0;
    const end = ends[cell] ?? 0;
    if (readNumber(bytes, start, end)) {
      const value = read.digits / (POWERS_OF_TEN[read.scale] ?? 1);
      values[row] = read.isNegative ? -value : value;
      continue;
    }
    const text = bytes.toString("latin1", start, end);
    if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return false;
    const value = Number(text);
    if (!Number.isFinite(value) || value === 0) return false;
    values[row] = value;
  }
  return true;
}

/**
 * Reads numbers with the scale of their column. Returns false if digits would have to be rounded.
 */
function readScaled(
  { bytes, columnCount, ends, kinds, rowCount, starts }: CopyCells,
  column: number,
  { precision, scale, values }: { values: Float64Array; precision: number; scale: number },
): boolean {
  const digitsMax = Math.min(precision, EXACT_DIGITS_MAX);
  const bound = POWERS_OF_TEN[digitsMax] ?? 0;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    if (kind === CopyCell.null) continue;
    if (!isWritten(kind)) return false;
    if (!readNumber(bytes, starts[cell] ?? 0, ends[cell] ?? 0)) return false;
    const shift = scale - read.scale;
    if (shift < 0 || shift > EXACT_DIGITS_MAX) return false;
    const value = read.digits * (POWERS_OF_TEN[shift] ?? 0);
    if (value >= bound) return false;
    values[row] = read.isNegative ? 0 - value : value;
  }
  return true;
}

/** Reads booleans in the forms `t`, `f`, `true` and `false`. */
function readBooleans(cells: CopyCells, column: number): Vector | undefined {
  const { bytes, columnCount, ends, kinds, rowCount, starts } = cells;
  const values = new Uint8Array(rowCount);
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    if (kind === CopyCell.null) continue;
    if (!isWritten(kind)) return undefined;
    const start = starts[cell] ?? 0;
    const length = (ends[cell] ?? 0) - start;
    const first = bytes[start];
    const isLong = length > 1;
    if (isLong && !isWord(bytes, start, length, first === LOWER_T ? "true" : "false"))
      return undefined;
    if (length === 0 || (first !== LOWER_T && first !== LOWER_F)) return undefined;
    values[row] = first === LOWER_T ? 1 : 0;
  }
  return { kind: "bool", length: rowCount, values, nulls: nullsOf(cells, column) };
}

function isWord(bytes: Buffer, start: number, length: number, word: string): boolean {
  return length === word.length && bytes.toString("latin1", start, start + length) === word;
}

function readTexts(cells: CopyCells, column: number, scanner: CopyScanner): Vector | undefined {
  const { bytes, columnCount, ends, kinds, rowCount, starts } = cells;
  let byteCount = 0;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    // The text of an encoded cell is never longer than the cell.
    if (kind === CopyCell.plain || kind === CopyCell.encoded) {
      byteCount += (ends[cell] ?? 0) - (starts[cell] ?? 0);
    } else if (kind !== CopyCell.null) return undefined;
  }
  const texts = Buffer.allocUnsafeSlow(byteCount);
  const offsets = new Uint32Array(rowCount + 1);
  let length = 0;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    const start = starts[cell] ?? 0;
    const end = ends[cell] ?? 0;
    if (kind === CopyCell.plain) {
      const count = end - start;
      if (count > SHORT_TEXT_BYTES_MAX) texts.set(bytes.subarray(start, end), length);
      else for (let at = 0; at < count; at += 1) texts[length + at] = bytes[start + at] ?? 0;
      length += count;
    } else if (kind === CopyCell.encoded) {
      let text: string;
      try {
        text = scanner.decode(bytes, { start, end });
      } catch (error) {
        // Ignoring the error is safe: the cast will find the same fault and report its location.
        if (error instanceof DatabaseError) return undefined;
        throw error;
      }
      if (text.includes("\u0000") || !text.isWellFormed()) return undefined;
      length += texts.write(text, length, "utf8");
    }
    offsets[row + 1] = length;
  }
  return { kind: "utf8", length: rowCount, bytes: texts, offsets, nulls: nullsOf(cells, column) };
}

/**
 * Reads a cell that is neither NULL nor DEFAULT.
 * @throws {DatabaseError}
 */
export function copyValue(
  cells: CopyCells,
  cell: number,
  { nowMicros, scanner, type: to }: { scanner: CopyScanner; type: DataType; nowMicros: number },
): Value {
  const range = { start: cells.starts[cell] ?? 0, end: cells.ends[cell] ?? 0 };
  const mode = "assignment";
  if (cells.kinds[cell] !== CopyCell.json) {
    const text =
      cells.kinds[cell] === CopyCell.plain
        ? cells.plainText(cell)
        : scanner.decode(cells.bytes, range);
    if (scanner.isJson) return valueOfJsonString(text, to, nowMicros);
    return castValue(text, { from: UNKNOWN, to, mode, nowMicros });
  }
  return valueOfJson(cells.plainText(cell), to, nowMicros);
}

/** Converts the content of a JSON string, written as in query results, to a value. */
function valueOfJsonString(text: string, to: DataType, nowMicros: number): Value {
  const mode = "assignment";
  // In query results, a timestamp that is too large for a JSON number is written as a string.
  if (isInstant(to) && /^-?\d{16,18}$/.test(text)) {
    return castValue(wholeFromBigint(BigInt(text)), { from: BIGINT, to, mode });
  }
  return castValue(text, { from: UNKNOWN, to, mode, nowMicros });
}

function isInstant({ kind }: DataType): boolean {
  return kind === "timestamp" || kind === "datetime";
}

/** The type of a JSON array or object passed as text. */
const JSON_PARAMETER: DataType = { kind: "unknown", isJson: true };

/** Matches a JSON number. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Converts a JSON value that is neither a string nor null, written as in query results, to a
 * value.
 */
function valueOfJson(text: string, to: DataType, nowMicros: number): Value {
  const mode = "assignment";
  if (to.kind === "json") return castValue(text, { from: UNKNOWN, to, mode });
  if (text === "true" || text === "false") {
    return castValue(text === "true", { from: BOOLEAN, to, mode });
  }
  if (JSON_NUMBER.test(text)) {
    const typed = valueFromNumberText(text);
    if (typed !== undefined) return castValue(typed.value, { from: typed.type, to, mode });
  }
  if (text.startsWith("[") || text.startsWith("{")) {
    checkJson(text);
    if (to.kind === "array" && text.startsWith("[")) {
      const { element } = to;
      return arrayFromJsonList(element, text, (raw, isString) =>
        isString
          ? valueOfJsonString(raw, element, nowMicros)
          : valueOfJson(raw, element, nowMicros),
      );
    }
    return castValue(text, { from: JSON_PARAMETER, to, mode });
  }
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot convert the JSON value ${text.slice(0, 40)} to the type ${to.kind}`,
  );
}
