/**
 * Implements the types INET and CIDR: an IPv4 or IPv6 address with the length of its network
 * prefix.
 *
 * A value is an ASCII string. Such strings sort like addresses in PostgreSQL: by family, by
 * network, by prefix length, and by the address within the network.
 *
 *     4 0a010000 10 0a010203      10.1.2.3/16
 *     │ ───┬──── ┬  ───┬────
 *     │ network  │  address, omitted if it is the first one of its network
 *   family     length
 *
 * An IPv6 address has 32 hexadecimal digits instead of 8. A CIDR value is the first address of its
 * network.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";

export type InetKind = "inet" | "cidr";

export interface InetAddress {
  readonly family: 4 | 6;
  readonly address: bigint;
  /** The length of the network prefix in bits. */
  readonly length: number;
}

/** Returns the number of bits in an address of the given family. */
export function inetWidth(family: 4 | 6): number {
  return family === 4 ? 32 : 128;
}

/** Returns a mask that covers the network prefix. */
export function inetMask({ family, length }: Omit<InetAddress, "address">): bigint {
  const width = inetWidth(family);
  return ((1n << BigInt(width)) - 1n) ^ ((1n << BigInt(width - length)) - 1n);
}

export function inetNetwork(inet: InetAddress): bigint {
  return inet.address & inetMask(inet);
}

export function inetValue(inet: InetAddress): string {
  const { address, family, length } = inet;
  const digits = inetWidth(family) / 4;
  const hex = (number: bigint): string => number.toString(16).padStart(digits, "0");
  const network = inetNetwork(inet);
  const within = network === address ? "" : hex(address);
  return `${family}${hex(network)}${length.toString(16).padStart(2, "0")}${within}`;
}

export function inetOfValue(value: string): InetAddress {
  const family = value.startsWith("4") ? 4 : 6;
  const end = 1 + inetWidth(family) / 4;
  const address = value.length > end + 2 ? value.slice(end + 2) : value.slice(1, end);
  return {
    family,
    address: BigInt(`0x${address}`),
    length: Number.parseInt(value.slice(end, end + 2), 16),
  };
}

/**
 * Parses a network address, and returns its canonical text.
 * @throws {DatabaseError} INVALID_VALUE
 */
export function inetFromText(kind: InetKind, text: string): string {
  const trimmed = text.trim();
  const [written = "", length, ...more] = trimmed.split("/");
  const isLength = length === undefined || /^\d{1,3}$/.test(length);
  const inet =
    more.length > 0 || !isLength
      ? undefined
      : written.includes(":")
        ? ipv6From(written, length)
        : ipv4From(kind, written, length);
  if (inet === undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as ${kind}: expected an address such as 10.1.2.3, 10.1.2.0/24 or 2001:db8::1`,
    );
  }
  if (kind === "cidr" && inetNetwork(inet) !== inet.address) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as cidr: the bits after its network prefix must be 0`,
      { hint: "use INET, which accepts any address within a network" },
    );
  }
  return inetValue(inet);
}

/**
 * Parses an IPv4 address of up to four numbers. An INET with fewer than four numbers must specify
 * the length of its network prefix.
 */
function ipv4From(
  kind: InetKind,
  written: string,
  length: string | undefined,
): InetAddress | undefined {
  const octets = written.split(".");
  if (octets.length > 4 || !octets.every((each) => /^\d{1,10}$/.test(each) && Number(each) < 256)) {
    return undefined;
  }
  const given = length === undefined ? undefined : Number(length);
  if (given === undefined && kind === "inet" && octets.length < 4) return undefined;
  const bits =
    given ?? (kind === "inet" ? 32 : Math.max(classBits(Number(octets[0])), 8 * octets.length));
  // An INET must contain all bytes of its network prefix.
  if (bits > 32 || (kind === "inet" && Math.floor(bits / 8) > octets.length)) return undefined;
  const bytes = [0, 1, 2, 3].map((index) => BigInt(octets[index] ?? "0"));
  const address = bytes.reduce((sum, byte) => (sum << 8n) | byte, 0n);
  return { family: 4, address, length: bits };
}

/**
 * Returns the prefix length of an IPv4 network written without a prefix length, based on the class
 * of its first byte.
 */
function classBits(first: number): number {
  if (first >= 240) return 32;
  if (first >= 224) return first === 224 ? 4 : 8;
  if (first >= 192) return 24;
  return first >= 128 ? 16 : 8;
}

