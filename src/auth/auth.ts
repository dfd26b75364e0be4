/**
 * The interface of authentication for the server and SQL.
 *
 * It turns credentials into a {@linkcode Principal}; `permissions.ts` decides about rights.
 * Sessions end as soon as the catalog says so: the result of checking a token is reused only while
 * no account and no revocation has changed.
 */
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { type Catalog, checkUserId, type UserEntry } from "../catalog/mod.ts";
import type { AuthStatusBody, LoginBody, MeBody, SetupBody } from "../protocol/mod.ts";
import { answerFromUser, type Caller, hasAdminUi } from "./answers.ts";
import type { OnAudit } from "./audit.ts";
import { invalidCredentials, noToken, notBearer, tokenExpired } from "./auth_error.ts";
import { LastSeen } from "./last_seen.ts";
import { AuthBucket, LoginGuard, type LoginTrouble } from "./login_guard.ts";
import { Logins } from "./logins.ts";
import { PasswordHasher, type PasswordPolicy } from "./password.ts";
import { mayExecuteAs } from "./permissions.ts";
import type { Principal } from "./principal.ts";
import { type OnRevoked, SessionEnds } from "./session_ends.ts";
import { Sessions, unauthorized } from "./sessions.ts";
import { Setup } from "./setup.ts";
import { type TokenClaims, Tokens } from "./token.ts";
import { type AlterUserRequest, type CreateUserRequest, UserAdmin } from "./user_admin.ts";

export interface AuthSettings {
  /** The key that signs every token; see `secret.ts`. */
  readonly jwtSecret: Uint8Array;
  readonly accessLifetimeSeconds: number;
  readonly refreshLifetimeSeconds: number;
  readonly allowRemoteSetup: boolean;
  /** The configuration key `auth.root_password`. */
  readonly rootPassword: string | undefined;
  readonly passwordPolicy: PasswordPolicy;
  /** Login attempts that one address may make per second; 0 means no limit. */
  readonly attemptsPerSecond: number;
  /** Consecutive failures before a lock-out; 0 means no lock-out. */
  readonly loginFailuresMax: number;
  readonly lockoutSeconds: number;
}

export interface AuthOptions {
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  settings: AuthSettings;
  /** Receives logins, and other audited actions that are performed here without a statement. */
  onAudit: OnAudit;
}

/**
 * Hashes share the runtime's thread pool, which has one thread per core, with the log's syncs. One
 * thread stays free of hashes, because otherwise a login would hold up every commit: on a 2-core
 * machine, two concurrent hashes raised the median fdatasync from 0.14 ms to 22 ms, but one did not
 * change it.
 */
const HASHES_RUNNING_MAX = Math.min(4, Math.max(1, navigator.hardwareConcurrency - 1));

/**
 * The cached result of checking an access token. The account and the revocations are checked again
 * whenever any of them has changed. A login changes an account, so it invalidates all entries.
 */
interface RecentUse {
  readonly claims: TokenClaims;
  readonly principal: Principal;
  /**
   * The catalog's version of accounts. While this version is unchanged, a token can become invalid
   * only by time.
   */
  readonly accessVersion: number;
  /** The time at which its user was recorded as seen, in Unix milliseconds. */
  seenMs: number;
}

/** The precision of "last seen". */
const SEEN_EXACT_MS = 1000;

export class Auth {
  readonly #catalog: Catalog;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #settings: AuthSettings;
  readonly #hasher = new PasswordHasher({ runningMax: HASHES_RUNNING_MAX });
  readonly #sessionEnds = new SessionEnds();
  readonly #tokens: Tokens;
  readonly #sessions: Sessions;
  readonly #setup: Setup;
  readonly #users: UserAdmin;
  readonly #logins: Logins;
  readonly #bucket: AuthBucket;
  readonly #lastSeen: LastSeen;
  readonly #recent = new WeakMap<TokenClaims, RecentUse>();
  /** The use for which each principal was made, even if there are newer uses. */
  readonly #useOf = new WeakMap<Principal, RecentUse>();

