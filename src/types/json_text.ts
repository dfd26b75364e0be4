/**
 * Handles JSON as text: validates it, and accesses parts of a document without building a tree.
 *
 * A JSON value keeps its text as written, and a JSONB value is canonical text, so both are
 * searched the same way: members and elements are slices of the document. Functions that access a
 * document require valid text, which is checked once, when the value enters ({@linkcode
 * checkJson}).
 */
import { DatabaseError } from "../base/errors.ts";
import { NESTING_MAX } from "../base/limits.ts";
import { excerpt } from "./excerpt.ts";
import { withoutTrailingZeros } from "./trailing_zeros.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const OBJECT_OPEN = 0x7b;
const OBJECT_CLOSE = 0x7d;
const ARRAY_OPEN = 0x5b;
const ARRAY_CLOSE = 0x5d;

export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** A part of a document: the characters from `start` (inclusive) to `end` (exclusive). */
export interface JsonSlice {
  readonly start: number;
  readonly end: number;
}

export interface JsonMember {
  readonly key: string;
  readonly value: JsonSlice;
}

/**
 * Checks that a text is a single JSON value.
 * @throws {DatabaseError} INVALID_VALUE if it is not.
 */
export function checkJson(text: string): void {
  const end = skipSpace(text, checkValue(text, skipSpace(text, 0), 0));
  if (end < text.length) throw malformed(text, end);
}

function skipSpace(text: string, at: number): number {
  let index = at;
  for (;;) {
    const code = text.charCodeAt(index);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return index;
    index += 1;
  }
}

/** The error for text that is not JSON. */
export class MalformedJson extends DatabaseError {
  /**
   * The offset of the first unexpected character; the length of the text if the text ends too
   * early.
   */
  readonly at: number;

  constructor(text: string, at: number) {
    const found =
      at >= text.length ? "it ends too early" : `unexpected character at position ${at}`;
    super("INVALID_VALUE", `Cannot read ${excerpt(text)} as JSON: ${found}`);
    this.at = at;
  }
}

function malformed(text: string, at: number): MalformedJson {
  return new MalformedJson(text, at);
}

