/**
 * Reads and writes the text forms of intervals. As in PostgreSQL, several forms can be read, but
 * only one is written.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";
import {
  DAYS_PER_MONTH,
  type IntervalField,
  type IntervalLimit,
  limitedInterval,
  MICROS_PER_DAY,
  MICROS_PER_HOUR,
  MICROS_PER_MINUTE,
  MICROS_PER_SECOND,
  makeInterval,
} from "./interval.ts";
import { withoutTrailingZeros } from "./trailing_zeros.ts";
import type { Interval } from "./value.ts";

/** A unit of time, with its size in months, days or microseconds. */
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
  [["millennium", "millennia", "millenniums", "mil", "mils"], { part: "months", count: 12_000 }],
];

const UNIT_BY_WORD: ReadonlyMap<string, Unit> = new Map(
  UNITS.flatMap(([words, unit]) => words.map((word) => [word, unit] as const)),
);

/**
 * Adds up the parts of an interval, which may be fractions, and rounds the result to microseconds
 * only once.
 */
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
      // A fraction of a year is rounded to whole months.
      this.#months += Math.round(total);
    } else {
      const months = Math.trunc(total);
      this.#months += months;
      // Rounding absorbs the error of binary fractions: 0.1 months are 3 days.
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

/**
 * Parses PostgreSQL's verbose form, `hh:mm[:ss]`, `y-m` and ISO 8601 durations. The unit of a
 * number without a unit is the last allowed field, or seconds if all fields are allowed. Parts
 * smaller than that field are truncated.
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
    `Cannot read ${excerpt(text)} as an interval: expected a value such as '1 day 02:30:00'`,
  );
}

/** Formats an interval as PostgreSQL does: `1 year 2 mons -3 days +04:05:06.5`. */
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

/** Formats microseconds as `hh:mm:ss[.ffffff]`, without trailing zeros in the fraction. */
export function textFromClock(micros: number): string {
  const fraction = micros % MICROS_PER_SECOND;
  const seconds = (micros - fraction) / MICROS_PER_SECOND;
  const hours = Math.floor(seconds / 3600);
  const text = `${pad2(hours)}:${pad2(Math.floor(seconds / 60) % 60)}:${pad2(seconds % 60)}`;
  if (fraction === 0) return text;
  return `${text}.${withoutTrailingZeros(fraction.toString().padStart(6, "0"))}`;
}

export function pad2(value: number): string {
  return value < 10 ? `0${value}` : value.toString();
}

/**
 * Matches one part of the verbose form. As in PostgreSQL, a number may follow `@`, a one-letter
 * unit or `mon` without a space, and a sign may be followed by spaces.
 */
const TOKEN =
  /\s*(?:([+-]?)\s*(\d+):(\d{1,2})(?::(\d{1,2}))?(\.\d*)?|([+-]?)\s*(\d+)-(\d{1,2})(?=$|\s)|([+-]?\s*(?:\d+(?:\.\d*)?|\.\d+))\s*([a-z]*)|(ago)|@)(?=$|[\s+-]|(?<=@|(?<![a-z])(?:[dhmsy]|mon))\d)\s*/iy;

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

/** The parts of the verbose form of an interval. No two parts may set the same field. */
class Parts {
  readonly #fields: readonly IntervalField[];
  readonly #bareField: IntervalField;
  readonly #sum = new Sum();
  readonly #seen = new Set<string>();
  /** A number whose unit has not been determined yet. */
  #bare: number | undefined;

  constructor(fields: readonly IntervalField[]) {
    this.#fields = fields;
    this.#bareField = fields.at(-1) ?? "second";
  }

  /**
   * Adds a matched part to the interval. Returns false if the part is not allowed at this point.
   */
  add(
    match: RegExpExecArray,
    { isLast, isSpaced }: { isLast: boolean; isSpaced: boolean },
  ): boolean {
    if (match[2] !== undefined) return this.#addClock(match);
    if (match[7] !== undefined) {
      return addYears(this.#sum, match) && this.#isNew("month");
    }
    if (match[9] !== undefined) return this.#addAmount(match, isSpaced);
    if (match[11] !== undefined) this.#sum.negate();
    return match[11] === undefined || isLast;
  }

  /** Returns the interval; undefined if there was no part or if two parts set the same field. */
  end(): Interval | undefined {
    if (this.#bare !== undefined) {
      const unit = UNIT_BY_WORD.get(this.#bareField);
      if (unit === undefined || !this.#isNew(...wordsOf(unit, this.#bare))) return undefined;
      this.#sum.add(unit, this.#bare);
    }
    return this.#seen.size === 0 ? undefined : this.#sum.interval();
  }

  #addClock(match: RegExpExecArray): boolean {
    if (!this.#addBareDays()) return false;
    const isNew = this.#isNew("hour", "minute", ...PARTS_OF_SECONDS);
    return isNew && addClock(this.#sum, match, this.#fields);
  }

  #addAmount(match: RegExpExecArray, isSpaced: boolean): boolean {
    const unit = unitOf(match[10] ?? "", isSpaced);
    const amount = Number((match[9] ?? "").replace(/\s+/, ""));
    if (unit === undefined) return false;
    if (unit === "bare") {
      // A bare number before a bare number of hours is a number of days: '1 5' DAY TO HOUR.
      if (this.#bare !== undefined && this.#bareField !== "hour") return false;
      const isNew = this.#addBareDays();
      this.#bare = amount;
      return isNew;
    }
    // As before a clock time, a bare number before hours is a number of days: '1 5 hours'.
    if (wordOf(unit) === "hour" && !this.#addBareDays()) return false;
    this.#sum.add(unit, amount);
    return this.#bare === undefined && this.#isNew(...wordsOf(unit, amount));
  }

  /** Adds a bare number as days, because a clock time follows it: '1 02:03'. */
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

const PARTS_OF_SECONDS = ["second", "millisecond", "microsecond"] as const;

/**
 * Returns the fields set by an amount of a unit. Seconds with a fraction also set the smaller
 * units.
 */
function wordsOf(unit: Unit, amount: number): readonly string[] {
  const word = wordOf(unit);
  return word === "second" && !Number.isInteger(amount) ? PARTS_OF_SECONDS : [word];
}

/** Returns the canonical name of a unit. */
function wordOf(unit: Unit): string {
  return UNITS.find(([, one]) => one === unit)?.[0][0] ?? "";
}

/** Reads years and months in the form `y-m`. */
function addYears(sum: Sum, match: RegExpExecArray): boolean {
  const rest = Number(match[8]);
  const months = Number(match[7]) * 12 + rest;
  sum.add({ part: "months", count: 1 }, match[6] === "-" ? -months : months);
  return rest < 12;
}

/**
 * Returns the unit that follows a number. A number without a unit must be followed by whitespace,
 * so that a date is not read as numbers.
 */
function unitOf(word: string, isSpaced: boolean): Unit | "bare" | undefined {
  if (word === "") return isSpaced ? "bare" : undefined;
  return UNIT_BY_WORD.get(word.toLowerCase());
}

/**
 * Reads a clock time, `hh:mm[:ss]`. Two numbers mean `mm:ss` if a fraction follows, or in MINUTE
 * TO SECOND.
 */
function addClock(
  sum: Sum,
  match: RegExpExecArray,
  [first, last]: readonly IntervalField[],
): boolean {
  const isOfMinutes = match[5] !== undefined || (first === "minute" && last === "second");
  const isShort = match[4] === undefined && isOfMinutes;
  const [hours, minutes, rest] = isShort
    ? [0, Number(match[2]), match[3] ?? "0"]
    : [Number(match[2]), Number(match[3]), match[4] ?? "0"];
  const seconds = Number(rest + (match[5] ?? ""));
  // A leap second belongs to the following minute.
  if (minutes > 59 || seconds >= 61) return false;
  const sign = match[1] === "-" ? -1 : 1;
  const whole = hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE;
  sum.add({ part: "micros", count: 1 }, sign * (whole + seconds * MICROS_PER_SECOND));
  return true;
}

const ISO_PART = /([+-]?(?:\d+(?:\.\d*)?|\.\d+))([A-Z])/y;

/** One half of the ISO 8601 form: the part before the T or the part after it. */
interface IsoHalf {
  /** Patterns for numbers without units: with separators, or digits only. */
  readonly forms: readonly RegExp[];
  readonly units: Readonly<Record<string, string>>;
}

const ISO_DATE: IsoHalf = {
  forms: [/^(\d{4})(\d\d)(\d\d)$/, /^([+-]?\d+(?:\.\d*)?)(?:-(\d+)(?:-(\d+))?)?$/],
  units: { Y: "year", M: "month", W: "week", D: "day" },
};
const ISO_TIME: IsoHalf = {
  forms: [
    /^(\d\d)(\d\d)(\d\d(?:\.\d+)?)$/,
    /^([+-]?\d+(?:\.\d*)?)(?::(\d+)(?::(\d+(?:\.\d+)?))?)?$/,
  ],
  units: { H: "hour", M: "minute", S: "second" },
};

/**
 * Reads an ISO 8601 duration, such as `P1Y2M3DT4H5M6S` or `P0001-02-03T04:05:06`. Each half,
 * before and after the T, may be in either form.
 */
function readIso(text: string): Interval | undefined {
  const [date = "", time, ...more] = text.slice(1).toUpperCase().split("T");
  if (more.length > 0 || (date === "" && time === undefined)) return undefined;
  const sum = new Sum();
  const isRead = addIsoHalf(sum, date, ISO_DATE) && addIsoHalf(sum, time ?? "", ISO_TIME);
  return isRead ? sum.interval() : undefined;
}

function addIsoHalf(sum: Sum, text: string, { forms, units }: IsoHalf): boolean {
  if (text === "") return true;
  const numbers = forms.map((form) => form.exec(text)).find((match) => match !== null);
  if (numbers === undefined) return addIsoUnits(sum, text, units);
  const words = Object.values(units).filter((word) => word !== "week");
  for (const [index, word] of words.entries()) {
    const unit = UNIT_BY_WORD.get(word);
    if (unit !== undefined) sum.add(unit, Number(numbers[index + 1] ?? "0"));
  }
  return true;
}

function addIsoUnits(sum: Sum, text: string, units: IsoHalf["units"]): boolean {
  for (let at = 0; at < text.length; at = ISO_PART.lastIndex) {
    ISO_PART.lastIndex = at;
    const match = ISO_PART.exec(text);
    const unit = UNIT_BY_WORD.get(units[match?.[2] ?? ""] ?? "");
    if (match === null || unit === undefined) return false;
    sum.add(unit, Number(match[1]));
  }
  return true;
}
