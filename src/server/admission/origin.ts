/**
 * Determines the client's address, and whether the request comes from this machine.
 *
 *     peer is not a trusted proxy   address = peer; a forwarding header is not trusted, but its
 *                                presence makes the request non-local and disables address lists:
 *                                behind an unconfigured proxy, all clients share one address
 *     peer is a trusted proxy    the first present of Forwarded, X-Forwarded-For, X-Real-IP: from
 *                                the right, the first address that is not a trusted proxy, or the
 *                                leftmost if all are; if unreadable: non-local, keyed by peer. Local
 *                                only if the other headers agree: a proxy that sets one of them
 *                                passes on whatever its client has put into another
 *
 * Endpoints for local callers also check Host, because the owner of a web page served from
 * elsewhere can make the page's domain name resolve to this machine.
 */
import { type IpRanges, ipFromText, isLoopback } from "../../base/ip_address.ts";
import type { Log } from "../../base/log.ts";

export interface Origin {
  /** The client's address in canonical form, used as the key for rate limits and lock-outs. */
  readonly address: string;
  readonly isLocal: boolean;
  /**
   * The client's IP address; undefined if the peer's address, or the address reported by a proxy,
   * could not be parsed.
   */
  readonly ip: string | undefined;
  /** Whether an untrusted peer sent a forwarding header. If so, address lists do not apply. */
  readonly isForwardingDoubtful: boolean;
  /** The name of the forwarding header that an untrusted peer sent; absent if it sent none. */
  readonly strangersHeader?: string;
}

/** The methods of `Headers` that this file uses. */
export interface HeaderReader {
  get(name: string): string | null;
  /** Yields the names of the headers in lower case. */
  keys(): Iterable<string>;
}

/** Finds the client of a request. `peer` is the TCP peer as formatted by the runtime. */
export function originOf(peer: string, headers: HeaderReader, trustedProxies: IpRanges): Origin {
  const peerIp = ipFromText(peer);
  if (peerIp === undefined) return doubtful(peer);
  const chains = forwardedChains(headers);
  const [first] = chains;
  const sign = forwardingHeader(headers);
  if (sign === undefined) return believed(peerIp);
  if (!trustedProxies.has(peerIp)) {
    return {
      address: peerIp,
      ip: peerIp,
      isLocal: false,
      isForwardingDoubtful: true,
      strangersHeader: sign,
    };
  }
  // The proxy sent no forwarding header, so its client is unknown.
  if (first === undefined) return { ...believed(peerIp), isLocal: false };
  const client = clientOf(first, trustedProxies);
  if (client === undefined) return doubtful(peerIp);
  const origin = believed(client);
  const isLocal = origin.isLocal && chains.every((chain) => isLocalChain(chain, trustedProxies));
  return { ...origin, isLocal };
}

/**
 * Returns whether the request came over https, either directly or according to a trusted proxy.
 */
export function isSecureRequest(
  url: string,
  peer: string,
  headers: HeaderReader,
  trustedProxies: IpRanges,
): boolean {
  if (url.startsWith("https:")) return true;
  const peerIp = ipFromText(peer);
  if (peerIp === undefined || !trustedProxies.has(peerIp)) return false;
  const forwarded = headers.get("forwarded");
  if (forwarded !== null) return /(?:^|[;,\s])proto="?https"?(?:$|[;,\s])/i.test(forwarded);
  const protocols = headers.get("x-forwarded-proto")?.split(",") ?? [];
  return (protocols.at(-1) ?? "").trim().toLowerCase() === "https";
}

/** Returns whether `Host` is an IP literal, `localhost` or one of `allowedHosts` (lower case). */
export function isHostAllowed(host: string | null, allowedHosts: ReadonlySet<string>): boolean {
  if (host === null) return false;
  const name = hostNameOf(host).toLowerCase();
  if (name === "localhost" || allowedHosts.has(name)) return true;
  return ipFromText(name) !== undefined;
}

