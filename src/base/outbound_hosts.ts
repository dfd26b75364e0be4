/**
 * Decides to which hosts the server may open connections, based on a list in the configuration.
 *
 * - The list may contain host names, `*.` followed by the end of a host name, addresses, and
 *   ranges of addresses.
 * - The addresses of a listed name come from the DNS, which others may control. An address that is
 *   not public must therefore be listed itself, no matter which name resolves to it. Listing
 *   `localhost` also permits the loopback addresses.
 */
import { type IpRange, IpRanges, ipFromText, isLoopback, rangeFromText } from "./ip_address.ts";

const NAME =
  /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/i;

/** Matches a host name whose last label is a number. Such a name would be parsed as an address. */
const ENDS_IN_NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/i;

/**
 * The addresses that do not belong to a single host on the public network: loopback, private,
 * shared and link-local addresses, multicast groups, addresses for documentation and tests, and
 * IPv6 addresses that embed an IPv4 address.
 */
const SPECIAL = new IpRanges(
  [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    // The address at which Azure machines reach Azure services, including the metadata service.
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
    "::/3",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/2",
    "8000::/1",
  ].flatMap((text) => rangeFromText(text) ?? []),
);

/** Returns whether a string is a valid entry of the configured list of hosts. */
export function isOutboundHost(text: string): boolean {
  if (rangeFromText(text) !== undefined) return true;
  return NAME.test(text) && !ENDS_IN_NUMBER.test(text);
}

export class OutboundHosts {
  readonly #names = new Set<string>();
  /** The suffixes that listed host names may end with, each with a leading dot. */
  readonly #ends: string[] = [];
  readonly #ranges: IpRanges;

  /**
   * Creates the set of hosts to which the server may send requests.
   * @param listed Strings that {@linkcode isOutboundHost} accepts.
   */
  constructor(listed: readonly string[]) {
    const ranges: IpRange[] = [];
    for (const text of listed) {
      const range = rangeFromText(text);
      const name = text.toLowerCase();
      if (range !== undefined) ranges.push(range);
      else if (name.startsWith("*.")) this.#ends.push(name.slice(1));
      else this.#names.add(name);
    }
    this.#ranges = new IpRanges(ranges);
  }

  /**
   * Returns whether the server may connect to a host. @param host A result of {@linkcode hostOf}.
   */
  permits(host: string): boolean {
    const address = ipFromText(host);
    if (address !== undefined) return this.#ranges.has(address);
    return this.#names.has(host) || this.#ends.some((end) => host.endsWith(end));
  }

  /**
   * Returns whether the server may reach a listed host at an address.
   *
   * @param text An address returned by the DNS.
   */
  permitsAddress(text: string, host: string): boolean {
    const address = ipFromText(text);
    if (address === undefined) return false;
    if (this.#ranges.has(address) || !SPECIAL.has(address)) return true;
    return host === "localhost" && this.#names.has(host) && isLoopback(address);
  }
}

/**
 * Makes all requests from this process connect directly to their hosts. Otherwise, the runtime
 * would send them to a proxy named in the environment, which would connect on the server's behalf.
 * The runtime has no such option for a single request.
 */
export function ignoreProxies(): void {
  for (const name of ["NO_PROXY", "no_proxy"]) process.env[name] = "*";
}

/** Returns the host of a URL in lower case, without brackets and without a trailing dot. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}
