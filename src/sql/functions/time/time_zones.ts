/**
 * AT TIME ZONE: a local time read in a zone, or an instant shown in one.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  DATETIME,
  type DataType,
  excerpt,
  INTERVAL,
  type Interval,
  joinTimestamp,
  offsetSecondsAt,
  offsetSecondsAtLocal,
  splitTimestamp,
  TEXT,
  TIMESTAMP,
  type Value,
  type Whole,
  type Zone,
  zoneFromText,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";

/**
 * The form of `timezone(zone, moment)`: a TIMESTAMP becomes a TIMESTAMPTZ and the other way round.
 * The zone is a text or an interval east of UTC.
 */
export function resolveTimeZone(zone: DataType, moment: DataType): OperatorForm | undefined {
  const zoneType = zone.kind === "interval" ? INTERVAL : TEXT;
  if (zone.kind !== zoneType.kind && zone.kind !== "unknown") return undefined;
  switch (moment.kind) {
    case "timestamp":
      return binaryForm([zoneType, TIMESTAMP], DATETIME, instantFromLocal);
    case "datetime":
    case "date":
    case "unknown":
      return binaryForm([zoneType, DATETIME], TIMESTAMP, localFromInstant);
    default:
      return undefined;
  }
}

function shift(value: Whole, seconds: number): Whole {
  const { days, micros } = splitTimestamp(value);
  return joinTimestamp(days, micros + seconds * 1_000_000);
}

function instantFromLocal(zone: Value, local: Value): Value {
  const value = local as Whole;
  return shift(value, 0 - offsetSecondsAtLocal(zoneOf(zone), value));
}

function localFromInstant(zone: Value, instant: Value): Value {
  const value = instant as Whole;
  return shift(value, offsetSecondsAt(zoneOf(zone), value));
}

/** @throws {DatabaseError} INVALID_VALUE */
function zoneOf(value: Value): Zone {
  if (typeof value === "string") return zoneOfText(value);
  const { days, micros, months } = value as Interval;
  const offsetSeconds = Math.trunc(micros / 1_000_000);
  if (months === 0 && days === 0) return { kind: "fixed", offsetSeconds };
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot use an interval of months or days as a time zone: expected hours and minutes",
  );
}

/**
 * The zone of a name or offset. A bare offset counts westward here, as POSIX and PostgreSQL have
 * it: `AT TIME ZONE '+02'` is two hours behind UTC.
 */
function zoneOfText(text: string): Zone {
  const zone = zoneFromText(text);
  if (zone === undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot use ${excerpt(text)} as a time zone: expected an IANA name such as 'Europe/Berlin' or an offset`,
    );
  }
  const isOffset = zone.kind === "fixed" && /^\s*[+-]/.test(text);
  return isOffset ? { kind: "fixed", offsetSeconds: 0 - zone.offsetSeconds } : zone;
}
