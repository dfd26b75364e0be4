/**
 * Implements sign-up: people create accounts with the role `user` for themselves, with a name,
 * with an address, or as anonymous guests. Guests can later become users who can log in.
 *
 *                    ┌──guest──► account guest-…, with a session, without a login
 *     nobody ────────┤                 │ signup by its token: same account and rows
 *                    └──signup──► account with a login name and a password
 *
 * Invariants:
 * - Neither the response to a sign-up nor its duration reveals whether the name or the address was
 *   free. The client finds out by logging in, subject to the login limits.
 * - Nobody can sign up with the name of a dropped account, because rows of other users may refer
 *   to that name.
 * - A guest keeps its id forever. A former guest's login name is an additional name.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { senderOf } from "../base/sender.ts";
import { type Catalog, newUserIdFault, ROOT_USER_ID } from "../catalog/mod.ts";
import type { LoginBody, MessageBody } from "../protocol/mod.ts";
import type { AccountLinks } from "./account_links.ts";
import { type AccountSettings, type OnNotice, turnedOff } from "./account_settings.ts";
import { bodyFields, type Caller, optionalTextField, textField } from "./answers.ts";
import { type OnAudit, ownAction } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import type { Invitations } from "./invitations.ts";
import type { AuthBucket } from "./login_guard.ts";
import { PASSWORD_LENGTH_MAX } from "./logins.ts";
import { type PasswordHasher, type PasswordPolicy, requireStrong } from "./password.ts";
import type { Principal } from "./principal.ts";
import { PROVIDER_USER_PREFIX } from "./provider_users.ts";
import type { SessionEnds } from "./session_ends.ts";
import type { Sessions } from "./sessions.ts";
import { EMAIL_LENGTH_MAX } from "./setup.ts";
import type { SignUpRate } from "./sign_up_rate.ts";
import { steadily } from "./steady_answers.ts";

export interface SignUpsOptions {
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  settings: AccountSettings;
  signUpRate: SignUpRate;
  policy: PasswordPolicy;
  hasher: PasswordHasher;
  sessions: Sessions;
  sessionEnds: SessionEnds;
  invitations: Invitations;
  links: AccountLinks;
  bucket: AuthBucket;
  isSetupNeeded: () => boolean;
  onAudit: OnAudit;
  onNotice: OnNotice;
}

interface SignUpRequest {
  /** The chosen login name; undefined for a sign-up with only an email address. */
  readonly name: string | undefined;
  readonly password: string;
  readonly email: string | undefined;
  readonly invitation: string | undefined;
}

const USER_LENGTH_MAX = 128;
const CODE_LENGTH_MAX = 128;

/** The prefix of guest ids. No name chosen at sign-up may begin with it. */
const GUEST_PREFIX = "guest-";

/** The maximum number of accounts with the same unverified email address. */
const UNVERIFIED_MAX = 3;

const DAY_MS = 24 * 3_600_000;

/** The maximum number of guests dropped per call, so that a call fits into a tick. */
const DROPPED_AT_ONCE_MAX = 50;

export class SignUps {
  readonly #options: SignUpsOptions;

  constructor(options: SignUpsOptions) {
    this.#options = options;
  }

