/**
 * Parses time zones, which are IANA names or fixed offsets, and finds their offset at an instant.
 *
 * The rules come from the runtime's ICU data. One formatter per zone is cached, because creating
 * one takes longer than a thousand calls.
 */
import { assert } from "../base/assert.ts";
import type { Whole } from "./value.ts";

export type TimeZone =
  | { readonly kind: "fixed"; readonly offsetSeconds: number }
  /**
   * A time zone abbreviation whose offset has changed over the years. Each offset is paired with
   * the second from which it applies.
   */
  | { readonly kind: "changed"; readonly offsets: readonly (readonly [number, number])[] }
  | {
      readonly kind: "named";
      readonly name: string;
      readonly format: Intl.DateTimeFormat;
      /** The offset at the start of each day, keyed by the number of days since 1970. */
      readonly offsetByDay: Map<number, number>;
    };

/**
 * The maximum number of cached zones. There are about 600 names, so ordinary use never reaches the
 * limit.
 */
const ZONES_MAX = 1000;

const zoneByName = new Map<string, TimeZone>();

/**
 * The offsets, in hours east of UTC, of the abbreviations that PostgreSQL defines by default. An
 * abbreviation has the same offset all year, whereas the zone of the same name in the time zone
 * database may change its offset during the year.
 */
const ABBREVIATIONS: ReadonlyMap<string, number> = new Map([
  ...["Z", "UTC", "UT", "GMT", "ZULU", "WET"].map((name) => [name, 0] as const),
  ...["BST", "CET", "MET", "WEST", "WAT"].map((name) => [name, 1] as const),
  ...["CEST", "EET", "IST", "MEST", "SAST", "CAT"].map((name) => [name, 2] as const),
  ...["EEST", "IDT", "EAT"].map((name) => [name, 3] as const),
  ...["PKT"].map((name) => [name, 5] as const),
  ...["ICT"].map((name) => [name, 7] as const),
  ...["AWST", "CCT", "HKT", "PHT", "SGT"].map((name) => [name, 8] as const),
  ...["JST", "KST"].map((name) => [name, 9] as const),
  ...["ACST"].map((name) => [name, 9.5] as const),
  ...["AEST"].map((name) => [name, 10] as const),
  ...["ACDT"].map((name) => [name, 10.5] as const),
  ...["AEDT"].map((name) => [name, 11] as const),
  ...["NZST"].map((name) => [name, 12] as const),
  ...["NZDT"].map((name) => [name, 13] as const),
  ...["NDT"].map((name) => [name, -2.5] as const),
  ...["BRT", "ART", "ADT"].map((name) => [name, -3] as const),
  ...["NST", "NFT"].map((name) => [name, -3.5] as const),
  ...["AST", "EDT"].map((name) => [name, -4] as const),
  ...["EST", "CDT"].map((name) => [name, -5] as const),
  ...["CST", "MDT"].map((name) => [name, -6] as const),
  ...["MST", "PDT"].map((name) => [name, -7] as const),
  ...["PST", "AKDT"].map((name) => [name, -8] as const),
  ...["AKST"].map((name) => [name, -9] as const),
  ...["HST"].map((name) => [name, -10] as const),
]);

/**
 * The abbreviations for the time in Moscow. MSK was three hours ahead of UTC, and four from
 * 2011-03-27 to 2014-10-26, when Russia stayed on summer time.
 */
const CHANGED_ABBREVIATIONS: ReadonlyMap<string, TimeZone> = new Map([
  [
    "MSK",
    {
      kind: "changed",
      offsets: [
        [Number.NEGATIVE_INFINITY, 10_800],
        [1_301_180_400, 14_400],
        [1_414_274_400, 10_800],
      ],
    },
  ],
  ["MSD", { kind: "fixed", offsetSeconds: 14_400 }],
]);

