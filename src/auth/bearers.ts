/**
 * Identifies the caller of a request by token: an access token from a login, a service token, or a
 * token from an issuer that the configuration trusts.
 *
 * The result of checking a token is reused only until an account, a revocation or a service token
 * changes. A session therefore ends as soon as the catalog records its end.
 */
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Catalog, ServiceTokenEntry, UserEntry } from "../catalog/mod.ts";
import type { MeBody } from "../protocol/mod.ts";
import { answerFromUser, type Caller, hasAdminUi } from "./answers.ts";
import {
  AuthError,
  externalTokenExpired,
  fileUrlExpired,
  invalidCredentials,
  invalidFileUrl,
  noToken,
  notBearer,
  serviceTokenExpired,
  tokenExpired,
} from "./auth_error.ts";
import type { ExternalToken, ExternalTokens } from "./external_tokens.ts";
import { type FileUrlSession, fileAccessFrom, fileUrlKey, isFileSignature } from "./file_urls.ts";
import type { LastSeen } from "./last_seen.ts";
import type { AuthBucket } from "./login_guard.ts";
import { claimTexts, endMsOf, isEarly } from "./oidc/token_claims.ts";
import type { Principal } from "./principal.ts";
import { isSessionEnded } from "./provider_sessions.ts";
import type { ProviderUsers } from "./provider_users.ts";
import { looksLikeServiceToken, type ServiceTokens, scopeOf, sessionOf } from "./service_tokens.ts";
import { type Sessions, type TokenSource, unauthorized } from "./sessions.ts";
import {
  bearerTokenIn,
  provenEmailOf,
  publicClaims,
  type TokenClaims,
  type Tokens,
} from "./token.ts";

export interface BearersOptions {
  catalog: Catalog;
  clock: Clock;
  tokens: Tokens;
  serviceTokens: ServiceTokens;
  externalTokens: ExternalTokens;
  providerUsers: ProviderUsers;
  sessions: Sessions;
  bucket: AuthBucket;
  lastSeen: LastSeen;
  /** The secret with which the server signs tokens. */
  secret: Uint8Array;
  /**
   * The lifetime of a refresh token, in seconds. The server remembers the end of a session for at
   * least this long.
   */
  refreshLifetimeSeconds: number;
}

/** The maximum lifetime of a signed file URL, in seconds. */
const FILE_URL_SECONDS_MAX = 7 * 86_400;

/**
 * The maximum lifetime, in seconds, of a file URL signed in a session whose token comes from an
 * external issuer. After the token expires, the server remembers for this long that the session
 * has ended, so that its URLs stay revoked.
 */
const EXTERNAL_FILE_URL_SECONDS = 3600;

/**
 * The cached result of a token check. The account and the revocations are checked again after any
 * change to an account or a revocation. A login changes an account, so it invalidates all entries.
 */
interface RecentUse {
  readonly principal: Principal;
  /**
   * Returns whether the session and the account still exist. It does not matter whether the token
   * has expired.
   */
  readonly isStanding: () => boolean;
  /**
   * The catalog's version number for accounts. While it is unchanged, a token can become invalid
   * only by expiring.
   */
  readonly accessVersion: number;
  /** The time at which the use of the token was last recorded, in Unix milliseconds. */
  seenMs: number;
}

type UsedToken = TokenClaims | ServiceTokenEntry | ExternalToken;

/** The minimum interval, in milliseconds, between two updates of a user's last-seen time. */
const SEEN_EXACT_MS = 1000;

export class Bearers {
  readonly #options: BearersOptions;
  readonly #recent = new WeakMap<UsedToken, RecentUse>();
  /** The token use that created each principal, even if the token has been used again since. */
  readonly #useOf = new WeakMap<Principal, RecentUse>();

  constructor(options: BearersOptions) {
    this.#options = options;
  }

  /**
   * Returns the user to whom a token belongs, including the user's role.
   * @throws {AuthError} unauthorized
   */
  me(token: string | undefined, caller: Caller): MeBody {
    const user = token === undefined ? undefined : this.#userOfToken(token, caller);
    if (user === undefined) throw unauthorized();
    return { user: answerFromUser(user), admin_ui_access: hasAdminUi(user.role) };
  }

