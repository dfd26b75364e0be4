/**
 * Handles the fields of dates and times in the proleptic Gregorian calendar, and writes their text
 * forms. `datetime_text.ts` reads text forms.
 *
 * Dates are days since 1970-01-01, and timestamps are microseconds since then. A timestamp is a
 * `number` between the years 1684 and 2255 and a bigint outside; {@linkcode splitTimestamp} hides
 * the difference. As in PostgreSQL, `infinity` is the largest and `-infinity` the smallest value
 * of 32 bits (dates) or 64 bits (timestamps), so they are compared and stored like any other
 * value. Arithmetic has to check {@linkcode isFiniteDate} or {@linkcode isFiniteTimestamp} first.
 *
 * Years are numbered astronomically: 0 is 1 BC, and -1 is 2 BC.
 */
import { DatabaseError } from "../base/errors.ts";
import { MICROS_PER_DAY } from "./interval.ts";
import { pad2, textFromClock } from "./interval_text.ts";
import { type Whole, wholeFromBigint } from "./value.ts";

/** 4714-11-24 BC, when Julian days begin, and 5874897-12-31, in days since 1970. */
const DATE_MIN: number = -2_440_588;
const DATE_MAX: number = 2_145_042_905;

/**
 * 294246-12-31, in days since 1970: the end of the last whole year whose microseconds fit in 64
 * bits.
 */
const TIMESTAMP_DAY_MAX: number = 106_751_981;

export const DATE_INFINITY = 2_147_483_647;
export const DATE_MINUS_INFINITY: number = -2_147_483_648;
export const TIMESTAMP_INFINITY = 9_223_372_036_854_775_807n;
export const TIMESTAMP_MINUS_INFINITY: bigint = -9_223_372_036_854_775_808n;

export function isFiniteDate(days: number): boolean {
  return days !== DATE_INFINITY && days !== DATE_MINUS_INFINITY;
}

export function isFiniteTimestamp(value: Whole): boolean {
  return (
    typeof value === "number" ||
    (value !== TIMESTAMP_INFINITY && value !== TIMESTAMP_MINUS_INFINITY)
  );
}

/** Returns a date's first moment as a timestamp. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function timestampOfDate(days: number): Whole {
  if (days === DATE_INFINITY) return TIMESTAMP_INFINITY;
  return days === DATE_MINUS_INFINITY ? TIMESTAMP_MINUS_INFINITY : joinTimestamp(days, 0);
}

export function dateOfTimestamp(value: Whole): number {
  if (value === TIMESTAMP_INFINITY) return DATE_INFINITY;
  return value === TIMESTAMP_MINUS_INFINITY ? DATE_MINUS_INFINITY : splitTimestamp(value).days;
}

/** Within this many days of 1970-01-01, every timestamp in microseconds is a safe integer. */
const SAFE_DAYS = 104_248;

export interface CivilDate {
  readonly year: number;
  /** The month of a date, 1 to 12. */
  readonly month: number;
  /** The day of the month in a date, 1 to 31. */
  readonly day: number;
}

/**
 * Converts a calendar date to days since 1970-01-01, by Howard Hinnant's algorithm
 * `days_from_civil`.
 */
export function daysFromCivil(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

export function civilFromDays(days: number): CivilDate {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  };
}

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

export function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeapYear(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Returns the day of the week of a date, where 0 is Sunday. */
export function dayOfWeek(days: number): number {
  return (((days + 4) % 7) + 7) % 7;
}

/**
 * Checks that a date is within the supported range.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if the day is not finite or out of range.
 */
export function checkDate(days: number): number {
  if (days >= DATE_MIN && days <= DATE_MAX) return days;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot represent the date: it must be between 4714-11-24 BC and 5874897-12-31",
  );
}

/**
 * Returns the date with the given year, month and day.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if there is no such day.
 */
