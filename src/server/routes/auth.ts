/**
 * Serves the routes of `/v1/api/auth/…` for setup, login, refresh, logout, me and status. They
 * leave all decisions to the `auth` layer, and handle only bodies, cookies and headers.
 */
import type { AuthStatusBody } from "../../protocol/mod.ts";
import { cookieOf, expireSessionCookies } from "../http/cookies.ts";
import type { Exchange } from "../http/exchange.ts";
import type { FieldNames } from "../http/field_names.ts";
import { HttpError } from "../http/http_error.ts";
import { json } from "../http/responses.ts";
import type { Method, Route, RouteFunction } from "../http/route.ts";
import { AUTH_OPERATIONS } from "../openapi/operations.ts";
import {
  type AuthRouteOptions,
  bearerOf,
  bodyOf,
  cookieOptions,
  loggedIn,
  optionalFields,
  tokenOf,
} from "./auth_requests.ts";

const USER_NAMES = ["name", "login", "user_name", "userid", "user_id"];
const PASSWORD_NAMES = ["pass", "pwd", "passwd", "secret"];

const LOGIN_FIELDS: FieldNames = {
  user: ["email", ...USER_NAMES],
  username: [],
  password: PASSWORD_NAMES,
};

const SETUP_FIELDS: FieldNames = {
  user: USER_NAMES,
  username: [],
  password: PASSWORD_NAMES,
  root_password: ["root", "rootpassword", "root_pass", "root_pwd"],
  email: ["mail", "e_mail"],
  setup_code: ["code", "setupcode"],
};

const REFRESH_FIELDS: FieldNames = { refresh_token: ["token", "refresh", "refreshtoken"] };

const LOGOUT_FIELDS: FieldNames = { all: ["everything", "everywhere", "all_sessions"] };

export function authRoutes(options: AuthRouteOptions): readonly Route[] {
  const { auth } = options;
  return [
    route("GET", "status", (exchange) => json(exchange, 200, statusBelow(exchange, auth.status()))),
    route("POST", "setup", (exchange) => setUp(exchange, options)),
    route("POST", "login", (exchange) => logIn(exchange, options)),
    route("POST", "refresh", (exchange) => refresh(exchange, options)),
    route("POST", "logout", (exchange) => logOut(exchange, options)),
    route("GET", "me", (exchange) =>
      json(exchange, 200, auth.me(tokenOf(exchange, options), exchange)),
    ),
  ];
}

function route(method: Method, name: keyof typeof AUTH_OPERATIONS, handle: RouteFunction): Route {
  const operation = AUTH_OPERATIONS[name];
  return { path: `/v1/api/auth/${name}`, method, shape: "A", operation, handle };
}

/** Returns the auth status with the base path added to the login URLs. */
function statusBelow({ basePath }: Exchange, status: AuthStatusBody): AuthStatusBody {
  const providers = status.oidc_providers.map((each) => ({
    ...each,
    login_url: basePath + each.login_url,
  }));
  return { ...status, oidc_providers: providers };
}

async function setUp(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  const { auth } = options;
  // Once setup is complete, `setup` refuses every request with 409, so the body need not be read.
  if (!auth.status().needs_setup) return json(exchange, 200, await auth.setup(undefined, exchange));
  if (!options.mayAct(exchange.request)) {
    throw new HttpError(
      403,
      "forbidden",
      "Web pages from other origins are not allowed to set up the server",
    );
  }
  return json(
    exchange,
    200,
    await auth.setup(await bodyOf(exchange, { ...options, names: SETUP_FIELDS }), exchange),
  );
}

async function logIn(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  const { request } = exchange;
  // The cookie's token is used only to recognise a device that has logged in before.
  const cookie = options.mayUseCookies(request)
    ? (cookieOf(request, "tidemark_refresh") ?? cookieOf(request, "tidemark_auth"))
    : undefined;
  const body = await bodyOf(exchange, { ...options, names: LOGIN_FIELDS });
  const login = await options.auth.login(body, exchange, bearerOf(request) ?? cookie);
  return loggedIn(exchange, login, options);
}

async function refresh(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  const { refresh_token: given } = optionalFields(
    await bodyOf(exchange, { ...options, names: REFRESH_FIELDS }),
  );
  if (given !== undefined && given !== null && typeof given !== "string") {
    throw new HttpError(400, "invalid_request", '"refresh_token" must be a string');
  }
  const { request } = exchange;
  const cookie = options.mayUseCookies(request) ? cookieOf(request, "tidemark_refresh") : undefined;
  const token = given ?? bearerOf(request) ?? cookie;
  return loggedIn(exchange, await options.auth.refresh(token, exchange), options);
}

async function logOut(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  const { all } = optionalFields(await bodyOf(exchange, { ...options, names: LOGOUT_FIELDS }));
  if (all !== undefined && all !== null && typeof all !== "boolean") {
    throw new HttpError(400, "invalid_request", '"all" must be true or false');
  }
  const { request } = exchange;
  const mayUseCookies = options.mayUseCookies(request);
  const cookie = mayUseCookies
    ? (cookieOf(request, "tidemark_auth") ?? cookieOf(request, "tidemark_refresh"))
    : undefined;
  options.auth.logout(bearerOf(request) ?? cookie, exchange, { all: all === true });
  const response = json(exchange, 200, { message: "Logged out" });
  if (mayUseCookies) {
    expireSessionCookies(response.headers, cookieOptions(exchange, options));
  }
  return response;
}
