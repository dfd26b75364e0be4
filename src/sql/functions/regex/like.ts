/**
 * Implements LIKE and ILIKE: `%` matches any sequence of characters, and `_` matches a single
 * character. The escape character makes the next character literal.
 *
 * A pattern is split into segments at `%`. The first and last segments are anchored; the segments
 * between them are found from left to right. Since the leftmost match of each segment is enough,
 * backtracking never goes back further than the length of one segment. The worst-case time is text
 * length × segment length.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";

/** The characters of a pattern segment between two `%` signs; undefined represents `_`. */
type LikePiece = readonly (string | undefined)[];

export interface LikeOptions {
  /** The escape character of a LIKE pattern; "" if there is none. */
  readonly escape: string;
  readonly ignoreCase: boolean;
}

/**
 * Compiles a pattern into a function that tests whether it matches a whole text.
 *
 * @throws {DatabaseError} INVALID_VALUE if the pattern ends in a lone escape character.
 */
export function compileLike(
  pattern: string,
  { escape, ignoreCase }: LikeOptions,
): (text: string) => boolean {
  const pieces = piecesOf(ignoreCase ? pattern.toLowerCase() : pattern, escape);
  const test = testOf(pieces);
  return ignoreCase ? (text) => test(text.toLowerCase()) : test;
}

/**
 * Requires that an escape is empty or a single character, and returns it.
 * @throws {DatabaseError} INVALID_VALUE
 */
export function checkedEscape(escape: string): string {
  if (Array.from(escape).length <= 1) return escape;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot use this ESCAPE string: it must be empty or a single character",
  );
}

/**
 * Returns the segments of a pattern between its `%` signs, or undefined if the pattern contains
 * `_` or is invalid.
 */
export function plainPieces(pattern: string, escape: string): readonly string[] | undefined {
  if (pattern.includes(escape) && escape !== "") return undefined;
  const pieces = piecesOf(pattern, escape);
  if (pieces.some((piece) => piece.includes(undefined))) return undefined;
  return pieces.map((piece) => piece.join(""));
}

/**
 * Returns the runs of literal characters between the wildcards of a pattern, including empty runs.
 * The first run must match at the start of the text, and the last run at its end.
 *
 * @throws {DatabaseError} INVALID_VALUE if the pattern ends in a lone escape character.
 */
export function literalRuns(pattern: string): string[] {
  const runs = [""];
  for (const [at, piece] of piecesOf(pattern, "\\").entries()) {
    if (at > 0) runs.push("");
    for (const character of piece) {
      if (character === undefined) runs.push("");
      else runs.push(`${runs.pop() ?? ""}${character}`);
    }
  }
  return runs;
}

/**
 * Returns lower and upper bounds, both inclusive and in code point order, of all strings that a
 * pattern can match. A missing bound is undefined.
 */
export function spanOfLike(pattern: string): {
  min?: string | undefined;
  max?: string | undefined;
} {
  if (!pattern.isWellFormed()) return {};
  // The characters up to the first wildcard. A backslash makes the next character literal.
  const [escaped = ""] = /^(?:[^%_\\]|\\.)*/su.exec(pattern) ?? [];
  const beginning = escaped.replaceAll(/\\(.)/gsu, "$1");
  if (escaped === pattern) return { min: beginning, max: beginning };
  return spanOfBeginning(beginning);
}

/** Returns bounds for all strings that begin with a given prefix, like {@linkcode spanOfLike}. */
export function spanOfBeginning(beginning: string): {
  min?: string | undefined;
  max?: string | undefined;
} {
  if (beginning === "" || !beginning.isWellFormed()) return {};
  return { min: beginning, max: textAfter(beginning) };
}

/**
 * Returns the smallest string that is greater than every string with the given prefix; undefined
 * if there is no such string.
 */
function textAfter(beginning: string): string | undefined {
  const characters = Array.from(beginning);
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    // Surrogate code points are not characters, so they are skipped.
    const above = next === 0xd800 ? 0xe000 : next;
    if (above <= 0x10ffff) return characters.join("") + String.fromCodePoint(above);
  }
  return undefined;
}

function piecesOf(pattern: string, escape: string): LikePiece[] {
  const pieces: LikePiece[] = [];
  let piece: (string | undefined)[] = [];
  let isEscaped = false;
  for (const character of pattern) {
    if (isEscaped) {
      piece.push(character);
      isEscaped = false;
    } else if (character === escape) {
      isEscaped = true;
    } else if (character === "%") {
      pieces.push(piece);
      piece = [];
    } else {
      piece.push(character === "_" ? undefined : character);
    }
  }
  if (isEscaped) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot match ${excerpt(pattern)}: a LIKE pattern must not end with its escape character`,
    );
  }
  pieces.push(piece);
  return pieces;
}

function testOf(pieces: readonly LikePiece[]): (text: string) => boolean {
  if (pieces.every((piece) => !piece.includes(undefined))) {
    return plainTest(pieces.map((piece) => piece.join("")));
  }
  const [first = [], ...rest] = pieces;
  const last = rest.pop();
  return (text) => {
    const characters = Array.from(text);
    if (!matchesAt(characters, 0, first)) return false;
    if (last === undefined) return characters.length === first.length;
    const end = characters.length - last.length;
    let at = first.length;
    for (const piece of rest) {
      while (at + piece.length <= end && !matchesAt(characters, at, piece)) at += 1;
      if (at + piece.length > end) return false;
      at += piece.length;
    }
    return at <= end && matchesAt(characters, end, last);
  };
}

/** Returns a test for a pattern without `_`, which uses the runtime's own string search. */
function plainTest(pieces: readonly string[]): (text: string) => boolean {
  const [first = "", ...rest] = pieces;
  const last = rest.pop();
  if (last === undefined) return (text) => text === first;
  if (rest.length === 0 && first === "") return (text) => text.endsWith(last);
  return (text) => {
    const end = text.length - last.length;
    if (!text.startsWith(first) || end < first.length || !text.endsWith(last)) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = text.indexOf(piece, at);
      if (found === -1 || found + piece.length > end) return false;
      at = found + piece.length;
    }
    return true;
  };
}

function matchesAt(characters: readonly string[], at: number, piece: LikePiece): boolean {
  if (at + piece.length > characters.length) return false;
  for (let i = 0; i < piece.length; i += 1) {
    const wanted = piece[i];
    if (wanted !== undefined && wanted !== characters[at + i]) return false;
  }
  return true;
}
