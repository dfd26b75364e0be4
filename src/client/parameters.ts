/**
 * Converts the values of `$1`, `$2`, … for sending: JSON has no integers beyond 2^53, no dates and
 * no bytes, and the server accepts lists and objects only as text.
 *
 *     bigint        a number, or its digits beyond 2^53
 *     Date          ISO text, which the server reads as TIMESTAMP, DATETIME, DATE or TIME
 *     bytes         "\x00ff"
 *     number        itself; a number like Date.now() as its digits, if it is stored directly
 *     list, object  JSON text; a list becomes array text {1,2,NULL} if the statement takes
 *                   an array, as in `= ANY($1)` and `$1::int[]`
 */
import { kindOf } from "./checks.ts";
import { Places } from "./places.ts";

/**
 * A parameter value. Pass an integer beyond 2^53 as a bigint or as its decimal digits. An object
 * has to be a Date, bytes, a list or a plain object.
 */
export type Parameter = null | boolean | number | bigint | string | object;

export type SentParameter = null | boolean | number | string;

const SHOULD =
  "null, a boolean, a finite number, a bigint, text, a Date, bytes (Uint8Array), a list or a plain object";

/**
 * Converts parameters to the form in which a statement is sent.
 *
 * @throws {TypeError} If it is no list: some calls take one, others take it among their options.
 * And for a value that JSON makes null, such as undefined or NaN: it would be a NULL that nobody
 * meant.
 */
export function sentParameters(sql: string, params: readonly Parameter[]): SentParameter[] {
  if (!Array.isArray(params)) {
    throw new TypeError(
      "Cannot send the parameters: they should be a list, as in query(sql, [1]) or execute(sql, { params: [1] })",
    );
  }
  const places = new Places(sql);
  // Holes of the list count, too.
  return Array.from(params, (each: unknown, index) => {
    const number = index + 1;
    if (Array.isArray(each)) {
      if (places.takesArray(number)) return arrayText(each, number);
      if (places.isAloneInList(number)) throw noList(number);
    }
    const isNumber = typeof each === "number" || typeof each === "bigint";
    const time = isNumber ? places.timeOf(number) : undefined;
    if (time !== undefined) throw noTime(number, time);
    // The server refuses such text for a date, and accepts it for every type that takes a number.
    if (isLikeMoment(each) && places.isStored(number)) return String(each);
    return sentParameter(each, `parameter ${number}`);
  });
}

function sentParameter(value: unknown, name: string): SentParameter {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "bigint") {
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (value instanceof Date) {
    if (!Number.isNaN(value.getTime())) return value.toISOString();
    throw new TypeError(`Cannot send ${name}: it is a Date that is invalid`);
  }
  const bytes = bytesOf(value);
  if (bytes !== undefined) return bytesText(bytes);
  if (Array.isArray(value) || isPlain(value)) return JSON.stringify(value, jsonValue);
  if (hasText(value)) return value.toJSON();
  throw new TypeError(`Cannot send ${name}: it is ${kindOf(value)}, and should be ${SHOULD}`);
}

/** Refuses numbers that JSON would turn into null or cannot represent. */
function jsonValue(_name: string, value: unknown): unknown {
  if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) return Number(value);
  const isLost = typeof value === "number" && !Number.isFinite(value);
  if (!isLost && typeof value !== "bigint") return value;
  throw new TypeError(`Cannot send JSON: it holds ${String(value)}, which JSON has no number for`);
}

/** The text of an array; arrays of the server have one dimension. */
function arrayText(list: readonly unknown[], number: number): string {
  const items = Array.from(list, (item, index) => {
    const name = `item ${index + 1} of parameter ${number}`;
    if (Array.isArray(item)) {
      throw new TypeError(`Cannot send ${name}: it is a list, and arrays have one dimension`);
    }
    const sent = sentParameter(item, name);
    if (sent === null) return "NULL";
    if (typeof sent !== "string") return String(sent);
    return `"${sent.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  });
  return `{${items.join(",")}}`;
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

/** Whether a value is an object without a class; it may come from another realm. */
function isPlain(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Whether JSON turns the value into text, such as a URL or an instant; it is sent as that text. */
function hasText(value: unknown): value is { toJSON(): string } {
  if (typeof value !== "object" || value === null || !("toJSON" in value)) return false;
  return typeof value.toJSON === "function" && typeof value.toJSON() === "string";
}

function noTime(number: number, type: string): TypeError {
  return new TypeError(
    `Cannot send parameter ${number}: it is a number where the statement has ${type}; send a Date, as new Date(ms), or ISO text`,
  );
}

/** Matches results of Date.now(), which a TIMESTAMP would read as microseconds, in January 1970. */
function isLikeMoment(value: unknown): boolean {
  if (typeof value !== "number" && typeof value !== "bigint") return false;
  const ms = Math.abs(Number(value));
  return Number.isInteger(ms) && ms >= 1e11 && ms < 1e14;
}

function noList(number: number): TypeError {
  return new TypeError(
    `Cannot send parameter ${number}: it is a list, and IN ($${number}) compares with one value; write = ANY($${number})`,
  );
}