  /**
   * Returns the principal for an `Authorization` header.
   *
   * @param mayBeCookie Whether the endpoint also accepts a cookie, which the error message then
   *   mentions.
   * @throws {AuthError} MISSING_AUTHORIZATION, TOKEN_EXPIRED, INVALID_CREDENTIALS,
   *   RATE_LIMIT_EXCEEDED
   */
  authenticateHeader(
    header: string | null | undefined,
    caller: Caller,
    { mayBeCookie = false }: { readonly mayBeCookie?: boolean } = {},
  ): Principal {
    if (header === null || header === undefined || header === "") {
      throw noToken({ isInUrl: caller.hasTokenInUrl ?? false, mayBeCookie });
    }
    const { bucket, tokens } = this.#options;
    const claims = tokens.verifyHeader(header);
    if (claims !== undefined) return this.#authenticated(claims, caller);
    const token = bearerTokenIn(header);
    if (token !== undefined && looksLikeServiceToken(token)) {
      return this.#byServiceToken(token, caller);
    }
    const external = token === undefined ? undefined : this.#externalOf(token);
    if (external !== undefined) return this.#byExternalToken(external, caller);
    if (!/^bearer(?: |$)/i.test(header)) throw bucket.failedToken(notBearer(header), caller);
    throw bucket.failedToken(invalidCredentials(), caller);
  }

  /**
   * Returns the principal for an access token, a service token or a token from an external issuer.
   *
   * @throws {AuthError} TOKEN_EXPIRED, INVALID_CREDENTIALS, RATE_LIMIT_EXCEEDED
   */
  authenticate(token: string, caller: Caller): Principal {
    const { bucket, tokens } = this.#options;
    if (looksLikeServiceToken(token)) return this.#byServiceToken(token, caller);
    const claims = tokens.verify(token);
    if (claims !== undefined) return this.#authenticated(claims, caller);
    const external = this.#externalOf(token);
    if (external !== undefined) return this.#byExternalToken(external, caller);
    throw bucket.failedToken(invalidCredentials(), caller);
  }

  /**
   * Ends the session of a token from an external issuer. Returns false if the token is not from an
   * external issuer.
   */
  logoutExternal(token: string, options: { isAll: boolean; caller: TokenSource }): boolean {
    const external = this.#externalOf(token);
    const user =
      external === undefined ? undefined : this.#options.providerUsers.linkedTo(external.identity);
    if (external === undefined || user === undefined) return false;
    const { sessionId, times } = external;
    const expiresAt = Math.ceil(times.expiresAt) + EXTERNAL_FILE_URL_SECONDS;
    const claims = { sessionId, expiresAt, userId: user.userId };
    this.#options.sessions.end({ claims, user }, options);
    return true;
  }

  /**
   * Refuses a caller whose session or account has ended since authentication. The check is needed
   * after any wait, for example for a body that the client sends slowly. A token that has expired
   * in the meantime is still accepted.
   *
   * @throws {AuthError} INVALID_CREDENTIALS, RATE_LIMIT_EXCEEDED
   */
  requireStanding(principal: Principal, caller: Caller): void {
    const { bucket, catalog } = this.#options;
    const use = this.#useOf.get(principal);
    assert(use !== undefined, "auth: no token is recorded for the authenticated caller");
    if (use.accessVersion === catalog.accessVersion || use.isStanding()) return;
    throw bucket.failedToken(invalidCredentials(), caller);
  }

  /**
   * Returns the principal for a signed file URL (`file_urls.ts`): the user whose session signed
   * the URL, provided that the session still exists.
   *
   * @param access The `access` parameter of the URL.
   * @throws {AuthError} TOKEN_EXPIRED, INVALID_CREDENTIALS, RATE_LIMIT_EXCEEDED
   */
  authenticateFileUrl(access: string, fileId: string, caller: Caller): Principal {
    const { bucket, clock, secret } = this.#options;
    const parts = fileAccessFrom(access);
    const bearer = parts === undefined ? undefined : this.#bearerOf(parts.session);
    const { tokenHash } = bearer ?? {};
    if (
      parts === undefined ||
      bearer === undefined ||
      !isFileSignature(secret, parts, { fileId, tokenHash })
    ) {
      throw bucket.failedToken(invalidFileUrl(), caller);
    }
    if (clock.nowMs() >= parts.until * 1000) throw bucket.failedToken(fileUrlExpired(), caller);
    return bearer.principal;
  }

