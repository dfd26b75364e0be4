/** Defines functions on bytes: text encodings and hashes. */
import { DatabaseError } from "../../base/errors.ts";
import {
  BIGINT,
  BYTES,
  DOUBLE,
  excerpt,
  FLOAT,
  INT,
  TEXT,
  type Value,
  valueFromText,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction } from "./base/function.ts";

function unknownEncoding(name: string): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot use the encoding ${excerpt(name)}: only hex, base64 and escape are supported`,
  );
}

const BACKSLASH = 0x5c;
const ZERO = 0x30;

/** PostgreSQL breaks base64 output into lines of this many characters. */
const BASE64_LINE = 76;

function encode([value = null, format = null]: readonly Value[]): string {
  const bytes = Buffer.from(value as Uint8Array);
  const name = (format as string).toLowerCase();
  if (name === "hex") return bytes.toString("hex");
  if (name === "base64") {
    const text = bytes.toString("base64");
    const lines: string[] = [];
    for (let at = 0; at < text.length; at += BASE64_LINE) {
      lines.push(text.slice(at, at + BASE64_LINE));
    }
    return lines.join("\n");
  }
  if (name !== "escape") throw unknownEncoding(format as string);
  return escaped(bytes);
}

/**
 * Encodes bytes in PostgreSQL's escape format: doubles each backslash, and writes each non-ASCII
 * byte as three octal digits after a backslash.
 */
function escaped(bytes: Uint8Array): string {
  const text = Buffer.allocUnsafe(4 * bytes.length);
  let length = 0;
  for (const byte of bytes) {
    if (byte !== BACKSLASH && byte !== 0 && byte < 0x80) {
      text[length] = byte;
      length += 1;
      continue;
    }
    text[length] = BACKSLASH;
    if (byte === BACKSLASH) {
      text[length + 1] = BACKSLASH;
      length += 2;
      continue;
    }
    text[length + 1] = ZERO + (byte >> 6);
    text[length + 2] = ZERO + ((byte >> 3) & 7);
    text[length + 3] = ZERO + (byte & 7);
    length += 4;
  }
  return text.toString("latin1", 0, length);
}

function decode([value = null, format = null]: readonly Value[]): Value {
  const text = value as string;
  const name = (format as string).toLowerCase();
  if (name === "escape") {
    // Text in the escape format must not be read as hex, so the backslash of a leading `\x` is
    // escaped.
    return valueFromText(BYTES, text.startsWith("\\x") ? `\\134${text.slice(1)}` : text);
  }
  if (name !== "hex" && name !== "base64") throw unknownEncoding(format as string);
  const plain = withoutSpace(text);
  if (isEncoded(plain, name)) return new Uint8Array(Buffer.from(plain, name));
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot decode ${excerpt(text)}: it is not valid ${name}`,
  );
}

/**
 * Removes whitespace character by character. Splitting the string could create a million parts.
 */
function withoutSpace(text: string): string {
  if (!/\s/.test(text)) return text;
  const units = new Uint16Array(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    const isSpace = unit < 0x80 ? ASCII_SPACES.has(unit) : /\s/.test(text[at] ?? "");
    if (isSpace) continue;
    units[length] = unit;
    length += 1;
  }
  return Buffer.from(units.buffer, 0, 2 * length).toString("utf16le");
}

const ASCII_SPACES: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20]);

/**
 * Whether a string is valid hex or base64. The regular expressions contain no repeated groups,
 * because each repetition would add a backtracking step.
 */
function isEncoded(plain: string, name: "hex" | "base64"): boolean {
  if (name === "hex") return plain.length % 2 === 0 && !/[^0-9a-f]/i.test(plain);
  if (plain.length % 4 !== 0) return false;
  const padding = plain.endsWith("==") ? 2 : plain.endsWith("=") ? 1 : 0;
  return !/[^A-Za-z0-9+/]/.test(plain.slice(0, plain.length - padding));
}

function bytesOf(value: Value): Uint8Array {
  return typeof value === "string" ? Buffer.from(value, "utf8") : (value as Uint8Array);
}

type HashName = "sha224" | "sha256" | "sha384" | "sha512";

function hashing(name: HashName): ScalarFunction[] {
  const hash = ([value = null]: readonly Value[]): Value =>
    new Uint8Array(new Bun.CryptoHasher(name).update(bytesOf(value)).digest());
  return functionsNamed([name], overload([BYTES], BYTES, hash));
}

function md5([value = null]: readonly Value[]): string {
  return new Bun.CryptoHasher("md5").update(bytesOf(value)).digest("hex");
}

