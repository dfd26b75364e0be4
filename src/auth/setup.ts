/**
 * Performs the first-time setup, which sets root's password and creates the first DBA, exactly
 * once.
 *
 *     no root password ──setup or auth.root_password──► configured, permanently
 *
 * Calls run one after another, so only one of several concurrent calls succeeds. The others find
 * the setup complete.
 */
import { timingSafeEqual } from "node:crypto";
import { assert } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { senderOf } from "../base/sender.ts";
import { type Catalog, newUserIdFault, ROOT_USER_ID } from "../catalog/mod.ts";
import type { AuthStatusBody, SetupBody } from "../protocol/mod.ts";
import {
  answerFromUser,
  bodyFields,
  type Caller,
  optionalTextField,
  textField,
} from "./answers.ts";
import { type OnAudit, sourceOf } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import {
  type PasswordHasher,
  type PasswordPolicy,
  passwordFault,
  requireStrong,
} from "./password.ts";

export interface SetupOptions {
  catalog: Catalog;
  log: Log;
  hasher: PasswordHasher;
  policy: PasswordPolicy;
  random: Random;
  isRemoteAllowed: boolean;
  /**
   * Whether setup requires the code that the server prints when it starts. If so, only the
   * server's operators can perform the setup.
   */
  hasCode: boolean;
  /**
   * Counts a request against the caller's rate limit.
   * @throws {AuthError} rate_limited
   */
  takeAttempt: (caller: Caller) => void;
  onAudit: OnAudit;
}

interface SetupRequest {
  readonly userId: string;
  readonly password: string;
  readonly rootPassword: string;
  readonly email: string | undefined;
}

const FIELD_LENGTH_MAX = 4096;
export const EMAIL_LENGTH_MAX = 320;

export class Setup {
  readonly #options: SetupOptions;
  #last: Promise<unknown> = Promise.resolve();
  /** The setup code of this process. Each start of the server creates a new code. */
  readonly #code: string | undefined;

  constructor(options: SetupOptions) {
    this.#options = options;
    this.#code = options.hasCode ? newCode(options.random) : undefined;
  }

  /**
   * The code that a setup request must contain. Undefined if setup requires no code, or if the
   * setup is complete.
   */
  get code(): string | undefined {
    return this.isNeeded() ? this.#code : undefined;
  }

  isNeeded(): boolean {
    return this.#options.catalog.accounts.user(ROOT_USER_ID)?.passwordHash === undefined;
  }

  status(): Omit<AuthStatusBody, "oidc_providers"> {
    const isNeeded = this.isNeeded();
    return {
      needs_setup: isNeeded,
      message: isNeeded ? "The server needs first-time setup" : "The server has been set up",
      setup_code_required: this.code !== undefined,
    };
  }

  /**
   * Performs the first-time setup.
   *
   * @throws {AuthError} The error of the first check that fails. Clients may rely on the order of
   *   the checks.
   */
  async setUp(body: unknown, caller: Caller): Promise<SetupBody> {
    this.#refuseConfigured();
    this.#options.takeAttempt(caller);
    this.#refuseRemote(caller);
    this.#requireCode(body);
    const request = this.#read(body);
    const turn = this.#last.then(() => this.#run(request, caller));
    // The next setup call waits until this one has finished, whether or not this one succeeds. A
    // failure is reported only to the caller of the call that failed.
    this.#last = turn.catch(() => undefined);
    return await turn;
  }

  /**
   * Sets root's password to the configured one at startup.
   *
   * @throws {DatabaseError} WEAK_PASSWORD, in which case the server must not start.
   */
  async applyRootPassword(password: string): Promise<void> {
    const { catalog, hasher, log, onAudit, policy } = this.#options;
    const fault = passwordFault(password, { userId: ROOT_USER_ID, policy });
    if (fault !== undefined) {
      throw new DatabaseError("WEAK_PASSWORD", `Cannot use auth.root_password: ${fault}`);
    }
    const root = catalog.accounts.user(ROOT_USER_ID);
    assert(root !== undefined, "setup: the root account is missing from the catalog");
    const turn = { sender: ROOT_USER_ID, isTrusted: true };
    if (await hasher.matches(password, root.passwordHash, turn)) return;
    catalog.accounts.change(ROOT_USER_ID, { passwordHash: await hasher.hash(password, turn) });
    log.info(
      "the configured root password has been set, and earlier tokens of root have been revoked",
    );
    onAudit({
      action: "alter user",
      actor: ROOT_USER_ID,
      target: ROOT_USER_ID,
      subject: ROOT_USER_ID,
      outcome: "ok",
      details: { reason: "auth.root_password was changed" },
    });
  }

