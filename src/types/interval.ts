/**
 * Implements interval arithmetic. An interval has separate numbers of months, days and
 * microseconds. `interval_text.ts` handles its text form.
 *
 * As in PostgreSQL, a fraction of a unit is carried over into the next smaller unit: 0.5 months
 * are 15 days.
 */
import { DatabaseError } from "../base/errors.ts";
import { roundHalfEven } from "./integer.ts";
import type { Interval, Whole } from "./value.ts";
import { wholeFromBigint } from "./value.ts";

export const MICROS_PER_SECOND = 1_000_000;
export const MICROS_PER_DAY = 86_400_000_000;
export const MICROS_PER_HOUR = 3_600_000_000;
export const MICROS_PER_MINUTE = 60_000_000;
const SECONDS_PER_DAY = 86_400;
export const DAYS_PER_MONTH = 30;
const INT_MIN = -2_147_483_648;
const INT_MAX = 2_147_483_647;

/**
 * Creates an interval.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if a part is out of range.
 */
export function makeInterval(months: number, days: number, micros: number): Interval {
  const fitsInts = fitsInt(months) && fitsInt(days);
  if (fitsInts && Number.isSafeInteger(micros))
    return { months: months + 0, days: days + 0, micros: micros + 0 };
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot create the interval: its months and days must fit in 32 bits, and its microseconds " +
      "in 53 bits",
  );
}

function fitsInt(value: number): boolean {
  return value >= INT_MIN && value <= INT_MAX;
}

export type IntervalField = "year" | "month" | "day" | "hour" | "minute" | "second";

/**
 * A restriction of an interval to certain fields or digits, as in `INTERVAL '…' DAY TO HOUR` or
 * `INTERVAL(3)`.
 */
export interface IntervalLimit {
  /** The one or two fields that the restriction names; undefined if all fields are allowed. */
  readonly fields: readonly IntervalField[] | undefined;
  /** The number of fractional digits of a second. */
  readonly digits: number | undefined;
}

const MICROS_OF_FIELD: Readonly<Record<"hour" | "minute" | "second", number>> = {
  hour: MICROS_PER_HOUR,
  minute: MICROS_PER_MINUTE,
  second: 1,
};

/**
 * Removes the parts of an interval that are smaller than the last field of a restriction. Parts
 * larger than its first field stay.
 */
export function limitedInterval(interval: Interval, { digits, fields }: IntervalLimit): Interval {
  const { days, micros, months } = interval;
  const last = fields?.at(-1) ?? "second";
  switch (last) {
    case "year":
      return makeInterval(Math.trunc(months / 12) * 12, 0, 0);
    case "month":
      return makeInterval(months, 0, 0);
    case "day":
      return makeInterval(months, days, 0);
    case "hour":
    case "minute":
    case "second": {
      const unit = digits === undefined ? 1 : 10 ** (6 - digits);
      const rounded = Math.sign(micros) * Math.round(Math.abs(micros) / unit) * unit;
      const cut = rounded - (rounded % MICROS_OF_FIELD[last]);
      return makeInterval(months, days, cut);
    }
  }
}

/**
 * Returns the length of an interval in microseconds, for comparisons. A month counts as 30 days,
 * and a day as 24 hours.
 */
export function intervalSpan({ months, days, micros }: Interval): Whole {
  const wholeDays = months * DAYS_PER_MONTH + days;
  const span = wholeDays * MICROS_PER_DAY + micros;
  if (Math.abs(wholeDays) < 100_000 && Number.isSafeInteger(span)) return span;
  return wholeFromBigint(BigInt(wholeDays) * BigInt(MICROS_PER_DAY) + BigInt(micros));
}

export function addIntervals(left: Interval, right: Interval): Interval {
  return makeInterval(
    left.months + right.months,
    left.days + right.days,
    left.micros + right.micros,
  );
}

export function negateInterval({ months, days, micros }: Interval): Interval {
  return makeInterval(-months, -days, -micros);
}

/**
 * Multiplies an interval by a finite factor. Fractions of months are carried over into days, and
 * fractions of days into time.
 */
export function scaleInterval({ months, days, micros }: Interval, factor: number): Interval {
  return intervalOfFractions(months * factor, days * factor, micros * factor);
}

/**
 * Divides an interval by a finite number other than 0. Fractions are carried over as in {@linkcode
 * scaleInterval}.
 */
export function divideInterval({ months, days, micros }: Interval, divisor: number): Interval {
  return intervalOfFractions(months / divisor, days / divisor, micros / divisor);
}

/**
 * Carries over fractions: fractions of months become days, and the fractions that remain become
 * time. As in PostgreSQL, both are rounded to a millionth of their unit to hide the errors of
 * binary fractions.
 */
function intervalOfFractions(months: number, days: number, micros: number): Interval {
  const wholeMonths = Math.trunc(months);
  const wholeDays = Math.trunc(days);
  const monthDays = roundToMicro((months - wholeMonths) * DAYS_PER_MONTH);
  const spilledDays = Math.trunc(monthDays);
  const seconds = roundToMicro((days - wholeDays + monthDays - spilledDays) * SECONDS_PER_DAY);
  const carriedDays = Math.trunc(seconds / SECONDS_PER_DAY);
  const restSeconds = seconds - carriedDays * SECONDS_PER_DAY;
  return makeInterval(
    wholeMonths,
    wholeDays + spilledDays + carriedDays,
    roundHalfEven(micros + restSeconds * MICROS_PER_SECOND),
  );
}

function roundToMicro(value: number): number {
  return roundHalfEven(value * MICROS_PER_SECOND) / MICROS_PER_SECOND;
}