function tooDeep(): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot read the JSON value: it is nested more than ${NESTING_MAX} levels deep`,
  );
}

/** Validates the value that begins at `at`, and returns its end. */
function checkValue(text: string, at: number, depth: number): number {
  const code = text.charCodeAt(at);
  switch (code) {
    case QUOTE:
      return checkString(text, at);
    case OBJECT_OPEN:
      return checkObject(text, at, depth + 1);
    case ARRAY_OPEN:
      return checkArray(text, at, depth + 1);
    case 0x74:
      return checkWord(text, at, "true");
    case 0x66:
      return checkWord(text, at, "false");
    case 0x6e:
      return checkWord(text, at, "null");
    default:
      return checkNumber(text, at);
  }
}

function checkObject(text: string, open: number, depth: number): number {
  if (depth > NESTING_MAX) throw tooDeep();
  let at = skipSpace(text, open + 1);
  if (text.charCodeAt(at) === OBJECT_CLOSE) return at + 1;
  for (;;) {
    if (text.charCodeAt(at) !== QUOTE) throw malformed(text, at);
    at = skipSpace(text, checkString(text, at));
    if (text.charCodeAt(at) !== COLON) throw malformed(text, at);
    at = skipSpace(text, checkValue(text, skipSpace(text, at + 1), depth));
    const code = text.charCodeAt(at);
    if (code === OBJECT_CLOSE) return at + 1;
    if (code !== COMMA) throw malformed(text, at);
    at = skipSpace(text, at + 1);
  }
}

function checkArray(text: string, open: number, depth: number): number {
  if (depth > NESTING_MAX) throw tooDeep();
  let at = skipSpace(text, open + 1);
  if (text.charCodeAt(at) === ARRAY_CLOSE) return at + 1;
  for (;;) {
    at = skipSpace(text, checkValue(text, at, depth));
    const code = text.charCodeAt(at);
    if (code === ARRAY_CLOSE) return at + 1;
    if (code !== COMMA) throw malformed(text, at);
    at = skipSpace(text, at + 1);
  }
}

function checkWord(text: string, at: number, word: string): number {
  if (!text.startsWith(word, at)) throw malformed(text, at);
  return at + word.length;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function skipDigits(text: string, at: number): number {
  let index = at;
  while (isDigit(text.charCodeAt(index))) index += 1;
  if (index === at) throw malformed(text, at);
  return index;
}

function checkNumber(text: string, start: number): number {
  let at = start;
  if (text.charCodeAt(at) === MINUS) at += 1;
  at = text.charCodeAt(at) === 0x30 ? at + 1 : skipDigits(text, at);
  if (text.charCodeAt(at) === 0x2e) at = skipDigits(text, at + 1);
  const exponent = text.charCodeAt(at) | 0x20;
  if (exponent === 0x65) {
    const sign = text.charCodeAt(at + 1);
    at = skipDigits(text, sign === 0x2b || sign === MINUS ? at + 2 : at + 1);
  }
  return at;
}

function checkString(text: string, open: number): number {
  let at = open + 1;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) {
      const escaped = text[at + 1] ?? "";
      if (escaped === "u") {
        if (!/^[0-9a-fA-F]{4}$/.test(text.slice(at + 2, at + 6))) throw malformed(text, at);
        at += 6;
      } else if (escaped !== "" && '"\\/bfnrt'.includes(escaped)) {
        at += 2;
      } else {
        throw malformed(text, at);
      }
    } else if (code >= 0x20) {
      at += 1;
    } else {
      // The character is a control character, or NaN because the text has ended.
      throw malformed(text, at);
    }
  }
}

/** Returns the kind of the valid value that begins at `at`. */
export function jsonKindAt(text: string, at: number): JsonKind {
  switch (text.charCodeAt(at)) {
    case QUOTE:
      return "string";
    case OBJECT_OPEN:
      return "object";
    case ARRAY_OPEN:
      return "array";
    case 0x74:
    case 0x66:
      return "boolean";
    case 0x6e:
      return "null";
    default:
      return "number";
  }
}

/** Returns the whole document without surrounding whitespace. */
export function jsonRoot(text: string): JsonSlice {
  const start = skipSpace(text, 0);
  return { start, end: skipValue(text, start) };
}

/** Returns the end of the valid value that begins at `start`. */
function skipValue(text: string, start: number): number {
  let depth = 0;
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = jsonStringEnd(text, at);
    } else if (code === OBJECT_OPEN || code === ARRAY_OPEN) {
      depth += 1;
      at += 1;
    } else if (code === OBJECT_CLOSE || code === ARRAY_CLOSE) {
      depth -= 1;
      at += 1;
    } else if (code === COMMA || code === COLON || code <= 0x20) {
      at += 1;
      continue;
    } else {
      at = skipScalar(text, at);
    }
    if (depth === 0) return at;
  }
}

function skipScalar(text: string, start: number): number {
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code <= 0x20 || code === COMMA || code === OBJECT_CLOSE || code === ARRAY_CLOSE) break;
    at += 1;
  }
  return at;
}

/**
 * Returns the end of the string that begins at `open`; the end of the text if the string is not
 * closed. Large documents consist mostly of strings, and searching for the next quote skips many
 * characters at a time.
 */
export function jsonStringEnd(text: string, open: number): number {
  for (let quote = text.indexOf('"', open + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let backslashCount = 0;
    while (text.charCodeAt(quote - 1 - backslashCount) === BACKSLASH) backslashCount += 1;
    // An even number of backslashes escape only one another, not the quote.
    if (backslashCount % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** Returns a string value with its escapes resolved. */
export function jsonString(text: string, { start, end }: JsonSlice): string {
  const raw = text.slice(start + 1, end - 1);
  return raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
}

/**
 * Returns the members of an object in document order. Keys may repeat in JSON, but never in JSONB.
 */
export function jsonMembers(text: string, { start }: JsonSlice): JsonMember[] {
  const members: JsonMember[] = [];
  let at = skipSpace(text, start + 1);
  while (text.charCodeAt(at) !== OBJECT_CLOSE) {
    const keyEnd = jsonStringEnd(text, at);
    const key = jsonString(text, { start: at, end: keyEnd });
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = skipValue(text, valueStart);
    members.push({ key, value: { start: valueStart, end: valueEnd } });
    at = skipSpace(text, valueEnd);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return members;
}

export function jsonElements(text: string, { start }: JsonSlice): JsonSlice[] {
  const elements: JsonSlice[] = [];
  let at = skipSpace(text, start + 1);
  while (text.charCodeAt(at) !== ARRAY_CLOSE) {
    const end = skipValue(text, at);
    elements.push({ start: at, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return elements;
}

/**
 * Returns the value of a key in an object, or the last value if the key repeats; undefined if
 * there is no such key or the slice is not an object. The slice may have whitespace around it, as
 * a whole document may.
 */
export function jsonMember(text: string, slice: JsonSlice, key: string): JsonSlice | undefined {
  const open = skipSpace(text, slice.start);
  if (text.charCodeAt(open) !== OBJECT_OPEN) return undefined;
  let found: JsonSlice | undefined;
  let at = skipSpace(text, open + 1);
  while (text.charCodeAt(at) !== OBJECT_CLOSE) {
    const keyEnd = jsonStringEnd(text, at);
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = skipValue(text, start);
    if (isJsonString(text, { start: at, end: keyEnd }, key)) found = { start, end };
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return found;
}

/** Whether a JSON string, with its escapes resolved, equals `wanted`. */
export function isJsonString(text: string, slice: JsonSlice, wanted: string): boolean {
  const length = slice.end - slice.start - 2;
  if (length === wanted.length) {
    // Without escapes, a JSON string's content has the length of its text. If the lengths are
    // equal, the text contains no escape unless `wanted` has a backslash.
    return text.startsWith(wanted, slice.start + 1) && !wanted.includes("\\");
  }
  return length > wanted.length && jsonString(text, slice) === wanted;
}

/**
 * Whether two JSON numbers are equal, such as `1`, `1.0` and `10e-1`, however many digits they
 * have.
 */
export function isJsonNumber(text: string, { start, end }: JsonSlice, wanted: string): boolean {
  if (end - start === wanted.length && text.startsWith(wanted, start)) return true;
  const written = text.slice(start, end);
  return isPlain(written) && isPlain(wanted)
    ? Number(written) === Number(wanted)
    : numberKey(written) === numberKey(wanted);
}

/**
 * Whether a double holds all digits of a number, so that the number can be compared as a double.
 */
function isPlain(number: string): boolean {
  return number.length <= 15 && !/e/i.test(number);
}

/**
 * Returns a key that is the same for equal numbers: the significant digits and the position of the
 * decimal point.
 */
function numberKey(number: string): string {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number);
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = withoutTrailingZeros(digits);
  if (significant === "") return "0";
  const trailing = digits.length - significant.length;
  return `${sign}${significant}e${BigInt(exponent) - BigInt(fraction.length - trailing)}`;
}

/**
 * Returns the array element at an index, which counts from the end if negative; undefined if there
 * is no such element or the slice is not an array.
 */
export function jsonElement(text: string, slice: JsonSlice, index: number): JsonSlice | undefined {
  if (text.charCodeAt(slice.start) !== ARRAY_OPEN) return undefined;
  const elements = jsonElements(text, slice);
  return elements[index < 0 ? elements.length + index : index];
}

/**
 * Returns the value at a path of keys and, in arrays, integer indexes; undefined if the path does
 * not exist.
 */
export function jsonPath(text: string, path: readonly string[]): JsonSlice | undefined {
  let slice: JsonSlice | undefined = jsonRoot(text);
  for (const step of path) {
    if (slice === undefined) return undefined;
    if (text.charCodeAt(slice.start) === ARRAY_OPEN) {
      slice = /^[+-]?\d+$/.test(step) ? jsonElement(text, slice, Number(step)) : undefined;
    } else {
      slice = jsonMember(text, slice, step);
    }
  }
  return slice;
}

/**
 * Returns the result of `->>`: the content of a string, undefined for null, and the JSON text of
 * any other value.
 *
 * @throws {DatabaseError} INVALID_VALUE for a JSON string that is not a valid text value.
 */
export function jsonScalarText(text: string, slice: JsonSlice): string | undefined {
  const kind = jsonKindAt(text, slice.start);
  if (kind === "null") return undefined;
  if (kind !== "string") return text.slice(slice.start, slice.end);
  return textOfJsonString(jsonString(text, slice));
}

/**
 * Returns the content of a JSON string or key as a text value.
 *
 * @throws {DatabaseError} INVALID_VALUE if it is valid in JSON but not in a text value.
 */
export function textOfJsonString(characters: string): string {
  if (!characters.includes("\u0000") && characters.isWellFormed()) return characters;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot convert the JSON string to text: it contains the character \\u0000 or an unpaired " +
      "surrogate",
  );
}
