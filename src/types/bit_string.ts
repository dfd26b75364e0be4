/**
 * Implements the types BIT and BIT VARYING. A value is a string of the characters 0 and 1. Such
 * strings sort like bit strings in PostgreSQL.
 */
import { DatabaseError } from "../base/errors.ts";
import { type DataType, typeName } from "./data_type.ts";
import { excerpt } from "./excerpt.ts";
import type { Whole } from "./value.ts";

export type BitType = Extract<DataType, { kind: "bit" }>;

/** The maximum length that a type may declare or a literal may have, in bits. */
export const BITS_MAX = 83_886_080;

/**
 * Parses a bit string such as `101`, `b101` or `x1F`. @throws {DatabaseError} INVALID_VALUE,
 * VALUE_TOO_LONG
 */
export function bitsFromText(type: BitType, text: string): string {
  const isHex = /^x/i.test(text);
  const digits = /^[xb]/i.test(text) ? text.slice(1) : text;
  const allowed = isHex ? /[^0-9a-f]/i : /[^01]/;
  const wrong = allowed.exec(digits)?.[0];
  if (wrong !== undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as ${typeName(type)}: ${excerpt(wrong)} is not a ${isHex ? "hexadecimal" : "binary"} digit`,
    );
  }
  return fittedBits(type, isHex ? bitsOfHex(digits) : digits);
}

function bitsOfHex(digits: string): string {
  return Array.from(digits, (digit) =>
    Number.parseInt(digit, 16).toString(2).padStart(4, "0"),
  ).join("");
}

/**
 * Checks that a bit string has the length that its type declares, and returns it.
 *
 * @throws {DatabaseError} VALUE_TOO_LONG, INVALID_VALUE
 */
export function fittedBits(type: BitType, bits: string): string {
  const { isVarying, length } = type;
  if (length === undefined || bits.length === length) return bits;
  if (isVarying === true && bits.length < length) return bits;
  throw new DatabaseError(
    isVarying === true ? "VALUE_TOO_LONG" : "INVALID_VALUE",
    `Cannot represent ${excerpt(bits)} as ${typeName(type)}: it has ${bits.length} bits, but must have ${isVarying === true ? "at most" : "exactly"} ${length}`,
  );
}

/** Truncates a bit string to the declared length, or pads it with 0 to that length. */
export function cutBits({ isVarying, length }: BitType, bits: string): string {
  if (length === undefined) return bits;
  return isVarying === true ? bits.slice(0, length) : bits.slice(0, length).padEnd(length, "0");
}

/**
 * Returns the lowest bits of an integer in two's complement. If more bits are requested than the
 * integer has, it is sign-extended.
 */
export function bitsOfWhole(value: Whole, length: number): string {
  return BigInt.asUintN(length, BigInt(value)).toString(2).padStart(length, "0");
}

/** Returns the integer that the bits represent. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function wholeOfBits(bits: string, width: 32 | 64): bigint {
  if (bits.length > width) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot convert ${excerpt(bits)} to ${width === 32 ? "integer" : "bigint"}: it has more ` +
        `than ${width} bits`,
    );
  }
  return BigInt.asIntN(width, BigInt(`0b0${bits}`));
}
