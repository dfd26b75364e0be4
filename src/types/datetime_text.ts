/**
 * Reads dates and times in the forms that PostgreSQL accepts.
 *
 * Text in ISO 8601 format is matched as a whole. Any other text is split into parts. What each
 * part means depends on its form and on the parts before it, as in PostgreSQL:
 *
 *     January 8, 1999   1/8/1999   1999.008   J2451187   99-Jan-08 BC   Thu Jan 08 04:05:06 1999 PST
 *     ───┬─── ┬  ─┬──   ───┬────   ───┬────   ┬───┬───   ────┬──── ┬
 *       word  number      date      number    word number   date   word
 *
 * If the text does not name a month, the first of two numbers is the month (`1/8/1999` is January
 * 8). If the first number has three or more digits, it is the year.
 */
import { DatabaseError } from "../base/errors.ts";
import {
  dateFromCivil,
  dateOfTimestamp,
  daysFromCivil,
  joinTimestamp,
  splitTimestamp,
  TIMESTAMP_INFINITY,
  TIMESTAMP_MINUS_INFINITY,
} from "./datetime.ts";
import { excerpt } from "./excerpt.ts";
import { MICROS_PER_DAY } from "./interval.ts";
import { offsetSecondsAtLocal, type TimeZone, zoneFromText } from "./time_zone.ts";
import type { Whole } from "./value.ts";
import type { ZonedTime } from "./zoned_time.ts";

/** The statement's time, denoted by words such as `now`. If undefined, such words are refused. */
export interface Now {
  readonly nowMicros: number | undefined;
}

interface DateTimeText {
  readonly days: number;
  /** Microseconds since midnight; undefined if the text contains only a date. */
  readonly micros: number | undefined;
  /** The time zone given in the text; undefined if there is none. */
  readonly zone: TimeZone | undefined;
}

const CLOCK = String.raw`(\d{1,2}):(\d{1,2})(?::(\d{1,2})([.,]\d*)?)?(?:\s*(AM|PM)\b)?`;
const ZONE = String.raw`\s*(Z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?|[A-Za-z][A-Za-z_]*(?:/[A-Za-z0-9_+-]+)*)?`;
const ISO = new RegExp(
  String.raw`^(\d{4,7})-(\d{1,2})-(\d{1,2})(?:(?:\s*T\s*|\s+)${CLOCK}\s*(Z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)?)?$`,
  "i",
);

/** Matches a time without colons: `040506.789`, or `0405` without seconds. */
const CLOCK_DIGITS = String.raw`(\d{2})(\d{2})(?:(\d{2})(\.\d*)?)?(?:\s*(AM|PM)\b)?`;
const TIME_DIGITS = new RegExp(String.raw`^T?${CLOCK_DIGITS}${ZONE}$`, "i");

const TIME_ONLY = new RegExp(String.raw`^T?${CLOCK}${ZONE}$`, "i");

const JULIAN_OF_1970 = 2_440_588;

/** Parses a date. @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE */
export function dateFromText(text: string, now: Now): number {
  const moment = momentFromWord(text, now);
  return moment === undefined ? readDateTime(text, "a date", now).days : dateOfTimestamp(moment);
}

/**
 * Parses a timestamp without time zone. A zone in the text is ignored.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function timestampFromText(text: string, now: Now): Whole {
  const moment = momentFromWord(text, now);
  if (moment !== undefined) return moment;
  const { days, micros } = readDateTime(text, "a timestamp", now);
  return joinTimestamp(days, micros ?? 0);
}

/**
 * Parses a timestamp with time zone. A zone in the text is applied.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function datetimeFromText(text: string, now: Now): Whole {
  const moment = momentFromWord(text, now);
  if (moment !== undefined) return moment;
  const { days, micros = 0, zone } = readDateTime(text, "a timestamp with time zone", now);
  if (zone === undefined) return joinTimestamp(days, micros);
  const offset = offsetSecondsAtLocal(zone, joinTimestamp(days, micros));
  return joinTimestamp(days, micros - offset * 1_000_000);
}

/**
 * Parses a time of day, up to 24:00. Returns microseconds since midnight.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function timeFromText(text: string, now: Now): number {
  const trimmed = text.trim();
  const match = TIME_ONLY.exec(trimmed) ?? TIME_DIGITS.exec(trimmed);
  if (match !== null) return zonedClock(match, text, "a time").micros;
  if (trimmed.toLowerCase() === "allballs") return 0;
  const moment = momentFromWord(text, now);
  if (typeof moment === "number") return splitTimestamp(moment).micros;
  if (moment !== undefined) throw unreadable(text, "a time");
  const { micros } = readDateTime(text, "a time", now);
  if (micros !== undefined) return micros;
  throw unreadable(text, "a time");
}

/**
 * Parses a time of day with a time zone. The zone defaults to UTC.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function zonedTimeFromText(text: string, now: Now): ZonedTime {
  const trimmed = text.trim();
  const match = TIME_ONLY.exec(trimmed) ?? TIME_DIGITS.exec(trimmed);
  if (match !== null) return zonedClock(match, text, ZONED_TIME);
  const moment = trimmed.toLowerCase() === "allballs" ? 0 : momentFromWord(text, now);
  if (typeof moment === "number") return { micros: splitTimestamp(moment).micros, offset: 0 };
  if (moment !== undefined) throw unreadable(text, ZONED_TIME);
  const { days, micros, zone } = readDateTime(text, ZONED_TIME, now);
  if (micros === undefined) throw unreadable(text, ZONED_TIME);
  const offset = zone === undefined ? 0 : offsetSecondsAtLocal(zone, joinTimestamp(days, micros));
  return { micros, offset };
}

const ZONED_TIME = "a time with time zone";

/**
 * Reads a time of day and its time zone. A zone whose offset changes over time is accepted only
 * together with a date.
 */
