/**
 * Patterns of to_char and to_number for numbers: digit places (`9`, `0`) with a point, signs and
 * texts among them.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";
import { remembering } from "../base/remembering.ts";
import { checkPatternLength, plainText } from "./format_pattern.ts";

export type NumberPiece =
  | { readonly kind: "digit"; readonly isZero: boolean }
  | { readonly kind: "point" | "group" | "sign" | "minus" | "plus" | "signed" | "currency" }
  | { readonly kind: "ordinal"; readonly isUpper: boolean }
  | { readonly kind: "text"; readonly text: string };

export interface NumberPattern {
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

/** Reads a pattern; those of late are remembered. @throws {DatabaseError} INVALID_VALUE */
export const patternOf: (pattern: string) => NumberPattern = remembering(parsePattern);

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
  const { end, text } = plainText(pattern, at);
  draft.pieces.push({ kind: "text", text });
  return end;
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
