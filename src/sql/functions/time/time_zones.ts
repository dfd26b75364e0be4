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
      return binaryForm([zoneType, TIMESTAMP], DATETIME, (value, local) =>
        instantFromLocal(zoneOf(value), local as Whole),
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

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE outside the years 1 to 9999. */
export function shiftBySeconds(value: Whole, seconds: number): Whole {
  const { days, micros } = splitTimestamp(value);
  return joinTimestamp(days, micros + seconds * 1_000_000);
}

/** The instant at which clocks of a zone show a local time. */
export function instantFromLocal(zone: Zone, local: Whole): Whole {
  return shiftBySeconds(local, 0 - offsetSecondsAtLocal(zone, local));
}

/** What clocks of a zone show at an instant. */
export function localFromInstant(zone: Zone, instant: Whole): Whole {
  return shiftBySeconds(instant, offsetSecondsAt(zone, instant));
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
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
export function zoneOfText(text: string): Zone {
  const zone = zoneEastward(text);
  const isOffset = zone.kind === "fixed" && /^\s*[+-]/.test(text);
  return isOffset ? { kind: "fixed", offsetSeconds: 0 - zone.offsetSeconds } : zone;
}

/**
 * The zone of a name or offset, where an offset counts eastward, as within a timestamp.
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
export function zoneEastward(text: string): Zone {
  const zone = zoneFromText(text);
  if (zone !== undefined) return zone;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use ${excerpt(text)} as a time zone: expected an IANA name such as 'Europe/Berlin' or an offset`,
  );
}
