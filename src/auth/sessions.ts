/**
 * Login sessions: what a login begins, a refresh continues and a logout ends.
 *
 *     login ──► session sid ──refresh──► same sid, new tokens, the used one retired
 *                   │                      │
 *                   │                      └─ retired token, 30 s later ──► stolen: sid revoked
 *                   └──logout──► sid revoked      logout all ──► token version raised
 *
 * A session is no row of its own: it is the `sid` that its tokens share. What ends it is a
 * revocation in the catalog, so it stays ended after a restart.
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

/** How long a used refresh token still works, for browser tabs that refresh at once. */
const RETIRED_GRACE_MS = 30_000;

/** Retired tokens of which it is remembered when that was: a megabyte or two. */
const RETIRED_COUNT_MAX = 10_000;

/** Tokens are still taken this long after their end; a revocation outlives that. */
const REVOCATION_MARGIN_MS = 5 * 60_000;

/** From where a request came, as far as is told of it. */
type Source = Pick<Caller, "address" | "requestId">;

export class Sessions {
  readonly #options: SessionsOptions;
  /** When this process retired refresh tokens, on the monotonic clock; the oldest first. */
  readonly #retiredMs = new Map<string, number>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Begins a session for a user who has shown a password. */
  async begin(user: UserEntry): Promise<LoginBody> {
    return await this.#answer(this.#withLoginNoted(user), this.#newId());
  }

  /** Whoever makes room on a full disk has to log in first, so the time of it may be missing. */
  #withLoginNoted(user: UserEntry): UserEntry {
    const { catalog, clock, log } = this.#options;
    try {
      return catalog.changeUser(user.userId, { lastLoginAtMs: clock.nowMs() });
    } catch (error) {
      if (!(error instanceof DatabaseError && error.condition === "DISK_FULL")) throw error;
      log.warn("cannot keep when a user logged in", { user: user.userId, error: error.message });
      return user;
    }
  }

  /**
   * Trades a refresh token for new tokens of the same session.
   *
   * @throws {AuthError} unauthorized
   */
  async refresh(token: string, caller: Source): Promise<LoginBody> {
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
    return await this.#answer(user, claims.sessionId);
  }

  /**
   * Ends the session of a token, or with `isAll` every session of its user. A token that is not
   * one of ours ends nothing, and says nothing.
   */
  logout(token: string, { caller, isAll }: { isAll: boolean; caller: Source }): void {
    const { catalog, onAudit, sessionEnds, tokens } = this.#options;
    const claims = tokens.verify(token);
    if (claims === undefined) return;
    // Read before the session ends, after which the token names nobody.
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
   * The user for whom a token of either type speaks now: alive, unchanged since, and in a session
   * that was not ended. Says nothing about retired refresh tokens.
   */
  userOf(claims: TokenClaims): UserEntry | undefined {
    return this.#options.tokens.age(claims) === "valid" ? this.userBehind(claims) : undefined;
  }

  /** The session of a token, expired or not; undefined if the session was ended. */
  sessionOf(token: string): { readonly userId: string; readonly sessionId: string } | undefined {
    const claims = this.#options.tokens.verify(token);
    return claims === undefined || this.userBehind(claims) === undefined ? undefined : claims;
  }

  /** The same, whatever the time. */
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

  /** How long ago a refresh token was retired; undefined when it was not. */
  #retiredForMs(tokenId: string): number | undefined {
    const { catalog, clock } = this.#options;
    const retiredAtMs = catalog.revokedAtMs(tokenId);
    if (retiredAtMs === undefined) return undefined;
    // The clock on the wall may have been set since; only what came before a restart needs it.
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

  async #answer(user: UserEntry, sessionId: string): Promise<LoginBody> {
    const { accessLifetimeSeconds, refreshLifetimeSeconds } = this.#options;
    const access = this.#claims(user, { sessionId, tokenType: "access" }, accessLifetimeSeconds);
    const refresh = this.#claims(user, { sessionId, tokenType: "refresh" }, refreshLifetimeSeconds);
    return {
      access_token: await this.#options.tokens.sign(access),
      expires_at: rfc3339(access.expiresAt * 1000),
      refresh_token: await this.#options.tokens.sign(refresh),
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
