/**
 * Writes the digits of a number into the positions of a pattern, for to_char.
 *
 * The digits fill the positions outward from the decimal point. The sign is written once, before
 * the first digit unless the pattern has a position for it.
 */
import { withoutTrailingZeros } from "../../../types/mod.ts";
import { ordinalSuffix } from "./format_pattern.ts";
import type { NumberPattern, NumberPiece } from "./number_pattern.ts";

export interface NumberParts {
  /**
   * The digits before the decimal point, or a word such as Infinity for a value without digits.
   */
  readonly whole: string;
  readonly fraction: string;
  readonly isNegative: boolean;
  readonly isWord?: boolean;
}

export class NumberWriter {
  readonly #format: NumberPattern;
  readonly #parts: NumberParts;
  readonly #isOverflow: boolean;
  /** The number of fraction digits to write. With FM, trailing zeros are not counted. */
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

  /**
   * Whether the sign is written after the number, because the pattern has an S after the last
   * digit.
   */
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

  /**
   * Whether the zero before the decimal point is omitted because the pattern does not request it.
   */
  #isHiddenZero(isZero: boolean): boolean {
    const isBare = this.#parts.whole === "0" && this.#format.fractionCount > 0;
    // With FM, a zero without fraction digits is written as "0."
    const isAllZero = this.#format.isTight && this.#fractionKept === 0;
    return isBare && !isZero && !this.#hasStarted && !isAllZero;
  }

  #fractionDigit(): void {
    this.#fractionPlace += 1;
    if (this.#isOverflow) {
      if (this.#fractionPlace <= this.#format.fractionCount) this.#text += "#";
    } else if (this.#parts.isWord !== true && this.#fractionPlace <= this.#fractionKept) {
      this.#text += this.#parts.fraction[this.#fractionPlace - 1] ?? "0";
    }
  }

  #point(): void {
    this.#start();
    // The decimal point is omitted if no digit can follow it in the pattern.
    const hasFraction = this.#format.fractionCount > 0 && this.#parts.isWord !== true;
    if (hasFraction || this.#isOverflow) this.#text += ".";
  }

  /** Writes the sign that precedes the first digit. */
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

/**
 * Returns the number of fraction digits to write. With FM, trailing zeros are omitted, except at
 * positions written as `0`.
 */
function keptFraction({ pieces, isTight, fractionCount }: NumberPattern, fraction: string): number {
  if (!isTight) return fractionCount;
  const needed = withoutTrailingZeros(fraction).length;
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
