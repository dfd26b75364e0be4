/**
 * Implements to_char for numbers. A number is first rounded to the number of decimal places in its
 * pattern.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  bigDecimalOf,
  numericExponent,
  numericFromText,
  numericSign,
  rescale,
  roundNumeric,
  textFromDecimal,
  textFromNumeric,
  wholeFromBigint,
} from "../../../types/mod.ts";
import { romanFromNumber } from "./format_pattern.ts";
import { type NumberPattern, patternOf } from "./number_pattern.ts";
import { NumberWriter } from "./number_writer.ts";

/** Formats a number given as plain digits. @throws {DatabaseError} INVALID_VALUE */
export function formatNumber(digits: string, pattern: string): string {
  const format = patternOf(pattern);
  if (format.roman !== undefined) return formatRoman(digits, format);
  const value = numericFromText(digits);
  if (value === undefined) return "";
  if (format.isScientific) return formatExactScientific(value, format);
  const read = bigDecimalOf(value);
  const scaled = rescale(
    wholeFromBigint(read.unscaled * 10n ** BigInt(format.shift)),
    read.scale,
    format.fractionCount,
  );
  const isNegative = scaled < 0;
  const text = textFromDecimal(isNegative ? -scaled : scaled, format.fractionCount);
  const [whole = "0", fraction = ""] = text.split(".");
  return new NumberWriter(format, { whole, fraction, isNegative }).write();
}

/**
 * Formats a double by its exact value, rounding ties to even as C's printf does. Pattern positions
 * beyond the digits that the type preserves stay empty.
 */
export function formatDouble(
  value: number,
  { digitsMax, pattern }: { pattern: string; digitsMax: number },
): string {
  const format = patternOf(pattern);
  if (!Number.isFinite(value)) {
    if (format.isScientific) return ` #.${"#".repeat(format.fractionCount + 4)}`;
    if (format.roman !== undefined) return formatRoman("0", format);
    const word = Number.isNaN(value) ? "NaN" : "Infinity";
    const parts = { whole: word, fraction: "", isNegative: value < 0, isWord: true };
    const fractionCount = Math.min(format.fractionCount, Math.max(digitsMax - word.length, 0));
    return new NumberWriter({ ...format, fractionCount }, parts).write();
  }
  if (format.roman !== undefined) return formatRoman(roundedToEven(value, 0), format);
  if (format.isScientific) return formatScientific(value, format);
  const size = Math.abs(value) * 10 ** format.shift;
  if (size === Number.POSITIVE_INFINITY && Number.isFinite(value)) {
    throw unformattable("the value shifted by V is too large for double precision");
  }
  const wholeCount = roundedToEven(size, 0).length;
  const fractionCount = Math.min(format.fractionCount, Math.max(digitsMax - wholeCount, 0));
  const [whole = "0", fraction = ""] = roundedToEven(size, fractionCount).split(".");
  const isNegative = value < 0 || Object.is(value, -0);
  return new NumberWriter({ ...format, fractionCount }, { whole, fraction, isNegative }).write();
}

function unformattable(what: string): DatabaseError {
  return new DatabaseError("VALUE_OUT_OF_RANGE", `Cannot format the number: ${what}`);
}

/** Returns the digits of a non-negative value, rounded to the given number of decimal places. */
function roundedToEven(value: number, places: number): string {
  // From 10^21, toFixed writes an exponent, but every double of this size is an integer.
  if (value >= 1e21) return BigInt(value).toString();
  return evenAtTie(value.toFixed(places), { exact: value.toFixed(EXACT_PLACES), places });
}

/**
 * The number of decimal places needed to distinguish a tie from its neighbours. No other double
 * has the same digits as a tie to this many places.
 */
const EXACT_PLACES = 100;

/**
 * Rounds a tie to the even digit. In `rounded`, ties are rounded up. `exact` has EXACT_PLACES
 * decimal places, which show whether there is a tie.
 */
function evenAtTie(rounded: string, { exact, places }: { exact: string; places: number }): string {
  const cut = exact.length - EXACT_PLACES + places;
  if (!/^50*$/.test(exact.slice(cut))) return rounded;
  const below = exact.slice(0, places === 0 ? cut - 1 : cut);
  return /[02468]$/.test(below) ? below : rounded;
}

/** The width within which Roman numerals are right-aligned. */
const ROMAN_WIDTH = 15;

function formatRoman(digits: string, { isTight, roman }: NumberPattern): string {
  const value = Math.round(Number(digits));
  if (value < 1 || value > 3999) return "#".repeat(ROMAN_WIDTH);
  const text = romanFromNumber(value);
  const cased = roman === "rn" ? text.toLowerCase() : text;
  return isTight ? cased : cased.padStart(ROMAN_WIDTH);
}

/** Formats a finite NUMERIC with an exponent, rounded half away from zero. */
function formatExactScientific(value: string, format: NumberPattern): string {
  const { fractionCount, isTight } = format;
  const rounded = roundNumeric(value, fractionCount - firstPower(value));
  const power = firstPower(rounded);
  const digits = textFromNumeric(rounded)
    .replace(/^-?[0.]*/, "")
    .replace(".", "")
    .slice(0, fractionCount + 1)
    .padEnd(fractionCount + 1, "0");
  const fraction = fractionCount === 0 ? "" : `.${digits.slice(1)}`;
  const size = Math.abs(power).toString().padStart(2, "0");
  const text = `${digits.slice(0, 1)}${fraction}e${power < 0 ? "-" : "+"}${size}`;
  if (numericSign(value) < 0) return `-${text}`;
  return isTight ? text : ` ${text}`;
}

/** Returns the power of ten of a number's first significant digit; 0 for zero. */
function firstPower(value: string): number {
  return numericSign(value) === 0 ? 0 : numericExponent(value) - 1;
}

function formatScientific(value: number, { fractionCount, isTight }: NumberPattern): string {
  if (fractionCount > EXACT_PLACES) {
    throw unformattable(`EEEE allows at most ${EXACT_PLACES} digits after the decimal point`);
  }
  const [rounded = "", exponent = "0"] = value.toExponential(fractionCount).split("e");
  const [exact = "", exactExponent] = value.toExponential(EXACT_PLACES).split("e");
  const mantissa =
    exponent === exactExponent ? evenAtTie(rounded, { exact, places: fractionCount }) : rounded;
  const size = Math.abs(Number(exponent)).toString().padStart(2, "0");
  const text = `${mantissa}e${Number(exponent) < 0 ? "-" : "+"}${size}`;
  return isTight || value < 0 ? text : ` ${text}`;
}
