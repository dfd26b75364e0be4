/**
 * Reads dates in forms other than ISO 8601 that can mean only one day, because the month is a word
 * or the year comes first.
 *
 *     January 8, 1999    Jan-08-1999    Thu Jan 08 04:05:06 1999 PST
 *     8 January 1999     08-Jan-1999    1999-Jan-08
 *     1999/01/08         1999-01-08 AD  19990108 040506
 *
 * `1/8/1999` is not accepted: it means different days in different countries.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const MONTH = String.raw`(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`;
const WEEKDAY = String.raw`(?:(?:sun|mon|tue(?:s)?|wed(?:nes)?|thu(?:r|rs)?|fri|sat(?:ur)?)(?:day)?[,.]?\s{1,3})?`;
const GAP = String.raw`[\s,/-]{1,3}`;
const DAY = String.raw`(\d{1,2})`;
const YEAR = String.raw`(\d{4})`;
/** The time and the zone, in the same form as after an ISO 8601 date. */
const REST = String.raw`((?:[\sT].*)?)$`;

interface Form {
  readonly pattern: RegExp;
  /** Returns year, month, day and rest from the groups. */
  readonly parts: (groups: readonly string[]) => readonly string[];
}

function form(pattern: string, order: readonly number[]): Form {
  return {
    pattern: new RegExp(`^${pattern}`, "is"),
    parts: (groups) => order.map((index) => groups[index] ?? ""),
  };
}

const FORMS: readonly Form[] = [
  form(`${WEEKDAY}${MONTH}${GAP}${DAY}${GAP}${YEAR}${REST}`, [3, 1, 2, 4]),
  form(`${WEEKDAY}${DAY}${GAP}${MONTH}${GAP}${YEAR}${REST}`, [3, 2, 1, 4]),
  form(`${YEAR}${GAP}${MONTH}${GAP}${DAY}${REST}`, [1, 2, 3, 4]),
  form(`${YEAR}/${DAY}/${DAY}${REST}`, [1, 2, 3, 4]),
  form(String.raw`${YEAR}-${DAY}-${DAY}${REST}`, [1, 2, 3, 4]),
];

/** The order of the program `date`: the time comes before the year. */
const TIME_FIRST = new RegExp(
  String.raw`^${WEEKDAY}${MONTH}${GAP}${DAY}\s{1,3}([\d:.]+)\s{1,3}${YEAR}((?:\s.*)?)$`,
  "is",
);

/** Matches a date and a time without separators: `19990108 040506`. */
const DIGITS = /^(\d{4})(\d{2})(\d{2})(?:T|\s{1,3})(\d{2})(\d{2})(\d{2})((?:[\s.Z+-].*)?)$/is;

const ERA = /\b(AD|BC)$/i;

/** Whether a text ends with AD or BC. */
export function hasEra(text: string): boolean {
  return ERA.test(text);
}

/**
 * Returns the text in the form of ISO 8601, or undefined if the text has none of these forms.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE for a year BC.
 */
export function isoFromWords(text: string): string | undefined {
  const era = ERA.exec(text);
  const dated = era === null ? text : text.slice(0, era.index).trimEnd();
  const iso = isoFrom(dated);
  if (iso === undefined || era?.[1]?.toUpperCase() !== "BC") return iso;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read ${excerpt(text)} as a date: its year must be between 1 and 9999`,
  );
}

function isoFrom(text: string): string | undefined {
  const [, month, day, clock, year, zone] = TIME_FIRST.exec(text) ?? [];
  if (year !== undefined)
    return isoOf([year, month ?? "", day ?? "", ` ${clock ?? ""}${zone ?? ""}`]);
  const digits = DIGITS.exec(text);
  if (digits !== null) {
    const [, years = "", months = "", days = "", hours = "", minutes = "", seconds = ""] = digits;
    return `${years}-${months}-${days} ${hours}:${minutes}:${seconds}${digits[7] ?? ""}`;
  }
  for (const { parts, pattern } of FORMS) {
    const groups = pattern.exec(text);
    if (groups !== null) return isoOf(parts(groups));
  }
  return undefined;
}

function isoOf([year = "", month = "", day = "", rest = ""]: readonly string[]): string {
  const word = MONTHS.indexOf(month.slice(0, 3).toLowerCase());
  return `${year}-${word < 0 ? month : word + 1}-${day}${rest}`;
}
