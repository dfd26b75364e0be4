/**
 * Implements AT TIME ZONE, which converts between a local time in a time zone and an instant.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  DATETIME,
  type DataType,
  excerpt,
  INTERVAL,
  type Interval,
  isFiniteTimestamp,
  joinTimestamp,
  MICROS_PER_DAY,
  offsetSecondsAt,
  offsetSecondsAtLocal,
  splitTimestamp,
  TEXT,
  TIMESTAMP,
  TIMETZ,
  type TimeZone,
  type Value,
  type Whole,
  zonedTimeOf,
  zonedTimeValue,
  zoneFromText,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";

/**
 * Returns the form of `timezone(zone, timestamp)`, which converts a TIMESTAMP to a TIMESTAMPTZ and
 * vice versa. The zone is a string, or an interval counted eastward from UTC.
 */
export function resolveTimeZone(zone: DataType, moment: DataType): OperatorForm | undefined {
  const zoneType = zone.kind === "interval" ? INTERVAL : TEXT;
  if (zone.kind !== zoneType.kind && zone.kind !== "unknown") return undefined;
  switch (moment.kind) {
    case "timestamp":
      return binaryForm([zoneType, TIMESTAMP], DATETIME, (value, local) =>
        instantFromLocal(zoneOf(value), local as Whole),
      );
    case "timetz":
      return binaryForm([zoneType, TIMETZ], TIMETZ, (value, time) =>
        zonedTimeIn(zoneOf(value), time as string),
      );
    case "datetime":
    case "date":
    case "unknown":
      return binaryForm([zoneType, DATETIME], TIMESTAMP, (value, instant) =>
        localFromInstant(zoneOf(value), instant as Whole),
      );
    default:
      return undefined;
  }
}

/** Converts a time of day to another zone. The zone must have a fixed offset. */
function zonedTimeIn(zone: TimeZone, time: string): string {
  if (zone.kind !== "fixed") {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot convert a time of day to a time zone whose offset changes: the date is unknown",
      { hint: "convert a TIMESTAMPTZ, or use a fixed offset such as INTERVAL '-05:00'" },
    );
  }
  const { micros, offset } = zonedTimeOf(time);
  const moved = micros + (zone.offsetSeconds - offset) * 1_000_000;
  const within = ((moved % MICROS_PER_DAY) + MICROS_PER_DAY) % MICROS_PER_DAY;
  return zonedTimeValue({ micros: within, offset: zone.offsetSeconds });
}

/**
 * Adds seconds to a timestamp.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function shiftBySeconds(value: Whole, seconds: number): Whole {
  if (!isFiniteTimestamp(value)) return value;
  const { days, micros } = splitTimestamp(value);
  return joinTimestamp(days, micros + seconds * 1_000_000);
}

/** Returns the instant at which clocks in a zone show a local time. */
export function instantFromLocal(zone: TimeZone, local: Whole): Whole {
  return shiftBySeconds(local, 0 - offsetSecondsAtLocal(zone, local));
}

/** Returns the local time that clocks in a zone show at an instant. */
export function localFromInstant(zone: TimeZone, instant: Whole): Whole {
  return shiftBySeconds(instant, offsetSecondsAt(zone, instant));
}

/**
 * Returns the time zone that a string or interval denotes. @throws {DatabaseError} INVALID_VALUE
 */
function zoneOf(value: Value): TimeZone {
  if (typeof value === "string") return zoneOfText(value);
  const { days, micros, months } = value as Interval;
  const offsetSeconds = Math.trunc(micros / 1_000_000);
  if (months === 0 && days === 0) return { kind: "fixed", offsetSeconds };
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot use an interval with months or days as a time zone: it may contain only hours and " +
      "minutes",
  );
}

/**
 * Returns the time zone for a name or an offset. A bare offset counts westward here, as in POSIX
 * and PostgreSQL: `AT TIME ZONE '+02'` is two hours behind UTC.
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
export function zoneOfText(text: string): TimeZone {
  const zone = zoneEastward(text);
  const isOffset = zone.kind === "fixed" && /^\s*[+-]/.test(text);
  return isOffset ? { kind: "fixed", offsetSeconds: 0 - zone.offsetSeconds } : zone;
}

/**
 * Returns the time zone for a name or an offset. An offset counts eastward, as it does within a
 * timestamp.
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
export function zoneEastward(text: string): TimeZone {
  const zone = zoneFromText(text);
  if (zone !== undefined) return zone;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use ${excerpt(text)} as a time zone: it must be an IANA name, such as ` +
      "'Europe/Berlin', or an offset",
  );
}
