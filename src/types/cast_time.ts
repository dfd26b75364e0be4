/**
 * Casts among dates, times and intervals. Also casts integers, which count the units of the wire
 * format.
 */
import { DatabaseError } from "../base/errors.ts";
import type { CastMode, FoundCast } from "./cast.ts";
import { type DataType, isInteger } from "./data_type.ts";
import {
  dateOfTimestamp,
  isFiniteTimestamp,
  roundMicros,
  roundTimestamp,
  splitTimestamp,
  timestampOfDate,
} from "./datetime.ts";
import { MICROS_PER_DAY } from "./interval.ts";
import type { Interval, Value, Whole } from "./value.ts";

/**
 * Returns the cast between two types; undefined if neither is a date or time type, or if the
 * context does not allow the cast.
 */
export function castTime(from: DataType, to: DataType, mode: CastMode): FoundCast {
  switch (to.kind) {
    case "timestamp":
    case "datetime":
      return toTimestamp(from, { kind: to.kind, digits: to.digits ?? 6 }, mode);
    case "date":
      return toDate(from, mode);
    case "time":
      return toTime(from, to.digits ?? 6, mode);
    case "interval":
      if (from.kind !== "time") return undefined;
      return (value) => ({ months: 0, days: 0, micros: value as number });
    default:
      return undefined;
  }
}

function toTimestamp(
  from: DataType,
  to: { kind: "timestamp" | "datetime"; digits: number },
  mode: CastMode,
): FoundCast {
  if (from.kind === "date") return (value) => timestampOfDate(value as number);
  if (from.kind === "timestamp" || from.kind === "datetime") {
    // Dropping the zone loses information, so this cast is not implicit.
    if (from.kind === "datetime" && to.kind === "timestamp" && mode === "implicit") {
      return undefined;
    }
    if (to.digits >= (from.digits ?? 6)) return "same";
    return (value) => roundTimestamp(value as Whole, to.digits);
  }
  if (!isInteger(from) || mode !== "assignment") return undefined;
  return (value) => roundTimestamp(momentOf(value as Whole), to.digits);
}

function toDate(from: DataType, mode: CastMode): FoundCast {
  if (from.kind === "date") return "same";
  if (mode === "implicit") return undefined;
  if (from.kind === "timestamp" || from.kind === "datetime") {
    return (value) => dateOfTimestamp(value as Whole);
  }
  if (!isInteger(from) || mode !== "assignment") return undefined;
  return (value) => dayOf(Number(value));
}

/**
 * 0001-01-01 and 9999-12-31, in days since 1970. An integer outside this range was most likely
 * meant in a different unit, so it is refused. Strings may denote any date.
 */
const NUMBER_DAY_MIN = -719_162;
const NUMBER_DAY_MAX = 2_932_896;

function isLikelyDay(days: number): boolean {
  return days >= NUMBER_DAY_MIN && days <= NUMBER_DAY_MAX;
}

/** Whether an integer is plausible as a date or timestamp, and therefore accepted. */
export function isLikelyMoment({ kind }: DataType, value: Whole): boolean {
  return isLikelyDay(kind === "date" ? Number(value) : splitTimestamp(value).days);
}

function momentOf(micros: Whole): Whole {
  if (isLikelyDay(splitTimestamp(micros).days)) return micros;
  throw notInUnits(micros, "a timestamp", "microseconds", "2026-01-31T14:30:00Z");
}

function dayOf(days: number): number {
  if (isLikelyDay(days)) return days;
  throw notInUnits(days, "a date", "days", "2026-01-31");
}

/** Returns the error for an integer that was most likely meant in a different unit. */
function notInUnits(value: Whole, what: string, units: string, example: string): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot convert ${value} to ${what}: the number would count ${units} since 1970, and the ` +
      `year must be between 1 and 9999; send a string such as '${example}'`,
  );
}

function toTime(from: DataType, digits: number, mode: CastMode): FoundCast {
  if (from.kind === "time") {
    if (digits >= (from.digits ?? 6)) return "same";
    return (value) => roundMicros(value as number, digits);
  }
  if (mode === "implicit") return undefined;
  if (from.kind === "timestamp" || from.kind === "datetime") {
    // An infinite timestamp has no time of day.
    return (value) =>
      isFiniteTimestamp(value as Whole)
        ? roundMicros(splitTimestamp(value as Whole).micros, digits)
        : null;
  }
  if (from.kind === "interval") return (value) => roundMicros(timeOfInterval(value), digits);
  if (!isInteger(from) || mode !== "assignment") return undefined;
  return (value) => roundMicros(checkTime(Number(value)), digits);
}

function timeOfInterval(value: Value): number {
  const rest = (value as Interval).micros % MICROS_PER_DAY;
  return rest < 0 ? rest + MICROS_PER_DAY : rest + 0;
}

function checkTime(micros: number): number {
  if (micros >= 0 && micros <= MICROS_PER_DAY) return micros;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot convert ${micros} to a time of day: the number must be between 0 and ` +
      `${MICROS_PER_DAY} microseconds; send a string such as '14:30:00'`,
  );
}
