/**
 * Who the client is: its tokens and the requests that carry them.
 *
 * The access token lives in memory only. The refresh token lives in the browser's HttpOnly cookie,
 * or in memory where there are no cookies. A request refused because the token has expired, or is
 * accepted no more, is repeated once with a new one; requests that find that at the same time share
 * one refresh. Where there is none to be had the session has ended.
 *
 * Of those whom the server lets in, whoever was asked for last is who the client is: what answers
 * later and belongs to somebody before, or comes after a log-out, is not taken over, and no request
 * of one user is repeated as another.
 */
import type { AuthStatusBody, LoginBody, UserBody } from "../protocol/mod.ts";
import type { ClientEnvironment, HttpResponse } from "./environment.ts";
import { ConnectionError, errorFromBody, ServerError, textOfCauses } from "./errors.ts";
import { withRepeats } from "./repeats.ts";
import { shownUrl } from "./server_url.ts";

export interface SessionOptions {
  /** Base address, without a slash at the end. */
  readonly url: string;
  /** Where the refresh token is kept. */
  readonly keepIn: "cookie" | "memory";
  readonly environment: ClientEnvironment;
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

interface Deadline {
  readonly signal: AbortSignal;
  /** What is thrown when it has passed. */
  readonly failure: ConnectionError;
  cancel(): void;
}

export class Session {
  readonly #options: SessionOptions;
  #accessToken: string | undefined;
  #refreshToken: string | undefined;
  #refreshing: Promise<Identity> | undefined;
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

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get accessToken(): string | undefined {
    return this.#accessToken;
  }

