/**
 * Manages the client's session: its user, its tokens, and the requests that need a token.
 *
 * The access token is kept only in memory. The refresh token is kept in the browser's HttpOnly
 * cookie, or in the place that the application chooses (`refresh_token.ts`). If credentials are
 * configured, the first request that needs a token logs in, and so does any later request that
 * finds no token. A request that the server refuses because its token has expired or is no longer
 * accepted is repeated once with a new token; concurrent requests share a single renewal. If no
 * new token can be obtained, the session ends.
 *
 * If several logins are requested, the last successful one determines the user. A late response to
 * an earlier login, or a response that arrives after a logout, is discarded, and no request made
 * by one user is repeated on behalf of another.
 */
import type { AuthStatusBody, LoginBody, UserBody } from "../protocol/mod.ts";
import { FLAG, OBJECT, requireOptions, requireRule, SIGNAL, TEXT } from "./checks.ts";
import { type Credentials, tokenFrom } from "./credentials.ts";
import type { WholeEnvironment } from "./environment.ts";
import { type ConnectionError, isObject, ServerError } from "./errors.ts";
import type { RefreshTokenPlace } from "./refresh_token.ts";
import { type RepeatRules, withRepeats } from "./repeats.ts";
import { type CallOptions, type RequestAnswer, RequestData, Requests } from "./requests.ts";
import { claimsOf, renewalDelayMs } from "./token_claims.ts";

export interface SessionOptions {
  /** The address of the server, without a trailing slash. */
  readonly url: string;
  /** Whether the browser keeps the refresh token in a cookie and sends the cookie automatically. */
  readonly hasCookie: boolean;
  readonly refreshToken: RefreshTokenPlace;
  /** Credentials for automatic login. */
  readonly credentials: Credentials | undefined;
  readonly environment: WholeEnvironment;
  /** The maximum number of times to resend a repeatable request. */
  readonly maxRetries: number;
  /** The time limit for a request, in milliseconds; undefined for none. */
  readonly timeoutMs: number | undefined;
  /** Called when the session has ended without a logout. */
  readonly onSignedOut: () => void;
  /** Called on logout, before the request is sent to the server. */
  readonly onLogout: () => void;
  /** Called when another user's session replaces the current one. */
  readonly onOtherUser: () => void;
}

export interface SetupFields {
  readonly user: string;
  readonly password: string;
  readonly root_password: string;
  readonly email?: string;
  /** The code that the server printed when it started, if it requires one. */
  readonly setup_code?: string;
}

export interface PostOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether the server may process the request twice without harm. */
  readonly isRepeatable?: boolean;
}

export interface Identity {
  readonly user: UserBody;
  /** Whether the user's role may open the admin page. */
  readonly mayAdminister: boolean;
}

/** The error codes of refused requests that may succeed if repeated with a new token. */
const TOKEN_REFUSALS: ReadonlySet<string> = new Set(["TOKEN_EXPIRED", "INVALID_CREDENTIALS"]);

export class Session {
  readonly #options: SessionOptions;
  readonly #requests: Requests;
  /**
   * The credentials for automatic login; undefined after a logout, so that the client does not
   * automatically log in again.
   */
  #credentials: Exclude<Credentials, { token: string }> | undefined;
  /**
   * The error that the server returned when it rejected the name and password. They are not tried
   * again, because repeated failures can lock the account.
   */
  #credentialsFailure: ServerError | undefined;
  #accessToken: string | undefined;
  /** When the access token was received, on the client's clock. */
  #receivedMs = 0;
  #renewing: Promise<Identity | undefined> | undefined;
  /** The user who logged in most recently. */
  #userId: string | undefined;
  /** The number of requested logins and logouts so far. */
  #attempt = 0;
  /** The number of the login attempt that produced the current user. */
  #attemptTaken = 0;
  /** Settles when the last requested login has been answered. Never rejects. */
  #loggingIn: Promise<unknown> = Promise.resolve();
  /** Settles when the last sign-up, which may replace the session, has ended. Never rejects. */
  #replacing: Promise<unknown> = Promise.resolve();
  /** How many times a session has ended or been replaced. */
  #epoch = 0;