function zonedClock(match: RegExpExecArray, text: string, what: string): ZonedTime {
  const micros = microsFromClock(match, 1, text);
  const [, , , , , , name] = match;
  const zone = name === undefined ? undefined : zoneFromText(name);
  if (name !== undefined && zone?.kind !== "fixed") throw unreadable(text, what);
  return { micros, offset: zone?.kind === "fixed" ? zone.offsetSeconds : 0 };
}

function readDateTime(text: string, what: string, now: Now): DateTimeText {
  const trimmed = text.trim();
  const match = ISO.exec(trimmed);
  if (match === null) {
    const read = new DateTimeReader(text, now).read(trimmed);
    if (read === undefined) throw unreadable(text, what);
    return read;
  }
  const days = dateFromCivil(yearOf(Number(match[1]), text), Number(match[2]), Number(match[3]));
  const micros = match[4] === undefined ? undefined : microsFromClock(match, 4, text);
  const zone = match[9] === undefined ? undefined : zoneFromText(match[9]);
  if (match[9] !== undefined && zone === undefined) throw unreadable(text, what);
  return { days, micros, zone };
}

/**
 * Converts a year as written to an astronomical year. Written years have no year 0: 1 BC is
 * followed by 1 AD.
 */
function yearOf(year: number, text: string): number {
  if (year > 0) return year;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read ${excerpt(text)} as a date: the year 0 does not exist; the year before 1 is 1 BC`,
  );
}

/** Reads a time of day from the groups of a match of CLOCK, starting at index `group`. */
function microsFromClock(match: RegExpExecArray, group: number, text: string): number {
  const hours = hoursOf(Number(match[group]), match[group + 4]);
  const minutes = Number(match[group + 1]);
  const seconds = Number(match[group + 2] ?? "0");
  const fraction = Number(`0.${(match[group + 3] ?? ".").slice(1)}0`);
  const micros =
    ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + Math.round(fraction * 1_000_000);
  if (minutes <= 59 && seconds <= 60 && micros >= 0 && micros <= MICROS_PER_DAY) return micros;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read ${excerpt(text)} as a time of day: it must be between 00:00:00 and 24:00:00`,
  );
}

/** Returns the hour of the day; NaN if an hour with AM or PM is above 12. */
function hoursOf(hours: number, half: string | undefined): number {
  if (half === undefined) return hours;
  if (hours > 12) return Number.NaN;
  return (hours % 12) + (half.toUpperCase() === "PM" ? 12 : 0);
}

const MONTHS: ReadonlyMap<string, number> = new Map(
  [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
  ].flatMap((name, index) => [[name, index + 1] as const, [name.slice(0, 3), index + 1] as const]),
);

