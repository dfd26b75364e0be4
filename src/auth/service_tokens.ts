/**
 * Manages service tokens: long-lived tokens for programs. Each token acts on behalf of one user; a
 * token with scopes has fewer rights than the user.
 *
 * The catalog stores only the hash of a token, so its secret is known only to the caller who
 * created it. A token stops working on DROP TOKEN, on DROP USER or when it expires. A new password
 * or a new role for its user does not end it: the token then has the rights of the new role.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import {
  type Catalog,
  checkObjectName,
  type ServiceTokenEntry,
  type TokenRight,
} from "../catalog/mod.ts";
import { AuthError } from "./auth_error.ts";
import { mayManageUser } from "./permissions.ts";
import type { Principal, TokenScope } from "./principal.ts";
import { hashOfSecret, isSecret, newSecret } from "./secret_text.ts";
import type { SessionEnds } from "./session_ends.ts";

export interface ServiceTokensOptions {
  catalog: Catalog;
  clock: Clock;
  log: Log;
  random: Random;
  sessionEnds: SessionEnds;
}

export interface CreateTokenRequest {
  readonly name: string;
  readonly userId: string;
  readonly expiresAtMs?: number;
  readonly rights?: readonly TokenRight[];
  readonly namespaces?: readonly string[];
}

/**
 * The maximum number of service tokens on a server. The hashes of all tokens are kept in memory.
 */
const TOKENS_MAX = 10_000;

export class ServiceTokens {
  readonly #options: ServiceTokensOptions;

  constructor(options: ServiceTokensOptions) {
    this.#options = options;
  }

  /**
   * Performs the checks of {@linkcode create} without creating a token.
   *
   * @throws {DatabaseError} PERMISSION_DENIED, USER_NOT_FOUND, INVALID_NAME, ALREADY_EXISTS,
   *   INVALID_VALUE, LIMIT_EXCEEDED
   */
  checkCreate(principal: Principal, request: CreateTokenRequest): void {
    const { catalog, clock } = this.#options;
    const { expiresAtMs, name, userId } = request;
    checkObjectName("token", name);
    const user = catalog.accounts.user(userId);
    const role = user?.role ?? "user";
    if (!mayManageUser(principal, { userId, role })) {
      throw new DatabaseError(
        "PERMISSION_DENIED",
        `Cannot create token ${name}: this requires the role dba or, for a token of a user ` +
          "with the role system, the role system",
      );
    }
    if (user === undefined) {
      throw new DatabaseError(
        "USER_NOT_FOUND",
        `Cannot create token ${name}: there is no user ${userId}`,
      );
    }
    if (expiresAtMs !== undefined && expiresAtMs <= clock.nowMs()) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot create token ${name}: its expiry time is in the past`,
      );
    }
    const tokens = catalog.serviceTokens;
    if (tokens.named(name) !== undefined) {
      throw new DatabaseError("ALREADY_EXISTS", `Cannot create token ${name}: it already exists`);
    }
    if (tokens.all().length >= TOKENS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot create token ${name}: there are already ${TOKENS_MAX} tokens; drop some of ` +
          "them first",
      );
    }
  }

  /**
   * Creates a service token and returns its secret. Only a hash of the secret is stored.
   *
   * @throws {DatabaseError}
   */
  create(principal: Principal, request: CreateTokenRequest): string {
    const { catalog, clock, log, random } = this.#options;
    this.checkCreate(principal, request);
    const secret = newSecret("tdm_", random);
    catalog.serviceTokens.create({
      ...request,
      secretHash: hashOfSecret(secret),
      createdBy: principal.userId,
      createdAtMs: clock.nowMs(),
    });
    const { name, userId: user } = request;
    log.info("service token created", { token: name, user, by: principal.actorId });
    return secret;
  }

  /**
   * Performs the checks of {@linkcode drop} without dropping the token. Returns the token.
   *
   * @throws {DatabaseError} PERMISSION_DENIED, OBJECT_NOT_FOUND
   */
  checkDrop(principal: Principal, name: string): ServiceTokenEntry {
    const { catalog } = this.#options;
    const token = catalog.serviceTokens.named(name);
    const userId = token?.userId ?? principal.userId;
    const role = catalog.accounts.user(userId)?.role ?? "user";
    if (!mayManageUser(principal, { userId, role })) {
      throw new DatabaseError(
        "PERMISSION_DENIED",
        `Cannot drop token ${name}: this requires the role dba or, for a token of a user with ` +
          "the role system, the role system",
      );
    }
    if (token !== undefined) return token;
    throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find token "${name}"`, {
      hint: "to list the tokens, run SHOW TOKENS",
    });
  }

  /**
   * Drops a service token, and closes the connections that were opened with it.
   * @throws {DatabaseError}
   */
  drop(principal: Principal, name: string): void {
    const { catalog, log, sessionEnds } = this.#options;
    const token = this.checkDrop(principal, name);
    catalog.serviceTokens.drop(name);
    sessionEnds.endSession(token.userId, sessionOf(token));
    log.info("service token dropped", { token: name, user: token.userId, by: principal.actorId });
  }

  /**
   * Returns the token with the given secret, even if it has expired; undefined if no token has
   * this secret.
   */
  find(secret: string): ServiceTokenEntry | undefined {
    if (!isSecret("tdm_", secret)) return undefined;
    return this.#options.catalog.serviceTokens.byHash(hashOfSecret(secret));
  }

  isExpired({ expiresAtMs }: ServiceTokenEntry): boolean {
    return expiresAtMs !== undefined && this.#options.clock.nowMs() >= expiresAtMs;
  }

  /** Returns whether a token still exists, even if it has expired. */
  isStanding({ name, secretHash }: ServiceTokenEntry): boolean {
    return this.#options.catalog.serviceTokens.named(name)?.secretHash === secretHash;
  }
}

/** Returns whether a string begins with the prefix of service tokens. */
export function looksLikeServiceToken(text: string): boolean {
  return text.startsWith("tdm_");
}

/**
 * The prefix of session ids that belong to service tokens. It contains a space, whereas the ids of
 * login sessions never do.
 */
const SESSION_PREFIX = "token ";

/** Returns the session id shared by everything that is opened with a service token. */
export function sessionOf({ secretHash }: ServiceTokenEntry): string {
  return SESSION_PREFIX + secretHash;
}

/** Returns whether a session belongs to a service token rather than to a login. */
export function isServiceSession(sessionId: string): boolean {
  return sessionId.startsWith(SESSION_PREFIX);
}

/**
 * Returns the limits of a service token; undefined if the token permits everything that its user
 * may do.
 */
export function scopeOf({ name, namespaces, rights }: ServiceTokenEntry): TokenScope | undefined {
  if (rights === undefined && namespaces === undefined) return undefined;
  const held = new Set(rights);
  if (held.has("write")) held.add("read");
  return {
    tokenName: name,
    rights: rights === undefined ? undefined : held,
    namespaces: namespaces === undefined ? undefined : new Set(namespaces),
  };
}

/**
 * Refuses callers with a service token, because a program with such a token is not the person who
 * owns the account.
 */
export function requireLogin(principal: Principal): void {
  if (!isServiceSession(principal.sessionId)) return;
  throw new AuthError(
    "forbidden",
    "Cannot change the account with a service token; log in instead",
  );
}
