/**
 * Handles dates and times of the proleptic Gregorian calendar, years 1 to 9999: their text forms
 * and their fields.
 *
 * Dates are days since 1970-01-01, timestamps are microseconds since the same day. A timestamp is a
 * `number` between the years 1684 and 2255 and a bigint outside; {@linkcode splitTimestamp} hides
 * the difference.
 */
import { DatabaseError } from "../base/errors.ts";
import { hasEra, isoFromWords } from "./date_words.ts";
import { excerpt } from "./excerpt.ts";
import { MICROS_PER_DAY } from "./interval.ts";
import { pad2, textFromClock } from "./interval_text.ts";
import { offsetSecondsAtLocal, zoneFromText } from "./time_zone.ts";
import { type Whole, wholeFromBigint } from "./value.ts";

/** The days of 0001-01-01 and 9999-12-31. */
export const DATE_MIN: number = -719_162;
export const DATE_MAX: number = 2_932_896;

/** Days whose microseconds, with any time of day, are safe integers. */
const SAFE_DAYS = 104_248;

export interface CivilDate {
  readonly year: number;
  /** The month, 1 to 12. */
  readonly month: number;
  /** The day of the month, 1 to 31. */
  readonly day: number;
}

/** Returns days since 1970-01-01, by Howard Hinnant's algorithm `days_from_civil`. */
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

/** Returns the day of the week, where 0 is Sunday. */
export function dayOfWeek(days: number): number {
  return (((days + 4) % 7) + 7) % 7;
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE outside the years 1 to 9999. */
export function checkDate(days: number): number {
  if (days >= DATE_MIN && days <= DATE_MAX) return days;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot represent the date: its year must be between 1 and 9999",
  );
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE if the day does not exist. */
export function dateFromCivil(year: number, month: number, day: number): number {
  const exists =
    year >= 1 &&
    year <= 9999 &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysInMonth(year, month);
  if (exists) return daysFromCivil(year, month, day);
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot make the date ${year}-${pad2(month)}-${pad2(day)}: there is no such day in the years 1 to 9999`,
  );
}

export interface SplitTimestamp {
  readonly days: number;
  /** Microseconds of the day, 0 to 86,399,999,999. */
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
 * Joins a day and microseconds of any sign and size below 2^53.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE outside the years 1 to 9999.
 */
export function joinTimestamp(days: number, micros: number): Whole {
  const carry = Math.floor(micros / MICROS_PER_DAY);
  const day = days + carry;
  const rest = micros - carry * MICROS_PER_DAY;
  if (day < DATE_MIN || day > DATE_MAX) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot represent the timestamp: its year must be between 1 and 9999",
    );
  }
  if (day >= -SAFE_DAYS && day <= SAFE_DAYS) return day * MICROS_PER_DAY + rest + 0;
  return wholeFromBigint(BigInt(day) * BigInt(MICROS_PER_DAY) + BigInt(rest));
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE outside the years 1 to 9999. */
export function checkTimestamp(value: Whole): Whole {
  const { days, micros } = splitTimestamp(value);
  return joinTimestamp(days, micros);
}

/** Rounds to `digits` fraction digits of a second, half away from the start of the day. */
export function roundTimestamp(value: Whole, digits: number): Whole {
  if (digits >= 6) return value;
  const { days, micros } = splitTimestamp(value);
  return joinTimestamp(days, roundMicros(micros, digits));
}

export function roundMicros(micros: number, digits: number): number {
  const step = 10 ** (6 - Math.min(digits, 6));
  return Math.round(micros / step) * step;
}

export function textFromDate(days: number): string {
  const { year, month, day } = civilFromDays(days);
  return `${year.toString().padStart(4, "0")}-${pad2(month)}-${pad2(day)}`;
}

export function textFromTimestamp(value: Whole): string {
  const { days, micros } = splitTimestamp(value);
  return `${textFromDate(days)} ${textFromClock(micros)}`;
}

/** Returns the text of a datetime in UTC, the session's time zone. */
export function textFromDatetime(value: Whole): string {
  return `${textFromTimestamp(value)}+00`;
}

/** The time of the statement, for words such as `now`; without it they are refused. */
export interface Now {
  readonly nowMicros: number | undefined;
}

interface DateTimeText {
  readonly days: number;
  /** Microseconds since midnight; undefined if the text has only a date. */
  readonly micros: number | undefined;
  /** Seconds east of UTC; undefined if the text names no zone. */
  readonly offsetSeconds: number | undefined;
}

const CLOCK = String.raw`(\d{1,2}):(\d{2})(?::(\d{2})([.,]\d*)?)?(?:\s*(AM|PM)\b)?`;
const ZONE = String.raw`\s*(Z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?|[A-Za-z][A-Za-z_]*(?:/[A-Za-z0-9_+-]+)*)?`;
const DATE_TIME = new RegExp(
  String.raw`^(?:(\d{4,6})-(\d{1,2})-(\d{1,2})|(\d{4})(\d{2})(\d{2}))(?:(?:\s*T\s*|\s+)${CLOCK})?${ZONE}$`,
  "i",
);
/** Matches a Julian day: the number of days since the beginning of 4713 BC. */
const JULIAN = /^J(\d{1,7})$/i;
const JULIAN_OF_1970 = 2_440_588;

/** Matches a time without colons: `040506`, or `0405` without seconds. */
const TIME_DIGITS = /^(\d{2})(\d{2})(\d{2})?$/;

const TIME_ONLY = new RegExp(String.raw`^T?${CLOCK}${ZONE}$`, "i");

/** @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE */
export function dateFromText(text: string, now: Now): number {
  const moment = momentFromWord(text, now);
  return moment === undefined ? readDateTime(text, "a date").days : splitTimestamp(moment).days;
}

/**
 * Reads a timestamp. A zone in the text is ignored. @throws {DatabaseError} INVALID_VALUE,
 * VALUE_OUT_OF_RANGE
 */
export function timestampFromText(text: string, now: Now): Whole {
  const moment = momentFromWord(text, now);
  if (moment !== undefined) return moment;
  const { days, micros } = readDateTime(text, "a timestamp");
  return joinTimestamp(days, micros ?? 0);
}

/**
 * Reads a datetime. A zone in the text is applied. @throws {DatabaseError} INVALID_VALUE,
 * VALUE_OUT_OF_RANGE
 */
export function datetimeFromText(text: string, now: Now): Whole {
  const moment = momentFromWord(text, now);
  if (moment !== undefined) return moment;
  const { days, micros, offsetSeconds } = readDateTime(text, "a timestamp with time zone");
  return joinTimestamp(days, (micros ?? 0) - (offsetSeconds ?? 0) * 1_000_000);
}

/**
 * Returns microseconds since midnight, up to 24:00.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function timeFromText(text: string, now: Now): number {
  const trimmed = text.trim();
  const match = TIME_ONLY.exec(trimmed) ?? TIME_DIGITS.exec(trimmed);
  if (match !== null) return microsFromClock(match, 1, text);
  if (trimmed.toLowerCase() === "allballs") return 0;
  const moment = momentFromWord(text, now);
  if (moment !== undefined) return splitTimestamp(moment).micros;
  const { micros } = readDateTime(text, "a time");
  if (micros !== undefined) return micros;
  throw unreadable(text, "a time");
}

function readDateTime(text: string, what: string): DateTimeText {
  const trimmed = text.trim();
  const julian = JULIAN.exec(trimmed)?.[1];
  if (julian !== undefined) {
    const days = checkDate(Number(julian) - JULIAN_OF_1970);
    return { days, micros: undefined, offsetSeconds: undefined };
  }
  const iso = hasEra(trimmed) ? null : DATE_TIME.exec(trimmed);
  const match = iso ?? DATE_TIME.exec(isoFromWords(trimmed) ?? "");
  if (match === null) throw unreadable(text, what);
  const [year, month, day] = match[1] === undefined ? match.slice(4, 7) : match.slice(1, 4);
  const days = dateFromCivil(Number(year), Number(month), Number(day));
  const micros = match[7] === undefined ? undefined : microsFromClock(match, 7, text);
  const zoneText = match[12];
  if (zoneText === undefined) return { days, micros, offsetSeconds: undefined };
  const zone = zoneFromText(zoneText);
  if (zone === undefined) throw unreadable(text, what);
  const offsetSeconds = offsetSecondsAtLocal(zone, joinTimestamp(days, micros ?? 0));
  return { days, micros, offsetSeconds };
}

/** Reads the groups of CLOCK that begin at `group`. */
function microsFromClock(match: RegExpExecArray, group: number, text: string): number {
  const hours = hoursOf(Number(match[group]), match[group + 4]);
  const minutes = Number(match[group + 1]);
  const seconds = Number(match[group + 2] ?? "0");
  const fraction = Number(`0.${(match[group + 3] ?? ".").slice(1)}0`);
  const micros =
    ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + Math.round(fraction * 1_000_000);
  if (minutes <= 59 && seconds <= 60 && micros >= 0 && micros <= MICROS_PER_DAY) return micros;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read ${excerpt(text)} as a time of day: it must be between 00:00:00 and 24:00:00`,
  );
}

