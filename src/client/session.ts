/**
 * Who the client is: its tokens and the requests that carry them.
 *
 * The access token lives in memory only. The refresh token lives in the browser's HttpOnly cookie,
 * or in memory where there are no cookies. A request refused because the token has expired is
 * repeated once with a new one; requests that find that at the same time share one refresh.
 */
import type { AuthStatusBody, LoginBody, UserBody } from "../protocol/mod.ts";
import type { ClientEnvironment, HttpResponse } from "./environment.ts";
import { ConnectionError, errorFromBody, ServerError } from "./errors.ts";

export interface SessionOptions {
  /** Base address, without a slash at the end. */
  readonly url: string;
  /** Where the refresh token is kept. */
  readonly keepIn: "cookie" | "memory";
  readonly environment: ClientEnvironment;
  /** Told when the session has ended without having been asked to. */
  readonly onSignedOut: () => void;
}

export interface SetupFields {
  readonly user: string;
  readonly password: string;
  readonly root_password: string;
  readonly email?: string;
}

export interface Identity {
  readonly user: UserBody;
  /** Whether the role opens the admin page. */
  readonly mayAdminister: boolean;
}

export class Session {
  readonly #options: SessionOptions;
  #accessToken: string | undefined;
  #refreshToken: string | undefined;
  #refreshing: Promise<Identity> | undefined;

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

  async login(user: string, password: string): Promise<Identity> {
    const answer = await this.#call("POST", "/v1/api/auth/login", { body: { user, password } });
    return this.#accept(answer as LoginBody);
  }

  /** Goes on with the session whose refresh token is kept. @throws {ServerError} unauthorized */
  refresh(): Promise<Identity> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** Ends the session, also when the server cannot be told. */
  async logout(): Promise<void> {
    const token = this.#accessToken;
    this.#forget();
    await this.#call("POST", "/v1/api/auth/logout", token === undefined ? {} : { token });
  }

  /** A request that needs a token. @throws {ServerError | ConnectionError} */
  async post(path: string, body: object, signal?: AbortSignal): Promise<unknown> {
    try {
      return await this.#authorized(path, body, signal);
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== "TOKEN_EXPIRED") throw error;
      await this.refresh();
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
    try {
      return this.#accept(
        (await this.#call("POST", "/v1/api/auth/refresh", { body })) as LoginBody,
      );
    } catch (error) {
      if (error instanceof ServerError && error.status === 401) {
        this.#forget();
        onSignedOut();
      }
      throw error;
    }
  }

  #accept(answer: LoginBody): Identity {
    this.#accessToken = answer.access_token;
    if (this.#options.keepIn === "memory") this.#refreshToken = answer.refresh_token;
    return { user: answer.user, mayAdminister: answer.admin_ui_access };
  }

  #forget(): void {
    this.#accessToken = undefined;
    this.#refreshToken = undefined;
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
    let response: HttpResponse;
    let answer: unknown;
    try {
      response = await environment.fetch(`${url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
      answer = await response.json();
    } catch (error) {
      if (signal?.aborted === true) throw error;
      throw new ConnectionError("The server cannot be reached, or broke off its answer", error);
    }
    if (!response.ok) throw errorFromBody(answer, response.status);
    return answer;
  }
}

function signedOut(): ServerError {
  return new ServerError("unauthorized", "Nobody is logged in", { status: 401 });
}
