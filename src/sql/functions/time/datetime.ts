/**
 * Defines functions on dates and times: the current time, fields, truncation, age and time zones.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  checkTimestamp,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  INT,
  INTERVAL,
  type Interval,
  isFiniteDate,
  isFiniteTimestamp,
  joinTimestamp,
  MICROS_PER_DAY,
  makeInterval,
  offsetSecondsAt,
  roundMicros,
  roundTimestamp,
  splitTimestamp,
  TEXT,
  TIME,
  TIMESTAMP,
  TIMETZ,
  timestampOfDate,
  type Value,
  type Whole,
  wholeFromBigint,
  zonedTimeValue,
} from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { CallDeps, Overload, ScalarFunction } from "../base/function.ts";
import {
  clockFieldsOf,
  cutsWithinDay,
  fieldOf,
  truncateInterval,
  truncateTimestamp,
} from "./datetime_fields.ts";
import { addToTime, addToTimestamp, addToZonedTime, ageBetween } from "./time_math.ts";
import {
  instantFromLocal,
  localFromInstant,
  resolveTimeZone,
  shiftBySeconds,
  zoneOfText,
} from "./time_zones.ts";

type Instant = (call: CallDeps, digits: number) => Value;

/**
 * Creates a function that returns the time of the statement, with an optional number of fraction
 * digits.
 */
function now(names: readonly string[], result: DataType, read: Instant): ScalarFunction[] {
  return functionsNamed(
    names,
    overload(
      [INT],
      result,
      ([digits = 6], call) => read(call, Math.max(0, Math.min(6, digits as number))),
      { optionalCount: 1, volatility: "stable" },
    ),
  );
}

function timestampNow(call: CallDeps, digits: number): Value {
  return roundTimestamp(call.nowMicros, digits);
}

function timeNow(call: CallDeps, digits: number): number {
  return roundMicros(splitTimestamp(call.nowMicros).micros, digits) % MICROS_PER_DAY;
}

/** The function `timezone(zone, ts)`, which implements AT TIME ZONE. */
const TIME_ZONE: Overload = {
  ...overload(["any", "any"], TIMESTAMP, () => null),
  specialise: ([zone = TEXT, moment = TEXT]) => {
    const form = resolveTimeZone(zone, moment);
    if (form === undefined) return undefined;
    const isDate = moment.kind === "date";
    return {
      result: form.result,
      evaluate: ([zoneValue = null, value = null]) =>
        form.evaluate([zoneValue, isDate ? timestampOfDate(value as number) : value]),
    };
  },
};

/**
 * Truncates a timestamp in a time zone: truncates the local time and converts the result back to
 * an instant. Truncation within a day keeps the offset, so that a repeated hour remains
 * unambiguous.
 */
function truncateInZone([field = null, value = null, zone = null]: readonly Value[]): Value {
  const instant = value as Whole;
  const where = zoneOfText(zone as string);
  const local = localFromInstant(where, instant);
  const cut = truncateTimestamp(field as string, local, DATETIME);
  if (!cutsWithinDay(field as string)) return instantFromLocal(where, cut);
  return shiftBySeconds(cut, 0 - offsetSecondsAt(where, instant));
}

function truncating(type: DataType): Overload {
  return overload([TEXT, type], type, ([field = null, value = null]) =>
    truncateTimestamp(field as string, value as Whole, type),
  );
}

/**
 * Returns the start of the bin of length `step` that contains the timestamp. Bins are aligned to
 * `origin`.
 */
function bin([step = null, value = null, origin = null]: readonly Value[]): Value {
  const { months, days, micros } = step as Interval;
  const width = BigInt(days) * BigInt(MICROS_PER_DAY) + BigInt(micros);
  if (months !== 0 || width <= 0n) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot assign the timestamp to a bin: the bin width must be positive, and must not " +
        "contain months or years",
    );
  }
  if (width >= 2n ** 63n) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot assign the timestamp to a bin: the bin width must be less than 2^63 microseconds",
    );
  }
  if (!isFiniteTimestamp(origin as Whole)) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot assign the timestamp to a bin: the origin of the bins is infinite",
    );
  }
  if (!isFiniteTimestamp(value as Whole)) return value;
  const start = BigInt(origin as Whole);
  const offset = BigInt(value as Whole) - start;
  const rest = ((offset % width) + width) % width;
  return checkTimestamp(wholeFromBigint(start + offset - rest));
}

