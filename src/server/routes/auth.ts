/**
 * `/v1/api/auth/…`: set-up, login, refresh, logout, me, status. The `auth` layer makes all
 * decisions; these routes only handle bodies, cookies and headers.
 */
import type { Auth } from "../../auth/mod.ts";
import type { LoginBody } from "../../protocol/mod.ts";
import type { BodyLedger } from "../http/body_ledger.ts";
import { cookieOf, expireSessionCookies, setSessionCookies } from "../http/cookies.ts";
import type { Exchange } from "../http/exchange.ts";
import { type FieldNames, misplacedInQuery, unknownFieldOf } from "../http/field_names.ts";
import { HttpError } from "../http/http_error.ts";
import { jsonFault } from "../http/json_fault.ts";
import {
  declaredBytes,
  objectOf,
  parseJson,
  readBody,
  refuseLarger,
  refusePacked,
  requireJsonType,
  textFromUtf8,
} from "../http/request_body.ts";
import { json } from "../http/responses.ts";
import type { Method, Route, RouteFunction } from "../http/route.ts";
import { AUTH_OPERATIONS } from "../openapi/operations.ts";

export interface AuthRouteOptions {
  readonly auth: Auth;
  readonly bodies: BodyLedger;
  /** `limits.max_body_bytes`. */
  readonly bodyBytesMax: number;
  /** `auth.cookie_secure`. */
  readonly areCookiesSecure: boolean;
  /** Whether the page that sends a request may use its cookies. */
  readonly mayUseCookies: (request: Request) => boolean;
  /**
   * Whether a request without credentials may act, because it does not come from a page of another
   * origin.
   */
  readonly mayAct: (request: Request) => boolean;
}

/**
 * The maximum size of a body here, whatever `limits.max_body_bytes` allows. The caller is still
 * unknown, and parsing 10 MiB would delay all other requests for a second. Two passwords of 4096
 * characters, each a six-byte escape, take 48 KiB.
 */
const BODY_BYTES_MAX = 64 * 1024;

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
};

const REFRESH_FIELDS: FieldNames = { refresh_token: ["token", "refresh", "refreshtoken"] };

const LOGOUT_FIELDS: FieldNames = { all: ["everything", "everywhere", "all_sessions"] };

const TAKES = "this endpoint accepts application/json";

export function authRoutes(options: AuthRouteOptions): readonly Route[] {
  const { auth } = options;
  return [
    route("GET", "status", (exchange) => json(exchange, 200, auth.status())),
    route("POST", "setup", (exchange) => setUp(exchange, options)),
    route("POST", "login", (exchange) => logIn(exchange, options)),
    route("POST", "refresh", (exchange) => refresh(exchange, options)),
    route("POST", "logout", (exchange) => logOut(exchange, options)),
    route("GET", "me", (exchange) => {
      const { request } = exchange;
      const cookie = options.mayUseCookies(request)
        ? cookieOf(request, "tidemark_auth")
        : undefined;
      return json(exchange, 200, auth.me(bearerOf(request) ?? cookie));
    }),
  ];
}

function route(method: Method, name: keyof typeof AUTH_OPERATIONS, handle: RouteFunction): Route {
  const operation = AUTH_OPERATIONS[name];
  return { path: `/v1/api/auth/${name}`, method, shape: "A", operation, handle };
}

async function setUp(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  const { auth } = options;
  // A configured server answers 409 to any request, so the body does not matter.
  if (!auth.status().needs_setup) return json(exchange, 200, await auth.setup(undefined, exchange));
  if (!options.mayAct(exchange.request)) {
    throw new HttpError(403, "forbidden", "Setup is not open to web pages from other origins");
  }
  return json(
    exchange,
    200,
    await auth.setup(await bodyOf(exchange, { ...options, names: SETUP_FIELDS }), exchange),
  );
}