  /**
   * Creates an account, or gives a guest a login name. The response does not reveal whether the
   * name was already taken.
   *
   * @param body The JSON value of the body; undefined if it was not JSON.
   * @param sender The user whose token came with the request. It is ignored unless the user is a
   *   guest.
   * @throws {AuthError}
   */
  async signUp(body: unknown, caller: Caller, sender: Principal | undefined): Promise<MessageBody> {
    const { bucket, catalog, clock, hasher, isSetupNeeded, settings } = this.#options;
    bucket.takeAttempt(caller);
    if (settings.signUp === "off") throw turnedOff("Sign-up is disabled", 'auth.signup = "open"');
    if (isSetupNeeded()) {
      throw new AuthError(
        "setup_required",
        "The server needs first-time setup before users can sign up",
      );
    }
    const isGuest =
      sender !== undefined && catalog.accounts.user(sender.userId)?.authType === "guest";
    const guest = isGuest ? sender : undefined;
    const request = this.#read(body, guest);
    this.#requireInvitation(request.invitation);
    this.#options.signUpRate.take(caller);
    const turn = { sender: senderOf(caller.address), isTrusted: false };
    const passwordHash = await hasher.hash(request.password, turn);
    await steadily(clock, () => this.#make(request, { passwordHash, guest, caller }));
    return {
      message:
        request.name === undefined
          ? "If the email address is not yet in use, an email is on its way to it; to complete " +
            "the sign-up, open the link in the email"
          : "If the name was free, it is now yours, and you can log in. If logging in fails, " +
            "choose a different name",
    };
  }

  /** Creates a guest account and starts a session for it. @throws {AuthError} */
  async beginAsGuest(caller: Caller): Promise<LoginBody> {
    const { bucket, catalog, isSetupNeeded, onAudit, random, sessions, settings } = this.#options;
    bucket.takeAttempt(caller);
    if (!settings.hasGuests) throw turnedOff("Guest accounts are disabled", "auth.guests = true");
    if (isSetupNeeded()) {
      throw new AuthError(
        "setup_required",
        "The server needs first-time setup before guest accounts can be created",
      );
    }
    this.#options.signUpRate.take(caller);
    const userId = GUEST_PREFIX + random.bytes(10).toHex();
    const user = catalog.accounts.create({ userId, role: "user", authType: "guest" });
    onAudit(ownAction(userId, caller, "create guest"));
    return await sessions.begin(user);
  }

  /**
   * Drops guest accounts that have not been used for a long time. Returns whether more such
   * accounts remain.
   */
  dropIdleGuests(): boolean {
    const { catalog, clock, log, sessionEnds, settings } = this.#options;
    if (settings.guestDays === 0) return false;
    const sinceMs = clock.nowMs() - settings.guestDays * DAY_MS;
    const idle = catalog.accounts.users().filter((user) => {
      const isGuest = user.authType === "guest" && user.deletedAtMs === undefined;
      return isGuest && Math.max(user.createdAtMs, user.lastSeenAtMs ?? 0) < sinceMs;
    });
    for (const { userId } of idle.slice(0, DROPPED_AT_ONCE_MAX)) {
      catalog.accounts.drop(userId);
      sessionEnds.endAccount(userId);
      log.info("deleted a guest without recent activity", { user: userId });
    }
    return idle.length > DROPPED_AT_ONCE_MAX;
  }

  #make(
    request: SignUpRequest,
    {
      caller,
      guest,
      passwordHash,
    }: { passwordHash: string; guest: Principal | undefined; caller: Caller },
  ): void {
    const { catalog, invitations, log, onAudit } = this.#options;
    const { email, invitation: code, name } = request;
    const invitation = code === undefined ? undefined : invitations.usable(code);
    // The invitation is checked again, because another sign-up may have used it up while the
    // password was being hashed.
    if (code !== undefined && invitation === undefined) return;
    if (this.#isTaken(request)) return;
    if (invitation !== undefined) {
      catalog.invitations.change({ ...invitation, usedCount: invitation.usedCount + 1 });
    }
    const userId = this.#accountOf(request, { guest, passwordHash });
    if (userId === undefined) return;
    const user = catalog.accounts.user(userId);
    if (user === undefined) return;
    log.info("user signed up", { user: userId, request: caller.requestId });
    onAudit(ownAction(userId, caller, guest === undefined ? "sign up" : "sign up as guest"));
    if (email !== undefined && this.#options.settings.isEmailLogin) {
      this.#options.links.requestVerification(user);
    } else if (name === undefined) {
      log.warn("signed up a user who has neither a login name nor a verified email address", {
        user: userId,
      });
    }
  }

  /**
   * Creates the account of a sign-up, or changes the account of a guest. Returns the account's id;
   * undefined if the guest has been dropped in the meantime.
   */
  #accountOf(
    { email, name }: SignUpRequest,
    { guest, passwordHash }: { guest: Principal | undefined; passwordHash: string },
  ): string | undefined {
    const { catalog, random, sessionEnds } = this.#options;
    const chosen = email === undefined ? {} : ({ email, isEmailUnproven: true } as const);
    if (guest === undefined) {
      const userId = name ?? `u-${random.bytes(10).toHex()}`;
      catalog.accounts.create({
        userId,
        role: "user",
        authType: "password",
        passwordHash,
        ...chosen,
      });
      return userId;
    }
    const { userId } = guest;
    if (catalog.accounts.user(userId)?.authType !== "guest") return undefined;
    catalog.accounts.change(userId, {
      authType: "password",
      passwordHash,
      ...(name === undefined ? {} : { loginName: name }),
      ...chosen,
    });
    // Setting the password increased the token version, so the guest has to log in again as a
    // user.
    sessionEnds.endUser(userId);
    return userId;
  }

