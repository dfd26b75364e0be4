/**
 * Implements arithmetic on values of NUMERIC without a precision. Results have the same scale as
 * in PostgreSQL: a sum has the larger scale of its operands, a product has the sum of their
 * scales, and a quotient has at least 16 significant digits.
 */
import { DatabaseError } from "../base/errors.ts";
import {
  addWhole,
  digitCountOf,
  divideWhole,
  multiplyWhole,
  negateWhole,
  powerOfTen,
  remainderWhole,
  rescale,
  roundedBig,
  subtractWhole,
} from "./decimal.ts";
import {
  type BigDecimal,
  bigDecimalOf,
  compareNumerics,
  headOf,
  headPlace,
  isFiniteNumeric,
  NUMERIC_NAN,
  type NumericHead,
  numericHead,
  numericOf,
  numericOfSpecial,
  numericScale,
  numericShowing,
  numericSign,
  shortDecimalOf,
  textFromNumeric,
  ZERO_HEAD,
} from "./numeric.ts";
import type { Whole } from "./value.ts";

/** The minimum number of significant digits in a rounded result. */
export const SIGNIFICANT_DIGITS_MIN = 16;

/** The maximum scale to which a result is rounded. */
export const RESULT_SCALE_MAX = 1000;

/**
 * Converts NaN or an infinity to the corresponding double. Returns `finite` for any other value.
 */
function specialOr(value: string, finite: number): number {
  return isFiniteNumeric(value) ? finite : Number(textFromNumeric(value));
}

function isEitherSpecial(left: string, right: string): boolean {
  return !isFiniteNumeric(left) || !isFiniteNumeric(right);
}

/** Returns the unscaled integers of two numbers at the larger of their two scales. */
function atOneScale(left: string, right: string): { a: Whole; b: Whole; scale: number } {
  const l = shortDecimalOf(left);
  const r = shortDecimalOf(right);
  const scale = Math.max(l.scale, r.scale);
  return {
    a: rescale(l.unscaled, l.scale, scale),
    b: rescale(r.unscaled, r.scale, scale),
    scale,
  };
}

export function addNumerics(left: string, right: string): string {
  if (isEitherSpecial(left, right)) {
    return numericOfSpecial(specialOr(left, 0) + specialOr(right, 0));
  }
  const { a, b, scale } = atOneScale(left, right);
  return numericOf(addWhole(a, b), scale);
}

export function subtractNumerics(left: string, right: string): string {
  if (isEitherSpecial(left, right)) {
    return numericOfSpecial(specialOr(left, 0) - specialOr(right, 0));
  }
  const { a, b, scale } = atOneScale(left, right);
  return numericOf(subtractWhole(a, b), scale);
}

export function multiplyNumerics(left: string, right: string): string {
  if (isEitherSpecial(left, right)) {
    return numericOfSpecial(
      specialOr(left, numericSign(left)) * specialOr(right, numericSign(right)),
    );
  }
  const l = shortDecimalOf(left);
  const r = shortDecimalOf(right);
  return numericOf(multiplyWhole(l.unscaled, r.unscaled), l.scale + r.scale);
}

export function negateNumeric(value: string): string {
  if (!isFiniteNumeric(value)) return numericOfSpecial(-specialOr(value, 0));
  const { scale, unscaled } = shortDecimalOf(value);
  return numericOf(negateWhole(unscaled), scale);
}

export function absoluteNumeric(value: string): string {
  return numericSign(value) < 0 ? negateNumeric(value) : value;
}

/** Refuses a division by zero. @throws {DatabaseError} DIVISION_BY_ZERO */
function refuseZero(left: string, right: string): void {
  if (left === NUMERIC_NAN || numericSign(right) !== 0) return;
  throw new DatabaseError("DIVISION_BY_ZERO", "Cannot divide by zero");
}

/** Divides two numbers. @throws {DatabaseError} DIVISION_BY_ZERO */
export function divideNumerics(left: string, right: string): string {
  refuseZero(left, right);
  if (isEitherSpecial(left, right)) return specialQuotient(left, right);
  return quotientAt(left, right, quotientScale(left, right));
}

function specialQuotient(left: string, right: string): string {
  const sign = isFiniteNumeric(left) ? 0 : numericSign(right);
  return numericOfSpecial(specialOr(left, sign) / specialOr(right, numericSign(right)));
}

/** Returns the quotient of two finite numbers, rounded to a scale. */
export function quotientAt(left: string, right: string, scale: number): string {
  return bigQuotient(bigDecimalOf(left), bigDecimalOf(right), scale);
}

function bigQuotient(left: BigDecimal, right: BigDecimal, scale: number): string {
  const shift = scale - left.scale + right.scale;
  const dividend = shift > 0 ? left.unscaled * powerOfTen(shift) : left.unscaled;
  const divisor = shift < 0 ? right.unscaled * powerOfTen(-shift) : right.unscaled;
  return numericOf(roundedBig(dividend, divisor), scale);
}

/** A quotient is tested for exactness with this many more digits than its operands have. */
const EXACT_SHIFT = 4;
const EXACT_FACTOR: number = 10 ** EXACT_SHIFT;

