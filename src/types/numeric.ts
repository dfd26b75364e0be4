/**
 * Represents values of NUMERIC without a precision: a number with any number of digits and a scale
 * of its own, NaN or an infinity. A value is an ASCII string. Such strings sort like the values:
 *
 *     "0" -Infinity     "1…" below 0     "2" zero     "3…" above 0     "4" Infinity     "5" NaN
 *
 *     above 0   "3" exponent digits            0.digits × 10^exponent, without zeros at the end
 *     below 0   "1" exponent digits "~"        the exponent and each digit counted down from the top
 *     scale     " " digits                     at the end, if more digits are shown than are needed
 *
 * The exponent consists of three characters with 6 bits each. Two values are equal if their
 * strings are equal up to the space: 1.5 and 1.50 are equal, although they are displayed
 * differently.
 */
import { assert } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import type { NumericSize, NumericType } from "./data_type.ts";
import { powerOfTen, roundedBig } from "./decimal.ts";
import { type Whole, wholeFromBigint } from "./value.ts";

/** The maximum number of digits before the decimal point, and of decimal places. */
const WHOLE_DIGITS_MAX = 131_072;
const NUMERIC_SCALE_MAX = 16_383;

export const NUMERIC_NAN = "5";
const MINUS_INFINITY = "0";
const INFINITY = "4";
const ZERO = "2";
const POSITIVE = "3";
const NEGATIVE = "1";
const NEGATIVE_END = "~";
const SCALE_MARK = " ";

/** A finite number: `unscaled` / 10^`scale`. */
export interface BigDecimal {
  readonly unscaled: bigint;
  readonly scale: number;
}

/** A finite number. Its unscaled integer is a JavaScript number if the integer fits into one. */
interface ShortDecimal {
  readonly unscaled: Whole;
  readonly scale: number;
}

/** The digits of a finite, nonzero number: 0.`digits` × 10^`exponent`. */
interface NumericParts {
  readonly isNegative: boolean;
  readonly exponent: number;
  readonly digits: string;
  readonly scale: number;
}

/** Returns the part of a value's string that is the same for equal values. */
export function numericKey(value: string): string {
  const end = value.indexOf(SCALE_MARK);
  return end < 0 ? value : value.slice(0, end);
}

export function compareNumerics(left: string, right: string): number {
  if (left === right) return 0;
  const a = numericKey(left);
  const b = numericKey(right);
  return a < b ? -1 : a > b ? 1 : 0;
}

export function isFiniteNumeric(value: string): boolean {
  return value !== NUMERIC_NAN && value !== INFINITY && value !== MINUS_INFINITY;
}

/** Returns -1, 0 or 1; NaN for NaN. */
export function numericSign(value: string): number {
  if (value === NUMERIC_NAN) return Number.NaN;
  const [kind = ZERO] = value;
  return kind === ZERO ? 0 : kind < ZERO ? -1 : 1;
}

/** Converts NaN, an infinity or 0 to a NUMERIC. */
export function numericOfSpecial(value: number): string {
  if (Number.isNaN(value)) return NUMERIC_NAN;
  if (value === 0) return ZERO;
  return value > 0 ? INFINITY : MINUS_INFINITY;
}

/** Returns the number of decimal places with which a finite value is displayed. */
export function numericScale(value: string): number {
  const [kind] = value;
  return kind === ZERO ? scaleAfter(value, 1, 0) : partsOf(value).scale;
}

function scaleAfter(value: string, end: number, least: number): number {
  return value[end] === SCALE_MARK ? Number(value.slice(end + 1)) : least;
}

const EXPONENT_CHARACTERS = 3;
const EXPONENT_BIAS = 20_000;
const EXPONENT_LIMIT = 2 ** 18;
const FIRST_CHARACTER = 48;

/**
 * Caches the first characters of positive values by exponent, because most data has few different
 * exponents.
 */
const positiveStarts = new Map<number, string>();
const POSITIVE_STARTS_MAX = 1000;

