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

type PatternWord = NumberPiece["kind"] | "FM" | "PR" | "V" | "EEEE" | "RN";

const WORDS: readonly (readonly [string, PatternWord])[] = [
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

/** For each word, the words that may not stand before it in a pattern, as in PostgreSQL. */
const EXCLUDED: ReadonlyMap<PatternWord, readonly PatternWord[]> = new Map([
  ["digit", ["PR"]],
  ["point", ["point", "V"]],
  ["V", ["point"]],
  ["sign", ["sign", "plus", "minus", "signed", "PR"]],
  ["plus", ["sign"]],
  ["minus", ["sign"]],
  ["signed", ["sign"]],
  ["PR", ["sign", "plus", "minus", "signed"]],
  ["EEEE", ["FM", "sign", "plus", "minus", "signed", "PR", "RN", "V"]],
]);

interface Draft {
  /** The kinds of words so far. */
  readonly used: Set<PatternWord>;
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
    used: new Set(),
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
    use(draft, "digit", pattern);
    draft.pieces.push({ kind: "digit", isZero: character === "0" });
    if (draft.isAfterPoint) draft.fractionCount += 1;
    else draft.wholeCount += 1;
    if (draft.isAfterShift) draft.shift += 1;
    return at + 1;
  }
  const rest = pattern.slice(at, at + 4).toUpperCase();
  const found = WORDS.find(([word]) => rest.startsWith(word));
  if (found !== undefined) {
    use(draft, found[1], pattern);
    applyWord(draft, found[1], pattern.slice(at, at + found[0].length));
    return at + found[0].length;
  }
  const { end, text } = plainText(pattern, at);
  draft.pieces.push({ kind: "text", text });
  return end;
}

/** Notes a word. @throws {DatabaseError} INVALID_VALUE if an earlier one excludes it. */
function use({ used }: Draft, kind: PatternWord, pattern: string): void {
  const isAfterExponent = used.has("EEEE") && kind !== "text";
  const excluding = isAfterExponent
    ? "EEEE"
    : EXCLUDED.get(kind)?.find((earlier) => used.has(earlier));
  used.add(kind);
  if (excluding === undefined) return;
  const what =
    excluding === kind
      ? `it has more than one ${nameOf(kind)}`
      : `${phraseOf(kind)} may not follow ${phraseOf(excluding)}`;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use the number pattern ${excerpt(pattern)}: ${what}`,
  );
}

function nameOf(kind: PatternWord): string {
  if (kind === "digit" || kind === "point") return kind;
  return WORDS.find(([, each]) => each === kind)?.[0] ?? kind;
}

function phraseOf(kind: PatternWord): string {
  return kind === "digit" || kind === "point" ? `a ${kind}` : nameOf(kind);
}

function applyWord(draft: Draft, kind: PatternWord, written: string): void {
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
