/**
 * LIKE and ILIKE: `%` is any run of characters, `_` one character, the escape makes the next
 * character plain.
 *
 * A pattern becomes pieces between `%`; the first and last are anchored, those between are found
 * from left to right. Leftmost finds are enough, so nothing is tried twice but the text under one
 * piece: time is text × piece at worst.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";

/** One character of a pattern; undefined is `_`. */
type Piece = readonly (string | undefined)[];

export interface LikeOptions {
  /** One character, or "" for none. */
  readonly escape: string;
  readonly ignoreCase: boolean;
}

/**
 * Compiles a pattern to a test of the whole text.
 *
 * @throws {DatabaseError} INVALID_VALUE if the pattern ends in a lone escape.
 */
export function compileLike(
  pattern: string,
  { escape, ignoreCase }: LikeOptions,
): (text: string) => boolean {
  const pieces = piecesOf(ignoreCase ? pattern.toLowerCase() : pattern, escape);
  const test = testOf(pieces);
  return ignoreCase ? (text) => test(text.toLowerCase()) : test;
}

/** @throws {DatabaseError} INVALID_VALUE unless the text is empty or a single character. */
export function checkedEscape(escape: string): string {
  if (Array.from(escape).length <= 1) return escape;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot use the text as ESCAPE: it must be empty or one character",
  );
}

/** The pieces between `%` of a pattern without `_`; undefined for one that has it or is faulty. */
export function plainPieces(pattern: string, escape: string): readonly string[] | undefined {
  if (pattern.includes(escape) && escape !== "") return undefined;
  const pieces = piecesOf(pattern, escape);
  if (pieces.some((piece) => piece.includes(undefined))) return undefined;
  return pieces.map((piece) => piece.join(""));
}

/**
 * Between which texts all lie, in the order of their code points, that a pattern matches; both
 * bounds are inclusive, and undefined where there is none.
 */
export function spanOfLike(pattern: string): {
  min?: string | undefined;
  max?: string | undefined;
} {
  if (pattern.includes("\\") || !pattern.isWellFormed()) return {};
  const [beginning = ""] = pattern.split(/[%_]/, 1);
  if (beginning === pattern) return { min: pattern, max: pattern };
  return beginning === "" ? {} : { min: beginning, max: textAfter(beginning) };
}

/** The least text above all that begin with a text; undefined where there is none. */
function textAfter(beginning: string): string | undefined {
  const characters = Array.from(beginning);
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    // Surrogates are no characters.
    const above = next === 0xd800 ? 0xe000 : next;
    if (above <= 0x10ffff) return characters.join("") + String.fromCodePoint(above);
  }
  return undefined;
}

function piecesOf(pattern: string, escape: string): Piece[] {
  const pieces: Piece[] = [];
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

function testOf(pieces: readonly Piece[]): (text: string) => boolean {
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

/** Without `_` the engine's own search does the work. */
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

function matchesAt(characters: readonly string[], at: number, piece: Piece): boolean {
  if (at + piece.length > characters.length) return false;
  for (let i = 0; i < piece.length; i += 1) {
    const wanted = piece[i];
    if (wanted !== undefined && wanted !== characters[at + i]) return false;
  }
  return true;
}