function exponentText(biased: number): string {
  return String.fromCharCode(
    FIRST_CHARACTER + (biased >> 12),
    FIRST_CHARACTER + ((biased >> 6) & 63),
    FIRST_CHARACTER + (biased & 63),
  );
}

function positiveStart(biased: number): string {
  const known = positiveStarts.get(biased);
  if (known !== undefined) return known;
  const start = `${POSITIVE}${exponentText(biased)}`;
  if (positiveStarts.size < POSITIVE_STARTS_MAX) positiveStarts.set(biased, start);
  return start;
}

function biasedAt(value: string): number {
  const at = (place: number): number => value.charCodeAt(place) - FIRST_CHARACTER;
  return (at(1) << 12) | (at(2) << 6) | at(3);
}

function complement(digits: string): string {
  let text = "";
  for (let at = 0; at < digits.length; at += 1) {
    text += String.fromCharCode(2 * FIRST_CHARACTER + 9 - digits.charCodeAt(at));
  }
  return text;
}

/** Splits a finite, nonzero value into its parts. */
function partsOf(value: string): NumericParts {
  const isNegative = value.startsWith(NEGATIVE);
  const start = 1 + EXPONENT_CHARACTERS;
  const mark = isNegative ? value.indexOf(NEGATIVE_END) : value.indexOf(SCALE_MARK);
  const end = mark < 0 ? value.length : mark;
  const held = value.slice(start, end);
  const digits = isNegative ? complement(held) : held;
  const biased = biasedAt(value);
  const exponent = (isNegative ? EXPONENT_LIMIT - 1 - biased : biased) - EXPONENT_BIAS;
  const least = Math.max(0, digits.length - exponent);
  return {
    isNegative,
    exponent,
    digits,
    scale: scaleAfter(value, isNegative ? end + 1 : end, least),
  };
}

/**
 * Returns the NUMERIC value with the given digits, which must neither begin nor end with 0.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
function numericOfParts({ digits, exponent, isNegative, scale }: NumericParts): string {
  if (exponent > WHOLE_DIGITS_MAX || scale > NUMERIC_SCALE_MAX) throw numericOverflow();
  const biased = exponent + EXPONENT_BIAS;
  const suffix = scale > digits.length - exponent && scale > 0 ? `${SCALE_MARK}${scale}` : "";
  return isNegative
    ? `${NEGATIVE}${exponentText(EXPONENT_LIMIT - 1 - biased)}${complement(digits)}${NEGATIVE_END}${suffix}`
    : `${positiveStart(biased)}${digits}${suffix}`;
}

export function numericOverflow(): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent the value as numeric: it must have at most ${WHOLE_DIGITS_MAX} digits ` +
      `before the decimal point and ${NUMERIC_SCALE_MAX} after it`,
  );
}

function zeroOfScale(scale: number): string {
  return scale === 0 ? ZERO : `${ZERO}${SCALE_MARK}${scale}`;
}

/** Returns a finite value as an unscaled integer and a scale. */
export function bigDecimalOf(value: string): BigDecimal {
  assert(isFiniteNumeric(value), "numeric: infinity and NaN have no digits");
  if (value.startsWith(ZERO)) return { unscaled: 0n, scale: scaleAfter(value, 1, 0) };
  const { digits, exponent, isNegative, scale } = partsOf(value);
  const size = BigInt(digits) * powerOfTen(scale + exponent - digits.length);
  return { unscaled: isNegative ? -size : size, scale };
}

/** The number of decimal digits that a double represents exactly. */
const SHORT_DIGITS = 15;

/**
 * Returns the same as {@linkcode bigDecimalOf}, but with a number instead of a bigint if the value
 * has few digits.
 */
export function shortDecimalOf(value: string): ShortDecimal {
  if (value.startsWith(ZERO)) return { unscaled: 0, scale: scaleAfter(value, 1, 0) };
  const { digits, exponent, isNegative, scale } = partsOf(value);
  const zeros = scale + exponent - digits.length;
  if (digits.length + zeros > SHORT_DIGITS) {
    const size = BigInt(digits) * powerOfTen(zeros);
    return { unscaled: wholeFromBigint(isNegative ? -size : size), scale };
  }
  const size = Number(digits) * 10 ** zeros;
  return { unscaled: isNegative ? -size : size, scale };
}