  async status(): Promise<AuthStatusBody> {
    return (await this.#call("GET", "/v1/api/auth/status")) as AuthStatusBody;
  }

  /** Makes the first administrator; nobody is logged in by it. */
  async setup(fields: SetupFields): Promise<void> {
    await this.#call("POST", "/v1/api/auth/setup", { body: fields });
  }

  login(user: string, password: string): Promise<Identity> {
    this.#attempt += 1;
    const loggingIn = this.#login(user, password, this.#attempt);
    this.#loggingIn = loggingIn.catch(() => undefined);
    return loggingIn;
  }

  async #login(user: string, password: string, attempt: number): Promise<Identity> {
    await this.#cookiesSet();
    const answer = await this.#call("POST", "/v1/api/auth/login", { body: { user, password } });
    // A later one that is refused, or has no answer yet, takes nothing from this one.
    if (attempt < this.#attemptTaken) throw replaced();
    this.#attemptTaken = attempt;
    this.#begin();
    return this.#accept(answer as LoginBody);
  }

  /** Goes on with the session whose refresh token is kept. @throws {ServerError} unauthorized */
  refresh(): Promise<Identity> {
    if (this.#refreshing !== undefined) return this.#refreshing;
    const refreshing = this.#refresh().finally(() => {
      if (this.#refreshing === refreshing) this.#refreshing = undefined;
    });
    this.#refreshing = refreshing;
    return refreshing;
  }

  /** Ends the session, also when the server cannot be told. */
  async logout(): Promise<void> {
    const token = this.#accessToken;
    this.#attempt += 1;
    this.#attemptTaken = this.#attempt;
    this.#begin();
    this.#forget();
    this.#options.onLogout();
    await this.#cookiesSet();
    await this.#call("POST", "/v1/api/auth/logout", token === undefined ? {} : { token });
  }

  /** A browser keeps the cookie that comes last, so what sets one goes after what did. */
  async #cookiesSet(): Promise<void> {
    if (this.#options.keepIn !== "cookie") return;
    await Promise.all([this.#loggingIn, this.#refreshing?.catch(() => undefined)]);
  }

  /** A request that needs a token. @throws {ServerError | ConnectionError} */
  async post(path: string, body: object, options: PostOptions = {}): Promise<unknown> {
    const { isRepeatable = false, signal } = options;
    const { environment, maxRetries } = this.#options;
    const epoch = this.#epoch;
    const send = async (): Promise<unknown> => {
      if (epoch !== this.#epoch) throw replaced();
      return await this.#post(path, body, signal);
    };
    if (!isRepeatable) return await send();
    return await withRepeats(send, { environment, maxRetries, signal });
  }

  async #post(path: string, body: object, signal: AbortSignal | undefined): Promise<unknown> {
    const epoch = this.#epoch;
    try {
      return await this.#authorized(path, body, signal);
    } catch (error) {
      if (!(error instanceof ServerError) || !TOKEN_REFUSALS.has(error.code)) throw error;
      if (epoch === this.#epoch) await this.refresh();
      if (epoch !== this.#epoch) throw replaced();
      return await this.#authorized(path, body, signal);
    }
  }

  async #authorized(path: string, body: object, signal: AbortSignal | undefined): Promise<unknown> {
    const token = this.#accessToken;
    if (token === undefined) throw signedOut();
    return await this.#call("POST", path, { token, body, ...(signal && { signal }) });
  }

  async #refresh(): Promise<Identity> {
    const { keepIn, onSignedOut } = this.#options;
    if (keepIn === "memory" && this.#refreshToken === undefined) throw signedOut();
    const body = this.#refreshToken === undefined ? {} : { refresh_token: this.#refreshToken };
    const epoch = this.#epoch;
    let answer: LoginBody;
    try {
      answer = (await this.#call("POST", "/v1/api/auth/refresh", { body })) as LoginBody;
    } catch (error) {
      if (epoch !== this.#epoch) throw replaced();
      if (error instanceof ServerError && error.status === 401) {
        this.#forget();
        onSignedOut();
      }
      throw error;
    }
    if (epoch !== this.#epoch) throw replaced();
    return this.#accept(answer);
  }

  #accept(answer: LoginBody): Identity {
    const before = this.#userId;
    this.#userId = answer.user.id;
    this.#accessToken = answer.access_token;
    if (this.#options.keepIn === "memory") this.#refreshToken = answer.refresh_token;
    if (before !== undefined && before !== this.#userId) {
      // Also of a refresh: another page of the browser may have logged in.
      this.#begin();
      this.#options.onOtherUser();
    }
    return { user: answer.user, mayAdminister: answer.admin_ui_access };
  }

  /** What is under way belongs to the session before. */
  #begin(): void {
    this.#epoch += 1;
    this.#refreshing = undefined;
  }

  #forget(): void {
    this.#accessToken = undefined;
    this.#refreshToken = undefined;
  }

  /** Of one request. */
  #deadline(): Deadline | undefined {
    const { environment, timeoutMs, url } = this.#options;
    if (timeoutMs === undefined) return undefined;
    const controller = new AbortController();
    const failure = new ConnectionError(
      `The server at ${shownUrl(url)} gave no answer within ${timeoutMs} ms`,
    );
    const cancel = environment.after(timeoutMs, () => controller.abort(failure));
    return { signal: controller.signal, failure, cancel };
  }

  async #call(
    method: string,
    path: string,
    { body, signal, token }: { body?: object; signal?: AbortSignal; token?: string } = {},
  ): Promise<unknown> {
    const { environment, url } = this.#options;
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const deadline = this.#deadline();
    const signals = [signal, deadline?.signal].filter((each) => each !== undefined);
    let response: HttpResponse;
    let answer: unknown;
    try {
      response = await environment.fetch(`${url}${path}`, {
        method,
        headers,
        ...sent,
        ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
      });
      answer = await response.json();
    } catch (error) {
      if (signal?.aborted === true) throw error;
      if (deadline?.signal.aborted === true) throw deadline.failure;
      throw unanswered(url, error);
    } finally {
      deadline?.cancel();
    }
    if (!response.ok) throw errorFromBody(answer, response.status);
    return answer;
  }
}

function unanswered(url: string, cause: unknown): ConnectionError {
  const shown = shownUrl(url);
  // Some runtimes quote the address that was asked for.
  const why = textOfCauses(cause).replaceAll(url, shown);
  return new ConnectionError(
    `The server at ${shown} cannot be reached, or broke off its answer: ${why}`,
    cause,
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
