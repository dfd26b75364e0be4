/**
 * Implements OID, XID, XID8 and PG_LSN: unsigned integers of 32 or 64 bits.
 *
 * A value is a string of 8 or 16 hexadecimal digits in lower case. Such strings sort in the order
 * of the numbers. A PG_LSN is a position in PostgreSQL's write-ahead log. Its text consists of the
 * upper and the lower half in hexadecimal digits: `16/B374D848`.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";

export const UNSIGNED_KINDS = ["oid", "xid", "xid8", "pg_lsn"] as const;

export type UnsignedKind = (typeof UNSIGNED_KINDS)[number];

export function isUnsignedKind(kind: string): kind is UnsignedKind {
  return (UNSIGNED_KINDS as readonly string[]).includes(kind);
}

/** Returns the number of bits in the values of a type. */
function widthOf(kind: UnsignedKind): number {
  return kind === "oid" || kind === "xid" ? 32 : 64;
}

/** Returns the value that represents a number; undefined if the number is out of range. */
export function unsignedValue(kind: UnsignedKind, number: bigint): string | undefined {
  const width = widthOf(kind);
  if (number < 0n || number >> BigInt(width) !== 0n) return undefined;
  return number.toString(16).padStart(width / 4, "0");
}

export function numberOfUnsigned(value: string): bigint {
  return BigInt(`0x${value}`);
}

/** Parses an unsigned integer. @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE */
export function unsignedFromText(kind: UnsignedKind, text: string): string {
  const number = kind === "pg_lsn" ? positionFromText(text) : numberFromText(kind, text);
  if (number === undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as ${kind}: expected ${EXPECTED[kind]}`,
    );
  }
  const width = BigInt(widthOf(kind));
  // As in PostgreSQL, a negative number represents the unsigned number with the same bits.
  const isWrapped = number < 0n && number >= -(1n << (width - 1n));
  const value = unsignedValue(kind, isWrapped ? number + (1n << width) : number);
  if (value !== undefined) return value;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent ${excerpt(text)} as ${kind}: it does not fit into ${width} bits`,
  );
}

const EXPECTED: Readonly<Record<UnsignedKind, string>> = {
  oid: "an unsigned integer such as 16384",
  xid: "an unsigned integer such as 730",
  xid8: "an unsigned integer such as 730",
  pg_lsn: "two numbers of up to 8 hexadecimal digits, such as 16/B374D848",
};

/** The maximum number of digits of a number. Longer numbers are refused without being parsed. */
const DIGITS_MAX = 64;

/** Parses an integer. XID and XID8 can also be written in octal and hexadecimal digits. */
function numberFromText(kind: UnsignedKind, text: string): bigint | undefined {
  const match = /^([+-]?)(?:(0[xX])([0-9a-fA-F]+)|(\d+))$/.exec(text.trim());
  if (match === null) return undefined;
  const [, sign, hexMark, hex, digits = ""] = match;
  const isOid = kind === "oid";
  if (isOid && hexMark !== undefined) return undefined;
  const written = (hex ?? digits).replace(/^0+(?=.)/, "");
  if (written.length > DIGITS_MAX) return BigInt("1".padEnd(DIGITS_MAX, "0"));
  const isOctal = !isOid && hex === undefined && digits.length > 1 && digits.startsWith("0");
  if (isOctal && /[89]/.test(written)) return undefined;
  const prefix = hex !== undefined ? "0x" : isOctal ? "0o" : "";
  const number = BigInt(`${prefix}${written}`);
  return sign === "-" ? -number : number;
}

function positionFromText(text: string): bigint | undefined {
  const match = /^([0-9a-fA-F]{1,8})\/([0-9a-fA-F]{1,8})$/.exec(text);
  if (match === null) return undefined;
  const [, upper = "", lower = ""] = match;
  return BigInt(`0x${upper}${lower.padStart(8, "0")}`);
}

export function textFromUnsigned(kind: UnsignedKind, value: string): string {
  if (kind !== "pg_lsn") return numberOfUnsigned(value).toString();
  return `${halfText(value.slice(0, 8))}/${halfText(value.slice(8))}`;
}

function halfText(digits: string): string {
  return digits.replace(/^0+(?=.)/, "").toUpperCase();
}