/**
 * The codes of the first characters of finite values, and of the characters that end their digits.
 */
const ZERO_CODE: number = ZERO.charCodeAt(0);
const POSITIVE_CODE: number = POSITIVE.charCodeAt(0);
const NEGATIVE_CODE: number = NEGATIVE.charCodeAt(0);
const SCALE_MARK_CODE: number = SCALE_MARK.charCodeAt(0);
const NEGATIVE_END_CODE: number = NEGATIVE_END.charCodeAt(0);
/**
 * How many characters may follow the digits of a short value: the end of the digits, a space and a
 * scale.
 */
const SUFFIX_CHARACTERS = 7;
const NINE_CODE: number = FIRST_CHARACTER + 9;

/** Reads short finite values one by one, without creating an object for each. */
export class ShortNumericReader {
  /** The value last read, as `unscaled` / 10^`scale`, without trailing decimal zeros. */
  unscaled = 0;
  scale = 0;
  /** The number of decimal places with which the value last read is displayed. */
  shown = 0;

  /**
   * Reads a value. Returns false for NaN, an infinity, or a value with more digits than a double
   * represents.
   */
  read(value: string): boolean {
    const kind = value.charCodeAt(0);
    if (kind === ZERO_CODE) {
      this.unscaled = 0;
      this.scale = 0;
      this.shown = scaleAfter(value, 1, 0);
      return true;
    }
    if (kind === POSITIVE_CODE) return this.#readDigits(value, false);
    return kind === NEGATIVE_CODE && this.#readDigits(value, true);
  }

  #readDigits(value: string, isNegative: boolean): boolean {
    const start = 1 + EXPONENT_CHARACTERS;
    if (value.length > start + SHORT_DIGITS + SUFFIX_CHARACTERS) return false;
    const mark = isNegative ? NEGATIVE_END_CODE : SCALE_MARK_CODE;
    let size = 0;
    let end = start;
    for (; end < value.length; end += 1) {
      const code = value.charCodeAt(end);
      if (code === mark) break;
      size = size * 10 + (isNegative ? NINE_CODE - code : code - FIRST_CHARACTER);
    }
    const digits = end - start;
    const biased = biasedAt(value);
    const exponent = (isNegative ? EXPONENT_LIMIT - 1 - biased : biased) - EXPONENT_BIAS;
    const scale = Math.max(0, digits - exponent);
    const zeros = scale + exponent - digits;
    if (digits + zeros > SHORT_DIGITS) return false;
    const unscaled = size * 10 ** zeros;
    this.unscaled = isNegative ? -unscaled : unscaled;
    this.scale = scale;
    this.shown = scaleAfter(value, isNegative ? end + 1 : end, scale);
    return true;
  }
}

/**
 * Returns `given` / 10^`givenScale` as a value displayed with `shown` decimal places. The value
 * must not need more decimal places.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function numericShowing(given: Whole, givenScale: number, shown: number): string {
  if (given === 0 || given === 0n) return zeroOfScale(shown);
  const isNegative = given < 0;
  const text = (isNegative ? -given : given).toString();
  const exponent = text.length - givenScale;
  return numericOfParts({ isNegative, digits: withoutZeros(text), exponent, scale: shown });
}

/**
 * Converts an unscaled number to a NUMERIC value. The value is displayed with `givenScale` decimal
 * places, up to the maximum.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function numericOf(given: Whole, givenScale: number): string {
  const scale = Math.min(givenScale, NUMERIC_SCALE_MAX);
  const unscaled =
    givenScale === scale ? given : roundedBig(BigInt(given), powerOfTen(givenScale - scale));
  return numericShowing(unscaled, scale, scale);
}

function withoutZeros(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === FIRST_CHARACTER) end -= 1;
  return digits.slice(0, end);
}

/**
 * Rounds a finite value half away from zero. A negative scale rounds digits before the decimal
 * point.
 */
