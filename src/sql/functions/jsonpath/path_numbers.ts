/**
 * Implements the arithmetic of JSON paths. Numbers are exact and of arbitrary length, and results
 * have as many fraction digits as PostgreSQL's NUMERIC would give them.
 */
import {
  canonicalNumber,
  type DecimalDigits,
  digitsFromText,
  type PathArithmetic,
  textFromDecimal,
} from "../../../types/mod.ts";
import { divisionByZero } from "../base/operator_form.ts";

/** The minimum number of significant digits of a quotient. */
const QUOTIENT_DIGITS_MIN = 16;
const SCALE_MAX = 1000;
/**
 * The number of digits in a base-10000 group. PostgreSQL estimates the length of a quotient in
 * such groups.
 */
const GROUP = 4;

/**
 * Calculates with two JSON numbers, and returns the text of the result.
 * @throws {DatabaseError} DIVISION_BY_ZERO, VALUE_OUT_OF_RANGE
 */
export function calculated(op: PathArithmetic, leftText: string, rightText: string): string {
  const [left, right] = [digitsOf(leftText), digitsOf(rightText)];
  const scale = Math.max(left.scale, right.scale);
  switch (op) {
    case "+":
      return written(scaled(left, scale) + scaled(right, scale), scale);
    case "-":
      return written(scaled(left, scale) - scaled(right, scale), scale);
    case "*":
      return written(left.unscaled * right.unscaled, left.scale + right.scale);
    case "/":
      return quotient(left, right);
    case "%":
      if (right.unscaled === 0n) throw divisionByZero();
      return written(scaled(left, scale) % scaled(right, scale), scale);
  }
}

export function negated(text: string): string {
  const { unscaled, scale } = digitsOf(text);
  return written(-unscaled, scale);
}

export function absolute(text: string): string {
  return text.startsWith("-") ? text.slice(1) : text;
}

/** Rounds a number to an integer in the given direction. */
export function wholeNumber(text: string, direction: "up" | "down" | "toZero"): string {
  const { unscaled, scale } = digitsOf(text);
  const unit = 10n ** BigInt(scale);
  const whole = unscaled / unit;
  const rest = unscaled % unit;
  if (direction === "up" && rest > 0n) return (whole + 1n).toString();
  if (direction === "down" && rest < 0n) return (whole - 1n).toString();
  return whole.toString();
}

/**
 * Converts a double to a decimal number with 15 significant digits, the most that every double
 * preserves.
 */
export function numberOfDouble(value: number): string {
  return canonicalNumber(String(Number(value.toPrecision(15)) + 0));
}

/**
 * Returns the position of the first non-zero digit of a number: the index of its group of four
 * digits, counted from the decimal point, and the value of that group.
 */
export function firstGroup({ unscaled, scale }: DecimalDigits): { weight: number; value: number } {
  if (unscaled === 0n) return { weight: 0, value: 0 };
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString();
  // The number of digits before the decimal point; negative if zeros follow the point directly.
  const whole = digits.length - scale;
  const weight = Math.ceil(whole / GROUP) - 1;
  const length = whole - weight * GROUP;
  return { weight, value: Number(digits.slice(0, length).padEnd(length, "0")) };
}

export function digitsOf(text: string): DecimalDigits {
  return digitsFromText(text) ?? { unscaled: 0n, scale: 0 };
}

function scaled({ unscaled, scale }: DecimalDigits, to: number): bigint {
  return unscaled * 10n ** BigInt(to - scale);
}

function quotient(left: DecimalDigits, right: DecimalDigits): string {
  if (right.unscaled === 0n) throw divisionByZero();
  const [over, under] = [firstGroup(left), firstGroup(right)];
  const weight = over.weight - under.weight - (over.value <= under.value ? 1 : 0);
  const wanted = Math.max(QUOTIENT_DIGITS_MIN - weight * GROUP, left.scale, right.scale, 0);
  const scale = Math.min(wanted, SCALE_MAX);
  const numerator = left.unscaled * 10n ** BigInt(scale + right.scale);
  const denominator = right.unscaled * 10n ** BigInt(left.scale);
  return written(roundedQuotient(numerator, denominator), scale);
}

/** Divides two integers. The quotient is rounded half away from zero. */
function roundedQuotient(numerator: bigint, denominator: bigint): bigint {
  const isNegative = numerator < 0n !== denominator < 0n;
  const [n, d] = [magnitude(numerator), magnitude(denominator)];
  const rounded = (2n * n + d) / (2n * d);
  return isNegative ? -rounded : rounded;
}

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/**
 * Returns the text of a decimal number as JSONB stores it.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if the number has more digits than JSONB can store.
 */
function written(unscaled: bigint, scale: number): string {
  return canonicalNumber(textFromDecimal(unscaled, scale));
}
