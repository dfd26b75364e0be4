/**
 * A name and a password come in, a session of the user goes out.
 *
 * Whatever fails says the same for a wrong name and a wrong password, and takes as long. Every
 * outcome is told to the audit, but for those that learn nothing of a password: an address or a
 * name that tries too often is refused before one is compared.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Catalog } from "../catalog/mod.ts";
import type { LoginBody } from "../protocol/mod.ts";
import { bodyFields, type Caller, textField } from "./answers.ts";
import { type OnAudit, sourceOf } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import type { AuthBucket, LoginGuard, LoginTrouble } from "./login_guard.ts";
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
  onAudit: OnAudit;
}

const USER_LENGTH_MAX = 128;
const PASSWORD_LENGTH_MAX = 4096;

export class Logins {
  readonly #options: LoginsOptions;

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  /** Names whose logins failed, known or not. */
  troubles(): ReadonlyMap<string, LoginTrouble> {
    return this.#options.guard.troubles();
  }

  /** @param body The JSON value of the body, undefined when it was not JSON. @throws {AuthError} */
  async login(body: unknown, caller: Caller): Promise<LoginBody> {
    const { bucket, catalog, clock, guard, hasher, isSetupNeeded, log, sessions } = this.#options;
    bucket.takeAttempt(caller);
    const fields = bodyFields(body);
    const name = textField(fields, ["user", "username"], USER_LENGTH_MAX);
    const password = textField(fields, ["password"], PASSWORD_LENGTH_MAX);
    if (isSetupNeeded()) {
      throw new AuthError("setup_required", "The server needs first-time setup before a login");
    }
    this.#refuseLocked(name, caller);
    const delayMs = guard.delayMs(name);
    if (delayMs > 0) await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    const hash = catalog.user(name)?.passwordHash;
    const isRight = await hasher.matches(password, hash);
    // Guesses that ran beside the one that locked the name learn nothing, right or wrong.
    this.#refuseLocked(name, caller);
    const user = catalog.user(name);
    if (!isRight || user === undefined || user.passwordHash !== hash) {
      const isLocked = guard.failed(name, caller.address);
      this.#audit(name, caller, { outcome: "failed", isLocked });
      if (isLocked) {
        const { address, requestId: request } = caller;
        log.warn("login locked after repeated failures", { user: name, address, request });
      }
      throw new AuthError("unauthorized", "User or password is wrong");
    }
    guard.succeeded(name, caller.address);
    this.#audit(name, caller, { outcome: "ok", isLocked: false });
    return await sessions.begin(user);
  }

  #refuseLocked(name: string, caller: Caller): void {
    const retryAfterSeconds = this.#options.guard.lockedForSeconds(name, caller.address);
    if (retryAfterSeconds === undefined) return;
    throw new AuthError("account_locked", "Too many failed logins; try again later", {
      retryAfterSeconds,
    });
  }

  #audit(
    name: string,
    caller: Caller,
    { isLocked, outcome }: { outcome: "ok" | "failed"; isLocked: boolean },
  ): void {
    const source = sourceOf(caller, isLocked ? { locked: true } : {});
    const about = { actor: name, target: name, subject: name };
    this.#options.onAudit({ ...source, ...about, action: "login", outcome });
  }
}
