/**
 * One HTTP request on its way through the server: what routes ask about it, each found at first
 * use, since the fast path needs few of them.
 */
import type { Caller } from "../../auth/mod.ts";
import { type Clock, shownMs } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { Peer } from "../../base/received_bytes.ts";
import { type IpRange, ipFromText } from "../common/ip_address.ts";
import { isHostAllowed, isSecureRequest, type Origin, originOf } from "../common/local_only.ts";

/** The address of a connection that is already gone. */
const PEER_UNKNOWN = "unknown";

const HOST_FORM = /^[A-Za-z0-9._~%:[\]-]*$/;

const REQUEST_ID_FORM = /^[A-Za-z0-9._:-]{1,128}$/;

/** Query parameters in which other servers take a token. */
const TOKEN_IN_QUERY = /(?:^|&)(?:token|access_token|auth|authorization|bearer|jwt|api_?key|key)=/i;

/** How long the client of an answer that has ended may take nothing of it. */
const ENDING_SECONDS = 5;

/** The runtime's server, as far as a request needs it. */
export interface Peers {
  requestIP(request: Request): { readonly address: string; readonly port: number } | null;
  timeout(request: Request, seconds: number): void;
}

/** Whom the server believes, from the configuration. */
export interface NetworkRules {
  readonly trustedProxies: readonly IpRange[];
  /** Host names in lower case. */
  readonly allowedHosts: ReadonlySet<string>;
  /** Called for a peer that sends a forwarding header but is not a trusted proxy. */
  readonly onStranger: (address: string, header: string) => void;
}

/** What all exchanges of a server share. */
export interface ExchangeOptions {
  readonly peers: Peers;
  readonly network: NetworkRules;
  readonly requestIds: RequestIds;
  /** How long a connection may be silent; 0 for as long as it likes. */
  readonly idleSeconds: number;
  /** Of this server in the configuration, if that says so: scheme, host and port. */
  readonly publicOrigin: string | undefined;
  /** The same as it listens, for clients that named no host. */
  readonly ownUrl: () => string;
}

/** Is the `Caller` that `auth` asks for, so that a good token costs no look at the address. */
export class Exchange implements Caller {
  readonly request: Request;
  /** Percent-encoded, without query. */
  readonly path: string;
  /** After the question mark; empty when there is none. */
  readonly query: string;
  readonly requestId: string;
  readonly startedMs: number;
  readonly #options: ExchangeOptions;
  #origin: Origin | undefined;

  /** @param startedMs When the request came, by the monotonic clock. */
  constructor(request: Request, startedMs: number, options: ExchangeOptions) {
    this.request = request;
    this.requestId = options.requestIds.of(request);
    this.startedMs = startedMs;
    this.#options = options;
    const url = request.url;
    // The runtime gives an absolute URL, whose path begins at the first slash after "https://", but
    // a path alone when there is no Host, and of CONNECT what it asks for, which has none.
    const pathStart = url.startsWith("/") ? 0 : Math.max(0, url.indexOf("/", 8));
    const queryStart = url.indexOf("?", pathStart);
    this.path = queryStart < 0 ? url.slice(pathStart) : url.slice(pathStart, queryStart);
    this.query = queryStart < 0 ? "" : url.slice(queryStart + 1);
  }

  /** The client behind the request. */
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

  /** The other end of the connection, maybe a proxy's; undefined when it is already gone. */
  get peer(): Peer | undefined {
    const found = this.#options.peers.requestIP(this.request);
    const address = found === null ? undefined : ipFromText(found.address);
    return found === null || address === undefined ? undefined : { address, port: found.port };
  }

  /** The value of a query parameter, decoded; undefined when it is absent. */
  queryValue(name: string): string | undefined {
    if (this.query === "") return undefined;
    return new URLSearchParams(this.query).get(name) ?? undefined;
  }

  get isSecure(): boolean {
    const { url, headers } = this.request;
    return isSecureRequest(url, this.#peer(), headers, this.#network.trustedProxies);
  }

  /** Scheme, host and port under which the client reaches this server. */
  get publicUrl(): string {
    const { ownUrl, publicOrigin } = this.#options;
    return publicOrigin ?? URL.parse(this.request.url)?.origin ?? ownUrl();
  }

  /** Whether `Host` is a name and port: anything else would shift where the path begins. */
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

  /** Lets this request be silent for longer than the keep-alive timeout. */
  liftIdleTimeout(): void {
    this.#options.peers.timeout(this.request, 0);
  }

  /** Lets it be silent no longer than that again. */
  resetIdleTimeout(): void {
    this.#options.peers.timeout(this.request, this.#options.idleSeconds);
  }

  /** Cuts the connection when nothing more is taken of what is left to send. */
  shortenIdleTimeout(): void {
    this.#options.peers.timeout(this.request, ENDING_SECONDS);
  }

  /** Calls back when the client is gone: for what is worth ending then. */
  onLeave(callback: () => void): void {
    const { signal } = this.request;
    if (signal.aborted) callback();
    else signal.addEventListener("abort", callback, { once: true });
  }

  get #network(): NetworkRules {
    return this.#options.network;
  }

  #peer(): string {
    return this.#options.peers.requestIP(this.request)?.address ?? PEER_UNKNOWN;
  }
}

/** Names requests that bring no name of their own. */
export class RequestIds {
  readonly #prefix: string;
  #count = 0;

  constructor({ clock, random }: { clock: Clock; random: Random }) {
    const chance = Buffer.from(random.bytes(5)).toString("hex");
    this.#prefix = `${clock.nowMs().toString(36)}-${chance}-`;
  }

  /** The caller's own id when it is well-formed, else a new one. */
  of(request: Request): string {
    const given = request.headers.get("x-request-id");
    if (given !== null && REQUEST_ID_FORM.test(given)) return given;
    this.#count += 1;
    return this.#prefix + this.#count.toString(36);
  }
}

/** Milliseconds since the request arrived. */
export function tookMs(exchange: Exchange, clock: Clock): number {
  return shownMs(clock.monotonicMs() - exchange.startedMs);
}
