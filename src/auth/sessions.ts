/**
 * Manages login sessions: a login begins a session, refreshes continue it, and a logout ends it.
 *
 *     login ──► session sid ──refresh by R1──► same sid, new tokens with R2; R1 still works
 *                   │        ──refresh by R2──► new tokens with R3; R1 is retired
 *                   │                      │
 *                   │                      └─ R1, or another successor of R1, 30 s later
 *                   │                           ──► stolen: sid revoked
 *                   └──logout──► sid revoked      logout all ──► token version raised
 *
 * A refresh token remains usable until one of its successors has been used, so that a client that
 * did not receive the response to a refresh can try again. If a token was copied, the thief and
 * the owner get different successors, and only one of these can be used first.
 *
 * A session is not stored as a row: it exists only as the `sid` that its tokens have in common. A
 * session ends with a revocation in the catalog, so it stays ended after a restart.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { putNewest } from "../base/newest.ts";
import type { Random } from "../base/random.ts";
import type { Catalog, UserEntry } from "../catalog/mod.ts";
import type { LoginBody } from "../protocol/mod.ts";
import { answerFromUser, type Caller, hasAdminUi, rfc3339 } from "./answers.ts";
import { type OnAudit, sourceOf } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import { claimTexts, type ExternalIdentity } from "./oidc/token_claims.ts";
import { isSessionEnded, providerPart } from "./provider_sessions.ts";
import type { SessionEnds } from "./session_ends.ts";
import { type ExternalClaims, provenEmailOf, type TokenClaims, type Tokens } from "./token.ts";

export interface SessionsOptions {
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  tokens: Tokens;
  sessionEnds: SessionEnds;
  onAudit: OnAudit;
  accessLifetimeSeconds: number;
  refreshLifetimeSeconds: number;
}

/**
 * How long a retired refresh token still works, in milliseconds, for browser tabs that refresh at
 * the same time.
 */
const RETIRED_GRACE_MS = 30_000;

/**
 * The maximum number of retired tokens whose retirement times are remembered. They take up one or
 * two megabytes.
 */
const RETIRED_COUNT_MAX = 10_000;

/**
 * How long a revocation is kept after the tokens have expired, in milliseconds. This must exceed
 * the leeway within which expired tokens are still accepted.
 */
const REVOCATION_MARGIN_MS = 5 * 60_000;

/** The source of a request, limited to the fields that are logged. */
export type TokenSource = Pick<Caller, "address" | "requestId">;

/** The token claims that identify a session. */
export interface SessionClaims extends Pick<TokenClaims, "sessionId" | "tokenVersion" | "userId"> {
  readonly role: string;
}

export class Sessions {
  readonly #options: SessionsOptions;
  /**
   * The times at which this process retired refresh tokens, on the monotonic clock, keyed by token
   * id and ordered from oldest to newest.
   */
  readonly #retiredMs = new Map<string, number>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /**
   * Starts a session for a user who has given the correct password or has been identified by a
   * provider.
   *
   * @param identity The person identified by a provider. All tokens of the session carry the
   *   provider's claims, and the provider can end the session.
   */
  async begin(user: UserEntry, identity?: ExternalIdentity): Promise<LoginBody> {
    const id = this.#newId();
    const noted = this.#withLoginNoted(user);
    if (identity === undefined) {
      return this.#answer(noted, { sessionId: id, external: undefined });
    }
    const claims = claimTexts(identity);
    const external = Object.keys(claims).length === 0 ? undefined : claims;
    const sessionId = id + providerPart(identity, this.#options.clock.nowMs());
    return this.#answer(noted, { sessionId, external });
  }

  /**
   * Records the time of a login. A full disk is not an error here, because an operator has to be
   * able to log in to free up space.
   */
  #withLoginNoted(user: UserEntry): UserEntry {
    const { catalog, clock, log } = this.#options;
    try {
      return catalog.accounts.change(user.userId, { lastLoginAtMs: clock.nowMs() });
    } catch (error) {
      if (!(error instanceof DatabaseError && error.code === "DISK_FULL")) throw error;
      log.warn("cannot record when a user logged in", { user: user.userId, error: error.message });
      return user;
    }
  }

