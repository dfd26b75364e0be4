/**
 * to_date and to_timestamp: text read by a pattern.
 *
 * Fields read as many digits as they have, at most their width where another field follows at
 * once. Text between fields matches any separators, as in PostgreSQL.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { checkDate, dateFromCivil, daysFromCivil, excerpt } from "../../../types/mod.ts";
import { isoWeekStart } from "../time/time_math.ts";
import {
  type DatePiece,
  FRACTION_DIGITS,
  JULIAN_OFFSET,
  MONTHS,
  piecesOf,
  romanFromNumber,
  WEEKDAYS,
} from "./format_pattern.ts";

const MICROS_PER_SECOND = 1_000_000;

/** Most digits of a field that another one follows at once. */
const WIDTHS: ReadonlyMap<string, number> = new Map([
  ...FRACTION_DIGITS,
  ["YYYY", 4],
  ["IYYY", 4],
  ["YYY", 3],
  ["IYY", 3],
  ["DDD", 3],
  ["IDDD", 3],
  ["SSSS", 5],
  ["SSSSS", 5],
  ["Y", 1],
  ["I", 1],
  ["D", 1],
  ["ID", 1],
  ["Q", 1],
  ["W", 1],
  ["J", 7],
]);

export interface ParsedMoment {
  readonly days: number;
  /** Microseconds from the start of the day, in UTC. */
  readonly micros: number;
}

/** @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE */
export function momentFromFormat(text: string, pattern: string): ParsedMoment {
  return new Reader(text, pattern).read();
}

class Reader {
  readonly #text: string;
  readonly #pattern: string;
  readonly #fields = new Map<string, number>();
  #at = 0;
  #isAfternoon: boolean | undefined;
  #offsetMinutes = 0;

  constructor(text: string, pattern: string) {
    this.#text = text;
    this.#pattern = pattern;
  }

  read(): ParsedMoment {
    const pieces = piecesOf(this.#pattern);
    for (const [index, piece] of pieces.entries()) {
      if (piece.kind === "text") {
        this.#skip(piece.text);
      } else {
        this.#field(piece, pieces[index + 1]?.kind === "field");
        // The two letters of TH are passed over, whatever they are.
        if (piece.ordinal !== undefined) this.#at += 2;
      }
    }
    return {
      days: checkDate(this.#days()),
      micros: this.#micros() - this.#offsetMinutes * 60_000_000,
    };
  }

  /** Letters stand for any character, separators for any number of separators. */
  #skip(text: string): void {
    for (const character of text) {
      const isSeparator = /[^A-Za-z0-9]/.test(character);
      const held = this.#text[this.#at];
      if (held === undefined) return;
      if (!isSeparator || /[^A-Za-z0-9+-]/.test(held) || held === character) this.#at += 1;
    }
  }

  #field({ field }: DatePiece & { kind: "field" }, isFollowed: boolean): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
    if (this.#at >= this.#text.length) return;
    switch (field) {
      case "MONTH":
      case "MON":
        this.#fields.set("MM", this.#name(MONTHS, field) + 1);
        return;
      case "DAY":
      case "DY":
        this.#name(WEEKDAYS, field);
        return;
      case "RM":
        this.#roman();
        return;
      case "TZH":
      case "OF":
      case "TZ":
        this.#offset();
        return;
      case "TZM":
        this.#offsetMinutes +=
          Math.sign(this.#offsetMinutes || 1) * Number(this.#match(/\d{1,2}/y));
        return;
      case "Y,YYY":
        this.#fields.set("YYYY", Number(this.#match(/\d{1,3},\d{3}/y).replace(",", "")));
        return;
      default:
        if (/^[AP]\.?M\.?$/.test(field)) {
          this.#isAfternoon = this.#match(/[ap]\.?m\.?/iy)
            .toLowerCase()
            .startsWith("p");
        } else if (/^(?:AD|BC|A\.D\.|B\.C\.)$/.test(field)) {
          this.#era();
        } else {
          this.#number(field, isFollowed);
        }
    }
  }

  #number(field: string, isFollowed: boolean): void {
    const width = WIDTHS.get(field) ?? 2;
    const isFraction = FRACTION_DIGITS.has(field);
    const most = isFollowed || isFraction ? width : Math.max(width, 9);
    const digits = this.#match(new RegExp(String.raw`[+-]?\d{1,${most}}`, "y"));
    if (isFraction) {
      this.#fields.set("fraction", Math.round(Number(`0.${digits}`) * MICROS_PER_SECOND));
    } else if (/^Y+$/.test(field)) {
      const year = Number(digits);
      const isShort = field !== "YYYY" && digits.length < 4;
      this.#fields.set("YYYY", isShort ? fullYear(year) : year);
    } else {
      this.#fields.set(
        field === "HH" ? "HH12" : field === "SSSSS" ? "SSSS" : field,
        Number(digits),
      );
    }
  }