function checkIndex(bytes: Uint8Array, index: number): void {
  if (index >= 0 && index < bytes.length) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot access byte ${index}: the value has ${bytes.length} bytes, numbered from 0`,
  );
}

function getByte([value = null, index = null]: readonly Value[]): number {
  const bytes = value as Uint8Array;
  checkIndex(bytes, index as number);
  return bytes[index as number] ?? 0;
}

function setByte([value = null, index = null, byte = null]: readonly Value[]): Value {
  const bytes = (value as Uint8Array).slice();
  checkIndex(bytes, index as number);
  bytes[index as number] = byte as number;
  return bytes;
}

/** Checks that a bit index lies within the bytes. Bit 0 is the lowest bit of the first byte. */
function checkBit(bytes: Uint8Array, index: number): void {
  if (index >= 0 && index < 8 * bytes.length) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot access bit ${index}: the value has ${8 * bytes.length} bits, numbered from 0`,
  );
}

function getBit([value = null, index = null]: readonly Value[]): number {
  const bytes = value as Uint8Array;
  const place = index as number;
  checkBit(bytes, place);
  return ((bytes[Math.floor(place / 8)] ?? 0) >> (place % 8)) & 1;
}

function setBit([value = null, index = null, bit = null]: readonly Value[]): Value {
  const bytes = (value as Uint8Array).slice();
  const place = index as number;
  checkBit(bytes, place);
  if (bit !== 0 && bit !== 1) {
    const found = bit as number;
    throw new DatabaseError("INVALID_VALUE", `Cannot set a bit to ${found}: it must be 0 or 1`);
  }
  const at = Math.floor(place / 8);
  const mask = 1 << (place % 8);
  const byte = bytes[at] ?? 0;
  bytes[at] = bit === 1 ? byte | mask : byte & ~mask;
  return bytes;
}

function bitCount([value = null]: readonly Value[]): number {
  let count = 0;
  for (const byte of value as Uint8Array) {
    for (let rest = byte; rest !== 0; rest &= rest - 1) count += 1;
  }
  return count;
}

/**
 * Returns a function that converts a number to its big-endian bytes, the format in which
 * PostgreSQL sends it.
 */
function sending(width: 4 | 8): (values: readonly Value[]) => Value {
  return ([value = null]) => {
    const bytes = Buffer.alloc(width);
    if (width === 4) bytes.writeFloatBE(value as number);
    else bytes.writeDoubleBE(value as number);
    return new Uint8Array(bytes);
  };
}

function checkUtf8(name: string): void {
  if (/^utf-?8$/i.test(name)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot convert to or from the encoding ${excerpt(name)}: only UTF8 is supported`,
  );
}

function convertFrom([value = null, encoding = null]: readonly Value[]): string {
  checkUtf8(encoding as string);
  const bytes = Buffer.from(value as Uint8Array);
  const text = bytes.toString("utf8");
  if (Buffer.from(text, "utf8").equals(bytes) && !bytes.includes(0)) return text;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot convert the bytes to text: they are not valid UTF-8, or contain a NUL character",
  );
}

export const BYTES_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["encode"], overload([BYTES, TEXT], TEXT, encode)),
  ...functionsNamed(["decode"], overload([TEXT, TEXT], BYTES, decode)),
  ...functionsNamed(["md5"], overload([TEXT], TEXT, md5), overload([BYTES], TEXT, md5)),
  ...hashing("sha224"),
  ...hashing("sha256"),
  ...hashing("sha384"),
  ...hashing("sha512"),
  ...functionsNamed(["get_byte"], overload([BYTES, INT], INT, getByte)),
  ...functionsNamed(["set_byte"], overload([BYTES, INT, INT], BYTES, setByte)),
  ...functionsNamed(["get_bit"], overload([BYTES, BIGINT], INT, getBit)),
  ...functionsNamed(["set_bit"], overload([BYTES, BIGINT, INT], BYTES, setBit)),
  ...functionsNamed(["bit_count"], overload([BYTES], BIGINT, bitCount)),
  ...functionsNamed(["float4send"], overload([FLOAT], BYTES, sending(4))),
  ...functionsNamed(["float8send"], overload([DOUBLE], BYTES, sending(8))),
  ...functionsNamed(
    ["convert_to"],
    overload([TEXT, TEXT], BYTES, ([text = null, encoding = null]) => {
      checkUtf8(encoding as string);
      return new Uint8Array(bytesOf(text));
    }),
  ),
  ...functionsNamed(["convert_from"], overload([BYTES, TEXT], TEXT, convertFrom)),
];
