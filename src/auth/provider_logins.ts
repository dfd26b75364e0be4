/**
 * Implements browser logins through a provider (OpenID Connect).
 *
 *     login ──► provider ──► callback ──admin page──► session in cookies
 *                               │
 *                               └──application──► one-time code ──token──► session
 *                                                       └────────link──► link of an account
 *
 * Invariants:
 * - A callback is accepted only from the browser that started the login: `state` must equal that
 *   in the signed cookie. It is accepted only for the provider of that login, and `iss` must name
 *   the same provider (RFC 9207).
 * - A code for an application can be used only once, within a minute, and only with the verifier
 *   of the page that started the login. A link sent by somebody else therefore logs nobody in.
 * - The error for a failed login names only the step that failed. The reason is in the log.
 */
import { timingSafeEqual } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { putNewest } from "../base/newest.ts";
import type { Random } from "../base/random.ts";
import type { Catalog, UserEntry } from "../catalog/mod.ts";
import type { AccountLinksBody, AuthStatusBody, LoginBody, MessageBody } from "../protocol/mod.ts";
import { turnedOff } from "./account_settings.ts";
import { bodyFields, type Caller, textField } from "./answers.ts";
import { type OnAudit, sourceOf } from "./audit.ts";
import { AuthError } from "./auth_error.ts";
import { isExternalSession } from "./external_tokens.ts";
import type { AuthBucket } from "./login_guard.ts";
import { type BegunLogin, LOGIN_SECONDS, sealedLogin, unsealedLogin } from "./login_seal.ts";
import { type Logins, PASSWORD_LENGTH_MAX } from "./logins.ts";
import {
  authorizationUrl,
  challengeOf,
  exchangedCode,
  identityFromIdToken,
} from "./oidc/code_flow.ts";
import { ProviderError } from "./oidc/provider_fetch.ts";
import type { LoginProvider, Providers } from "./oidc/providers.ts";
import type { ExternalIdentity } from "./oidc/token_claims.ts";
import type { Principal } from "./principal.ts";
import { isSessionEnded, providerPart } from "./provider_sessions.ts";
import { linksOf, type ProviderUsers } from "./provider_users.ts";
import { isServiceSession } from "./service_tokens.ts";
import type { Sessions } from "./sessions.ts";

export interface ProviderLoginsOptions {
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  providers: Providers;
  providerUsers: ProviderUsers;
  sessions: Sessions;
  logins: Logins;
  bucket: AuthBucket;
  /** The secret with which the server signs the state of a login. */
  secret: Uint8Array;
  /** Whether users may link their existing account to a provider. */
  mayLink: boolean;
  onAudit: OnAudit;
}

/** A page's request to start a login. The server has already validated it. */
export interface LoginWish {
  /**
   * The page to return to: a path of the admin page, or the URL of an application's page without a
   * fragment.
   */
  readonly returnTo: string;
  /** The PKCE challenge of an application; undefined if the admin page starts the login. */
  readonly challenge: string | undefined;
  /** The URL to which the provider sends the browser after the login. */
  readonly callbackUrl: string;
}

/** The browser's request to the callback after a login at the provider. */
export interface LoginReturn {
  readonly query: URLSearchParams;
  /**
   * The value of the signed cookie that ties the callback to the browser that started the login.
   */
  readonly sealed: string | undefined;
  readonly callbackUrl: string;
}

/** The server's response to a step of a login: a redirect and cookies. */
export interface LoginStep {
  readonly location: string;
  /**
   * The value of the cookie that contains the state of the login; absent unless a login has
   * started.
   */
  readonly sealed?: string;
  /** The new session, if the login was for the admin page. */
  readonly login?: LoginBody;
}

type LoginFailure =
  | "denied"
  | "state_mismatch"
  | "exchange_failed"
  | "token_invalid"
  | "unknown_user";

/** The error codes with which a provider reports that the user did not consent. */
const DENIALS: ReadonlySet<string> = new Set([
  "access_denied",
  "consent_required",
  "interaction_required",
  "login_required",
]);

interface OneTimeCode {
  readonly identity: ExternalIdentity;
  readonly challenge: string;
  /** The time of the login at the provider, in Unix milliseconds. */
  readonly loginAtMs: number;
  /** The time at which the one-time code expires, on the monotonic clock. */
  readonly untilMs: number;
}

const CODE_MS = 60_000;

/**
 * The maximum number of unused one-time codes. This many take up a few megabytes. Beyond the
 * limit, the oldest code is dropped.
 */
