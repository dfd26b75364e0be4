/**
 * to_char and to_number for numbers.
 *
 * A pattern is digit places (`9`, `0`) with a point, signs and texts among them. The number is
 * rounded to the places after the point; its digits fill the places from the point outward.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  digitsFromText,
  excerpt,
  rescale,
  textFromDecimal,
  wholeFromBigint,
} from "../../../types/mod.ts";
import { remembering } from "../base/remembering.ts";
import { checkPatternLength, ordinalSuffix, romanFromNumber } from "./format_pattern.ts";

type NumberPiece =
  | { readonly kind: "digit"; readonly isZero: boolean }
  | { readonly kind: "point" | "group" | "sign" | "minus" | "plus" | "signed" | "currency" }
  | { readonly kind: "ordinal"; readonly isUpper: boolean }
  | { readonly kind: "text"; readonly text: string };

interface NumberPattern {
  readonly pieces: readonly NumberPiece[];
  /** Digit places before and after the point. */
  readonly wholeCount: number;
  readonly fractionCount: number;
  /** Places after V, by which the number is multiplied. */
  readonly shift: number;
  readonly isTight: boolean;
  readonly hasBrackets: boolean;
  readonly isScientific: boolean;
  readonly roman: "RN" | "rn" | undefined;
}

const patternOf = remembering(parsePattern);

const WORDS: readonly (readonly [
  string,
  NumberPiece["kind"] | "FM" | "PR" | "V" | "EEEE" | "RN",
])[] = [
  ["EEEE", "EEEE"],
  ["FM", "FM"],
  ["PR", "PR"],
  ["RN", "RN"],
  ["MI", "minus"],
  ["PL", "plus"],
  ["SG", "signed"],
  ["TH", "ordinal"],
  ["S", "sign"],
  ["D", "point"],
  [".", "point"],
  ["G", "group"],
  [",", "group"],
  ["L", "currency"],
  ["V", "V"],
  ["B", "text"],
];

interface Draft {
  pieces: NumberPiece[];
  wholeCount: number;
  fractionCount: number;
  shift: number;
  isTight: boolean;
  hasBrackets: boolean;
  isScientific: boolean;
  roman: "RN" | "rn" | undefined;
  isAfterPoint: boolean;
  isAfterShift: boolean;
}

function parsePattern(pattern: string): NumberPattern {
  checkPatternLength(pattern);
  const draft: Draft = {
    pieces: [],
    wholeCount: 0,
    fractionCount: 0,
    shift: 0,
    isTight: false,
    hasBrackets: false,
    isScientific: false,
    roman: undefined,
    isAfterPoint: false,
    isAfterShift: false,
  };
  let at = 0;
  while (at < pattern.length) at = readPiece(draft, pattern, at);
  return draft;
}

function readPiece(draft: Draft, pattern: string, at: number): number {
  const character = pattern[at] ?? "";
  if (character === "9" || character === "0") {
    draft.pieces.push({ kind: "digit", isZero: character === "0" });
    if (draft.isAfterPoint) draft.fractionCount += 1;
    else draft.wholeCount += 1;
    if (draft.isAfterShift) draft.shift += 1;
    return at + 1;
  }
  const rest = pattern.slice(at, at + 4).toUpperCase();
  const found = WORDS.find(([word]) => rest.startsWith(word));
  if (found !== undefined) {
    applyWord(draft, found[1], pattern.slice(at, at + found[0].length), pattern);
    return at + found[0].length;
  }
  if (character === '"') {
    const end = pattern.indexOf('"', at + 1);
    const close = end < 0 ? pattern.length : end;
    draft.pieces.push({ kind: "text", text: pattern.slice(at + 1, close) });
    return close + 1;
  }
  draft.pieces.push({ kind: "text", text: character });
  return at + 1;
}

