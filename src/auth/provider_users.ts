/**
 * Finds and creates the accounts of people identified by a provider. An account is looked up in
 * this order:
 *
 *     1. the account that is linked to the provider and the subject
 *     2. the account whose link has no subject yet, and whose id equals the claim `user_claim`;
 *        the link gets the subject
 *     3. with `oidc.auto_provision`, a new account with `oidc.default_role`
 *
 * Invariants:
 * - An account is found by provider and subject, never by an address or a name alone.
 * - A login does not re-create a dropped account, because DROP USER would then have no effect on a
 *   user who logs in again.
 */

import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import {
  authDataOf,
  type Catalog,
  linksIn,
  newUserIdFault,
  type Role,
  type UserEntry,
} from "../catalog/mod.ts";
import type { Caller } from "./answers.ts";
import { type OnAudit, ownAction, sourceOf } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import type { ExternalIdentity } from "./oidc/token_claims.ts";
import { endProviderSessions } from "./provider_sessions.ts";
import type { SessionEnds } from "./session_ends.ts";
import type { SignUpRate } from "./sign_up_rate.ts";

export interface ProviderUsersOptions {
  catalog: Catalog;
  clock: Clock;
  log: Log;
  sessionEnds: SessionEnds;
  refreshLifetimeSeconds: number;
  signUpRate: SignUpRate;
  /** Whether an account is created for a user whom the server does not know yet. */
  autoProvisions: boolean;
  /** The role of accounts that are created at a login. */
  defaultRole: Role;
  onAudit: OnAudit;
}

/**
 * The prefix of the ids of accounts that are created at a login. Names chosen at sign-up may not
 * begin with it.
 */
export const PROVIDER_USER_PREFIX = "oidc:";

/** The maximum number of provider links per account. */
export const LINKS_MAX = 10;

/** A link between an account and a person at a provider. */
export interface AccountLink {
  /** The name of the provider's configuration section, or its issuer URL. */
  readonly provider: string;
  readonly subject: string;
}

/** Returns the provider links of an account that have been used for a login. */
export function linksOf({ authData }: UserEntry): readonly AccountLink[] {
  return linksIn(authData)
    .map((link) => JSON.parse(link) as Partial<AccountLink>)
    .flatMap(({ provider = "", subject }) =>
      subject === undefined ? [] : [{ provider, subject }],
    );
}

/** Returns the text form in which the catalog stores a provider link. */
export function linkText(provider: string, subject: string): string {
  return JSON.stringify({ provider, subject });
}

/**
 * Returns the stored text form of a provider link whose subject is not known yet, because nobody
 * has logged in through it.
 */
export function pendingLinkText(provider: string, userId: string): string {
  return JSON.stringify({ provider, user: userId });
}

export class ProviderUsers {
  readonly #options: ProviderUsersOptions;

  constructor(options: ProviderUsersOptions) {
    this.#options = options;
  }

  /** Returns the account linked to a person at a provider; undefined if there is none. */
  linkedTo({ provider, subject }: ExternalIdentity): UserEntry | undefined {
    return this.#options.catalog.accounts.userByLink(linkText(provider.link, subject));
  }

  /**
   * Returns the account of a person at a provider, creating it if necessary. Returns undefined if
   * the person may not have an account.
   *
   * @throws {AuthError} rate_limited if too many accounts are being created.
   */
  admit(identity: ExternalIdentity, caller: Caller): UserEntry | undefined {
    const { autoProvisions } = this.#options;
    const known = this.linkedTo(identity) ?? this.#claimed(identity, caller);
    if (known !== undefined || !autoProvisions) return known;
    return this.#provisioned(identity, caller);
  }

