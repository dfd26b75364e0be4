/**
 * Decodes tokens into values: strings, numbers and bytes. Numbers keep their exact text; only the
 * `value` of a number node is rounded.
 */
import { closingQuote, stringContinuation } from "./characters.ts";
import { decodeUnicode } from "./unicode_escapes.ts";

const BACKSLASH = 92;

/**
 * The maximum number of digits of an integer with a radix prefix. No SQL number has more digits,
 * and decoding a million would take seconds.
 */
const RADIX_DIGITS_MAX = 1024;

/**
 * Throws INVALID_SQL. The parser supplies this function, because it knows the statement to which a
 * position belongs.
 */
export type Fail = (what: string, position: number) => never;

/** The range of a token in a text. */
export interface TokenRange {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** Decodes a string token of any form. */
export function decodeString({ text, start, end }: TokenRange, fail: Fail): string {
  const first = text.charAt(start);
  if (first === "$") {
    const tag = text.indexOf("$", start + 1) + 1 - start;
    return text.slice(start + tag, end - tag);
  }
  if (text.charAt(start + 1) === "&") return decodeUnicode({ text, start, end }, fail);
  if (first !== "'") return decodeEscapes({ text, start: start + 2, end: end - 1 }, fail);
  let value = "";
  for (let open = start; open !== -1 && open < end; ) {
    const close = closingQuote(text, open + 1, false);
    value += text.slice(open + 1, close).replaceAll("''", "'");
    open = stringContinuation(text, close + 1);
  }
  return value;
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

// Decodes the body of E'…'. It may contain C escapes, \uXXXX, and bytes (\x41, \101), which
// together must form valid characters.
function decodeEscapes({ text, start, end }: TokenRange, fail: Fail): string {
  const failEscape = (position: number, found: string, expected: string): never =>
    fail(`the string contains ${found}, but expected ${expected}`, position);
  let value = "";
  let at = start;
  while (at < end) {
    const code = text.charCodeAt(at);
    if (code !== BACKSLASH) {
      value += text.charAt(at);
      // A quote in the body is always doubled, because a single one would end the string.
      at += code === 39 ? 2 : 1;
      continue;
    }
    const rest = text.slice(at + 1, Math.min(end, at + 10));
    const numeric =
      /^(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{1,2})|([0-7]{1,3}))/.exec(rest);
    if (numeric === null) {
      if (/^[uU]/.test(rest)) failEscape(at, `\\${rest}`, "4 (\\u) or 8 (\\U) hexadecimal digits");
      value += SIMPLE_ESCAPES[rest.charAt(0)] ?? rest.charAt(0);
      at += 2;
      continue;
    }
    const [found, short, long, hex, octal] = numeric;
    const point = Number.parseInt(
      short ?? long ?? hex ?? octal ?? "",
      octal === undefined ? 16 : 8,
    );
    const isByte = hex !== undefined || octal !== undefined;
    if (point === 0) failEscape(at, `\\${found}`, "a character other than NUL");
    if (isByte && point > 127)
      failEscape(at, `\\${found}`, "an ASCII byte, or \\u and 4 hexadecimal digits");
    if (point > 0x10ffff) failEscape(at, `\\${found}`, "a Unicode character");
    value += String.fromCodePoint(point);
    at += 1 + found.length;
  }
  if (!value.isWellFormed())
    failEscape(start, "an unpaired surrogate", "both halves of a surrogate pair");
  return value;
}

/**
 * Returns the decimal text of an integer token at `position`, without `_` and without a radix
 * prefix.
 */
export function integerText(source: string, position: number, fail: Fail): string {
  const second = source.charCodeAt(1) | 32;
  if (second === 120 || second === 111 || second === 98) {
    const plain = source.replaceAll("_", "").toLowerCase();
    if (plain.slice(2).replace(/^0+/, "").length > RADIX_DIGITS_MAX) {
      fail(`the number is too large: it has ${plain.length - 2} digits`, position);
    }
    return BigInt(plain).toString();
  }
  return source.includes("_") ? source.replaceAll("_", "") : source;
}

/** Returns the text of a numeric token without `_`. */
export function numericText(source: string): string {
  return source.includes("_") ? source.replaceAll("_", "") : source;
}

/** Returns the digits of B'…'. */
export function bitDigits(source: string, position: number, fail: Fail): string {
  const bits = source.slice(2, -1);
  if (/[^01]/.test(bits)) fail("B'…' may contain only the digits 0 and 1", position);
  return bits;
}

/** Returns the hex digits of X'…' in lower case. */
export function bytesHex(source: string, position: number, fail: Fail): string {
  const hex = source.slice(2, -1);
  if (hex.length % 2 !== 0 || /[^0-9a-fA-F]/.test(hex)) {
    fail("X'…' may contain only pairs of hexadecimal digits", position);
  }
  return hex.toLowerCase();
}