  async #run(request: SetupRequest, caller: Caller): Promise<SetupBody> {
    const { catalog, hasher, log, onAudit } = this.#options;
    this.#refuseConfigured();
    const turn = { sender: senderOf(caller.address), isTrusted: false };
    const [rootPasswordHash, passwordHash] = await Promise.all([
      hasher.hash(request.rootPassword, turn),
      hasher.hash(request.password, turn),
    ]);
    this.#refuseConfigured();
    this.#refuseTaken(request.userId);
    const user = catalog.accounts.setUp({
      rootPasswordHash,
      dba: {
        userId: request.userId,
        role: "dba",
        authType: "password",
        passwordHash,
        ...(request.email === undefined ? {} : { email: request.email }),
      },
    });
    const { userId } = user;
    log.info("first-time setup complete", { user: userId, request: caller.requestId });
    onAudit({
      ...sourceOf(caller),
      action: "setup",
      actor: userId,
      target: userId,
      outcome: "ok",
    });
    return {
      user: answerFromUser(user),
      message: `Setup complete; you can now log in as ${user.userId}`,
    };
  }

  #read(body: unknown): SetupRequest {
    const fields = bodyFields(body);
    const userId = textField(fields, ["user", "username"], FIELD_LENGTH_MAX).normalize("NFC");
    const password = textField(fields, ["password"], FIELD_LENGTH_MAX);
    const rootPassword = textField(fields, ["root_password"], FIELD_LENGTH_MAX);
    const email = fields["email"] ?? undefined;
    if (email !== undefined && (typeof email !== "string" || email.length > EMAIL_LENGTH_MAX)) {
      throw new AuthError(
        "invalid_request",
        `"email" must be a string of at most ${EMAIL_LENGTH_MAX} characters`,
      );
    }
    const fault =
      userId === ROOT_USER_ID ? `it must not be "${ROOT_USER_ID}"` : newUserIdFault(userId);
    if (fault !== undefined) throw new AuthError("invalid_user", `Cannot use "user": ${fault}`);
    const { policy } = this.#options;
    requireStrong(password, { userId, policy, field: "password" });
    requireStrong(rootPassword, { userId: ROOT_USER_ID, policy, field: "root_password" });
    this.#refuseTaken(userId);
    return { userId, password, rootPassword, email };
  }

  #refuseConfigured(): void {
    if (this.isNeeded()) return;
    throw new AuthError("already_configured", "The server has already been set up");
  }

  /**
   * Refuses a request body without the correct setup code, if setup requires one.
   * @throws {AuthError} invalid_setup_code
   */
  #requireCode(body: unknown): void {
    const code = this.#code;
    if (code === undefined) return;
    const given = optionalTextField(bodyFields(body), "setup_code", FIELD_LENGTH_MAX);
    if (given !== undefined && isSameCode(given, code)) return;
    throw new AuthError(
      "invalid_setup_code",
      given === undefined
        ? 'Setup requires the code that the server printed when it started; send it as "setup_code"'
        : "The setup code is wrong; the server printed the right one when it last started",
    );
  }

  #refuseRemote(caller: Caller): void {
    if (this.#options.isRemoteAllowed) return;
    if (!caller.isLocal) {
      throw new AuthError(
        "forbidden",
        "Only callers on the server's own machine may set it up, unless " +
          "auth.allow_remote_setup is true",
      );
    }
    if (caller.isHostAllowed === false) {
      throw new AuthError(
        "host_not_allowed",
        "The request's Host header does not name this server; to accept more names, add them " +
          "to security.allowed_hosts",
      );
    }
  }

  #refuseTaken(userId: string): void {
    if (this.#options.catalog.accounts.userLike(userId) === undefined) return;
    throw new AuthError("user_exists", `User ${userId} already exists`);
  }
}

/**
 * The characters that a setup code may contain. Characters that people easily confuse are omitted.
 */
const CODE_DIGITS = "ABCDEFGHJKMNPQRSTVWXYZ23456789";

/** The number of groups of characters in a setup code. A code has 58 random bits. */
const CODE_GROUPS = 3;
const CODE_GROUP_LENGTH = 4;

function newCode(random: Random): string {
  const digit = (): string => CODE_DIGITS.charAt(Math.floor(random.unit() * CODE_DIGITS.length));
  const group = (): string => Array.from({ length: CODE_GROUP_LENGTH }, digit).join("");
  return Array.from({ length: CODE_GROUPS }, group).join("-");
}

/**
 * Compares two setup codes, ignoring case, spaces and hyphens, because people type codes in
 * different ways.
 */
function isSameCode(given: string, code: string): boolean {
  const [left, right] = [given, code].map((text) => {
    const letters = text.toUpperCase().replace(/[\s-]/g, "");
    return new Bun.CryptoHasher("sha256").update(letters).digest();
  });
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}
