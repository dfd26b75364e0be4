/**
 * Computes square roots, powers, exponentials and logarithms of NUMERIC values with as many digits
 * as PostgreSQL: at least 16 significant digits, and at least as many decimal places as the
 * arguments have.
 *
 * Every computation uses integers with a few digits more than the result. The exponential function
 * halves its argument until a short Taylor series is exact enough, and then squares the sum as
 * many times. The logarithm takes square roots until the series of the inverse hyperbolic tangent
 * is short.
 */
import { DatabaseError } from "../base/errors.ts";
import { powerOfTen, roundedBig } from "./decimal.ts";
import {
  type BigDecimal,
  bigDecimalOf,
  compareNumerics,
  doubleFromNumeric,
  isFiniteNumeric,
  NUMERIC_NAN,
  numericExponent,
  numericFromText,
  numericHead,
  numericOf,
  numericOfSpecial,
  numericOverflow,
  numericScale,
  numericSign,
  textFromNumeric,
} from "./numeric.ts";
import {
  absoluteNumeric,
  multiplyNumerics,
  negateNumeric,
  quotientAt,
  RESULT_SCALE_MAX,
  resultScale,
  SIGNIFICANT_DIGITS_MIN,
  subtractNumerics,
} from "./numeric_arithmetic.ts";

const ONE = numericOf(1n, 0);
const MINUS_ONE = numericOf(-1n, 0);
const INFINITY = numericOfSpecial(Number.POSITIVE_INFINITY);

const LOG10_E = Math.LOG10E;

/** Above this argument, an exponential has more digits than a result may have. */
const EXPONENT_MAX = 6000;

/** How many more digits a computation uses than its result has. */
const GUARD_DIGITS = 12;

function undefinedFor(what: string): DatabaseError {
  return new DatabaseError("VALUE_OUT_OF_RANGE", what);
}

/** Computes the square root of a number. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function squareRootNumeric(value: string): string {
  if (numericSign(value) < 0) {
    throw undefinedFor("Cannot compute the square root of a negative number");
  }
  if (!isFiniteNumeric(value)) return value;
  const { weight } = numericHead(value);
  const scale = resultScale(SIGNIFICANT_DIGITS_MIN + 1 - 2 * (weight + 1), numericScale(value));
  return rootAt(value, scale);
}

/** Returns the square root of a finite number, rounded to a scale. */
export function rootAt(value: string, scale: number): string {
  const { scale: from, unscaled } = bigDecimalOf(value);
  // The root is first truncated to one digit more than the result has, and then rounded.
  const shift = 2 * (scale + 1) - from;
  const square = shift >= 0 ? unscaled * powerOfTen(shift) : unscaled / powerOfTen(-shift);
  return numericOf(roundedBig(wholeRoot(square), 10n), scale);
}

