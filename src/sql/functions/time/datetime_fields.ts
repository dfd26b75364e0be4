/**
 * Extracts fields from dates, times and intervals (EXTRACT), and truncates values to a field
 * (date_trunc).
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  civilFromDays,
  type DataType,
  dateFromCivil,
  dayOfWeek,
  excerpt,
  type Interval,
  isFiniteDate,
  isFiniteTimestamp,
  joinTimestamp,
  makeInterval,
  splitTimestamp,
  typeName,
  type Value,
  type Vector,
  type Whole,
  zonedTimeOf,
} from "../../../types/mod.ts";
import { dayOfYear, isoWeek, isoWeekStart } from "./time_math.ts";

const MICROS_PER_HOUR = 3_600_000_000;
const MICROS_PER_MINUTE = 60_000_000;
const MICROS_PER_SECOND = 1_000_000;

/** The number of days from the Julian epoch to 1970-01-01. */
const JULIAN_OFFSET = 2_440_588;

const ALIASES: ReadonlyMap<string, string> = new Map([
  ["microsecond", "microseconds"],
  ["usec", "microseconds"],
  ["us", "microseconds"],
  ["millisecond", "milliseconds"],
  ["msec", "milliseconds"],
  ["ms", "milliseconds"],
  ["seconds", "second"],
  ["sec", "second"],
  ["secs", "second"],
  ["minutes", "minute"],
  ["min", "minute"],
  ["mins", "minute"],
  ["hours", "hour"],
  ["hr", "hour"],
  ["hrs", "hour"],
  ["days", "day"],
  ["weeks", "week"],
  ["months", "month"],
  ["mon", "month"],
  ["mons", "month"],
  ["years", "year"],
  ["yr", "year"],
  ["yrs", "year"],
  ["decades", "decade"],
  ["centuries", "century"],
  ["millennia", "millennium"],
]);

function fieldName(text: string): string {
  const word = text.trim().toLowerCase();
  return ALIASES.get(word) ?? word;
}