function binning(type: DataType): Overload {
  return overload([INTERVAL, type, type], type, bin);
}

function extracting(type: DataType): Overload {
  return overload(
    [TEXT, type],
    DOUBLE,
    ([field = null, value = null]) => fieldOf(field as string, value, type),
    {
      evaluateVector: (vector, [field = null], position) =>
        position === 1 ? clockFieldsOf(field as string, vector, type) : undefined,
    },
  );
}

const EXTRACTS: readonly Overload[] = [DATETIME, TIMESTAMP, TIME, INTERVAL, TIMETZ].map(extracting);

/**
 * The overload of `date_part` for a date, which is treated as midnight. Unlike date_part, EXTRACT
 * rejects time fields for a date.
 */
const DATE_PART: Overload = overload([TEXT, DATE], DOUBLE, ([field = null, days = null]) =>
  fieldOf(field as string, timestampOfDate(days as number), TIMESTAMP),
);

function ages(type: DataType): readonly Overload[] {
  return [
    overload([type, type], INTERVAL, ([later = null, earlier = null]) =>
      ageBetween(later as Whole, earlier as Whole),
    ),
    overload(
      [type],
      INTERVAL,
      ([value = null], call) => {
        const today = joinTimestamp(splitTimestamp(call.nowMicros).days, 0);
        return ageBetween(today, value as Whole);
      },
      { volatility: "stable" },
    ),
  ];
}

/** Converts each 24 hours in an interval to a day. */
function justifyHours({ months, days, micros }: Interval): Interval {
  const whole = Math.trunc(micros / MICROS_PER_DAY);
  return sameSigns(months, days + whole, micros - whole * MICROS_PER_DAY);
}

/** Adjusts the days and the time of an interval to have the same sign. */
function sameSigns(months: number, days: number, micros: number): Interval {
  if (days > 0 && micros < 0) return makeInterval(months, days - 1, micros + MICROS_PER_DAY);
  if (days < 0 && micros > 0) return makeInterval(months, days + 1, micros - MICROS_PER_DAY);
  return makeInterval(months, days, micros);
}

/** Converts each 30 days in an interval to a month. */
function justifyDays({ months, days, micros }: Interval): Interval {
  const whole = Math.trunc(days / 30);
  const rest = days - whole * 30;
  const total = months + whole;
  if (total > 0 && rest < 0) return makeInterval(total - 1, rest + 30, micros);
  if (total < 0 && rest > 0) return makeInterval(total + 1, rest - 30, micros);
  return makeInterval(total, rest, micros);
}

function justifyInterval(interval: Interval): Interval {
  const { months, days, micros } = justifyDays(justifyHours(interval));
  // If adjacent parts of the interval have different signs, the larger unit lends to the smaller
  // one.
  if (months > 0 && (days < 0 || (days === 0 && micros < 0))) {
    return sameSigns(months - 1, days + 30, micros);
  }
  if (months < 0 && (days > 0 || (days === 0 && micros > 0))) {
    return sameSigns(months + 1, days - 30, micros);
  }
  return sameSigns(months, days, micros);
}

function justifying(change: (interval: Interval) => Interval): Overload {
  return overload([INTERVAL], INTERVAL, ([value = null]) => change(value as Interval));
}

/**
 * Implements OVERLAPS, which tests whether two periods overlap. A period is given by its start and
 * either its end or its length.
 */
function overlaps([
  start1 = null,
  end1 = null,
  start2 = null,
  end2 = null,
]: readonly Value[]): Value {
  const [a1, b1] = ordered(start1, end1);
  const [a2, b2] = ordered(start2, end2);
  if (a1 === null || a2 === null) return null;
  if (a1 === a2) return b1 !== null && b2 !== null ? true : null;
  const [later, end] = a1 > a2 ? [a1, b2] : [a2, b1];
  if (end !== null && later < end) return true;
  const firstEnd = a1 > a2 ? b1 : b2;
  return end === null || firstEnd === null ? null : false;
}

type OverlapBound = number | bigint | string | null;