/** Returns the largest integer whose square is not above `square`, by Newton's method. */
function wholeRoot(square: bigint): bigint {
  if (square < 2n) return square;
  let root = 1n << BigInt((square.toString(16).length * 4 + 1) >> 1);
  for (;;) {
    const next = (root + square / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** Computes the exponential of a number. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function exponentialNumeric(value: string): string {
  if (!isFiniteNumeric(value)) return numericSign(value) < 0 ? numericOf(0n, 0) : value;
  const weight = Math.trunc(Math.max(-2000, Math.min(2000, doubleFromNumeric(value) * LOG10_E)));
  const scale = resultScale(SIGNIFICANT_DIGITS_MIN - weight, numericScale(value));
  return exponentialAt(value, scale);
}

/** Returns e to the power of a finite number, rounded to a scale. */
function exponentialAt(value: string, scale: number): string {
  const size = doubleFromNumeric(value);
  if (Math.abs(size) >= EXPONENT_MAX) {
    if (size > 0) throw numericOverflow();
    return numericOf(0n, scale);
  }
  const halvings = Math.abs(size) > 0.01 ? Math.ceil(Math.log2(Math.abs(size) / 0.01)) : 0;
  const weight = Math.max(0, Math.ceil(size * LOG10_E));
  const digits = scale + weight + Math.ceil(halvings * 0.31) + GUARD_DIGITS;
  const one = powerOfTen(digits);
  const x = scaledTo(bigDecimalOf(value), digits) >> BigInt(halvings);
  let term = one;
  let sum = one;
  for (let n = 1n; term !== 0n; n += 1n) {
    term = (term * x) / (one * n);
    sum += term;
  }
  for (let count = 0; count < halvings; count += 1) sum = (sum * sum) / one;
  return numericOf(roundedBig(sum, powerOfTen(digits - scale)), scale);
}

function scaledTo({ scale, unscaled }: BigDecimal, digits: number): bigint {
  return digits >= scale
    ? unscaled * powerOfTen(digits - scale)
    : roundedBig(unscaled, powerOfTen(scale - digits));
}

/** Checks that a number has a logarithm. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
function requireLogarithm(value: string): void {
  const sign = numericSign(value);
  if (sign > 0 || Number.isNaN(sign)) return;
  const what = sign < 0 ? "a negative number" : "0";
  throw undefinedFor(`Cannot compute the logarithm of ${what}`);
}

/** Computes the natural logarithm of a number. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function naturalLogarithm(value: string): string {
  requireLogarithm(value);
  if (!isFiniteNumeric(value)) return value;
  const scale = resultScale(SIGNIFICANT_DIGITS_MIN - logarithmWeight(value), numericScale(value));
  return logarithmAt(value, scale);
}

const NEAR_ONE = [numericFromText("0.9") ?? ONE, numericFromText("1.1") ?? ONE] as const;

/** Estimates the power of ten of a natural logarithm's first digit. */
function logarithmWeight(value: string): number {
  const [low, high] = NEAR_ONE;
  if (compareNumerics(value, low) >= 0 && compareNumerics(value, high) <= 0) {
    const distance = subtractNumerics(value, ONE);
    return numericSign(distance) === 0 ? 0 : numericExponent(distance) - 1;
  }
  const exponent = numericExponent(value);
  // A double needs only the first 16 digits.
  const text = textFromNumeric(value)
    .replace(/^0\.0*/, "")
    .replace(".", "")
    .slice(0, 16);
  const logarithm = Math.log(Number(`0.${text}`)) + exponent * Math.LN10;
  return Math.trunc(Math.log10(Math.abs(logarithm)));
}

/** Returns the natural logarithm of a positive number, rounded to a scale. */
function logarithmAt(value: string, scale: number): string {
  const digits = scale + GUARD_DIGITS;
  return numericOf(roundedBig(fixedLogarithm(value, digits), powerOfTen(GUARD_DIGITS)), scale);
}

/** Returns the natural logarithm of a positive number, multiplied by 10^`digits`. */
function fixedLogarithm(value: string, digits: number): bigint {
  const { scale, unscaled } = bigDecimalOf(value);
  const exponent = numericExponent(value);
  // Numbers near 1 are not scaled, because digits would cancel out.
  const tens = exponent === 0 || exponent === 1 ? 0 : exponent - 1;
  const working = digits + GUARD_DIGITS;
  const one = powerOfTen(working);
  const shift = working - scale - tens;
  const mantissa =
    shift >= 0 ? unscaled * powerOfTen(shift) : roundedBig(unscaled, powerOfTen(-shift));
  const sum = seriesLogarithm(mantissa, one) + BigInt(tens) * lnTen(working);
  return roundedBig(sum, powerOfTen(GUARD_DIGITS));
}

let knownLnTen: { readonly digits: number; readonly value: bigint } | undefined;

function lnTen(digits: number): bigint {
  if (knownLnTen === undefined || knownLnTen.digits < digits) {
    const one = powerOfTen(digits + GUARD_DIGITS);
    const value = seriesLogarithm(10n * one, one) / powerOfTen(GUARD_DIGITS);
    knownLnTen = { digits, value };
  }
  return knownLnTen.value / powerOfTen(knownLnTen.digits - digits);
}

/** Returns the natural logarithm of `x` / `one`, multiplied by `one`. */
function seriesLogarithm(x: bigint, one: bigint): bigint {
  let root = x;
  let doublings = 1n;
  const near = one / 100n;
  while (root - one > near || one - root > near) {
    root = wholeRoot(root * one);
    doublings += 1n;
  }
  const z = ((root - one) * one) / (root + one);
  const square = (z * z) / one;
  let power = z;
  let sum = 0n;
  for (let n = 1n; power !== 0n; n += 2n) {
    sum += power / n;
    power = (power * square) / one;
  }
  return sum << doublings;
}

/** Returns a logarithm to a base. @throws {DatabaseError} VALUE_OUT_OF_RANGE, DIVISION_BY_ZERO */
export function logarithmToBase(base: string, value: string): string {
  if (base === NUMERIC_NAN || value === NUMERIC_NAN) return NUMERIC_NAN;
  requireLogarithm(base);
  requireLogarithm(value);
  if (!isFiniteNumeric(base)) return isFiniteNumeric(value) ? numericOf(0n, 0) : NUMERIC_NAN;
  if (!isFiniteNumeric(value)) return value;
  if (compareNumerics(base, ONE) === 0) {
    throw new DatabaseError(
      "DIVISION_BY_ZERO",
      "Cannot compute a logarithm to base 1: the base must be a positive number other than 1",
    );
  }
  const baseWeight = logarithmWeight(base);
  const valueWeight = logarithmWeight(value);
  const weight = valueWeight - baseWeight;
  const scale = resultScale(
    SIGNIFICANT_DIGITS_MIN - weight,
    numericScale(base),
    numericScale(value),
  );
  const digits =
    scale + Math.max(0, weight) + Math.max(0, -baseWeight, -valueWeight) + GUARD_DIGITS;
  const dividend = fixedLogarithm(value, digits) * powerOfTen(scale);
  return numericOf(roundedBig(dividend, fixedLogarithm(base, digits)), scale);
}

/** Raises a number to a power. @throws {DatabaseError} VALUE_OUT_OF_RANGE, DIVISION_BY_ZERO */
export function powerNumeric(base: string, exponent: string): string {
  const sign = numericSign(base);
  const exponentSign = numericSign(exponent);
  if (!isFiniteNumeric(base) || !isFiniteNumeric(exponent)) return specialPower(base, exponent);
  if (sign === 0 && exponentSign < 0) throw zeroToNegative();
  const whole = wholeExponent(exponent);
  if (whole !== undefined && Math.abs(whole) < 2 ** 31) return wholePower(base, whole);
  if (sign === 0) return numericOf(0n, SIGNIFICANT_DIGITS_MIN);
  if (sign > 0) return realPower(base, exponent);
  if (whole === undefined) throw complexPower();
  const size = realPower(absoluteNumeric(base), exponent);
  return isOdd(exponent) ? negateNumeric(size) : size;
}

function zeroToNegative(): DatabaseError {
  return undefinedFor("Cannot raise 0 to a negative power");
}

function complexPower(): DatabaseError {
  return undefinedFor(
    "Cannot raise a negative number to a fractional power: the result would be complex",
  );
}

/**
 * Converts an exponent to a number; undefined if it has a fraction. A large exponent may be
 * rounded.
 */
function wholeExponent(exponent: string): number | undefined {
  const { scale, unscaled } = bigDecimalOf(exponent);
  const power = powerOfTen(scale);
  return unscaled % power === 0n ? Number(unscaled / power) : undefined;
}

function isOdd(value: string): boolean {
  const { scale, unscaled } = bigDecimalOf(value);
  return (unscaled / powerOfTen(scale)) % 2n !== 0n;
}

/** Applies the POSIX rules for powers of NaN and the infinities. */
function specialPower(base: string, exponent: string): string {
  const isOne = (value: string): boolean => compareNumerics(value, ONE) === 0;
  if (isOne(base) || numericSign(exponent) === 0) return ONE;
  if (base === NUMERIC_NAN || exponent === NUMERIC_NAN) return NUMERIC_NAN;
  const sign = numericSign(base);
  const exponentSign = numericSign(exponent);
  if (sign === 0 && exponentSign < 0) throw zeroToNegative();
  const isWhole = !isFiniteNumeric(exponent) || wholeExponent(exponent) !== undefined;
  if (sign < 0 && !isWhole) throw complexPower();
  if (!isFiniteNumeric(exponent)) {
    if (compareNumerics(base, MINUS_ONE) === 0) return ONE;
    const isLarge = compareNumerics(absoluteNumeric(base), ONE) > 0;
    return isLarge === exponentSign > 0 ? INFINITY : numericOf(0n, 0);
  }
  if (exponentSign < 0) return numericOf(0n, 0);
  return sign < 0 && isOdd(exponent) ? negateNumeric(INFINITY) : INFINITY;
}

function wholePower(base: string, exponent: number): string {
  const scale = resultScale(SIGNIFICANT_DIGITS_MIN, numericScale(base));
  if (exponent === 0) return numericOf(powerOfTen(scale), scale);
  if (numericSign(base) === 0) return numericOf(0n, scale);
  if (exponent === -1) return quotientAt(ONE, base, scale);
  const weight = exponent * decimalLogarithm(base);
  if (weight > 3 * 131_068) throw numericOverflow();
  if (weight + 1 < -Math.min(scale, RESULT_SCALE_MAX)) return numericOf(0n, scale);
  const digits =
    1 + scale + Math.trunc(weight) + Math.trunc(Math.log(Math.abs(exponent))) + GUARD_DIGITS;
  const power = trimmedPower(bigDecimalOf(base), Math.abs(exponent), digits);
  if (exponent > 0) return numericOf(...atLeastScale(power, scale));
  const shift = scale + power.scale;
  return numericOf(shift >= 0 ? roundedBig(powerOfTen(shift), power.unscaled) : 0n, scale);
}

function atLeastScale({ scale, unscaled }: BigDecimal, to: number): [bigint, number] {
  return [
    scale > to ? roundedBig(unscaled, powerOfTen(scale - to)) : unscaled * powerOfTen(to - scale),
    to,
  ];
}

/** Returns the decimal logarithm of a number's magnitude, as a double. */
function decimalLogarithm(value: string): number {
  const exponent = numericExponent(value);
  const digits = textFromNumeric(absoluteNumeric(value))
    .replace(/^0\.0*/, "")
    .replace(".", "")
    .slice(0, 17);
  return exponent + Math.log10(Number(`0.${digits}`));
}

/** Raises a number to a power by squaring, keeping only as many digits as the result needs. */
function trimmedPower(base: BigDecimal, exponent: number, digits: number): BigDecimal {
  let factor = trimmed(base, digits);
  let result: BigDecimal = { unscaled: 1n, scale: 0 };
  for (let rest = exponent; ; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result = trimmed(product(result, factor), digits);
    if (rest < 2) return result;
    factor = trimmed(product(factor, factor), digits);
  }
}

function product(left: BigDecimal, right: BigDecimal): BigDecimal {
  return { unscaled: left.unscaled * right.unscaled, scale: left.scale + right.scale };
}

/** Rounds a number to about the given number of digits. */
function trimmed(value: BigDecimal, digits: number): BigDecimal {
  const { scale, unscaled } = value;
  const count = Math.floor(unscaled.toString(16).length * 1.2041);
  const surplus = count - Math.max(digits, 0) - GUARD_DIGITS;
  if (surplus <= 0) return value;
  return { unscaled: roundedBig(unscaled, powerOfTen(surplus)), scale: scale - surplus };
}

/** Raises a positive number to any power, using the exponential function. */
function realPower(base: string, exponent: string): string {
  const weight = logarithmWeight(base);
  const rough = doubleFromNumeric(
    multiplyNumerics(logarithmAt(base, Math.max(0, 8 - weight)), exponent),
  );
  if (Math.abs(rough) > EXPONENT_MAX * 1.0034) {
    if (rough > 0) throw numericOverflow();
    return numericOf(0n, RESULT_SCALE_MAX);
  }
  const digits = Math.trunc(rough * LOG10_E);
  const scale = resultScale(
    SIGNIFICANT_DIGITS_MIN - digits,
    numericScale(base),
    numericScale(exponent),
  );
  const working =
    Math.max(scale + digits, 0) + Math.max(0, numericExponent(exponent)) + GUARD_DIGITS;
  const { scale: from, unscaled } = bigDecimalOf(exponent);
  const logarithm = numericOf(fixedLogarithm(base, working) * unscaled, working + from);
  return exponentialAt(logarithm, scale);
}
