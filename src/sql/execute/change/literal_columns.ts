/**
 * Reads a single column of a VALUES list of literals from the statement's bytes into a typed
 * array.
 *
 * A column that contains a literal of a different type is not read in this way, because the
 * literal needs a cast or may be invalid.
 */
import type { DataType, Vector } from "../../../types/mod.ts";
import { LiteralCell, type LiteralValuesStatement } from "../../parse/ast/ast.ts";
import { assertHeld, literalText } from "../../parse/text/literal_list.ts";

/** The maximum number of digits for which an integer is certain to fit into an INT. */
const INT_DIGITS_MAX = 9;

/**
 * The maximum length of a string for which copying it in a loop is faster than calling a function
 * that copies a range.
 */
const SHORT_TEXT_BYTES_MAX = 16;

/** The maximum number of digits for which a double is certain to represent a number exactly. */
const EXACT_DIGITS_MAX = 15;

/** The powers of ten that doubles represent exactly. */
const POWERS_OF_TEN: readonly number[] = Array.from({ length: 23 }, (_, n) => Number(`1e${n}`));

const MINUS = 45;
const DOT = 46;
const ZERO = 48;

/**
 * Returns the column at a position in a VALUES list; undefined if one of its cells needs a cast.
 */
export function readLiteralColumn(
  literals: LiteralValuesStatement,
  column: number,
  type: DataType,
): Vector | undefined {
  assertHeld(literals);
  const length = literals.rowCount;
  switch (type.kind) {
    case "int": {
      const values = new Int32Array(length);
      const isRead = readNumbers(literals, column, { values, digitsMax: INT_DIGITS_MAX });
      return isRead ? { kind: "i32", length, values, nulls: nullsOf(literals, column) } : undefined;
    }
    case "bigint": {
      const values = new Float64Array(length);
      const isRead = readNumbers(literals, column, { values, digitsMax: EXACT_DIGITS_MAX });
      return isRead ? { kind: "f64", length, values, nulls: nullsOf(literals, column) } : undefined;
    }
    case "double": {
      const values = new Float64Array(length);
      const isRead = readDoubles(literals, column, values);
      return isRead ? { kind: "f64", length, values, nulls: nullsOf(literals, column) } : undefined;
    }
    case "boolean":
      return readBooleans(literals, column);
    case "text":
      return type.lengthMax === undefined ? readTexts(literals, column) : undefined;
    default:
      return undefined;
  }
}

/**
 * Returns one byte per row, which is 1 if the value is NULL; undefined if the column contains no
 * NULL.
 */
function nullsOf(
  { columnCount, kinds, rowCount }: LiteralValuesStatement,
  column: number,
): Uint8Array | undefined {
  let nulls: Uint8Array | undefined;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    if (kinds[cell] !== LiteralCell.null) continue;
    nulls ??= new Uint8Array(rowCount);
    nulls[row] = 1;
  }
  return nulls;
}

/** Reads integers with few digits. Returns whether every cell is such an integer or NULL. */
function readNumbers(
  { bytes, columnCount, ends, kinds, rowCount, starts }: LiteralValuesStatement,
  column: number,
  { digitsMax, values }: { values: Int32Array | Float64Array; digitsMax: number },
): boolean {
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    if (kinds[cell] === LiteralCell.null) continue;
    if (kinds[cell] !== LiteralCell.integer) return false;
    const start = starts[cell] ?? 0;
    const end = ends[cell] ?? 0;
    const isNegative = bytes[start] === MINUS;
    const first = isNegative ? start + 1 : start;
    if (end - first > digitsMax) return false;
    let value = 0;
    for (let at = first; at < end; at += 1) value = value * 10 + ((bytes[at] ?? 0) - ZERO);
    // The value is subtracted from 0 rather than negated, because integers have no -0.
    values[row] = isNegative ? 0 - value : value;
  }
  return true;
}

function readDoubles(
  literals: LiteralValuesStatement,
  column: number,
  values: Float64Array,
): boolean {
  const { columnCount, kinds, rowCount } = literals;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    if (kind === LiteralCell.null) continue;
    if (kind !== LiteralCell.integer && kind !== LiteralCell.numeric) return false;
    const value = shortDecimal(literals, cell) ?? longDecimal(literals, cell);
    if (value === undefined) return false;
    values[row] = value + 0;
  }
  return true;
}

/**
 * Reads a decimal with few digits and no exponent. The quotient of two exactly represented numbers
 * is rounded once, so it is the nearest double (Clinger, "How to read floating point numbers
 * accurately", 1990). Returns undefined for any other number.
 */
function shortDecimal(
  { bytes, ends, starts }: LiteralValuesStatement,
  cell: number,
): number | undefined {
  const start = starts[cell] ?? 0;
  const end = ends[cell] ?? 0;
  const isNegative = bytes[start] === MINUS;
  const first = isNegative ? start + 1 : start;
  // The length includes one byte for the decimal point in addition to the digits.
  if (end - first > EXACT_DIGITS_MAX + 1) return undefined;
  let digits = 0;
  let point = -1;
  for (let at = first; at < end; at += 1) {
    const code = bytes[at] ?? 0;
    if (code === DOT) point = at;
    else if (code >= ZERO && code < ZERO + 10) digits = digits * 10 + (code - ZERO);
    else return undefined;
  }
  if (point === -1 && end - first > EXACT_DIGITS_MAX) return undefined;
  const scale = point === -1 ? 0 : end - point - 1;
  const value = digits / (POWERS_OF_TEN[scale] ?? 1);
  return isNegative ? -value : value;
}

/**
 * Reads a decimal that has many digits or an exponent. Returns undefined if it may be out of
 * range.
 */
function longDecimal(literals: LiteralValuesStatement, cell: number): number | undefined {
  const value = Number(literalText(literals, cell));
  return Number.isFinite(value) && value !== 0 ? value : undefined;
}

function readBooleans(literals: LiteralValuesStatement, column: number): Vector | undefined {
  const { columnCount, kinds, rowCount } = literals;
  const values = new Uint8Array(rowCount);
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    if (kind === LiteralCell.true) values[row] = 1;
    else if (kind !== LiteralCell.false && kind !== LiteralCell.null) return undefined;
  }
  return { kind: "bool", length: rowCount, values, nulls: nullsOf(literals, column) };
}

function readTexts(literals: LiteralValuesStatement, column: number): Vector | undefined {
  const { bytes, columnCount, ends, kinds, rowCount, starts } = literals;
  let byteCount = 0;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    // A decoded string is never longer than its encoded form.
    if (kind === LiteralCell.string || kind === LiteralCell.encodedString) {
      byteCount += (ends[cell] ?? 0) - (starts[cell] ?? 0);
    } else if (kind !== LiteralCell.null) return undefined;
  }
  const texts = Buffer.allocUnsafeSlow(byteCount);
  const offsets = new Uint32Array(rowCount + 1);
  let length = 0;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    if (kind === LiteralCell.string) {
      const start = (starts[cell] ?? 0) + 1;
      const count = (ends[cell] ?? 0) - 1 - start;
      if (count > SHORT_TEXT_BYTES_MAX) texts.set(bytes.subarray(start, start + count), length);
      else for (let at = 0; at < count; at += 1) texts[length + at] = bytes[start + at] ?? 0;
      length += count;
    } else if (kind === LiteralCell.encodedString) {
      length += texts.write(literalText(literals, cell), length, "utf8");
    }
    offsets[row + 1] = length;
  }
  const nulls = nullsOf(literals, column);
  return { kind: "utf8", length: rowCount, bytes: texts, offsets, nulls };
}
