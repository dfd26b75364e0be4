/**
 * The type and value of a number as it stands in a statement.
 */
import { BIGINT, DECIMAL_PRECISION_MAX, DOUBLE, decimalType, INT } from "./data_type.ts";
import { decimalShape, digitsFromText } from "./decimal.ts";
import { doubleFromText } from "./float_text.ts";
import { fitsInteger } from "./integer.ts";
import type { TypedValue } from "./json_cell.ts";
import { wholeFromBigint } from "./value.ts";

/** Digits that a number holds exactly: most literals are such. */
const SHORT_DIGITS = /^\d{1,15}$/;

/**
 * Reads a literal: INT if it fits, else BIGINT, else DECIMAL with the scale written; DOUBLE
 * outside 38 digits. Also `0xff`, `0o7`, `0b1` and underscores.
 *
 * @returns undefined if the text is no number.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if it is beyond DOUBLE.
 */
export function valueFromNumberText(text: string): TypedValue | undefined {
  if (SHORT_DIGITS.test(text)) {
    const value = Number(text);
    return { type: fitsInteger("int", value) ? INT : BIGINT, value };
  }
  const plain = text.replaceAll("_", "");
  if (/^0(?:x[0-9a-f]+|o[0-7]+|b[01]+)$/i.test(plain)) return wholeLiteral(BigInt(plain));
  if (plain.length > DECIMAL_PRECISION_MAX * 4 || /e[+-]?\d{3,}$/i.test(plain)) {
    return { type: DOUBLE, value: doubleFromText(plain, "double precision") };
  }
  const digits = digitsFromText(plain);
  if (digits === undefined) return undefined;
  if (/^\d+$/.test(plain)) return wholeLiteral(digits.unscaled);
  const shape = decimalShape(digits);
  if (shape === undefined) {
    return { type: DOUBLE, value: doubleFromText(plain, "double precision") };
  }
  const type = decimalType(shape.precision, shape.scale);
  return { type, value: wholeFromBigint(digits.unscaled) };
}

function wholeLiteral(magnitude: bigint): TypedValue {
  const value = wholeFromBigint(magnitude);
  if (fitsInteger("int", value)) return { type: INT, value };
  if (fitsInteger("bigint", value)) return { type: BIGINT, value };
  const shape = decimalShape({ unscaled: magnitude, scale: 0 });
  if (shape === undefined) return { type: DOUBLE, value: Number(magnitude) };
  return { type: decimalType(shape.precision, 0), value };
}