function applyWord(
  draft: Draft,
  kind: (typeof WORDS)[number][1],
  written: string,
  pattern: string,
): void {
  switch (kind) {
    case "FM":
      draft.isTight = true;
      return;
    case "PR":
      draft.hasBrackets = true;
      return;
    case "EEEE":
      draft.isScientific = true;
      return;
    case "RN":
      draft.roman = written === "rn" ? "rn" : "RN";
      return;
    case "V":
      draft.isAfterShift = true;
      return;
    case "ordinal":
      draft.pieces.push({ kind, isUpper: written === "TH" });
      return;
    case "point":
      if (draft.isAfterPoint || draft.isAfterShift) {
        throw new DatabaseError(
          "INVALID_VALUE",
          `Cannot use the number pattern ${excerpt(pattern)}: it has more than one point`,
        );
      }
      draft.isAfterPoint = true;
      draft.pieces.push({ kind });
      return;
    case "digit":
    case "text":
      return;
    default:
      draft.pieces.push({ kind });
  }
}

/** Formats a number given by its plain digits. @throws {DatabaseError} INVALID_VALUE */
export function formatNumber(digits: string, pattern: string): string {
  const format = patternOf(pattern);
  if (format.roman !== undefined) return formatRoman(digits, format);
  if (format.isScientific) return formatScientific(Number(digits), format);
  const read = digitsFromText(digits);
  if (read === undefined) return "";
  const scaled = rescale(
    wholeFromBigint(read.unscaled * 10n ** BigInt(format.shift)),
    read.scale,
    format.fractionCount,
  );
  const isNegative = scaled < 0;
  const text = textFromDecimal(isNegative ? -scaled : scaled, format.fractionCount);
  const [whole = "0", fraction = ""] = text.split(".");
  return new Writer(format, { whole, fraction, isNegative }).write();
}

/**
 * Formats a double by its exact value; a tie goes to the even digit, as C's printf has it. Places
 * beyond the sure digits stay empty.
 */
export function formatDouble(
  value: number,
  { digitsMax, pattern }: { pattern: string; digitsMax: number },
): string {
  const format = patternOf(pattern);
  if (format.roman !== undefined) return formatRoman(roundedToEven(value, 0), format);
  if (format.isScientific) return formatScientific(value, format);
  const size = Math.abs(value) * 10 ** format.shift;
  if (size === Number.POSITIVE_INFINITY && Number.isFinite(value)) throw tooManyDigits();
  const wholeCount = roundedToEven(size, 0).length;
  const fractionCount = Math.min(format.fractionCount, Math.max(digitsMax - wholeCount, 0));
  const [whole = "0", fraction = ""] = roundedToEven(size, fractionCount).split(".");
  const isNegative = value < 0 || Object.is(value, -0);
  return new Writer({ ...format, fractionCount }, { whole, fraction, isNegative }).write();
}

