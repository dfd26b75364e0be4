/**
 * Encodes a bound of a range as a key, a string of ASCII characters above "!" that sorts like the
 * bound:
 *
 *     numeric                  the string that represents it, without the digits it shows
 *     int, date                6 digits in base 64
 *     other whole numbers      11 digits in base 64
 *     float, double, enum      11 digits in base 64, of the bits in the order of the numbers
 *     boolean                  "0" or "1"
 *     strings in order, bytes  the bytes, escaped
 *     others                   the sort key, escaped
 *
 * Bounds that are equal have equal keys. A bound that its key does not determine, such as an array
 * of numbers, has details in addition.
 */
import type { DataType } from "./data_type.ts";
import { hasOrder } from "./data_type.ts";
import { numericKey } from "./numeric.ts";
import { hasSortKey, sortKeyOf } from "./sort_key.ts";
import { typeOrder } from "./type_class.ts";
import { type Value, type Whole, wholeFromBigint } from "./value.ts";
import { jsonFromValue, type ValueJson, valueFromJson } from "./value_json.ts";

/** A bound as a key, and its details: text without commas and spaces, "" if there are none. */
export interface BoundKey {
  readonly key: string;
  readonly details: string;
}

/** Separates the digits that a NUMERIC shows beyond those it needs; see `numeric.ts`. */
const SHOWN = " ";

/** Whether ranges can have bounds of a type: its values must have an order and sort keys. */
export function canBeBound(type: DataType): boolean {
  if (type.kind === "json" && !type.binary) return false;
  return type.kind !== "file" && hasOrder(type) && hasSortKey(type);
}

/** Whether the keys of bounds of a type determine the bounds. */
export function isBoundInKey(type: DataType): boolean {
  switch (typeOrder(type)) {
    case "whole":
    case "double":
    case "boolean":
    case "text":
    case "bytes":
      return true;
    case "numeric":
      return type.kind === "numeric" || ("bound" in type && isBoundInKey(type.bound));
    default:
      return false;
  }
}

export function keyOfBound(bound: DataType, value: Value): BoundKey {
  switch (bound.kind) {
    case "numeric": {
      const key = numericKey(value as string);
      const isTrimmed = bound.isTrimmed === true;
      return { key, details: isTrimmed ? "" : (value as string).slice(key.length + SHOWN.length) };
    }
    case "int":
    case "date":
      return plain(digitsOf((value as number) + INT_BIAS, INT_DIGITS));
    default:
      return otherKey(bound, value);
  }
}

function plain(key: string): BoundKey {
  return { key, details: "" };
}

function otherKey(bound: DataType, value: Value): BoundKey {
  switch (typeOrder(bound)) {
    case "whole":
      return plain(wholeKey(value as Whole));
    case "double":
      return plain(doubleKey(value as number));
    case "boolean":
      return plain(value === true ? "1" : "0");
    case "text":
      return plain(escaped(Buffer.from(value as string, "utf8")));
    case "bytes":
      return plain(escaped(value as Uint8Array));
    case "numeric": {
      const key = numericKey(value as string);
      const rest = (value as string).slice(key.length + SHOWN.length);
      return { key: escaped(Buffer.from(key)), details: Buffer.from(rest).toString("base64url") };
    }
    default: {
      const details = Buffer.from(JSON.stringify(jsonFromValue(value))).toString("base64url");
      return { key: escaped(Buffer.from(sortKeyOf(bound, value), "utf8")), details };
    }
  }
}

/** Returns the bound that has the given key and details. */
export function boundOfKey(bound: DataType, { details, key }: BoundKey): Value {
  switch (bound.kind) {
    case "numeric":
      return details === "" ? key : `${key}${SHOWN}${details}`;
    case "int":
    case "date":
      return numberOf(key) - INT_BIAS;
    default:
      break;
  }
  switch (typeOrder(bound)) {
    case "whole":
      return wholeOfKey(key);
    case "double":
      return doubleOfKey(key);
    case "boolean":
      return key === "1";
    case "text":
      return unescaped(key).toString("utf8");
    case "bytes":
      return new Uint8Array(unescaped(key));
    case "numeric": {
      const text = unescaped(key).toString();
      const rest = Buffer.from(details, "base64url").toString();
      return rest === "" ? text : `${text}${SHOWN}${rest}`;
    }
    default:
      return valueFromJson(JSON.parse(Buffer.from(details, "base64url").toString()) as ValueJson);
  }
}

