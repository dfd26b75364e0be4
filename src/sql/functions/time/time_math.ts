/** Implements arithmetic on dates, times and intervals. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  checkDate,
  civilFromDays,
  daysFromCivil,
  daysInMonth,
  type Interval,
  isFiniteDate,
  isFiniteTimestamp,
  joinTimestamp,
  MICROS_PER_DAY,
  makeInterval,
  negateInterval,
  splitTimestamp,
  type Whole,
  zonedTimeOf,
  zonedTimeValue,
} from "../../../types/mod.ts";

/**
 * Adds an interval to a timestamp: first months, then days, then the time part. A day beyond the
 * end of the month becomes the month's last day.
 */
export function addToTimestamp(value: Whole, interval: Interval): Whole {
  if (!isFiniteTimestamp(value)) return value;
  const { days, micros } = splitTimestamp(value);
  const moved = addMonths(days, interval.months) + interval.days;
  return joinTimestamp(moved, micros + interval.micros);
}

export function subtractFromTimestamp(value: Whole, interval: Interval): Whole {
  return addToTimestamp(value, negateInterval(interval));
}

function addMonths(days: number, months: number): number {
  if (months === 0) return days;
  const { year, month, day } = civilFromDays(days);
  const total = year * 12 + month - 1 + months;
  const newYear = Math.floor(total / 12);
  const newMonth = total - newYear * 12 + 1;
  return daysFromCivil(newYear, newMonth, Math.min(day, daysInMonth(newYear, newMonth)));
}

export function addToDate(days: number, count: Whole): number {
  return isFiniteDate(days) ? checkDate(days + Number(count)) : days;
}

/**
 * Returns the number of days between two dates.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if a date is infinite.
 */
export function daysBetween(later: number, earlier: number): number {
  if (isFiniteDate(later) && isFiniteDate(earlier)) return later - earlier;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot subtract dates: one of the two is infinite",
  );
}

/**
 * Requires that both timestamps are finite.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if a timestamp is infinite.
 */
function requireFinite(left: Whole, right: Whole): void {
  if (isFiniteTimestamp(left) && isFiniteTimestamp(right)) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot subtract timestamps: one of the two is infinite",
  );
}

/** Returns the difference between two timestamps as days and a time of the same sign. */
export function timestampDifference(left: Whole, right: Whole): Interval {
  requireFinite(left, right);
  const a = splitTimestamp(left);
  const b = splitTimestamp(right);
  let days = a.days - b.days;
  let micros = a.micros - b.micros;
  if (days > 0 && micros < 0) {
    days -= 1;
    micros += MICROS_PER_DAY;
  } else if (days < 0 && micros > 0) {
    days += 1;
    micros -= MICROS_PER_DAY;
  }
  return makeInterval(0, days, micros);
}

/** Adds an interval's time part to a time of day, wrapping at midnight. */
export function addToTime(micros: number, { micros: added }: Interval): number {
  const sum = (micros + (added % MICROS_PER_DAY)) % MICROS_PER_DAY;
  return sum < 0 ? sum + MICROS_PER_DAY : sum + 0;
}

/** Adds an interval's time part to a time of day with a zone. The zone stays the same. */
export function addToZonedTime(time: string, added: Interval): string {
  const { micros, offset } = zonedTimeOf(time);
  return zonedTimeValue({ micros: addToTime(micros, added), offset });
}

/**
 * Returns the difference between two timestamps in years, months, days and time, as age() does.
 */
export function ageBetween(later: Whole, earlier: Whole): Interval {
  requireFinite(later, earlier);
  if (later < earlier) return negateInterval(ageBetween(earlier, later));
  const a = splitTimestamp(later);
  const b = splitTimestamp(earlier);
  const from = civilFromDays(b.days);
  const to = civilFromDays(a.days);
  let micros = a.micros - b.micros;
  let days = to.day - from.day;
  let months = (to.year - from.year) * 12 + (to.month - from.month);
  if (micros < 0) {
    micros += MICROS_PER_DAY;
    days -= 1;
  }
  if (days < 0) {
    // If the days are negative, a month is borrowed. It has the length of the earlier date's
    // month.
    days += daysInMonth(from.year, from.month);
    months -= 1;
  }
  return makeInterval(months, days, micros);
}

/** Returns the Monday of the ISO week that contains a day. */
export function isoWeekStart(days: number): number {
  return days - ((((days + 3) % 7) + 7) % 7);
}

/** Returns the ISO year and week of a day. A week belongs to the year of its Thursday. */
export function isoWeek(days: number): { year: number; week: number } {
  const thursday = isoWeekStart(days) + 3;
  const { year } = civilFromDays(thursday);
  return { year, week: Math.floor((thursday - daysFromCivil(year, 1, 1)) / 7) + 1 };
}

/** Returns the number of a day within its year, from 1 to 366. */
export function dayOfYear(days: number): number {
  return days - daysFromCivil(civilFromDays(days).year, 1, 1) + 1;
}
