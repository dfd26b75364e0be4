/**
 * Serves `/v1/api/auth/oidc/…`: browser logins through OpenID Connect providers. The `auth` layer
 * makes all decisions. These routes handle redirects, the cookie of a login in progress, and the
 * pages to which a login may return.
 *
 *     GET  {provider}/login      to the provider
 *     GET  {provider}/callback   from the provider, to the page that began the login
 *     POST {provider}/backchannel_logout   from the provider, when it has ended a session
 *     POST token, link           the code of an application, for a session or for a link
 *     GET  links, POST unlink    the links of the caller's account
 */
import type { LoginStep } from "../../auth/mod.ts";
import { pathBelow } from "../admission/base_path.ts";
import { cookieOf, setLoginCookie, setSessionCookies } from "../http/cookies.ts";
import type { Exchange } from "../http/exchange.ts";
import type { FieldNames } from "../http/field_names.ts";
import { HttpError } from "../http/http_error.ts";
import { empty, json } from "../http/responses.ts";
import type { Route, RouteFunction } from "../http/route.ts";
import type { PrefixRoute } from "../http/router.ts";
import { PROVIDER_OPERATIONS } from "../openapi/provider_operations.ts";
import {
  type AuthRouteOptions,
  bodyOf,
  callerOf,
  cookieOptions,
  formOf,
  loggedIn,
} from "./auth_requests.ts";

const PATH = "/v1/api/auth/oidc/";

/** How many seconds a browser keeps the cookie of a login in progress. */
const COOKIE_SECONDS = 600;

