/**
 * Converts the values of `$1`, `$2`, … for sending, because JSON cannot express integers beyond
 * 2^53, dates or bytes.
 *
 *     bigint        a number, or its digits beyond 2^53
 *     Date          ISO text, which the server reads as TIMESTAMP, DATETIME, DATE or TIME
 *     bytes         "\x00ff"
 *     number        itself; a number like Date.now() as its digits, if it is stored directly
 *     list, object  itself, with its values converted; the statement determines whether a list is
 *                   an array, as in `= ANY($1)` and `$1::int[]`, or JSON
 */
import { kindOf } from "./checks.ts";

/**
 * A parameter value. Integers beyond 2^53 must be passed as a bigint or as decimal digits. An
 * object must be a Date, bytes, a list or a plain object.
 */
export type Parameter = null | boolean | number | bigint | string | object;

export type SentParameter =
  | null
  | boolean
  | number
  | string
  | readonly SentParameter[]
  | { readonly [name: string]: SentParameter };

/** The maximum nesting depth of JSON that the server accepts. */
const DEPTH_MAX = 128;

const SHOULD =
  "null, a boolean, a finite number, a bigint, a string, a Date, bytes (Uint8Array), a list or a plain object";

/**
 * Converts parameters to the form in which they are sent.
 *
 * @throws {TypeError} If `params` is not a list, or a value cannot be sent. Values that JSON would
 *   turn into null, such as undefined, or NaN in a list, are also refused, because a NULL would
 *   not be what the caller intended.
 */
export function sentParameters(sql: string, params: readonly Parameter[]): SentParameter[] {
  if (!Array.isArray(params)) {
    throw new TypeError(
      "Cannot send the parameters: they must be a list, as in query(sql, [1]) or execute(sql, " +
        "{ params: [1] })",
    );
  }
  const places = new ParameterPlaces(sql);
  // `Array.from` is used because it also visits the holes in a sparse list.
  return Array.from(params, (each: unknown, index) => {
    const number = index + 1;
    if (Array.isArray(each) && places.isAloneInList(number)) throw noList(number);
    const isNumber = typeof each === "number" || typeof each === "bigint";
    const time = isNumber ? places.timeOf(number) : undefined;
    if (time !== undefined) throw noTime(number, time);
    // A number that looks like a timestamp in milliseconds is sent as a string of digits: the
    // server refuses such a string as a date, but accepts it for every numeric type.
    if (isLikeMoment(each) && places.isStored(number)) return String(each);
    return sentParameter(each, `parameter ${number}`);
  });
}

/**
 * Converts a parameter to the form in which it is sent.
 * @param depth The number of lists and objects that enclose the value.
 */
function sentParameter(value: unknown, name: string, depth = 0): SentParameter {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "bigint") {
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
  if (typeof value === "number" && Number.isFinite(value)) return value;
  // JSON cannot express NaN and infinity, but the server accepts them as strings.
  if (typeof value === "number" && depth === 0) return String(value);
  if (value instanceof Date) {
    if (!Number.isNaN(value.getTime())) return value.toISOString();
    throw new TypeError(`Cannot send ${name}: it is an invalid Date`);
  }
  const bytes = bytesOf(value);
  if (bytes !== undefined) return bytesText(bytes);
  if (depth > DEPTH_MAX) {
    throw new TypeError(
      `Cannot send a parameter: its lists and objects are nested more than ${DEPTH_MAX} levels ` +
        "deep, or it contains itself",
    );
  }
  if (Array.isArray(value)) return sentList(value, name, depth + 1);
  if (isPlain(value)) return sentObject(value, name, depth + 1);
  if (hasText(value)) return value.toJSON();
  throw new TypeError(`Cannot send ${name}: it is ${kindOf(value)}, but must be ${SHOULD}`);
}

/** Converts the items of a list. `Array.from` also visits the holes in a sparse list. */
function sentList(list: readonly unknown[], name: string, depth: number): SentParameter {
  return Array.from(list, (item, index) =>
    sentParameter(item, `item ${index + 1} of ${name}`, depth),
  );
}

/** Converts the members of an object. Undefined members are omitted, as JSON.stringify does. */
function sentObject(object: object, name: string, depth: number): SentParameter {
  const members = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    members.map(([key, value]: [string, unknown]) => {
      const member = `"${key}" of ${name}`;
      if (typeof value === "bigint" && !Number.isSafeInteger(Number(value))) {
        throw new TypeError(
          `Cannot send ${member}: JSON cannot represent ${value}; send a string instead`,
        );
      }
      return [key, sentParameter(value, member, depth)];
    }),
  );
}

