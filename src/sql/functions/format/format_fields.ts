/**
 * Collects the fields that to_date and to_timestamp read, and combines them into a point in time.
 * A field may occur twice if both values agree. As in PostgreSQL, a field with the value 0 counts
 * as missing.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { checkDate, civilFromDays, daysFromCivil, excerpt } from "../../../types/mod.ts";
import { isoWeekStart } from "../time/time_math.ts";
import { JULIAN_OFFSET } from "./format_pattern.ts";

export type FieldSlot =
  | "year"
  | "century"
  | "month"
  | "day"
  | "day of the year"
  | "day of the week"
  | "week"
  | "week of the month"
  | "Julian day"
  | "hour"
  | "minute"
  | "second"
  | "milliseconds"
  | "microseconds"
  | "seconds of the day"
  | "half of the day"
  | "era"
  | "hours of the offset"
  | "minutes of the offset";

export interface ParsedMoment {
  readonly days: number;
  /** Microseconds since the start of the day, in the time zone that was read. */
  readonly micros: number;
  /** The offset of the time zone that was read, in microseconds ahead of UTC. */
  readonly offsetMicros: number;
}

interface Civil {
  year: number;
  month: number;
  day: number;
}

const MICROS_PER_SECOND = 1_000_000;
const MICROS_PER_MINUTE = 60 * MICROS_PER_SECOND;
const OFFSET_HOURS_MAX = 15;

const WEEK_CALENDAR = /^I/;
const CIVIL_CALENDAR = /^(?:Y|MM|MON|D$|DD|RM$|WW?$)/;
const CLOCK_OF_12 = /^(?:HH|HH12|[AP]\.?M\.?)$/;

export class MomentFields {
  readonly #text: string;
  readonly #pattern: string;
  readonly #values = new Map<FieldSlot, number>();
  #calendar: "civil" | "weeks" | undefined;
  #hasClockOf12 = false;
  /** The number of year digits in the pattern. The century is added to a two-digit year. */
  yearDigits = 4;
  /**
   * The number of fraction digits that FF1 to FF6 request. The timestamp is rounded to this
   * number.
   */
  fractionDigits = 6;
  /** The sign of the time zone offset: 1 or -1, or 0 until an offset has been read. */
  offsetSign = 0;

  constructor(text: string, pattern: string) {
    this.#text = text;
    this.#pattern = pattern;
  }

