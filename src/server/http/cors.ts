/**
 * Implements the cross-origin rules for browsers.
 *
 * When an origin is refused, the browser does not tell the page why. The log therefore contains
 * the configuration line that would allow the origin.
 *
 * Without `security.cors.allowed_origins`, no Access-Control header is ever sent. An allowed
 * origin is echoed exactly; `*` admits any origin, but without credentials. A listed page may send
 * any header, since tracing tools add their own headers and the server ignores headers it does not
 * know.
 */
import type { SeldomLog } from "../../base/seldom_log.ts";
import type { ServerConfig } from "../contract/options.ts";
import { ListedOrigins, originAsSent } from "./origins.ts";

const METHODS = "GET, HEAD, POST, OPTIONS";
const REQUEST_HEADERS =
  "Authorization, Content-Type, Accept, Range, X-Request-ID, Last-Event-ID, Tidemark-Transaction";
const EXPOSED_HEADERS =
  "X-Request-ID, Retry-After, ETag, Content-Range, Content-Disposition, Idempotency-Replayed, " +
  "Tidemark-Notices";

/**
 * Matches an origin that the configuration could list. No genuine origin exceeds the lengths in
 * this pattern.
 */
const NAMEABLE = /^[a-z][a-z0-9+.-]{0,31}:\/\/[\w.:[\]-]{1,255}$/;

