/**
 * Reads the bodies of `/v1/api/auth/…` requests and the tokens in their headers and cookies, and
 * sets the cookies of the responses.
 */
import type { Auth, Principal } from "../../auth/mod.ts";
import type { LoginBody } from "../../protocol/mod.ts";
import type { BodyLedger } from "../http/body_ledger.ts";
import { type CookieOptions, cookieOf, setSessionCookies } from "../http/cookies.ts";
import type { Exchange } from "../http/exchange.ts";
import { type FieldNames, misplacedInQuery, unknownFieldOf } from "../http/field_names.ts";
import { HttpError } from "../http/http_error.ts";
import { jsonFault } from "../http/json_fault.ts";
import {
  declaredBytes,
  mediaType,
  objectOf,
  parseJson,
  readBody,
  refuseLarger,
  refusePacked,
  requireJsonType,
  textFromUtf8,
} from "../http/request_body.ts";
import { json } from "../http/responses.ts";

export interface AuthRouteOptions {
  readonly auth: Auth;
  readonly bodies: BodyLedger;
  /** The value of `limits.max_body_bytes` in the configuration. */
  readonly bodyBytesMax: number;
  /** The value of `auth.cookie_secure` in the configuration. */
  readonly areCookiesSecure: boolean;
  /** Returns whether the page that sent a request may use its cookies. */
  readonly mayUseCookies: (request: Request) => boolean;
  /**
   * Returns whether a request without credentials may change anything. A request from a page of an
   * unlisted origin may not.
   */
  readonly mayAct: (request: Request) => boolean;
}

/**
 * The maximum size of a body on the auth endpoints, even if `limits.max_body_bytes` allows more.
 * The caller is still unknown at this point, and parsing 10 MiB would delay all other requests by
 * a second. Two passwords of 4096 characters take up 48 KiB if each character is written as a
 * six-byte escape.
 */
const BODY_BYTES_MAX = 64 * 1024;

const FORM = "application/x-www-form-urlencoded";

const TAKES = "this endpoint accepts application/json";

/**
 * Responds to a successful login. Cookies are set only for pages that may use them. Otherwise, a
 * page from another origin could make the browser act in a session chosen by that page.
 */
export function loggedIn(
  exchange: Exchange,
  login: LoginBody,
  options: AuthRouteOptions,
): Response {
  const response = json(exchange, 200, login);
  if (options.mayUseCookies(exchange.request)) {
    setSessionCookies(response.headers, login, cookieOptions(exchange, options));
  }
  return response;
}

/**
 * Returns the members of an optional body.
 * @throws {HttpError} invalid_request
 */
export function optionalFields(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined) return {};
  const fields = objectOf(body);
  if (fields !== undefined) return fields;
  throw new HttpError(400, "invalid_request", "The body must be a JSON object, or empty");
}

/**
 * Returns the JSON value of a body; undefined if the body is empty.
 *
 * @throws {HttpError} invalid_request if the body is malformed or has an unknown member, or if the
 *   URL contains a member.
 */
export async function bodyOf(
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
  const fault = text === undefined ? "it is not valid UTF-8" : jsonFault(text);
  throw new HttpError(400, "invalid_request", `Cannot read the body: ${fault}; ${TAKES}`);
}

/**
 * Reads a form-encoded body, the format that other servers use.
 *
 * @throws {HttpError} unsupported_media_type, invalid_request
 */
export async function formOf(
  exchange: Exchange,
  options: AuthRouteOptions,
): Promise<URLSearchParams> {
  const type = mediaType(exchange.request.headers.get("content-type") ?? "");
  if (type !== FORM) {
    throw new HttpError(
      415,
      "unsupported_media_type",
      `Cannot read a body of type "${type}": this endpoint accepts ${FORM}`,
    );
  }
  const text = textFromUtf8(await bytesOf(exchange, options));
  if (text !== undefined) return new URLSearchParams(text);
  throw new HttpError(400, "invalid_request", "Cannot read the body: it is not valid UTF-8");
}

/**
 * Refuses a request with invalid fields.
 * @param fault Completes the message "Cannot read …"; undefined if the fields are valid.
 * @throws {HttpError} invalid_request if there is a fault.
 */
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

export function bearerOf(request: Request): string | undefined {
  const header = request.headers.get("authorization") ?? "";
  return /^bearer +(\S+)$/i.exec(header)?.[1];
}

/** Returns the token from the request's header or, if there is none, from its cookie. */
export function tokenOf(
  { request }: Exchange,
  { mayUseCookies }: AuthRouteOptions,
): string | undefined {
  const cookie = mayUseCookies(request) ? cookieOf(request, "tidemark_auth") : undefined;
  return bearerOf(request) ?? cookie;
}

/**
 * Returns the caller identified by the token in the header or cookie.
 * @throws {AuthError}
 */
export function callerOf(exchange: Exchange, options: AuthRouteOptions): Principal {
  const { auth } = options;
  const token = tokenOf(exchange, options);
  if (token !== undefined) return auth.authenticate(token, exchange);
  const header = exchange.request.headers.get("authorization");
  return auth.authenticateHeader(header, exchange, { mayBeCookie: true });
}

export function cookieOptions(
  { basePath, isSecure }: Exchange,
  { areCookiesSecure }: AuthRouteOptions,
): CookieOptions {
  return { basePath, isSecure: areCookiesSecure && isSecure };
}
