/**
 * Implements logins through a provider (OpenID Connect) for pages that the server does not
 * deliver.
 *
 *     page ──beginProviderLogin: a verifier is kept──► server ──► provider ──► server ──code──► page
 *     page ──finishProviderLogin: code and verifier──► session, or link of the account
 *
 * The verifier stays in the page until the login ends. A code sent or intercepted by somebody else
 * is therefore useless.
 */
import {
  type Call,
  FILLED_TEXT,
  kindOf,
  OBJECT,
  requireOptions,
  requireRule,
  TEXT,
  type ValueRule,
} from "./checks.ts";
import { ServerError } from "./errors.ts";
import { type PositionStorage, STORAGE } from "./positions.ts";
import type { Identity, Session } from "./session.ts";

/** A provider through which the server offers logins. */
export interface ProviderChoice {
  readonly name: string;
  /** The label of the button that starts the login. */
  readonly label: string;
}

export interface BeginOptions {
  /**
   * The page to which the login returns. The server must list the page's origin in
   * `security.cors.allowed_origins`. Defaults to the current page, without its fragment.
   */
  readonly returnTo?: string;
}

export interface BegunProviderLogin {
  /** The URL to which the page has to navigate. */
  readonly url: string;
  /** The secret for `finishProviderLogin`, needed only in a runtime without `sessionStorage`. */
  readonly verifier: string;
}

export interface EndedLoginOptions {
  /** The verifier of the started login, if the runtime has no `sessionStorage`. */
  readonly verifier?: string;
}

export interface LinkOptions extends EndedLoginOptions {
  /** The password of the account, if it has one. */
  readonly password?: string;
  /**
   * The proof of a login that is already linked to the account: the address to which that login
   * returned, and its verifier. Required if the account has no password and is not a guest
   * account. The code in the address is valid for a minute.
   */
  readonly own?: { readonly url: string; readonly verifier: string };
}

/** A login at a provider linked to the account of this session. */
export interface ProviderLink {
  /** The name of the provider. */
  readonly provider: string;
  /** The person's id at the provider. */
  readonly subject: string;
  /** The label of the provider's button. */
  readonly label: string;
}

export interface ProviderCalls {
  /** Returns the providers for which a login page should show buttons. */
  providers(): Promise<readonly ProviderChoice[]>;
  /**
   * Starts a login. The page must then navigate to the returned address: `location.href = url`.
   */
  beginProviderLogin(provider: string, options?: BeginOptions): Promise<BegunProviderLogin>;
  /**
   * Finishes a login and starts the session, if the page's address contains the result of a login.
   *
   * @param url The address with the result; defaults to the address of the page.
   * @returns Undefined if the address contains no result.
   * @throws {ServerError} If the login failed: `denied`, `unknown_user`, `invalid_code` …
   */
  finishProviderLogin(url?: string, options?: EndedLoginOptions): Promise<Identity | undefined>;
  /**
   * Like `finishProviderLogin`, but links the login to the account of this session.
   *
   * @returns Whether the address contained the result of a login.
   */
  linkProviderLogin(url?: string, options?: LinkOptions): Promise<boolean>;
  /** Returns the provider logins linked to the account of this session. */
  providerLinks(): Promise<readonly ProviderLink[]>;
  /**
   * Removes a link from the account, and ends the sessions that were started through it.
   *
   * @param password The password of the account, if it has one.
   * @throws {ServerError} `forbidden` if the link is the only way to log in to the account.
   */
  unlinkProvider(
    link: Pick<ProviderLink, "provider" | "subject">,
    password?: string,
  ): Promise<void>;
  /**
   * Like `finishProviderLogin`, but deletes the account of this session and ends the session. The
   * account must have no password.
   *
   * @returns Whether the address contained the result of a login.
   */
  deleteByProviderLogin(url?: string, options?: EndedLoginOptions): Promise<boolean>;
}

const API = "/v1/api/auth/oidc";

/** The key under which `sessionStorage` stores the verifier. */
const VERIFIER_KEY = "tidemark provider login";

const BEGIN: Call = {
  doing: "begin a login",
  example: 'db.account.beginProviderLogin("google", { returnTo })',
};

const FINISH: Call = {
  doing: "finish a login",
  example: "db.account.finishProviderLogin(location.href)",
};

const LINK: Call = {
  doing: "link a login",
  example: "db.account.linkProviderLogin(location.href, { own: { url, verifier } })",
};

const PROVIDER_NAME: ValueRule = {
  should: "the name of a provider",
  holds: (value) => typeof value === "string" && /^[a-z0-9-]{1,32}$/.test(value),
};

/** The message for each error code that a failed login puts into the address. */
const FAILURES: Readonly<Record<string, string>> = {
  denied: "The provider did not allow the login",
  state_mismatch: "The login was not started in this browser, or took too long; log in again",
  exchange_failed: "The provider could not be reached or rejected the login; try again",
  token_invalid:
    "The provider's response is not valid; contact the administrator of this server or of " +
    "the provider",
  unknown_user: "No account is linked to this login; an administrator can create one",
};

