/**
 * Creates one-time links that are sent by mail, either to set a new password after the old one was
 * forgotten or to prove that an address belongs to its user. The operator's own program delivers
 * the links.
 *
 *     reset_link ──notice with a token──► mail ──► reset by the token ──► new password, all
 *                                                                         sessions ended
 *     signup, verify_link ──notice───────► mail ──► verify by the token ──► address verified
 *     email ──notice to the new address──► mail ──► verify by the token ──► address changed
 *
 * A token in a link is signed like a session token and contains the user's token version, so any
 * new password invalidates the token. A change of the address also invalidates the token, because
 * the token was issued for the old address. The server stores no state for a token.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { putNewest } from "../base/newest.ts";
import type { Random } from "../base/random.ts";
import { senderOf } from "../base/sender.ts";
import { type Catalog, ROOT_USER_ID, type UserEntry } from "../catalog/mod.ts";
import type { MessageBody } from "../protocol/mod.ts";
import { type AccountSettings, type OnNotice, turnedOff } from "./account_settings.ts";
import { bodyFields, type Caller, textField } from "./answers.ts";
import { type OnAudit, ownAction } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import type { AuthBucket } from "./login_guard.ts";
import { type Logins, PASSWORD_LENGTH_MAX } from "./logins.ts";
import { type PasswordHasher, type PasswordPolicy, requireStrong } from "./password.ts";
import type { Principal } from "./principal.ts";
import { requireLogin } from "./service_tokens.ts";
import type { SessionEnds } from "./session_ends.ts";
import { EMAIL_LENGTH_MAX } from "./setup.ts";
import { requireAddress } from "./sign_ups.ts";
import { steadily } from "./steady_answers.ts";
import type { TokenClaims, Tokens } from "./token.ts";

export interface AccountLinksOptions {
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  settings: AccountSettings;
  policy: PasswordPolicy;
  hasher: PasswordHasher;
  tokens: Tokens;
  logins: Logins;
  sessionEnds: SessionEnds;
  bucket: AuthBucket;
  /** Whether `auth.root_password` is set. If so, nothing else may change root's password. */
  isRootManaged: boolean;
  /** Called with the user id whenever a user's password has been set. */
  onPassword: (userId: string) => void;
  onAudit: OnAudit;
  onNotice: OnNotice;
}

const NAME_LENGTH_MAX = 320;
const TOKEN_LENGTH_MAX = 4096;

const RESET_SECONDS = 3600;
const VERIFY_SECONDS = 24 * 3600;

/**
 * The value that takes the place of the email address in the tokens of an account without one. No
 * real address has this value.
 */
const NO_ADDRESS = "none";

/** The maximum number of messages to one account per hour, so that nobody can flood its mailbox. */
const NOTICES_MAX = 3;
const NOTICES_WINDOW_MS = 3_600_000;

/**
 * The maximum number of accounts for which messages are counted. The counters take up a few
 * megabytes.
 */
const COUNTED_MAX = 20_000;

export class AccountLinks {
  readonly #options: AccountLinksOptions;
  /**
   * The times of the most recent messages to each account, on the monotonic clock, keyed by user
   * id.
   */
  readonly #noticesMs = new Map<string, number[]>();

  constructor(options: AccountLinksOptions) {
    this.#options = options;
  }

  /**
   * Sends a password reset link to the address of an account. The response does not reveal whether
   * the account exists or has an address.
   *
   * @throws {AuthError}
   */
  async sendResetLink(body: unknown, caller: Caller): Promise<MessageBody> {
    const { bucket, clock, settings } = this.#options;
    bucket.takeAttempt(caller);
    if (!settings.hasPasswordReset) {
      throw turnedOff("Password reset is disabled", "auth.password_reset = true");
    }
    const name = textField(bodyFields(body), ["user"], NAME_LENGTH_MAX).normalize("NFC");
    await steadily(clock, () => {
      const user = this.#resettable(name);
      if (user !== undefined) this.#notify(user, { type: "reset_password" });
    });
    return { message: "If the account exists and has an email address, an email is on its way" };
  }

