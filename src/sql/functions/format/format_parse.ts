/**
 * Implements to_date and to_timestamp, which read a string according to a pattern.
 *
 * A field reads all digits that follow, unless another numeric field follows directly. In that
 * case, it reads no more digits than its width. As in PostgreSQL, a separator in the pattern
 * matches one separator or nothing, and any other character skips one character of the text.
 * `format_fields.ts` combines the fields into a date and a time, and finds contradictions.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";
import { type FieldSlot, MomentFields, type ParsedMoment } from "./format_fields.ts";
import {
  type DatePiece,
  FRACTION_DIGITS,
  MONTHS,
  piecesOf,
  romanFromNumber,
  WEEKDAYS,
} from "./format_pattern.ts";

/** The slot in which the value of each pattern field is stored. */
const SLOTS: ReadonlyMap<string, FieldSlot> = new Map([
  ["HH", "hour"],
  ["HH12", "hour"],
  ["HH24", "hour"],
  ["MI", "minute"],
  ["SS", "second"],
  ["SSSS", "seconds of the day"],
  ["SSSSS", "seconds of the day"],
  ["MM", "month"],
  ["DD", "day"],
  ["DDD", "day of the year"],
  ["IDDD", "day of the year"],
  ["D", "day of the week"],
  ["WW", "week"],
  ["IW", "week"],
  ["W", "week of the month"],
  ["CC", "century"],
  ["J", "Julian day"],
]);

/** The maximum number of digits of each field whose width differs from the length of its name. */
const WIDTHS: ReadonlyMap<string, number> = new Map([
  ["HH12", 2],
  ["HH24", 2],
  ["IDDD", 3],
]);

/**
 * A list of names for consecutive numbers, such as the names of months. The first name represents
 * 1.
 */
interface SlotNames {
  readonly slot: FieldSlot;
  readonly names: readonly string[];
}

const HALVES: SlotNames = { slot: "half of the day", names: ["AM", "PM"] };
const DOTTED_HALVES: SlotNames = { slot: "half of the day", names: ["A.M.", "P.M."] };
const ERAS: SlotNames = { slot: "era", names: ["AD", "BC"] };
const DOTTED_ERAS: SlotNames = { slot: "era", names: ["A.D.", "B.C."] };

const NAMES: ReadonlyMap<string, SlotNames> = new Map<string, SlotNames>([
  ["MONTH", { slot: "month", names: MONTHS }],
  ["MON", { slot: "month", names: MONTHS.map(shortName) }],
  ["DAY", { slot: "day of the week", names: WEEKDAYS }],
  ["DY", { slot: "day of the week", names: WEEKDAYS.map(shortName) }],
  ["AM", HALVES],
  ["PM", HALVES],
  ["A.M.", DOTTED_HALVES],
  ["P.M.", DOTTED_HALVES],
  ["AD", ERAS],
  ["BC", ERAS],
  ["A.D.", DOTTED_ERAS],
  ["B.C.", DOTTED_ERAS],
]);

const ROMAN_MONTHS: readonly string[] = MONTHS.map((_, index) => romanFromNumber(index + 1));

/**
 * The Roman numerals of the months, longest first, so that a shorter numeral is never mistaken for
 * a longer one that begins with it.
 */
const BY_LENGTH: readonly string[] = ROMAN_MONTHS.toSorted((a, b) => b.length - a.length);

const YEAR_DIGITS: ReadonlyMap<string, number> = new Map([
  ["YYYY", 4],
  ["YYY", 3],
  ["YY", 2],
  ["Y", 1],
  ["IYYY", 4],
  ["IYY", 3],
  ["IY", 2],
  ["I", 1],
]);

/** The pattern fields that match text which need not begin with a digit. */
const WORD_FIELDS: ReadonlySet<string> = new Set(
  "MONTH MON DAY DY RM AM PM A.M. P.M. AD BC A.D. B.C. TZH TZ OF".split(" "),
);

type FieldPiece = DatePiece & { kind: "field" };

