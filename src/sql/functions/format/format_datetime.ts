/** Implements to_char for timestamps and intervals. */
import { DatabaseError } from "../../../base/errors.ts";
import { dayOfWeek, daysFromCivil } from "../../../types/mod.ts";
import { dayOfYear, isoWeek, isoWeekStart } from "../time/time_math.ts";
import type { Moment } from "./format_moment.ts";
import {
  type DatePiece,
  FRACTION_DIGITS,
  JULIAN_OFFSET,
  MONTHS,
  ordinalSuffix,
  piecesOf,
  romanFromNumber,
  WEEKDAYS,
} from "./format_pattern.ts";

/** The width to which month and day names are padded: the length of September and Wednesday. */
const NAME_WIDTH = 9;

export function formatMoment(moment: Moment, pattern: string): string {
  let text = "";
  for (const piece of piecesOf(pattern)) {
    text += piece.kind === "text" ? piece.text : formatField(moment, piece);
  }
  return text;
}

type CalendarPiece = DatePiece & { kind: "field" };

function formatField(moment: Moment, piece: CalendarPiece): string {
  const text =
    clockText(moment, piece) ?? calendarText(moment, piece) ?? calendarOnly(moment, piece);
  if (piece.ordinal === undefined) return text;
  const suffix = ordinalSuffix(text);
  return text + (piece.ordinal === "TH" ? suffix.toUpperCase() : suffix);
}

/**
 * Pads a number with zeros to a width that excludes the sign. A field that suppresses padding is
 * not padded.
 */
function padded(value: number, width: number, { isTight }: CalendarPiece): string {
  if (isTight) return value.toString();
  const digits = Math.abs(value).toString().padStart(width, "0");
  return value < 0 ? `-${digits}` : digits;
}

/** Pads a number like {@linkcode padded}, but the sign counts as one of the digits. */
function paddedWithSign(value: number, width: number, { isTight }: CalendarPiece): string {
  return isTight ? value.toString() : withSignWithin(value, width);
}

function withSignWithin(value: number, width: number): string {
  return value < 0
    ? `-${(-value).toString().padStart(width - 1, "0")}`
    : value.toString().padStart(width, "0");
}

function clockText(
  { hour, minute, second, micros }: Moment,
  piece: CalendarPiece,
): string | undefined {
  switch (piece.field) {
    case "HH":
    case "HH12":
      return paddedWithSign(hour % 12 === 0 ? 12 : hour % 12, hour < 0 ? 3 : 2, piece);
    case "HH24":
      return padded(hour, 2, piece);
    case "MI":
      return padded(minute, 2, piece);
    case "SS":
      return padded(second, 2, piece);
    case "SSSS":
    case "SSSSS":
      return (hour * 3600 + minute * 60 + second).toString();
    case "AM":
    case "PM":
      return inCase(hour % 24 >= 12 ? "PM" : "AM", piece.written);
    case "A.M.":
    case "P.M.":
      return inCase(hour % 24 >= 12 ? "P.M." : "A.M.", piece.written);
    default: {
      const digits = FRACTION_DIGITS.get(piece.field);
      return digits === undefined ? undefined : fraction(micros, digits);
    }
  }
}

/** Returns the first digits of a fraction of a second, truncated rather than rounded. */
function fraction(micros: number, digits: number): string {
  return withSignWithin(Math.trunc(micros / 10 ** (6 - digits)), digits);
}

/**
 * Returns a month or day name in the case of its field: upper case for `MONTH`, capitalised for
 * `Month`, and lower case for `month`.
 */
function inCase(name: string, written: string): string {
  if (written === written.toUpperCase()) return name.toUpperCase();
  if (written === written.toLowerCase()) return name.toLowerCase();
  return name.slice(0, 1).toUpperCase() + name.slice(1).toLowerCase();
}

/**
 * Returns the century of a moment. The first century BC is -1. For an interval, it is the number
 * of complete centuries.
 */
function centuryOf({ days, isBeforeChrist, year }: Moment): number {
  if (days === undefined) return Math.trunc(year / 100);
  return isBeforeChrist ? Math.trunc((1 - year) / 100) - 1 : Math.ceil(year / 100);
}

/**
 * Returns the text of a field that both timestamps and intervals have; undefined for any other
 * field.
 */
