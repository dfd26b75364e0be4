/**
 * Decodes strings and names that specify characters by code point: `U&'d\0061t\+000061'` and
 * `U&"…"`. An optional UESCAPE replaces the backslash by a different character.
 */

import { closingQuote, stringContinuation } from "./characters.ts";
import type { Fail, TokenRange } from "./literals.ts";

const CLAUSE = /\s*uescape\s*'(?:[^']|'')*'/iy;

/**
 * Returns the offset after the UESCAPE that follows a token ending at `from`, or `from` if there
 * is none.
 */
export function escapeClauseEnd(text: string, from: number): number {
  CLAUSE.lastIndex = from;
  return CLAUSE.test(text) ? CLAUSE.lastIndex : from;
}

/** Decodes a token that begins with U&. */
export function decodeUnicode({ end, start, text }: TokenRange, fail: Fail): string {
  const quote = text.charAt(start + 2);
  const isName = quote === '"';
  let value = "";
  let at = start + 2;
  while (at !== -1 && at < end) {
    const close = isName ? closingDoubleQuote(text, at + 1) : closingQuote(text, at + 1, false);
    value += text.slice(at + 1, close).replaceAll(quote + quote, quote);
    const next = isName ? -1 : stringContinuation(text, close + 1);
    if (next === -1 || next >= end || isInClause(text, close + 1, next)) {
      at = close + 1;
      break;
    }
    at = next;
  }
  const escape = escapeIn(text.slice(at, end), { fail, position: at });
  return unescaped(value, escape, (found) =>
    fail(
      `${isName ? "the name" : "the string"} contains ${found}, but "${escape}" must be ` +
        "followed by 4 hexadecimal digits, or by + and 6 hexadecimal digits",
      start,
    ),
  );
}

function isInClause(text: string, from: number, to: number): boolean {
  return text.slice(from, to).trim() !== "";
}

function closingDoubleQuote(text: string, from: number): number {
  let end = text.indexOf('"', from);
  while (text.charAt(end + 1) === '"') end = text.indexOf('"', end + 2);
  return end;
}

// Returns the escape character. A character that could be part of a number or end the string is
// not allowed.
function escapeIn(clause: string, { fail, position }: { fail: Fail; position: number }): string {
  if (clause === "") return "\\";
  const [, given = ""] = /'((?:[^']|'')*)'$/.exec(clause) ?? [];
  if (Array.from(given).length === 1 && !/[0-9a-fA-F+'"\s]/.test(given)) return given;
  return fail(
    "UESCAPE must be followed by a single character other than a hexadecimal digit, a quote, a " +
      "plus sign or a space",
    position,
  );
}

function unescaped(value: string, escape: string, fail: (found: string) => never): string {
  let made = "";
  let at = 0;
  for (;;) {
    const next = value.indexOf(escape, at);
    if (next === -1) break;
    made += value.slice(at, next);
    const from = next + escape.length;
    if (value.startsWith(escape, from)) {
      made += escape;
      at = from + escape.length;
      continue;
    }
    const [found, long, short] =
      /^(?:\+([0-9a-fA-F]{6})|([0-9a-fA-F]{4}))/.exec(value.slice(from, from + 7)) ?? [];
    const point = Number.parseInt(long ?? short ?? "", 16);
    if (found === undefined || point === 0 || point > 0x10ffff) {
      fail(`"${value.slice(next, from + 7)}"`);
    }
    made += String.fromCodePoint(point);
    at = from + (found ?? "").length;
  }
  made += value.slice(at);
  return made.isWellFormed() ? made : fail("an unpaired surrogate");
}
