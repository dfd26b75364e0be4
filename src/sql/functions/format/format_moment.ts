/** Defines the fields of a timestamp or interval that format patterns can refer to. */
import {
  civilFromDays,
  type Interval,
  MICROS_PER_DAY,
  splitTimestamp,
  type Whole,
} from "../../../types/mod.ts";

export interface Moment {
  /** The year within its era, BC or AD. */
  readonly year: number;
  readonly isBeforeChrist: boolean;
  readonly month: number;
  readonly day: number;
  /** The number of days since 1970-01-01; undefined for an interval, which has no calendar date. */
  readonly days: number | undefined;
  /** The hour of the day, or the hours of an interval, which may exceed 23. */
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly micros: number;
  readonly hasZone: boolean;
}

export function momentOfTimestamp(value: Whole, { hasZone }: { hasZone: boolean }): Moment {
  const { days, micros } = splitTimestamp(value);
  const { day, month, year } = civilFromDays(days);
  const isBeforeChrist = year <= 0;
  const counted = { year: isBeforeChrist ? 1 - year : year, isBeforeChrist };
  return { ...counted, month, day, days, ...clockOf(micros % MICROS_PER_DAY), hasZone };
}

export function momentOfInterval({ months, days, micros }: Interval): Moment {
  return {
    year: Math.trunc(months / 12),
    isBeforeChrist: false,
    month: months % 12,
    day: days,
    days: undefined,
    ...clockOf(micros),
    hasZone: false,
  };
}

function clockOf(micros: number): {
  hour: number;
  minute: number;
  second: number;
  micros: number;
} {
  const seconds = Math.trunc(micros / 1_000_000);
  return {
    hour: Math.trunc(seconds / 3600),
    minute: Math.trunc(seconds / 60) % 60,
    second: seconds % 60,
    micros: micros % 1_000_000,
  };
}
