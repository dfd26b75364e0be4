/**
 * Matches origins against the patterns that a configuration lists.
 *
 *     origin   scheme "://" host [":" port], or "*" for every origin
 *     scheme   http, https, or the scheme of an app, such as capacitor or tauri
 *     host     a name or an address; "*." before a name stands for one or more labels
 *     port     a number, or "*" for any port or none
 *
 * A wildcard host matches only subdomains: `https://*.example.com` matches neither
 * `https://example.com` nor `https://example.com.evil.test`.
 */

interface OriginParts {
  readonly scheme: string;
  readonly host: string;
  /** The port of an origin; empty if it has none. */
  readonly port: string;
}

const ORIGIN = /^([a-z][a-z0-9+.-]*):\/\/(\[[\da-f:.]+\]|[^/?#@:[\]\s]+)(?::(\d{1,5}|\*))?$/;

export class ListedOrigins {
  readonly #exact: ReadonlySet<string>;
  readonly #patterns: readonly OriginParts[];
  /** Whether the configured list admits every origin. */
  readonly hasAll: boolean;

  constructor(listed: readonly string[]) {
    this.hasAll = listed.includes("*");
    this.#exact = new Set(listed.filter((origin) => !isPattern(origin)).map(originAsSent));
    this.#patterns = listed.filter(isPattern).flatMap((origin) => partsOf(origin) ?? []);
  }

  /** Returns whether the list admits an origin. @param origin The value of the header `Origin`. */
  has(origin: string): boolean {
    if (this.hasAll || this.#exact.has(origin)) return true;
    if (this.#patterns.length === 0) return false;
    const parts = partsOf(origin);
    return parts !== undefined && this.#patterns.some((pattern) => matches(pattern, parts));
  }
}

function isPattern(origin: string): boolean {
  return origin.includes("*");
}

/**
 * Returns an origin in the form that browsers send: in lower case, without the default port of its
 * scheme.
 */
export function originAsSent(origin: string): string {
  const url = URL.parse(origin);
  // According to the standard, URLs with other schemes have the origin "null", but web views send
  // their scheme and host as they are.
  const isWeb = url?.protocol === "http:" || url?.protocol === "https:";
  return isWeb ? url.origin : origin.toLowerCase();
}

function partsOf(origin: string): OriginParts | undefined {
  const [, scheme, host, port = ""] = ORIGIN.exec(origin.toLowerCase()) ?? [];
  if (scheme === undefined || host === undefined) return undefined;
  const isDefault = (scheme === "http" && port === "80") || (scheme === "https" && port === "443");
  return { scheme, host, port: isDefault ? "" : port };
}

function matches(pattern: OriginParts, { host, port, scheme }: OriginParts): boolean {
  if (pattern.scheme !== scheme) return false;
  if (pattern.port !== "*" && pattern.port !== port) return false;
  if (!pattern.host.startsWith("*.")) return pattern.host === host;
  const parent = pattern.host.slice(1);
  return host.length > parent.length && host.endsWith(parent);
}
