/**
 * Implements to_number, which reads a number from a string according to a pattern, as in
 * PostgreSQL. Each digit position consumes at most one character, so a character that does not fit
 * uses up its position. A separator is skipped only where the pattern has one.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";
import { type NumberPattern, type NumberPiece, patternOf } from "./number_pattern.ts";

/** Returns the number of fraction digits that a pattern of to_number reads. */
export function numberScale(pattern: string): number {
  const { fractionCount, shift } = patternOf(pattern);
  return Math.min(fractionCount + shift, 30);
}

/**
 * Reads a number from a string according to a pattern, and returns its digits. @throws
 * {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function numberFromFormat(text: string, pattern: string): string {
  const format = patternOf(pattern);
  if (format.isScientific || format.roman !== undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot read a number with the pattern EEEE or RN: these patterns are not available yet",
    );
  }
  // A pattern of this length cannot read beyond this prefix of the text.
  const start = text.slice(0, READ_UNITS * pattern.length);
  const { fraction, hasPoint, sign, whole } = new NumberReader(start, format).read();
  const read = `${excerpt(text)} as a number with the pattern ${excerpt(pattern)}`;
  if (whole + fraction === "") {
    throw new DatabaseError("INVALID_VALUE", `Cannot read ${read}: it has no digits`);
  }
  if (whole.replace(/^0+/, "").length > format.wholeCount) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot read ${read}: it has more digits before the decimal point than the pattern`,
    );
  }
  const exponent = format.shift > 0 ? `e-${format.shift}` : "";
  return `${sign === "-" ? sign : ""}${whole}${hasPoint ? `.${fraction}` : ""}${exponent}`;
}

/**
 * The maximum number of UTF-16 code units of text that one pattern character reads: a space, a
 * sign, a digit and a skipped character, each of up to two code units.
 */
const READ_UNITS = 8;

const SIGNS = ["minus", "plus", "signed"] as const;

class NumberReader {
  readonly #characters: readonly string[];
  readonly #format: NumberPattern;
  readonly #kinds: ReadonlySet<NumberPiece["kind"]>;
  #at = 0;
  #whole = "";
  #fraction = "";
  #hasPoint = false;
  #sign = "";

  constructor(text: string, format: NumberPattern) {
    this.#characters = Array.from(text);
    this.#format = format;
    this.#kinds = new Set(format.pieces.map(({ kind }) => kind));
  }

  read(): { whole: string; fraction: string; hasPoint: boolean; sign: string } {
    for (const piece of this.#format.pieces) {
      if (this.#at >= this.#characters.length) break;
      this.#piece(piece);
    }
    const [whole, fraction, hasPoint] = [this.#whole, this.#fraction, this.#hasPoint];
    return { whole, fraction, hasPoint, sign: this.#sign };
  }

  #piece(piece: NumberPiece): void {
    const here = this.#characters[this.#at] ?? "";
    switch (piece.kind) {
      case "digit":
      case "point":
        this.#place(piece.kind);
        break;
      case "group":
        // With FM, group separators in the pattern affect only output.
        if (here === "," && !this.#format.isTight) this.#at += 1;
        break;
      case "currency":
        this.#skipOthers(1);
        break;
      case "ordinal":
        if (this.#sign !== "-" && !this.#kinds.has("point")) this.#skipOthers(2);
        break;
      case "minus":
      case "plus":
      case "signed":
        this.#signPiece(piece.kind, here);
        break;
      case "text":
        this.#at += Array.from(piece.text).length;
        break;
      default:
      // A sign requested with S is adjacent to a digit, so it is read together with that digit.
    }
  }

  #signPiece(kind: "minus" | "plus" | "signed", here: string): void {
    const isMinus = here === "-" && kind !== "plus";
    if (isMinus || (here === "+" && kind !== "minus")) {
      this.#sign = here;
      this.#at += 1;
    } else {
      this.#skipOthers(1);
    }
  }

  /** Skips characters of the text that cannot be part of a number. */
  #skipOthers(count: number): void {
    for (let index = 0; index < count; index += 1) {
      const here = this.#characters[this.#at];
      if (here === undefined || "0123456789.,+-".includes(here)) return;
      this.#at += 1;
    }
  }

  /** Reads the text for one digit or point of the pattern. Skips a leading space. */
  #place(kind: "digit" | "point"): void {
    if (this.#characters[this.#at] === " ") this.#at += 1;
    if (kind === "digit" && this.#sign === "" && !this.#hasDigits) this.#leadingSign();
    const here = this.#characters[this.#at];
    if (here === undefined) return;
    let isRead = false;
    if (here >= "0" && here <= "9") {
      if (this.#hasPoint) {
        if (this.#fraction.length < this.#format.fractionCount) this.#fraction += here;
        else return this.#step();
      } else {
        this.#whole += here;
      }
      isRead = true;
    } else if (here === "." && this.#kinds.has("point") && !this.#hasPoint) {
      this.#hasPoint = true;
      isRead = true;
    }
    if (this.#sign === "" && this.#hasDigits) this.#signBehind(isRead, here);
    this.#step();
  }

  get #hasDigits(): boolean {
    return this.#whole !== "" || this.#fraction !== "";
  }

  #step(): void {
    this.#at += 1;
  }

  #leadingSign(): void {
    const here = this.#characters[this.#at] ?? "";
    const isBracket = here === "<" && this.#format.hasBrackets;
    if (here !== "-" && here !== "+" && !isBracket) return;
    this.#sign = isBracket ? "-" : here;
    this.#at += 1;
  }

  /**
   * Reads a sign after a digit position. A sign requested with S directly follows a digit. A sign
   * requested with MI, PL or SG may occupy a digit position.
   */
  #signBehind(isRead: boolean, here: string): void {
    if (this.#kinds.has("sign")) {
      const next = this.#characters[this.#at + 1] ?? "";
      if (!isRead || (next !== "-" && next !== "+")) return;
      this.#sign = next;
      this.#at += 1;
      return;
    }
    const hasOther = SIGNS.some((kind) => this.#kinds.has(kind));
    if (!isRead && hasOther && (here === "-" || here === "+")) this.#sign = here;
  }
}