export function roundNumeric(value: string, scale: number): string {
  return atScale(value, scale, roundedBig);
}

/** Truncates a finite value to a scale. */
export function truncateNumeric(value: string, scale: number): string {
  return atScale(value, scale, (unscaled, power) => unscaled / power);
}

/** Returns the largest integer not above the value. */
export function floorNumeric(value: string): string {
  return atScale(value, 0, (unscaled, power) => {
    const quotient = unscaled / power;
    return unscaled < 0n && unscaled % power !== 0n ? quotient - 1n : quotient;
  });
}

/** Returns the smallest integer not below the value. */
export function ceilingNumeric(value: string): string {
  return atScale(value, 0, (unscaled, power) => {
    const quotient = unscaled / power;
    return unscaled > 0n && unscaled % power !== 0n ? quotient + 1n : quotient;
  });
}

/** Returns a value without trailing decimal zeros. */
export function trimmedNumeric(value: string): string {
  return numericKey(value);
}

/**
 * Converts a finite value to a different scale. `divide` determines how surplus digits are
 * removed.
 */
function atScale(
  value: string,
  scale: number,
  divide: (unscaled: bigint, power: bigint) => bigint,
): string {
  if (!isFiniteNumeric(value)) return value;
  const from = bigDecimalOf(value);
  const to = Math.min(NUMERIC_SCALE_MAX, Math.max(scale, -WHOLE_DIGITS_MAX - 1));
  const shown = Math.max(0, to);
  if (to >= from.scale) return numericOf(from.unscaled * powerOfTen(to - from.scale), to);
  const kept = divide(from.unscaled, powerOfTen(from.scale - to));
  return numericOf(kept * powerOfTen(shown - to), shown);
}

/** Returns the smallest scale that preserves all digits of a finite value. */
export function leastNumericScale(value: string): number {
  if (value.startsWith(ZERO)) return 0;
  const { digits, exponent } = partsOf(value);
  return Math.max(0, digits.length - exponent);
}

export function textFromNumeric(value: string): string {
  if (value === NUMERIC_NAN) return "NaN";
  if (value === INFINITY) return "Infinity";
  if (value === MINUS_INFINITY) return "-Infinity";
  if (value.startsWith(ZERO)) {
    const scale = scaleAfter(value, 1, 0);
    return scale === 0 ? "0" : `0.${"0".repeat(scale)}`;
  }
  const { digits, exponent, isNegative, scale } = partsOf(value);
  const whole = exponent <= 0 ? "0" : digits.slice(0, exponent).padEnd(exponent, "0");
  const fraction =
    exponent <= 0 ? `${"0".repeat(-exponent)}${digits}` : digits.slice(Math.max(exponent, 0));
  const sign = isNegative ? "-" : "";
  return scale === 0 ? `${sign}${whole}` : `${sign}${whole}.${fraction.padEnd(scale, "0")}`;
}

const SPECIAL_TEXTS: ReadonlyMap<string, string> = new Map([
  ["nan", NUMERIC_NAN],
  ["infinity", INFINITY],
  ["+infinity", INFINITY],
  ["-infinity", MINUS_INFINITY],
  ["inf", INFINITY],
  ["+inf", INFINITY],
  ["-inf", MINUS_INFINITY],
]);

