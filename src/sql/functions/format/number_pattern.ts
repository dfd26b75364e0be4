/**
 * Parses the number patterns of to_char and to_number: digit positions (`9`, `0`) mixed with a
 * decimal point, signs and literal text.
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
  /** The number of digit positions before the decimal point. */
  readonly wholeCount: number;
  readonly fractionCount: number;
  /** The number of digit positions after V. The number is multiplied by this power of ten. */
  readonly shift: number;
  readonly isTight: boolean;
  readonly hasBrackets: boolean;
  readonly isScientific: boolean;
  readonly roman: "RN" | "rn" | undefined;
}

/** Parses a number pattern. Recent patterns are cached. @throws {DatabaseError} INVALID_VALUE */
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

/** For each kind of pattern element, the elements that may not precede it, as in PostgreSQL. */
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

interface PendingPattern {
  /** The kinds of elements that have occurred in the pattern so far. */
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
  const pending: PendingPattern = {
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
  while (at < pattern.length) at = readPiece(pending, pattern, at);
  return pending;
}

function readPiece(pending: PendingPattern, pattern: string, at: number): number {
  const character = pattern[at] ?? "";
  if (character === "9" || character === "0") {
    use(pending, "digit", pattern);
    pending.pieces.push({ kind: "digit", isZero: character === "0" });
    if (pending.isAfterPoint) pending.fractionCount += 1;
    else pending.wholeCount += 1;
    if (pending.isAfterShift) pending.shift += 1;
    return at + 1;
  }
  const rest = pattern.slice(at, at + 4).toUpperCase();
  const found = WORDS.find(([word]) => rest.startsWith(word));
  if (found !== undefined) {
    use(pending, found[1], pattern);
    applyWord(pending, found[1], pattern.slice(at, at + found[0].length));
    return at + found[0].length;
  }
  const { end, text } = plainText(pattern, at);
  pending.pieces.push({ kind: "text", text });
  return end;
}

/**
 * Records that a pattern contains an element such as MI or PR.
 *
 * @throws {DatabaseError} INVALID_VALUE if an earlier element excludes it.
 */
function use({ used }: PendingPattern, kind: PatternWord, pattern: string): void {
  const isAfterExponent = used.has("EEEE") && kind !== "text";
  const excluding = isAfterExponent
    ? "EEEE"
    : EXCLUDED.get(kind)?.find((earlier) => used.has(earlier));
  used.add(kind);
  if (excluding === undefined) return;
  const what =
    excluding === kind
      ? `the pattern has more than one ${nameOf(kind)}`
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

function applyWord(pending: PendingPattern, kind: PatternWord, written: string): void {
  switch (kind) {
    case "FM":
      pending.isTight = true;
      return;
    case "PR":
      pending.hasBrackets = true;
      return;
    case "EEEE":
      pending.isScientific = true;
      return;
    case "RN":
      pending.roman = written === "rn" ? "rn" : "RN";
      return;
    case "V":
      pending.isAfterShift = true;
      return;
    case "ordinal":
      pending.pieces.push({ kind, isUpper: written === "TH" });
      return;
    case "point":
      pending.isAfterPoint = true;
      pending.pieces.push({ kind });
      return;
    case "digit":
    case "text":
      return;
    default:
      pending.pieces.push({ kind });
  }
}
