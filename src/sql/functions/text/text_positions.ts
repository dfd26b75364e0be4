/**
 * Defines the functions that measure, search and shorten text. Positions are counted in code
 * points from 1.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BYTES,
  codePointLength,
  INT,
  sliceCodePoints,
  TEXT,
  textFromValue,
  type Value,
  type Vector,
} from "../../../types/mod.ts";
import { overlayBytes } from "../base/byte_edits.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { Overload, ScalarFunction } from "../base/function.ts";
import { remembering } from "../base/remembering.ts";
import { checkedEscape } from "../regex/like.ts";
import { compileRegex, type Regex } from "../regex/regex.ts";
import { regexFromSimilar } from "../regex/similar.ts";
import { VECTOR_LENGTH } from "../search/search_functions.ts";
import { quoteIdentifier, quoteLiteral } from "./text_format.ts";
import { lengthsOf, slicesOf } from "./text_loops.ts";

/** Returns the position of the first occurrence of a string, or 0 if there is none. */
export function positionOf(needle: string, haystack: string): number {
  const at = haystack.indexOf(needle);
  return at < 0 ? 0 : codePointLength(haystack.slice(0, at)) + 1;
}

/**
 * Returns the start and end, counted from 0, of the `count` positions that begin at `from`. If
 * `count` is undefined, the range extends to the end of the text.
 */
function rangeOf(from: number, count: number | undefined): { start: number; end: number } {
  if (count !== undefined && count < 0) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot take ${count} characters: the number must not be negative`,
    );
  }
  const start = from - 1;
  return { start, end: count === undefined ? Number.MAX_SAFE_INTEGER : start + count };
}

export function substring([text = null, from = null, count]: readonly Value[]): string {
  const { start, end } = rangeOf(from as number, count as number | undefined);
  return sliceCodePoints(text as string, start, end);
}

function substringsOf(
  vector: Vector,
  values: readonly Value[],
  position: number,
): Vector | undefined {
  const [, from = null, count] = values;
  if (position !== 0 || typeof from !== "number") return undefined;
  if (count === undefined) return slicesOf(vector, rangeOf(from, undefined));
  // A negative count is an error only if there is a row for which to raise it, so the row-by-row
  // evaluation handles it.
  return typeof count === "number" && count >= 0
    ? slicesOf(vector, rangeOf(from, count))
    : undefined;
}

const patternOf = remembering((pattern) => compileRegex(pattern, ""));

/**
 * Returns the text of the first group in the first match, or the whole match if the pattern has no
 * group.
 */
function substringOfPattern([text = null, pattern = null]: readonly Value[]): Value {
  return foundPart(text as string, patternOf(pattern as string));
}

/**
 * Compiles SIMILAR TO patterns, and caches them by a key: the escape character, if any, a NUL, and
 * the pattern.
 */
const similarOf = remembering((key) => {
  const end = key.indexOf("\u0000");
  const regex = regexFromSimilar(key.slice(end + 1), checkedEscape(key.slice(0, end)));
  return compileRegex(regex, "");
});

/** Returns the text that the middle part of a SIMILAR TO pattern matches. */
function substringOfSimilar([text = null, pattern = null, escape = null]: readonly Value[]): Value {
  return foundPart(text as string, similarOf(`${escape as string}\u0000${pattern as string}`));
}

function foundPart(text: string, regex: Regex): Value {
  const match = regex.exec(text, 0);
  if (match === undefined) return null;
  const slot = regex.groupCount > 0 ? 2 : 0;
  const start = match[slot] ?? -1;
  return start < 0 ? null : text.slice(start, match[slot + 1]);
}

export function overlay([
  text = null,
  placing = null,
  from = null,
  count,
]: readonly Value[]): string {
  const source = text as string;
  const replacement = placing as string;
  const start = from as number;
  if (start < 1) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot overlay the text: the position must be 1 or more",
    );
  }
  const replaced = count === undefined ? codePointLength(replacement) : (count as number);
  const rest = sliceCodePoints(source, start - 1 + replaced, Number.MAX_SAFE_INTEGER);
  return sliceCodePoints(source, 0, start - 1) + replacement + rest;
}

function byteLength(value: Value): number {
  return typeof value === "string" ? Buffer.byteLength(value) : (value as Uint8Array).length;
}

/** The overloads of substring that take a position and, in some, a length. */
const SUBSTRINGS: readonly Overload[] = [
  overload([TEXT, INT, INT], TEXT, substring, {
    optionalCount: 1,
    evaluateVector: substringsOf,
  }),
  overload(
    [BYTES, INT, INT],
    BYTES,
    ([bytes = null, from = null, count]) => {
      const { start, end } = rangeOf(from as number, count as number | undefined);
      return (bytes as Uint8Array).slice(Math.max(0, start), Math.max(0, end));
    },
    { optionalCount: 1 },
  ),
];

const LENGTHS: readonly Overload[] = [
  overload([TEXT], INT, ([text = null]) => codePointLength(text as string), {
    evaluateVector: lengthsOf,
  }),
  overload([BYTES], INT, ([bytes = null]) => byteLength(bytes)),
];

export const TEXT_POSITION_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["length"], ...LENGTHS, VECTOR_LENGTH),
  ...functionsNamed(["char_length", "character_length"], ...LENGTHS),
  ...functionsNamed(
    ["octet_length"],
    overload([TEXT], INT, ([value = null]) => byteLength(value)),
    overload([BYTES], INT, ([value = null]) => byteLength(value)),
  ),
  ...functionsNamed(
    ["bit_length"],
    overload([TEXT], INT, ([value = null]) => 8 * byteLength(value)),
    overload([BYTES], INT, ([value = null]) => 8 * byteLength(value)),
  ),
  ...functionsNamed(["substr"], ...SUBSTRINGS),
  ...functionsNamed(
    ["substring"],
    ...SUBSTRINGS,
    overload([TEXT, TEXT], TEXT, substringOfPattern),
    overload([TEXT, TEXT, TEXT], TEXT, substringOfSimilar),
  ),
  ...functionsNamed(
    ["position"],
    overload([TEXT, TEXT], INT, ([needle = null, haystack = null]) =>
      positionOf(needle as string, haystack as string),
    ),
  ),
  ...functionsNamed(
    ["strpos"],
    overload([TEXT, TEXT], INT, ([haystack = null, needle = null]) =>
      positionOf(needle as string, haystack as string),
    ),
  ),
  ...functionsNamed(
    ["overlay"],
    overload([TEXT, TEXT, INT, INT], TEXT, overlay, { optionalCount: 1 }),
    overload(
      [BYTES, BYTES, INT, INT],
      BYTES,
      ([bytes = null, placed = null, from = null, count]) =>
        overlayBytes(bytes as Uint8Array, placed as Uint8Array, {
          from: from as number,
          count: count as number | undefined,
        }),
      { optionalCount: 1 },
    ),
  ),
  ...functionsNamed(
    ["quote_ident"],
    overload([TEXT], TEXT, ([text = null]) => quoteIdentifier(text as string)),
  ),
  ...functionsNamed(
    ["quote_literal"],
    overload(["any"], TEXT, ([value = null], _, [type = TEXT]) =>
      quoteLiteral(textFromValue(type, value)),
    ),
  ),
  ...functionsNamed(
    ["quote_nullable"],
    overload(
      ["any"],
      TEXT,
      ([value = null], _, [type = TEXT]) =>
        value === null ? "NULL" : quoteLiteral(textFromValue(type, value)),
      { seesNull: true },
    ),
  ),
];
