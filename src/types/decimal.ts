/**
 * Implements exact decimal arithmetic. A value is an unscaled integer, with a scale fixed by its
 * type (12.30 at scale 2 is 1230). Integers become bigint only if a result needs it.
 *
 * All rounding is half away from zero, as for SQL's NUMERIC.
 */
import { assert } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import { DECIMAL_PRECISION_MAX } from "./data_type.ts";
import { type Whole, wholeFromBigint } from "./value.ts";

/**
 * The powers of ten up to more than twice the maximum scale, which is the largest shift in a
 * division.
 */
const POWERS: readonly bigint[] = Array.from({ length: 96 }, (_, power) => 10n ** BigInt(power));

/** The powers of ten below 2^53, as doubles. */
const SMALL_POWERS: readonly number[] = Array.from({ length: 16 }, (_, power) => 10 ** power);

/**
 * The maximum exponent and number of digits. Larger numbers are refused before BigInt parses them,
 * because its cost grows faster than linearly.
 */
const EXPONENT_MAX = 10_000;

export function powerOfTen(power: number): bigint {
  assert(power >= 0, "decimal: exponent of a power of ten is negative");
  return POWERS[power] ?? 10n ** BigInt(power);
}

/** Returns the number of decimal digits of an integer from 1 to 2^53−1. */
export function digitCountOf(size: number): number {
  let count = 1;
  while (size >= (SMALL_POWERS[count] ?? Number.POSITIVE_INFINITY)) count += 1;
  return count;
}

export function addWhole(left: Whole, right: Whole): Whole {
  if (typeof left === "number" && typeof right === "number") {
    const sum = left + right;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return wholeFromBigint(BigInt(left) + BigInt(right));
}

export function subtractWhole(left: Whole, right: Whole): Whole {
  if (typeof left === "number" && typeof right === "number") {
    const difference = left - right;
    if (Number.isSafeInteger(difference)) return difference;
  }
  return wholeFromBigint(BigInt(left) - BigInt(right));
}

export function multiplyWhole(left: Whole, right: Whole): Whole {
  if (typeof left === "number" && typeof right === "number") {
    const product = left * right;
    // Adding 0 turns -0 into 0, because no value may be -0.
    if (Number.isSafeInteger(product)) return product + 0;
  }
  return wholeFromBigint(BigInt(left) * BigInt(right));
}

/** Returns the quotient of two integers, rounded toward zero. The divisor must not be 0. */
export function divideWhole(left: Whole, right: Whole): Whole {
  if (typeof left === "number" && typeof right === "number") {
    // Subtracting the remainder makes the dividend a multiple of the divisor, so this division
    // needs no rounding.
    return (left - (left % right)) / right + 0;
  }
  return wholeFromBigint(BigInt(left) / BigInt(right));
}

/**
 * Returns the remainder of a division. It has the sign of the dividend. The divisor must not be 0.
 */
export function remainderWhole(left: Whole, right: Whole): Whole {
  if (typeof left === "number" && typeof right === "number") return (left % right) + 0;
  return wholeFromBigint(BigInt(left) % BigInt(right));
}

export function negateWhole(value: Whole): Whole {
  return typeof value === "number" ? 0 - value : wholeFromBigint(-value);
}

export function compareWhole(left: Whole, right: Whole): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * Returns the quotient of two integers, rounded half away from zero. The divisor must not be 0.
 */
export function roundedQuotient(left: Whole, right: Whole): Whole {
  if (typeof left === "number" && typeof right === "number") {
    const remainder = left % right;
    const quotient = (left - remainder) / right;
    if (Math.abs(remainder) * 2 < Math.abs(right)) return quotient + 0;
    return quotient + (left < 0 === right < 0 ? 1 : -1);
  }
  return wholeFromBigint(roundedBig(BigInt(left), BigInt(right)));
}

/** Returns the quotient of two bigints, rounded half away from zero. The divisor must not be 0. */
export function roundedBig(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  const remainder = dividend % divisor;
  const twice = remainder < 0n ? -2n * remainder : 2n * remainder;
  if (twice < (divisor < 0n ? -divisor : divisor)) return quotient;
  return quotient + (dividend < 0n === divisor < 0n ? 1n : -1n);
}

/** Converts an unscaled number from one scale to another, rounding if digits are lost. */
export function rescale(value: Whole, from: number, to: number): Whole {
  if (from === to) return value;
  const shift = Math.abs(to - from);
  const small = SMALL_POWERS[shift];
  const power = small ?? powerOfTen(shift);
  return to > from ? multiplyWhole(value, power) : roundedQuotient(value, power);
}

/** Converts an unscaled number to a smaller scale by truncating it instead of rounding. */
export function truncateScale(value: Whole, from: number, to: number): Whole {
  if (to >= from) return rescale(value, from, to);
  return divideWhole(value, SMALL_POWERS[from - to] ?? powerOfTen(from - to));
}

/** Divides decimals. The quotient has the given scale. The divisor must not be 0. */
export function divideDecimal(
  left: { value: Whole; scale: number },
  right: { value: Whole; scale: number },
  scale: number,
): Whole {
  const shift = scale - left.scale + right.scale;
  if (shift >= 0) return roundedQuotient(rescale(left.value, 0, shift), right.value);
  return roundedQuotient(left.value, rescale(right.value, 0, -shift));
}

/**
 * Checks that an unscaled number has at most `precision` digits.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function fitDecimal(value: Whole, precision: number, scale: number): Whole {
  if (fitsPrecision(value, precision)) return value;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent ${shortened(textFromDecimal(value, scale))} as numeric(${precision},${scale}): ` +
      `the value must be less than 10^${precision - scale} in magnitude`,
  );
}

export function fitsPrecision(value: Whole, precision: number): boolean {
  if (typeof value === "number") {
    const bound = SMALL_POWERS[precision];
    return bound === undefined || (value < bound && value > -bound);
  }
  const bound = powerOfTen(precision);
  return value < bound && value > -bound;
}

/**
 * Returns the text of a decimal, with exactly `scale` decimal places. The sign is kept even if the
 * integer part is 0, as in "-0.05".
 */
export function textFromDecimal(value: Whole, scale: number): string {
  if (scale === 0) return value.toString();
  const negative = value < 0;
  const digits = (negative ? value.toString().slice(1) : value.toString()).padStart(scale + 1, "0");
  const point = digits.length - scale;
  return `${negative ? "-" : ""}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** The exact digits of a number in text form. The number's value is `unscaled` / 10^`scale`. */
export interface DecimalDigits {
  readonly unscaled: bigint;
  /** The number of decimal places once the exponent has been applied; never negative. */
  readonly scale: number;
}

/**
 * Parses `[+-]digits[.digits][e[+-]digits]`, with underscores allowed between digits.
 *
 * @returns undefined if the text has a different form. @throws {DatabaseError} VALUE_OUT_OF_RANGE
 *   if the exponent is beyond the range of every type.
 */
export function digitsFromText(text: string): DecimalDigits | undefined {
  const match =
    /^([+-]?)(\d+(?:_\d+)*)?(?:\.((?:\d+(?:_\d+)*)?))?(?:[eE]([+-]?\d+(?:_\d+)*))?$/.exec(text);
  if (match === null) return undefined;
  const whole = (match[2] ?? "").replaceAll("_", "");
  const fraction = (match[3] ?? "").replaceAll("_", "");
  if (whole === "" && fraction === "") return undefined;
  const exponent = Number((match[4] ?? "0").replaceAll("_", ""));
  if (Math.abs(exponent) > EXPONENT_MAX || whole.length + fraction.length > EXPONENT_MAX) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot read ${shortened(text)} as a number: it has more than ${EXPONENT_MAX} digits`,
    );
  }
  const magnitude = BigInt(whole + fraction);
  const unscaled = match[1] === "-" ? -magnitude : magnitude;
  const scale = fraction.length - exponent;
  if (scale >= 0) return { unscaled, scale };
  return { unscaled: unscaled * powerOfTen(-scale), scale: 0 };
}