/**
 * Parses `[+-]digits[.digits][e[+-]digits]`, with underscores allowed between digits, NaN or an
 * infinity.
 *
 * @returns undefined if the text has a different form.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function numericFromText(given: string): string | undefined {
  const text = given.trim();
  const match =
    /^([+-]?)(\d+(?:_\d+)*)?(?:\.((?:\d+(?:_\d+)*)?))?(?:[eE]([+-]?\d+(?:_\d+)*))?$/.exec(text);
  if (match === null) return SPECIAL_TEXTS.get(text.toLowerCase());
  const whole = (match[2] ?? "").replaceAll("_", "");
  const fraction = (match[3] ?? "").replaceAll("_", "");
  if (whole === "" && fraction === "") return undefined;
  const shift = Number((match[4] ?? "0").replaceAll("_", ""));
  const scale = Math.max(0, fraction.length - shift);
  if (scale > NUMERIC_SCALE_MAX) throw numericOverflow();
  const all = `${whole}${fraction}`;
  const start = all.search(/[1-9]/);
  if (start < 0) return zeroOfScale(scale);
  const digits = withoutZeros(all.slice(start));
  const exponent = whole.length - start + shift;
  return numericOfParts({ isNegative: match[1] === "-", digits, exponent, scale });
}

/** The first group of a number's digits. PostgreSQL divides digits into groups of four. */
export interface NumericHead {
  /** The weight of the group, as an exponent of 10000. */
  readonly weight: number;
  /** The group's four digits as an integer from 1 to 9999; 0 for zero. */
  readonly first: number;
}

/** The number of digits in a group. */
export const GROUP_DIGITS = 4;

export const ZERO_HEAD: NumericHead = { weight: 0, first: 0 };

/** Returns the first group of digits of a finite value. */
export function numericHead(value: string): NumericHead {
  if (value.startsWith(ZERO)) return ZERO_HEAD;
  const { digits, exponent } = partsOf(value);
  return headOf(digits, exponent);
}

/** Returns the first group of digits of 0.`digits` × 10^`exponent`. */
export function headOf(digits: string, exponent: number): NumericHead {
  const { count, weight } = headPlace(exponent);
  return { weight, first: Number(digits.slice(0, count).padEnd(count, "0")) };
}

/**
 * Returns the weight of the first group of digits of a number with an exponent, and the length of
 * the group, 1 to 4.
 */
export function headPlace(exponent: number): { weight: number; count: number } {
  const weight = Math.floor((exponent - 1) / GROUP_DIGITS);
  return { weight, count: exponent - weight * GROUP_DIGITS };
}

/**
 * Returns the exponent of the lowest power of ten above a value's magnitude: 0 for 0.5, 1 for 5.
 */
export function numericExponent(value: string): number {
  return value.startsWith(ZERO) ? 0 : partsOf(value).exponent;
}

/**
 * Converts a value to the precision, scale and form that a type declares.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function fitNumeric(value: string, { isTrimmed, size }: NumericType): string {
  const fitted = size === undefined ? value : fitSize(value, size);
  return isTrimmed === true ? trimmedNumeric(fitted) : fitted;
}

/** Rounds a value to a declared precision and scale. */
function fitSize(value: string, { precision, scale }: NumericSize): string {
  if (value === NUMERIC_NAN) return value;
  const rounded = isFiniteNumeric(value) ? roundNumeric(value, scale) : value;
  const fits =
    isFiniteNumeric(rounded) &&
    (rounded.startsWith(ZERO) || numericExponent(rounded) <= precision - scale);
  if (fits) return rounded;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent ${shortened(textFromNumeric(value))} as numeric(${precision},${scale}): ` +
      `the value must be less than 10^${precision - scale} in magnitude`,
  );
}

function shortened(text: string): string {
  return text.length <= 48 ? text : `${text.slice(0, 45)}...`;
}

/** Returns the double nearest to a value; an infinity for values beyond the range of doubles. */
export function doubleFromNumeric(value: string): number {
  return Number(textFromNumeric(value));
}

/** Rounds a finite value to a scale and returns it as an unscaled integer. */
export function wholeFromNumeric(value: string, scale: number): Whole {
  const from = bigDecimalOf(roundNumeric(value, scale));
  return wholeFromBigint(from.unscaled);
}

/**
 * Converts a double to NUMERIC. A finite double is rounded to the given number of significant
 * digits.
 */
export function numericFromDouble(value: number, significantDigits: number): string {
  if (!Number.isFinite(value)) return numericOfSpecial(value);
  const read = numericFromText(value.toPrecision(significantDigits));
  assert(read !== undefined, "numeric: toPrecision returned text that is not a number");
  return trimmedNumeric(read);
}