function calendarText(moment: Moment, piece: CalendarPiece): string | undefined {
  const { year, month, day, days } = moment;
  switch (piece.field) {
    case "YYYY":
      return padded(year, 4, piece);
    case "Y,YYY":
      return `${Math.trunc(year / 1000)},${withSignWithin(year % 1000, 3)}`;
    case "YYY":
    case "YY":
    case "Y":
      return lastDigits(year, piece);
    case "CC":
      return padded(centuryOf(moment), 2, piece);
    case "MM":
      return padded(month, 2, piece);
    case "DD":
      return paddedWithSign(day, 2, piece);
    case "DDD":
      // A month of an interval counts as 30 days.
      return paddedWithSign(
        days === undefined ? (year * 12 + month) * 30 + day : dayOfYear(days),
        3,
        piece,
      );
    case "Q":
      return month === 0 ? "" : (Math.trunc((month - 1) / 3) + 1).toString();
    case "RM": {
      if (month === 0 && year === 0) return "";
      const roman = romanFromNumber(romanMonth(year, month));
      return inCase(piece.isTight ? roman : roman.padEnd(4), piece.written);
    }
    default:
      return undefined;
  }
}

/**
 * Returns a month as a Roman numeral. In an interval, a whole number of years counts as December,
 * and negative months count backwards.
 */
function romanMonth(year: number, month: number): number {
  if (month === 0) return year < 0 ? 1 : 12;
  return month < 0 ? 13 + month : month;
}

function lastDigits(year: number, piece: CalendarPiece): string {
  const width = piece.field.length;
  return padded(year % 10 ** width, width, piece);
}

/** Returns the text of a field that requires a calendar date. */
function calendarOnly(moment: Moment, piece: CalendarPiece): string {
  const { days, month, day } = moment;
  if (days === undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot format an interval with the field ${piece.field}: an interval has no calendar date`,
    );
  }
  switch (piece.field) {
    case "MONTH":
      return named(MONTHS[month - 1] ?? "", piece);
    case "MON":
      return inCase((MONTHS[month - 1] ?? "").slice(0, 3), piece.written);
    case "DAY":
      return named(WEEKDAYS[dayOfWeek(days)] ?? "", piece);
    case "DY":
      return inCase((WEEKDAYS[dayOfWeek(days)] ?? "").slice(0, 3), piece.written);
    case "D":
      return (dayOfWeek(days) + 1).toString();
    case "ID":
      return (((dayOfWeek(days) + 6) % 7) + 1).toString();
    case "BC":
    case "AD":
    case "B.C.":
    case "A.D.":
      return eraText(moment, piece);
    case "W":
      return Math.ceil(day / 7).toString();
    case "WW":
      return padded(Math.ceil(dayOfYear(days) / 7), 2, piece);
    case "J":
      return (days + JULIAN_OFFSET).toString();
    default:
      return isoText(days, piece) ?? zoneText(moment, piece);
  }
}

function eraText({ isBeforeChrist }: Moment, { field, written }: CalendarPiece): string {
  const hasPoints = field.includes(".");
  if (isBeforeChrist) return inCase(hasPoints ? "B.C." : "BC", written);
  return inCase(hasPoints ? "A.D." : "AD", written);
}

function named(name: string, piece: CalendarPiece): string {
  const text = inCase(name, piece.written);
  return piece.isTight ? text : text.padEnd(NAME_WIDTH);
}

function isoText(days: number, piece: CalendarPiece): string | undefined {
  const { year, week } = isoWeek(days);
  const counted = year > 0 ? year : 1 - year;
  switch (piece.field) {
    case "IYYY":
      return padded(counted, 4, piece);
    case "IYY":
    case "IY":
    case "I":
      return lastDigits(counted, piece);
    case "IW":
      return padded(week, 2, piece);
    case "IDDD":
      return padded(days - isoWeekStart(daysFromCivil(year, 1, 4)) + 1, 3, piece);
    default:
      return undefined;
  }
}

/**
 * Returns the time zone's name. The session's zone is always UTC; a timestamp without a zone has
 * no zone name.
 */
function zoneText({ hasZone }: Moment, piece: CalendarPiece): string {
  if (piece.field === "TZ") return hasZone ? inCase("UTC", piece.written) : "";
  return piece.field === "TZM" ? "00" : "+00";
}