/** Matches the name of a header. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]{1,100}$/;

const REQUESTED_HEADERS_MAX = 50;

export class Cors {
  readonly #listed: readonly string[];
  readonly #origins: ListedOrigins;
  readonly #allowsCredentials: boolean;
  readonly #maxAge: string;
  readonly #publicOrigin: string | undefined;
  readonly #log: Pick<SeldomLog, "warn">;

  /**
   * Reads the rules for cross-origin requests from the configuration.
   * @param log Receives a line for each refused origin.
   */
  constructor(config: Pick<ServerConfig, "security" | "server">, log: Pick<SeldomLog, "warn">) {
    const { allowed_origins, allow_credentials, max_age } = config.security.cors;
    this.#log = log;
    this.#listed = allowed_origins;
    this.#origins = new ListedOrigins(allowed_origins);
    this.#allowsCredentials = allow_credentials && !this.#origins.hasAll;
    this.#maxAge = String(max_age);
    const { public_origin: own } = config.server;
    this.#publicOrigin = own === undefined ? undefined : originAsSent(own);
  }

  /**
   * Whether the configuration allows any origin. If it does not, responses need no further check.
   */
  get isOn(): boolean {
    return this.#listed.length > 0;
  }

  /** Adds the headers that allow the requesting page to read this response. */
  decorate(request: Request, headers: Headers): void {
    if (!this.isOn) return;
    const { hasAll } = this.#origins;
    if (!hasAll) headers.append("Vary", "Origin");
    const origin = request.headers.get("origin");
    if (origin === null || !this.#isListed(origin)) return;
    headers.set("Access-Control-Allow-Origin", hasAll ? "*" : origin);
    headers.set("Access-Control-Expose-Headers", EXPOSED_HEADERS);
    if (this.#allowsCredentials) headers.set("Access-Control-Allow-Credentials", "true");
  }

  /**
   * Adds the headers that only a preflight response has, in addition to those that `decorate`
   * adds.
   */
  allowPreflight(request: Request, headers: Headers): void {
    const origin = request.headers.get("origin");
    if (origin === null) return;
    if (!this.#isListed(origin)) {
      if (!this.#isOwn(origin, request)) this.#noteRefused(origin);
      return;
    }
    headers.set("Access-Control-Allow-Methods", METHODS);
    headers.set("Access-Control-Allow-Headers", headersFor(request));
    headers.set("Access-Control-Max-Age", this.#maxAge);
  }

  /**
   * Whether the page that sent the request may open a WebSocket. Native clients send no Origin.
   */
  mayUpgrade(request: Request): boolean {
    const origin = request.headers.get("origin");
    if (origin === null || this.#isListed(origin) || this.#isOwn(origin, request)) return true;
    this.#noteRefused(origin);
    return false;
  }

  /**
   * Whether the page that sent a request may use its cookies. Browsers withhold cookies from other
   * sites, but not from another port or subdomain of this site. A listed page that sends no cookie,
   * as at a login with a password, is refused nothing, so nothing is logged.
   */
  mayUseCookies(request: Request): boolean {
    if (this.#isOfOwnPage(request)) return true;
    const isListed = this.#isOfListedPage(request);
    if (isListed && this.#allowsCredentials) return true;
    if (!isListed || request.headers.has("cookie")) {
      this.#noteRefused(request.headers.get("origin") ?? "");
    }
    return false;
  }

  /**
   * Whether a request without credentials may change anything. It may not if it comes from a page
   * of an unlisted origin: browsers send a body without a media type to any server, and merely
   * hide the response.
   */
  mayAct(request: Request): boolean {
    if (this.#isOfOwnPage(request) || this.#isOfListedPage(request)) return true;
    this.#noteRefused(request.headers.get("origin") ?? "");
    return false;
  }

  /**
   * Whether a login may redirect to a page of this origin. Only the server's own origin and
   * origins explicitly listed in the configuration qualify. The entry `*` is not enough, because
   * the page receives a code for the session.
   */
  mayReceiveLogin(origin: string, request: Request): boolean {
    if (this.#isOwn(origin, request)) return true;
    if (!this.#origins.hasAll && this.#isListed(originAsSent(origin))) return true;
    this.#noteRefused(origin);
    return false;
  }

  /** Whether the request comes from one of this server's pages, or from no page at all. */
  #isOfOwnPage(request: Request): boolean {
    // The browser itself sets Sec-Fetch-Site, so it is correct even if a proxy has changed Host.
    const site = request.headers.get("sec-fetch-site");
    if (site === "same-origin") return true;
    const origin = request.headers.get("origin");
    // Requests for images, scripts and other page resources have no Origin header. If
    // Sec-Fetch-Site is "none", the user entered the URL.
    if (origin === null) return site === null || site === "none";
    return this.#isOwn(origin, request);
  }

  #isOfListedPage(request: Request): boolean {
    const origin = request.headers.get("origin");
    return origin !== null && this.#isListed(origin);
  }

  #noteRefused(origin: string): void {
    if (!NAMEABLE.test(origin)) {
      const hint =
        "serve the page from a web server; a page opened from a file, for example, has no origin " +
        "that could be allowed";
      this.#log.warn("rejected a request from a page whose origin cannot be allowed", { hint });
      return;
    }
    const origins = this.#isListed(origin) ? this.#listed : [...this.#listed, origin];
    // Single quotes are used because the log does not escape them.
    const list = `allowed_origins = [${origins.map((it) => `'${it}'`).join(", ")}]`;
    const line = this.#isListed(origin) ? "allow_credentials = true" : list;
    this.#log.warn(
      "rejected a request from a page of another origin; if the page is yours, add this line " +
        "to the section [security.cors] of config.toml, and restart the server",
      { line, origin },
    );
  }

  #isOwn(origin: string, request: Request): boolean {
    if (origin === this.#publicOrigin) return true;
    const host = request.headers.get("host");
    return host !== null && isOriginOf(origin, host);
  }

  #isListed(origin: string): boolean {
    return this.#origins.has(origin);
  }
}

/**
 * Returns the headers that a listed page may send, including those named in its preflight request.
 */
function headersFor(request: Request): string {
  const requested = request.headers.get("access-control-request-headers") ?? "";
  const known = new Set(REQUEST_HEADERS.toLowerCase().split(", "));
  const others = requested
    .split(",", REQUESTED_HEADERS_MAX)
    .map((name) => name.trim())
    .filter((name) => HEADER_NAME.test(name) && !known.has(name.toLowerCase()));
  return [REQUEST_HEADERS, ...others].join(", ");
}

/** Whether `origin` refers to this host and port. The port may be omitted if it is the default. */
function isOriginOf(origin: string, host: string): boolean {
  const match = /^(https?):\/\/([^/?#@]+)$/i.exec(origin);
  if (match === null) return false;
  const defaultPort = match[1]?.toLowerCase() === "https" ? ":443" : ":80";
  return withPort(match[2] ?? "", defaultPort) === withPort(host, defaultPort);
}

function withPort(host: string, defaultPort: string): string {
  const lower = host.toLowerCase();
  return /:\d+$/.test(lower) && !lower.endsWith("]") ? lower : lower + defaultPort;
}