/** Puts the two bounds of a period in ascending order. A NULL bound counts as the end. */
function ordered(start: Value, end: Value): [OverlapBound, OverlapBound] {
  const a = start as OverlapBound;
  const b = end as OverlapBound;
  if (a === null) return [b, a];
  return b !== null && a > b ? [b, a] : [a, b];
}

function overlapping(
  type: DataType,
  endOf: (start: Value, length: Interval) => Value,
): readonly Overload[] {
  const ended = (start: Value, length: Value): Value =>
    start === null || length === null ? null : endOf(start, length as Interval);
  const options = { seesNull: true };
  return [
    overload([type, type, type, type], BOOLEAN, overlaps, options),
    ...[
      [type, INTERVAL],
      [INTERVAL, type],
      [INTERVAL, INTERVAL],
    ].map(([first = type, second = type]) =>
      overload(
        [type, first, type, second],
        BOOLEAN,
        ([start1 = null, end1 = null, start2 = null, end2 = null]) =>
          overlaps([
            start1,
            first === INTERVAL ? ended(start1, end1) : end1,
            start2,
            second === INTERVAL ? ended(start2, end2) : end2,
          ]),
        options,
      ),
    ),
  ];
}

function timestampAfter(start: Value, length: Interval): Value {
  return addToTimestamp(start as Whole, length);
}

function timeAfter(start: Value, length: Interval): Value {
  return addToTime(start as number, length);
}

function finite(type: DataType, isFinite: (value: Value) => boolean): Overload {
  return overload([type], BOOLEAN, ([value = null]) => isFinite(value));
}

function isFiniteMoment(value: Value): boolean {
  return isFiniteTimestamp(value as Whole);
}

export const DATETIME_FUNCTIONS: readonly ScalarFunction[] = [
  ...now(["current_timestamp"], DATETIME, timestampNow),
  ...functionsNamed(
    ["now", "transaction_timestamp", "statement_timestamp"],
    overload([], DATETIME, (_, call) => call.nowMicros, { volatility: "stable" }),
  ),
  ...now(["localtimestamp"], TIMESTAMP, timestampNow),
  ...now(["localtime"], TIME, timeNow),
  ...now(["current_time"], TIMETZ, (call, digits) =>
    zonedTimeValue({ micros: timeNow(call, digits), offset: 0 }),
  ),
  ...functionsNamed(
    ["current_date"],
    overload([], DATE, (_, call) => splitTimestamp(call.nowMicros).days, { volatility: "stable" }),
  ),
  ...functionsNamed(
    ["clock_timestamp"],
    overload([], DATETIME, (_, call) => call.clockMicros(), { volatility: "volatile" }),
  ),
  ...functionsNamed(
    ["date_trunc"],
    truncating(DATETIME),
    truncating(TIMESTAMP),
    overload([TEXT, INTERVAL], INTERVAL, ([field = null, value = null]) =>
      truncateInterval(field as string, value as Interval, INTERVAL),
    ),
    overload([TEXT, DATETIME, TEXT], DATETIME, truncateInZone),
  ),
  ...functionsNamed(["date_bin"], binning(DATETIME), binning(TIMESTAMP)),
  ...functionsNamed(["extract"], ...EXTRACTS, extracting(DATE)),
  ...functionsNamed(["date_part"], ...EXTRACTS, DATE_PART),
  ...functionsNamed(["age"], ...ages(DATETIME), ...ages(TIMESTAMP)),
  ...functionsNamed(["timezone"], TIME_ZONE),
  ...functionsNamed(["justify_days"], justifying(justifyDays)),
  ...functionsNamed(["justify_hours"], justifying(justifyHours)),
  ...functionsNamed(["justify_interval"], justifying(justifyInterval)),
  ...functionsNamed(
    ["isfinite"],
    finite(DATETIME, isFiniteMoment),
    finite(TIMESTAMP, isFiniteMoment),
    finite(DATE, (days) => isFiniteDate(days as number)),
    finite(INTERVAL, () => true),
  ),
  ...functionsNamed(
    ["overlaps"],
    ...overlapping(DATETIME, timestampAfter),
    ...overlapping(TIMESTAMP, timestampAfter),
    ...overlapping(TIME, timeAfter),
    ...overlapping(TIMETZ, (start, length) => addToZonedTime(start as string, length)),
  ),
];
