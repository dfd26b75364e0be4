/**
 * Explains why text is not valid JSON: where the error is, which character is there and, for
 * common mistakes, how to correct it. This code runs only after JSON.parse has refused the text.
 */
import { JSON_COMMAS_MAX, JSON_PARTS_MAX, NESTING_MAX } from "../../base/limits.ts";
import { checkJson, MalformedJson } from "../../types/mod.ts";
import { isTooIntricate } from "./request_body.ts";

/** Matches SQL statements sent as plain text instead of JSON. */
const SQL_TEXT =
  /^\s*(?:select|insert|update|delete|create|drop|alter|with|show|explain|begin|values|merge|copy|set)\b/i;

const FORM_TEXT = /^[\w.%+-]+=/;

/** Characters that editors and web pages put in place of straight quotes. */
const CURLY_QUOTES = "“”„‘’";

/**
 * The maximum number of characters searched for the error. The search blocks the event loop, and
 * would take more than a second for a body of 8 MB.
 */
const SEARCHED_MAX = 256 * 1024;

/**
 * The maximum length of a literal or escape that may be cut off at the end of truncated text. Such
 * a token is not reported as the error.
 */
const BROKEN_MAX = 16;

/** Returns a clause that completes a message of the form "Cannot read …: ". */
export function jsonFault(text: string): string {
  if (text.trim() === "") return "it is empty, but must be JSON";
  const isCut = text.length > SEARCHED_MAX;
  const found = faultOffset(isCut ? text.slice(0, SEARCHED_MAX) : text);
  const isAtCut = isCut && found !== undefined && found > SEARCHED_MAX - BROKEN_MAX;
  if (isAtCut && !isTooIntricate(text)) {
    return `it is not valid JSON: the error comes after its first ${SEARCHED_MAX} characters`;
  }
  const at = isAtCut ? undefined : found;
  if (at === undefined) {
    return (
      `its JSON is nested more than ${NESTING_MAX} levels deep, or has more than ` +
      `${JSON_PARTS_MAX} parts or ${JSON_COMMAS_MAX} commas`
    );
  }
  const slip = slipAt(text, at);
  return `it is not valid JSON: ${foundAt(text, at)}${slip === undefined ? "" : `; ${slip}`}`;
}

/**
 * Returns the offset of the error. Returns undefined if the text is well-formed, or too deeply
 * nested to check.
 */
function faultOffset(text: string): number | undefined {
  try {
    checkJson(text);
    return undefined;
  } catch (error) {
    if (error instanceof MalformedJson) return error.at;
    // The caller reports excessive nesting itself.
    return undefined;
  }
}

function foundAt(text: string, at: number): string {
  const place = placeOf(text, at);
  const code = text.codePointAt(at);
  if (code === undefined) return `it ends too early, at ${place}`;
  return `unexpected ${named(code)} at ${place}`;
}

/**
 * Returns the line and the column, both counted from 1. Each character counts as one column, even
 * if it takes two UTF-16 code units.
 */
function placeOf(text: string, at: number): string {
  let line = 1;
  let column = 1;
  for (let offset = 0; offset < at; offset += 1) {
    const code = text.charCodeAt(offset);
    if (code === 0x0a) {
      line += 1;
      column = 1;
    } else if (code < 0xdc00 || code > 0xdfff) {
      column += 1;
    }
  }
  return `line ${line}, column ${column}`;
}

function named(code: number): string {
  if (code === 0x0a || code === 0x0d) return "line break";
  if (code === 0x09) return "tab";
  if (code < 0x20 || code === 0x7f) return `control character U+${hex(code)}`;
  return `character ${code === 0x22 ? "'\"'" : `"${String.fromCodePoint(code)}"`}`;
}

function hex(code: number): string {
  return code.toString(16).toUpperCase().padStart(4, "0");
}

/** Returns how to correct a common mistake at `at`; undefined if the error is not a common one. */
function slipAt(text: string, at: number): string | undefined {
  const found = text[at];
  if (at === text.search(/\S/)) {
    if (SQL_TEXT.test(text)) return 'send a statement as {"sql": "SELECT …"}';
    if (FORM_TEXT.test(text))
      return "the body looks like a web form, but forms are not accepted here";
  }
  if (found === undefined) return undefined;
  if (found === "\n" || found === "\r" || found === "\t") {
    return "in a string, write a line break as \\n and a tab as \\t";
  }
  if (found === "'" || found === "`" || CURLY_QUOTES.includes(found)) {
    return 'put names and strings in straight double quotes (")';
  }
  const before = text.slice(Math.max(0, at - 200), at).trimEnd();
  if ((found === "}" || found === "]") && before.endsWith(",")) {
    return `remove the comma before ${found}`;
  }
  if (/[A-Za-z_$]/.test(found) && /[{,]$/.test(before)) {
    return "put member names in double quotes";
  }
  if (isWhole(text.slice(0, at))) {
    return "a request must contain a single JSON value, but there is more text after it";
  }
  return undefined;
}

function isWhole(text: string): boolean {
  return faultOffset(text) === undefined;
}
