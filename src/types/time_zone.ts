/**
 * Time zones: IANA names and fixed offsets, and the offset at a moment.
 *
 * The rules are those of the runtime's ICU data. One formatter a zone is kept, because making one
 * costs more than a thousand uses.
 */
import { assert } from "../base/assert.ts";
import type { Whole } from "./value.ts";

export type Zone =
  | { readonly kind: "fixed"; readonly offsetSeconds: number }
  | {
      readonly kind: "named";
      readonly name: string;
      readonly format: Intl.DateTimeFormat;
      /** Offsets at the start of days, by days since 1970. */
      readonly offsetByDay: Map<number, number>;
    };

/** Zones kept; there are about 600 names, so this is never reached by honest use. */
const ZONES_MAX = 1000;

const zoneByName = new Map<string, Zone>();

const OFFSET = /^([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?$/;

/** Reads `Z`, `UTC`, `±hh[:mm[:ss]]` (east is positive) or an IANA name, in any case. */
export function zoneFromText(text: string): Zone | undefined {
  const name = text.trim().toUpperCase();
  if (name === "Z" || name === "UTC" || name === "GMT") return { kind: "fixed", offsetSeconds: 0 };
  const match = OFFSET.exec(name);
  if (match !== null) {
    const hours = Number(match[2]);
    const minutes = Number(match[3] ?? "0");
    const seconds = Number(match[4] ?? "0");
    if (hours > 15 || minutes > 59 || seconds > 59) return undefined;
    const offset = hours * 3600 + minutes * 60 + seconds;
    return { kind: "fixed", offsetSeconds: match[1] === "-" ? 0 - offset : offset };
  }
  return namedZone(name);
}

function namedZone(name: string): Zone | undefined {
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
    // Intl has no other way to say that a name is unknown.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  const zone: Zone = { kind: "named", name, format, offsetByDay: new Map() };
  if (zoneByName.size < ZONES_MAX) zoneByName.set(name, zone);
  return zone;
}

/** Days of a zone whose offset is kept: a formatter costs a hundred times a look-up. */
const DAYS_KEPT = 20_000;
const SECONDS_PER_DAY = 86_400;

/** Seconds east of UTC at an instant, given in microseconds UTC. */
export function offsetSecondsAt(zone: Zone, instant: Whole): number {
  if (zone.kind === "fixed") return zone.offsetSeconds;
  const seconds = Math.floor(Number(instant) / 1_000_000);
  const day = Math.floor(seconds / SECONDS_PER_DAY);
  const before = offsetAtDay(zone, day);
  // No zone changes twice between two midnights of UTC.
  return before === offsetAtDay(zone, day + 1) ? before : offsetAt(zone.format, seconds);
}

function offsetAtDay(zone: Zone & { kind: "named" }, day: number): number {
  const known = zone.offsetByDay.get(day);
  if (known !== undefined) return known;
  const offset = offsetAt(zone.format, day * SECONDS_PER_DAY);
  if (zone.offsetByDay.size >= DAYS_KEPT) zone.offsetByDay.clear();
  zone.offsetByDay.set(day, offset);
  return offset;
}

function offsetAt(format: Intl.DateTimeFormat, seconds: number): number {
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
  assert(Math.abs(offset) < SECONDS_PER_DAY, "a zone is less than a day from UTC");
  return offset;
}

/**
 * Seconds east of UTC when clocks in the zone show a local time.
 *
 * A time that clocks skip or show twice is read with the offset before the change, as PostgreSQL
 * does for skipped times; of two moments it means the one in standard time.
 */
export function offsetSecondsAtLocal(zone: Zone, local: Whole): number {
  if (zone.kind === "fixed") return zone.offsetSeconds;
  const micros = Number(local);
  const before = offsetSecondsAt(zone, micros - 86_400_000_000);
  const after = offsetSecondsAt(zone, micros + 86_400_000_000);
  if (before === after) return offsetAround(zone, micros, before);
  const isBefore = offsetSecondsAt(zone, micros - before * 1_000_000) === before;
  const isAfter = offsetSecondsAt(zone, micros - after * 1_000_000) === after;
  if (isBefore && isAfter) return Math.min(before, after);
  return isAfter ? after : before;
}

/** Two changes within two days are rare, and still right at the moment itself. */
function offsetAround(zone: Zone, micros: number, offset: number): number {
  const there = offsetSecondsAt(zone, micros - offset * 1_000_000);
  return there === offset ? offset : offsetSecondsAt(zone, micros - there * 1_000_000);
}