  /**
   * Records which kind of calendar and clock a field belongs to. Rejects a mix of ISO week fields
   * and other date fields.
   *
   * @throws {DatabaseError} INVALID_VALUE
   */
  meet(field: string): void {
    if (CLOCK_OF_12.test(field)) this.#hasClockOf12 = true;
    const calendar = WEEK_CALENDAR.test(field)
      ? "weeks"
      : CIVIL_CALENDAR.test(field)
        ? "civil"
        : undefined;
    if (calendar === undefined) return;
    if (this.#calendar !== undefined && this.#calendar !== calendar) {
      throw this.#fault(
        "INVALID_VALUE",
        `${field} cannot be combined with the other date fields, because only some of them count ` +
          "ISO weeks",
      );
    }
    this.#calendar = calendar;
  }

  /**
   * Stores the value of a field.
   *
   * @param read The number in the text. If the field has been read before, the two numbers must be
   *   equal.
   * @param value The value to store if it differs from `read`.
   * @throws {DatabaseError} INVALID_VALUE if the two numbers differ.
   */
  set(slot: FieldSlot, read: number, field: string, value: number = read): void {
    const known = this.#get(slot);
    if (known !== 0 && known !== read) {
      throw this.#fault("INVALID_VALUE", `${field} contradicts an earlier field for the ${slot}`);
    }
    this.#values.set(slot, value);
  }

  setOffset(
    slot: "hours of the offset" | "minutes of the offset",
    value: number,
    field: string,
  ): void {
    if (this.offsetSign === 0) this.offsetSign = 1;
    this.set(slot, value, field);
  }

  /**
   * Combines the fields into a point in time.
   *
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE, INVALID_VALUE
   */
  moment(): ParsedMoment {
    const micros = this.#micros();
    return { days: checkDate(this.#days()), micros, offsetMicros: this.#offsetMicros() };
  }

  #get(slot: FieldSlot): number {
    return this.#values.get(slot) ?? 0;
  }

  #fault(code: "INVALID_VALUE" | "VALUE_OUT_OF_RANGE", what: string): DatabaseError {
    return new DatabaseError(
      code,
      `Cannot read ${excerpt(this.#text)} with the pattern ${excerpt(this.#pattern)}: ${what}`,
    );
  }

  #year(): number {
    const counted = this.#get("year");
    const isBefore = this.#get("era") === 2;
    // BC negates a year or century, so with BC, a negative year or century becomes positive.
    const year = isBefore ? 0 - counted : counted;
    const century = isBefore ? 0 - this.#get("century") : this.#get("century");
    if (year === 0) {
      if (century === 0) return 0;
      return century > 0 ? (century - 1) * 100 + 1 : century * 100 + 1;
    }
    if (century === 0 || this.yearDigits > 2) return year < 0 ? year + 1 : year;
    const rest = Math.abs(year) % 100;
    if (century < 0) return (century + 1) * 100 - rest + 1;
    return rest === 0 ? century * 100 : (century - 1) * 100 + rest;
  }

  #days(): number {
    const civil: Civil = { year: this.#year(), month: 1, day: 1 };
    const julian = this.#get("Julian day");
    if (julian !== 0) Object.assign(civil, civilFromDays(julian - JULIAN_OFFSET));
    const week = this.#get("week");
    const isoDay = this.#get("day of the week");
    let dayOfYear = this.#get("day of the year");
    if (week !== 0 && this.#calendar === "weeks") {
      // Sunday is day 1 in the pattern, but the last day of an ISO week.
      const dayOfWeek = isoDay === 0 ? 0 : (isoDay + 5) % 7;
      const first = isoWeekStart(daysFromCivil(civil.year, 1, 4));
      Object.assign(civil, civilFromDays(first + (week - 1) * 7 + dayOfWeek));
    } else if (week !== 0) {
      dayOfYear = (week - 1) * 7 + 1;
    }
    const weekOfMonth = this.#get("week of the month");
    const day = weekOfMonth === 0 ? this.#get("day") : (weekOfMonth - 1) * 7 + 1;
    const month = this.#get("month");
    if (day !== 0) civil.day = day;
    if (month !== 0) civil.month = month;
    if (dayOfYear !== 0 && (civil.month <= 1 || civil.day <= 1))
      this.#fromDayOfYear(civil, dayOfYear);
    return this.#checkedDays(civil);
  }

  /**
   * Derives the month and the day of the month from the day of the year, unless they were read.
   */
  #fromDayOfYear(civil: Civil, dayOfYear: number): void {
    if (civil.year === 0) {
      throw this.#fault("INVALID_VALUE", "a day of the year requires a year");
    }
    if (this.#calendar === "weeks") {
      const first = isoWeekStart(daysFromCivil(civil.year, 1, 4));
      Object.assign(civil, civilFromDays(first + dayOfYear - 1));
      return;
    }
    const found = civilFromDays(daysFromCivil(civil.year, 1, 1) + dayOfYear - 1);
    if (dayOfYear < 1 || found.year !== civil.year) {
      throw this.#fault("VALUE_OUT_OF_RANGE", `the year ${civil.year} has no day ${dayOfYear}`);
    }
    if (civil.month <= 1) civil.month = found.month;
    if (civil.day <= 1) civil.day = found.day;
  }

  #checkedDays({ year, month, day }: Civil): number {
    const days = daysFromCivil(year, month, day);
    const isMonth = month >= 1 && month <= 12;
    if (isMonth && day >= 1 && civilFromDays(days).day === day) return days;
    throw this.#fault("VALUE_OUT_OF_RANGE", `the date ${year}-${month}-${day} does not exist`);
  }

  #micros(): number {
    const ofDay = this.#get("seconds of the day");
    const second = this.#get("second") || ofDay % 60;
    const minute = this.#get("minute") || Math.trunc(ofDay / 60) % 60;
    const hour = this.#hourOf(this.#get("hour") || Math.trunc(ofDay / 3600));
    const fraction = this.#get("milliseconds") * 1000 + this.#get("microseconds");
    const isTime =
      isBelow(hour, 24) &&
      isBelow(minute, 60) &&
      isBelow(second, 60) &&
      isBelow(fraction, MICROS_PER_SECOND);
    if (!isTime) {
      throw this.#fault(
        "VALUE_OUT_OF_RANGE",
        `the time ${hour}:${minute}:${second} does not exist`,
      );
    }
    const unit = 10 ** (6 - this.fractionDigits);
    const seconds = (hour * 60 + minute) * 60 + second;
    return seconds * MICROS_PER_SECOND + Math.round(fraction / unit) * unit;
  }

  #hourOf(hour: number): number {
    if (!this.#hasClockOf12) return hour;
    if (hour < 1 || hour > 12) {
      throw this.#fault("INVALID_VALUE", `the hour is ${hour}, but must be between 1 and 12`);
    }
    return (hour % 12) + (this.#get("half of the day") === 2 ? 12 : 0);
  }

  #offsetMicros(): number {
    const hours = this.#get("hours of the offset");
    const minutes = this.#get("minutes of the offset");
    if (isBelow(hours, OFFSET_HOURS_MAX + 1) && isBelow(minutes, 60)) {
      return this.offsetSign * (hours * 60 + minutes) * MICROS_PER_MINUTE;
    }
    throw this.#fault("INVALID_VALUE", `the offset ${hours}:${minutes} does not exist`);
  }
}

/** Whether `value` is at least 0 and less than `bound`. */
function isBelow(value: number, bound: number): boolean {
  return value >= 0 && value < bound;
}