/**
 * Returns a function that divides numbers with two given scales. The divisor must not be 0.
 *
 * A quotient has at least 16 significant digits, which a double cannot represent exactly. A
 * quotient that ends after a few more digits than its operands have, such as that of a division by
 * 2, needs no bigint.
 */
export function quotientAtScales(
  leftScale: number,
  rightScale: number,
): (left: Whole, right: Whole) => string {
  return (left, right) => {
    const significant = significantScale(wholeHead(left, leftScale), wholeHead(right, rightScale));
    const scale = resultScale(significant, leftScale, rightScale);
    if (typeof left === "number" && typeof right === "number") {
      const shifted = left * EXACT_FACTOR;
      const needed = Math.max(0, leftScale - rightScale + EXACT_SHIFT);
      if (needed <= scale && Number.isSafeInteger(shifted) && shifted % right === 0) {
        return numericShowing(shifted / right, leftScale - rightScale + EXACT_SHIFT, scale);
      }
    }
    return bigQuotient(
      { unscaled: BigInt(left), scale: leftScale },
      { unscaled: BigInt(right), scale: rightScale },
      scale,
    );
  };
}

/** Returns the first group of digits of `value` / 10^`scale`. */
export function wholeHead(value: Whole, scale: number): NumericHead {
  if (typeof value !== "number") return bigHead({ unscaled: value, scale });
  if (value === 0) return ZERO_HEAD;
  const size = Math.abs(value);
  const digits = digitCountOf(size);
  const { count, weight } = headPlace(digits - scale);
  const rest = digits - count;
  const power = 10 ** Math.abs(rest);
  return { weight, first: rest > 0 ? (size - (size % power)) / power : size * power };
}

/** Divides numbers, which may have more digits than a NUMERIC. The divisor must not be 0. */
export function quotientOf(left: BigDecimal, right: BigDecimal): string {
  const scale = significantScale(bigHead(left), bigHead(right));
  return bigQuotient(left, right, resultScale(scale, left.scale, right.scale));
}

function bigHead({ scale, unscaled }: BigDecimal): NumericHead {
  if (unscaled === 0n) return ZERO_HEAD;
  const text = unscaled.toString();
  const digits = unscaled < 0n ? text.slice(1) : text;
  return headOf(digits, digits.length - scale);
}

/** Returns the scale that gives a quotient at least 16 significant digits. */
function quotientScale(left: string, right: string): number {
  const scale = significantScale(numericHead(left), numericHead(right));
  return resultScale(scale, numericScale(left), numericScale(right));
}

export function significantScale(left: NumericHead, right: NumericHead): number {
  const weight = left.weight - right.weight - (left.first <= right.first ? 1 : 0);
  return SIGNIFICANT_DIGITS_MIN - weight * 4;
}

/** Returns the limited scale of a result, which is at least the scale of each operand. */
export function resultScale(scale: number, ...operands: readonly number[]): number {
  return Math.min(RESULT_SCALE_MAX, Math.max(scale, ...operands, 0));
}

/**
 * Divides two numbers and truncates the quotient to an integer. @throws {DatabaseError}
 * DIVISION_BY_ZERO
 */
export function wholeQuotient(left: string, right: string): string {
  refuseZero(left, right);
  if (isEitherSpecial(left, right)) return specialQuotient(left, right);
  const { a, b } = atOneScale(left, right);
  return numericOf(divideWhole(a, b), 0);
}

/**
 * Returns the remainder of a division, with the dividend's sign. @throws {DatabaseError}
 * DIVISION_BY_ZERO
 */
export function remainderNumeric(left: string, right: string): string {
  refuseZero(left, right);
  if (isEitherSpecial(left, right)) {
    const isKept = isFiniteNumeric(left) && right !== NUMERIC_NAN;
    return isKept ? left : NUMERIC_NAN;
  }
  const { a, b, scale } = atOneScale(left, right);
  return numericOf(remainderWhole(a, b), scale);
}

/**
 * Applies an integer function to the unscaled integers of two finite numbers, at the larger of
 * their scales.
 */
export function wholesAtOneScale(
  left: string,
  right: string,
  compute: (left: bigint, right: bigint) => bigint,
): string {
  if (isEitherSpecial(left, right)) return NUMERIC_NAN;
  const { a, b, scale } = atOneScale(left, right);
  return numericOf(compute(BigInt(a), BigInt(b)), scale);
}

/**
 * Returns the number of the bucket that a value falls into. The bounds must be finite and differ.
 */
export function bucketOfNumeric(
  value: string,
  { high, low }: { readonly low: string; readonly high: string },
  count: number,
): number {
  const isAscending = compareNumerics(low, high) < 0;
  const order = isAscending ? compareNumerics : (a: string, b: string) => compareNumerics(b, a);
  if (order(value, low) < 0) return 0;
  if (order(value, high) >= 0) return count + 1;
  const reached = multiplyNumerics(subtractNumerics(value, low), numericOf(count, 0));
  return Number(textFromNumeric(wholeQuotient(reached, subtractNumerics(high, low)))) + 1;
}