export function providerLoginsBy(session: Session, serverUrl: string): ProviderCalls {
  return {
    async providers() {
      const { oidc_providers: providers } = await session.status();
      return providers.map(({ label, name }) => ({ name, label }));
    },
    async beginProviderLogin(provider, options = {}) {
      requireRule("the provider", provider, PROVIDER_NAME);
      requireOptions(BEGIN, options, { returnTo: FILLED_TEXT });
      const returnTo = options.returnTo ?? pageAddress(BEGIN).replace(/#.*/, "");
      const verifier = base64Url(crypto.getRandomValues(new Uint8Array(32)));
      const query = new URLSearchParams({
        return_to: returnTo,
        challenge: await challengeOf(verifier),
      });
      storage()?.setItem(VERIFIER_KEY, verifier);
      return { url: `${serverUrl}${API}/${provider}/login?${query.toString()}`, verifier };
    },
    async finishProviderLogin(url, options = {}) {
      requireOptions(FINISH, options, { verifier: FILLED_TEXT });
      const code = codeIn(url);
      if (code === undefined) return undefined;
      const verifier = takenVerifier(options.verifier);
      return await session.loginBy(`${API}/token`, { code, verifier });
    },
    async linkProviderLogin(url, { own, password, ...options } = {}) {
      requireOptions(FINISH, options, { verifier: FILLED_TEXT });
      if (own !== undefined) requireOptions(LINK, own, { url: TEXT, verifier: FILLED_TEXT });
      const code = codeIn(url);
      if (code === undefined) return false;
      const verifier = takenVerifier(options.verifier);
      const proof =
        own === undefined ? {} : { own_code: codeIn(own.url), own_verifier: own.verifier };
      await session.post(`${API}/link`, { code, verifier, ...withPassword(password), ...proof });
      return true;
    },
    async providerLinks() {
      const answer = await session.get(`${API}/links`);
      const { links } = answer.fields;
      if (!Array.isArray(links)) throw session.foreign(answer);
      return links as readonly ProviderLink[];
    },
    async unlinkProvider(link, password) {
      requireRule("the link", link, OBJECT);
      const { provider, subject } = link;
      requireRule("the provider", provider, PROVIDER_NAME);
      requireRule("the subject", subject, FILLED_TEXT);
      await session.post(`${API}/unlink`, { provider, subject, ...withPassword(password) });
    },
    async deleteByProviderLogin(url, options = {}) {
      requireOptions(FINISH, options, { verifier: FILLED_TEXT });
      const code = codeIn(url);
      if (code === undefined) return false;
      const verifier = takenVerifier(options.verifier);
      await session.post("/v1/api/auth/delete", { code, verifier });
      session.ended();
      return true;
    },
  };
}

function withPassword(password: string | undefined): { readonly password?: string } {
  if (password === undefined) return {};
  requireRule("the password", password, TEXT);
  return { password };
}

/** Returns the code in an address. @throws {ServerError} If the address contains an error code. */
function codeIn(url: string | undefined): string | undefined {
  if (url !== undefined) requireRule("the address", url, TEXT);
  const address = url ?? pageAddress(FINISH);
  const start = address.indexOf("#");
  const fragment = new URLSearchParams(start < 0 ? "" : address.slice(start + 1));
  const failure = fragment.get("tidemark_error");
  if (failure !== null) {
    const message = FAILURES[failure] ?? "The login failed";
    throw new ServerError(failure, message, { status: 401 });
  }
  return fragment.get("tidemark_code") ?? undefined;
}

/**
 * Returns the verifier of the login that this page started, and removes it.
 *
 * @throws {ServerError} If the page has not started a login, in which case somebody else may have
 *   sent the address.
 */
function takenVerifier(given: string | undefined): string {
  const kept = storage();
  const verifier = given ?? kept?.getItem(VERIFIER_KEY) ?? undefined;
  kept?.removeItem(VERIFIER_KEY);
  if (verifier !== undefined) return verifier;
  const message = "This page has not started a login; log in again";
  throw new ServerError("invalid_code", message, { status: 403 });
}

function storage(): PositionStorage | undefined {
  const { sessionStorage } = globalThis as { sessionStorage?: unknown };
  return STORAGE.holds(sessionStorage) ? (sessionStorage as PositionStorage) : undefined;
}

/**
 * Returns the URL of the page in which the client runs.
 * @throws {TypeError} If the runtime has no page.
 */
function pageAddress({ doing, example }: Call): string {
  const { location } = globalThis as { location?: { readonly href?: unknown } };
  if (typeof location?.href === "string") return location.href;
  throw new TypeError(
    `Cannot ${doing}: this runtime has no page, because location is ${kindOf(location)}; write ` +
      `${example} with a URL`,
  );
}

/**
 * Returns the PKCE challenge for a verifier.
 * @throws {TypeError} If the page was delivered neither over https nor from localhost.
 */
async function challengeOf(verifier: string): Promise<string> {
  const { subtle } = crypto as { subtle?: typeof crypto.subtle };
  if (subtle === undefined) {
    throw new TypeError(
      "Cannot begin the login: this page has no crypto.subtle, which browsers provide only " +
        "over https and on localhost",
    );
  }
  const digest = await subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return base64Url(new Uint8Array(digest));
}

function base64Url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
