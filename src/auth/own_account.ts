/**
 * Implements the operations that users may perform on their own accounts: changing the password
 * and deleting the account. Both require the password again, because a page may have been left
 * open, and both are subject to the login limits. Users without a password have to log in through
 * their login provider again.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Catalog, UserEntry } from "../catalog/mod.ts";
import type { LoginBody, MessageBody } from "../protocol/mod.ts";
import { type AccountSettings, turnedOff } from "./account_settings.ts";
import { bodyFields, type Caller, textField } from "./answers.ts";
import { type OnAudit, ownAction } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import { isExternalSession } from "./external_tokens.ts";
import type { AuthBucket } from "./login_guard.ts";
import { type Logins, PASSWORD_LENGTH_MAX } from "./logins.ts";
import { type PasswordPolicy, requireStrong } from "./password.ts";
import type { Principal } from "./principal.ts";
import type { ProviderLogins } from "./provider_logins.ts";
import { beginningMsOf } from "./provider_sessions.ts";
import { requireLogin } from "./service_tokens.ts";
import type { SessionEnds } from "./session_ends.ts";
import type { Sessions } from "./sessions.ts";
import type { UserAdmin } from "./user_admin.ts";

/** How long a login through a provider counts as recent, in milliseconds. */
const NEW_LOGIN_MS = 300_000;

export interface OwnAccountOptions {
  catalog: Catalog;
  clock: Clock;
  log: Log;
  settings: AccountSettings;
  policy: PasswordPolicy;
  logins: Logins;
  sessions: Sessions;
  sessionEnds: SessionEnds;
  providerLogins: Pick<ProviderLogins, "requireOwnLogin">;
  users: UserAdmin;
  bucket: AuthBucket;
  onAudit: OnAudit;
}

export class OwnAccount {
  readonly #options: OwnAccountOptions;

  constructor(options: OwnAccountOptions) {
    this.#options = options;
  }

  /**
   * Changes the password, ends all of the user's sessions, and starts a new one.
   *
   * @throws {AuthError} @throws {DatabaseError} MANAGED_BY_CONFIG
   */
  async changePassword(principal: Principal, body: unknown, caller: Caller): Promise<LoginBody> {
    const { bucket, onAudit, policy, sessions, settings, users } = this.#options;
    bucket.takeAttempt(caller);
    if (!settings.mayChangePassword) {
      throw turnedOff("Changing your own password is disabled", "auth.own_password = true");
    }
    requireLogin(principal);
    const { userId } = principal;
    const fields = bodyFields(body);
    const password = textField(fields, ["password"], PASSWORD_LENGTH_MAX);
    const newPassword = textField(fields, ["new_password"], PASSWORD_LENGTH_MAX);
    requireStrong(newPassword, { userId, policy, field: "new_password" });
    await this.#check(userId, password, { caller, action: "change password" });
    const user = await users.alter(principal, { userId, password: newPassword });
    onAudit(ownAction(userId, caller, "change password"));
    return await sessions.begin(user);
  }

  /**
   * Drops the caller's own account. The account's rows are erased after the same delay as for DROP
   * USER. A guest needs no proof of identity, a user with a password has to repeat it, and any
   * other user must recently have logged in through a provider.
   *
   * @throws {AuthError}
   */
  async delete(principal: Principal, body: unknown, caller: Caller): Promise<MessageBody> {
    const { bucket, catalog, log, onAudit, sessionEnds, settings } = this.#options;
    bucket.takeAttempt(caller);
    if (!settings.mayDeleteAccount) {
      throw turnedOff("Deleting your own account is disabled", "auth.own_deletion = true");
    }
    requireLogin(principal);
    const { role, userId } = principal;
    if (role === "system" || role === "dba") {
      throw new AuthError(
        "forbidden",
        `Cannot delete the account: it has the role ${role}, so only a different administrator ` +
          "can delete it, with DROP USER",
      );
    }
    const authType = catalog.accounts.user(userId)?.authType;
    if (authType === "oauth") this.#requireNewLogin(principal, body);
    else if (authType !== "guest") {
      const password = textField(bodyFields(body), ["password"], PASSWORD_LENGTH_MAX);
      await this.#check(userId, password, { caller, action: "delete account" });
    }
    catalog.accounts.drop(userId);
    sessionEnds.endAccount(userId);
    log.info("user deleted their own account", { user: userId, request: caller.requestId });
    onAudit(ownAction(userId, caller, "delete account"));
    return { message: "The account has been deleted; its rows will be erased in 30 days" };
  }

  /**
   * Refuses a user without a password who has not just logged in through a provider.
   * @throws {AuthError} forbidden, invalid_request, invalid_code
   */
  #requireNewLogin(principal: Principal, body: unknown): void {
    const { clock, providerLogins } = this.#options;
    const { sessionId } = principal;
    // A provider may renew a bearer token without involving the user, so the token's age does not
    // show when the user logged in.
    const loginMs = isExternalSession(sessionId) ? undefined : beginningMsOf(sessionId);
    if (loginMs !== undefined && clock.nowMs() - loginMs < NEW_LOGIN_MS) return;
    if (bodyFields(body)["code"] === undefined) {
      throw new AuthError(
        "forbidden",
        "Cannot delete the account: it has no password, and the last login is older than 5 " +
          "minutes; log in through the provider again, or send the code and the verifier of " +
          "a new login at that provider",
      );
    }
    providerLogins.requireOwnLogin(principal, body);
  }

  async #check(
    userId: string,
    password: string,
    { action, caller }: { caller: Caller; action: string },
  ): Promise<UserEntry> {
    return await this.#options.logins.check({ userId, password }, caller, { action });
  }
}