/** The character for 0 in the keys of numbers, which are in base 64. */
const FIRST_DIGIT = 48;
const DIGIT_BITS = 6;
const DIGIT_RANGE = 2 ** DIGIT_BITS;
const INT_DIGITS = 6;
const LOW_DIGITS = 5;
const LOW_RANGE = 2 ** (LOW_DIGITS * DIGIT_BITS);
const INT_BIAS = 2 ** 31;
const HIGH_BIAS = 2 ** 33;

function wholeKey(value: Whole): string {
  const { high, low } = halvesOf(value);
  return digitsOf(high + HIGH_BIAS, INT_DIGITS) + digitsOf(low, LOW_DIGITS);
}

function wholeOfKey(key: string): Whole {
  const high = numberOf(key.slice(0, INT_DIGITS)) - HIGH_BIAS;
  const low = numberOf(key.slice(INT_DIGITS));
  const value = high * LOW_RANGE + low;
  if (Number.isSafeInteger(value)) return value;
  return wholeFromBigint(BigInt(high) * BigInt(LOW_RANGE) + BigInt(low));
}

/** Splits a 64-bit integer into its upper 34 and its lower 30 bits. */
function halvesOf(value: Whole): { high: number; low: number } {
  if (typeof value === "number") {
    const high = Math.floor(value / LOW_RANGE);
    return { high, low: value - high * LOW_RANGE };
  }
  const range = BigInt(LOW_RANGE);
  const low = BigInt.asUintN(LOW_DIGITS * DIGIT_BITS, value);
  return { high: Number((value - low) / range), low: Number(low) };
}

function digitsOf(number: number, count: number): string {
  let text = "";
  let rest = number;
  for (let at = 0; at < count; at += 1) {
    text = String.fromCharCode(FIRST_DIGIT + (rest % 64)) + text;
    rest = Math.floor(rest / 64);
  }
  return text;
}

function numberOf(digits: string): number {
  let number = 0;
  for (let at = 0; at < digits.length; at += 1) {
    number = number * 64 + digits.charCodeAt(at) - FIRST_DIGIT;
  }
  return number;
}

const bits = new DataView(new ArrayBuffer(8));

/** Encodes the bits of a double as an integer that sorts like it. NaN is above all others. */
function doubleKey(value: number): string {
  bits.setFloat64(0, value === 0 ? 0 : value);
  const whole = bits.getBigInt64(0);
  return wholeKey(wholeFromBigint(whole < 0n ? flipped(whole) : whole));
}

function doubleOfKey(key: string): number {
  const whole = BigInt(wholeOfKey(key));
  bits.setBigInt64(0, whole < 0n ? flipped(whole) : whole);
  return bits.getFloat64(0);
}

/** Inverts all bits but the sign. A negative double is the larger, the smaller its bits are. */
function flipped(whole: bigint): bigint {
  return whole ^ 0x7fff_ffff_ffff_ffffn;
}

/** The bytes that stand for themselves in a key: "#" to "}". */
const PLAIN_MIN = 0x23;
const PLAIN_MAX = 0x7d;
const LOW_MARK = 0x22;
const HIGH_MARK = 0x7e;

/** The maximum number of characters for a byte. */
const ESCAPED_LENGTH_MAX = 3;

/**
 * Writes bytes as characters above "!" that sort like the bytes. A byte below "#" becomes a quote
 * and one character, and a byte above "}" becomes "~" and two characters.
 */
function escaped(bytes: Uint8Array): string {
  const characters = Buffer.allocUnsafe(ESCAPED_LENGTH_MAX * bytes.length);
  let length = 0;
  for (const byte of bytes) {
    if (byte < PLAIN_MIN) {
      characters[length] = LOW_MARK;
      characters[length + 1] = FIRST_DIGIT + byte;
      length += 2;
    } else if (byte <= PLAIN_MAX) {
      characters[length] = byte;
      length += 1;
    } else {
      characters[length] = HIGH_MARK;
      characters[length + 1] = FIRST_DIGIT + (byte >> DIGIT_BITS);
      characters[length + 2] = FIRST_DIGIT + (byte % DIGIT_RANGE);
      length += 3;
    }
  }
  return characters.toString("latin1", 0, length);
}

function unescaped(text: string): Buffer {
  const bytes = Buffer.allocUnsafe(text.length);
  let length = 0;
  const digitAt = (at: number): number => text.charCodeAt(at) - FIRST_DIGIT;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === LOW_MARK) {
      bytes[length] = digitAt(at + 1);
      at += 1;
    } else if (code === HIGH_MARK) {
      bytes[length] = (digitAt(at + 1) << DIGIT_BITS) + digitAt(at + 2);
      at += 2;
    } else bytes[length] = code;
    length += 1;
  }
  return bytes.subarray(0, length);
}
