/**
 * The operations that users may perform on their own accounts: changing the password, and deleting
 * the account. Both require the password again, subject to the limits for logins, because a page
 * may have been left open.
 */
import type { Log } from "../base/log.ts";
import type { Catalog, UserEntry } from "../catalog/mod.ts";
import type { LoginBody, MessageBody } from "../protocol/mod.ts";
import { type AccountSettings, turnedOff } from "./account_settings.ts";
import { bodyFields, type Caller, textField } from "./answers.ts";
import { type OnAudit, ownAction } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import type { AuthBucket } from "./login_guard.ts";
import { type Logins, PASSWORD_LENGTH_MAX } from "./logins.ts";
import { type PasswordPolicy, requireStrong } from "./password.ts";
import type { Principal } from "./principal.ts";
import { requireLogin } from "./service_tokens.ts";
import type { SessionEnds } from "./session_ends.ts";
import type { Sessions } from "./sessions.ts";
import type { UserAdmin } from "./user_admin.ts";

export interface OwnAccountOptions {
  catalog: Catalog;
  log: Log;
  settings: AccountSettings;
  policy: PasswordPolicy;
  logins: Logins;
  sessions: Sessions;
  sessionEnds: SessionEnds;
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
   * Changes the password, ends all of the user's sessions, and begins a new one.
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
   * Drops the caller's own account. The account's rows are erased after the same period as after
   * DROP USER. Guests need no password.
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
        `Accounts with role ${role} must be removed by another administrator, with DROP USER`,
      );
    }
    if (catalog.user(userId)?.authType !== "guest") {
      const password = textField(bodyFields(body), ["password"], PASSWORD_LENGTH_MAX);
      await this.#check(userId, password, { caller, action: "delete account" });
    }
    catalog.dropUser(userId);
    sessionEnds.endAccount(userId);
    log.info("user deleted their own account", { user: userId, request: caller.requestId });
    onAudit(ownAction(userId, caller, "delete account"));
    return { message: "The account has been deleted; its rows will be erased after 30 days" };
  }

  async #check(
    userId: string,
    password: string,
    { action, caller }: { caller: Caller; action: string },
  ): Promise<UserEntry> {
    return await this.#options.logins.check({ userId, password }, caller, { action });
  }
}
