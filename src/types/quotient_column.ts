/**
 * Divides a column of decimals by a single number, provided that each quotient is exact in a
 * double. This is the case if the divisor's reciprocal has few digits, as those of 2 and 100 do:
 *
 *     1.25 ÷ 2  →  625 ÷ 10^3, which shows 20 digits after its point
 *
 * The strings of the quotients are created only when first read. A sum needs only the numbers.
 */
import { GROUP_DIGITS, type NumericHead, numericShowing } from "./numeric.ts";
import { resultScale, significantScale, wholeHead } from "./numeric_arithmetic.ts";
import type { Value } from "./value.ts";
import type { AnyVector, ShortNumerics, Vector } from "./vector.ts";

/** An operand of a division. */
interface Scaled<T> {
  /** An unscaled number, or a column of such numbers. */
  readonly unscaled: T;
  readonly scale: number;
}

/** The exponent of the largest power of ten below 2^53. */
const SHIFT_MAX = 15;

/**
 * Returns the quotients of a column. The divisor must not be 0.
 *
 * @returns undefined if a quotient is not exact in a double, or if the column may contain bigints.
 */
export function quotientColumn(
  dividends: Scaled<Vector>,
  divisor: Scaled<number>,
): Vector | undefined {
  const { unscaled: vector } = dividends;
  if (vector.kind !== "i32" && vector.kind !== "f64") return undefined;
  const shift = exactShift(divisor.unscaled, Math.max(0, divisor.scale - dividends.scale));
  if (shift === undefined) return undefined;
  const values = vector.kind === "i32" ? new Float64Array(vector.values) : vector.values;
  const unscaled = new Float64Array(vector.length);
  // The values stored in place of NULLs count as well. At worst, the exact path runs
  // unnecessarily.
  const largest = multiplied(values, 10 ** shift / divisor.unscaled, unscaled);
  if (!(largest <= Number.MAX_SAFE_INTEGER)) return undefined;
  const scale = dividends.scale - divisor.scale + shift;
  const shown = shownDigits({ unscaled: values, scale: dividends.scale }, divisor, scale);
  if (shown === undefined) return undefined;
  // The strings may be read after the column's memory has been reused, so no reference to it is
  // kept.
  return new QuotientColumn({ unscaled, scale, shown, nulls: vector.nulls?.slice() });
}

/** A column of quotients, whose strings may not have been created yet. */
class QuotientColumn implements AnyVector {
  readonly kind = "any";
  readonly length: number;
  readonly short: ShortNumerics;
  #values: readonly Value[] | undefined;

  constructor(short: ShortNumerics) {
    this.length = short.unscaled.length;
    this.short = short;
  }

  get values(): readonly Value[] {
    this.#values ??= stringsOf(this.short);
    return this.#values;
  }
}

function stringsOf({ nulls, scale, shown, unscaled }: ShortNumerics): Value[] {
  const values: Value[] = Array.from({ length: unscaled.length });
  for (let row = 0; row < unscaled.length; row += 1) {
    const isNull = nulls !== undefined && nulls[row] === 1;
    values[row] = isNull ? null : numericShowing(unscaled[row] ?? 0, scale, shown[row] ?? 0);
  }
  return values;
}

/**
 * Returns the smallest shift, at or above `least`, for which 10^shift is a multiple of the
 * divisor; undefined if there is none.
 */
function exactShift(divisor: number, least: number): number | undefined {
  for (let shift = least; shift <= SHIFT_MAX; shift += 1) {
    if (10 ** shift % divisor === 0) return shift;
  }
  return undefined;
}

/** Multiplies values by a factor, and returns the largest magnitude of any product. */
function multiplied(values: Float64Array, factor: number, into: Float64Array): number {
  let low = 0;
  let high = 0;
  for (let row = 0; row < into.length; row += 1) {
    const product = (values[row] ?? 0) * factor;
    into[row] = product;
    if (product > high) high = product;
    else if (product < low) low = product;
  }
  return Math.max(high, -low);
}

/**
 * Returns the number of decimal places with which each quotient is displayed. The number does not
 * grow with the magnitude of the dividend, so it is computed only for the magnitudes at which it
 * may change.
 *
 * @returns undefined if a quotient is displayed with fewer than `needed` decimal places.
 */
function shownDigits(
  dividends: Scaled<Float64Array>,
  divisor: Scaled<number>,
  needed: number,
): Uint16Array | undefined {
  const { scale, unscaled } = dividends;
  const head = wholeHead(divisor.unscaled, divisor.scale);
  const shownAt = (dividend: number): number =>
    resultScale(significantScale(wholeHead(dividend, scale), head), scale, divisor.scale);
  const limits = limitsAbove(head, scale);
  const digits = [shownAt(0), ...limits.map(shownAt)];
  limits.push(Number.POSITIVE_INFINITY);
  const shown = new Uint16Array(unscaled.length);
  let last = 0;
  for (let row = 0; row < shown.length; row += 1) {
    const size = Math.abs(unscaled[row] ?? 0);
    let at = 0;
    while (size >= (limits[at] ?? Number.POSITIVE_INFINITY)) at += 1;
    shown[row] = digits[at] ?? 0;
    if (at > last) last = at;
  }
  // A quotient of 0 needs no decimal places.
  return last > 0 && (digits[last] ?? 0) < needed ? undefined : shown;
}

/**
 * Returns the magnitudes, in ascending order, at which a dividend's first group of digits comes to
 * exceed the divisor's, for each position of the group. The first is 1.
 */
function limitsAbove({ first }: NumericHead, scale: number): number[] {
  const limits = [1];
  for (let power = (scale % GROUP_DIGITS) - GROUP_DIGITS; ; power += GROUP_DIGITS) {
    const limit = power < 0 ? Math.ceil((first + 1) / 10 ** -power) : (first + 1) * 10 ** power;
    if (limit > Number.MAX_SAFE_INTEGER) return limits;
    if (limit > 1) limits.push(limit);
  }
}