  /**
   * Exchanges a refresh token for new tokens of the same session. Retires the token's parent,
   * which is the refresh token for which it was itself exchanged.
   *
   * @throws {AuthError} unauthorized
   */
  async refresh(token: string, caller: TokenSource): Promise<LoginBody> {
    const claims = this.#options.tokens.verify(token);
    if (claims === undefined || claims.tokenType !== "refresh") throw unauthorized();
    const user = this.userOf(claims);
    if (user === undefined) throw unauthorized();
    if (this.#isStolen(claims)) {
      this.#endStolen(claims, caller);
      throw unauthorized();
    }
    this.#retireParent(claims);
    const { external, sessionId, tokenId: parentId } = claims;
    return this.#answer(user, { sessionId, external, parentId });
  }

  /**
   * Returns whether the use of a token indicates theft. It does if either the token was retired or
   * another successor of its parent was used first, and this happened longer ago than parallel
   * refreshes in one browser would explain.
   */
  #isStolen({ parentId, tokenId }: TokenClaims): boolean {
    const { catalog } = this.#options;
    const retiredForMs = this.#retiredForMs(tokenId);
    if (retiredForMs !== undefined && retiredForMs > RETIRED_GRACE_MS) return true;
    const sibling =
      parentId === undefined ? undefined : catalog.revocations.revocation(parentId)?.successorId;
    if (parentId === undefined || sibling === undefined || sibling === tokenId) return false;
    return (this.#retiredForMs(parentId) ?? 0) > RETIRED_GRACE_MS;
  }

