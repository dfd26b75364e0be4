/**
 * Implements the type TIME WITH TIME ZONE: a time of day and its UTC offset.
 *
 * A value is an ASCII string. Such strings sort in the order that PostgreSQL defines: by the
 * moment in UTC, then by the offset, with the eastern one first.
 *
 *     0104767000000 086400          05:06:07+00
 *     ─────┬─────── ──┬───
 *  microseconds in UTC  seconds west of UTC, both with a day added
 */
import { roundMicros } from "./datetime.ts";
import { MICROS_PER_DAY } from "./interval.ts";
import { textFromClock } from "./interval_text.ts";

export interface ZonedTime {
  /** The time in microseconds since local midnight. */
  readonly micros: number;
  /** The UTC offset in seconds, positive east of UTC. */
  readonly offset: number;
}

const MICROS_DIGITS = 12;
const SECONDS_PER_DAY = 86_400;

export function zonedTimeValue({ micros, offset }: ZonedTime): string {
  const utc = micros - offset * 1_000_000 + MICROS_PER_DAY;
  return `${String(utc).padStart(MICROS_DIGITS, "0")}${String(SECONDS_PER_DAY - offset).padStart(6, "0")}`;
}

/** Rounds a time to at most `digits` fractional digits of a second. */
export function roundedZonedTime({ micros, offset }: ZonedTime, digits: number): ZonedTime {
  return { micros: roundMicros(micros, digits), offset };
}

export function zonedTimeOf(value: string): ZonedTime {
  const offset = SECONDS_PER_DAY - Number(value.slice(MICROS_DIGITS));
  const utc = Number(value.slice(0, MICROS_DIGITS)) - MICROS_PER_DAY;
  return { micros: utc + offset * 1_000_000, offset };
}

export function textFromZonedTime(value: string): string {
  const { micros, offset } = zonedTimeOf(value);
  return textFromClock(micros) + offsetText(offset);
}

/** Returns the text of a UTC offset, such as `+02`, `-03:30` or `+01:23:45`. */
function offsetText(offset: number): string {
  const seconds = Math.abs(offset);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  while (parts.length > 1 && parts.at(-1) === 0) parts.pop();
  return (offset < 0 ? "-" : "+") + parts.map((part) => String(part).padStart(2, "0")).join(":");
}