  /** Creates a session without a user. @internal */
  constructor(options: SessionOptions) {
    const { credentials, environment, timeoutMs, url } = options;
    this.#options = options;
    this.#requests = new Requests({ url, environment, timeoutMs });
    if (typeof credentials === "object" && "token" in credentials) {
      this.#keep(credentials.token);
      this.#userId = claimsOf(credentials.token).userId;
    } else {
      this.#credentials = credentials;
    }
  }

  get accessToken(): string | undefined {
    return this.#accessToken;
  }

  /** The user whom the access token identifies, if known. */
  get userId(): string | undefined {
    return this.#userId;
  }

  /** Whether there are credentials but no token yet. @internal */
  get mustLogIn(): boolean {
    return this.#accessToken === undefined && this.#credentials !== undefined;
  }

  /**
   * Returns the time until the access token should be renewed, in milliseconds; undefined if it
   * does not expire or cannot be renewed. @internal
   */
  renewalDelayMs(): number | undefined {
    const token = this.#accessToken;
    if (token === undefined || !this.#canRenew) return undefined;
    const delayMs = renewalDelayMs(token, this.#receivedMs);
    const passedMs = this.#options.environment.now() - this.#receivedMs;
    return delayMs === undefined ? undefined : Math.max(0, delayMs - passedMs);
  }

  get #canRenew(): boolean {
    const { hasCookie, refreshToken } = this.#options;
    return this.#credentials !== undefined || hasCookie || refreshToken.read() !== undefined;
  }

  async status(): Promise<AuthStatusBody> {
    const { fields } = await this.#requests.call("GET", "/v1/api/auth/status");
    return fields as unknown as AuthStatusBody;
  }

  /** Creates the first administrator, without logging in. */
  async setup(fields: SetupFields): Promise<void> {
    requireOptions(
      {
        doing: "set up the server",
        example: "session.setup({ user, password, root_password })",
      },
      fields,
      { user: TEXT, password: TEXT, root_password: TEXT, email: TEXT, setup_code: TEXT },
    );
    await this.#requests.call("POST", "/v1/api/auth/setup", { body: fields });
  }

  async login(user: string, password: string): Promise<Identity> {
    requireLogin(user, password);
    return await this.loginBy("/v1/api/auth/login", { user, password });
  }

  /** Starts the session returned by an endpoint. @internal */
  async loginBy(
    path: string,
    body: object,
    { isByToken = false }: { isByToken?: boolean } = {},
  ): Promise<Identity> {
    this.#attempt += 1;
    const loggingIn = this.#login(path, body, { attempt: this.#attempt, isByToken });
    this.#loggingIn = loggingIn.catch(() => undefined);
    return await loggingIn;
  }

  /**
   * Runs `work`, which may replace the session, while preventing renewals of the connection's
   * token: the server ends the old session before the new one starts.
   *
   * @internal
   */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const working = work();
    this.#replacing = working.catch(() => undefined);
    return await working;
  }

