/**
 * Intervals: months, days and microseconds kept apart, with PostgreSQL's text form.
 *
 * Fractions of a unit spill into the next smaller one (0.5 months are 15 days), as in PostgreSQL.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";
import { roundHalfEven } from "./integer.ts";
import type { Interval, Whole } from "./value.ts";
import { wholeFromBigint } from "./value.ts";

export const MICROS_PER_SECOND = 1_000_000;
export const MICROS_PER_DAY = 86_400_000_000;
const MICROS_PER_HOUR = 3_600_000_000;
const MICROS_PER_MINUTE = 60_000_000;
const SECONDS_PER_DAY = 86_400;
const DAYS_PER_MONTH = 30;
const INT_MAX = 2_147_483_647;

/** What one unit is: months, days or microseconds. */
interface Unit {
  readonly part: "months" | "days" | "micros";
  readonly count: number;
}

const UNITS: readonly (readonly [readonly string[], Unit])[] = [
  [["microsecond", "microseconds", "us", "usec", "usecs"], { part: "micros", count: 1 }],
  [["millisecond", "milliseconds", "ms", "msec", "msecs"], { part: "micros", count: 1000 }],
  [["second", "seconds", "s", "sec", "secs"], { part: "micros", count: MICROS_PER_SECOND }],
  [["minute", "minutes", "m", "min", "mins"], { part: "micros", count: MICROS_PER_MINUTE }],
  [["hour", "hours", "h", "hr", "hrs"], { part: "micros", count: MICROS_PER_HOUR }],
  [["day", "days", "d"], { part: "days", count: 1 }],
  [["week", "weeks", "w"], { part: "days", count: 7 }],
  [["month", "months", "mon", "mons"], { part: "months", count: 1 }],
  [["year", "years", "y", "yr", "yrs"], { part: "months", count: 12 }],
  [["decade", "decades", "dec", "decs"], { part: "months", count: 120 }],
  [["century", "centuries", "c", "cent"], { part: "months", count: 1200 }],
  [["millennium", "millennia", "mil", "mils"], { part: "months", count: 12_000 }],
];

const UNIT_BY_WORD: ReadonlyMap<string, Unit> = new Map(
  UNITS.flatMap(([words, unit]) => words.map((word) => [word, unit] as const)),
);

/** Adds parts that may be fractions, then rounds once to microseconds. */
class Sum {
  #months = 0;
  #days = 0;
  #micros = 0;

  add({ part, count }: Unit, amount: number): void {
    const total = amount * count;
    if (part === "micros") {
      this.#micros += total;
    } else if (part === "days") {
      const days = Math.trunc(total);
      this.#days += days;
      this.#micros += (total - days) * MICROS_PER_DAY;
    } else if (count > 1) {
      // A fraction of a year counts in whole months.
      this.#months += Math.round(total);
    } else {
      const months = Math.trunc(total);
      this.#months += months;
      // Rounding absorbs what binary fractions lose: 0.1 months are 3 days.
      const days = Math.round((total - months) * DAYS_PER_MONTH * 1e6) / 1e6;
      this.#days += Math.trunc(days);
      this.#micros += (days - Math.trunc(days)) * MICROS_PER_DAY;
    }
  }

  negate(): void {
    this.#months = -this.#months;
    this.#days = -this.#days;
    this.#micros = -this.#micros;
  }

