/**
 * Tracks which sessions have been ended by the provider that identified their user.
 *
 *     id of a session    random . provider's session . person . time of the beginning
 *                                         │                │
 *     revocations        ◄── ended ───────┴────────────────┘
 *
 * Sessions are not stored, so a session id contains keys for the provider's session and for the
 * person. A session has ended if one of its keys was revoked after the session began. Sessions
 * that begin after the revocation are not affected.
 */
import { type Clock, HOUR_MS } from "../base/clock.ts";
import type { Catalog } from "../catalog/mod.ts";
import type { ExternalIdentity, TokenTimes } from "./oidc/token_claims.ts";
import type { SessionEnds } from "./session_ends.ts";

/** A session at a provider, or all sessions of a person at that provider. */
export interface ProviderSession {
  /** The name of the provider in the links between accounts and providers. */
  readonly link: string;
  readonly subject: string | undefined;
  /** The provider's id of the session; undefined for all sessions of the person. */
  readonly session: string | undefined;
}

/**
 * The number of characters in the key of a provider session or a person. They encode 96 bits of a
 * hash, so nobody can find two texts with the same key.
 */
const KEY_CHARS = 16;

/**
 * The maximum time, in seconds, for which a provider's token is accepted after it was issued. The
 * end of a session is remembered for at least this long, so that no token can outlive its session.
 */
const TOKEN_SECONDS_MAX = 30 * 86_400;

/** The prefix of the ids under which ended sessions are revoked. */
const ENDED = "provider ";

/**
 * Returns the last part of a session id, which identifies the provider's session and the person.
 *
 * @param beganAtMs The time at which the session began, in Unix milliseconds.
 */
export function providerPart(
  { provider: { link }, providerSession, subject }: ExternalIdentity,
  beganAtMs: number,
): string {
  const session = sessionKey({ link, subject, session: providerSession });
  return `.${session}.${personKey(link, subject)}.${beganAtMs.toString(36)}`;
}

/**
 * Returns the times of a provider's token. If the token's lifetime exceeds the maximum, the token
 * is treated as expiring earlier than it states.
 */
export function boundedTimes(times: TokenTimes): TokenTimes {
  const { expiresAt, issuedAt } = times;
  return { ...times, expiresAt: Math.min(expiresAt, issuedAt + TOKEN_SECONDS_MAX) };
}

/**
 * Returns the time at which a session began, in Unix milliseconds; undefined if no provider
 * identified its user.
 */
export function beginningMsOf(sessionId: string): number | undefined {
  const [, , person, time = ""] = sessionId.split(".");
  return person === undefined ? undefined : Number.parseInt(time, 36);
}

/** Returns whether a session has been ended, on this server or at its provider. */
export function isSessionEnded(catalog: Pick<Catalog, "revocations">, sessionId: string): boolean {
  if (catalog.revocations.isRevoked(sessionId)) return true;
  if (!sessionId.includes(".")) return false;
  const [, session, person, time = "", ...more] = sessionId.split(".");
  if (session === undefined || person === undefined || more.length > 0) return false;
  const beganAtMs = Number.parseInt(time, 36);
  return [session, person].some((key) => {
    const revokedAtMs = catalog.revocations.revocation(ENDED + key)?.revokedAtMs;
    return revokedAtMs !== undefined && beganAtMs <= revokedAtMs;
  });
}

export interface ProviderSessionDeps {
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly sessionEnds: SessionEnds;
  readonly refreshLifetimeSeconds: number;
}

/**
 * Ends the sessions that a provider reports as ended. The revocation is kept until the last token
 * of these sessions has expired.
 */
export function endProviderSessions(
  { catalog, clock, refreshLifetimeSeconds, sessionEnds }: ProviderSessionDeps,
  ended: ProviderSession,
): void {
  const lastSeconds = Math.max(refreshLifetimeSeconds, TOKEN_SECONDS_MAX);
  // The additional hour allows for clock differences and for file URLs signed in a session.
  const untilMs = clock.nowMs() + lastSeconds * 1000 + HOUR_MS;
  for (const key of keysOf(ended))
    catalog.revocations.revoke(ENDED + key, untilMs, { isAnew: true });
  sessionEnds.endEvery((sessionId) => isSessionEnded(catalog, sessionId));
}

function keysOf({ link, session, subject }: ProviderSession): string[] {
  if (session === undefined) return subject === undefined ? [] : [personKey(link, subject)];
  const keys = [sessionKey({ link, subject, session })];
  // A session whose ID token contained no session id ends with any logout of its person.
  if (subject !== undefined) keys.push(sessionKey({ link, subject, session: undefined }));
  return keys;
}

function sessionKey({ link, session, subject }: ProviderSession): string {
  return session === undefined
    ? keyOf(["unnamed session", link, subject ?? ""])
    : keyOf(["session", link, session]);
}

function personKey(link: string, subject: string): string {
  return keyOf(["person", link, subject]);
}

function keyOf(texts: readonly string[]): string {
  const digest = new Bun.CryptoHasher("sha256").update(JSON.stringify(texts)).digest("base64url");
  return digest.slice(0, KEY_CHARS);
}