  /**
   * Sets a new password. The token of a password reset link authorises the request.
   * @throws {AuthError}
   */
  async reset(body: unknown, caller: Caller): Promise<MessageBody> {
    const { bucket, catalog, hasher, log, onAudit, policy, sessionEnds, settings } = this.#options;
    bucket.takeAttempt(caller);
    if (!settings.hasPasswordReset) {
      throw turnedOff("Password reset is disabled", "auth.password_reset = true");
    }
    const fields = bodyFields(body);
    const token = textField(fields, ["token"], TOKEN_LENGTH_MAX);
    const password = textField(fields, ["password"], PASSWORD_LENGTH_MAX);
    const { userId } = this.#userOf(token, "reset").user;
    requireStrong(password, { userId, policy, field: "password" });
    const turn = { sender: senderOf(caller.address), isTrusted: true };
    const passwordHash = await hasher.hash(password, turn);
    // The token is checked again, because it may have been used, or the account dropped, while the
    // password was being hashed.
    this.#userOf(token, "reset");
    catalog.accounts.change(userId, { passwordHash });
    sessionEnds.endUser(userId);
    this.#options.onPassword(userId);
    log.info("password reset through a link", { user: userId, request: caller.requestId });
    onAudit(ownAction(userId, caller, "reset password"));
    return { message: "The new password has been set; you can now log in with it" };
  }

  /**
   * Sends the caller another link for verifying their address.
   *
   * @throws {AuthError}
   */
  async sendVerifyLink(principal: Principal, caller: Caller): Promise<MessageBody> {
    const { bucket, catalog, clock, settings } = this.#options;
    bucket.takeAttempt(caller);
    if (!settings.isEmailLogin) {
      throw turnedOff("Email verification is disabled", "auth.email_login = true");
    }
    await steadily(clock, () => {
      const user = catalog.accounts.user(principal.userId);
      if (user?.email !== undefined && user.emailVerifiedAtMs === undefined) {
        this.requestVerification(user);
      }
    });
    return { message: "If your email address has not been verified yet, an email is on its way" };
  }

  /**
   * Sends a verification link to the new address that a caller wants to use. The caller has to
   * repeat the password. The account keeps its old address until somebody follows the link. If the
   * new address belongs to another account, the response is the same, and the owner of that
   * account gets a message.
   */
  async sendChangeLink(principal: Principal, body: unknown, caller: Caller): Promise<MessageBody> {
    const { bucket, catalog, clock, logins, onAudit, onNotice, settings } = this.#options;
    bucket.takeAttempt(caller);
    if (!settings.isEmailLogin) {
      throw turnedOff("Changing your own email address is disabled", "auth.email_login = true");
    }
    requireLogin(principal);
    const fields = bodyFields(body);
    const password = textField(fields, ["password"], PASSWORD_LENGTH_MAX);
    const email = textField(fields, ["email"], EMAIL_LENGTH_MAX);
    requireAddress(email);
    const { userId } = principal;
    const user = await logins.check({ userId, password }, caller, { action: "change email" });
    await steadily(clock, () => {
      const owner = catalog.accounts
        .usersByEmail(email)
        .find((each) => each.emailVerifiedAtMs !== undefined);
      if (owner === undefined) this.#notify(user, { type: "verify_email", email });
      else if (owner.userId !== userId) {
        onNotice({ type: "email_taken", userId: owner.userId, email });
      }
    });
    onAudit(ownAction(userId, caller, "request change of email"));
    return { message: "If the address is not in use, an email is on its way to it" };
  }

  /**
   * Marks a user's address as verified, or replaces it with a verified one. The token of a link
   * authorises the request.
   *
   * @throws {AuthError}
   */
  async verify(body: unknown, caller: Caller): Promise<MessageBody> {
    const { bucket, catalog, clock, onAudit, settings } = this.#options;
    bucket.takeAttempt(caller);
    if (!settings.isEmailLogin) {
      throw turnedOff("Email verification is disabled", "auth.email_login = true");
    }
    const token = textField(bodyFields(body), ["token"], TOKEN_LENGTH_MAX);
    const { claims, user } = this.#userOf(token, "verify");
    const email = claims.email ?? "";
    const isOfOther = catalog.accounts.usersByEmail(email).some(({ emailVerifiedAtMs, userId }) => {
      return emailVerifiedAtMs !== undefined && userId !== user.userId;
    });
    if (isOfOther) throw invalidLink();
    if (email !== user.email || user.emailVerifiedAtMs === undefined) {
      catalog.accounts.change(user.userId, { email, emailVerifiedAtMs: clock.nowMs() });
      onAudit(ownAction(user.userId, caller, "verify email"));
    }
    return { message: "The email address has been verified; you can now log in with it" };
  }