function tooManyDigits(): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot format the number: with EEEE at most ${EXACT_PLACES} digits stand behind the point, and V must not lead beyond double precision`,
  );
}

/** Digits of a value that is not negative, rounded to some places. */
function roundedToEven(value: number, places: number): string {
  // Beyond 10^21, where toFixed has no digits, a double is a whole number.
  if (value >= 1e21) return BigInt(value).toString();
  return evenAtTie(value.toFixed(places), { exact: value.toFixed(EXACT_PLACES), places });
}

/** As many places as tell a tie from what is beside it: no double is nearer to one than that. */
const EXACT_PLACES = 100;

/** `rounded` has ties go up; `exact` has EXACT_PLACES. */
function evenAtTie(rounded: string, { exact, places }: { exact: string; places: number }): string {
  const cut = exact.length - EXACT_PLACES + places;
  if (!/^50*$/.test(exact.slice(cut))) return rounded;
  const below = exact.slice(0, places === 0 ? cut - 1 : cut);
  return /[02468]$/.test(below) ? below : rounded;
}

interface NumberParts {
  readonly whole: string;
  readonly fraction: string;
  readonly isNegative: boolean;
}

class Writer {
  readonly #format: NumberPattern;
  readonly #parts: NumberParts;
  readonly #isOverflow: boolean;
  /** Fraction digits that are written: all, or without trailing zeros where tight. */
  readonly #fractionKept: number;
  readonly #hasOwnSign: boolean;
  #text = "";
  #place = 0;
  #fractionPlace = 0;
  #hasStarted = false;
  #isSignWritten: boolean;

  constructor(format: NumberPattern, parts: NumberParts) {
    this.#format = format;
    this.#parts = parts;
    this.#isOverflow =
      parts.whole.length > format.wholeCount && (parts.whole !== "0" || format.wholeCount === 0);
    this.#fractionKept = keptFraction(format, parts.fraction);
    const kinds = new Set(format.pieces.map(({ kind }) => kind));
    this.#hasOwnSign = kinds.has("minus") || kinds.has("signed") || this.#isSignTrailing();
    this.#isSignWritten = this.#hasOwnSign;
  }

  write(): string {
    for (const piece of this.#format.pieces) this.#piece(piece);
    if (this.#format.hasBrackets) this.#text += this.#bracketEnd();
    return this.#text;
  }

  /** An S after the last digit stands at the end. */
  #isSignTrailing(): boolean {
    const { pieces } = this.#format;
    const sign = pieces.findIndex(({ kind }) => kind === "sign");
    return sign >= 0 && sign > pieces.findLastIndex(({ kind }) => kind === "digit");
  }

  #piece(piece: NumberPiece): void {
    const { isTight } = this.#format;
    const { isNegative } = this.#parts;
    switch (piece.kind) {
      case "digit":
        this.#digit(piece.isZero);
        return;
      case "point":
        this.#point();
        return;
      case "group":
        if (this.#hasStarted) this.#text += ",";
        else if (!isTight) this.#text += " ";
        return;
      case "sign":
        if (this.#isSignTrailing()) this.#text += isNegative ? "-" : "+";
        return;
      case "minus":
        this.#text += isNegative ? "-" : isTight ? "" : " ";
        return;
      case "plus":
        this.#text += isNegative ? (isTight ? "" : " ") : "+";
        return;
      case "signed":
        this.#text += isNegative ? "-" : "+";
        return;
      case "currency":
        this.#text += " ";
        return;
      case "ordinal":
        this.#ordinal(piece.isUpper);
        return;
      case "text":
        this.#text += piece.text;
    }
  }

  #ordinal(isUpper: boolean): void {
    if (this.#parts.isNegative || this.#isOverflow || this.#format.fractionCount > 0) return;
    const suffix = ordinalSuffix(this.#parts.whole);
    this.#text += isUpper ? suffix.toUpperCase() : suffix;
  }

  #digit(isZero: boolean): void {
    if (this.#place >= this.#format.wholeCount) {
      this.#fractionDigit();
      return;
    }
    const { wholeCount, isTight } = this.#format;
    const { whole } = this.#parts;
    const at = this.#place - (wholeCount - whole.length);
    this.#place += 1;
    if (this.#isOverflow) {
      this.#start();
      this.#text += "#";
    } else if (at >= 0 && !this.#isHiddenZero(isZero)) {
      this.#start();
      this.#text += whole[at] ?? "0";
    } else if (isZero || this.#hasStarted) {
      this.#start();
      this.#text += "0";
    } else if (!isTight) {
      this.#text += " ";
    }
  }

  /** The zero before the point is left out where the pattern asks for no zero. */
  #isHiddenZero(isZero: boolean): boolean {
    const isBare = this.#parts.whole === "0" && this.#format.fractionCount > 0;
    // Where tight, a zero without fraction keeps its digit: "0."
    const isAllZero = this.#format.isTight && this.#fractionKept === 0;
    return isBare && !isZero && !this.#hasStarted && !isAllZero;
  }

  #fractionDigit(): void {
    this.#fractionPlace += 1;
    if (this.#isOverflow) this.#text += "#";
    else if (this.#fractionPlace <= this.#fractionKept) {
      this.#text += this.#parts.fraction[this.#fractionPlace - 1] ?? "0";
    }
  }

  #point(): void {
    this.#start();
    // A point behind which nothing can stand is left out.
    if (this.#format.fractionCount > 0 || this.#isOverflow) this.#text += ".";
  }

  /** Writes the sign that stands before the first digit. */
  #start(): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    if (this.#isSignWritten) return;
    this.#isSignWritten = true;
    const { isNegative } = this.#parts;
    const { isTight, hasBrackets, pieces } = this.#format;
    const hasSign = pieces.some(({ kind }) => kind === "sign");
    if (hasSign) this.#text += isNegative ? "-" : "+";
    else if (hasBrackets) this.#text += isNegative ? "<" : isTight ? "" : " ";
    else if (isNegative) this.#text += "-";
    else if (!isTight) this.#text += " ";
  }

  #bracketEnd(): string {
    if (this.#parts.isNegative) return ">";
    return this.#format.isTight ? "" : " ";
  }
}

/** Where tight, zeros at the end go, but for places written as `0`. */
function keptFraction({ pieces, isTight, fractionCount }: NumberPattern, fraction: string): number {
  if (!isTight) return fractionCount;
  const needed = fraction.replace(/0+$/, "").length;
  const point = pieces.findIndex(({ kind }) => kind === "point");
  let kept = 0;
  let place = 0;
  for (const piece of pieces.slice(point + 1)) {
    if (piece.kind !== "digit") continue;
    place += 1;
    if (piece.isZero) kept = place;
  }
  return Math.max(needed, kept);
}

/** Roman digits stand right in 15 places. */
const ROMAN_WIDTH = 15;

function formatRoman(digits: string, { isTight, roman }: NumberPattern): string {
  const value = Math.round(Number(digits));
  if (value < 1 || value > 3999) return "#".repeat(ROMAN_WIDTH);
  const text = romanFromNumber(value);
  const cased = roman === "rn" ? text.toLowerCase() : text;
  return isTight ? cased : cased.padStart(ROMAN_WIDTH);
}

function formatScientific(value: number, { fractionCount, isTight }: NumberPattern): string {
  if (fractionCount > EXACT_PLACES) throw tooManyDigits();
  const [rounded = "", exponent = "0"] = value.toExponential(fractionCount).split("e");
  const [exact = "", exactExponent] = value.toExponential(EXACT_PLACES).split("e");
  const mantissa =
    exponent === exactExponent ? evenAtTie(rounded, { exact, places: fractionCount }) : rounded;
  const size = Math.abs(Number(exponent)).toString().padStart(2, "0");
  const text = `${mantissa}e${Number(exponent) < 0 ? "-" : "+"}${size}`;
  return isTight || value < 0 ? text : ` ${text}`;
}

/** Fraction digits that a pattern of to_number reads. */
export function numberScale(pattern: string): number {
  const { fractionCount, shift } = patternOf(pattern);
  return Math.min(fractionCount + shift, 30);
}

/** The plain digits of a text, read by a pattern. @throws {DatabaseError} INVALID_VALUE */
export function numberFromFormat(text: string, pattern: string): string {
  const { fractionCount, shift, isScientific, roman } = patternOf(pattern);
  if (isScientific || roman !== undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot read a number by a pattern with EEEE or RN: not available yet",
    );
  }
  const isNegative = /-|<.*>/.test(text);
  const plain = text.replaceAll(/[^0-9.]/g, "");
  // Without places for a fraction it is not read, and not rounded to either.
  const [, whole = "", fraction = ""] = /^(\d*)(\.\d*)?/.exec(plain) ?? [];
  const digits = fractionCount > 0 ? `${whole}${fraction}` : whole;
  if (!/\d/.test(digits)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as a number by ${excerpt(pattern)}: it has no digits`,
    );
  }
  const exponent = shift > 0 ? `e-${shift}` : "";
  return `${isNegative ? "-" : ""}${digits}${exponent}`;
}