/** Returns the host in a Host header, without the port or the brackets of an IPv6 literal. */
function hostNameOf(host: string): string {
  if (host.startsWith("[")) {
    const end = host.indexOf("]");
    const rest = host.slice(end + 1);
    return end > 0 && /^(?::\d*)?$/.test(rest) ? host.slice(1, end) : "";
  }
  const colon = host.indexOf(":");
  if (colon < 0) return host;
  return /^\d*$/.test(host.slice(colon + 1)) ? host.slice(0, colon) : "";
}

function believed(ip: string): Origin {
  return { address: ip, ip, isLocal: isLoopback(ip), isForwardingDoubtful: false };
}

function doubtful(address: string): Origin {
  return { address, ip: undefined, isLocal: false, isForwardingDoubtful: true };
}

/**
 * Returns the name of the first header that only proxies send; undefined if the request has none.
 */
function forwardingHeader(headers: HeaderReader): string | undefined {
  for (const name of headers.keys()) {
    if (FORWARDING.has(name) || name.startsWith("x-forwarded-")) return name;
  }
  return undefined;
}

const FORWARDING: ReadonlySet<string> = new Set([
  "forwarded",
  "via",
  "x-real-ip",
  "cf-connecting-ip",
  "true-client-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-envoy-external-address",
  "x-original-forwarded-for",
  "x-original-host",
  "x-proxyuser-ip",
  "fastly-client-ip",
  "fly-client-ip",
  "cf-connecting-ipv6",
  "cdn-loop",
]);

/** Returns the chain of addresses in each forwarding header, in order of precedence. */
function forwardedChains(headers: HeaderReader): readonly (readonly string[])[] {
  const chains: (readonly string[])[] = [];
  const forwarded = headers.get("forwarded");
  if (forwarded !== null) chains.push(forwarded.split(",").map(forOf));
  const xForwardedFor = headers.get("x-forwarded-for");
  if (xForwardedFor !== null) chains.push(xForwardedFor.split(","));
  const xRealIp = headers.get("x-real-ip");
  if (xRealIp !== null) chains.push([xRealIp]);
  return chains;
}

function isLocalChain(chain: readonly string[], trustedProxies: IpRanges): boolean {
  const client = clientOf(chain, trustedProxies);
  return client !== undefined && isLoopback(client);
}

/**
 * Returns the value of `for` in an element of a Forwarded header; empty if the element has no
 * `for`.
 */
function forOf(element: string): string {
  for (const pair of element.split(";")) {
    const equals = pair.indexOf("=");
    if (equals < 0 || pair.slice(0, equals).trim().toLowerCase() !== "for") continue;
    // The header is parsed by hand: it may come from anyone, and a regular expression would
    // backtrack over whitespace.
    return unquoted(pair.slice(equals + 1).trim());
  }
  return "";
}

function unquoted(text: string): string {
  const isQuoted = text.length >= 2 && text.startsWith('"') && text.endsWith('"');
  return isQuoted ? text.slice(1, -1) : text;
}

function clientOf(chain: readonly string[], trustedProxies: IpRanges): string | undefined {
  let client: string | undefined;
  for (let index = chain.length - 1; index >= 0; index -= 1) {
    client = ipFromText(hostNameOf((chain[index] ?? "").trim())) ?? bareIp(chain[index] ?? "");
    if (client === undefined) return undefined;
    if (!trustedProxies.has(client)) return client;
  }
  return client;
}

/**
 * Parses an IPv6 address as written in X-Forwarded-For: without brackets, and therefore without a
 * port.
 */
function bareIp(text: string): string | undefined {
  return ipFromText(text.trim());
}

/**
 * The maximum number of addresses that are warned about. It is limited because any client can send
 * a forwarding header.
 */
const ADDRESSES_MAX = 10;

/**
 * Creates a function that warns about proxies missing from the configuration, once per address and
 * only for a limited number of addresses. All clients behind such a proxy appear to share one
 * address, so one client's failed logins lock the name for all of them.
 */
export function strangersWarning(log: Log): (address: string, header: string) => void {
  const told = new Set<string>();
  return (address, header) => {
    if (told.size >= ADDRESSES_MAX || told.has(address)) return;
    told.add(address);
    log.warn(
      "requests arrive through a proxy that is not listed in security.trusted_proxies, so all " +
        "of its clients count as a single address, and none as local",
      { address, header, set: `security.trusted_proxies = ["${address}"]` },
    );
  };
}