const OFFSET = /^([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?$/;

/** Parses `Z`, `UTC`, `±hh[:mm[:ss]]` (positive is east) or an IANA name, in any case. */
export function zoneFromText(text: string): TimeZone | undefined {
  const name = text.trim().toUpperCase();
  const hoursEast = ABBREVIATIONS.get(name);
  if (hoursEast !== undefined) return { kind: "fixed", offsetSeconds: hoursEast * 3600 };
  const changed = CHANGED_ABBREVIATIONS.get(name);
  if (changed !== undefined) return changed;
  const match = OFFSET.exec(name);
  if (match !== null) {
    const hours = Number(match[2]);
    const minutes = Number(match[3] ?? "0");
    const seconds = Number(match[4] ?? "0");
    if (hours > 15 || minutes > 59 || seconds > 59) return undefined;
    const offset = hours * 3600 + minutes * 60 + seconds;
    return { kind: "fixed", offsetSeconds: match[1] === "-" ? 0 - offset : offset };
  }
  return namedZone(name) ?? posixZone(name);
}

/** Parses a zone such as `GMT+8`, which is 8 hours west of UTC, as in POSIX. */
function posixZone(name: string): TimeZone | undefined {
  const [, sign, hours = "", minutes = "0"] =
    /^[A-Z]{3,6}([+-])(\d{1,2})(?::?(\d{2}))?$/.exec(name) ?? [];
  if (sign === undefined || Number(hours) > 15 || Number(minutes) > 59) return undefined;
  const size = Number(hours) * 3600 + Number(minutes) * 60;
  return { kind: "fixed", offsetSeconds: sign === "+" ? 0 - size : size };
}

function namedZone(name: string): TimeZone | undefined {
  const known = zoneByName.get(name);
  if (known !== undefined) return known;
  if (!/^[A-Z][A-Z0-9_+/-]*$/.test(name)) return undefined;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      era: "short",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch (error) {
    // Intl reports an unknown zone name only by a RangeError.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  const zone: TimeZone = { kind: "named", name, format, offsetByDay: new Map() };
  if (zoneByName.size < ZONES_MAX) zoneByName.set(name, zone);
  return zone;
}

/**
 * The number of days per zone for which offsets are cached. Calling a formatter takes as long as a
 * hundred lookups.
 */
const DAYS_KEPT = 20_000;
const SECONDS_PER_DAY = 86_400;

/** Returns the offset in seconds east of UTC at an instant, given in microseconds UTC. */
export function offsetSecondsAt(zone: TimeZone, instant: Whole): number {
  if (zone.kind === "fixed") return zone.offsetSeconds;
  const seconds = Math.floor(Number(instant) / 1_000_000);
  if (zone.kind === "changed") {
    return zone.offsets.findLast(([from]) => seconds >= from)?.[1] ?? 0;
  }
  const day = Math.floor(seconds / SECONDS_PER_DAY);
  const before = offsetAtDay(zone, day);
  // No zone changes its offset twice between two UTC midnights.
  return before === offsetAtDay(zone, day + 1) ? before : offsetAt(zone.format, seconds);
}

function offsetAtDay(zone: TimeZone & { kind: "named" }, day: number): number {
  const known = zone.offsetByDay.get(day);
  if (known !== undefined) return known;
  const offset = offsetAt(zone.format, day * SECONDS_PER_DAY);
  if (zone.offsetByDay.size >= DAYS_KEPT) zone.offsetByDay.clear();
  zone.offsetByDay.set(day, offset);
  return offset;
}

/** The last second that a JavaScript Date can represent, which is in the year 275760. */
const DATE_SECONDS_MAX = 8_640_000_000_000;

function offsetAt(format: Intl.DateTimeFormat, instant: number): number {
  const seconds = Math.max(-DATE_SECONDS_MAX, Math.min(DATE_SECONDS_MAX, instant));
  const fields: Record<string, number> = {};
  let isBeforeChrist = false;
  for (const { type, value } of format.formatToParts(seconds * 1000)) {
    if (type === "era") isBeforeChrist = value.startsWith("B");
    else fields[type] = Number(value);
  }
  const year = fields["year"] ?? 0;
  const local = new Date(0);
  local.setUTCFullYear(
    isBeforeChrist ? 1 - year : year,
    (fields["month"] ?? 1) - 1,
    fields["day"] ?? 1,
  );
  local.setUTCHours(fields["hour"] ?? 0, fields["minute"] ?? 0, fields["second"] ?? 0);
  const offset = local.getTime() / 1000 - seconds;
  assert(Math.abs(offset) < SECONDS_PER_DAY, "time zone: offset from UTC is a day or longer");
  return offset;
}

/**
 * Returns a zone's offset, in seconds east of UTC, when its clocks show a given local time.
 *
 * As in PostgreSQL, a time that the clocks skip is read with the offset before the change. A time
 * that occurs twice denotes the occurrence in standard time.
 */
export function offsetSecondsAtLocal(zone: TimeZone, local: Whole): number {
  if (zone.kind === "fixed") return zone.offsetSeconds;
  const micros = Number(local);
  const before = offsetSecondsAt(zone, micros - 86_400_000_000);
  const after = offsetSecondsAt(zone, micros + 86_400_000_000);
  if (before === after) return offsetAround(zone, micros, before);
  const isBefore = offsetSecondsAt(zone, micros - before * 1_000_000) === before;
  const isAfter = offsetSecondsAt(zone, micros - after * 1_000_000) === after;
  if (isBefore && isAfter) return Math.min(before, after);
  // The new offset of an abbreviation applies from the moment at which the clocks change.
  const isSkipped = !isBefore && !isAfter;
  return isAfter || (isSkipped && zone.kind === "changed") ? after : before;
}

/**
 * Returns the offset at a local time, given that the offset is the same a day earlier and a day
 * later. Two changes within two days are rare, and even then the result is correct at the instant
 * itself.
 */
function offsetAround(zone: TimeZone, micros: number, offset: number): number {
  const there = offsetSecondsAt(zone, micros - offset * 1_000_000);
  return there === offset ? offset : offsetSecondsAt(zone, micros - there * 1_000_000);
}
