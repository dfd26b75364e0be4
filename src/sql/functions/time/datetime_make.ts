/** Defines functions that construct dates, times and intervals from numbers. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  DATE,
  DATETIME,
  DOUBLE,
  dateFromCivil,
  INT,
  INTERVAL,
  joinTimestamp,
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  makeInterval,
  TEXT,
  TIME,
  TIMESTAMP,
  TIMESTAMP_INFINITY,
  TIMESTAMP_MINUS_INFINITY,
  type Value,
  type Whole,
} from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { Overload, ScalarFunction } from "../base/function.ts";
import { instantFromLocal, zoneEastward } from "./time_zones.ts";

/**
 * Creates a date from year, month and day. A negative year is BC: -1 is 1 BC. There is no year 0.
 */
function makeDate([year = null, month = null, day = null]: readonly Value[]): number {
  const counted = year as number;
  if (counted === 0) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot create a date in the year 0: this year does not exist; for 1 BC, pass -1",
    );
  }
  return dateFromCivil(counted < 0 ? counted + 1 : counted, month as number, day as number);
}

function makeTime([hour = null, minute = null, second = null]: readonly Value[]): number {
  const [h, m, s] = [hour, minute, second] as [number, number, number];
  const micros = (h * 60 + m) * 60_000_000 + Math.round(s * MICROS_PER_SECOND);
  const isValid = h >= 0 && m >= 0 && m <= 59 && s >= 0 && s <= 60 && micros <= MICROS_PER_DAY;
  if (isValid) return micros;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot create the time ${h}:${m}:${s}: it must be between 00:00:00 and 24:00:00`,
  );
}

function makeTimestamp([year = null, month = null, day = null, ...clock]: readonly Value[]): Value {
  return joinTimestamp(makeDate([year, month, day]), makeTime(clock));
}

function makeDatetime(values: readonly Value[]): Value {
  const local = makeTimestamp(values.slice(0, 6));
  const zone = values[6];
  if (zone === undefined) return local;
  return instantFromLocal(zoneEastward(zone as string), local as Whole);
}

const INTERVAL_PARTS = ["years", "months", "weeks", "days", "hours", "mins", "secs"] as const;

const MAKE_INTERVAL: Overload = {
  ...overload(
    [INT, INT, INT, INT, INT, INT, DOUBLE],
    INTERVAL,
    (values) => {
      const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, mins = 0, secs = 0] =
        values as readonly number[];
      return makeInterval(
        years * 12 + months,
        weeks * 7 + days,
        (hours * 3600 + mins * 60) * MICROS_PER_SECOND + Math.round(secs * MICROS_PER_SECOND),
      );
    },
    { optionalCount: INTERVAL_PARTS.length },
  ),
  parameterNames: INTERVAL_PARTS,
};

/** Converts seconds since 1970 to a timestamp. */
function timestampFromEpoch([seconds = null]: readonly Value[]): Value {
  const value = seconds as number;
  if (value === Number.POSITIVE_INFINITY) return TIMESTAMP_INFINITY;
  if (value === Number.NEGATIVE_INFINITY) return TIMESTAMP_MINUS_INFINITY;
  if (Number.isNaN(value)) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot create a timestamp: the number of seconds is NaN",
    );
  }
  const days = Math.floor(value / 86_400);
  return joinTimestamp(days, Math.round((value - days * 86_400) * MICROS_PER_SECOND));
}

export const DATETIME_MAKE_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["make_date"], overload([INT, INT, INT], DATE, makeDate)),
  ...functionsNamed(["make_time"], overload([INT, INT, DOUBLE], TIME, makeTime)),
  ...functionsNamed(
    ["make_timestamp"],
    overload([INT, INT, INT, INT, INT, DOUBLE], TIMESTAMP, makeTimestamp),
  ),
  ...functionsNamed(
    ["make_timestamptz"],
    overload([INT, INT, INT, INT, INT, DOUBLE, TEXT], DATETIME, makeDatetime, { optionalCount: 1 }),
  ),
  ...functionsNamed(["make_interval"], MAKE_INTERVAL),
];

/**
 * The overload `to_timestamp(double)`. The other overload reads a string according to a pattern.
 */
export const TO_TIMESTAMP_OF_EPOCH: Overload = overload([DOUBLE], DATETIME, timestampFromEpoch);