/** Matches a path of the admin page. Characters that a header cannot contain do not match. */
const UI_PATH = /^\/ui(?:[/?#][!-~]*)?$/;

/**
 * Matches the URL of an application's page. It must have no fragment, because the login code is
 * sent as the fragment.
 */
const PAGE = /^([a-z][a-z0-9+.-]*:\/\/[^/?#@\\]+)(?:[/?][!-"$-[\]-~]*)?$/i;

const RETURN_LENGTH_MAX = 1024;

/** Matches the SHA-256 of a PKCE verifier in base64url. */
const CHALLENGE = /^[\w-]{43}$/;

const CODE_FIELDS: FieldNames = { code: ["tidemark_code"], verifier: ["code_verifier"] };

const PASSWORD_FIELDS: FieldNames = { password: ["pass", "pwd", "passwd", "secret"] };

const LINK_FIELDS: FieldNames = {
  ...CODE_FIELDS,
  ...PASSWORD_FIELDS,
  own_code: [],
  own_verifier: [],
};

const UNLINK_FIELDS: FieldNames = { provider: [], subject: ["sub"], ...PASSWORD_FIELDS };

export interface ProviderRouteOptions extends AuthRouteOptions {
  /** Returns whether a login may redirect to a page of this origin. */
  readonly mayReceiveLogin: (origin: string, request: Request) => boolean;
}

export function providerRoutes(options: ProviderRouteOptions): readonly Route[] {
  const { providerLogins } = options.auth;
  return [
    route("token", async (exchange) => {
      const body = await bodyOf(exchange, { ...options, names: CODE_FIELDS });
      return loggedIn(exchange, await providerLogins.exchange(body, exchange), options);
    }),
    route("link", async (exchange) => {
      const body = await bodyOf(exchange, { ...options, names: LINK_FIELDS });
      const principal = callerOf(exchange, options);
      return json(exchange, 200, await providerLogins.link(principal, body, exchange));
    }),
    route("unlink", async (exchange) => {
      const body = await bodyOf(exchange, { ...options, names: UNLINK_FIELDS });
      const principal = callerOf(exchange, options);
      return json(exchange, 200, await providerLogins.unlink(principal, body, exchange));
    }),
    {
      path: `${PATH}links`,
      method: "GET",
      shape: "A",
      operation: PROVIDER_OPERATIONS.links,
      handle: (exchange) => json(exchange, 200, providerLogins.links(callerOf(exchange, options))),
    },
  ];
}

function route(name: "link" | "token" | "unlink", handle: RouteFunction): Route {
  const operation = PROVIDER_OPERATIONS[name];
  return { path: PATH + name, method: "POST", shape: "A", operation, handle };
}

export function providerPaths(options: ProviderRouteOptions): readonly PrefixRoute[] {
  const shared = { prefix: PATH, method: "GET", shape: "A" } as const;
  return [
    {
      ...shared,
      method: "POST",
      suffix: "/backchannel_logout",
      template: "{provider}/backchannel_logout",
      operation: PROVIDER_OPERATIONS.logout,
      handle: (exchange, name) => endProviderSession(exchange, name, options),
    },
    {
      ...shared,
      suffix: "/login",
      template: "{provider}/login",
      operation: PROVIDER_OPERATIONS.login,
      handle: (exchange, name) => beginLogin(exchange, name, options),
    },
    {
      ...shared,
      suffix: "/callback",
      template: "{provider}/callback",
      operation: PROVIDER_OPERATIONS.callback,
      handle: (exchange, name) => endLogin(exchange, name, options),
    },
  ];
}

async function endProviderSession(
  exchange: Exchange,
  name: string,
  options: ProviderRouteOptions,
): Promise<Response> {
  const form = await formOf(exchange, options);
  const token = form.get("logout_token") ?? "";
  const isKnown = await options.auth.providerLogouts.end(name, token, exchange);
  if (!isKnown) throw unknownProvider(name);
  return empty(exchange, 200, { "Cache-Control": "no-store" });
}

async function beginLogin(
  exchange: Exchange,
  name: string,
  options: ProviderRouteOptions,
): Promise<Response> {
  const { providerLogins } = options.auth;
  const wish = { ...pageWish(exchange, options), callbackUrl: callbackUrl(exchange, name) };
  const step = await providerLogins.begin(name, wish, exchange);
  if (step === undefined) throw unknownProvider(name);
  return redirect(exchange, step, { ...options, name });
}

async function endLogin(
  exchange: Exchange,
  name: string,
  options: ProviderRouteOptions,
): Promise<Response> {
  const query = new URLSearchParams(exchange.query);
  const sealed = cookieOf(exchange.request, "tidemark_oidc");
  const back = { query, sealed, callbackUrl: callbackUrl(exchange, name) };
  const step = await options.auth.providerLogins.end(name, back, exchange);
  if (step === undefined) throw unknownProvider(name);
  return redirect(exchange, step, { ...options, name });
}

/**
 * Returns the callback URL of a provider. It must equal the URL that the operator registered with
 * the provider.
 */
function callbackUrl({ publicUrl }: Exchange, name: string): string {
  return `${publicUrl}${PATH}${name}/callback`;
}

/**
 * Reads the page to which the login is to return.
 * @throws {HttpError} invalid_request, forbidden
 */
function pageWish(
  { basePath, query, request }: Exchange,
  { mayReceiveLogin }: ProviderRouteOptions,
): { readonly returnTo: string; readonly challenge: string | undefined } {
  const parameters = new URLSearchParams(query);
  const returnTo = pathBelow(basePath, parameters.get("return_to") ?? "/ui");
  if (returnTo.length <= RETURN_LENGTH_MAX && UI_PATH.test(returnTo)) {
    return { returnTo, challenge: undefined };
  }
  const [, origin] = returnTo.length <= RETURN_LENGTH_MAX ? (PAGE.exec(returnTo) ?? []) : [];
  if (origin === undefined) {
    throw new HttpError(
      400,
      "invalid_request",
      'Cannot begin the login: "return_to" must be a path below /ui, or the URL of a page ' +
        "without a fragment",
    );
  }
  const challenge = parameters.get("challenge") ?? "";
  if (!CHALLENGE.test(challenge)) {
    throw new HttpError(
      400,
      "invalid_request",
      'Cannot begin the login: a page outside /ui must send a "challenge", the SHA-256 hash of ' +
        "its verifier in base64url",
    );
  }
  if (!mayReceiveLogin(origin, request)) {
    throw new HttpError(
      403,
      "forbidden",
      `Cannot begin the login: the origin ${origin} is not listed in security.cors.allowed_origins`,
    );
  }
  return { returnTo, challenge };
}

function redirect(
  exchange: Exchange,
  { location, login, sealed }: LoginStep,
  options: ProviderRouteOptions & { readonly name: string },
): Response {
  const target = location.startsWith("/") ? exchange.basePath + location : location;
  const response = empty(exchange, 302, { Location: target, "Cache-Control": "no-store" });
  const cookies = cookieOptions(exchange, options);
  const path = PATH + options.name;
  setLoginCookie(response.headers, sealed, { ...cookies, maxAge: COOKIE_SECONDS, path });
  // The sealed login state has proved that this browser started the login, so its page can be
  // trusted.
  if (login !== undefined) setSessionCookies(response.headers, login, cookies);
  return response;
}

function unknownProvider(name: string): HttpError {
  const shown = JSON.stringify(name.slice(0, 64));
  return new HttpError(
    404,
    "not_found",
    `There is no provider ${shown} for browser logins; GET /v1/api/auth/status lists the providers`,
  );
}