  interval(): Interval {
    return makeInterval(this.#months, this.#days, Math.round(this.#micros));
  }
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE if a part is beyond its range. */
export function makeInterval(months: number, days: number, micros: number): Interval {
  const fits =
    Math.abs(months) <= INT_MAX && Math.abs(days) <= INT_MAX && Number.isSafeInteger(micros);
  if (fits) return { months: months + 0, days: days + 0, micros: micros + 0 };
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot make an interval: months and days must fit 32 bits, and microseconds 53 bits",
  );
}

export type IntervalField = "year" | "month" | "day" | "hour" | "minute" | "second";

/** What `INTERVAL '…' DAY TO HOUR` or `INTERVAL(3)` leaves of a value. */
export interface IntervalLimit {
  /** The fields as written, one or two; undefined: all. */
  readonly fields: readonly IntervalField[] | undefined;
  /** Digits of a second. */
  readonly digits: number | undefined;
}

/**
 * Reads PostgreSQL's verbose form, `hh:mm[:ss]`, `y-m` and ISO 8601 durations. A number without a
 * unit counts the last field of the limit, or seconds; what is below that field is cut off.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function intervalFromText(text: string, limit?: IntervalLimit): Interval {
  const trimmed = text.trim();
  const isIso = /^P/i.test(trimmed);
  const read = isIso ? readIso(trimmed) : readVerbose(trimmed, limit?.fields ?? []);
  if (read !== undefined && limit !== undefined) return limitedInterval(read, limit);
  if (read !== undefined) return read;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot read ${excerpt(text)} as an interval: expected for example '1 day 02:30:00'`,
  );
}

const TOKEN =
  /\s*(?:([+-]?)(\d+):(\d{1,2})(?::(\d{1,2})(\.\d*)?)?|([+-]?)(\d+)-(\d{1,2})(?=$|\s)|([+-]?(?:\d+\.?\d*|\.\d+))\s*([a-z]*)|(ago)|@)(?=$|[\s+-]|\d)\s*/iy;

function readVerbose(text: string, fields: readonly IntervalField[]): Interval | undefined {
  const parts = new Parts(fields);
  if (text === "") return undefined;
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null || match[0] === "") return undefined;
    at = TOKEN.lastIndex;
    const isLast = at === text.length;
    const isSpaced = isLast || /\s/.test(text[at - 1] ?? "");
    if (!parts.add(match, { isLast, isSpaced })) return undefined;
  }
  return parts.end();
}

/** The parts of the verbose form, each of which counts a field that none before it did. */
class Parts {
  readonly #fields: readonly IntervalField[];
  readonly #bareField: IntervalField;
  readonly #sum = new Sum();
  readonly #seen = new Set<string>();
  /** A number whose unit is not known yet. */
  #bare: number | undefined;

  constructor(fields: readonly IntervalField[]) {
    this.#fields = fields;
    this.#bareField = fields.at(-1) ?? "second";
  }

