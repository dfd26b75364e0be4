/**
 * What goes wrong at the doors of the server: a closed set of codes, those of the wire contract
 * for the auth endpoints (lower case) and for bearer checks (upper case).
 *
 * They are no conditions of SQL; the server decides with which status and in which envelope they
 * travel.
 */

/** Codes of the auth endpoints, and of bearer checks. */
export type AuthCode =
  | "already_configured"
  | "rate_limited"
  | "forbidden"
  | "host_not_allowed"
  | "invalid_request"
  | "invalid_user"
  | "weak_password"
  | "user_exists"
  | "setup_required"
  | "account_locked"
  | "unauthorized"
  | "MISSING_AUTHORIZATION"
  | "TOKEN_EXPIRED"
  | "INVALID_CREDENTIALS"
  | "RATE_LIMIT_EXCEEDED";

/** A refusal; the message names no secret and does not tell whether a user exists. */
export class AuthError extends Error {
  readonly code: AuthCode;
  /** For `weak_password`: which field of the request. */
  readonly field: string | undefined;
  /** Equals `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: AuthCode,
    message: string,
    details: { field?: string; retryAfterSeconds?: number } = {},
  ) {
    super(message);
    this.name = "AuthError";
    this.code = code;
    this.field = details.field;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/** The call that returns a token. */
const LOGIN = 'POST /v1/api/auth/login with {"user": "…", "password": "…"}';

const SEND_TOKEN = `send the header Authorization: Bearer <token>; ${LOGIN} returns the token as access_token`;

const OTHER_SCHEMES = /^(?:basic|digest|token|jwt|oauth|negotiate|api-?key)(?= )/i;

/** The one answer for every reason why a token opens nothing. */
export function invalidCredentials(): AuthError {
  return new AuthError(
    "INVALID_CREDENTIALS",
    `The token is not valid: ${LOGIN} returns a valid one as access_token`,
  );
}

const SEND_COOKIE =
  "; an EventSource, which can send no header, sends the cookie tidemark_auth, which a login by " +
  "its page sets";

/**
 * The failure of a request without a token.
 *
 * @param isInUrl Whether its URL seems to have one.
 * @param mayBeCookie Whether the endpoint reads the cookie, too.
 */
export function noToken({
  isInUrl,
  mayBeCookie,
}: {
  isInUrl: boolean;
  mayBeCookie: boolean;
}): AuthError {
  const what = isInUrl
    ? "The request has no Authorization header, and a token in the URL is not read"
    : "The request has no token";
  return new AuthError(
    "MISSING_AUTHORIZATION",
    `${what}: ${SEND_TOKEN}${mayBeCookie ? SEND_COOKIE : ""}`,
  );
}

/**
 * The failure of a header whose scheme is another one, or absent. The message repeats a known
 * scheme only: a header without scheme begins with the secret itself.
 */
export function notBearer(header: string): AuthError {
  const scheme = OTHER_SCHEMES.exec(header)?.[0];
  const what =
    scheme === undefined
      ? "The Authorization header does not begin with Bearer"
      : `The Authorization header has the scheme ${scheme}, which is not read`;
  return new AuthError("INVALID_CREDENTIALS", `${what}: ${SEND_TOKEN}`);
}

/** The failure of a token whose time is over. */
export function tokenExpired(): AuthError {
  return new AuthError(
    "TOKEN_EXPIRED",
    'The token has expired: POST /v1/api/auth/refresh with {"refresh_token": "…"} returns a new ' +
      `one, and so does ${LOGIN}`,
  );
}
