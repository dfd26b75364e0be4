/**
 * Represents one HTTP request while the server handles it. Most properties are computed on first
 * use, because the fast path needs few of them.
 */
import type { Caller } from "../../auth/mod.ts";
import { type Clock, shownMs } from "../../base/clock.ts";
import { type IpRanges, ipFromText } from "../../base/ip_address.ts";
import type { Random } from "../../base/random.ts";
import type { Peer } from "../../base/received_bytes.ts";
import { basePathFrom, pathBelow } from "../admission/base_path.ts";
import { isHostAllowed, isSecureRequest, type Origin, originOf } from "../admission/origin.ts";

/** The address reported for a connection that is already closed. */
const PEER_UNKNOWN = "unknown";

const HOST_FORM = /^[A-Za-z0-9._~%:[\]-]*$/;

const REQUEST_ID_FORM = /^[A-Za-z0-9._:-]{1,128}$/;

/** The query parameters in which other servers accept a token. */
const TOKEN_IN_QUERY = /(?:^|&)(?:token|access_token|auth|authorization|bearer|jwt|api_?key|key)=/i;

/** How many seconds a client has to read the rest of the response once the server is ending it. */
const ENDING_SECONDS = 5;

/** The methods of the runtime's HTTP server that an exchange calls. */
export interface Peers {
  requestIP(request: Request): { readonly address: string; readonly port: number } | null;
  timeout(request: Request, seconds: number): void;
}

/** The proxies and hosts that the configuration trusts. */
export interface NetworkRules {
  readonly trustedProxies: IpRanges;
  /** The host names that requests may specify, in lower case. */
  readonly allowedHosts: ReadonlySet<string>;
  /** Whether the configuration trusts any proxy. */
  readonly hasProxies: boolean;
  /** Called when a peer that is not a trusted proxy sends a forwarding header. */
  readonly onStranger: (address: string, header: string) => void;
}

/** The state that all exchanges of a server share. */
export interface ExchangeOptions {
  readonly peers: Peers;
  readonly network: NetworkRules;
  readonly requestIds: RequestIds;
  /** How long a connection may stay silent, in seconds; 0 means no limit. */
  readonly idleSeconds: number;
  /** The scheme, host and port from the configuration, if set. */
  readonly publicOrigin: string | undefined;
  /** The base path from the configuration; empty if it is not set. */
  readonly basePath: string;
  /** The scheme, host and port on which the server listens, for requests without a Host header. */
  readonly ownUrl: () => string;
}

/**
 * Represents one request. The class implements the `Caller` interface of `auth`, so the client's
 * address is determined only if `auth` needs it, for example after an invalid token.
 */
export class Exchange implements Caller {
  readonly request: Request;
  /** The path of the URL relative to the base path, percent-encoded and without the query. */
  readonly path: string;
  /** The path below which the client reaches the server; empty for the root. */
  readonly basePath: string;
  /** The part of the URL after the question mark; empty if the URL has no query. */
  readonly query: string;
  readonly startedMs: number;
  readonly #options: ExchangeOptions;
  #origin: Origin | undefined;
  #requestId: string | undefined;

  /**
   * Creates the exchange of a request.
   * @param startedMs The request's time of arrival, on the monotonic clock.
   */
  constructor(request: Request, startedMs: number, options: ExchangeOptions) {
    this.request = request;
    this.startedMs = startedMs;
    this.#options = options;
    const url = request.url;
    // The runtime normally passes an absolute URL, in which the path begins at the first slash
    // after "https://". If there is no Host header, it passes only a path. For CONNECT, it passes
    // the target, which has no path.
    const pathStart = url.startsWith("/") ? 0 : Math.max(0, url.indexOf("/", 8));
    const queryStart = url.indexOf("?", pathStart);
    const path = queryStart < 0 ? url.slice(pathStart) : url.slice(pathStart, queryStart);
    this.basePath = this.#proxysBasePath() ?? options.basePath;
    this.path = pathBelow(this.basePath, path);
    this.query = queryStart < 0 ? "" : url.slice(queryStart + 1);
  }

  /** The id sent with the request, or a new id if none was sent. */
  get requestId(): string {
    this.#requestId ??= this.#options.requestIds.of(this.request);
    return this.#requestId;
  }

  /** The origin of the request: the client's address, and whether the client is on this machine. */
  get origin(): Origin {
    if (this.#origin === undefined) {
      const { headers } = this.request;
      this.#origin = originOf(this.#peer(), headers, this.#network.trustedProxies);
      const { address, strangersHeader } = this.#origin;
      if (strangersHeader !== undefined) this.#network.onStranger(address, strangersHeader);
    }
    return this.#origin;
  }

