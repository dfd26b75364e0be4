/**
 * Values of `$1`, `$2`, … as they are sent: JSON has no integers beyond 2^53, no dates and no
 * bytes, and the server takes no lists and objects but as their text.
 *
 *     bigint        a number, or beyond 2^53 its digits
 *     Date          ISO text, which the server reads as TIMESTAMP, DATETIME, DATE or TIME
 *     bytes         "\x00ff"
 *     number        itself; one like Date.now(), where it is stored as it is, as its digits
 *     list, object  JSON text; a list where the statement takes an array, as `= ANY($1)` and
 *                   `$1::int[]` do, as the text of one: {1,2,NULL}
 */
import { kindOf } from "./checks.ts";
import { Places } from "./places.ts";

/**
 * An integer beyond 2^53 is a bigint, or its decimal digits; an object is a Date, bytes, a list or
 * a plain object.
 */
export type Parameter = null | boolean | number | bigint | string | object;

export type SentParameter = null | boolean | number | string;

const SHOULD =
  "null, a boolean, a finite number, a bigint, text, a Date, bytes (Uint8Array), a list or a plain object";

/**
 * Parameters as the statement is sent them.
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
    // As text the server refuses it for a date, and takes it for whatever a number may be.
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

/** JSON would make null of it, which nobody meant, or knows no text for it. */
function jsonValue(_name: string, value: unknown): unknown {
  if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) return Number(value);
  const isLost = typeof value === "number" && !Number.isFinite(value);
  if (!isLost && typeof value !== "bigint") return value;
  throw new TypeError(`Cannot send JSON: it holds ${String(value)}, which JSON has no number for`);
}

/** The text of an array, of one dimension as the server has them. */
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

/** An object without a class, also one of another realm. */
function isPlain(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** What JSON has as text, such as a URL or an instant, is sent as that text. */
function hasText(value: unknown): value is { toJSON(): string } {
  if (typeof value !== "object" || value === null || !("toJSON" in value)) return false;
  return typeof value.toJSON === "function" && typeof value.toJSON() === "string";
}

function noTime(number: number, type: string): TypeError {
  return new TypeError(
    `Cannot send parameter ${number}: it is a number where the statement has ${type}; send a Date, as new Date(ms), or ISO text`,
  );
}

/** As Date.now() gives it: a TIMESTAMP would take it for microseconds, and be one of 1970. */
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