/**
 * Reads a point in time from a string.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function momentFromFormat(text: string, pattern: string): ReadMoment {
  return new FormatReader(text, pattern).read();
}

/** A point in time read from a text, and how much of the text and the pattern was used. */
export interface ReadMoment extends ParsedMoment {
  /** The offset in the text after the last character that the pattern has matched. */
  readonly end: number;
  /** Whether the text had a value for every field of the pattern. */
  readonly isComplete: boolean;
}

class FormatReader {
  readonly #text: string;
  readonly #pattern: string;
  readonly #fields: MomentFields;
  #at = 0;
  /**
   * The number of characters skipped in the text so far that have no counterpart in the pattern.
   */
  #surplus = 0;

  constructor(text: string, pattern: string) {
    this.#text = text;
    this.#pattern = pattern;
    this.#fields = new MomentFields(text, pattern);
  }

  read(): ReadMoment {
    const pieces = piecesOf(this.#pattern);
    let readCount = 0;
    for (const [index, piece] of pieces.entries()) {
      if (this.#at >= this.#text.length) break;
      if (piece.kind === "field" || index === 0) this.#skipSpace();
      if (piece.kind === "text") {
        this.#skip(piece);
        continue;
      }
      if (this.#at >= this.#text.length) break;
      const next = pieces[index + 1];
      const width = WIDTHS.get(piece.field) ?? piece.field.length;
      this.#field(piece, endsDigits(piece, next) ? undefined : width);
      // TH in the pattern skips any two characters of the text.
      if (piece.ordinal !== undefined) this.#at += 2;
      this.#surplus = 0;
      this.#skipSpace();
      readCount += 1;
    }
    const fieldCount = pieces.filter(({ kind }) => kind === "field").length;
    return { ...this.#fields.moment(), end: this.#at, isComplete: readCount === fieldCount };
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) {
      this.#at += 1;
      this.#surplus += 1;
    }
  }

  #skip({ isQuoted, text }: DatePiece & { kind: "text" }): void {
    for (const character of text) {
      const held = this.#text[this.#at];
      if (held === undefined) return;
      if (!isQuoted && isSeparator(character)) {
        if (isSeparator(held)) this.#at += 1;
        else this.#surplus -= 1;
      } else if (this.#surplus > 0) {
        this.#surplus -= 1;
      } else {
        this.#at += String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0).length;
      }
    }
  }

  /**
   * Reads one field of a date or time from the text.
   * @param width The number of digits to read, if the text does not delimit the field.
   */
  #field({ field }: FieldPiece, width: number | undefined): void {
    const fields = this.#fields;
    fields.meet(field);
    const named = NAMES.get(field);
    if (named !== undefined) {
      fields.set(named.slot, this.#name(named.names, field) + 1, field);
      return;
    }
    switch (field) {
      case "RM": {
        const roman = BY_LENGTH[this.#name(BY_LENGTH, field)] ?? "";
        fields.set("month", ROMAN_MONTHS.indexOf(roman) + 1, field);
        return;
      }
      case "TZ":
      case "OF":
        throw new DatabaseError(
          "UNSUPPORTED_FEATURE",
          `Cannot read ${excerpt(this.#text)} with the pattern ${excerpt(this.#pattern)}: the ` +
            `field ${field} is supported only by to_char`,
          { hint: "use TZH:TZM to read an offset" },
        );
      default:
        this.#numberField(field, width);
    }
  }

  #numberField(field: string, width: number | undefined): void {
    const fields = this.#fields;
    const yearDigits = YEAR_DIGITS.get(field);
    const fractionDigits = FRACTION_DIGITS.get(field);
    if (field === "Y,YYY") {
      const digits = this.#match(/[+-]?\d+,\d{1,3}/y, field);
      const [thousands = "", rest = ""] = digits.split(",");
      fields.set("year", Number(thousands) * 1000 + Number(rest), field);
    } else if (yearDigits !== undefined) {
      const { length, value } = this.#number(field, width);
      fields.set("year", value, field, yearDigits < 4 && length < 4 ? fullYear(value) : value);
      fields.yearDigits = yearDigits;
    } else if (fractionDigits !== undefined) {
      const read = this.#number(field, width === undefined ? undefined : fractionDigits);
      const digitsMax = field === "MS" ? 3 : 6;
      // Digits after the decimal point are a fraction: 25 and 250 both mean a quarter of a second,
      // but 025 does not.
      const scaled = read.value * 10 ** Math.max(digitsMax - read.length, 0);
      fields.set(field === "MS" ? "milliseconds" : "microseconds", read.value, field, scaled);
      if (field.startsWith("FF")) fields.fractionDigits = fractionDigits;
    } else if (field === "ID") {
      // ISO weeks begin on Monday, but the stored day of the week counts from Sunday.
      const { value } = this.#number(field, width === undefined ? undefined : 1);
      fields.set("day of the week", value >= 7 ? 1 : value + 1, field);
    } else if (field === "TZH") {
      this.#offsetHours(width);
    } else if (field === "TZM") {
      const { value } = this.#number(field, width === undefined ? undefined : 2);
      fields.setOffset("minutes of the offset", value, field);
    } else {
      const { value } = this.#number(field, width);
      const slot = SLOTS.get(field);
      // A quarter does not determine a date. As in PostgreSQL, it is read and ignored.
      if (slot !== undefined) fields.set(slot, value, field);
    }
  }

  /**
   * Reads the hours of a time zone offset. A minus that was skipped as a separator counts as the
   * sign.
   */
  #offsetHours(width: number | undefined): void {
    const here = this.#text[this.#at] ?? "";
    const isSigned = here === "+" || here === "-";
    const before = this.#surplus > 0 ? this.#text[this.#at - 1] : "";
    this.#fields.offsetSign = (isSigned ? here : before) === "-" ? -1 : 1;
    if (isSigned) this.#at += 1;
    const { value } = this.#number("TZH", width === undefined ? undefined : 2);
    this.#fields.setOffset("hours of the offset", value, "TZH");
  }

  #number(field: string, width: number | undefined): { value: number; length: number } {
    const start = this.#at;
    if (width === undefined) {
      const digits = this.#match(/\s*[+-]?\d+/y, field);
      return this.#checked(digits, this.#at - start, field);
    }
    const taken = this.#text.slice(start, start + width);
    if (taken.length < width || !/^\s*[+-]?\d+$/.test(taken)) throw this.#mismatch(field);
    this.#at += width;
    return this.#checked(taken, width, field);
  }

