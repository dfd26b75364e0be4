/**
 * Logs users in: checks the name and the password, and starts a session.
 *
 * A wrong name and a wrong password lead to the same response after the same time. Every outcome
 * is audited, with one exception: an attempt that is refused before its password is compared,
 * because there were too many attempts from its address or with its name. Such an attempt reveals
 * nothing.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { senderOf } from "../base/sender.ts";
import type { Catalog, UserEntry } from "../catalog/mod.ts";
import type { LoginBody } from "../protocol/mod.ts";
import { bodyFields, type Caller, textField } from "./answers.ts";
import { type OnAudit, sourceOf } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import type { Attempt, AuthBucket, LoginGuard, LoginTrouble } from "./login_guard.ts";
import type { PasswordHasher } from "./password.ts";
import type { Sessions } from "./sessions.ts";

export interface LoginsOptions {
  catalog: Catalog;
  clock: Clock;
  log: Log;
  hasher: PasswordHasher;
  sessions: Sessions;
  bucket: AuthBucket;
  guard: LoginGuard;
  isSetupNeeded: () => boolean;
  /** Whether users may log in with a verified email address. */
  isEmailLogin: boolean;
  onAudit: OnAudit;
}

const USER_LENGTH_MAX = 128;
/** The maximum length of a login name. It may be an email address. */
const ADDRESS_LENGTH_MAX = 320;
export const PASSWORD_LENGTH_MAX = 4096;

export class Logins {
  readonly #options: LoginsOptions;

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  /**
   * Summaries of the recent failures, keyed by login name, including names of users who do not
   * exist.
   */
  troubles(): ReadonlyMap<string, LoginTrouble> {
    return this.#options.guard.troubles();
  }

  /**
   * Checks the credentials in a request body, and starts a session.
   * @param body The JSON value of the body; undefined if it was not JSON.
   * @param token A token of an earlier login on this device, expired or not.
   * @throws {AuthError}
   */
  async login(body: unknown, caller: Caller, token?: string): Promise<LoginBody> {
    const { bucket, isEmailLogin, isSetupNeeded, sessions } = this.#options;
    bucket.takeAttempt(caller);
    const fields = bodyFields(body);
    const lengthMax = isEmailLogin ? ADDRESS_LENGTH_MAX : USER_LENGTH_MAX;
    const name = textField(fields, ["user", "username"], lengthMax).normalize("NFC");
    const password = textField(fields, ["password"], PASSWORD_LENGTH_MAX);
    if (isSetupNeeded()) {
      throw new AuthError(
        "setup_required",
        "The server needs first-time setup before anyone can log in",
      );
    }
    const userId = this.userNamed(name)?.userId ?? name;
    return await sessions.begin(await this.check({ userId, password }, caller, { token }));
  }

  /**
   * Returns the user whom a name identifies at login: a user id, an additional login name, or a
   * verified address if such logins are enabled.
   */
  userNamed(name: string): UserEntry | undefined {
    const { catalog, isEmailLogin } = this.#options;
    const found = catalog.accounts.userByLogin(name);
    if (found !== undefined || !isEmailLogin) return found;
    return catalog.accounts
      .usersByEmail(name)
      .find(({ emailVerifiedAtMs: ms }) => ms !== undefined);
  }

  /**
   * Checks the password of a user, who may not exist, subject to the login limits.
   *
   * @param options.action The action recorded in the audit log; "login" by default.
   * @throws {AuthError} unauthorized, account_locked, rate_limited
   */
  async check(
    { password, userId }: { userId: string; password: string },
    caller: Caller,
    { action = "login", token }: { action?: string; token?: string | undefined } = {},
  ): Promise<UserEntry> {
    const { guard } = this.#options;
    const attempt = guard.attempt(userId, caller.address, this.#sessionOf(userId, token));
    this.#refuse(attempt);
    const leave = await guard.enter(attempt);
    try {
      return await this.#attempt(attempt, { action, password }, caller);
    } finally {
      leave();
    }
  }

  /**
   * Checks a login after waiting for its turn. Only one login at a time is checked for each name,
   * and for each known device of a name.
   */
  async #attempt(
    attempt: Attempt,
    { action, password }: { action: string; password: string },
    caller: Caller,
  ): Promise<UserEntry> {
    const { catalog, clock, guard, hasher, log } = this.#options;
    const { name } = attempt;
    // The limits are checked again, because the previous login in the queue may have been the
    // failure that reached a limit.
    this.#refuse(attempt);
    const delayMs = guard.delayMs(attempt);
    if (delayMs > 0) await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    const hash = catalog.accounts.user(name)?.passwordHash;
    const turn = { sender: senderOf(caller.address), isTrusted: attempt.isKnown };
    const isRight = await hasher.matches(password, hash, turn);
    // If another attempt has locked the name in the meantime, this attempt must not reveal whether
    // its password is correct.
    this.#refuse(attempt);
    const user = catalog.accounts.user(name);
    if (!isRight || user === undefined || user.passwordHash !== hash) {
      const isLocked = guard.failed(attempt);
      this.#audit(name, caller, { action, outcome: "failed", isLocked });
      const { address, requestId: request } = caller;
      if (isLocked) {
        log.warn("login locked after repeated failures", { user: name, address, request });
      }
      if (guard.closedForSeconds(attempt) !== undefined) {
        const what = "too many failed logins for a user; only known devices may try again";
        log.warn(what, { user: name, address, request });
      }
      throw new AuthError("unauthorized", "The user name or the password is incorrect");
    }
    guard.succeeded(attempt, caller.address);
    if (action === "login") this.#audit(name, caller, { action, outcome: "ok", isLocked: false });
    return user;
  }

  /**
   * Returns the session id of a user's token, even if the token has expired. Returns undefined if
   * the session has ended or belongs to another user.
   */
  #sessionOf(name: string, token: string | undefined): string | undefined {
    const { sessions } = this.#options;
    const session = token === undefined ? undefined : sessions.sessionOf(token);
    return session?.userId === name ? session.sessionId : undefined;
  }

  #refuse(attempt: Attempt): void {
    const { guard } = this.#options;
    const lockedForSeconds = guard.lockedForSeconds(attempt);
    if (lockedForSeconds !== undefined) {
      throw new AuthError("account_locked", "Too many failed logins; try again later", {
        retryAfterSeconds: lockedForSeconds,
      });
    }
    const closedForSeconds = guard.closedForSeconds(attempt);
    if (closedForSeconds === undefined) return;
    throw new AuthError(
      "rate_limited",
      "Too many failed logins for this user; try again later, or from a device or address " +
        "from which you have logged in before",
      { retryAfterSeconds: closedForSeconds },
    );
  }

  #audit(
    name: string,
    caller: Caller,
    { action, isLocked, outcome }: { action: string; outcome: "ok" | "failed"; isLocked: boolean },
  ): void {
    const source = sourceOf(caller, isLocked ? { locked: true } : {});
    const about = { actor: name, target: name, subject: name };
    this.#options.onAudit({ ...source, ...about, action, outcome });
  }
}
