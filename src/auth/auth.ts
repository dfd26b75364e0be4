/**
 * Everything about identity that the server and SQL ask for, in one place.
 *
 * Credentials come in, a {@linkcode Principal} goes out; rights are `permissions.ts`. Sessions end
 * the moment the catalog says so: what is remembered of a token from one use to the next holds only
 * while no account and no revocation changes.
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
  /** Key of every token; see `secret.ts`. */
  readonly jwtSecret: Uint8Array;
  readonly accessLifetimeSeconds: number;
  readonly refreshLifetimeSeconds: number;
  readonly allowRemoteSetup: boolean;
  /** auth.root_password. */
  readonly rootPassword: string | undefined;
  readonly passwordPolicy: PasswordPolicy;
  /** Of one address; 0 for no limit. */
  readonly attemptsPerSecond: number;
  /** 0 for no lock-out. */
  readonly loginFailuresMax: number;
  readonly lockoutSeconds: number;
}

export interface AuthOptions {
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  settings: AuthSettings;
  /** Told of logins, and of what else happens here without a statement. */
  onAudit: OnAudit;
}

/**
 * Hashes share the runtime's thread pool, which has a thread for each core, with the syncs of the
 * log. One thread stays free of hashes, or a login would hold up every commit: with two hashes at
 * a time on 2 cores the median fdatasync went from 0.14 ms to 22 ms, with one it did not move.
 */
const HASHES_RUNNING_MAX = Math.min(4, Math.max(1, navigator.hardwareConcurrency - 1));

/**
 * What was found out about an access token when it was used: account and revocations are asked
 * again when any of them changed. It costs that a log-in has all of them asked again.
 */
interface RecentUse {
  readonly claims: TokenClaims;
  readonly principal: Principal;
  /** Of the catalog: while it stays, nothing but time makes the token bad. */
  readonly accessVersion: number;
  /** When its user was noted as seen, in Unix milliseconds. */
  seenMs: number;
}

/** How exactly it is known when a user was last seen. */
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
  /** The use that a principal was made for, newer ones or not. */
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
   * Gives root its configured password; to be awaited before the server listens.
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

  /** @param body The JSON value of the body, undefined when it was not JSON. @throws {AuthError} */
  setup(body: unknown, caller: Caller): Promise<SetupBody> {
    return this.#setup.setUp(body, caller);
  }

  /**
   * @param body The JSON value of the body, undefined when it was not JSON.
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
   * Who sends a request with this `Authorization` header.
   *
   * @param mayBeCookie Whether the token could have been in the cookie, for the message.
   * @throws {AuthError} MISSING_AUTHORIZATION and what {@linkcode authenticate} throws.
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
   * Who holds an access token.
   *
   * @throws {AuthError} TOKEN_EXPIRED, INVALID_CREDENTIALS, RATE_LIMIT_EXCEEDED
   */
  authenticate(bearerToken: string, caller: Caller): Principal {
    return this.#authenticated(this.#tokens.verify(bearerToken), caller);
  }

  /**
   * Refuses a caller whose session or account has ended since it was authenticated here, for what
   * waited in between: a request may take as long as it likes to send its body. Time alone ends
   * nothing, as on a connection that is open.
   *
   * @throws {AuthError} INVALID_CREDENTIALS, RATE_LIMIT_EXCEEDED
   */
  requireStanding(principal: Principal, caller: Caller): void {
    const use = this.#useOf.get(principal);
    assert(use !== undefined, "a token stands for the caller");
    if (use.accessVersion === this.#catalog.accessVersion) return;
    if (this.#liveUserBehind(use.claims) !== undefined) return;
    throw this.#bucket.failedToken(invalidCredentials(), caller);
  }

  /** When a token of the user was last used, to within a second; undefined for never. */
  lastSeenMs(user: UserEntry): number | undefined {
    return this.#lastSeen.timeMsOf(user);
  }

  /** Gives the catalog the times at which users were seen. Returns whether there are more. */
  keepSeen(): boolean {
    return this.#lastSeen.keep();
  }

  /** Names whose logins failed, known or not. */
  loginTroubles(): ReadonlyMap<string, LoginTrouble> {
    return this.#logins.troubles();
  }

  /**
   * The principal of the statement inside EXECUTE AS.
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

  /** What {@linkcode createUser} refuses, but for the password. @throws {DatabaseError} */
  checkCreateUser(principal: Principal, request: CreateUserRequest): void {
    this.#users.checkCreate(principal, request);
  }

  /** What {@linkcode alterUser} refuses, but for the password. @throws {DatabaseError} */
  checkAlterUser(principal: Principal, request: AlterUserRequest): void {
    this.#users.checkAlter(principal, request);
  }

  /** What {@linkcode dropUser} refuses. @throws {DatabaseError} */
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

  /** Tells of every revoked session, in the turn in which it is. Returns how to stop that. */
  onRevoked(listener: OnRevoked): () => void {
    return this.#sessionEnds.onRevoked(listener);
  }

  /** Who may act by the claims of a token now. @throws {AuthError} */
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
    const principal = this.#principal(user, claims.sessionId);
    const use: RecentUse = { claims, principal, accessVersion, seenMs: nowMs };
    this.#recent.set(claims, use);
    this.#useOf.set(principal, use);
    return principal;
  }

  #principal(user: UserEntry, sessionId: string): Principal {
    return {
      userId: user.userId,
      role: user.role,
      owner: this.#catalog.ownerNumber(user.userId),
      actorId: user.userId,
      actorRole: user.role,
      isImpersonated: false,
      sessionId,
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
