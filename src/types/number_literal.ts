/** Determines the type and value of a numeric literal in a statement. */
import { BIGINT, DECIMAL_PRECISION_MAX, decimalType, INT, NUMERIC } from "./data_type.ts";
import { decimalShape, digitsFromText } from "./decimal.ts";
import { fitsInteger } from "./integer.ts";
import type { TypedValue } from "./json_cell.ts";
import { numericFromText, numericOf } from "./numeric.ts";
import { wholeFromBigint } from "./value.ts";

/**
 * Matches integers with no more digits than a double represents exactly. Most literals have this
 * form.
 */
const SHORT_DIGITS = /^-?\d{1,15}$/;

/**
 * Parses a literal together with its leading minus. The type is INT if the value fits, else
 * BIGINT, else DECIMAL with the scale as written, or NUMERIC beyond 38 digits. `0xff`, `0o7`,
 * `0b1` and underscores are accepted as well.
 *
 * @returns undefined if the text is not a number.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if it is beyond the range of NUMERIC.
 */
export function valueFromNumberText(text: string): TypedValue | undefined {
  if (SHORT_DIGITS.test(text)) {
    // Adding 0 turns -0 into 0, because integers have only one zero.
    const value = Number(text) + 0;
    return { type: fitsInteger("int", value) ? INT : BIGINT, value };
  }
  const plain = text.replaceAll("_", "");
  const radix = /^(-?)(0(?:x[0-9a-f]+|o[0-7]+|b[01]+))$/i.exec(plain);
  if (radix !== null) {
    const magnitude = BigInt(radix[2] ?? "");
    return wholeLiteral(radix[1] === "-" ? -magnitude : magnitude);
  }
  if (plain.length > DECIMAL_PRECISION_MAX * 4 || /e[+-]?\d{3,}$/i.test(plain)) {
    return longLiteral(plain);
  }
  const digits = digitsFromText(plain);
  if (digits === undefined) return undefined;
  if (/^-?\d+$/.test(plain)) return wholeLiteral(digits.unscaled);
  const shape = decimalShape(digits);
  if (shape === undefined) return longLiteral(plain);
  const type = decimalType(shape.precision, shape.scale);
  return { type, value: wholeFromBigint(digits.unscaled) };
}

function longLiteral(text: string): TypedValue | undefined {
  const value = numericFromText(text);
  return value === undefined ? undefined : { type: NUMERIC, value };
}

function wholeLiteral(whole: bigint): TypedValue {
  const value = wholeFromBigint(whole);
  if (fitsInteger("int", value)) return { type: INT, value };
  if (fitsInteger("bigint", value)) return { type: BIGINT, value };
  const shape = decimalShape({ unscaled: whole, scale: 0 });
  if (shape === undefined) return { type: NUMERIC, value: numericOf(whole, 0) };
  return { type: decimalType(shape.precision, 0), value };
}