const WEEKDAY =
  /^(?:sun(?:day)?|mon(?:day)?|tue(?:s|sday)?|wed(?:s|nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?)$/;

type PartKind = "number" | "date" | "time" | "word" | "zone";

interface TextPart {
  readonly kind: PartKind;
  readonly text: string;
}

/**
 * Matches one part of the text: a time, a date with separators, a number, a zone with a sign, or a
 * word. A word followed by a separator is a date or the name of a zone.
 */
const PART =
  /(?<time>\d+:[\d:.]*)|(?<date>\d+([-/.])(?:\d+\3[\d./-]*|[a-z][a-z\d./-]*)|\d+[-/]\d+)|(?<number>\d+(?:\.\d*)?|\.\d+)|[+-]\s*(?<zone>\d[\d:]*)|(?<word>[a-z]+)(?<more>[-/.+\d][a-z\d+/_.:-]*)?/iy;

/** Matches characters between parts that have no meaning. */
const GAP = /[\s,;()]*/y;

function monthOf(word: string): number | undefined {
  return word === "sept" ? 9 : MONTHS.get(word);
}

/** Whether a word keeps its meaning if a digit or a sign follows it without a space. */
function isKeyword(word: string): boolean {
  return monthOf(word) !== undefined || WEEKDAY.test(word) || /^(?:t|j|ad|bc|am|pm)$/.test(word);
}

function partsOf(text: string): readonly TextPart[] | undefined {
  const parts: TextPart[] = [];
  let at = 0;
  while (at < text.length) {
    GAP.lastIndex = at;
    at += GAP.exec(text)?.[0].length ?? 0;
    if (at === text.length) break;
    PART.lastIndex = at;
    const match = PART.exec(text);
    if (match === null) return undefined;
    const { date, more = "", number, time, word, zone } = match.groups ?? {};
    at = PART.lastIndex;
    if (word !== undefined) {
      const name = word.toLowerCase();
      const isJoined = /^[-/.]/.test(more) || (more !== "" && !isKeyword(name));
      if (!isJoined) at -= more.length;
      parts.push(isJoined ? { kind: "date", text: name + more } : { kind: "word", text: name });
    } else if (zone !== undefined) {
      parts.push({ kind: "zone", text: `${match[0].startsWith("-") ? "-" : "+"}${zone}` });
    } else if (time === undefined) {
      parts.push(
        date === undefined ? { kind: "number", text: number ?? "" } : { kind: "date", text: date },
      );
    } else parts.push({ kind: "time", text: time });
  }
  return parts;
}

/**
 * Collects the parts of a date and time as text. Each `#take…` method returns whether the part
 * makes sense at this point.
 */
class DateTimeReader {
  readonly #text: string;
  readonly #now: Now;
  #year: number | undefined;
  #month: number | undefined;
  #day: number | undefined;
  /**
   * The days since 1970, if a single part of the text determines the day, as a Julian day does.
   */
  #days: number | undefined;
  #dayOfYear: number | undefined;
  #hasNamedMonth = false;
  #hasShortYear = false;
  #micros: number | undefined;
  #zone: TimeZone | undefined;
  #half: string | undefined;
  #isBeforeChrist = false;
  /** The kind of the next part, if a preceding `J` or `T` determines it. */
  #next: "julian" | "time" | undefined;

  constructor(text: string, now: Now) {
    this.#text = text;
    this.#now = now;
  }

  read(text: string): DateTimeText | undefined {
    const parts = partsOf(text);
    if (parts === undefined) return undefined;
    for (const part of parts) if (!this.#take(part)) return undefined;
    const days = this.#daysRead();
    if (days === undefined) return undefined;
    if (this.#half === undefined) return { days, micros: this.#micros, zone: this.#zone };
    return { days, micros: this.#microsOfHalf(this.#half), zone: this.#zone };
  }

  #take({ kind, text }: TextPart): boolean {
    switch (kind) {
      case "time":
        return this.#takeTime(text);
      case "zone":
        return this.#setZone(zoneFromText(text));
      case "date":
        if (this.#next === "julian") return this.#takeJulianWithZone(text);
        return this.#hasDay() ? this.#takeAfterDate(text) : this.#takeDate(text);
      case "number":
        return this.#takeNumber(text);
      case "word":
        return this.#takeWord(text);
    }
  }

  #hasDate(): boolean {
    const isCivil =
      this.#year !== undefined && this.#month !== undefined && this.#day !== undefined;
    return isCivil || this.#days !== undefined || this.#dayOfYear !== undefined;
  }

  /** Whether the month and the day are known. If so, a further word is the name of a time zone. */
  #hasDay(): boolean {
    return this.#hasDate() || (this.#month !== undefined && this.#day !== undefined);
  }

  #takeTime(text: string): boolean {
    this.#next = undefined;
    const match = new RegExp(`^${CLOCK}$`).exec(text);
    return match !== null && this.#setMicros(microsFromClock(match, 1, this.#text));
  }

  #setMicros(micros: number): boolean {
    if (this.#micros !== undefined) return false;
    this.#micros = micros;
    return true;
  }

  #setZone(zone: TimeZone | undefined): boolean {
    if (zone === undefined || this.#zone !== undefined) return false;
    this.#zone = zone;
    return true;
  }

  /**
   * Reads a part that follows a date. `040506-08` is a time with a zone. Any other word is the
   * name of a time zone.
   */
  #takeAfterDate(text: string): boolean {
    const match = /^(\d+(?:\.\d+)?)(-\d+)$/.exec(text);
    if (match === null) return this.#setZone(zoneFromText(text));
    const [, time = "", zone = ""] = match;
    return this.#takeDigits(time) && this.#setZone(zoneFromText(zone));
  }

  /** Reads a date made of numbers and the name of a month, in any order. */
  #takeDate(text: string): boolean {
    const fields = text.match(/\d+|[a-z]+/gi) ?? [];
    const month = fields.findIndex((field) => monthOf(field.toLowerCase()) !== undefined);
    if (month >= 0) {
      if (!this.#takeMonth(monthOf((fields[month] ?? "").toLowerCase()) ?? 0)) return false;
      fields.splice(month, 1);
    }
    const isRead = (field: string): boolean =>
      /^\d/.test(field) && !this.#hasDate() && this.#takePlace(field);
    return fields.every(isRead) && this.#hasDate();
  }

  #takeNumber(text: string): boolean {
    const next = this.#next;
    this.#next = undefined;
    if (next === "julian") return this.#takeJulian(text);
    if (next === "time") return this.#takeClockDigits(text);
    const point = text.indexOf(".");
    if (point >= 0 && !this.#hasDate()) return this.#takeDate(text);
    if (point > 2 || text.length > 4) return this.#takeDigits(text);
    return this.#hasDate() ? this.#takeClockDigits(text) : this.#takePlace(text);
  }

  /**
   * Reads a Julian day, the number of days since late 4714 BC. Its fraction is the time of day.
   */
  #takeJulian(text: string): boolean {
    if (this.#hasDate()) return false;
    const [whole = "", fraction] = text.split(".");
    this.#days = Number(whole) - JULIAN_OF_1970;
    if (fraction === undefined) return true;
    return this.#setMicros(Math.round(Number(`0.${fraction}0`) * MICROS_PER_DAY));
  }

  #takeJulianWithZone(text: string): boolean {
    this.#next = undefined;
    const match = /^(\d+)(-\d+)$/.exec(text);
    if (match === null) return false;
    const [, days = "", zone = ""] = match;
    return this.#takeJulian(days) && this.#setZone(zoneFromText(zone));
  }

  /** Reads digits without separators: as a date if there is none yet, otherwise as a time. */
  #takeDigits(text: string): boolean {
    if (this.#hasDate() || text.includes(".")) return this.#takeClockDigits(text);
    const match = /^(\d{2,4})(\d{2})(\d{2})$/.exec(text);
    if (match === null) return false;
    const [, year = "", month, day] = match;
    this.#setYear(year);
    this.#month = Number(month);
    this.#day = Number(day);
    return true;
  }

  #takeClockDigits(text: string): boolean {
    const match = /^(\d{2})(\d{2})(?:(\d{2})(\.\d*)?)?$/.exec(text);
    return match !== null && this.#setMicros(microsFromClock(match, 1, this.#text));
  }

  #setYear(text: string): void {
    this.#year = Number(text);
    this.#hasShortYear = text.length <= 2;
  }

  /** Assigns a number in a date to the year, the month or the day, whichever is still missing. */
  #takePlace(text: string): boolean {
    const value = Number(text);
    const isLong = text.length >= 3;
    switch (this.#placesTaken()) {
      case "":
        if (isLong) this.#setYear(text);
        else this.#month = value;
        return true;
      case "year":
        if (text.length === 3 && value >= 1 && value <= 366) this.#dayOfYear = value;
        else this.#month = value;
        return true;
      case "year day":
        this.#month = value;
        return true;
      case "month":
        if (this.#hasNamedMonth && isLong) this.#setYear(text);
        else this.#day = value;
        return true;
      case "year month":
        return this.#takeDayOrYear(text);
      case "month day":
        this.#setYear(text);
        return true;
      default:
        return false;
    }
  }

  #placesTaken(): string {
    const taken: string[] = [];
    if (this.#year !== undefined) taken.push("year");
    if (this.#month !== undefined) taken.push("month");
    if (this.#day !== undefined) taken.push("day");
    return taken.join(" ");
  }

  /**
   * Handles a number after a year and a month. If the month is a name and this number is long,
   * this number is the year, and the number previously read as the year is the day.
   */
  #takeDayOrYear(text: string): boolean {
    if (!this.#hasNamedMonth || text.length <= 2) {
      this.#day = Number(text);
      return true;
    }
    if (!this.#hasShortYear) return false;
    this.#day = this.#year;
    this.#setYear(text);
    return true;
  }

  #takeMonth(month: number): boolean {
    if (this.#hasNamedMonth) return false;
    if (this.#month !== undefined) {
      // The number before the name of the month was taken for the month, but is the day.
      if (this.#day !== undefined) return false;
      this.#day = this.#month;
    }
    this.#month = month;
    this.#hasNamedMonth = true;
    return true;
  }

  #takeWord(word: string): boolean {
    const month = monthOf(word);
    if (month !== undefined) return this.#takeMonth(month);
    if (WEEKDAY.test(word) || word === "at" || word === "on") return true;
    switch (word) {
      case "ad":
      case "bc":
        this.#isBeforeChrist = word === "bc";
        return true;
      case "am":
      case "pm":
        this.#half = word;
        return true;
      case "j":
        this.#next = "julian";
        return true;
      case "t":
        this.#next = "time";
        return true;
      case "allballs":
        return this.#setMicros(0) && this.#setZone(zoneFromText("UTC"));
      case "dst":
        return this.#saveDaylight();
      default:
        return this.#takeDayWord(word) || this.#setZone(zoneFromText(word));
    }
  }

  #takeDayWord(word: string): boolean {
    if (!DAY_WORDS.has(word) || this.#hasDate()) return false;
    this.#days = dateOfTimestamp(momentFromWord(word, this.#now) ?? 0);
    return true;
  }

  /**
   * Applies `DST` after an abbreviation, which means daylight saving time: `MET DST` is an hour
   * east of MET.
   */
  #saveDaylight(): boolean {
    if (this.#zone?.kind !== "fixed") return false;
    this.#zone = { kind: "fixed", offsetSeconds: this.#zone.offsetSeconds + 3600 };
    return true;
  }

  #daysRead(): number | undefined {
    if (this.#days !== undefined) return this.#days;
    if (this.#year === undefined) return undefined;
    const year = this.#yearRead(this.#year);
    if (this.#dayOfYear !== undefined) return daysFromCivil(year, 1, 1) + this.#dayOfYear - 1;
    if (this.#month === undefined || this.#day === undefined) return undefined;
    return dateFromCivil(year, this.#month, this.#day);
  }

  #yearRead(year: number): number {
    if (this.#isBeforeChrist) return 1 - yearOf(year, this.#text);
    if (this.#hasShortYear) return year < 70 ? year + 2000 : year + 1900;
    return yearOf(year, this.#text);
  }

  #microsOfHalf(half: string): number {
    const micros = this.#micros ?? 0;
    const hours = Math.floor(micros / 3_600_000_000);
    const moved = hoursOf(hours, half);
    if (!Number.isNaN(moved)) return micros + (moved - hours) * 3_600_000_000;
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot read ${excerpt(this.#text)} as a time of day: with AM or PM, the hour must be at ` +
        "most 12",
    );
  }
}

const DAY_WORDS: ReadonlySet<string> = new Set(["today", "tomorrow", "yesterday"]);

/**
 * Whether the meaning of a date or time text depends on when it is read, as that of `now` does.
 */
export function isTimeWord(text: string): boolean {
  const word = text.trim().toLowerCase();
  if (word === "now" || DAY_WORDS.has(word)) return true;
  if (!/\b(?:today|tomorrow|yesterday)\b/.test(word)) return false;
  const others = (partsOf(word) ?? []).filter((part) => !DAY_WORDS.has(part.text));
  return others.every(
    ({ kind, text: other }) => kind === "time" || zoneFromText(other) !== undefined,
  );
}

function momentFromWord(text: string, { nowMicros }: Now): Whole | undefined {
  const word = text.trim().toLowerCase();
  if (word === "epoch") return 0;
  if (word === "infinity") return TIMESTAMP_INFINITY;
  if (word === "-infinity") return TIMESTAMP_MINUS_INFINITY;
  if (word !== "now" && !DAY_WORDS.has(word)) return undefined;
  if (nowMicros === undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read "${word}" here: it depends on the time at which the statement runs, which ` +
        "is not known here; use now() instead",
    );
  }
  if (word === "now") return nowMicros;
  const { days } = splitTimestamp(nowMicros);
  return joinTimestamp(days + (word === "tomorrow" ? 1 : word === "yesterday" ? -1 : 0), 0);
}

function unreadable(text: string, what: string): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot read ${excerpt(text)} as ${what}: expected a value such as ` +
      (what.startsWith("a time ") || what === "a time"
        ? "'14:30:00'"
        : "'2026-01-31' or '2026-01-31 14:30:00'"),
  );
}
