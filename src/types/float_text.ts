/**
 * Converts floating-point numbers to text and back. The text has the fewest digits that reproduce
 * the value at its width, in PostgreSQL's notation. Also checks the ranges of 32-bit and 64-bit
 * numbers.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";
import { compareNumerics, numericFromText, numericOf } from "./numeric.ts";
import { multiplyNumerics } from "./numeric_arithmetic.ts";

const FLOAT_NORMAL_MIN = 1.1754943508222875e-38;

/**
 * Returns the double whose shortest text is also the shortest text that reproduces the 32-bit
 * value.
 */
export function shortestFloat(value: number): number {
  if (!Number.isFinite(value)) return value;
  if (Number.isInteger(value) && Math.abs(value) < 16_777_216) return value;
  const quick = shortestMiddling(value);
  if (quick !== undefined) return quick;
  // 32-bit floating-point numbers always preserve six digits, unless they are subnormal.
  const from = Math.abs(value) < FLOAT_NORMAL_MIN ? 1 : 6;
  for (let precision = from; precision < 9; precision += 1) {
    const candidate = Number(value.toPrecision(precision));
    if (readsAs(candidate, value)) return candidate;
  }
  return Number(value.toPrecision(9));
}

/**
 * Computes {@linkcode shortestFloat} for numbers of moderate size: an integer below 2^53 divided
 * by a power of ten is the double with exactly these digits.
 */
function shortestMiddling(value: number): number | undefined {
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e6) return undefined;
  const exponent = Math.floor(Math.log10(size));
  for (let precision = 6; precision <= 9; precision += 1) {
    const power = 10 ** (precision - 1 - exponent);
    const candidate = Math.round(value * power) / power;
    if (readsAs(candidate, value)) return candidate;
  }
  return undefined;
}

/** Whether parsing the shortest text of a double yields the given 32-bit number. */
function readsAs(candidate: number, value: number): boolean {
  return nearestFloat(candidate, String(candidate), Math.fround(candidate)) === value;
}

export function textFromFloat(value: number): string {
  return notation(shortestFloat(value), 6);
}

export function textFromDouble(value: number): string {
  return notation(value, 15);
}

/**
 * Formats a number. The notation is exponential if the exponent is below -4, or at least the
 * number of digits that the type guarantees.
 */
function notation(value: number, digitCount: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa, exponentText] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  const isPlain = exponent >= -4 && exponent < digitCount;
  if (isPlain) {
    const plain = value.toString();
    // JavaScript writes numbers down to 1e-6 without an exponent, so this text has none.
    return plain;
  }
  const size = Math.abs(exponent);
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${size < 10 ? "0" : ""}${size}`;
}

/**
 * Checks that the result of DOUBLE arithmetic on finite operands is finite.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function finiteDouble(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot represent the result as double precision: it is beyond the range of the type",
  );
}

/**
 * Rounds a double to 32 bits. NaN and infinity stay as they are.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function floatFromDouble(value: number): number {
  return Number.isFinite(value) ? finiteFloat(value) : value;
}

/** Rounds a finite number to 32 bits. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function finiteFloat(value: number): number {
  const rounded = Math.fround(value);
  if (Number.isFinite(rounded) && (rounded !== 0 || value === 0)) return rounded;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot represent the value as real: its magnitude must be between 1e-45 and 3.4e38, or 0",
  );
}

/** Each digit can match only one part of the pattern, so matching never backtracks. */
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** Matches the words for NaN and infinity. */
const NOT_FINITE = /^([+-]?)(?:(nan)|inf(?:inity)?)$/i;

/** Parses a number, NaN or infinity. @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE */
export function doubleFromText(text: string, typeWord: string): number {
  const trimmed = text.trim();
  if (!NUMBER.test(trimmed)) {
    const word = NOT_FINITE.exec(trimmed);
    if (word !== null) {
      if (word[2] !== undefined) return Number.NaN;
      return word[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
    }
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as ${typeWord}: expected a number`,
    );
  }
  const value = Number(trimmed);
  const isLost = value === 0 && /[1-9]/.test(trimmed.split(/e/i, 1)[0] ?? "");
  if (Number.isFinite(value) && !isLost) return value;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read ${excerpt(text)} as ${typeWord}: it is beyond the range of the type`,
  );
}

/** Parses a 32-bit number, NaN or infinity. @throws {DatabaseError} INVALID_VALUE, … */
export function floatFromText(text: string, typeWord: string): number {
  const value = doubleFromText(text, typeWord);
  return Number.isFinite(value) ? nearestFloat(value, text.trim(), finiteFloat(value)) : value;
}

/**
 * Returns the 32-bit number nearest to a decimal number. If the double nearest to the decimal lies
 * exactly between two 32-bit numbers, the digits decide, because the decimal itself may lie
 * slightly above or below.
 *
 * @param value The double nearest to the decimal.
 * @param rounded The 32-bit number nearest to the double.
 */
function nearestFloat(value: number, text: string, rounded: number): number {
  const other = 2 * value - rounded;
  if (rounded === value || Math.fround(other) !== other) return rounded;
  const given = numericFromText(text);
  if (given === undefined) return rounded;
  // The midpoint of two adjacent 32-bit numbers is a multiple of 2^-150.
  const middle = numericOf(BigInt(value * 2 ** 150), 0);
  const order = compareNumerics(multiplyNumerics(given, numericOf(2n ** 150n, 0)), middle);
  return order === 0 || order > 0 === rounded > value ? rounded : other;
}
