/**
 * Implements the types MACADDR and MACADDR8: hardware addresses of 6 and 8 bytes.
 *
 * A value is its own text, such as `08:00:2b:01:02:03`. These strings sort like the bytes.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";

export type HardwareKind = "macaddr" | "macaddr8";

/**
 * The text forms of a MACADDR. A byte may be written with a single digit only if the separator is
 * `:` or `-`.
 */
const MAC_FORMS: readonly RegExp[] = [
  /^([0-9a-f]{1,2}):([0-9a-f]{1,2}):([0-9a-f]{1,2}):([0-9a-f]{1,2}):([0-9a-f]{1,2}):([0-9a-f]{1,2})$/i,
  /^([0-9a-f]{1,2})-([0-9a-f]{1,2})-([0-9a-f]{1,2})-([0-9a-f]{1,2})-([0-9a-f]{1,2})-([0-9a-f]{1,2})$/i,
  /^([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})[:-]([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i,
  /^([0-9a-f]{2})([0-9a-f]{2})([.-])([0-9a-f]{2})([0-9a-f]{2})\3([0-9a-f]{2})([0-9a-f]{2})$/i,
  /^([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i,
];

/** Matches a MACADDR8. The same separator may appear between any two bytes. */
const MAC8_FORM = /^[0-9a-f]{2}(?:([:.-]?)[0-9a-f]{2})(?:[:.-]?[0-9a-f]{2})*$/i;

/** Parses a MAC address, and returns its canonical text. @throws {DatabaseError} INVALID_VALUE */
export function hardwareFromText(kind: HardwareKind, text: string): string {
  const trimmed = text.trim();
  const bytes = kind === "macaddr" ? macBytes(trimmed) : mac8Bytes(trimmed);
  if (bytes === undefined) {
    const example = kind === "macaddr" ? "08:00:2b:01:02:03" : "08:00:2b:01:02:03:04:05";
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as ${kind}: expected an address such as ${example}`,
    );
  }
  return hardwareValue(bytes);
}

function macBytes(text: string): number[] | undefined {
  const match = MAC_FORMS.map((form) => form.exec(text)).find((found) => found !== null);
  const digits = match?.slice(1).filter((part) => /^[0-9a-f]+$/i.test(part));
  return digits?.map((each) => Number.parseInt(each, 16));
}

/**
 * Parses the 8 bytes of an address. If the text has only 6 bytes, FF and FE are inserted in the
 * middle.
 */
function mac8Bytes(text: string): number[] | undefined {
  if (!MAC8_FORM.test(text)) return undefined;
  if (new Set(text.replaceAll(/[0-9a-f]/gi, "")).size > 1) return undefined;
  const pairs = text.replaceAll(/[^0-9a-f]/gi, "").match(/../g) ?? [];
  const bytes = pairs.map((pair) => Number.parseInt(pair, 16));
  if (bytes.length === 8) return bytes;
  return bytes.length === 6 ? [...bytes.slice(0, 3), 0xff, 0xfe, ...bytes.slice(3)] : undefined;
}

export function hardwareBytes(value: string): number[] {
  return value.split(":").map((pair) => Number.parseInt(pair, 16));
}

export function hardwareValue(bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

/** Converts a 6-byte hardware address to an 8-byte address. */
export function mac8OfMac(value: string): string {
  return `${value.slice(0, 8)}:ff:fe:${value.slice(9)}`;
}

/**
 * Converts an 8-byte hardware address to a 6-byte address. @throws {DatabaseError}
 * VALUE_OUT_OF_RANGE
 */
export function macOfMac8(value: string): string {
  if (value.slice(9, 14) === "ff:fe") return `${value.slice(0, 8)}:${value.slice(15)}`;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot convert ${value} to macaddr: its fourth and fifth bytes must be ff and fe`,
  );
}