  get address(): string {
    return this.origin.address;
  }

  get isLocal(): boolean {
    return this.origin.isLocal;
  }

  /** The other end of the connection, possibly a proxy; undefined if it has disconnected. */
  get peer(): Peer | undefined {
    const found = this.#options.peers.requestIP(this.request);
    const address = found === null ? undefined : ipFromText(found.address);
    return found === null || address === undefined ? undefined : { address, port: found.port };
  }

  /** Returns the decoded value of a query parameter; undefined if it is absent. */
  queryValue(name: string): string | undefined {
    if (this.query === "") return undefined;
    return new URLSearchParams(this.query).get(name) ?? undefined;
  }

  get isSecure(): boolean {
    const { url, headers } = this.request;
    return isSecureRequest(url, this.#peer(), headers, this.#network.trustedProxies);
  }

  /** The URL at which the client reaches this server: scheme, host, port and base path. */
  get publicUrl(): string {
    return this.#publicOrigin() + this.basePath;
  }

  #publicOrigin(): string {
    const { ownUrl, publicOrigin } = this.#options;
    if (publicOrigin !== undefined) return publicOrigin;
    const origin = URL.parse(this.request.url)?.origin;
    if (origin === undefined) return ownUrl();
    // Behind a trusted proxy, the request may have arrived over TLS even though the proxy forwards
    // plain HTTP.
    return this.isSecure ? origin.replace(/^http:/, "https:") : origin;
  }

  /**
   * Whether `Host` consists of a name and an optional port. If it contained anything else, the
   * path might appear to begin in the wrong place.
   */
  get isHostWellFormed(): boolean {
    const host = this.request.headers.get("host");
    return host === null || HOST_FORM.test(host);
  }

  get hasTokenInUrl(): boolean {
    return TOKEN_IN_QUERY.test(this.query);
  }

  get isHostAllowed(): boolean {
    return isHostAllowed(this.request.headers.get("host"), this.#network.allowedHosts);
  }

  /** Lets the connection of this request stay silent for longer than the keep-alive timeout. */
  liftIdleTimeout(): void {
    this.#options.peers.timeout(this.request, 0);
  }

  /** Restores the keep-alive timeout. */
  resetIdleTimeout(): void {
    this.#options.peers.timeout(this.request, this.#options.idleSeconds);
  }

  /** Closes the connection soon if the client does not read the remaining response. */
  shortenIdleTimeout(): void {
    this.#options.peers.timeout(this.request, ENDING_SECONDS);
  }

  /**
   * Registers a function to be called when the client disconnects, so that work for the client can
   * stop. Returns a function that unregisters it.
   */
  onLeave(callback: () => void): () => void {
    const { signal } = this.request;
    if (signal.aborted) callback();
    else signal.addEventListener("abort", callback, { once: true });
    return () => signal.removeEventListener("abort", callback);
  }

  /** Returns the base path named by a trusted proxy; undefined if there is none. */
  #proxysBasePath(): string | undefined {
    const { hasProxies, trustedProxies } = this.#network;
    const header = hasProxies ? this.request.headers.get("x-forwarded-prefix") : null;
    if (header === null) return undefined;
    const peer = ipFromText(this.#peer());
    return peer !== undefined && trustedProxies.has(peer) ? basePathFrom(header) : undefined;
  }

  get #network(): NetworkRules {
    return this.#options.network;
  }

  #peer(): string {
    return this.#options.peers.requestIP(this.request)?.address ?? PEER_UNKNOWN;
  }
}

/** Assigns ids to requests that have no id. */
export class RequestIds {
  readonly #prefix: string;
  #count = 0;

  constructor({ clock, random }: { clock: Clock; random: Random }) {
    const chance = Buffer.from(random.bytes(5)).toString("hex");
    this.#prefix = `${clock.nowMs().toString(36)}-${chance}-`;
  }

  /** Returns the caller's own id if it is well-formed, otherwise a new one. */
  of(request: Request): string {
    const given = request.headers.get("x-request-id");
    if (given !== null && REQUEST_ID_FORM.test(given)) return given;
    this.#count += 1;
    return this.#prefix + this.#count.toString(36);
  }
}

/** Returns the milliseconds since the request arrived. */
export function tookMs(exchange: Exchange, clock: Clock): number {
  return shownMs(clock.monotonicMs() - exchange.startedMs);
}