function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (!ArrayBuffer.isView(value)) return undefined;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

function bytesText(bytes: Uint8Array): string {
  let text = String.raw`\x`;
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** Returns whether a value is an object without a class, even if it comes from another realm. */
function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * Returns whether JSON would turn a value, such as a URL or an instant, into a string. The string
 * is then sent in place of the value.
 */
function hasText(value: unknown): value is { toJSON(): string } {
  if (typeof value !== "object" || value === null || !("toJSON" in value)) return false;
  return typeof value.toJSON === "function" && typeof value.toJSON() === "string";
}

function noTime(number: number, type: string): TypeError {
  return new TypeError(
    `Cannot send parameter ${number}: it is a number, but the statement expects ${type}; send ` +
      "a Date, such as new Date(ms), or an ISO string",
  );
}

/**
 * Returns whether a value looks like a result of Date.now(). As a TIMESTAMP, such a value would be
 * interpreted as microseconds, and would denote a moment in January 1970.
 */
function isLikeMoment(value: unknown): boolean {
  if (typeof value !== "number" && typeof value !== "bigint") return false;
  const ms = Math.abs(Number(value));
  return Number.isInteger(ms) && ms >= 1e11 && ms < 1e14;
}

function noList(number: number): TypeError {
  return new TypeError(
    `Cannot send parameter ${number}: it is a list, but IN ($${number}) compares with a single ` +
      `value; write = ANY($${number})`,
  );
}

/** Matches SQL strings, quoted identifiers and comments, in which `$1` is not a parameter. */
const QUIET = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g;

/** Matches the beginning of a cast of a parameter: `$1::` or `CAST($1 AS`. */
const CAST = String.raw`(?:\$(\d+) ?::|\bcast ?\( ?\$(\d+) as\b) ?`;

const TIME_CAST = new RegExp(`${CAST}(timestamptz|timestamp|datetime|date|time)\\b`, "gi");

const IN_ALONE = /\bin ?\( ?\$(\d+) ?\)/gi;

/**
 * Matches a parameter between commas and parentheses, and the tokens that determine its nesting
 * depth.
 */
const ROW_PART = /\bvalues\b|[()]|(?<=[(,] ?)\$(\d+)(?= ?[,)])/gi;

const SET_VALUE = /(?:\bset|,) ?[\w.]* ?= ?\$(\d+) ?(?=,|;|$|\b(?:where|from|returning)\b)/gi;

/**
 * Determines how a statement uses its parameters, as far as the SQL reveals it. Only the server
 * knows the parameter types, and it interprets lists, and numbers that represent dates,
 * differently from JavaScript. The SQL is parsed on first use.
 */
class ParameterPlaces {
  readonly #sql: string;
  #read: string | undefined;
  #alone: ReadonlySet<number> | undefined;
  #stored: ReadonlySet<number> | undefined;
  #times: ReadonlyMap<number, string> | undefined;

  constructor(sql: string) {
    this.#sql = sql;
  }

  /** Returns whether the parameter is the only item of an IN list. */
  isAloneInList(number: number): boolean {
    this.#alone ??= new Set(this.#find(IN_ALONE).map(numberOf));
    return this.#alone.has(number);
  }

  /**
   * Returns whether the parameter is stored directly, as an item of VALUES or as the value in a
   * SET.
   */
  isStored(number: number): boolean {
    this.#stored ??= new Set([...this.#items(), ...this.#find(SET_VALUE)].map(numberOf));
    return this.#stored.has(number);
  }

  /** Returns the date or time type to which a parameter is cast; undefined if there is none. */
  timeOf(number: number): string | undefined {
    this.#times ??= new Map(
      this.#find(TIME_CAST).map((found) => [numberOf(found), (found[3] ?? "").toUpperCase()]),
    );
    return this.#times.get(number);
  }

  /** Returns the matches of the parameters that are entire items of VALUES rows. */
  #items(): RegExpMatchArray[] {
    const found: RegExpMatchArray[] = [];
    let depth = 0;
    for (const part of this.#find(ROW_PART)) {
      if (part[0] === ")") depth -= 1;
      else if (part[0].toLowerCase() === "values") depth = 0;
      else if (part[0] === "(") depth += 1;
      else if (depth === 1) found.push(part);
    }
    return found;
  }

  #find(pattern: RegExp): RegExpMatchArray[] {
    this.#read ??= this.#sql.replaceAll(QUIET, " ").replaceAll(/\s+/g, " ");
    return [...this.#read.matchAll(pattern)];
  }
}

/** Returns the parameter number captured by either group of a pattern. */
function numberOf([, first, second]: RegExpMatchArray): number {
  return Number(first ?? second);
}
