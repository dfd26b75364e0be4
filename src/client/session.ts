/**
 * Who the client is: its tokens and the requests that carry them.
 *
 * The access token lives in memory only. The refresh token lives in the browser's HttpOnly cookie,
 * or in memory where there are no cookies. With credentials, the first request that needs a token
 * logs in, and so does any later request that finds no token. A request that the server refuses
 * because its token has expired or is no longer accepted is repeated once with a new token;
 * concurrent requests share one renewal. If no new token is to be had, the session ends.
 *
 * Of those whom the server lets in, whoever was asked for last is who the client is: what answers
 * later and belongs to somebody before, or comes after a log-out, is not taken over, and no request
 * of one user is repeated as another.
 */
import type { AuthStatusBody, LoginBody, UserBody } from "../protocol/mod.ts";
import { FLAG, OBJECT, requireOptions, requireRule, SIGNAL, TEXT } from "./checks.ts";
import { type Credentials, subjectOf, tokenFrom } from "./credentials.ts";
import type { WholeEnvironment } from "./environment.ts";
import { type ConnectionError, isObject, ServerError } from "./errors.ts";
import { withRepeats } from "./repeats.ts";
import { type Answer, type CallOptions, Requests } from "./requests.ts";

export interface SessionOptions {
  /** Base address, without a slash at the end. */
  readonly url: string;
  /** Where the refresh token is kept. */
  readonly keepIn: "cookie" | "memory";
  /** Credentials for automatic login. */
  readonly credentials: Credentials | undefined;
  readonly environment: WholeEnvironment;
  /** How often a request that may be repeated is sent again. */
  readonly maxRetries: number;
  /** How long a request may take; undefined for as long as it does. */
  readonly timeoutMs: number | undefined;
  /** Told when the session has ended without having been asked to. */
  readonly onSignedOut: () => void;
  /** Told when it ends because it was asked to, before the server is. */
  readonly onLogout: () => void;
  /** Told when it is another user's from now on. */
  readonly onOtherUser: () => void;
}

export interface SetupFields {
  readonly user: string;
  readonly password: string;
  readonly root_password: string;
  readonly email?: string;
}

export interface PostOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether it does no harm when the server meets it twice. */
  readonly isRepeatable?: boolean;
}

export interface Identity {
  readonly user: UserBody;
  /** Whether the role opens the admin page. */
  readonly mayAdminister: boolean;
}

/** Refusals of a token, which another may not meet. */
const TOKEN_REFUSALS: ReadonlySet<string> = new Set(["TOKEN_EXPIRED", "INVALID_CREDENTIALS"]);

export class Session {
  readonly #options: SessionOptions;
  readonly #requests: Requests;
  /** Undefined after a log-out, so that the client does not log in again by itself. */
  #credentials: Exclude<Credentials, { token: string }> | undefined;
  /**
   * The refusal of the name and password; they are not tried again, as failures can lock the name.
   */
  #credentialsFailure: ServerError | undefined;
  #accessToken: string | undefined;
  #refreshToken: string | undefined;
  #renewing: Promise<Identity | undefined> | undefined;
  /** Of whoever was logged in last. */
  #userId: string | undefined;
  /** Raised by every log-in that is asked for, and every log-out. */
  #attempt = 0;
  /** Which of them made the client who it is. */
  #attemptTaken = 0;
  /** Settles when the log-in that was asked for last has its answer. Never fails. */
  #loggingIn: Promise<unknown> = Promise.resolve();
  /** Raised when one session takes the place of another, or none does. */
  #epoch = 0;

  /** @internal */
  constructor(options: SessionOptions) {
    const { credentials, environment, timeoutMs, url } = options;
    this.#options = options;
    this.#requests = new Requests({ url, environment, timeoutMs });
    if (typeof credentials === "object" && "token" in credentials) {
      this.#accessToken = credentials.token;
      this.#userId = subjectOf(credentials.token);
    } else {
      this.#credentials = credentials;
    }
  }

  get accessToken(): string | undefined {
    return this.#accessToken;
  }

  /** The user of the token, if known. */
  get userId(): string | undefined {
    return this.#userId;
  }

  /** Whether there is no token yet but credentials to get one. @internal */
  get mustLogIn(): boolean {
    return this.#accessToken === undefined && this.#credentials !== undefined;
  }

  async status(): Promise<AuthStatusBody> {
    const { fields } = await this.#requests.call("GET", "/v1/api/auth/status");
    return fields as unknown as AuthStatusBody;
  }

  /** Makes the first administrator; nobody is logged in by it. */
  async setup(fields: SetupFields): Promise<void> {
    requireOptions(
      {
        doing: "set up the server",
        example: "session.setup({ user, password, root_password })",
      },
      fields,
      { user: TEXT, password: TEXT, root_password: TEXT, email: TEXT },
    );
    await this.#requests.call("POST", "/v1/api/auth/setup", { body: fields });
  }