  async #login(
    path: string,
    body: object,
    { attempt, isByToken }: { attempt: number; isByToken: boolean },
  ): Promise<Identity> {
    await this.#cookiesSet();
    const answer = isByToken
      ? await this.#send(path, { body }, { isReplacing: true })
      : await this.#requests.call("POST", path, { body });
    const login = this.#loginFrom(answer);
    // Only a later login that has succeeded supersedes this login.
    if (attempt < this.#attemptTaken) throw replaced();
    this.#attemptTaken = attempt;
    // An explicit login takes precedence over the configured credentials.
    this.#credentials = undefined;
    this.#begin();
    return this.#accept(login);
  }

  /**
   * Resumes the session of the stored refresh token, or logs in with the credentials.
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

  /**
   * Renews the access token, without fetching the identity as `refresh` does. If a login is in
   * progress, that login provides the new token.
   */
  async renew(): Promise<void> {
    const token = this.#accessToken;
    await Promise.all([this.#loggingIn, this.#replacing]);
    if (token !== undefined && this.#accessToken !== undefined && token !== this.#accessToken)
      return;
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

  /** Ends the session, even if the server cannot be informed. */
  async logout(): Promise<void> {
    const token = this.#accessToken;
    this.ended();
    await this.#cookiesSet();
    await this.#requests.call("POST", "/v1/api/auth/logout", token === undefined ? {} : { token });
  }

  /**
   * Waits until no other request that sets cookies is running. Such requests run one at a time,
   * because a browser keeps the cookie that it receives last.
   */
  async #cookiesSet(): Promise<void> {
    if (!this.#options.hasCookie) return;
    await Promise.all([this.#loggingIn, this.#renewing?.catch(() => undefined)]);
  }

  /** Sends a request that needs a token. @throws {ServerError | ConnectionError} */
  async post(path: string, body: object, options: PostOptions = {}): Promise<unknown> {
    requireRule("the path", path, TEXT);
    requireRule("the body", body, OBJECT);
    requireOptions({ doing: "post", example: "session.post(path, body, { signal })" }, options, {
      signal: SIGNAL,
      isRepeatable: FLAG,
    });
    return (await this.call(path, body, options)).fields;
  }

  /** Sends a request, such as a sign-up, that replaces the user's session. @internal */
  async postReplacing(path: string, body: object): Promise<void> {
    await this.#send(path, { body }, { isReplacing: true });
  }

  /** Sends a request without a token. @throws {ServerError | ConnectionError} @internal */
  async postOpenly(path: string, body: object): Promise<void> {
    await this.#requests.call("POST", path, { body });
  }

  /** Ends the session on the client, because the server has ended it. @internal */
  ended(): void {
    this.#attempt += 1;
    this.#attemptTaken = this.#attempt;
    this.#begin();
    this.#forget();
    this.#credentials = undefined;
    this.#options.onLogout();
  }

  /** Sends a GET request that needs a token. @throws {ServerError | ConnectionError} @internal */
  async get(path: string): Promise<RequestAnswer> {
    return await this.#send(path, { method: "GET" });
  }

  /** Like `post`, but returns the status and, on request, the unread body. @internal */
  async call(
    path: string,
    body: object | RequestData,
    options: PostOptions &
      Pick<CallOptions, "headers" | "isStreamed"> &
      Pick<RepeatRules, "onFailure">,
  ): Promise<RequestAnswer> {
    const { headers, isRepeatable = false, isStreamed = false, onFailure, signal } = options;
    const { environment, maxRetries } = this.#options;
    const epoch = this.#epoch;
    const send = async (): Promise<RequestAnswer> => {
      if (epoch !== this.#epoch) throw replaced();
      return await this.#send(path, { body, headers, isStreamed, ...(signal && { signal }) });
    };
    if (!isRepeatable) return await send();
    return await withRepeats(send, { environment, maxRetries, signal, onFailure });
  }

  /** Returns the error for a response that does not come from Tidemark. @internal */
  foreign(answer: RequestAnswer): ServerError {
    return this.#requests.foreign(answer);
  }

  /** Returns the error for a connection lost while a response was being read. @internal */
  broken(cause: unknown): ConnectionError {
    return this.#requests.broken(cause);
  }

  /**
   * Sends a request with the current access token, renewing the token if necessary.
   * @param options.isReplacing Whether the request itself replaces the session.
   */
  async #send(
    path: string,
    options: CallOptions & { method?: "GET" },
    { isReplacing = false }: { isReplacing?: boolean } = {},
  ): Promise<RequestAnswer> {
    const epoch = this.#epoch;
    if (this.mustLogIn) await this.#renewed();
    if (epoch !== this.#epoch) throw replaced();
    const userId = this.#userId;
    try {
      return await this.#authorized(path, options);
    } catch (error) {
      if (!(error instanceof ServerError) || !TOKEN_REFUSALS.has(error.code)) throw error;
      // The request waits for any logins, sign-ups and password changes in progress, because these
      // replace the session.
      if (!isReplacing) await Promise.all([this.#loggingIn, this.#replacing]);
      if (epoch === this.#epoch) {
        await this.#renewed();
        if (epoch !== this.#epoch) throw replaced();
      } else if (this.#accessToken === undefined || this.#userId !== userId) throw replaced();
      // The stream has already been read, so only the caller can send the request again.
      if (options.body instanceof RequestData && options.body.isStream) throw error;
      return await this.#authorized(path, options);
    }
  }

  async #authorized(
    path: string,
    { method = "POST", ...options }: CallOptions & { method?: "GET" | "POST" },
  ): Promise<RequestAnswer> {
    const token = this.#accessToken;
    if (token === undefined) throw signedOut();
    return await this.#requests.call(method, path, { ...options, token });
  }

  /**
   * Renews the access token.
   * @returns The user's identity; undefined if only a token was obtained, because a token does not
   *   show what the user may do.
   */
  async #renew(): Promise<Identity | undefined> {
    const credentials = this.#credentials;
    if (typeof credentials === "function") return await this.#renewBy(credentials);
    const { hasCookie, refreshToken } = this.#options;
    const mayRefresh =
      refreshToken.read() !== undefined || (hasCookie && credentials === undefined);
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
    this.#keep(token);
    this.#become(claimsOf(token).userId);
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
    const { refreshToken } = this.#options;
    const sent = refreshToken.read();
    const body = sent === undefined ? {} : { refresh_token: sent };
    const epoch = this.#epoch;
    let login: LoginBody;
    try {
      login = this.#loginFrom(await this.#requests.call("POST", "/v1/api/auth/refresh", { body }));
    } catch (error) {
      if (epoch !== this.#epoch) throw replaced();
      if (error instanceof ServerError && error.status === 401) {
        const newer = refreshToken.read();
        // The stored token has changed, so another tab has renewed the session in the meantime.
        if (newer !== undefined && newer !== sent) return await this.#refresh();
        refreshToken.write(undefined);
        if (this.#credentials === undefined) this.#end();
      }
      throw error;
    }
    if (epoch !== this.#epoch) throw replaced();
    return this.#accept(login);
  }

  /**
   * Reads the login from a response.
   * @throws {ServerError} If the response is neither a login nor a refusal.
   */
  #loginFrom(answer: RequestAnswer): LoginBody {
    const { access_token: token, user } = answer.fields;
    const isLogin = typeof token === "string" && isObject(user) && typeof user["id"] === "string";
    if (!isLogin) throw this.#requests.foreign(answer);
    return answer.fields as unknown as LoginBody;
  }

  #accept(answer: LoginBody): Identity {
    this.#keep(answer.access_token);
    this.#options.refreshToken.write(answer.refresh_token);
    this.#become(answer.user.id);
    return { user: answer.user, mayAdminister: answer.admin_ui_access };
  }

  #keep(token: string): void {
    this.#accessToken = token;
    this.#receivedMs = this.#options.environment.now();
  }

  /**
   * Records the user. A renewal can also change the user, if someone has logged in on another page
   * in the same browser.
   */
  #become(userId: string | undefined): void {
    const before = this.#userId;
    this.#userId = userId ?? before;
    if (before === undefined || before === this.#userId) return;
    this.#begin();
    this.#options.onOtherUser();
  }

  /** Starts a new session. Requests in progress belong to the previous session. */
  #begin(): void {
    this.#epoch += 1;
    this.#renewing = undefined;
  }

  /** Ends the session without a logout. */
  #end(): void {
    this.#forget();
    this.#options.onSignedOut();
  }

  #forget(): void {
    this.#accessToken = undefined;
    this.#options.refreshToken.write(undefined);
  }

  #tokenIsOver(): ServerError {
    if (this.#accessToken === undefined) return signedOut();
    this.#end();
    const message =
      "The token is no longer accepted, and cannot be renewed; to renew tokens automatically, " +
      "pass a function as auth, or a user and a password";
    return new ServerError("unauthorized", message, { status: 401 });
  }
}

/** Requires that a user name and a password are strings. @throws {TypeError} */
function requireLogin(user: unknown, password: unknown): void {
  if (typeof user === "string" && typeof password === "string") return;
  throw new TypeError(
    'Cannot log in: the name and the password must be strings; write session.login("ada", ' +
      '"correct horse 9")',
  );
}

/** Returns the error for a caller whose login was superseded. */
function replaced(): ServerError {
  return new ServerError(
    "unauthorized",
    "The session has ended, or has been replaced by a new login",
    {
      status: 401,
    },
  );
}

function signedOut(): ServerError {
  return new ServerError("unauthorized", "No user is logged in", { status: 401 });
}