  #checked(digits: string, length: number, field: string): { value: number; length: number } {
    const value = Number(digits);
    if (Math.abs(value) < 2 ** 31) return { value, length };
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot read ${excerpt(this.#text)} with the pattern ${excerpt(this.#pattern)}: ${field} cannot be ${excerpt(digits)}`,
    );
  }

  /**
   * Matches one of the names at the current position in the text, ignoring case. Returns its
   * index.
   */
  #name(names: readonly string[], field: string): number {
    const rest = this.#text.slice(this.#at).toLowerCase();
    const index = names.findIndex((name) => rest.startsWith(name.toLowerCase()));
    if (index < 0) throw this.#mismatch(field);
    this.#at += (names[index] ?? "").length;
    return index;
  }

  #match(pattern: RegExp, field: string): string {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) throw this.#mismatch(field);
    this.#at = pattern.lastIndex;
    return match[0];
  }

  #mismatch(field: string): DatabaseError {
    return new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(this.#text)} with the pattern ${excerpt(this.#pattern)}: ` +
        `${excerpt(this.#text.slice(this.#at))} does not match ${field}`,
    );
  }
}

function shortName(name: string): string {
  return name.slice(0, 3);
}

function isSeparator(character: string): boolean {
  return /[\s!-/:-@[-`{-~]/.test(character);
}

/**
 * Whether a field reads all digits that follow: either it is marked with FM or TH, or the next
 * element of the pattern cannot begin with a digit.
 */
function endsDigits({ isTight, ordinal }: FieldPiece, next: DatePiece | undefined): boolean {
  if (isTight || ordinal !== undefined || next === undefined) return true;
  if (next.kind === "text") return !/^\d/.test(next.text);
  return WORD_FIELDS.has(next.field);
}

/** Returns the year nearest to 2020 that ends with the digits of `year`. */
function fullYear(year: number): number {
  if (year < 70) return year + 2000;
  if (year < 100) return year + 1900;
  if (year < 520) return year + 2000;
  return year < 1000 ? year + 1000 : year;
}
