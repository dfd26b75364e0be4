/**
 * Reads the user and the lifetime from an access token, the only information that the client needs
 * from it. If a token cannot be read, both are unknown. Only the server decides whether a token is
 * valid.
 */
import { isObject } from "./errors.ts";

interface ReadClaims {
  readonly userId: string | undefined;
  /**
   * When the token was issued and when it expires, in Unix milliseconds; undefined if the token
   * does not contain both times.
   */
  readonly lifetime: { readonly issuedMs: number; readonly endMs: number } | undefined;
}

/** A token is renewed when this fraction of its lifetime, or less, is left. */
const LEAD = 0.1;

/** A token is renewed at most this long before it expires, in milliseconds. */
const LEAD_MS_MAX = 5 * 60_000;

export function claimsOf(token: string): ReadClaims {
  const { exp, iat, sub } = parsedClaims(token);
  const isLifetime = typeof iat === "number" && typeof exp === "number" && exp > iat;
  return {
    userId: typeof sub === "string" ? sub : undefined,
    lifetime: isLifetime ? { issuedMs: iat * 1000, endMs: exp * 1000 } : undefined,
  };
}

/**
 * Returns how many milliseconds after it was received a token should be renewed; undefined if it
 * does not expire.
 *
 * The client's clock may differ from the server's. A token is therefore assumed to have been
 * issued when it was received, unless it expires sooner by the client's clock.
 */
export function renewalDelayMs(token: string, receivedMs: number): number | undefined {
  const { lifetime } = claimsOf(token);
  if (lifetime === undefined) return undefined;
  const wholeMs = lifetime.endMs - lifetime.issuedMs;
  const leftMs = lifetime.endMs - receivedMs;
  const isPlausible = leftMs > 0 && leftMs < wholeMs;
  const leadMs = Math.min(LEAD_MS_MAX, wholeMs * LEAD);
  return Math.max(0, (isPlausible ? leftMs : wholeMs) - leadMs);
}

function parsedClaims(token: string): Readonly<Record<string, unknown>> {
  const claims = token.split(".")[1]?.replaceAll("-", "+").replaceAll("_", "/");
  try {
    const bytes = Uint8Array.from(atob(claims ?? ""), (each) => each.charCodeAt(0));
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return isObject(value) ? value : {};
  } catch {
    // The token is not a JWT. It may be a service token, for example.
    return {};
  }
}
