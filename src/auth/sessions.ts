/**
 * Login sessions: a login begins one, a refresh continues it and a logout ends it.
 *
 *     login ──► session sid ──refresh──► same sid, new tokens, the used one retired
 *                   │                      │
 *                   │                      └─ retired token, 30 s later ──► stolen: sid revoked
 *                   └──logout──► sid revoked      logout all ──► token version raised
 *
 * A session is not stored as a row: it is only the `sid` that its tokens share. A revocation in the
 * catalog ends it, so it stays ended after a restart.
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
import type { SessionEnds } from "./session_ends.ts";
import type { TokenClaims, Tokens, TokenType } from "./token.ts";

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
 * The time for which a used refresh token still works, for browser tabs that refresh at the same
 * time.
 */
const RETIRED_GRACE_MS = 30_000;

/** The number of retired tokens whose time is remembered, which takes one or two megabytes. */
const RETIRED_COUNT_MAX = 10_000;

/** Tokens are accepted this long after their expiry, so a revocation must last longer. */
const REVOCATION_MARGIN_MS = 5 * 60_000;

/** The origin of a request, limited to the logged fields. */
type TokenSource = Pick<Caller, "address" | "requestId">;

export class Sessions {
  readonly #options: SessionsOptions;
  /**
   * The times at which this process retired refresh tokens, on the monotonic clock, in ascending
   * order.
   */
  readonly #retiredMs = new Map<string, number>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Begins a session for a user who has given the correct password. */
  async begin(user: UserEntry): Promise<LoginBody> {
    return this.#answer(this.#withLoginNoted(user), this.#newId());
  }

  /**
   * On a full disk the time of a login may be missing, because an operator has to log in to free
   * space.
   */
  #withLoginNoted(user: UserEntry): UserEntry {
    const { catalog, clock, log } = this.#options;
    try {
      return catalog.changeUser(user.userId, { lastLoginAtMs: clock.nowMs() });
    } catch (error) {
      if (!(error instanceof DatabaseError && error.code === "DISK_FULL")) throw error;
      log.warn("cannot record when a user logged in", { user: user.userId, error: error.message });
      return user;
    }
  }

  /**
   * Exchanges a refresh token for new tokens of the same session.
   *
   * @throws {AuthError} unauthorized
   */
  async refresh(token: string, caller: TokenSource): Promise<LoginBody> {
    const { log, onAudit } = this.#options;
    const claims = this.#options.tokens.verify(token);
    if (claims === undefined || claims.tokenType !== "refresh") throw unauthorized();
    const user = this.userOf(claims);
    if (user === undefined) throw unauthorized();
    const retiredForMs = this.#retiredForMs(claims.tokenId);
    if (retiredForMs === undefined) {
      this.#retire(claims);
    } else if (retiredForMs > RETIRED_GRACE_MS) {
      log.warn("a retired refresh token was used: the session is revoked as stolen", {
        user: claims.userId,
        session: claims.sessionId,
        request: caller.requestId,
      });
      const { userId } = claims;
      const details = { reason: "a retired refresh token was used", session: claims.sessionId };
      onAudit({
        ...sourceOf(caller, details),
        action: "revoke session",
        actor: userId,
        target: userId,
        subject: userId,
        outcome: "ok",
      });
      this.#endSession(claims);
      throw unauthorized();
    }
    return this.#answer(user, claims.sessionId);
  }

  /**
   * Ends the session of a token, or with `isAll` every session of its user. An invalid token ends
   * nothing and is not reported.
   */
  logout(token: string, { caller, isAll }: { isAll: boolean; caller: TokenSource }): void {
    const { catalog, onAudit, sessionEnds, tokens } = this.#options;
    const claims = tokens.verify(token);
    if (claims === undefined) return;
    // Read before the session ends, because the token has no user afterwards.
    const user = this.userOf(claims);
    this.#endSession(claims);
    if (user !== undefined) {
      const { userId } = user;
      const about = { actor: userId, target: userId, subject: userId };
      onAudit({ ...sourceOf(caller, { all: isAll }), ...about, action: "logout", outcome: "ok" });
    }
    if (!isAll || user === undefined) return;
    catalog.changeUser(user.userId, { tokenVersion: user.tokenVersion + 1 });
    sessionEnds.endUser(user.userId);
  }

  /**
   * Returns the user of a token of either type if the user exists and is unchanged since, and the
   * session has not ended. Does not consider whether a refresh token is retired.
   */
  userOf(claims: TokenClaims): UserEntry | undefined {
    return this.#options.tokens.age(claims) === "valid" ? this.userBehind(claims) : undefined;
  }

  /** Returns the session of a token, expired or not; undefined if the session was ended. */
  sessionOf(token: string): { readonly userId: string; readonly sessionId: string } | undefined {
    const claims = this.#options.tokens.verify(token);
    return claims === undefined || this.userBehind(claims) === undefined ? undefined : claims;
  }

  /** Returns the user of a token without checking its times. */
  userBehind(claims: TokenClaims): UserEntry | undefined {
    const { catalog } = this.#options;
    const user = catalog.user(claims.userId);
    if (user === undefined) return undefined;
    if (user.tokenVersion !== claims.tokenVersion || user.role !== claims.role) return undefined;
    return catalog.isRevoked(claims.sessionId) ? undefined : user;
  }

  #retire({ expiresAt, tokenId }: TokenClaims): void {
    const { catalog, clock } = this.#options;
    catalog.revoke(tokenId, expiresAt * 1000 + REVOCATION_MARGIN_MS);
    putNewest(this.#retiredMs, [tokenId, clock.monotonicMs()], RETIRED_COUNT_MAX);
  }

  /** Returns how long ago a refresh token was retired; undefined if it was not. */
  #retiredForMs(tokenId: string): number | undefined {
    const { catalog, clock } = this.#options;
    const retiredAtMs = catalog.revokedAtMs(tokenId);
    if (retiredAtMs === undefined) return undefined;
    // The wall clock may have been set since then. It is used only for times before a restart.
    const retiredMs = this.#retiredMs.get(tokenId);
    return retiredMs === undefined ? clock.nowMs() - retiredAtMs : clock.monotonicMs() - retiredMs;
  }

  #endSession(claims: TokenClaims): void {
    const { catalog, clock, refreshLifetimeSeconds, sessionEnds } = this.#options;
    const newestEndMs = clock.nowMs() + refreshLifetimeSeconds * 1000;
    const endMs = Math.max(newestEndMs, claims.expiresAt * 1000);
    catalog.revoke(claims.sessionId, endMs + REVOCATION_MARGIN_MS);
    sessionEnds.endSession(claims.userId, claims.sessionId);
  }

  #answer(user: UserEntry, sessionId: string): LoginBody {
    const { accessLifetimeSeconds, refreshLifetimeSeconds } = this.#options;
    const access = this.#claims(user, { sessionId, tokenType: "access" }, accessLifetimeSeconds);
    const refresh = this.#claims(user, { sessionId, tokenType: "refresh" }, refreshLifetimeSeconds);
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
    kind: { sessionId: string; tokenType: TokenType },
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
      email: user.email ?? null,
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
      "<token>, or log in again by POST /v1/api/auth/login",
  );
}
