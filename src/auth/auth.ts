/**
 * Defines the interface through which the server and SQL use authentication.
 *
 * The class turns credentials into a {@linkcode Principal}; `permissions.ts` decides what a
 * principal may do.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import {
  type Catalog,
  checkUserId,
  type ServiceTokenEntry,
  type UserEntry,
} from "../catalog/mod.ts";
import type { AuthStatusBody, LoginBody, MeBody, MessageBody, SetupBody } from "../protocol/mod.ts";
import { AccountLinks } from "./account_links.ts";
import type { AccountSettings, OnNotice } from "./account_settings.ts";
import type { Caller } from "./answers.ts";
import type { OnAudit } from "./audit.ts";
import { Bearers } from "./bearers.ts";
import { ExternalTokens } from "./external_tokens.ts";
import { type CreateInvitationRequest, Invitations } from "./invitations.ts";
import { LastSeen } from "./last_seen.ts";
import { AuthBucket, LoginGuard, type LoginTrouble } from "./login_guard.ts";
import { Logins } from "./logins.ts";
import type { OidcSettings } from "./oidc/oidc_settings.ts";
import { Providers } from "./oidc/providers.ts";
import { OwnAccount } from "./own_account.ts";
import { PasswordHasher, type PasswordPolicy } from "./password.ts";
import { mayExecuteAs, requireMessages, requireTokenToAct } from "./permissions.ts";
import type { Principal } from "./principal.ts";
import { ProviderLogins } from "./provider_logins.ts";
import { ProviderLogouts } from "./provider_logouts.ts";
import { ProviderUsers, type ProviderUsersOptions } from "./provider_users.ts";
import { type CreateTokenRequest, ServiceTokens } from "./service_tokens.ts";
import { type OnDropped, type OnRevoked, SessionEnds } from "./session_ends.ts";
import { Sessions, unauthorized } from "./sessions.ts";
import { Setup } from "./setup.ts";
import { SignUpRate } from "./sign_up_rate.ts";
import { SignUps } from "./sign_ups.ts";
import { bearerTokenIn, Tokens } from "./token.ts";
import { type AlterUserRequest, type CreateUserRequest, UserAdmin } from "./user_admin.ts";

export interface AuthSettings {
  /** The key that signs every token; see `secret.ts`. */
  readonly jwtSecret: Uint8Array;
  readonly accessLifetimeSeconds: number;
  readonly refreshLifetimeSeconds: number;
  readonly allowRemoteSetup: boolean;
  /** Whether setup requires the code that the server prints at startup. */
  readonly hasSetupCode: boolean;
  /** The configuration key `auth.root_password`: root's password, if the configuration sets it. */
  readonly rootPassword: string | undefined;
  readonly passwordPolicy: PasswordPolicy;
  /** The maximum number of login attempts per second from a single address; 0 means no limit. */
  readonly attemptsPerSecond: number;
  /** The number of consecutive failed logins that locks an account out; 0 means no lock-out. */
  readonly loginFailuresMax: number;
  readonly lockoutSeconds: number;
  readonly accounts: AccountSettings;
  readonly oidc: OidcSettings;
}

export interface AuthOptions {
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  settings: AuthSettings;
  /** Receives the audit events for logins and for other actions that are not SQL statements. */
  onAudit: OnAudit;
  /** Receives messages to users. A program of the operator delivers them. */
  onNotice: OnNotice;
}

/**
 * The maximum number of passwords being hashed at once. Password hashing and log syncs share the
 * runtime's thread pool, which has one thread per core. One thread never computes hashes, because
 * otherwise a login could delay every commit: on a 2-core machine, two concurrent hashes raised
 * the median fdatasync time from 0.14 ms to 22 ms, whereas a single hash did not affect it.
 */
const HASHES_RUNNING_MAX = Math.min(4, Math.max(1, navigator.hardwareConcurrency - 1));