  /**
   * Sends a link to a user's address. Following the link proves that the address belongs to the
   * user.
   */
  requestVerification(user: UserEntry): void {
    this.#notify(user, { type: "verify_email" });
  }

  /**
   * Returns the account with the given name or address. Returns undefined if no account matches,
   * if several accounts share the address, or if the password may not be reset.
   */
  #resettable(name: string): UserEntry | undefined {
    const { catalog, isRootManaged, logins } = this.#options;
    const byAddress = catalog.accounts.usersByEmail(name);
    const user = logins.userNamed(name) ?? (byAddress.length === 1 ? byAddress[0] : undefined);
    if (user?.email === undefined || user.authType !== "password") return undefined;
    return user.userId === ROOT_USER_ID && isRootManaged ? undefined : user;
  }

  /**
   * Sends the user a link through the operator's program.
   * @param link.email The new address that will replace the user's address; absent if the user's
   *   own address is to be verified.
   */
  #notify(
    user: UserEntry,
    { email = user.email, type }: { type: "reset_password" | "verify_email"; email?: string },
  ): void {
    const { clock, log, onNotice, random, tokens } = this.#options;
    const { tokenVersion, userId } = user;
    if (email === undefined) return;
    if (!this.#mayNotify(userId)) {
      log.warn("too many messages were sent to an account within an hour", { user: userId, type });
      return;
    }
    const issuedAt = Math.floor(clock.nowMs() / 1000);
    const isReset = type === "reset_password";
    const expiresAt = issuedAt + (isReset ? RESET_SECONDS : VERIFY_SECONDS);
    const id = random.bytes(16).toBase64({ alphabet: "base64url", omitPadding: true });
    const token = tokens.sign({
      userId,
      issuedAt,
      expiresAt,
      notBefore: undefined,
      tokenId: id,
      // The token of a link for a new address also contains the address being replaced.
      parentId: email === user.email ? undefined : (user.email ?? NO_ADDRESS),
      sessionId: id,
      tokenVersion,
      role: user.role,
      email,
      tokenType: isReset ? "reset" : "verify",
    });
    onNotice({ type, userId, email, token, expiresAtMs: expiresAt * 1000 });
  }

  #mayNotify(userId: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    const times = (this.#noticesMs.get(userId) ?? []).filter(
      (timeMs) => nowMs - timeMs < NOTICES_WINDOW_MS,
    );
    if (times.length >= NOTICES_MAX) return false;
    putNewest(this.#noticesMs, [userId, [...times, nowMs]], COUNTED_MAX);
    return true;
  }

  /**
   * Returns the user to whom the token of a link belongs.
   *
   * @throws {AuthError} `invalid_link`
   */
  #userOf(
    token: string,
    type: "reset" | "verify",
  ): { readonly claims: TokenClaims; readonly user: UserEntry } {
    const { catalog, clock, tokens } = this.#options;
    const claims = tokens.verify(token);
    const user = claims === undefined ? undefined : catalog.accounts.user(claims.userId);
    const isUsable =
      claims !== undefined &&
      user !== undefined &&
      claims.tokenType === type &&
      claims.tokenVersion === user.tokenVersion &&
      (claims.parentId ?? claims.email) === (user.email ?? NO_ADDRESS) &&
      clock.nowMs() < claims.expiresAt * 1000;
    if (!isUsable) throw invalidLink();
    return { claims, user };
  }
}

function invalidLink(): AuthError {
  return new AuthError(
    "invalid_link",
    "The link is no longer valid: it has been used, has expired, or has been replaced by a " +
      "newer one; request a new link",
  );
}