/** Creates the error INVALID_VALUE for a field that a type does not have. */
function noSuchField(field: string, type: DataType): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot use the field ${excerpt(field)}: values of type ${typeName(type)} do not have it`,
  );
}

/**
 * Returns a field of a time of day, or of the time part of an interval. The time is in
 * microseconds.
 */
function clockField(field: string, micros: number): number | undefined {
  switch (field) {
    case "microseconds":
      return micros % MICROS_PER_MINUTE;
    case "milliseconds":
      return (micros % MICROS_PER_MINUTE) / 1000;
    case "second":
      return (micros % MICROS_PER_MINUTE) / MICROS_PER_SECOND;
    case "minute":
      return Math.trunc(micros / MICROS_PER_MINUTE) % 60;
    case "hour":
      return Math.trunc(micros / MICROS_PER_HOUR);
    default:
      return undefined;
  }
}

/**
 * Converts an astronomical year or century number, which includes 0, to a number without 0. BC
 * values count down from -1.
 */
function yearOfEra(count: number): number {
  return count > 0 ? count : count - 1;
}

function calendarField(field: string, days: number): number | undefined {
  const { year, month, day } = civilFromDays(days);
  switch (field) {
    case "day":
      return day;
    case "month":
      return month;
    case "year":
      return yearOfEra(year);
    case "quarter":
      return Math.ceil(month / 3);
    case "dow":
      return dayOfWeek(days);
    case "isodow":
      return ((dayOfWeek(days) + 6) % 7) + 1;
    case "doy":
      return dayOfYear(days);
    case "week":
      return isoWeek(days).week;
    case "isoyear":
      return yearOfEra(isoWeek(days).year);
    case "decade":
      return Math.floor(year / 10);
    case "century":
      return yearOfEra(Math.ceil(year / 100));
    case "millennium":
      return yearOfEra(Math.ceil(year / 1000));
    case "julian":
      return days + JULIAN_OFFSET;
    default:
      return undefined;
  }
}

/** Returns a field of a date or time value. */
export function fieldOf(name: string, value: Value, type: DataType): number | null {
  const field = fieldName(name);
  const infinite = infinityOf(value, type);
  const read = readField(field, infinite === undefined ? value : 0, type);
  if (read === undefined) throw noSuchField(name, type);
  if (infinite === undefined) return read + 0;
  return GROWING_FIELDS.has(field) ? infinite : null;
}

/** The fields that are infinite for an infinite date or timestamp. All other fields are NULL. */
const GROWING_FIELDS: ReadonlySet<string> = new Set([
  "year",
  "isoyear",
  "decade",
  "century",
  "millennium",
  "julian",
  "epoch",
]);

function infinityOf(value: Value, { kind }: DataType): number | undefined {
  const isInfinite =
    kind === "date"
      ? !isFiniteDate(value as number)
      : typeof value === "bigint" && !isFiniteTimestamp(value);
  if (!isInfinite) return undefined;
  return (value as Whole) > 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
}

/** Extracts the hours or minutes from a whole column; returns undefined for other fields. */
export function clockFieldsOf(name: string, vector: Vector, type: DataType): Vector | undefined {
  const isMoment = type.kind === "timestamp" || type.kind === "datetime";
  if (!isMoment || vector.kind !== "f64") return undefined;
  const field = fieldName(name);
  const unit =
    field === "hour" ? MICROS_PER_HOUR : field === "minute" ? MICROS_PER_MINUTE : undefined;
  if (unit === undefined) return undefined;
  const span = field === "hour" ? 24 : 60;
  const { length, nulls, values: micros } = vector;
  const values = new Float64Array(length);
  for (let row = 0; row < length; row += 1) {
    const units = Math.floor((micros[row] ?? 0) / unit);
    values[row] = units - span * Math.floor(units / span);
  }
  return { kind: "f64", length, values, nulls };
}

function readField(field: string, value: Value, type: DataType): number | undefined {
  switch (type.kind) {
    case "time": {
      const micros = value as number;
      return field === "epoch" ? micros / MICROS_PER_SECOND : clockField(field, micros);
    }
    case "timetz":
      return zonedTimeField(field, value as string);
    case "interval":
      return intervalField(field, value as Interval);
    case "date": {
      const days = value as number;
      return field === "epoch" ? days * 86_400 : calendarField(field, days);
    }
    default:
      return timestampField(field, value as Whole, type.kind === "datetime");
  }
}

function zonedTimeField(field: string, time: string): number | undefined {
  const { micros, offset } = zonedTimeOf(time);
  switch (field) {
    case "epoch":
      return micros / MICROS_PER_SECOND - offset;
    case "timezone":
      return offset;
    case "timezone_hour":
      return Math.trunc(offset / 3600);
    case "timezone_minute":
      return Math.trunc((offset % 3600) / 60);
    default:
      return clockField(field, micros);
  }
}

function timestampField(field: string, value: Whole, hasZone: boolean): number | undefined {
  if (field === "epoch") return Number(value) / MICROS_PER_SECOND;
  // Every session uses the time zone UTC.
  if (hasZone && /^timezone(?:_hour|_minute)?$/.test(field)) return 0;
  const { days, micros } = splitTimestamp(value);
  if (field === "julian") return days + JULIAN_OFFSET + micros / 86_400_000_000;
  return clockField(field, micros) ?? calendarField(field, days);
}

function intervalField(field: string, { months, days, micros }: Interval): number | undefined {
  const years = Math.trunc(months / 12);
  switch (field) {
    case "day":
      return days;
    case "month":
      return months % 12;
    case "quarter":
      return Math.trunc((months % 12) / 3) + 1;
    case "year":
      return years;
    case "decade":
      return Math.trunc(years / 10);
    case "century":
      return Math.trunc(years / 100);
    case "millennium":
      return Math.trunc(years / 1000);
    case "epoch":
      // For the field EPOCH, a year counts as 365.25 days and a month as 30 days.
      return (
        years * 365.25 * 86_400 +
        (months % 12) * 30 * 86_400 +
        days * 86_400 +
        micros / MICROS_PER_SECOND
      );
    default:
      return clockField(field, micros);
  }
}

/** The lengths of the fields shorter than a day, in microseconds. */
const CLOCK_STEPS: ReadonlyMap<string, number> = new Map([
  ["microseconds", 1],
  ["milliseconds", 1000],
  ["second", MICROS_PER_SECOND],
  ["minute", MICROS_PER_MINUTE],
  ["hour", MICROS_PER_HOUR],
]);

/** Whether truncation to a field changes only the time of day. */
export function cutsWithinDay(name: string): boolean {
  return CLOCK_STEPS.has(fieldName(name));
}

export function truncateTimestamp(name: string, value: Whole, type: DataType): Whole {
  const field = fieldName(name);
  const isFinite = isFiniteTimestamp(value);
  const { days, micros } = splitTimestamp(isFinite ? value : 0);
  const step = CLOCK_STEPS.get(field);
  const start = step === undefined ? truncateDays(field, days) : days;
  if (start === undefined) throw noSuchField(name, type);
  if (!isFinite) return value;
  return joinTimestamp(start, step === undefined ? 0 : micros - (micros % step));
}

function truncateDays(field: string, days: number): number | undefined {
  const { year, month } = civilFromDays(days);
  switch (field) {
    case "day":
      return days;
    case "week":
      return isoWeekStart(days);
    case "month":
      return dateFromCivil(year, month, 1);
    case "quarter":
      return dateFromCivil(year, month - ((month - 1) % 3), 1);
    case "year":
      return dateFromCivil(year, 1, 1);
    case "decade":
      return dateFromCivil(Math.floor(year / 10) * 10, 1, 1);
    case "century":
      return dateFromCivil(Math.ceil(year / 100) * 100 - 99, 1, 1);
    case "millennium":
      return dateFromCivil(Math.ceil(year / 1000) * 1000 - 999, 1, 1);
    default:
      return undefined;
  }
}

/** The lengths, in months, of the fields to which the months of an interval are truncated. */
const MONTH_STEPS: ReadonlyMap<string, number> = new Map([
  ["month", 1],
  ["quarter", 3],
  ["year", 12],
  ["decade", 120],
  ["century", 1200],
  ["millennium", 12_000],
]);

export function truncateInterval(name: string, value: Interval, type: DataType): Interval {
  const field = fieldName(name);
  const { months, days, micros } = value;
  const step = CLOCK_STEPS.get(field);
  if (step !== undefined) return makeInterval(months, days, micros - (micros % step));
  if (field === "day") return makeInterval(months, days, 0);
  const monthStep = MONTH_STEPS.get(field);
  if (monthStep === undefined) throw noSuchField(name, type);
  return makeInterval(months - (months % monthStep), 0, 0);
}