  constructor({ catalog, clock, random, log, onAudit, settings }: AuthOptions) {
    this.#catalog = catalog;
    this.#clock = clock;
    this.#log = log;
    this.#settings = settings;
    this.#lastSeen = new LastSeen({ catalog, clock, log });
    this.#bucket = new AuthBucket({ clock, perSecond: settings.attemptsPerSecond });
    this.#tokens = new Tokens({ secret: settings.jwtSecret, clock });
    this.#sessions = new Sessions({
      catalog,
      clock,
      random,
      log,
      tokens: this.#tokens,
      sessionEnds: this.#sessionEnds,
      onAudit,
      accessLifetimeSeconds: settings.accessLifetimeSeconds,
      refreshLifetimeSeconds: settings.refreshLifetimeSeconds,
    });
    const policy = settings.passwordPolicy;
    const guard = new LoginGuard({
      clock,
      failuresMax: settings.loginFailuresMax,
      lockMs: settings.lockoutSeconds * 1000,
    });
    this.#setup = new Setup({
      catalog,
      log,
      hasher: this.#hasher,
      policy,
      isRemoteAllowed: settings.allowRemoteSetup,
      takeAttempt: (caller) => this.#bucket.takeAttempt(caller),
      onAudit,
    });
    this.#users = new UserAdmin({
      catalog,
      log,
      hasher: this.#hasher,
      policy,
      sessionEnds: this.#sessionEnds,
      onPassword: (userId) => guard.forgive(userId),
      isRootManaged: settings.rootPassword !== undefined,
    });
    this.#logins = new Logins({
      catalog,
      clock,
      log,
      hasher: this.#hasher,
      sessions: this.#sessions,
      bucket: this.#bucket,
      guard,
      isSetupNeeded: () => this.#setup.isNeeded(),
      onAudit,
    });
  }

  /**
   * Sets the configured password of root. Await it before the server listens.
   *
   * @throws {DatabaseError} WEAK_PASSWORD
   */
  async start(): Promise<void> {
    const { rootPassword } = this.#settings;
    if (rootPassword !== undefined) await this.#setup.applyRootPassword(rootPassword);
  }

  status(): AuthStatusBody {
    return this.#setup.status();
  }

  /** @param body The JSON value of the body; undefined if it was not JSON. @throws {AuthError} */
  setup(body: unknown, caller: Caller): Promise<SetupBody> {
    return this.#setup.setUp(body, caller);
  }

  /**
   * @param body The JSON value of the body; undefined if it was not JSON.
   * @param token A token of an earlier login on this device, expired or not.
   * @throws {AuthError}
   */
  login(body: unknown, caller: Caller, token?: string): Promise<LoginBody> {
    return this.#logins.login(body, caller, token);
  }

  /** @throws {AuthError} unauthorized, rate_limited */
  async refresh(token: string | undefined, caller: Caller): Promise<LoginBody> {
    this.#bucket.takeAttempt(caller);
    if (token === undefined) throw unauthorized();
    return await this.#sessions.refresh(token, caller);
  }

  /** Ends the session of a token, or all sessions of its user. Never fails on a bad token. */
  logout(
    token: string | undefined,
    caller: Pick<Caller, "address" | "requestId">,
    { all = false }: { all?: boolean } = {},
  ): void {
    if (token !== undefined) this.#sessions.logout(token, { isAll: all, caller });
  }

  /** @throws {AuthError} unauthorized */
  me(token: string | undefined): MeBody {
    const claims = token === undefined ? undefined : this.#tokens.verify(token);
    const user = claims?.tokenType === "access" ? this.#liveUser(claims) : undefined;
    if (user === undefined) throw unauthorized();
    return { user: answerFromUser(user), admin_ui_access: hasAdminUi(user.role) };
  }

  /**
   * Returns the principal for an `Authorization` header.
   *
   * @param mayBeCookie Whether the token could have been in the cookie, for the message.
   * @throws {AuthError} MISSING_AUTHORIZATION, and the errors of {@linkcode authenticate}.
   */
  authenticateHeader(
    header: string | null | undefined,
    caller: Caller,
    { mayBeCookie = false }: { readonly mayBeCookie?: boolean } = {},
  ): Principal {
    if (header === null || header === undefined || header === "") {
      throw noToken({ isInUrl: caller.hasTokenInUrl ?? false, mayBeCookie });
    }
    const claims = this.#tokens.verifyHeader(header);
    if (claims === undefined && !/^bearer(?: |$)/i.test(header)) {
      throw this.#bucket.failedToken(notBearer(header), caller);
    }
    return this.#authenticated(claims, caller);
  }

  /**
   * Returns the principal for an access token.
   *
   * @throws {AuthError} TOKEN_EXPIRED, INVALID_CREDENTIALS, RATE_LIMIT_EXCEEDED
   */
  authenticate(bearerToken: string, caller: Caller): Principal {
    return this.#authenticated(this.#tokens.verify(bearerToken), caller);
  }

  /**
   * Refuses a caller whose session or account has ended since it was authenticated. Called after a
   * wait, because a client may take as long as it likes to send its body. A token that has expired
   * since is accepted here.
   *
   * @throws {AuthError} INVALID_CREDENTIALS, RATE_LIMIT_EXCEEDED
   */
  requireStanding(principal: Principal, caller: Caller): void {
    const use = this.#useOf.get(principal);
    assert(use !== undefined, "a token identifies the caller");
    if (use.accessVersion === this.#catalog.accessVersion) return;
    if (this.#liveUserBehind(use.claims) !== undefined) return;
    throw this.#bucket.failedToken(invalidCredentials(), caller);
  }

  /**
   * Returns the last time at which a token of the user was used, to within a second; undefined if
   * no token was ever used.
   */
  lastSeenMs(user: UserEntry): number | undefined {
    return this.#lastSeen.timeMsOf(user);
  }

  /**
   * Writes the times at which users were last seen to the catalog. Returns true if there are more.
   */
  keepSeen(): boolean {
    return this.#lastSeen.keep();
  }

  /** Login names with recent failures, whether or not the users exist. */
  loginTroubles(): ReadonlyMap<string, LoginTrouble> {
    return this.#logins.troubles();
  }

  /**
   * Returns the principal of the statement inside EXECUTE AS.
   *
   * @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, INVALID_NAME
   */
  executeAs(principal: Principal, targetUserId: string): Principal {
    checkUserId(targetUserId);
    const actor = { userId: principal.actorId, role: principal.actorRole };
    const target = this.#catalog.user(targetUserId);
    const isAllowed =
      !principal.isImpersonated &&
      mayExecuteAs(actor, { userId: targetUserId, role: target?.role });
    if (!isAllowed) {
      this.#log.warn("execute as refused", { actor: actor.userId, target: targetUserId });
      throw new DatabaseError(
        "PERMISSION_DENIED",
        `Cannot execute as user ${targetUserId}: role ${actor.role} may not act for it`,
      );
    }
    if (target === undefined) throw userNotFound(targetUserId);
    this.#log.debug("execute as", { actor: actor.userId, target: targetUserId });
    return {
      userId: targetUserId,
      role: "user",
      owner: this.#catalog.ownerNumber(targetUserId),
      actorId: actor.userId,
      actorRole: actor.role,
      isImpersonated: true,
      sessionId: principal.sessionId,
    };
  }

  /**
   * @throws {DatabaseError} PERMISSION_DENIED, INVALID_NAME, ALREADY_EXISTS, WEAK_PASSWORD,
   * INVALID_VALUE
   */
  createUser(principal: Principal, request: CreateUserRequest): Promise<UserEntry> {
    return this.#users.create(principal, request);
  }

  /**
   * Performs the checks of {@linkcode createUser}, except for the password.
   * @throws {DatabaseError}
   */
  checkCreateUser(principal: Principal, request: CreateUserRequest): void {
    this.#users.checkCreate(principal, request);
  }

  /**
   * Performs the checks of {@linkcode alterUser}, except for the password.
   * @throws {DatabaseError}
   */
  checkAlterUser(principal: Principal, request: AlterUserRequest): void {
    this.#users.checkAlter(principal, request);
  }

  /**
   * Performs the checks of {@linkcode dropUser}.
   * @throws {DatabaseError}
   */
  checkDropUser(principal: Principal, userId: string): void {
    this.#users.checkDrop(principal, userId);
  }

  /**
   * @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, WEAK_PASSWORD, INVALID_VALUE,
   * INVALID_OPERATION, MANAGED_BY_CONFIG, SERIALIZATION_FAILURE
   */
  alterUser(principal: Principal, request: AlterUserRequest): Promise<UserEntry> {
    return this.#users.alter(principal, request);
  }

  /** @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, INVALID_OPERATION */
  dropUser(principal: Principal, userId: string, options?: { erasesNow?: boolean }): void {
    this.#users.drop(principal, userId, options);
  }

  /**
   * Calls the listener for every revoked session, in the same tick. Returns a function that removes
   * it.
   */
  onRevoked(listener: OnRevoked): () => void {
    return this.#sessionEnds.onRevoked(listener);
  }

  /**
   * Returns the current principal for the claims of a token.
   * @throws {AuthError}
   */
  #authenticated(claims: TokenClaims | undefined, caller: Caller): Principal {
    if (claims === undefined || claims.tokenType !== "access") {
      throw this.#bucket.failedToken(invalidCredentials(), caller);
    }
    const nowMs = this.#clock.nowMs();
    const age = this.#tokens.age(claims, nowMs);
    const recent = this.#recent.get(claims);
    const { accessVersion } = this.#catalog;
    if (age === "valid" && recent?.accessVersion === accessVersion) {
      if (Math.abs(nowMs - recent.seenMs) >= SEEN_EXACT_MS) {
        recent.seenMs = nowMs;
        this.#lastSeen.note(recent.principal.userId);
      }
      return recent.principal;
    }
    const user = age === "early" ? undefined : this.#liveUserBehind(claims);
    if (user === undefined) throw this.#bucket.failedToken(invalidCredentials(), caller);
    if (age === "expired") {
      throw this.#bucket.failedToken(tokenExpired(), caller);
    }
    this.#lastSeen.note(user.userId);
    const principal = this.#principal(user, claims);
    const use: RecentUse = { claims, principal, accessVersion, seenMs: nowMs };
    this.#recent.set(claims, use);
    this.#useOf.set(principal, use);
    return principal;
  }

  #principal(user: UserEntry, claims: TokenClaims): Principal {
    return {
      userId: user.userId,
      role: user.role,
      owner: this.#catalog.ownerNumber(user.userId),
      actorId: user.userId,
      actorRole: user.role,
      isImpersonated: false,
      sessionId: claims.sessionId,
      tokenEndMs: this.#tokens.endMs(claims),
    };
  }

  #liveUser(claims: TokenClaims): UserEntry | undefined {
    return this.#tokens.age(claims) === "valid" ? this.#liveUserBehind(claims) : undefined;
  }

  #liveUserBehind(claims: TokenClaims): UserEntry | undefined {
    return this.#catalog.isRevoked(claims.tokenId) ? undefined : this.#sessions.userBehind(claims);
  }
}

function userNotFound(userId: string): DatabaseError {
  return new DatabaseError("USER_NOT_FOUND", `Cannot act as user ${userId}: it does not exist`);
}