export function dateFromCivil(year: number, month: number, day: number): number {
  const exists = month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month);
  const days = exists ? daysFromCivil(year, month, day) : Number.NaN;
  if (days >= DATE_MIN && days <= DATE_MAX) return days;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot create the date ${yearText(year)}-${pad2(month)}-${pad2(day)}${eraOf(year)}: ` +
      (exists
        ? "it must be between 4714-11-24 BC and 5874897-12-31"
        : "there is no such day in the calendar"),
  );
}

export interface SplitTimestamp {
  readonly days: number;
  /** Microseconds since midnight, 0 to 86,399,999,999. */
  readonly micros: number;
}

export function splitTimestamp(value: Whole): SplitTimestamp {
  if (typeof value === "number") {
    const rest = value % MICROS_PER_DAY;
    const micros = rest < 0 ? rest + MICROS_PER_DAY : rest + 0;
    return { days: (value - micros) / MICROS_PER_DAY + 0, micros };
  }
  const perDay = BigInt(MICROS_PER_DAY);
  const rest = value % perDay;
  const micros = rest < 0n ? rest + perDay : rest;
  return { days: Number((value - micros) / perDay), micros: Number(micros) };
}

/**
 * Combines a day and microseconds into a timestamp. `micros` may be negative or exceed a day, but
 * its magnitude must be below 2^53.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function joinTimestamp(days: number, micros: number): Whole {
  const carry = Math.floor(micros / MICROS_PER_DAY);
  const day = days + carry;
  const rest = micros - carry * MICROS_PER_DAY;
  if (!(day >= DATE_MIN && day <= TIMESTAMP_DAY_MAX)) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot represent the timestamp: it must be between 4714-11-24 BC and 294246-12-31",
    );
  }
  if (day >= -SAFE_DAYS && day <= SAFE_DAYS) return day * MICROS_PER_DAY + rest + 0;
  return wholeFromBigint(BigInt(day) * BigInt(MICROS_PER_DAY) + BigInt(rest));
}

/**
 * Checks that a timestamp is within the supported range.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if the value is not finite or out of range.
 */
export function checkTimestamp(value: Whole): Whole {
  const { days, micros } = splitTimestamp(value);
  return joinTimestamp(days, micros);
}

/**
 * Rounds a timestamp to `digits` fractional digits of a second, half away from the start of the
 * day.
 */
export function roundTimestamp(value: Whole, digits: number): Whole {
  if (digits >= 6 || !isFiniteTimestamp(value)) return value;
  const { days, micros } = splitTimestamp(value);
  return joinTimestamp(days, roundMicros(micros, digits));
}

export function roundMicros(micros: number, digits: number): number {
  const step = 10 ** (6 - Math.min(digits, 6));
  return Math.round(micros / step) * step;
}

/** Returns the year within its era, BC or AD, as at least four digits. */
function yearText(year: number): string {
  return (year > 0 ? year : 1 - year).toString().padStart(4, "0");
}

function eraOf(year: number): string {
  return year > 0 ? "" : " BC";
}

export function textFromDate(days: number): string {
  if (days === DATE_INFINITY) return "infinity";
  if (days === DATE_MINUS_INFINITY) return "-infinity";
  const { year, month, day } = civilFromDays(days);
  return `${yearText(year)}-${pad2(month)}-${pad2(day)}${eraOf(year)}`;
}

export function textFromTimestamp(value: Whole): string {
  return momentText(value, " ", "");
}

/** Returns the text of a datetime in UTC, which is the session's time zone. */
export function textFromDatetime(value: Whole): string {
  return momentText(value, " ", "+00");
}

/**
 * Returns the text of a timestamp in ISO 8601 format, with a T between date and time.
 *
 * @param zone The text of the time zone.
 */
export function isoTextOf(value: Whole, zone: string): string {
  return momentText(value, "T", zone);
}

function momentText(value: Whole, separator: string, zone: string): string {
  if (value === TIMESTAMP_INFINITY) return "infinity";
  if (value === TIMESTAMP_MINUS_INFINITY) return "-infinity";
  const { days, micros } = splitTimestamp(value);
  const { year, month, day } = civilFromDays(days);
  const date = `${yearText(year)}-${pad2(month)}-${pad2(day)}`;
  return `${date}${separator}${textFromClock(micros)}${zone}${eraOf(year)}`;
}