function ipv6From(written: string, length: string | undefined): InetAddress | undefined {
  const bits = length === undefined ? 128 : Number(length);
  const [head = "", tail, ...more] = written.split("::");
  if (bits > 128 || more.length > 0) return undefined;
  const before = groupsOf(head);
  const behind = tail === undefined ? [] : groupsOf(tail);
  if (before === undefined || behind === undefined) return undefined;
  const missing = 8 - before.length - behind.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...before, ...Array.from({ length: missing }, () => 0), ...behind];
  const address = groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
  return { family: 6, address, length: bits };
}

/**
 * Reads the 16-bit groups of an IPv6 address. The last two groups may be written as an IPv4
 * address.
 */
function groupsOf(written: string): number[] | undefined {
  if (written === "") return [];
  const groups: number[] = [];
  const words = written.split(":");
  for (const [index, word] of words.entries()) {
    if (index === words.length - 1 && word.includes(".")) {
      const ipv4 = word.split(".").length === 4 ? ipv4From("inet", word, undefined) : undefined;
      if (ipv4 === undefined) return undefined;
      groups.push(Number(ipv4.address >> 16n), Number(ipv4.address & 0xffffn));
    } else if (/^[0-9a-f]{1,4}$/i.test(word)) groups.push(Number.parseInt(word, 16));
    else return undefined;
  }
  return groups.length > 8 ? undefined : groups;
}

/**
 * Returns the text of an INET or CIDR value. The prefix length is omitted for an INET that is a
 * single address.
 */
export function textFromInet(kind: InetKind, value: string): string {
  const inet = inetOfValue(value);
  const isWhole = kind === "inet" && inet.length === inetWidth(inet.family);
  return isWhole ? hostText(inet) : `${hostText(inet)}/${inet.length}`;
}

/** Returns the text of the address without its prefix length. */
export function hostText({ address, family }: InetAddress): string {
  if (family === 4) {
    return [24n, 16n, 8n, 0n].map((shift) => (address >> shift) & 0xffn).join(".");
  }
  const groups = groupsOfAddress(address);
  const { start, length } = longestZeros(groups);
  const isIpv4 =
    start === 0 &&
    (length === 6 || (length === 7 && groups[7] !== 1) || (length === 5 && groups[5] === 0xffff));
  if (isIpv4) {
    const rest = hostText({ address: address & 0xffffffffn, family: 4, length: 32 });
    return length === 5 ? `::ffff:${rest}` : `::${rest}`;
  }
  const words = groups.map((group) => group.toString(16));
  if (length < 2) return words.join(":");
  return `${words.slice(0, start).join(":")}::${words.slice(start + length).join(":")}`;
}

/** Returns the 16-bit groups of an IPv6 address. */
function groupsOfAddress(address: bigint): number[] {
  return [112n, 96n, 80n, 64n, 48n, 32n, 16n, 0n].map((shift) =>
    Number((address >> shift) & 0xffffn),
  );
}

/**
 * Finds the longest run of zero groups in an IPv6 address, or the first of several equally long
 * runs.
 */
function longestZeros(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start += 1) {
    let length = 0;
    while (groups[start + length] === 0) length += 1;
    if (length > best.length) best = { start, length };
  }
  return best;
}

/** Returns the text of a CIDR without the bytes after its network prefix: `10.1/16`, `1:2/32`. */
export function abbreviatedCidr(value: string): string {
  const inet = inetOfValue(value);
  const { address, family, length } = inet;
  if (family === 4) {
    const octets = hostText(inet).split(".");
    return `${octets.slice(0, Math.max(1, Math.ceil(length / 8))).join(".")}/${length}`;
  }
  if (length === 0) return "::/0";
  const count = Math.max(2, Math.ceil(length / 16));
  const groups = groupsOfAddress(address).slice(0, count);
  const { start, length: zeros } = longestZeros(groups);
  // An IPv6 address written with an IPv4 address at its end is not abbreviated.
  if (start === 0 && zeros >= 5 && zeros < count) return `${hostText(inet)}/${length}`;
  const words = groups.map((group) => group.toString(16));
  if (zeros === 0) return `${words.join(":")}/${length}`;
  const head = words.slice(0, start).join(":");
  return `${head}::${words.slice(start + zeros).join(":")}/${length}`;
}
