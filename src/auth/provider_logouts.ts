/**
 * Handles logouts reported by a provider (OpenID Connect Back-Channel Logout 1.0).
 *
 *     provider ──POST logout_token──► signature, claims ──► sessions of the person end
 *
 * Invariants:
 * - Only the provider itself can end sessions, and only sessions from its own logins.
 * - A logout token works once. ID tokens and access tokens are not accepted as logout tokens: a
 *   logout token must have `events` and must not have a `nonce`.
 */
import type { Clock } from "../base/clock.ts";
import type { Catalog } from "../catalog/mod.ts";
import type { Caller } from "./answers.ts";
import { type OnAudit, sourceOf } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import type { AuthBucket } from "./login_guard.ts";
import { LOGOUT_TYPES } from "./oidc/issuer.ts";
import { ProviderError, type ProviderObject } from "./oidc/provider_fetch.ts";
import type { LoginProvider, Providers } from "./oidc/providers.ts";
import { endMsOf, isEarly, isFor, timesFrom } from "./oidc/token_claims.ts";
import { endProviderSessions, type ProviderSession } from "./provider_sessions.ts";
import { linkText } from "./provider_users.ts";
import type { SessionEnds } from "./session_ends.ts";

export interface ProviderLogoutsOptions {
  catalog: Catalog;
  clock: Clock;
  providers: Providers;
  sessionEnds: SessionEnds;
  bucket: AuthBucket;
  onAudit: OnAudit;
  refreshLifetimeSeconds: number;
}

/**
 * The sessions that a logout token ends, and the id that marks the token as used until it expires.
 */
interface EndedByToken {
  readonly ended: ProviderSession;
  readonly used: string;
  readonly usedUntilMs: number;
}

const EVENT = "http://schemas.openid.net/event/backchannel-logout";

/**
 * The maximum length of any text claim in a logout token. OpenID Connect defines this limit for
 * subjects.
 */
const TEXT_LENGTH_MAX = 255;

const RETRY_SECONDS = 10;

export class ProviderLogouts {
  readonly #options: ProviderLogoutsOptions;

  constructor(options: ProviderLogoutsOptions) {
    this.#options = options;
  }

  /**
   * Ends the sessions to which a logout token refers.
   *
   * @returns False if the provider does not exist.
   * @throws {AuthError} invalid_request, rate_limited, AUTHENTICATION_ERROR
   */
  async end(name: string, token: string, caller: Caller): Promise<boolean> {
    const { bucket, providers } = this.#options;
    const provider = providers.named(name);
    if (provider === undefined) return false;
    const payload = await payloadOf(provider, token);
    const ended = payload === undefined ? undefined : this.#endedBy(provider, payload);
    if (payload === undefined || ended === undefined) throw bucket.failedToken(refused(), caller);
    this.#end(ended, caller);
    return true;
  }

  /** Returns the sessions that a logout token ends; undefined if the token is not acceptable. */
  #endedBy(
    { issuer, link, settings: { clientId } }: LoginProvider,
    payload: ProviderObject,
  ): EndedByToken | undefined {
    const { catalog, clock } = this.#options;
    const { events, iss, jti, nonce, sid, sub } = payload;
    const nowMs = clock.nowMs();
    const times = timesFrom(payload);
    const [subject, session] = [sub, sid].map((claim) => (isText(claim) ? claim : undefined));
    const isAcceptable =
      times !== undefined &&
      nowMs < endMsOf(times) &&
      !isEarly(times, nowMs) &&
      iss === issuer &&
      isFor(payload, clientId) &&
      isText(jti) &&
      hasEvent(events) &&
      nonce === undefined &&
      // A malformed session id is refused, not ignored, because a token without a session id ends
      // every session of the person.
      (sid === undefined || session !== undefined) &&
      (subject !== undefined || session !== undefined);
    if (!isAcceptable) return undefined;
    const used = `logout ${JSON.stringify([link, jti])}`;
    if (catalog.revocations.isRevoked(used)) return undefined;
    return { ended: { link, subject, session }, used, usedUntilMs: endMsOf(times) };
  }

  #end({ ended, used, usedUntilMs }: EndedByToken, caller: Caller): void {
    const { catalog, onAudit } = this.#options;
    endProviderSessions(this.#options, ended);
    // The logout token is marked as used only after the sessions have ended, so that the provider
    // can send it again after an error.
    catalog.revocations.revoke(used, usedUntilMs);
    const { link, subject } = ended;
    const user =
      subject === undefined ? undefined : catalog.accounts.userByLink(linkText(link, subject));
    const target = user?.userId ?? `${link} ${subject ?? "session"}`;
    const about = { actor: link, target, ...(user === undefined ? {} : { subject: user.userId }) };
    const source = sourceOf(caller, { provider: link });
    onAudit({ ...source, ...about, action: "logout", outcome: "ok" });
  }
}

/**
 * Verifies a logout token, and returns its claims.
 * @throws {AuthError} AUTHENTICATION_ERROR if the provider's keys cannot be fetched.
 */
async function payloadOf(
  { keys }: LoginProvider,
  token: string,
): Promise<ProviderObject | undefined> {
  try {
    return (await keys.verified(token, LOGOUT_TYPES))?.payload;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    throw new AuthError(
      "AUTHENTICATION_ERROR",
      "The logout token cannot be verified because its provider's keys cannot be fetched; try " +
        "again later",
      { retryAfterSeconds: RETRY_SECONDS },
    );
  }
}

function hasEvent(events: unknown): boolean {
  if (typeof events !== "object" || events === null) return false;
  const event = (events as ProviderObject)[EVENT];
  return typeof event === "object" && event !== null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= TEXT_LENGTH_MAX;
}

function refused(): AuthError {
  return new AuthError(
    "invalid_request",
    "The logout token is not valid: it was not signed by the provider for this server, has " +
      "expired, has been used before, or is not a logout token",
  );
}
