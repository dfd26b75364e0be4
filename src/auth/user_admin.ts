/**
 * Implements CREATE, ALTER and DROP USER: checks the caller's rights and the password policy, and
 * ends the tokens and sockets that a change invalidates.
 *
 * Hashing a password takes a while, so the rights and the user are checked again afterwards. A
 * caller who has been dropped or has lost their role in the meantime must not be able to create
 * another account.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import {
  authDataOf,
  type Catalog,
  checkNewUserId,
  linksIn,
  type NewUser,
  ROOT_USER_ID,
  type Role,
  type UserChange,
  type UserEntry,
} from "../catalog/mod.ts";
import { AuthError } from "./auth_error.ts";
import { type PasswordHasher, type PasswordPolicy, passwordFault } from "./password.ts";
import { isAtLeast, mayCreateUser, mayManageUser, maySetPassword } from "./permissions.ts";
import type { Principal } from "./principal.ts";
import { endProviderSessions } from "./provider_sessions.ts";
import { LINKS_MAX, linksOf, linkText, pendingLinkText } from "./provider_users.ts";
import type { SessionEnds } from "./session_ends.ts";
import { EMAIL_LENGTH_MAX } from "./setup.ts";

/** The way in which a new user authenticates. */
export type NewCredentials =
  | { readonly kind: "password"; readonly password: string }
  /**
   * JSON text with the string members `provider` and `subject`, or only `provider`. Without a
   * subject, the account will belong to the first user of the provider whose `user_claim` claim
   * equals the account's user id.
   */
  | { readonly kind: "oauth"; readonly link: string }
  /** A user who cannot log in. */
  | { readonly kind: "internal" };

export interface CreateUserRequest {
  readonly userId: string;
  readonly credentials: NewCredentials;
  /** The role of the new user; `user` if absent. */
  readonly role?: Role;
  readonly email?: string;
  /** The metadata of the user: the text of a JSON object. */
  readonly metadata?: string;
}

/**
 * The changes that an ALTER USER statement makes. The statement sets exactly one member. Other
 * callers may set several members, which are then changed together.
 */
export interface AlterUserRequest {
  readonly userId: string;
  /** The provider link to add or to drop, in the form described in {@linkcode NewCredentials}. */
  readonly link?: { readonly add?: string; readonly drop?: string };
  readonly password?: string;
  readonly role?: Role;
  readonly email?: string;
  /** The metadata of the user: the text of a JSON object. */
  readonly metadata?: string;
}

export interface UserAdminOptions {
  catalog: Catalog;
  clock: Clock;
  refreshLifetimeSeconds: number;
  log: Log;
  hasher: PasswordHasher;
  policy: PasswordPolicy;
  sessionEnds: SessionEnds;
  /** Called with the user id whenever a user's password has been set. */
  onPassword: (userId: string) => void;
  /** Whether `auth.root_password` is set. If so, ALTER USER may not change root's password. */
  isRootManaged: boolean;
}

/**
 * Returns the role that a statement specifies, ignoring case. The name `root` stands for `system`.
 */
export function roleFromWord(word: string): Role | undefined {
  const folded = word.toLowerCase();
  if (folded === "root") return "system";
  return ROLES.find((role) => role === folded);
}

export class UserAdmin {
  readonly #options: UserAdminOptions;

  constructor(options: UserAdminOptions) {
    this.#options = options;
  }

  /**
   * Performs the checks of `create`, except those of the credentials.
   * @throws {DatabaseError}
   */
  checkCreate(principal: Principal, request: CreateUserRequest): void {
    const { userId } = request;
    this.#authoriseCreate(principal, request);
    checkNewUserId(userId);
    const like = this.#options.catalog.accounts.userLike(userId);
    if (like !== undefined) {
      const isSame = like.userId === userId || like.loginName === userId;
      const fault = isSame
        ? "it already exists"
        : "it is too similar to the name of an existing user";
      throw new DatabaseError("ALREADY_EXISTS", `Cannot create user ${userId}: ${fault}`);
    }
    checkEmail(request.email);
    checkMetadata(request.metadata);
  }