  #endStolen(claims: TokenClaims, caller: TokenSource): void {
    const { log, onAudit } = this.#options;
    const { sessionId, userId } = claims;
    log.warn("a retired refresh token was used, so its session is revoked as stolen", {
      user: userId,
      session: sessionId,
      request: caller.requestId,
    });
    const details = { reason: "a retired refresh token was used", session: sessionId };
    onAudit({
      ...sourceOf(caller, details),
      action: "revoke session",
      actor: userId,
      target: userId,
      subject: userId,
      outcome: "ok",
    });
    this.#endSession(claims);
  }

  /**
   * Ends the session of a token or, with `isAll`, every session of its user. An invalid token is
   * ignored without an error.
   */
  logout(token: string, { caller, isAll }: { isAll: boolean; caller: TokenSource }): void {
    const claims = this.#options.tokens.verify(token);
    if (claims === undefined) return;
    // The user is determined before the session ends, because afterwards the token no longer
    // identifies a user.
    const user = this.userOf(claims);
    this.end({ claims, user }, { caller, isAll });
  }

  /**
   * Ends a session. The session may also belong to a token signed by an external issuer.
   *
   * @param user The user; undefined if the session has already ended.
   */
  end(
    {
      claims,
      user,
    }: {
      claims: Pick<TokenClaims, "expiresAt" | "sessionId" | "userId">;
      user: UserEntry | undefined;
    },
    { caller, isAll }: { isAll: boolean; caller: TokenSource },
  ): void {
    const { catalog, onAudit, sessionEnds } = this.#options;
    this.#endSession(claims);
    if (user !== undefined) {
      const { userId } = user;
      const about = { actor: userId, target: userId, subject: userId };
      onAudit({ ...sourceOf(caller, { all: isAll }), ...about, action: "logout", outcome: "ok" });
    }
    if (!isAll || user === undefined) return;
    catalog.accounts.change(user.userId, { tokenVersion: user.tokenVersion + 1 });
    sessionEnds.endUser(user.userId);
  }

  /**
   * Returns the user of an access token or a refresh token, provided that the session has not
   * ended and nothing has invalidated the user's tokens since. A retired refresh token is also
   * accepted.
   */
  userOf(claims: TokenClaims): UserEntry | undefined {
    return this.#options.tokens.age(claims) === "valid" ? this.userBehind(claims) : undefined;
  }

  /**
   * Returns the session to which a token belongs, even if the token has expired; undefined if the
   * session has ended.
   */
  sessionOf(token: string): { readonly userId: string; readonly sessionId: string } | undefined {
    const claims = this.#options.tokens.verify(token);
    return claims === undefined || this.userBehind(claims) === undefined ? undefined : claims;
  }

  /** Returns the user to whom a token belongs. Does not check whether the token has expired. */
  userBehind(claims: SessionClaims): UserEntry | undefined {
    const { catalog } = this.#options;
    const user = catalog.accounts.user(claims.userId);
    if (user === undefined) return undefined;
    if (user.tokenVersion !== claims.tokenVersion || user.role !== claims.role) return undefined;
    return isSessionEnded(catalog, claims.sessionId) ? undefined : user;
  }

  #retireParent({ expiresAt, parentId, tokenId }: TokenClaims): void {
    const { catalog, clock } = this.#options;
    if (parentId === undefined || catalog.revocations.isRevoked(parentId)) return;
    // The revocation is kept until the new token expires. The parent token was issued earlier, so
    // it will have expired by then.
    catalog.revocations.revoke(parentId, expiresAt * 1000 + REVOCATION_MARGIN_MS, {
      successorId: tokenId,
    });
    putNewest(this.#retiredMs, [parentId, clock.monotonicMs()], RETIRED_COUNT_MAX);
  }

  /** Returns how long ago a refresh token was retired; undefined if it was not retired. */
  #retiredForMs(tokenId: string): number | undefined {
    const { catalog, clock } = this.#options;
    const retiredAtMs = catalog.revocations.revocation(tokenId)?.revokedAtMs;
    if (retiredAtMs === undefined) return undefined;
    // The monotonic time is preferred, because the wall clock may have been changed since the
    // token was retired. The stored wall-clock time is needed only after a restart.
    const retiredMs = this.#retiredMs.get(tokenId);
    return retiredMs === undefined ? clock.nowMs() - retiredAtMs : clock.monotonicMs() - retiredMs;
  }

  #endSession({
    expiresAt,
    sessionId,
    userId,
  }: Pick<TokenClaims, "expiresAt" | "sessionId" | "userId">): void {
    const { catalog, clock, refreshLifetimeSeconds, sessionEnds } = this.#options;
    const newestEndMs = clock.nowMs() + refreshLifetimeSeconds * 1000;
    const endMs = Math.max(newestEndMs, expiresAt * 1000);
    catalog.revocations.revoke(sessionId, endMs + REVOCATION_MARGIN_MS);
    sessionEnds.endSession(userId, sessionId);
  }

  /**
   * Issues tokens for a session, and returns them as a response body.
   * @param parentId The refresh token exchanged for the new tokens.
   */
  #answer(
    user: UserEntry,
    {
      external,
      parentId,
      sessionId,
    }: { sessionId: string; external: ExternalClaims | undefined; parentId?: string },
  ): LoginBody {
    const { accessLifetimeSeconds, refreshLifetimeSeconds } = this.#options;
    const access = this.#claims(
      user,
      { sessionId, external, parentId: undefined, tokenType: "access" },
      accessLifetimeSeconds,
    );
    const refresh = this.#claims(
      user,
      { sessionId, external, parentId, tokenType: "refresh" },
      refreshLifetimeSeconds,
    );
    return {
      access_token: this.#options.tokens.sign(access),
      expires_at: rfc3339(access.expiresAt * 1000),
      refresh_token: this.#options.tokens.sign(refresh),
      refresh_expires_at: rfc3339(refresh.expiresAt * 1000),
      admin_ui_access: hasAdminUi(user.role),
      user: answerFromUser(user),
    };
  }

  #claims(
    user: UserEntry,
    kind: Pick<TokenClaims, "external" | "parentId" | "sessionId" | "tokenType">,
    lifetimeSeconds: number,
  ): TokenClaims {
    const issuedAt = Math.floor(this.#options.clock.nowMs() / 1000);
    return {
      ...kind,
      userId: user.userId,
      issuedAt,
      expiresAt: issuedAt + lifetimeSeconds,
      notBefore: undefined,
      tokenId: this.#newId(),
      tokenVersion: user.tokenVersion,
      role: user.role,
      email: provenEmailOf(user),
    };
  }

  #newId(): string {
    return this.#options.random.bytes(16).toBase64({ alphabet: "base64url", omitPadding: true });
  }
}

export function unauthorized(): AuthError {
  return new AuthError(
    "unauthorized",
    "The token is missing, invalid or no longer accepted: send the header Authorization: Bearer " +
      "<token>, or log in again with POST /v1/api/auth/login",
  );
}