  #name(names: readonly string[], field: string): number {
    const isShort = field === "MON" || field === "DY";
    const rest = this.#text.slice(this.#at).toLowerCase();
    const index = names.findIndex((name) =>
      rest.startsWith((isShort ? name.slice(0, 3) : name).toLowerCase()),
    );
    if (index < 0) throw this.#mismatch(field);
    this.#at += isShort ? 3 : (names[index] ?? "").length;
    return index;
  }

  #roman(): void {
    const letters = this.#match(/[ivx]+/iy).toUpperCase();
    const month = Array.from({ length: 12 }, (_, index) => romanFromNumber(index + 1)).indexOf(
      letters,
    );
    if (month < 0) throw this.#mismatch("RM");
    this.#fields.set("MM", month + 1);
  }

  #era(): void {
    if (
      !this.#match(/[ab]\.?[cd]\.?/iy)
        .toLowerCase()
        .startsWith("b")
    )
      return;
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot read ${excerpt(this.#text)}: years before 1 are out of range`,
    );
  }

  #offset(): void {
    const match = /^([+-]?)(\d{1,2})(?::?(\d{2}))?/.exec(
      this.#match(/[+-]?\d{1,2}(?::?\d{2})?|utc|z/iy),
    );
    if (match === null) return;
    const minutes = Number(match[2]) * 60 + Number(match[3] ?? "0");
    this.#offsetMinutes = match[1] === "-" ? -minutes : minutes;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) throw this.#mismatch("the pattern");
    this.#at = pattern.lastIndex;
    return match[0];
  }

  #mismatch(field: string): DatabaseError {
    return new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(this.#text)} by ${excerpt(this.#pattern)}: ` +
        `${excerpt(this.#text.slice(this.#at))} does not match ${field}`,
    );
  }

  #days(): number {
    const julian = this.#fields.get("J");
    if (julian !== undefined) return julian - JULIAN_OFFSET;
    const isoYear = this.#fields.get("IYYY");
    if (isoYear !== undefined) {
      const first = isoWeekStart(daysFromCivil(isoYear, 1, 4));
      const dayOfIsoYear = this.#fields.get("IDDD");
      if (dayOfIsoYear !== undefined) return first + dayOfIsoYear - 1;
      return first + ((this.#fields.get("IW") ?? 1) - 1) * 7 + (this.#fields.get("ID") ?? 1) - 1;
    }
    const year = this.#fields.get("YYYY") ?? 0;
    const dayOfYear = this.#fields.get("DDD");
    if (dayOfYear !== undefined) return dateFromCivil(year, 1, 1) + dayOfYear - 1;
    const week = this.#fields.get("WW");
    if (week !== undefined) return dateFromCivil(year, 1, 1) + (week - 1) * 7;
    const weekOfMonth = this.#fields.get("W");
    const day = this.#fields.get("DD") ?? (weekOfMonth === undefined ? 1 : weekOfMonth * 7 - 6);
    return dateFromCivil(year, this.#fields.get("MM") ?? 1, day);
  }

  #micros(): number {
    const seconds = this.#fields.get("SSSS");
    const fraction = this.#fields.get("fraction") ?? 0;
    if (seconds !== undefined) return seconds * MICROS_PER_SECOND + fraction;
    const minute = this.#fields.get("MI") ?? 0;
    const second = this.#fields.get("SS") ?? 0;
    const hour = this.#hour();
    if (hour <= 24 && minute <= 59 && second <= 60) {
      return ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction;
    }
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot read ${excerpt(this.#text)}: there is no time ${hour}:${minute}:${second}`,
    );
  }

  #hour(): number {
    const hour = this.#fields.get("HH24");
    if (hour !== undefined) return hour;
    const half = this.#fields.get("HH12");
    if (half === undefined) return 0;
    if (half < 1 || half > 12) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot read ${excerpt(this.#text)}: the hour ${half} is not one of 12`,
      );
    }
    return (half % 12) + (this.#isAfternoon === true ? 12 : 0);
  }
}

/** Years with few digits are near 2020. */
function fullYear(year: number): number {
  if (year < 70) return year + 2000;
  if (year < 100) return year + 1900;
  return year < 520 ? year + 2000 : year + 1000;
}