  /** Whether the part of a match may stand here. */
  add(
    match: RegExpExecArray,
    { isLast, isSpaced }: { isLast: boolean; isSpaced: boolean },
  ): boolean {
    if (match[2] !== undefined) return this.#addClock(match);
    if (match[7] !== undefined) {
      return addYears(this.#sum, match) && this.#isNew("year", "month");
    }
    if (match[9] !== undefined) return this.#addAmount(match, isSpaced);
    if (match[11] !== undefined) this.#sum.negate();
    return match[11] === undefined || isLast;
  }

  /** Undefined if nothing was counted, or a field twice. */
  end(): Interval | undefined {
    if (this.#bare !== undefined) {
      const unit = UNIT_BY_WORD.get(this.#bareField);
      if (unit === undefined || !this.#isNew(wordOf(unit))) return undefined;
      this.#sum.add(unit, this.#bare);
    }
    return this.#seen.size === 0 ? undefined : this.#sum.interval();
  }

  #addClock(match: RegExpExecArray): boolean {
    if (!this.#addBareDays()) return false;
    return this.#isNew("hour", "minute", "second") && addClock(this.#sum, match, this.#fields);
  }

  #addAmount(match: RegExpExecArray, isSpaced: boolean): boolean {
    const unit = unitOf(match[10] ?? "", isSpaced);
    const amount = Number(match[9]);
    if (unit === undefined) return false;
    if (unit === "bare") {
      // Before a bare number of hours a bare one counts days: '1 5' DAY TO HOUR.
      if (this.#bare !== undefined && this.#bareField !== "hour") return false;
      const isNew = this.#addBareDays();
      this.#bare = amount;
      return isNew;
    }
    // As before a clock time, a bare number before hours counts days: '1 5 hours'.
    if (wordOf(unit) === "hour" && !this.#addBareDays()) return false;
    this.#sum.add(unit, amount);
    return this.#bare === undefined && this.#isNew(wordOf(unit));
  }

  /** A bare number before a clock time counts days: '1 02:03'. */
  #addBareDays(): boolean {
    if (this.#bare === undefined) return true;
    this.#sum.add({ part: "days", count: 1 }, this.#bare);
    this.#bare = undefined;
    return this.#isNew("day");
  }

  #isNew(...words: readonly string[]): boolean {
    const before = this.#seen.size;
    for (const word of words) this.#seen.add(word);
    return this.#seen.size === before + words.length;
  }
}

/** One word for all names of a unit. */
function wordOf(unit: Unit): string {
  return UNITS.find(([, one]) => one === unit)?.[0][0] ?? "";
}

/** `y-m`. */
function addYears(sum: Sum, match: RegExpExecArray): boolean {
  const rest = Number(match[8]);
  const months = Number(match[7]) * 12 + rest;
  sum.add({ part: "months", count: 1 }, match[6] === "-" ? -months : months);
  return rest < 12;
}

/**
 * The unit behind a number. Without one a number ends at a space, so that a date is not read as
 * numbers.
 */
function unitOf(word: string, isSpaced: boolean): Unit | "bare" | undefined {
  if (word === "") return isSpaced ? "bare" : undefined;
  return UNIT_BY_WORD.get(word.toLowerCase());
}

/** `hh:mm[:ss]`; of two numbers `mm:ss` if the fields are MINUTE TO SECOND. */
function addClock(
  sum: Sum,
  match: RegExpExecArray,
  [first, last]: readonly IntervalField[],
): boolean {
  const isShort = match[4] === undefined && first === "minute" && last === "second";
  const [hours, minutes, rest] = isShort
    ? [0, Number(match[2]), match[3] ?? "0"]
    : [Number(match[2]), Number(match[3]), match[4] ?? "0"];
  const seconds = Number(rest + (match[5] ?? ""));
  // A leap second belongs to the next minute.
  if (minutes > 59 || seconds >= 61) return false;
  const sign = match[1] === "-" ? -1 : 1;
  const whole = hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE;
  sum.add({ part: "micros", count: 1 }, sign * (whole + seconds * MICROS_PER_SECOND));
  return true;
}

const ISO_PART = /([+-]?(?:\d+\.?\d*|\.\d+))([A-Z])/y;

// `P0001-02-03T04:05:06`, either part alone as well.
const ISO_DATE = /^P(?:(\d+)-(\d+)-(\d+))?(?:T(\d+):(\d+):(\d+(?:\.\d+)?))?$/i;

function readDated(text: string): Interval | undefined {
  const match = ISO_DATE.exec(text);
  if (match === null || text.length === 1) return undefined;
  const [years = 0, months = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match
    .slice(1)
    .map((part: string | undefined) => Number(part ?? 0));
  const micros = hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE;
  const rest = Math.round(seconds * MICROS_PER_SECOND);
  return makeInterval(years * 12 + months, days, micros + rest);
}

function readIso(text: string): Interval | undefined {
  const upper = text.toUpperCase();
  const dated = readDated(upper);
  if (dated !== undefined) return dated;
  const sum = new Sum();
  let at = 1;
  let afterT = false;
  let count = 0;
  while (at < upper.length) {
    if (upper[at] === "T" && !afterT) {
      afterT = true;
      at += 1;
      continue;
    }
    ISO_PART.lastIndex = at;
    const match = ISO_PART.exec(upper);
    const word = match?.[2] ?? "";
    const units: Readonly<Record<string, string>> = afterT
      ? { H: "hour", M: "minute", S: "second" }
      : { Y: "year", M: "month", W: "week", D: "day" };
    const unit = UNIT_BY_WORD.get(units[word] ?? "");
    if (match === null || unit === undefined) return undefined;
    sum.add(unit, Number(match[1]));
    at = ISO_PART.lastIndex;
    count += 1;
  }
  return count > 0 || afterT ? sum.interval() : undefined;
}

const MICROS_OF_FIELD: Readonly<Record<"hour" | "minute" | "second", number>> = {
  hour: MICROS_PER_HOUR,
  minute: MICROS_PER_MINUTE,
  second: 1,
};

/** An interval without what is below the last field of a limit; what is above the first stays. */
export function limitedInterval(interval: Interval, { digits, fields }: IntervalLimit): Interval {
  const { days, micros, months } = interval;
  const last = fields?.at(-1) ?? "second";
  switch (last) {
    case "year":
      return makeInterval(Math.trunc(months / 12) * 12, 0, 0);
    case "month":
      return makeInterval(months, 0, 0);
    case "day":
      return makeInterval(months, days, 0);
    case "hour":
    case "minute":
    case "second": {
      const unit = digits === undefined ? 1 : 10 ** (6 - digits);
      const rounded = Math.sign(micros) * Math.round(Math.abs(micros) / unit) * unit;
      const cut = rounded - (rounded % MICROS_OF_FIELD[last]);
      return makeInterval(months, days, cut);
    }
  }
}

/** PostgreSQL's form: `1 year 2 mons -3 days +04:05:06.5`. */
export function textFromInterval({ months, days, micros }: Interval): string {
  const parts: string[] = [];
  let isBefore = false;
  const add = (value: number, unit: string): void => {
    if (value === 0) return;
    const sign = isBefore && value > 0 ? "+" : "";
    parts.push(`${sign}${value} ${unit}${value === 1 ? "" : "s"}`);
    isBefore = value < 0;
  };
  add(Math.trunc(months / 12), "year");
  add(months % 12, "mon");
  add(days, "day");
  if (micros !== 0 || parts.length === 0) {
    const sign = micros < 0 ? "-" : isBefore ? "+" : "";
    parts.push(sign + textFromClock(Math.abs(micros)));
  }
  return parts.join(" ");
}

/** Microseconds as `hh:mm:ss[.ffffff]`, the fraction without trailing zeros. */
export function textFromClock(micros: number): string {
  const fraction = micros % MICROS_PER_SECOND;
  const seconds = (micros - fraction) / MICROS_PER_SECOND;
  const hours = Math.floor(seconds / 3600);
  const text = `${pad2(hours)}:${pad2(Math.floor(seconds / 60) % 60)}:${pad2(seconds % 60)}`;
  if (fraction === 0) return text;
  return `${text}.${fraction.toString().padStart(6, "0").replace(/0+$/, "")}`;
}

export function pad2(value: number): string {
  return value < 10 ? `0${value}` : value.toString();
}

/** The length for comparison, 30 days a month and 24 hours a day, in microseconds. */
export function intervalSpan({ months, days, micros }: Interval): Whole {
  const wholeDays = months * DAYS_PER_MONTH + days;
  const span = wholeDays * MICROS_PER_DAY + micros;
  if (Math.abs(wholeDays) < 100_000 && Number.isSafeInteger(span)) return span;
  return wholeFromBigint(BigInt(wholeDays) * BigInt(MICROS_PER_DAY) + BigInt(micros));
}

export function addIntervals(left: Interval, right: Interval): Interval {
  return makeInterval(
    left.months + right.months,
    left.days + right.days,
    left.micros + right.micros,
  );
}

export function negateInterval({ months, days, micros }: Interval): Interval {
  return makeInterval(-months, -days, -micros);
}

/** Multiplies by a finite factor; fractions of months spill into days, those of days into time. */
export function scaleInterval({ months, days, micros }: Interval, factor: number): Interval {
  return intervalOfFractions(months * factor, days * factor, micros * factor);
}

/** Divides by a finite number that is not 0; fractions spill as in {@linkcode scaleInterval}. */
export function divideInterval({ months, days, micros }: Interval, divisor: number): Interval {
  return intervalOfFractions(months / divisor, days / divisor, micros / divisor);
}

/**
 * The fraction of the months becomes days, what is left of them and the fraction of the days
 * seconds; both are rounded to microseconds of their unit, as PostgreSQL does, because binary
 * fractions would show otherwise.
 */
function intervalOfFractions(months: number, days: number, micros: number): Interval {
  const wholeMonths = Math.trunc(months);
  const wholeDays = Math.trunc(days);
  const monthDays = roundToMicro((months - wholeMonths) * DAYS_PER_MONTH);
  const spilledDays = Math.trunc(monthDays);
  const seconds = roundToMicro((days - wholeDays + monthDays - spilledDays) * SECONDS_PER_DAY);
  const carriedDays = Math.trunc(seconds / SECONDS_PER_DAY);
  const restSeconds = seconds - carriedDays * SECONDS_PER_DAY;
  return makeInterval(
    wholeMonths,
    wholeDays + spilledDays + carriedDays,
    roundHalfEven(micros + restSeconds * MICROS_PER_SECOND),
  );
}

function roundToMicro(value: number): number {
  return roundHalfEven(value * MICROS_PER_SECOND) / MICROS_PER_SECOND;
}