  /**
   * Creates a user.
   * @throws {DatabaseError} PERMISSION_DENIED, INVALID_NAME, ALREADY_EXISTS, WEAK_PASSWORD,
   * INVALID_VALUE
   */
  async create(principal: Principal, request: CreateUserRequest): Promise<UserEntry> {
    const { catalog, log } = this.#options;
    const { userId, role = "user", email, credentials, metadata } = request;
    this.checkCreate(principal, request);
    const entry: NewUser = {
      userId,
      role,
      authType: credentials.kind,
      ...(email === undefined ? {} : { email }),
      ...(metadata === undefined ? {} : { metadata }),
      ...(await this.#stored(principal, userId, credentials)),
    };
    this.#authoriseCreate(principal, request);
    this.#refuseLinked(entry);
    const user = catalog.accounts.create(entry);
    if (credentials.kind === "password") this.#options.onPassword(userId);
    log.info("user created", { user: userId, role, by: principal.actorId });
    return user;
  }

  /**
   * Performs the checks of `alter`, except those of the password. Returns the user to alter.
   * @throws {DatabaseError}
   */
  checkAlter(principal: Principal, request: AlterUserRequest): UserEntry {
    const { email, role, userId } = request;
    const before = this.#authoriseAlter(principal, request);
    if (role !== undefined && role !== before.role && userId === ROOT_USER_ID) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot change the role of ${ROOT_USER_ID}: it always has the role system`,
      );
    }
    checkEmail(email);
    checkMetadata(request.metadata);
    this.#linked(before, request);
    return before;
  }

  /**
   * Changes a user.
   * @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, WEAK_PASSWORD, INVALID_VALUE,
   * INVALID_OPERATION, MANAGED_BY_CONFIG, SERIALIZATION_FAILURE
   */
  async alter(principal: Principal, request: AlterUserRequest): Promise<UserEntry> {
    const { catalog, log, sessionEnds } = this.#options;
    const { userId, password, role, email } = request;
    const before = this.checkAlter(principal, request);
    const passwordHash =
      password === undefined ? undefined : await this.#hash(userId, password, principal);
    const user = this.#authoriseAlter(principal, request);
    const { tokenVersion } = user;
    // Without this check, a stolen token could still set a password after a change that
    // invalidated the token.
    if (userId === principal.actorId && tokenVersion !== before.tokenVersion) {
      throw new DatabaseError(
        "SERIALIZATION_FAILURE",
        `Cannot alter user ${userId}: its sessions were ended in the meantime`,
      );
    }
    const after = catalog.accounts.change(userId, {
      ...(passwordHash === undefined ? {} : { passwordHash }),
      ...(role === undefined ? {} : { role }),
      ...(email === undefined ? {} : { email }),
      ...(request.metadata === undefined ? {} : { metadata: request.metadata }),
      ...this.#linked(user, request),
    });
    if (after.tokenVersion !== before.tokenVersion) sessionEnds.endUser(userId);
    if (request.link?.drop !== undefined) this.#endSessionsOf(before, after);
    if (password !== undefined) this.#options.onPassword(userId);
    const changed = CHANGES.filter((field) => request[field] !== undefined).join(", ");
    log.info("user changed", { user: userId, changed, role, by: principal.actorId });
    return after;
  }

  /**
   * Performs the checks of `drop` without dropping the user.
   * @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, INVALID_OPERATION
   */
  checkDrop(principal: Principal, userId: string): void {
    const user = this.#options.catalog.accounts.user(userId);
    if (!this.#hasRoleStill(principal) || !isAtLeast(principal.role, "dba")) {
      throw denied(`drop user ${userId}`);
    }
    if (user === undefined) throw notFound("drop", userId);
    if (!mayManageUser(principal, user)) throw denied(`drop user ${userId}`);
    if (userId === principal.actorId || userId === principal.userId) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot drop user ${userId}: users cannot drop themselves`,
      );
    }
    if (userId === ROOT_USER_ID) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot drop user ${userId}: the superuser root cannot be dropped`,
      );
    }
  }

  /** Drops a user. @throws {DatabaseError} The errors of `checkDrop`. */
  drop(principal: Principal, userId: string, options?: { erasesNow?: boolean }): void {
    const { catalog, log, sessionEnds } = this.#options;
    this.checkDrop(principal, userId);
    catalog.accounts.drop(userId, options);
    sessionEnds.endAccount(userId);
    log.info("user deleted", { user: userId, by: principal.actorId });
  }

  /**
   * Refuses a caller who may not create a user with the requested role.
   * @throws {DatabaseError} PERMISSION_DENIED
   */
  #authoriseCreate(principal: Principal, { role = "user", userId }: CreateUserRequest): void {
    if (this.#hasRoleStill(principal) && mayCreateUser(principal, { userId, role })) return;
    throw denied(`create user ${userId} with role ${role}`);
  }

  /**
   * Returns whether the caller's account still exists and has the same role as when the caller
   * authenticated.
   */
  #hasRoleStill({ actorId, actorRole }: Principal): boolean {
    return this.#options.catalog.accounts.user(actorId)?.role === actorRole;
  }

  #authoriseAlter(principal: Principal, request: AlterUserRequest): UserEntry {
    const { userId, password, role, email, link, metadata } = request;
    if (!this.#hasRoleStill(principal)) throw denied(`alter user ${userId}`);
    const user = this.#options.catalog.accounts.user(userId);
    const isOther = [role, email, metadata, link].some((change) => change !== undefined);
    const isOwnPassword = userId === principal.userId && !isOther;
    if (!isOwnPassword && !isAtLeast(principal.role, "dba")) throw denied(`alter user ${userId}`);
    if (user === undefined) throw notFound("alter", userId);
    const target = { ...user, ...(role === undefined ? {} : { newRole: role }) };
    const isAllowed = isOwnPassword
      ? maySetPassword(principal, target)
      : mayManageUser(principal, target);
    if (!isAllowed) throw denied(`alter user ${userId}`);
    if (password !== undefined && userId === ROOT_USER_ID && this.#options.isRootManaged) {
      throw new DatabaseError(
        "MANAGED_BY_CONFIG",
        `Cannot set the password of ${ROOT_USER_ID}: the configuration key auth.root_password ` +
          "sets it at every startup",
      );
    }
    return user;
  }

  /**
   * Returns the provider links of an account after a change, and the way in which its user then
   * authenticates.
   *
   * @throws {DatabaseError} INVALID_VALUE, ALREADY_EXISTS, LIMIT_EXCEEDED, OBJECT_NOT_FOUND
   */
  #linked(user: UserEntry, { link }: AlterUserRequest): UserChange {
    if (link === undefined) return {};
    const { authData, authType, userId } = user;
    const links = linksIn(authData);
    const what = `Cannot alter user ${userId}`;
    const text = oauthLink(userId, link.add ?? link.drop ?? "", what);
    if (link.add === undefined) {
      const left = links.filter((each) => each !== text);
      if (left.length < links.length) return { authData: authDataOf(left) };
      throw new DatabaseError(
        "OBJECT_NOT_FOUND",
        `${what}: the account has no link to this provider and subject`,
      );
    }
    const holder = this.#options.catalog.accounts.userByLink(text);
    if (holder !== undefined) {
      const fault = `user ${holder.userId} is already linked to this provider and subject`;
      throw new DatabaseError("ALREADY_EXISTS", `${what}: ${fault}`);
    }
    if (links.length >= LINKS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `${what}: an account can have at most ${LINKS_MAX} links`,
      );
    }
    const next = { authData: authDataOf([...links, text]) };
    return authType === "password" ? next : { ...next, authType: "oauth" };
  }

  /** Ends the sessions that were started through provider links that the account no longer has. */
  #endSessionsOf(before: UserEntry, after: UserEntry): void {
    const left = new Set(linksIn(after.authData));
    for (const { provider, subject } of linksOf(before)) {
      if (left.has(linkText(provider, subject))) continue;
      endProviderSessions(this.#options, { link: provider, subject, session: undefined });
    }
  }

  /**
   * Refuses a provider link that another account already has, because a login through a provider
   * must find exactly one account.
   */
  #refuseLinked({ authData, userId }: NewUser): void {
    if (authData === undefined) return;
    const linked = this.#options.catalog.accounts.userByLink(authData);
    if (linked === undefined) return;
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create user ${userId}: user ${linked.userId} is already linked to this provider and subject`,
    );
  }

  async #stored(
    principal: Principal,
    userId: string,
    credentials: NewCredentials,
  ): Promise<{ passwordHash?: string; authData?: string }> {
    switch (credentials.kind) {
      case "password":
        return { passwordHash: await this.#hash(userId, credentials.password, principal) };
      case "oauth":
        return { authData: oauthLink(userId, credentials.link, `Cannot create user ${userId}`) };
      case "internal":
        return {};
    }
  }

  async #hash(userId: string, password: string, { actorId }: Principal): Promise<string> {
    const fault = passwordFault(password, { userId, policy: this.#options.policy });
    if (fault !== undefined) {
      throw new DatabaseError(
        "WEAK_PASSWORD",
        `Cannot set the password of user ${userId}: ${fault}`,
      );
    }
    try {
      return await this.#options.hasher.hash(password, { sender: actorId, isTrusted: true });
    } catch (error) {
      if (!(error instanceof AuthError)) throw error;
      throw new DatabaseError("LIMIT_EXCEEDED", error.message, { cause: error });
    }
  }
}

/** The properties of a user that ALTER USER can change. */
const CHANGES = ["password", "role", "email", "metadata", "link"] as const;

/**
 * The maximum size of a user's metadata, in bytes. It is limited because the metadata of all users
 * is kept in memory.
 */
const METADATA_BYTES_MAX = 16 * 1024;

/**
 * Refuses a string that does not have the form of an email address.
 * @throws {DatabaseError} INVALID_VALUE
 */
function checkEmail(email: string | undefined): void {
  if (email === undefined || email.length <= EMAIL_LENGTH_MAX) return;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use the email address: it has more than ${EMAIL_LENGTH_MAX} characters`,
  );
}

/** Refuses metadata of a user that is not a JSON object. @throws {DatabaseError} INVALID_VALUE */
function checkMetadata(metadata: string | undefined): void {
  if (metadata === undefined) return;
  const isShort = Buffer.byteLength(metadata) <= METADATA_BYTES_MAX;
  if (isShort && isJsonObject(metadata)) return;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use the metadata: it must be a JSON object of at most ${METADATA_BYTES_MAX} bytes`,
  );
}