/** Returns the hours of the day; NaN if an hour with AM or PM is above 12. */
function hoursOf(hours: number, half: string | undefined): number {
  if (half === undefined) return hours;
  if (hours > 12) return Number.NaN;
  return (hours % 12) + (half.toUpperCase() === "PM" ? 12 : 0);
}

const TIME_WORDS: ReadonlySet<string> = new Set(["now", "today", "tomorrow", "yesterday"]);

/** Whether the meaning of a text depends on the time when it is read. */
export function isTimeWord(text: string): boolean {
  return TIME_WORDS.has(text.trim().toLowerCase());
}

function momentFromWord(text: string, { nowMicros }: Now): Whole | undefined {
  const word = text.trim().toLowerCase();
  if (word === "epoch") return 0;
  if (!isTimeWord(word)) return undefined;
  if (nowMicros === undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read "${word}" here: the time of the statement is not known, use now()`,
    );
  }
  if (word === "now") return nowMicros;
  const { days } = splitTimestamp(nowMicros);
  return joinTimestamp(days + (word === "tomorrow" ? 1 : word === "yesterday" ? -1 : 0), 0);
}

function unreadable(text: string, what: string): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot read ${excerpt(text)} as ${what}: expected for example ` +
      (what === "a time" ? "'14:30:00'" : "'2026-01-31' or '2026-01-31 14:30:00'"),
  );
}