  async login(user: string, password: string): Promise<Identity> {
    requireLogin(user, password);
    this.#attempt += 1;
    const loggingIn = this.#login(user, password, this.#attempt);
    this.#loggingIn = loggingIn.catch(() => undefined);
    return await loggingIn;
  }

  async #login(user: string, password: string, attempt: number): Promise<Identity> {
    await this.#cookiesSet();
    const answer = await this.#requests.call("POST", "/v1/api/auth/login", {
      body: { user, password },
    });
    const login = this.#loginFrom(answer);
    // A later one that is refused, or has no answer yet, takes nothing from this one.
    if (attempt < this.#attemptTaken) throw replaced();
    this.#attemptTaken = attempt;
    // An explicit log-in replaces the credentials.
    this.#credentials = undefined;
    this.#begin();
    return this.#accept(login);
  }

  /**
   * Continues the session of the kept refresh token, or logs in with the credentials.
   *
   * @throws {ServerError} unauthorized
   */
  async refresh(): Promise<Identity> {
    const identity = await this.#renewed();
    if (identity !== undefined) return identity;
    const token = this.#accessToken ?? "";
    const answer = await this.#requests.call("GET", "/v1/api/auth/me", { token });
    const { admin_ui_access: mayAdminister, user } = answer.fields;
    if (!isObject(user)) throw this.#requests.foreign(answer);
    return { user: user as unknown as UserBody, mayAdminister: mayAdminister === true };
  }

  /** Renews the access token, without fetching the identity as `refresh` does. */
  async renew(): Promise<void> {
    await this.#renewed();
  }

  #renewed(): Promise<Identity | undefined> {
    if (this.#renewing !== undefined) return this.#renewing;
    const renewing = this.#renew().finally(() => {
      if (this.#renewing === renewing) this.#renewing = undefined;
    });
    this.#renewing = renewing;
    return renewing;
  }

  /** Ends the session, also when the server cannot be told. */
  async logout(): Promise<void> {
    const token = this.#accessToken;
    this.#attempt += 1;
    this.#attemptTaken = this.#attempt;
    this.#begin();
    this.#forget();
    this.#credentials = undefined;
    this.#options.onLogout();
    await this.#cookiesSet();
    await this.#requests.call("POST", "/v1/api/auth/logout", token === undefined ? {} : { token });
  }

  /** A browser keeps the cookie that comes last, so what sets one goes after what did. */
  async #cookiesSet(): Promise<void> {
    if (this.#options.keepIn !== "cookie") return;
    await Promise.all([this.#loggingIn, this.#renewing?.catch(() => undefined)]);
  }

  /** A request that needs a token. @throws {ServerError | ConnectionError} */
  async post(path: string, body: object, options: PostOptions = {}): Promise<unknown> {
    requireRule("the path", path, TEXT);
    requireRule("the body", body, OBJECT);
    requireOptions({ doing: "post", example: "session.post(path, body, { signal })" }, options, {
      signal: SIGNAL,
      isRepeatable: FLAG,
    });
    return (await this.call(path, body, options)).fields;
  }

  /** Like `post`, but returns the status, and the unread body if wanted. @internal */
  async call(
    path: string,
    body: object,
    options: PostOptions & Pick<CallOptions, "isStreamed">,
  ): Promise<Answer> {
    const { isRepeatable = false, isStreamed = false, signal } = options;
    const { environment, maxRetries } = this.#options;
    const epoch = this.#epoch;
    const send = async (): Promise<Answer> => {
      if (epoch !== this.#epoch) throw replaced();
      return await this.#post(path, { body, isStreamed, ...(signal && { signal }) });
    };
    if (!isRepeatable) return await send();
    return await withRepeats(send, { environment, maxRetries, signal });
  }

  /** The error for an answer that does not come from Tidemark. @internal */
  foreign(answer: Answer): ServerError {
    return this.#requests.foreign(answer);
  }

  /** The error for a connection that broke while an answer was read. @internal */
  broken(cause: unknown): ConnectionError {
    return this.#requests.broken(cause);
  }

  async #post(path: string, options: CallOptions): Promise<Answer> {
    const epoch = this.#epoch;
    if (this.mustLogIn) await this.#renewed();
    if (epoch !== this.#epoch) throw replaced();
    try {
      return await this.#authorized(path, options);
    } catch (error) {
      if (!(error instanceof ServerError) || !TOKEN_REFUSALS.has(error.code)) throw error;
      if (epoch === this.#epoch) await this.#renewed();
      if (epoch !== this.#epoch) throw replaced();
      return await this.#authorized(path, options);
    }
  }

  async #authorized(path: string, options: CallOptions): Promise<Answer> {
    const token = this.#accessToken;
    if (token === undefined) throw signedOut();
    return await this.#requests.call("POST", path, { ...options, token });
  }

  /** @returns Undefined if only a token was obtained, which does not describe the user's rights. */
  async #renew(): Promise<Identity | undefined> {
    const credentials = this.#credentials;
    if (typeof credentials === "function") return await this.#renewBy(credentials);
    const { keepIn } = this.#options;
    const mayRefresh =
      this.#refreshToken !== undefined || (keepIn === "cookie" && credentials === undefined);
    try {
      if (mayRefresh) return await this.#refresh();
    } catch (error) {
      const isOver = error instanceof ServerError && error.status === 401;
      if (!isOver || this.#credentials === undefined) throw error;
    }
    if (credentials === undefined) throw this.#tokenIsOver();
    return await this.#logInBy(credentials);
  }

  async #renewBy(give: () => string | Promise<string>): Promise<undefined> {
    const epoch = this.#epoch;
    const token = await tokenFrom(give);
    if (epoch !== this.#epoch) throw replaced();
    this.#accessToken = token;
    this.#become(subjectOf(token));
  }

  async #logInBy({ password, user }: { user: string; password: string }): Promise<Identity> {
    if (this.#credentialsFailure !== undefined) throw this.#credentialsFailure;
    const epoch = this.#epoch;
    try {
      const answer = await this.#requests.call("POST", "/v1/api/auth/login", {
        body: { user, password },
      });
      if (epoch !== this.#epoch) throw replaced();
      return this.#accept(this.#loginFrom(answer));
    } catch (error) {
      if (epoch === this.#epoch && error instanceof ServerError && error.status === 401) {
        this.#credentialsFailure = error;
        this.#end();
      }
      throw error;
    }
  }

  async #refresh(): Promise<Identity> {
    const body = this.#refreshToken === undefined ? {} : { refresh_token: this.#refreshToken };
    const epoch = this.#epoch;
    let login: LoginBody;
    try {
      login = this.#loginFrom(await this.#requests.call("POST", "/v1/api/auth/refresh", { body }));
    } catch (error) {
      if (epoch !== this.#epoch) throw replaced();
      if (error instanceof ServerError && error.status === 401) {
        this.#refreshToken = undefined;
        if (this.#credentials === undefined) this.#end();
      }
      throw error;
    }
    if (epoch !== this.#epoch) throw replaced();
    return this.#accept(login);
  }

  /** @throws {ServerError} If the answer is neither a login nor a refusal. */
  #loginFrom(answer: Answer): LoginBody {
    const { access_token: token, user } = answer.fields;
    const isLogin = typeof token === "string" && isObject(user) && typeof user["id"] === "string";
    if (!isLogin) throw this.#requests.foreign(answer);
    return answer.fields as unknown as LoginBody;
  }

  #accept(answer: LoginBody): Identity {
    this.#accessToken = answer.access_token;
    if (this.#options.keepIn === "memory") this.#refreshToken = answer.refresh_token;
    this.#become(answer.user.id);
    return { user: answer.user, mayAdminister: answer.admin_ui_access };
  }

  /**
   * Records the user. A renewal can change the user too, if another page of the browser logged in.
   */
  #become(userId: string | undefined): void {
    const before = this.#userId;
    this.#userId = userId ?? before;
    if (before === undefined || before === this.#userId) return;
    this.#begin();
    this.#options.onOtherUser();
  }

  /** What is under way belongs to the session before. */
  #begin(): void {
    this.#epoch += 1;
    this.#renewing = undefined;
  }

  /** Ends the session although nobody logged out. */
  #end(): void {
    this.#forget();
    this.#options.onSignedOut();
  }

  #forget(): void {
    this.#accessToken = undefined;
    this.#refreshToken = undefined;
  }

  #tokenIsOver(): ServerError {
    if (this.#accessToken === undefined) return signedOut();
    this.#end();
    const message =
      "The token is accepted no more, and there is nothing to renew it by: give auth a function, or a user and a password";
    return new ServerError("unauthorized", message, { status: 401 });
  }
}

/** @throws {TypeError} */
function requireLogin(user: unknown, password: unknown): void {
  if (typeof user === "string" && typeof password === "string") return;
  throw new TypeError(
    'Cannot log in: name and password should be text; write session.login("ada", "correct horse 9")',
  );
}

/** The answer to somebody who is no longer who the client is. */
function replaced(): ServerError {
  return new ServerError("unauthorized", "The session was ended, or replaced by another log-in", {
    status: 401,
  });
}

function signedOut(): ServerError {
  return new ServerError("unauthorized", "Nobody is logged in", { status: 401 });
}