async function logIn(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  const { request } = exchange;
  // The token only identifies a device that has logged in before.
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
    throw new HttpError(400, "invalid_request", '"refresh_token" should be a string');
  }
  const { request } = exchange;
  const cookie = options.mayUseCookies(request) ? cookieOf(request, "tidemark_refresh") : undefined;
  const token = given ?? bearerOf(request) ?? cookie;
  return loggedIn(exchange, await options.auth.refresh(token, exchange), options);
}

/**
 * Sets cookies only for the server's own pages. Otherwise, a page from another origin could make
 * the browser act in a session of its choice.
 */
function loggedIn(exchange: Exchange, login: LoginBody, options: AuthRouteOptions): Response {
  const response = json(exchange, 200, login);
  if (options.mayUseCookies(exchange.request)) {
    setSessionCookies(response.headers, login, { isSecure: isSecure(exchange, options) });
  }
  return response;
}

async function logOut(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  const { all } = optionalFields(await bodyOf(exchange, { ...options, names: LOGOUT_FIELDS }));
  if (all !== undefined && all !== null && typeof all !== "boolean") {
    throw new HttpError(400, "invalid_request", '"all" should be true or false');
  }
  const { request } = exchange;
  const mayUseCookies = options.mayUseCookies(request);
  const cookie = mayUseCookies
    ? (cookieOf(request, "tidemark_auth") ?? cookieOf(request, "tidemark_refresh"))
    : undefined;
  options.auth.logout(bearerOf(request) ?? cookie, exchange, { all: all === true });
  const response = json(exchange, 200, { message: "Logged out" });
  if (mayUseCookies) {
    expireSessionCookies(response.headers, { isSecure: isSecure(exchange, options) });
  }
  return response;
}

/** Returns the members of an optional body. @throws {HttpError} invalid_request */
function optionalFields(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined) return {};
  const fields = objectOf(body);
  if (fields !== undefined) return fields;
  throw new HttpError(400, "invalid_request", "The body should be a JSON object, or empty");
}

/**
 * Returns the JSON value of a body; undefined if the body is empty.
 *
 * @throws {HttpError} invalid_request if the body is malformed or has an unknown member, or if a
 *   member is in the URL.
 */
async function bodyOf(
  exchange: Exchange,
  { names, ...options }: AuthRouteOptions & { readonly names: FieldNames },
): Promise<unknown> {
  refuseFault(misplacedInQuery(exchange.query, names));
  requireJsonType(exchange.request.headers.get("content-type"));
  const text = textFromUtf8(await bytesOf(exchange, options));
  if (text === "") return undefined;
  const value = text === undefined ? undefined : parseJson(text);
  if (value !== undefined) {
    refuseFault(unknownFieldOf(objectOf(value) ?? {}, names));
    return value;
  }
  refusePacked(exchange.request.headers);
  const fault = text === undefined ? "it is not UTF-8" : jsonFault(text);
  throw new HttpError(400, "invalid_request", `Cannot read the body: ${fault}; ${TAKES}`);
}

/** @throws {HttpError} invalid_request, if there is a fault. */
function refuseFault(fault: string | undefined): void {
  if (fault !== undefined) throw new HttpError(400, "invalid_request", `Cannot read ${fault}`);
}

async function bytesOf(
  exchange: Exchange,
  { bodies, bodyBytesMax }: AuthRouteOptions,
): Promise<Uint8Array> {
  const bytesMax = Math.min(bodyBytesMax, BODY_BYTES_MAX);
  const sizeBytes = declaredBytes(exchange.request);
  refuseLarger(sizeBytes, bytesMax);
  const sender = { userId: undefined, address: () => exchange.address };
  const entry = bodies.enter(sender, sizeBytes);
  try {
    return await readBody(exchange.request, bytesMax, { entry });
  } finally {
    entry.leave();
  }
}

function bearerOf(request: Request): string | undefined {
  const header = request.headers.get("authorization") ?? "";
  return /^bearer +(\S+)$/i.exec(header)?.[1];
}

function isSecure(exchange: Exchange, { areCookiesSecure }: AuthRouteOptions): boolean {
  return areCookiesSecure && exchange.isSecure;
}