function isJsonObject(text: string): boolean {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Text that is not JSON does not form an object. The caller reports the error.
    return false;
  }
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const ROLES: readonly Role[] = ["user", "service", "dba", "system"];

/**
 * Returns the canonical form of the provider link in `text`. @throws {DatabaseError} INVALID_VALUE
 */
function oauthLink(userId: string, text: string, what: string): string {
  const refused = new DatabaseError(
    "INVALID_VALUE",
    `${what}: OAUTH must be a JSON object with a string "provider" and, if it is known, a ` +
      'string "subject"',
  );
  let link: unknown;
  try {
    link = JSON.parse(text);
  } catch {
    throw refused;
  }
  if (typeof link !== "object" || link === null) throw refused;
  const { provider, subject } = link as Record<string, unknown>;
  if (typeof provider !== "string") throw refused;
  if (subject === undefined) return pendingLinkText(provider, userId);
  if (typeof subject !== "string") throw refused;
  return linkText(provider, subject);
}

function denied(action: string): DatabaseError {
  return new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot ${action}: this requires the role dba or, for users with the role system, the role ` +
      "system; the role service may create users with the role user",
  );
}

function notFound(action: string, userId: string): DatabaseError {
  return new DatabaseError(
    "USER_NOT_FOUND",
    `Cannot ${action} user ${userId}: there is no such user`,
  );
}
