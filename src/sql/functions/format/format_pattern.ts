/**
 * Splits the patterns of to_char, to_date and to_timestamp into fields and the text between them.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { remembering } from "../base/remembering.ts";

/**
 * The maximum length of a pattern. A parsed pattern is cached, and uses a hundred times as much
 * memory as its text.
 */
const PATTERN_LENGTH_MAX = 10_000;

/** Refuses a pattern that is too long. @throws {DatabaseError} LIMIT_EXCEEDED */
export function checkPatternLength(pattern: string): void {
  if (pattern.length <= PATTERN_LENGTH_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot use a format pattern of ${pattern.length} characters: the maximum is ` +
      PATTERN_LENGTH_MAX,
  );
}

export type DatePiece =
  | { readonly kind: "text"; readonly text: string; readonly isQuoted: boolean }
  | {
      readonly kind: "field";
      /** The name of the field in upper case, for example `HH24`. */
      readonly field: string;
      /** The field as written in the pattern. Its case determines the case of names. */
      readonly written: string;
      /** Whether padding is suppressed, either by FM, or by TM before a name. */
      readonly isTight: boolean;
      /** The suffix `TH` or `th` after the field. */
      readonly ordinal: string | undefined;
    };

/** The names of all fields. A longer name is listed before its prefixes. */
const FIELDS: readonly string[] = (
  "SSSSS SSSS Y,YYY A.M. P.M. B.C. A.D. HH24 HH12 YYYY IYYY IDDD MONTH DAY MON YYY IYY DDD " +
  "TZH TZM FF1 FF2 FF3 FF4 FF5 FF6 HH MI MM MS SS US AM PM BC AD YY IY DD ID DY WW IW CC RM " +
  "TZ OF Y I D W J Q"
).split(" ");

/** The fields for fractions of a second, each with its number of digits. */
export const FRACTION_DIGITS: ReadonlyMap<string, number> = new Map([
  ["MS", 3],
  ["US", 6],
  ["FF1", 1],
  ["FF2", 2],
  ["FF3", 3],
  ["FF4", 4],
  ["FF5", 5],
  ["FF6", 6],
]);

/** The number of days from the Julian epoch to 1970-01-01. */
export const JULIAN_OFFSET = 2_440_588;

const NAME_FIELDS: ReadonlySet<string> = new Set(["MONTH", "MON", "DAY", "DY"]);

export const piecesOf: (pattern: string) => readonly DatePiece[] = remembering(split);

function split(pattern: string): DatePiece[] {
  checkPatternLength(pattern);
  const pieces: DatePiece[] = [];
  let isTight = false;
  let isTranslated = false;
  let at = 0;
  while (at < pattern.length) {
    const prefix = pattern.slice(at, at + 2).toUpperCase();
    if (prefix === "FM" || prefix === "FX" || prefix === "TM") {
      isTight ||= prefix === "FM";
      isTranslated ||= prefix === "TM";
      at += 2;
      continue;
    }
    const field = fieldAt(pattern, at);
    if (field === undefined) {
      at = addText(pieces, pattern, at);
      continue;
    }
    const written = pattern.slice(at, at + field.length);
    at += field.length;
    const after = pattern.slice(at, at + 2);
    const ordinal = after === "TH" || after === "th" ? after : undefined;
    // The suffix SP requests numbers in words. As in PostgreSQL, it is ignored.
    if (ordinal !== undefined || after === "SP") at += 2;
    // TM requests localized names, which have no common width. Only English names are supported.
    isTight ||= isTranslated && NAME_FIELDS.has(field);
    pieces.push({ kind: "field", field, written, isTight, ordinal });
    isTight = false;
    isTranslated = false;
  }
  return pieces;
}

function fieldAt(pattern: string, at: number): string | undefined {
  return FIELDS.find((field) => pattern.slice(at, at + field.length).toUpperCase() === field);
}

function addText(pieces: DatePiece[], pattern: string, at: number): number {
  const { end, text } = plainText(pattern, at);
  pieces.push({ kind: "text", text, isQuoted: pattern[at] === '"' });
  return end;
}

/**
 * Reads quoted text or a single character of a pattern, and returns where the pattern continues.
 * Within quotes, a backslash escapes any character; outside quotes, it escapes only a quote.
 */
export function plainText(pattern: string, at: number): { text: string; end: number } {
  if (pattern[at] !== '"') {
    const isEscaped = pattern[at] === "\\" && pattern[at + 1] === '"';
    const start = isEscaped ? at + 1 : at;
    const text = String.fromCodePoint(pattern.codePointAt(start) ?? 0);
    return { text, end: start + text.length };
  }
  let text = "";
  let index = at + 1;
  while (index < pattern.length && pattern[index] !== '"') {
    if (pattern[index] === "\\" && index + 1 < pattern.length) index += 1;
    text += pattern[index] ?? "";
    index += 1;
  }
  return { text, end: index + 1 };
}

const ROMAN: readonly (readonly [number, string])[] = [
  [1000, "M"],
  [900, "CM"],
  [500, "D"],
  [400, "CD"],
  [100, "C"],
  [90, "XC"],
  [50, "L"],
  [40, "XL"],
  [10, "X"],
  [9, "IX"],
  [5, "V"],
  [4, "IV"],
  [1, "I"],
];

/** Returns an integer from 1 to 3999 as upper-case Roman numerals. */
export function romanFromNumber(value: number): string {
  let rest = value;
  let text = "";
  for (const [worth, letters] of ROMAN) {
    while (rest >= worth) {
      text += letters;
      rest -= worth;
    }
  }
  return text;
}

/** Returns `st`, `nd`, `rd` or `th` for an integer. */
export function ordinalSuffix(digits: string): string {
  const last = digits.at(-1);
  if (digits.at(-2) === "1") return "th";
  return last === "1" ? "st" : last === "2" ? "nd" : last === "3" ? "rd" : "th";
}

export const MONTHS: readonly string[] = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

export const WEEKDAYS: readonly string[] = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday",
];
