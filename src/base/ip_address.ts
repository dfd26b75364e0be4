/**
 * Parses IP addresses and ranges.
 *
 * An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) is treated as the IPv4 address, so that a rule
 * cannot be bypassed by writing an address in the other form.
 */
import { BlockList, isIPv4, isIPv6 } from "node:net";
import { DatabaseError } from "./errors.ts";

/** All addresses that share the first `prefixBits` bits of `address`. */
export interface IpRange {
  /** An IP address in its canonical form. */
  readonly address: string;
  readonly prefixBits: number;
}

const MAPPED = "0:0:0:0:0:ffff:";
const MAPPED_BITS = 96;
const IPV6_GROUPS = 8;

/**
 * Parses an IP address without a port, brackets or a zone. Returns its canonical form, dotted for
 * IPv4 and eight uncompressed groups for IPv6; undefined if the text is not an address.
 */
export function ipFromText(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const groups = groupsOf(text);
  if (!groups.startsWith(MAPPED)) return groups;
  const [high = 0, low = 0] = groups
    .slice(MAPPED.length)
    .split(":")
    .map((group) => Number.parseInt(group, 16));
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** Returns all groups of an IPv6 address, including those that `::` omits. */
function groupsOf(ipv6: string): string {
  // The URL parser writes every IPv6 address in the same way: hexadecimal groups in lower case,
  // without leading zeros.
  const { hostname } = new URL(`http://[${ipv6}]`);
  const [head = "", tail] = hostname.slice(1, -1).split("::");
  if (tail === undefined) return head;
  const before = head === "" ? [] : head.split(":");
  const after = tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: IPV6_GROUPS - before.length - after.length }, () => "0");
  return [...before, ...zeros, ...after].join(":");
}

/**
 * Parses an IP address, or a range written as `address/bits`. Returns undefined if the text is
 * neither.
 */
export function rangeFromText(text: string): IpRange | undefined {
  const [addressText = "", bitsText, ...others] = text.split("/");
  const address = ipFromText(addressText);
  if (address === undefined || others.length > 0) return undefined;
  const bits = address.includes(":") ? 128 : 32;
  if (bitsText === undefined) return { address, prefixBits: bits };
  if (!/^\d{1,3}$/.test(bitsText)) return undefined;
  // The bit count of a range that is written as an IPv4-mapped address refers to the IPv6 form.
  const isMapped = bits === 32 && addressText.includes(":");
  const prefixBits = Number(bitsText) - (isMapped ? MAPPED_BITS : 0);
  return prefixBits < 0 || prefixBits > bits ? undefined : { address, prefixBits };
}

/** A set of IP address ranges. No IPv6 range contains an IPv4 address, not even `::/0`. */
export class IpRanges {
  readonly #ipv4 = new BlockList();
  readonly #ipv6 = new BlockList();

  constructor(ranges: readonly IpRange[]) {
    for (const { address, prefixBits } of ranges) {
      if (address.includes(":")) this.#ipv6.addSubnet(address, prefixBits, "ipv6");
      else this.#ipv4.addSubnet(address, prefixBits, "ipv4");
    }
  }

  /**
   * Returns whether any of the ranges contains an address.
   *
   * @param address An address in canonical form.
   */
  has(address: string): boolean {
    return address.includes(":")
      ? this.#ipv6.check(address, "ipv6")
      : this.#ipv4.check(address, "ipv4");
  }
}

/**
 * Parses a list of IP address ranges from the configuration.
 * @throws {DatabaseError} INVALID_OPTION, with a message that names the configuration key.
 */
export function rangesFrom(key: string, texts: readonly string[]): IpRanges {
  return new IpRanges(
    texts.map((text) => {
      const range = rangeFromText(text);
      if (range !== undefined) return range;
      throw new DatabaseError(
        "INVALID_OPTION",
        `Cannot read ${key}: "${text}" must be an IP address or a range such as 10.0.0.0/8`,
      );
    }),
  );
}

/**
 * Returns whether an IP address belongs to the loopback interface.
 *
 * @param address An address in canonical form.
 */
export function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "0:0:0:0:0:0:0:1";
}

/**
 * Returns whether a host can be reached only from this machine.
 *
 * @param host A host name or an IP address.
 */
export function isLoopbackHost(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (bare === "localhost" || bare === "::1" || bare === "0:0:0:0:0:0:0:1") return true;
  return /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(bare);
}
