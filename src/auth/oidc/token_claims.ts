/**
 * Reads the claims of tokens signed by external issuers, and decides which of these claims the
 * server trusts.
 *
 * - A person is identified by issuer and subject together. An email address is not enough, because
 *   its owner can change.
 * - An email address is used only if `email_verified` is true.
 * - The role is never taken from a token.
 */
import type { ProviderSettings } from "./oidc_settings.ts";
import type { ProviderObject } from "./provider_fetch.ts";

/** The times at which a token was issued, becomes valid, and expires, in Unix seconds. */
export interface TokenTimes {
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly notBefore: number | undefined;
}

/** An issuer whose tokens the configuration trusts. */
export interface TrustedIssuer {
  /**
   * The issuer's name in the links between accounts and issuers: the name of its configuration
   * section or, if it has none, its URL.
   */
  readonly link: string;
  /** The name of the issuer that is part of the ids of new accounts. */
  readonly shortName: string;
  readonly issuer: string;
  readonly settings: ProviderSettings | undefined;
}

/** A person, as identified by the issuer of a token. */
export interface ExternalIdentity {
  readonly provider: TrustedIssuer;
  readonly subject: string;
  /** The id of the user's session at the issuer, if the token contains one. */
  readonly providerSession: string | undefined;
  /** The person's email address, if the issuer has verified it. */
  readonly email: string | undefined;
  /** The value of the token claim that the configuration key `user_claim` names. */
  readonly userName: string | undefined;
  /** The claims that the configuration lists under `claims`. */
  readonly claims: ProviderObject;
}

/** The maximum length of a subject, as defined by OpenID Connect. */
const SUBJECT_LENGTH_MAX = 255;

const EMAIL_LENGTH_MAX = 320;

/**
 * The maximum total size of the kept claims, in bytes. It is limited because the claims are part
 * of tokens stored in cookies, and browsers drop cookies larger than 4 KiB.
 */
const CLAIMS_BYTES_MAX = 1024;

/** The clock skew allowed between two machines, in seconds. */
const LEEWAY_SECONDS = 60;

/**
 * The latest time that a token may contain, in seconds. Together with the allowed clock skew, it
 * can still be represented exactly in milliseconds.
 */
const TIME_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 1000) - LEEWAY_SECONDS;

/** Returns the times in a token; undefined if a required time is missing or malformed. */
export function timesFrom({ exp, iat, nbf }: ProviderObject): TokenTimes | undefined {
  if (!isTime(exp) || !isTime(iat)) return undefined;
  if (nbf !== undefined && !isTime(nbf)) return undefined;
  return { issuedAt: iat, expiresAt: exp, notBefore: nbf };
}

/** Returns the time at which a token expires, in Unix milliseconds. */
export function endMsOf({ expiresAt }: TokenTimes): number {
  return Math.floor((expiresAt + LEEWAY_SECONDS) * 1000);
}

/** Returns whether a token is not valid yet. */
export function isEarly({ issuedAt, notBefore = issuedAt }: TokenTimes, nowMs: number): boolean {
  return Math.max(issuedAt, notBefore) > nowMs / 1000 + LEEWAY_SECONDS;
}

/** Returns whether a token was issued for the given audience. */
export function isFor({ aud }: ProviderObject, audience: string): boolean {
  return Array.isArray(aud) ? aud.includes(audience) : aud === audience;
}

/** Returns the person identified by a token; undefined if the token has no usable subject. */
export function identityFrom(
  payload: ProviderObject,
  provider: TrustedIssuer,
): ExternalIdentity | undefined {
  const { email, email_verified: isVerified, sid, sub } = payload;
  if (typeof sub !== "string" || sub === "" || sub.length > SUBJECT_LENGTH_MAX) return undefined;
  if (!sub.isWellFormed()) return undefined;
  const isUsable =
    isVerified === true && typeof email === "string" && email.length <= EMAIL_LENGTH_MAX;
  const address = isUsable ? email : undefined;
  const { claims = [], userClaim = "sub" } = provider.settings ?? {};
  const named = userClaim === "email" ? address : payload[userClaim];
  return {
    provider,
    subject: sub,
    providerSession: typeof sid === "string" && sid !== "" ? sid : undefined,
    email: address,
    userName: typeof named === "string" && named !== "" ? named : undefined,
    claims: claimsFrom(payload, claims),
  };
}

/**
 * Returns the claims that CLAIM() can read, as strings, including the email address if it is
 * verified.
 */
export function claimTexts({ claims, email }: ExternalIdentity): Record<string, string> {
  const entries = Object.entries(claims).map(([name, value]) => [name, textOf(value)]);
  return { ...Object.fromEntries(entries), ...(email === undefined ? {} : { email }) };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns the listed claims of a token, up to the maximum total size. */
function claimsFrom(payload: ProviderObject, names: readonly string[]): ProviderObject {
  const kept: Record<string, unknown> = {};
  let left = CLAIMS_BYTES_MAX;
  for (const name of names) {
    if (!Object.hasOwn(payload, name)) continue;
    const value = payload[name];
    if (value === undefined || value === null) continue;
    left -= Buffer.byteLength(JSON.stringify([name, textOf(value)]));
    if (left < 0) break;
    kept[name] = value;
  }
  return kept;
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= TIME_MAX;
}