  /**
   * Links an account to a person at a provider. The new link replaces any link to the same
   * provider that has no subject yet. @throws {AuthError} invalid_request if the account has too
   * many links.
   */
  link(user: UserEntry, { provider, subject }: ExternalIdentity, caller: Caller): UserEntry {
    const { catalog } = this.#options;
    const link = linkText(provider.link, subject);
    const pending = pendingLinkText(provider.link, user.userId);
    const others = linksIn(user.authData).filter((each) => each !== link && each !== pending);
    if (others.length >= LINKS_MAX) {
      throw new AuthError(
        "invalid_request",
        `Cannot link the account: it already has ${LINKS_MAX} links, which is the maximum`,
      );
    }
    const isGuest = user.authType === "guest";
    const changed = catalog.accounts.change(user.userId, {
      authData: authDataOf([...others, link]),
      ...(isGuest ? { authType: "oauth" } : {}),
    });
    this.#note(changed, { action: "link account", provider: provider.link }, caller);
    return changed;
  }

  /**
   * Removes a provider link from an account, and ends the sessions that were started through it.
   */
  unlink(user: UserEntry, link: AccountLink, caller: Caller): void {
    const { catalog } = this.#options;
    const text = linkText(link.provider, link.subject);
    const left = linksIn(user.authData).filter((each) => each !== text);
    catalog.accounts.change(user.userId, { authData: authDataOf(left) });
    const ended = { link: link.provider, subject: link.subject, session: undefined };
    endProviderSessions(this.#options, ended);
    this.#note(user, { action: "unlink account", provider: link.provider }, caller);
  }

  #claimed(identity: ExternalIdentity, caller: Caller): UserEntry | undefined {
    const { provider, userName } = identity;
    if (userName === undefined) return undefined;
    const pending = pendingLinkText(provider.link, userName.normalize("NFC"));
    const user = this.#options.catalog.accounts.userByLink(pending);
    return user === undefined ? undefined : this.link(user, identity, caller);
  }

  #provisioned(identity: ExternalIdentity, caller: Caller): UserEntry | undefined {
    const { catalog, defaultRole: role, log, signUpRate } = this.#options;
    const { email, provider, subject } = identity;
    const ids = idsFor(identity);
    const dropped = ids.find((id) => catalog.accounts.wasDropped(id));
    if (dropped !== undefined) {
      log.warn("rejected a provider's user whose account has been deleted", { user: dropped });
      return undefined;
    }
    const userId = ids.find(
      (id) => newUserIdFault(id) === undefined && catalog.accounts.userLike(id) === undefined,
    );
    if (userId === undefined) return undefined;
    signUpRate.take(caller);
    const user = catalog.accounts.create({
      userId,
      role,
      authType: "oauth",
      authData: linkText(provider.link, subject),
      ...(email === undefined ? {} : { email }),
      ...metadataFrom(identity),
    });
    log.info("created an account for a provider's user", {
      user: userId,
      request: caller.requestId,
    });
    this.#note(user, { action: "create user", provider: provider.link }, caller);
    return user;
  }

  #note(
    { userId }: UserEntry,
    { action, provider }: { action: string; provider: string },
    caller: Caller,
  ): void {
    const source = sourceOf(caller, { provider });
    this.#options.onAudit({ ...ownAction(userId, caller, action), ...source });
  }
}

/**
 * Returns the possible ids for a new account, in order of preference. The first contains the
 * subject. The second is used if the subject cannot be part of an id, or if the first id would
 * look like that of another user.
 */
function idsFor({ provider: { issuer, shortName }, subject }: ExternalIdentity): string[] {
  const start = `${PROVIDER_USER_PREFIX}${shortName}:`;
  const hash = new Bun.CryptoHasher("sha256").update(`${issuer}\n${subject}`).digest();
  return [start + subject, `${start}~${hash.subarray(0, 15).toString("hex")}`];
}

/**
 * Returns the configured claims as the metadata of a new account, so that administrators can see
 * them.
 */
function metadataFrom({ claims }: ExternalIdentity): { metadata?: string } {
  return Object.keys(claims).length === 0 ? {} : { metadata: JSON.stringify(claims) };
}
