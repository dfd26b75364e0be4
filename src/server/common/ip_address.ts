/**
 * IP addresses and ranges, compared by their bytes.
 *
 * An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) is the IPv4 address, so that a rule about one
 * cannot be passed by writing it as the other.
 */
import { DatabaseError } from "../../base/errors.ts";

/** 4 or 16 bytes. */
export type IpBytes = readonly number[];

/** The addresses that share their first `prefixBits` bits with `bytes`. */
export interface IpRange {
  readonly bytes: IpBytes;
  readonly prefixBits: number;
}

const IPV4_LOOPBACK: IpRange = { bytes: [127, 0, 0, 0], prefixBits: 8 };
const IPV6_LOOPBACK: IpRange = {
  bytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
  prefixBits: 128,
};

/** Reads an address without port, brackets or zone; undefined when it is none. */
export function ipFromText(text: string): IpBytes | undefined {
  if (text.includes(":")) return unmapped(ipv6FromText(text));
  return ipv4FromText(text);
}

/** Reads an address or `address/bits`; undefined when it is neither. */
export function rangeFromText(text: string): IpRange | undefined {
  const slash = text.indexOf("/");
  if (slash < 0) {
    const bytes = ipFromText(text);
    return bytes === undefined ? undefined : { bytes, prefixBits: bytes.length * 8 };
  }
  const bytes = ipFromText(text.slice(0, slash));
  const bitsText = text.slice(slash + 1);
  if (bytes === undefined || !/^\d{1,3}$/.test(bitsText)) return undefined;
  // A range written over mapped addresses counts its bits from the IPv6 form.
  const isMapped = bytes.length === 4 && text.includes(":");
  const prefixBits = Number(bitsText) - (isMapped ? 96 : 0);
  if (prefixBits < 0 || prefixBits > bytes.length * 8) return undefined;
  return { bytes, prefixBits };
}

/**
 * The ranges of a list in the configuration.
 * @throws {DatabaseError} INVALID_OPTION, naming the key.
 */
export function rangesFrom(key: string, texts: readonly string[]): readonly IpRange[] {
  return texts.map((text) => {
    const range = rangeFromText(text);
    if (range !== undefined) return range;
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot read ${key}: "${text}" should be an address or a range like 10.0.0.0/8`,
    );
  });
}

export function isInRange(address: IpBytes, range: IpRange): boolean {
  if (address.length !== range.bytes.length) return false;
  let bits = range.prefixBits;
  for (let index = 0; bits > 0; index += 1, bits -= 8) {
    const mask = bits >= 8 ? 0xff : (0xff << (8 - bits)) & 0xff;
    const difference = (address[index] ?? 0) ^ (range.bytes[index] ?? 0);
    if ((difference & mask) !== 0) return false;
  }
  return true;
}

export function isInRanges(address: IpBytes, ranges: readonly IpRange[]): boolean {
  for (const range of ranges) {
    if (isInRange(address, range)) return true;
  }
  return false;
}

export function isLoopback(address: IpBytes): boolean {
  return isInRange(address, address.length === 4 ? IPV4_LOOPBACK : IPV6_LOOPBACK);
}

/** One text for each address: dotted for IPv4, eight plain groups for IPv6. */
export function textFromIp(address: IpBytes): string {
  if (address.length === 4) return address.join(".");
  const groups: string[] = [];
  for (let index = 0; index < 16; index += 2) {
    groups.push((((address[index] ?? 0) << 8) | (address[index + 1] ?? 0)).toString(16));
  }
  return groups.join(":");
}

function ipv4FromText(text: string): IpBytes | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  const bytes: number[] = [];
  for (const part of parts) {
    // A leading zero means octal to some readers: refused rather than read two ways.
    if (!/^(?:0|[1-9]\d{0,2})$/.test(part)) return undefined;
    const byte = Number(part);
    if (byte > 255) return undefined;
    bytes.push(byte);
  }
  return bytes;
}

function ipv6FromText(text: string): IpBytes | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = groupsFromText(halves[0] ?? "");
  if (head === undefined) return undefined;
  if (halves.length === 1) return head.length === 16 ? head : undefined;
  const tail = groupsFromText(halves[1] ?? "");
  if (tail === undefined || head.length + tail.length > 14) return undefined;
  const zeros = Array.from({ length: 16 - head.length - tail.length }, () => 0);
  return [...head, ...zeros, ...tail];
}

/** Bytes of colon-separated groups, the last of which may be a dotted IPv4 address. */
function groupsFromText(text: string): number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const groups = text.split(":");
  for (const [index, group] of groups.entries()) {
    if (group.includes(".")) {
      const last = ipv4FromText(group);
      if (last === undefined || index !== groups.length - 1) return undefined;
      bytes.push(...last);
      continue;
    }
    if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
    const value = Number.parseInt(group, 16);
    bytes.push(value >> 8, value & 0xff);
  }
  return bytes;
}

function unmapped(bytes: IpBytes | undefined): IpBytes | undefined {
  if (bytes === undefined || bytes.length !== 16) return undefined;
  for (let index = 0; index < 10; index += 1) {
    if (bytes[index] !== 0) return bytes;
  }
  return bytes[10] === 0xff && bytes[11] === 0xff ? bytes.slice(12) : bytes;
}