  /** Returns the principal of a session; undefined if the session has ended. */
  #bearerOf(
    session: FileUrlSession,
  ): { readonly principal: Principal; readonly tokenHash?: string } | undefined {
    const { catalog, serviceTokens, sessions } = this.#options;
    if (session.kind === "login") {
      const user = sessions.userBehind(session);
      if (user === undefined) return undefined;
      const claims = session.claims ?? publicClaims({ ...user, email: provenEmailOf(user) });
      return { principal: { ...this.#identity(user), claims, sessionId: session.sessionId } };
    }
    const token = catalog.serviceTokens.named(session.name);
    if (token === undefined || serviceTokens.isExpired(token)) return undefined;
    const user = catalog.accounts.user(token.userId);
    if (user === undefined) return undefined;
    const tokenScope = scopeOf(token);
    const scoped = tokenScope === undefined ? {} : { tokenScope };
    return {
      principal: { ...this.#identity(user), sessionId: sessionOf(token), ...scoped },
      tokenHash: token.secretHash,
    };
  }

  /**
   * Returns the principal for the verified claims of a token that this server issued.
   * @throws {AuthError}
   */
  #authenticated(claims: TokenClaims, caller: Caller): Principal {
    const { bucket, clock, tokens } = this.#options;
    if (claims.tokenType !== "access") throw bucket.failedToken(invalidCredentials(), caller);
    const age = tokens.age(claims, clock.nowMs());
    const recent = age === "valid" ? this.#recentPrincipal(claims) : undefined;
    if (recent !== undefined) return recent;
    const user = age === "early" ? undefined : this.#liveUserBehind(claims);
    if (user === undefined) throw bucket.failedToken(invalidCredentials(), caller);
    if (age === "expired") throw bucket.failedToken(tokenExpired(), caller);
    const { refreshLifetimeSeconds, secret } = this.#options;
    const { external, role, sessionId, tokenVersion, userId } = claims;
    const shown = publicClaims(claims);
    const kept = external === undefined ? {} : { claims: shown };
    return this.#begin(claims, {
      isStanding: () => this.#liveUserBehind(claims) !== undefined,
      principal: {
        ...this.#identity(user),
        claims: shown,
        sessionId: claims.sessionId,
        tokenEndMs: tokens.endMs(claims),
        fileUrlKey: fileUrlKey(
          secret,
          { kind: "login", userId, sessionId, tokenVersion, role, ...kept },
          // A URL must not outlive the record that its session has ended. This record is removed
          // once the session's newest tokens have expired.
          { secondsMax: Math.min(FILE_URL_SECONDS_MAX, refreshLifetimeSeconds) },
        ),
      },
    });
  }

  /** Returns the principal for the secret of a service token. @throws {AuthError} */
  #byServiceToken(secret: string, caller: Caller): Principal {
    const { bucket, catalog, lastSeen, serviceTokens } = this.#options;
    const token = serviceTokens.find(secret);
    const user = token === undefined ? undefined : catalog.accounts.user(token.userId);
    if (token === undefined || user === undefined) {
      throw bucket.failedToken(invalidCredentials(), caller);
    }
    if (serviceTokens.isExpired(token)) throw bucket.failedToken(serviceTokenExpired(), caller);
    lastSeen.noteToken(token.name);
    const recent = this.#recentPrincipal(token);
    if (recent !== undefined) return recent;
    const tokenScope = scopeOf(token);
    return this.#begin(token, {
      isStanding: () => serviceTokens.isStanding(token),
      principal: {
        ...this.#identity(user),
        claims: publicClaims({ ...user, email: provenEmailOf(user) }),
        sessionId: sessionOf(token),
        fileUrlKey: fileUrlKey(
          this.#options.secret,
          { kind: "token", name: token.name },
          { secondsMax: FILE_URL_SECONDS_MAX, tokenHash: token.secretHash },
        ),
        ...(token.expiresAtMs === undefined ? {} : { tokenEndMs: token.expiresAtMs }),
        ...(tokenScope === undefined ? {} : { tokenScope }),
      },
    });
  }

  #externalOf(token: string): ExternalToken | undefined {
    return this.#options.externalTokens.find(token);
  }

  /** Returns the principal for a verified token from an external issuer. @throws {AuthError} */
  #byExternalToken(token: ExternalToken, caller: Caller): Principal {
    const { bucket, clock, secret } = this.#options;
    const { identity, sessionId, times } = token;
    const nowMs = clock.nowMs();
    const endMs = endMsOf(times);
    if (isEarly(times, nowMs)) throw bucket.failedToken(invalidCredentials(), caller);
    if (nowMs >= endMs) throw bucket.failedToken(externalTokenExpired(), caller);
    const recent = this.#recentPrincipal(token);
    if (recent !== undefined) return recent;
    const user = this.#userOfExternal(token, caller);
    if (user === undefined) throw bucket.failedToken(invalidCredentials(), caller);
    const { role, tokenVersion, userId } = user;
    const external = claimTexts(identity);
    const claims = publicClaims(
      { ...user, email: provenEmailOf(user), external },
      identity.provider.issuer,
    );
    return this.#begin(token, {
      isStanding: () => {
        const now = this.#standingUserOf(token);
        return now?.userId === userId && now.role === role;
      },
      principal: {
        ...this.#identity(user),
        claims,
        sessionId,
        tokenEndMs: endMs,
        fileUrlKey: fileUrlKey(
          secret,
          { kind: "login", userId, sessionId, tokenVersion, role, claims },
          { secondsMax: EXTERNAL_FILE_URL_SECONDS },
        ),
      },
    });
  }

  /**
   * Returns the user to whom a token from an external issuer belongs. Creates the account if it
   * does not exist and the configuration allows it.
   * @throws {AuthError}
   */
  #userOfExternal(token: ExternalToken, caller: Caller): UserEntry | undefined {
    if (isSessionEnded(this.#options.catalog, token.sessionId)) return undefined;
    try {
      return this.#options.providerUsers.admit(token.identity, caller);
    } catch (error) {
      if (!(error instanceof AuthError) || error.code !== "rate_limited") throw error;
      const { message, retryAfterSeconds = 1 } = error;
      throw new AuthError("RATE_LIMIT_EXCEEDED", message, { retryAfterSeconds });
    }
  }

  /**
   * Returns the user to whom a token from an external issuer belongs, even if the token has
   * expired. Returns undefined if the session has ended.
   */
  #standingUserOf({ identity, sessionId }: ExternalToken): UserEntry | undefined {
    const { catalog, providerUsers } = this.#options;
    return isSessionEnded(catalog, sessionId) ? undefined : providerUsers.linkedTo(identity);
  }

  /**
   * Returns the principal from an earlier use of a token. Returns undefined if an account or a
   * revocation has changed since.
   */
  #recentPrincipal(token: UsedToken): Principal | undefined {
    const { catalog, clock, lastSeen } = this.#options;
    const recent = this.#recent.get(token);
    if (recent?.accessVersion !== catalog.accessVersion) return undefined;
    const nowMs = clock.nowMs();
    if (Math.abs(nowMs - recent.seenMs) >= SEEN_EXACT_MS) {
      recent.seenMs = nowMs;
      lastSeen.note(recent.principal.userId);
    }
    return recent.principal;
  }

  #begin(
    token: UsedToken,
    { isStanding, principal }: Pick<RecentUse, "isStanding" | "principal">,
  ): Principal {
    const { catalog, clock, lastSeen } = this.#options;
    lastSeen.note(principal.userId);
    const { accessVersion } = catalog;
    const use: RecentUse = { isStanding, principal, accessVersion, seenMs: clock.nowMs() };
    this.#recent.set(token, use);
    this.#useOf.set(principal, use);
    return principal;
  }

  #identity(user: UserEntry): Omit<Principal, "sessionId"> {
    return {
      userId: user.userId,
      role: user.role,
      owner: this.#options.catalog.accounts.ownerNumber(user.userId),
      actorId: user.userId,
      actorRole: user.role,
      isImpersonated: false,
    };
  }

  #userOfToken(text: string, caller: Caller): UserEntry | undefined {
    const { catalog, serviceTokens, tokens } = this.#options;
    const token = serviceTokens.find(text);
    if (token !== undefined) {
      return serviceTokens.isExpired(token) ? undefined : catalog.accounts.user(token.userId);
    }
    const external = this.#externalOf(text);
    if (external !== undefined) {
      const nowMs = this.#options.clock.nowMs();
      const isValid = !isEarly(external.times, nowMs) && nowMs < endMsOf(external.times);
      return isValid ? this.#userOfExternal(external, caller) : undefined;
    }
    const claims = tokens.verify(text);
    if (claims?.tokenType !== "access" || tokens.age(claims) !== "valid") return undefined;
    return this.#liveUserBehind(claims);
  }

  #liveUserBehind(claims: TokenClaims): UserEntry | undefined {
    const { catalog, sessions } = this.#options;
    return catalog.revocations.isRevoked(claims.tokenId) ? undefined : sessions.userBehind(claims);
  }
}
