/**
 * Who is calling, and whether the call comes from this machine.
 *
 *     peer is no trusted proxy   address = peer; a forwarding header is not believed, but its
 *                                presence makes the request non-local and bars address lists:
 *                                behind a proxy that nobody named all clients are one address
 *     peer is a trusted proxy    the first present of Forwarded, X-Forwarded-For, X-Real-IP: from
 *                                the right, the first address that is no trusted proxy, the
 *                                leftmost if all are; unreadable: non-local, keyed by peer. Local
 *                                only if the others say so, too: a proxy that writes one of them
 *                                hands on what its client wrote into another
 *
 * Local-only endpoints also ask for a Host that a web page elsewhere cannot have resolved to us.
 */
import {
  type IpBytes,
  type IpRange,
  ipFromText,
  isInRanges,
  isLoopback,
  textFromIp,
} from "./ip_address.ts";

export interface Origin {
  /** One text for each client; keys limits and lock-outs. */
  readonly address: string;
  readonly isLocal: boolean;
  /** Absent when the peer's address or what a proxy said about it could not be read. */
  readonly ip: IpBytes | undefined;
  /** A forwarding header came that is not believed: address lists do not apply. */
  readonly isForwardingDoubtful: boolean;
  /** The name of a forwarding header sent by a peer that is not a trusted proxy. */
  readonly strangersHeader?: string;
}

/** The part of `Headers` that is read here. */
export interface HeaderReader {
  get(name: string): string | null;
  /** In lower case. */
  keys(): Iterable<string>;
}

/** Finds the client behind a request. `peer` is the TCP peer as the runtime writes it. */
export function originOf(
  peer: string,
  headers: HeaderReader,
  trustedProxies: readonly IpRange[],
): Origin {
  const peerIp = ipFromText(peer);
  if (peerIp === undefined) return doubtful(peer);
  const peerText = textFromIp(peerIp);
  const chains = forwardedChains(headers);
  const [first] = chains;
  const sign = forwardingHeader(headers);
  if (sign === undefined) return believed(peerIp, peerText);
  if (!isInRanges(peerIp, trustedProxies)) {
    return {
      address: peerText,
      ip: peerIp,
      isLocal: false,
      isForwardingDoubtful: true,
      strangersHeader: sign,
    };
  }
  // The proxy does not name its client.
  if (first === undefined) return { ...believed(peerIp, peerText), isLocal: false };
  const client = clientOf(first, trustedProxies);
  if (client === undefined) return doubtful(peerText);
  const origin = believed(client, textFromIp(client));
  const isLocal = origin.isLocal && chains.every((chain) => isLocalChain(chain, trustedProxies));
  return { ...origin, isLocal };
}

/** Whether the request reached us over https, directly or by a trusted proxy's word. */
export function isSecureRequest(
  url: string,
  peer: string,
  headers: HeaderReader,
  trustedProxies: readonly IpRange[],
): boolean {
  if (url.startsWith("https:")) return true;
  const peerIp = ipFromText(peer);
  if (peerIp === undefined || !isInRanges(peerIp, trustedProxies)) return false;
  const forwarded = headers.get("forwarded");
  if (forwarded !== null) return /(?:^|[;,\s])proto="?https"?(?:$|[;,\s])/i.test(forwarded);
  const protocols = headers.get("x-forwarded-proto")?.split(",") ?? [];
  return (protocols.at(-1) ?? "").trim().toLowerCase() === "https";
}

/** Whether `Host` is an IP literal, `localhost` or one of `allowedHosts` (lower case). */
export function isHostAllowed(host: string | null, allowedHosts: ReadonlySet<string>): boolean {
  if (host === null) return false;
  const name = hostNameOf(host).toLowerCase();
  if (name === "localhost" || allowedHosts.has(name)) return true;
  return ipFromText(name) !== undefined;
}

/** A Host header without its port; brackets of an IPv6 literal are taken off. */
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

function believed(ip: IpBytes, address: string): Origin {
  return { address, ip, isLocal: isLoopback(ip), isForwardingDoubtful: false };
}

function doubtful(address: string): Origin {
  return { address, ip: undefined, isLocal: false, isForwardingDoubtful: true };
}

/** The first header that only a proxy sends; undefined if there is none. */
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

/** The chain that each forwarding header tells, in its order; the one that decides comes first. */
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

function isLocalChain(chain: readonly string[], trustedProxies: readonly IpRange[]): boolean {
  const client = clientOf(chain, trustedProxies);
  return client !== undefined && isLoopback(client);
}

/** The `for` value of one element of a Forwarded header; empty when it has none. */
function forOf(element: string): string {
  for (const pair of element.split(";")) {
    const equals = pair.indexOf("=");
    if (equals < 0 || pair.slice(0, equals).trim().toLowerCase() !== "for") continue;
    // By hand: anyone may send this, and a pattern tries each part of a run of blanks again.
    return unquoted(pair.slice(equals + 1).trim());
  }
  return "";
}

function unquoted(text: string): string {
  const isQuoted = text.length >= 2 && text.startsWith('"') && text.endsWith('"');
  return isQuoted ? text.slice(1, -1) : text;
}

function clientOf(
  chain: readonly string[],
  trustedProxies: readonly IpRange[],
): IpBytes | undefined {
  let client: IpBytes | undefined;
  for (let index = chain.length - 1; index >= 0; index -= 1) {
    client = ipFromText(hostNameOf((chain[index] ?? "").trim())) ?? bareIp(chain[index] ?? "");
    if (client === undefined) return undefined;
    if (!isInRanges(client, trustedProxies)) return client;
  }
  return client;
}

/** An IPv6 address as X-Forwarded-For writes it: without brackets, so without a port. */
function bareIp(text: string): IpBytes | undefined {
  return ipFromText(text.trim());
}
