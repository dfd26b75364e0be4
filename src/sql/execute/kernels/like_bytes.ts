/**
 * Evaluates LIKE on undecoded text. The literal parts of the pattern are searched for as UTF-8
 * bytes, which is correct because no character begins inside another. The first literal part
 * without a fixed position is searched for in all rows at once, so that rows that do not contain
 * it cost almost nothing.
 */
import type { Vector } from "../../../types/mod.ts";
import { plainPieces } from "../../functions/regex/like.ts";

type Utf8 = Extract<Vector, { kind: "utf8" }>;

/**
 * Tests undecoded text against a pattern without `_` and without escapes.
 *
 * @param vectors The text, the pattern and, if given, the escape character.
 * @returns Undefined if the text has to be tested in another way.
 */
export function testLike(
  [text, pattern, escape]: readonly Vector[],
  { isNegated }: { readonly isNegated: boolean },
): Vector | undefined {
  if (text?.kind !== "utf8" || pattern?.kind !== "const") return undefined;
  if (typeof pattern.value !== "string") return undefined;
  if (escape !== undefined && escape.kind !== "const") return undefined;
  const escapeText = escape === undefined ? "\\" : escape.value;
  if (typeof escapeText !== "string" || escapeText.length > 1) return undefined;
  const pieces = plainPieces(pattern.value, escapeText);
  // Lone surrogates cannot be encoded as UTF-8.
  if (pieces === undefined || !pattern.value.isWellFormed()) return undefined;
  const values = new Uint8Array(text.length);
  matchRows(
    text,
    pieces.map((piece) => Buffer.from(piece)),
    values,
  );
  if (isNegated)
    for (let row = 0; row < values.length; row += 1) values[row] = 1 - (values[row] ?? 0);
  return { kind: "bool", length: text.length, values, nulls: text.nulls };
}

function matchRows(
  { bytes, length, offsets }: Utf8,
  pieces: readonly Buffer[],
  into: Uint8Array,
): void {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [prefix = NOTHING, ...rest] = pieces;
  const suffix = rest.pop();
  const middle = rest.filter((piece) => piece.length > 0);
  const [first] = middle;
  /**
   * The next occurrence of the pattern's first literal part, in the current row or a later row.
   */
  let next = first === undefined ? -1 : all.indexOf(first, offsets[0] ?? 0);
  for (let row = 0; row < length; row += 1) {
    const start = offsets[row] ?? 0;
    const end = offsets[row + 1] ?? start;
    if (first !== undefined) {
      if (next !== -1 && next < start) next = all.indexOf(first, start);
      if (next === -1 || next + first.length > end) continue;
    }
    into[row] = isMatch(all, { start, end, prefix, middle, suffix }) ? 1 : 0;
  }
}

const NOTHING = Buffer.alloc(0);

interface LikeRow {
  readonly start: number;
  readonly end: number;
  readonly prefix: Buffer;
  readonly middle: readonly Buffer[];
  /**
   * The literal part after the last `%`; undefined for a pattern without `%`, which has only a
   * prefix.
   */
  readonly suffix: Buffer | undefined;
}

function isMatch(all: Buffer, { end, middle, prefix, start, suffix }: LikeRow): boolean {
  if (suffix === undefined) return end - start === prefix.length && isAt(all, start, prefix);
  const last = end - suffix.length;
  let at = start + prefix.length;
  if (at > last || !isAt(all, start, prefix) || !isAt(all, last, suffix)) return false;
  for (const piece of middle) {
    const found = indexWithin(all, piece, { from: at, to: last });
    if (found === -1) return false;
    at = found + piece.length;
  }
  return true;
}

function isAt(all: Buffer, start: number, piece: Buffer): boolean {
  for (let i = 0; i < piece.length; i += 1) if (all[start + i] !== piece[i]) return false;
  return true;
}

/**
 * Returns the first position at which a literal part occurs and ends at or before `to`; -1 if
 * there is none.
 */
function indexWithin(
  all: Buffer,
  piece: Buffer,
  { from, to }: { from: number; to: number },
): number {
  const [head = 0] = piece;
  const last = to - piece.length;
  for (let at = from; at <= last; at += 1) if (all[at] === head && isAt(all, at, piece)) return at;
  return -1;
}