  #isTaken({ email, name }: SignUpRequest): boolean {
    const { catalog, onNotice, settings } = this.#options;
    if (
      name !== undefined &&
      (catalog.accounts.userLike(name) ?? catalog.accounts.wasDropped(name)) !== false
    ) {
      return true;
    }
    if (email === undefined || !settings.isEmailLogin) return false;
    const holders = catalog.accounts.usersByEmail(email);
    const owner = holders.find(({ emailVerifiedAtMs }) => emailVerifiedAtMs !== undefined);
    if (owner === undefined) return holders.length >= UNVERIFIED_MAX;
    onNotice({ type: "email_taken", userId: owner.userId, email });
    return true;
  }

  /**
   * Reads and checks the fields of a sign-up request.
   * @throws {AuthError} invalid_request, invalid_user, weak_password
   */
  #read(body: unknown, guest: Principal | undefined): SignUpRequest {
    const { policy, settings } = this.#options;
    const fields = bodyFields(body);
    const email = optionalTextField(fields, "email", EMAIL_LENGTH_MAX);
    const name = optionalTextField(fields, "user", USER_LENGTH_MAX)?.normalize("NFC");
    const password = textField(fields, ["password"], PASSWORD_LENGTH_MAX);
    const invitation = optionalTextField(fields, "invitation", CODE_LENGTH_MAX);
    if (name === undefined && (email === undefined || !settings.isEmailLogin)) {
      throw new AuthError("invalid_request", 'The body must contain a string "user"');
    }
    if (email !== undefined) requireAddress(email);
    const fault = name === undefined ? undefined : nameFault(name);
    if (fault !== undefined) throw new AuthError("invalid_user", `Cannot use "user": ${fault}`);
    const userId = name ?? guest?.userId ?? email ?? "";
    requireStrong(password, { userId, policy, field: "password" });
    return { name, password, email, invitation };
  }

  /** Refuses an invitation code that is not valid. @throws {AuthError} invalid_invitation */
  #requireInvitation(code: string | undefined): void {
    const { invitations, settings } = this.#options;
    if (settings.signUp !== "invitation" && code === undefined) return;
    if (code !== undefined && invitations.usable(code) !== undefined) return;
    throw new AuthError(
      "invalid_invitation",
      code === undefined
        ? 'Signing up requires an invitation; send its code as "invitation"'
        : "The invitation is unknown, used up or expired; ask for a new one",
    );
  }
}

/**
 * Matches text with exactly one @ and no whitespace or control characters. Whether the address
 * really exists can be found out only by sending a message to it.
 */
const EMAIL = /^[^\s\p{C}@]+@[^\s\p{C}@]+\.[^\s\p{C}@]+$/u;

/**
 * Refuses a string that does not have the form of an email address.
 * @throws {AuthError} invalid_request
 */
export function requireAddress(email: string): void {
  if (EMAIL.test(email)) return;
  throw new AuthError(
    "invalid_request",
    '"email" must be an email address such as ann@example.com',
  );
}

/**
 * Returns the reason why a name cannot be chosen at sign-up, phrased as the end of a sentence;
 * undefined if it can be chosen.
 */
function nameFault(name: string): string | undefined {
  if (name.toLowerCase() === ROOT_USER_ID) return `it must not be "${ROOT_USER_ID}"`;
  if (name.includes("@"))
    return 'a login name must not contain @; send an email address as "email"';
  if (name.toLowerCase().startsWith(GUEST_PREFIX)) {
    return `a login name must not begin with "${GUEST_PREFIX}", which is reserved for guests`;
  }
  if (name.toLowerCase().startsWith(PROVIDER_USER_PREFIX)) {
    return (
      `a login name must not begin with "${PROVIDER_USER_PREFIX}", which is reserved for users ` +
      "of providers"
    );
  }
  return newUserIdFault(name);
}
