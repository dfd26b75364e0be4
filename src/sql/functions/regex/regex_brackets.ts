/** Parses the bracket expressions (`[^a-z[:digit:]\s]`) and escapes of regular expressions. */
import type { DatabaseError } from "../../../base/errors.ts";
import {
  type CharacterSet,
  invertedSet,
  setOfCharacter,
  setOfClass,
  setOfRanges,
} from "./regex_sets.ts";

type Malformed = (what: string) => DatabaseError;

export interface BracketExpression {
  /** The distinct characters, ranges and classes of the bracket expression. */
  readonly sets: readonly CharacterSet[];
  readonly isInverted: boolean;
  /** The position in the pattern after the bracket expression. */
  readonly end: number;
}

interface BracketItem {
  /**
   * The code point of a bracket item that is a single character, which may begin a range;
   * undefined for any other item.
   */
  readonly code: number | undefined;
  readonly set: CharacterSet;
  readonly end: number;
}

/**
 * Parses the bracket expression that begins at `open`. Its items are returned as separate sets.
 */
export function readBracket(
  pattern: string,
  open: number,
  malformed: Malformed,
): BracketExpression {
  const isInverted = pattern[open + 1] === "^";
  const first = isInverted ? open + 2 : open + 1;
  const sets: CharacterSet[] = [];
  let at = first;
  while (pattern[at] !== "]" || at === first) {
    if (at >= pattern.length) throw malformed("a bracket expression is not closed");
    const item = readItem(pattern, at, malformed);
    at = item.end;
    const isRange = pattern[at] === "-" && pattern[at + 1] !== "]" && item.code !== undefined;
    if (!isRange) {
      sets.push(item.set);
      continue;
    }
    if (at + 1 >= pattern.length) throw malformed("a bracket expression is not closed");
    const last = readItem(pattern, at + 1, malformed);
    if (item.code === undefined || last.code === undefined || last.code < item.code) {
      throw malformed("the end of a range in brackets comes before its start");
    }
    sets.push(setOfRanges([[item.code, last.code]]));
    at = last.end;
  }
  return { sets: Array.from(new Set(sets)), isInverted, end: at + 1 };
}

function readItem(pattern: string, at: number, malformed: Malformed): BracketItem {
  const opening = pattern.slice(at, at + 2);
  if (opening === "[:" || opening === "[." || opening === "[=") {
    return readNamed(pattern, at, malformed);
  }
  if (pattern[at] === "\\") {
    const letter = pattern[at + 1] ?? "";
    const set = classOfEscape(letter);
    if (set !== undefined) return { code: undefined, set, end: at + 2 };
    const { code, end } = readCharacterEscape(pattern, at, malformed);
    return { code, set: setOfCharacter(code), end };
  }
  const code = pattern.codePointAt(at) ?? 0;
  return { code, set: setOfCharacter(code), end: at + String.fromCodePoint(code).length };
}

/** Parses a named item within brackets: `[:alpha:]`, `[.a.]` or `[=a=]`. */
function readNamed(pattern: string, at: number, malformed: Malformed): BracketItem {
  const mark = pattern[at + 1] ?? "";
  const close = pattern.indexOf(`${mark}]`, at + 2);
  if (close === -1) throw malformed("a bracket expression is not closed");
  const name = pattern.slice(at + 2, close);
  if (mark === ":") {
    const set = setOfClass(name);
    if (set === undefined || name === "")
      throw malformed(`the character class [:${name}:] does not exist`);
    return { code: undefined, set, end: close + 2 };
  }
  const code = name.codePointAt(0);
  if (code === undefined || String.fromCodePoint(code) !== name) {
    throw malformed("a collating element must be a single character");
  }
  return { code, set: setOfCharacter(code), end: close + 2 };
}

/** Returns the character set of `\d`, `\w`, `\s` or one of their complements. */
export function classOfEscape(letter: string): CharacterSet | undefined {
  const name = { d: "digit", w: "word", s: "space" }[letter.toLowerCase()];
  const set = name === undefined ? undefined : setOfClass(name);
  return set === undefined || letter === letter.toLowerCase() ? set : invertedSet(set);
}

const CONTROLS: ReadonlyMap<string, number> = new Map([
  ["a", 7],
  ["b", 8],
  ["B", 92],
  ["e", 27],
  ["f", 12],
  ["n", 10],
  ["r", 13],
  ["t", 9],
  ["v", 11],
  ["0", 0],
]);

/** Parses the escape of a single character. Its backslash is at position `at`. */
export function readCharacterEscape(
  pattern: string,
  at: number,
  malformed: Malformed,
): { code: number; end: number } {
  const letter = String.fromCodePoint(pattern.codePointAt(at + 1) ?? 0);
  const control = CONTROLS.get(letter);
  if (control !== undefined) return { code: control, end: at + 2 };
  if (letter === "x") return readHexEscape(pattern, at + 2, malformed);
  const length = { u: 4, U: 8 }[letter];
  if (length !== undefined) {
    const hex = pattern.slice(at + 2, at + 2 + length);
    const code = Number.parseInt(hex, 16);
    const isValid = hex.length === length && /^[0-9a-f]+$/i.test(hex) && code <= 0x10ffff;
    if (!isValid)
      throw malformed(
        `\\${letter} must be followed by ${length} hexadecimal digits of a character's code`,
      );
    return { code, end: at + 2 + length };
  }
  if (letter === "\u0000" || /[0-9A-Za-z]/.test(letter)) {
    throw malformed(`the escape \\${letter} does not exist`);
  }
  return { code: letter.codePointAt(0) ?? 0, end: at + 1 + letter.length };
}

/** Reads all hexadecimal digits that follow `\x`. */
function readHexEscape(
  pattern: string,
  at: number,
  malformed: Malformed,
): { code: number; end: number } {
  const digits = /[0-9a-f]*/iy;
  digits.lastIndex = at;
  const [hex = ""] = digits.exec(pattern) ?? [];
  const code = Number.parseInt(hex, 16);
  if (code <= 0x10ffff) return { code, end: at + hex.length };
  throw malformed(String.raw`\x must be followed by the hexadecimal digits of a character's code`);
}