export class Auth {
  readonly #catalog: Catalog;
  readonly #log: Log;
  readonly #settings: AuthSettings;
  readonly #hasher = new PasswordHasher({ runningMax: HASHES_RUNNING_MAX });
  readonly #sessionEnds = new SessionEnds();
  readonly #sessions: Sessions;
  readonly #setup: Setup;
  readonly #users: UserAdmin;
  readonly #logins: Logins;
  readonly #bucket: AuthBucket;
  readonly #lastSeen: LastSeen;
  readonly #serviceTokens: ServiceTokens;
  readonly #invitations: Invitations;
  readonly #signUps: SignUps;
  /** Handles the links for resetting passwords and verifying addresses. */
  readonly links: AccountLinks;
  /** The operations that users may perform on their own accounts. */
  readonly ownAccount: OwnAccount;
  /** Handles browser logins through OpenID Connect providers. */
  readonly providerLogins: ProviderLogins;
  /** Handles logouts that OpenID Connect providers report. */
  readonly providerLogouts: ProviderLogouts;
  readonly #externalTokens: ExternalTokens;
  readonly #bearers: Bearers;

  constructor({ settings, ...given }: AuthOptions) {
    const { catalog, clock, log } = given;
    const { passwordPolicy: policy, rootPassword } = settings;
    this.#catalog = catalog;
    this.#log = log;
    this.#settings = settings;
    this.#lastSeen = new LastSeen(given);
    this.#bucket = new AuthBucket({ clock, perSecond: settings.attemptsPerSecond });
    const guard = new LoginGuard({
      clock,
      failuresMax: settings.loginFailuresMax,
      lockMs: settings.lockoutSeconds * 1000,
    });
    const shared = {
      ...given,
      policy,
      hasher: this.#hasher,
      tokens: new Tokens({ secret: settings.jwtSecret, clock }),
      sessionEnds: this.#sessionEnds,
      bucket: this.#bucket,
      guard,
      isRootManaged: rootPassword !== undefined,
      isSetupNeeded: () => this.#setup.isNeeded(),
      onPassword: (userId: string) => guard.forgive(userId),
    };
    const { accessLifetimeSeconds, refreshLifetimeSeconds } = settings;
    this.#sessions = new Sessions({ ...shared, accessLifetimeSeconds, refreshLifetimeSeconds });
    this.#serviceTokens = new ServiceTokens(shared);
    this.#invitations = new Invitations(shared);
    const { accounts, jwtSecret: secret } = settings;
    const known = {
      ...shared,
      ...externalParts(settings, { ...shared, refreshLifetimeSeconds }),
      sessions: this.#sessions,
      serviceTokens: this.#serviceTokens,
      lastSeen: this.#lastSeen,
      secret,
      refreshLifetimeSeconds,
    };
    this.#externalTokens = known.externalTokens;
    this.#bearers = new Bearers(known);
    this.#setup = new Setup({
      ...shared,
      isRemoteAllowed: settings.allowRemoteSetup,
      hasCode: settings.hasSetupCode,
      takeAttempt: (caller) => this.#bucket.takeAttempt(caller),
    });
    this.#users = new UserAdmin({ ...shared, refreshLifetimeSeconds });
    this.#logins = new Logins({ ...known, isEmailLogin: accounts.isEmailLogin });
    const forAccounts = {
      ...known,
      settings: accounts,
      logins: this.#logins,
      invitations: this.#invitations,
      users: this.#users,
    };
    this.providerLogins = new ProviderLogins({ ...forAccounts, mayLink: settings.oidc.mayLink });
    this.providerLogouts = new ProviderLogouts(known);
    this.links = new AccountLinks(forAccounts);
    this.#signUps = new SignUps({ ...forAccounts, links: this.links });
    this.ownAccount = new OwnAccount({ ...forAccounts, providerLogins: this.providerLogins });
  }

  /**
   * Sets root's password to the configured one. This must be awaited before the server listens.
   *
   * @throws {DatabaseError} WEAK_PASSWORD
   */
  async start(): Promise<void> {
    const { rootPassword } = this.#settings;
    if (rootPassword !== undefined) await this.#setup.applyRootPassword(rootPassword);
  }

  status(): AuthStatusBody {
    return { ...this.#setup.status(), oidc_providers: this.providerLogins.listed };
  }

  /**
   * The code that the setup request must contain, which is printed at startup. Undefined if setup
   * needs no code.
   */
  get setupCode(): string | undefined {
    return this.#setup.code;
  }

  /**
   * Creates the first administrator, as the setup endpoint requests.
   * @param body The JSON value of the body; undefined if it was not JSON.
   * @throws {AuthError}
   */
  setup(body: unknown, caller: Caller): Promise<SetupBody> {
    return this.#setup.setUp(body, caller);
  }

  /**
   * Checks the credentials in a request body, and starts a session.
   * @param body The JSON value of the body; undefined if it was not JSON.
   * @param token A token of an earlier login on this device, expired or not.
   * @throws {AuthError}
   */
  login(body: unknown, caller: Caller, token?: string): Promise<LoginBody> {
    return this.#logins.login(body, caller, token);
  }

  /**
   * Creates an account with the role `user`. The response does not reveal whether the name was
   * already taken.
   *
   * @param body The JSON value of the body; undefined if it was not JSON.
   * @param guest The guest whose token came with the request. No new account is created; instead,
   *   the guest's account gets the login name.
   * @throws {AuthError}
   */
  signUp(body: unknown, caller: Caller, guest: Principal | undefined): Promise<MessageBody> {
    return this.#signUps.signUp(body, caller, guest);
  }

  /** Creates a guest account and starts its session. @throws {AuthError} */
  beginAsGuest(caller: Caller): Promise<LoginBody> {
    return this.#signUps.beginAsGuest(caller);
  }

  /**
   * Drops guest accounts that have not been used for a long time. Returns whether more such
   * accounts remain.
   */
  dropIdleGuests(): boolean {
    return this.#signUps.dropIdleGuests();
  }

  /** Exchanges a refresh token for new tokens. @throws {AuthError} unauthorized, rate_limited */
  async refresh(token: string | undefined, caller: Caller): Promise<LoginBody> {
    this.#bucket.takeAttempt(caller);
    if (token === undefined) throw unauthorized();
    return await this.#sessions.refresh(token, caller);
  }

  /**
   * Ends the session of a token, or all sessions of the token's user. An invalid token is not an
   * error.
   */
  logout(
    token: string | undefined,
    caller: Pick<Caller, "address" | "requestId">,
    { all = false }: { all?: boolean } = {},
  ): void {
    if (token === undefined) return;
    const options = { isAll: all, caller };
    if (!this.#bearers.logoutExternal(token, options)) this.#sessions.logout(token, options);
  }

  /**
   * Returns the user to whom a token belongs, including the user's role.
   * @throws {AuthError} unauthorized
   */
  me(token: string | undefined, caller: Caller): MeBody {
    return this.#bearers.me(token, caller);
  }

  /** Whether the configuration trusts any token issuer other than this server. */
  get trustsOthers(): boolean {
    return this.#externalTokens.trustsOthers;
  }

  /**
   * Verifies the token in an `Authorization` header if an external issuer may have signed it, so
   * that {@linkcode authenticateHeader} finds the result. Returns undefined if no verification is
   * pending. The promise rejects only if the issuer's keys cannot be fetched.
   *
   * @throws {AuthError} AUTHENTICATION_ERROR
   */
  checkExternal(header: string | null | undefined): Promise<void> | undefined {
    if (!this.trustsOthers || header === null || header === undefined) return undefined;
    const token = bearerTokenIn(header);
    return token === undefined ? undefined : this.#externalTokens.check(token);
  }

  /**
   * Returns the principal for an `Authorization` header. See {@linkcode
   * Bearers.authenticateHeader}.
   *
   * @throws {AuthError}
   */
  authenticateHeader(
    header: string | null | undefined,
    caller: Caller,
    options?: { readonly mayBeCookie?: boolean },
  ): Principal {
    return this.#bearers.authenticateHeader(header, caller, options);
  }

  /**
   * Returns the principal for a signed file URL. See {@linkcode Bearers.authenticateFileUrl}.
   * @throws {AuthError}
   */
  authenticateFileUrl(access: string, fileId: string, caller: Caller): Principal {
    return this.#bearers.authenticateFileUrl(access, fileId, caller);
  }

  /**
   * Returns the principal for a token. See {@linkcode Bearers.authenticate}.
   *
   * @throws {AuthError}
   */
  authenticate(token: string, caller: Caller): Principal {
    return this.#bearers.authenticate(token, caller);
  }

  /**
   * Refuses a caller whose session or account has ended since authentication; see {@linkcode
   * Bearers.requireStanding}.
   *
   * @throws {AuthError}
   */
  requireStanding(principal: Principal, caller: Caller): void {
    this.#bearers.requireStanding(principal, caller);
  }

  /**
   * Refuses a caller who may not read the messages of a topic.
   *
   * @throws {DatabaseError} PERMISSION_DENIED
   */
  requireMessages(principal: Principal, topicId: number): void {
    const topic = this.#catalog.topicById(topicId);
    if (topic !== undefined) requireMessages(principal, topic, this.#catalog);
  }

  /**
   * Returns the time at which a user last used a token, accurate to a second. Returns undefined if
   * the user has never used one.
   */
  lastSeenMs(user: UserEntry): number | undefined {
    return this.#lastSeen.timeMsOf(user);
  }

  /**
   * Returns the time at which a service token was last used; undefined if it has never been used.
   */
  lastUseMs(token: ServiceTokenEntry): number | undefined {
    return this.#lastSeen.tokenTimeMsOf(token);
  }

  /**
   * Writes to the catalog the times at which users were last seen. Returns whether more times
   * remain to be written.
   */
  keepSeen(): boolean {
    return this.#lastSeen.keep();
  }

  /**
   * Returns the login names with recent failed logins, including names of users who do not exist.
   */
  loginTroubles(): ReadonlyMap<string, LoginTrouble> {
    return this.#logins.troubles();
  }

  /**
   * Returns the principal for the statement inside EXECUTE AS. If the caller uses a service token,
   * its scopes also apply inside EXECUTE AS.
   *
   * @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, INVALID_NAME
   */
  executeAs(principal: Principal, targetUserId: string): Principal {
    checkUserId(targetUserId);
    const actor = { userId: principal.actorId, role: principal.actorRole };
    const target = this.#catalog.accounts.user(targetUserId);
    requireTokenToAct(principal, targetUserId);
    const isAllowed =
      !principal.isImpersonated &&
      mayExecuteAs(actor, { userId: targetUserId, role: target?.role });
    if (!isAllowed) {
      this.#log.warn("rejected an EXECUTE AS", { actor: actor.userId, target: targetUserId });
      throw new DatabaseError(
        "PERMISSION_DENIED",
        `Cannot run statements as user ${targetUserId}: the role ${actor.role} may not act for ` +
          "this user",
      );
    }
    if (target === undefined) throw userNotFound(targetUserId);
    this.#log.debug("execute as", { actor: actor.userId, target: targetUserId });
    return {
      userId: targetUserId,
      role: "user",
      owner: this.#catalog.accounts.ownerNumber(targetUserId),
      actorId: actor.userId,
      actorRole: actor.role,
      isImpersonated: true,
      sessionId: principal.sessionId,
      ...(principal.tokenScope === undefined ? {} : { tokenScope: principal.tokenScope }),
    };
  }

  /**
   * Creates a user, provided that the caller may do so.
   * @throws {DatabaseError} PERMISSION_DENIED, INVALID_NAME, ALREADY_EXISTS, WEAK_PASSWORD,
   *   INVALID_VALUE
   */
  createUser(principal: Principal, request: CreateUserRequest): Promise<UserEntry> {
    return this.#users.create(principal, request);
  }

  /**
   * Performs the checks of {@linkcode createUser}, except the check of the password.
   * @throws {DatabaseError}
   */
  checkCreateUser(principal: Principal, request: CreateUserRequest): void {
    this.#users.checkCreate(principal, request);
  }

  /**
   * Performs the checks of {@linkcode alterUser}, except the check of the password.
   * @throws {DatabaseError}
   */
  checkAlterUser(principal: Principal, request: AlterUserRequest): void {
    this.#users.checkAlter(principal, request);
  }

  /**
   * Performs the checks of {@linkcode dropUser} without dropping the user.
   * @throws {DatabaseError}
   */
  checkDropUser(principal: Principal, userId: string): void {
    this.#users.checkDrop(principal, userId);
  }

  /**
   * Changes a user, provided that the caller may do so.
   * @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, WEAK_PASSWORD, INVALID_VALUE,
   *   INVALID_OPERATION, MANAGED_BY_CONFIG, SERIALIZATION_FAILURE
   */
  alterUser(principal: Principal, request: AlterUserRequest): Promise<UserEntry> {
    return this.#users.alter(principal, request);
  }

  /**
   * Drops a user, and ends the user's sessions.
   * @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, INVALID_OPERATION
   */
  dropUser(principal: Principal, userId: string, options?: { erasesNow?: boolean }): void {
    this.#users.drop(principal, userId, options);
  }

  /**
   * Checks whether a service token may be created. See {@linkcode ServiceTokens.checkCreate}.
   * @throws {DatabaseError}
   */
  checkCreateToken(principal: Principal, request: CreateTokenRequest): void {
    this.#serviceTokens.checkCreate(principal, request);
  }

  /** Creates a service token. See {@linkcode ServiceTokens.create}. @throws {DatabaseError} */
  createToken(principal: Principal, request: CreateTokenRequest): string {
    return this.#serviceTokens.create(principal, request);
  }

  /**
   * Checks whether a service token may be dropped. See {@linkcode ServiceTokens.checkDrop}.
   *
   * @throws {DatabaseError}
   */
  checkDropToken(principal: Principal, name: string): void {
    this.#serviceTokens.checkDrop(principal, name);
  }

  /** Drops a service token. See {@linkcode ServiceTokens.drop}. @throws {DatabaseError} */
  dropToken(principal: Principal, name: string): void {
    this.#serviceTokens.drop(principal, name);
  }

  /**
   * Checks whether an invitation may be created. See {@linkcode Invitations.checkCreate}.
   *
   * @throws {DatabaseError}
   */
  checkCreateInvitation(principal: Principal, request: CreateInvitationRequest): void {
    this.#invitations.checkCreate(principal, request);
  }

  /** Creates an invitation. See {@linkcode Invitations.create}. @throws {DatabaseError} */
  createInvitation(principal: Principal, request: CreateInvitationRequest): string {
    return this.#invitations.create(principal, request);
  }

  /**
   * Checks whether an invitation may be dropped. See {@linkcode Invitations.checkDrop}.
   *
   * @throws {DatabaseError}
   */
  checkDropInvitation(principal: Principal, name: string): void {
    this.#invitations.checkDrop(principal, name);
  }

  /** Drops an invitation. See {@linkcode Invitations.drop}. @throws {DatabaseError} */
  dropInvitation(principal: Principal, name: string): void {
    this.#invitations.drop(principal, name);
  }

  /**
   * Registers a listener for revoked sessions. It is called for each of them in the same tick.
   * Returns a function that removes the listener.
   */
  onRevoked(listener: OnRevoked): () => void {
    return this.#sessionEnds.onRevoked(listener);
  }

  /**
   * Registers a listener for dropped users. It is called for each of them in the same tick, once
   * the user's sessions have ended. Returns a function that removes the listener.
   */
  onDropped(listener: OnDropped): () => void {
    return this.#sessionEnds.onDropped(listener);
  }
}

/** Creates the objects that handle external token issuers and their users. */
function externalParts(
  { accounts, oidc }: AuthSettings,
  shared: Pick<AuthOptions, "catalog" | "clock" | "log" | "onAudit"> &
    Pick<ProviderUsersOptions, "refreshLifetimeSeconds" | "sessionEnds">,
): {
  externalTokens: ExternalTokens;
  providers: Providers;
  providerUsers: ProviderUsers;
  signUpRate: SignUpRate;
} {
  const signUpRate = new SignUpRate({ clock: shared.clock, perHour: accounts.signUpsPerHour });
  const providers = new Providers(oidc, shared);
  return {
    providers,
    signUpRate,
    providerUsers: new ProviderUsers({ ...shared, ...oidc, signUpRate }),
    externalTokens: new ExternalTokens({ providers }),
  };
}

function userNotFound(userId: string): DatabaseError {
  return new DatabaseError("USER_NOT_FOUND", `Cannot act as user ${userId}: there is no such user`);
}