/**
 * Parses a decimal and rounds it to a scale.
 *
 * @returns undefined if the text is not a number.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function decimalFromText(text: string, precision: number, scale: number): Whole | undefined {
  const digits = digitsFromText(text);
  if (digits === undefined) return undefined;
  const value = rescale(wholeFromBigint(digits.unscaled), digits.scale, scale);
  return fitDecimal(value, precision, scale);
}

/**
 * Returns the smallest precision and scale of a decimal type that can hold the digits; undefined
 * if there are more than 38 digits.
 */
export function decimalShape(
  digits: DecimalDigits,
): { precision: number; scale: number } | undefined {
  const { unscaled, scale } = digits;
  const length = (unscaled < 0n ? -unscaled : unscaled).toString().length;
  const precision = Math.max(unscaled === 0n ? 1 : length, scale, 1);
  return precision > DECIMAL_PRECISION_MAX ? undefined : { precision, scale };
}

export function doubleFromDecimal(value: Whole, scale: number): number {
  if (typeof value === "number") {
    const power = SMALL_POWERS[scale];
    // The value and the power of ten are exact doubles, so only the division rounds.
    if (power !== undefined) return value / power;
  }
  return Number(textFromDecimal(value, scale));
}

/**
 * Converts a finite double to a decimal, using the 15 digits that every double preserves, as
 * PostgreSQL does.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function decimalFromDouble(
  value: number,
  type: { precision: number; scale: number },
  significantDigits: number,
): Whole {
  if (!Number.isFinite(value)) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot represent ${value} as numeric: it must be a finite number`,
    );
  }
  if (Number.isSafeInteger(value) && Math.abs(value) < 10 ** significantDigits) {
    return fitDecimal(rescale(value + 0, 0, type.scale), type.precision, type.scale);
  }
  const read = decimalFromText(value.toPrecision(significantDigits), type.precision, type.scale);
  assert(read !== undefined, "decimal: toPrecision returned text that is not a number");
  return read;
}

function shortened(text: string): string {
  return text.length <= 48 ? text : `${text.slice(0, 45)}...`;
}