const CODES_MAX = 10_000;

const CODE_LENGTH_MAX = 256;

const NAME_LENGTH_MAX = 1024;

export class ProviderLogins {
  readonly #options: ProviderLoginsOptions;
  readonly #codes = new Map<string, OneTimeCode>();

  constructor(options: ProviderLoginsOptions) {
    this.#options = options;
  }

  /** The providers to show on the login page. */
  get listed(): AuthStatusBody["oidc_providers"] {
    return this.#options.providers.logins.map(({ settings: { label, name } }) => ({
      name,
      label,
      login_url: `/v1/api/auth/oidc/${name}/login`,
    }));
  }

  /**
   * Starts a login through a provider. Returns undefined if the provider does not exist.
   *
   * @throws {AuthError} rate_limited
   */
  async begin(name: string, wish: LoginWish, caller: Caller): Promise<LoginStep | undefined> {
    const { bucket, clock, providers, secret } = this.#options;
    bucket.takeAttempt(caller);
    const provider = providers.named(name);
    if (provider === undefined) return undefined;
    const { callbackUrl: redirectUri, challenge, returnTo } = wish;
    const secrets = { state: this.#newText(), nonce: this.#newText(), verifier: this.#newText() };
    try {
      const discovery = await provider.keys.discovery();
      const location = authorizationUrl(provider, discovery, { ...secrets, redirectUri });
      const untilMs = clock.nowMs() + LOGIN_SECONDS * 1000;
      const begun: BegunLogin = { ...secrets, provider: name, returnTo, challenge, untilMs };
      return { location, sealed: sealedLogin(secret, begun) };
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      return this.#failed("exchange_failed", { provider: name, returnTo, why: error.message });
    }
  }

  /**
   * Finishes a login after the provider has sent the browser back. Returns undefined if the
   * provider does not exist.
   *
   * @throws {AuthError} rate_limited
   */
  async end(name: string, back: LoginReturn, caller: Caller): Promise<LoginStep | undefined> {
    const { bucket, providers } = this.#options;
    bucket.takeAttempt(caller);
    const provider = providers.named(name);
    if (provider === undefined) return undefined;
    const begun = this.#begun(name, back);
    const answer = begun === undefined ? undefined : { ...back, begun };
    const about = { provider: name, returnTo: begun?.returnTo };
    if (answer === undefined) {
      return this.#failed("state_mismatch", {
        ...about,
        why: "this login was started in a different browser",
      });
    }
    try {
      const found = await this.#identityOf(provider, answer);
      if (typeof found !== "object") return this.#failed(found, about);
      return await this.#ended(found, answer.begun, caller);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      return this.#failed("exchange_failed", { ...about, why: error.message });
    }
  }

  /**
   * Exchanges a one-time code, which an application received after a login, for a session.
   * @throws {AuthError}
   */
  async exchange(body: unknown, caller: Caller): Promise<LoginBody> {
    this.#options.bucket.takeAttempt(caller);
    const identity = this.#taken(body);
    const login = await this.#loggedIn(identity, caller);
    if (login !== undefined) return login;
    throw new AuthError(
      "unknown_user",
      "No account is linked to this login; an administrator can create one, or enable " +
        "oidc.auto_provision",
    );
  }

  /**
   * Links the caller's own account to the person identified by a one-time code. Because the link
   * is another way into the account, a user with a password has to enter it again. Any other user,
   * except a guest, has to give the code of a login whose link already exists.
   *
   * @throws {AuthError}
   */
  async link(principal: Principal, body: unknown, caller: Caller): Promise<MessageBody> {
    const { catalog, providerUsers } = this.#options;
    const { authType } = this.#requireLinking(principal, caller);
    const fields = bodyFields(body);
    await this.#requirePassword({ principal, fields, authType }, caller, "link account");
    if (authType === "oauth") {
      this.requireOwnLogin(principal, {
        code: textField(fields, ["own_code"], CODE_LENGTH_MAX),
        verifier: textField(fields, ["own_verifier"], CODE_LENGTH_MAX),
      });
    }
    const identity = this.#taken(body);
    const user = catalog.accounts.user(principal.userId);
    const linked = providerUsers.linkedTo(identity);
    if (user === undefined || user.authType !== authType) throw invalidCode();
    if (linked !== undefined && linked.userId !== user.userId) {
      throw new AuthError(
        "user_exists",
        "Cannot link the account: this login at the provider is already linked to a different " +
          "account",
      );
    }
    providerUsers.link(user, identity, caller);
    return { message: `The account is linked to ${identity.provider.settings?.label ?? "it"}` };
  }

  /** Returns the links between the caller's own account and providers. */
  links({ userId }: Principal): AccountLinksBody {
    const user = this.#options.catalog.accounts.user(userId);
    const links = user === undefined ? [] : linksOf(user);
    return {
      links: links.map(({ provider, subject }) => {
        return { provider, subject, label: this.#labelOf(provider) };
      }),
    };
  }

  /**
   * Removes a provider link from the caller's own account, and ends the sessions that were started
   * through this link.
   *
   * @throws {AuthError}
   */
  async unlink(principal: Principal, body: unknown, caller: Caller): Promise<MessageBody> {
    const { catalog, providerUsers } = this.#options;
    const { authType } = this.#requireLinking(principal, caller);
    const fields = bodyFields(body);
    const provider = textField(fields, ["provider"], NAME_LENGTH_MAX);
    const subject = textField(fields, ["subject"], NAME_LENGTH_MAX);
    await this.#requirePassword({ principal, fields, authType }, caller, "unlink account");
    const user = catalog.accounts.user(principal.userId);
    const links = user === undefined ? [] : linksOf(user);
    const link = links.find((each) => each.provider === provider && each.subject === subject);
    if (user === undefined || link === undefined) {
      throw new AuthError(
        "invalid_request",
        "Cannot remove the link: the account has no link to this provider and subject",
      );
    }
    if (user.authType === "oauth" && links.length === 1) {
      throw new AuthError(
        "forbidden",
        "Cannot remove the link: it is the account's only way to log in; link another login first",
      );
    }
    providerUsers.unlink(user, link, caller);
    return { message: `The account is no longer linked to ${this.#labelOf(provider)}` };
  }

  /**
   * Refuses a request that does not contain the one-time code of another login by the caller.
   * Invalidates the code.
   *
   * @param body An object with `code` and `verifier`.
   * @throws {AuthError} invalid_request, invalid_code
   */
  requireOwnLogin({ userId }: Principal, body: unknown): void {
    const own = this.#taken(body);
    if (this.#options.providerUsers.linkedTo(own)?.userId !== userId) throw invalidCode();
  }

  /**
   * Returns the caller's account, provided that the caller may change its provider links.
   * @throws {AuthError}
   */
  #requireLinking({ sessionId, userId }: Principal, caller: Caller): UserEntry {
    const { bucket, catalog, mayLink } = this.#options;
    bucket.takeAttempt(caller);
    if (!mayLink) throw turnedOff("Linking accounts is disabled", "oidc.linking = true");
    const user = catalog.accounts.user(userId);
    const isLogin = !isServiceSession(sessionId) && !isExternalSession(sessionId);
    if (isLogin && user !== undefined && user.authType !== "internal") return user;
    throw new AuthError(
      "forbidden",
      "Cannot change the account's links: only guests, and users who have logged in to this " +
        "server, may do this",
    );
  }

  async #requirePassword(
    {
      authType,
      fields,
      principal: { userId },
    }: {
      principal: Principal;
      fields: ReturnType<typeof bodyFields>;
      authType: UserEntry["authType"];
    },
    caller: Caller,
    action: string,
  ): Promise<void> {
    if (authType !== "password") return;
    const password = textField(fields, ["password"], PASSWORD_LENGTH_MAX);
    await this.#options.logins.check({ userId, password }, caller, { action });
  }

  #labelOf(link: string): string {
    return this.#options.providers.named(link)?.settings.label ?? link;
  }

  /**
   * Returns the login that this browser started; undefined if the callback belongs to a different
   * login.
   */
  #begun(name: string, { query, sealed }: LoginReturn): BegunLogin | undefined {
    const { clock, secret } = this.#options;
    const begun = sealed === undefined ? undefined : unsealedLogin(secret, sealed);
    if (begun === undefined || begun.provider !== name) return undefined;
    const isSame = isSameText(query.get("state") ?? "", begun.state);
    return isSame && clock.nowMs() < begun.untilMs ? begun : undefined;
  }

  /**
   * Returns the person who logged in at the provider, or the reason why the login failed.
   * @throws {ProviderError}
   */
  async #identityOf(
    provider: LoginProvider,
    { begun, callbackUrl, query }: LoginReturn & { begun: BegunLogin },
  ): Promise<ExternalIdentity | LoginFailure> {
    const { clock, log, providers } = this.#options;
    const discovery = await provider.keys.discovery();
    const issuer = query.get("iss");
    if (issuer === null ? discovery.namesIssuer : issuer !== provider.issuer) {
      log.warn("rejected a login: a different provider responded", { provider: begun.provider });
      return "state_mismatch";
    }
    const error = query.get("error");
    if (error !== null) return DENIALS.has(error) ? "denied" : "exchange_failed";
    const code = query.get("code");
    if (code === null) return "exchange_failed";
    const { nonce, verifier } = begun;
    const { fetch } = providers;
    const exchange = { code, verifier, redirectUri: callbackUrl, fetch };
    const tokens = await exchangedCode(provider, discovery, exchange);
    const nowMs = clock.nowMs();
    const check = { ...tokens, nonce, nowMs, fetch };
    return (await identityFromIdToken(provider, discovery, check)) ?? "token_invalid";
  }

  async #ended(
    identity: ExternalIdentity,
    { challenge, provider, returnTo }: BegunLogin,
    caller: Caller,
  ): Promise<LoginStep> {
    if (challenge === undefined) {
      const login = await this.#loggedIn(identity, caller);
      if (login === undefined) return this.#failed("unknown_user", { provider, returnTo });
      return { location: returnTo, login };
    }
    const code = this.#newText();
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + CODE_MS;
    const issued = { identity, challenge, loginAtMs: clock.nowMs(), untilMs };
    putNewest(this.#codes, [code, issued], CODES_MAX);
    return { location: `${returnTo}#tidemark_code=${code}` };
  }

  async #loggedIn(identity: ExternalIdentity, caller: Caller): Promise<LoginBody | undefined> {
    const { providerUsers, sessions } = this.#options;
    const user = providerUsers.admit(identity, caller);
    this.#audit(identity, user, caller);
    if (user === undefined) return undefined;
    return await sessions.begin(user, identity);
  }

  /**
   * Returns the person to whom a one-time code belongs. The code becomes invalid even if the
   * verifier is wrong. A logout at the provider also invalidates the codes of the session.
   *
   * @throws {AuthError} invalid_request, invalid_code
   */
  #taken(body: unknown): ExternalIdentity {
    const fields = bodyFields(body);
    const code = textField(fields, ["code"], CODE_LENGTH_MAX);
    const verifier = textField(fields, ["verifier"], CODE_LENGTH_MAX);
    const { catalog, clock } = this.#options;
    const found = this.#codes.get(code);
    this.#codes.delete(code);
    const isUsable =
      found !== undefined &&
      clock.monotonicMs() < found.untilMs &&
      isSameText(challengeOf(verifier), found.challenge) &&
      !isSessionEnded(catalog, providerPart(found.identity, found.loginAtMs));
    if (!isUsable) throw invalidCode();
    return found.identity;
  }

  #failed(
    failure: LoginFailure,
    { provider, returnTo, why }: { provider: string; returnTo?: string | undefined; why?: string },
  ): LoginStep {
    const { log } = this.#options;
    log.warn("a login through a provider failed", {
      provider,
      failure,
      ...(why === undefined ? {} : { why }),
    });
    const isApplication = returnTo !== undefined && !returnTo.startsWith("/");
    const page = isApplication ? `${returnTo}#tidemark_error=` : "/ui/login?error=";
    return { location: page + failure };
  }

  #audit(
    { provider, subject }: ExternalIdentity,
    user: UserEntry | undefined,
    caller: Caller,
  ): void {
    const { link } = provider;
    const name = user?.userId ?? `${link} ${subject}`;
    const about = { actor: name, target: name, subject: name };
    const outcome = user === undefined ? "failed" : "ok";
    const source = sourceOf(caller, { provider: link });
    this.#options.onAudit({ ...source, ...about, action: "login", outcome });
  }

  #newText(): string {
    return this.#options.random.bytes(32).toBase64({ alphabet: "base64url", omitPadding: true });
  }
}

function invalidCode(): AuthError {
  return new AuthError(
    "invalid_code",
    "The code is no longer valid: it has been used, has expired, was ended by a logout, or " +
      "belongs to a different page; log in again",
  );
}

function isSameText(given: string, expected: string): boolean {
  const [left, right] = [given, expected].map((text) => Buffer.from(text));
  if (left === undefined || right === undefined || left.length !== right.length) return false;
  return timingSafeEqual(left, right);
}
