/**
 * Implements dates and times as items of a JSON path. The method `.datetime()` creates them from
 * strings.
 *
 * A value with a time zone keeps the zone for its text form. Comparing a value with a zone to a
 * value without one depends on the session's time zone. That zone is always UTC here, but as in
 * PostgreSQL, only functions with the suffix `_tz` allow the comparison.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt, roundMicros, textFromClock, textFromDate } from "../../../types/mod.ts";
import { momentFromFormat } from "../format/format_parse.ts";
import { piecesOf } from "../format/format_pattern.ts";

/** A date, a time of day, or both, with or without a time zone. */
export class PathMoment {
  readonly days: number | undefined;
  /** The time in microseconds since the start of the day, in the time zone of the value. */
  readonly micros: number | undefined;
  /** The time zone offset of the value, in minutes ahead of UTC. */
  readonly offsetMinutes: number | undefined;

  constructor(parts: {
    days?: number | undefined;
    micros?: number | undefined;
    offsetMinutes?: number | undefined;
  }) {
    this.days = parts.days;
    this.micros = parts.micros;
    this.offsetMinutes = parts.offsetMinutes;
  }

  get typeName(): string {
    if (this.micros === undefined) return "date";
    const zone = this.offsetMinutes === undefined ? "without" : "with";
    return `${this.days === undefined ? "time" : "timestamp"} ${zone} time zone`;
  }

  /** Returns the value in ISO 8601 format. */
  get text(): string {
    const date = this.days === undefined ? "" : textFromDate(this.days);
    if (this.micros === undefined) return date;
    const zone = this.offsetMinutes === undefined ? "" : zoneText(this.offsetMinutes);
    return `${date}${date === "" ? "" : "T"}${textFromClock(this.micros)}${zone}`;
  }
}

const MICROS_PER_MINUTE = 60_000_000;
const MICROS_PER_DAY = 86_400_000_000;

function zoneText(minutes: number): string {
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${twoDigits(Math.floor(size / 60))}:${twoDigits(size % 60)}`;
}

function twoDigits(part: number): string {
  return part.toString().padStart(2, "0");
}

const DATE = String.raw`(\d{1,7})-(\d{1,2})-(\d{1,2})`;
const CLOCK = String.raw`(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?(?:\s*([+-])(\d{1,2})(?::(\d{1,2}))?)?`;
const ISO = new RegExp(String.raw`^\s*(?:${DATE}(?:(?:T|\s+)${CLOCK})?|${CLOCK})\s*$`);

/** Reads a date, a time or both in ISO 8601 format. Returns undefined for any other string. */
export function momentFromIso(text: string): PathMoment | undefined {
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, ...clocks] = match;
  const clock = clocks[0] === undefined ? clocks.slice(7) : clocks.slice(0, 7);
  const days = year === undefined ? undefined : daysOf(Number(year), Number(month), Number(day));
  const time = clockOf(clock);
  const isWrong = (year !== undefined && days === undefined) || time === undefined;
  return isWrong ? undefined : new PathMoment({ days, ...time });
}

function daysOf(year: number, month: number, day: number): number | undefined {
  const padded = `${year.toString().padStart(4, "0")}-${month}-${day}`;
  try {
    return momentFromFormat(padded, "YYYY-MM-DD").days;
  } catch (error) {
    // The string has the form of a date, but the date does not exist.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

/**
 * Returns the time of day and its zone. If there is only a date, returns an empty object. If the
 * time does not exist, returns undefined.
 */
function clockOf(
  parts: readonly (string | undefined)[],
): { micros?: number; offsetMinutes?: number } | undefined {
  const [hour, minute, second, fraction = "", sign, zoneHours, zoneMinutes = "0"] = parts;
  if (hour === undefined) return {};
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const seconds = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
  const micros = seconds * 1_000_000 + Number(fraction.padEnd(6, "0"));
  if (sign === undefined) return { micros };
  if (Number(zoneHours) > 15 || Number(zoneMinutes) > 59) return undefined;
  const minutes = Number(zoneHours) * 60 + Number(zoneMinutes);
  return { micros, offsetMinutes: sign === "-" ? 0 - minutes : minutes };
}

/** The template fields for times and time zones. All other fields belong to dates. */
const CLOCK_FIELD = /^(?:HH|MI$|SS|MS$|US$|FF\d|[AP]\.?M\.?$)/;

/**
 * Reads a string according to a to_timestamp template.
 *
 * @throws {DatabaseError} INVALID_VALUE, …
 */
export function momentFromTemplate(text: string, template: string): PathMoment {
  const { days, micros, offsetMicros, end, isComplete } = momentFromFormat(text, template);
  if (text.slice(end).trim() !== "" || !isComplete) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} with the pattern ${excerpt(template)}: the text is ` +
        (isComplete ? "longer than the pattern" : "too short"),
    );
  }
  const fields = piecesOf(template).flatMap((piece) => (piece.kind === "field" ? piece.field : []));
  const hasZone = fields.some((field) => field === "TZH" || field === "TZM");
  const hasClock = hasZone || fields.some((field) => CLOCK_FIELD.test(field));
  const hasDate = fields.some((field) => !CLOCK_FIELD.test(field) && !field.startsWith("TZ"));
  return new PathMoment({
    days: hasDate ? days : undefined,
    micros: hasClock ? roundMicros(micros, 6) : undefined,
    offsetMinutes: hasZone ? Math.round(offsetMicros / MICROS_PER_MINUTE) : undefined,
  });
}

/**
 * Compares two dates or times.
 *
 * @returns undefined if one is only a time and the other has a date.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE if the result depends on the session's time zone and
 *   the function does not have the suffix `_tz`.
 */
export function compareMoments(
  left: PathMoment,
  right: PathMoment,
  usesZone: boolean,
): number | undefined {
  if ((left.days === undefined) !== (right.days === undefined)) return undefined;
  const isMixed = (left.offsetMinutes === undefined) !== (right.offsetMinutes === undefined);
  if (isMixed && !usesZone) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot compare ${left.typeName} with ${right.typeName} in a JSON path: only one of the ` +
        "two has a time zone",
      {
        hint:
          "use jsonb_path_query_tz or a similar function, which reads a timestamp without a time " +
          "zone as UTC",
      },
    );
  }
  const order = (left.days ?? 0) - (right.days ?? 0);
  const between = order * MICROS_PER_DAY + universalMicros(left) - universalMicros(right);
  if (between !== 0 || left.days !== undefined) return between;
  // Equal points in time are ordered by their time zones.
  return (right.offsetMinutes ?? 0) - (left.offsetMinutes ?? 0);
}

function universalMicros({ micros = 0, offsetMinutes = 0 }: PathMoment): number {
  return micros - offsetMinutes * MICROS_PER_MINUTE;
}
