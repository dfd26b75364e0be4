/**
 * Defines authentication errors: a closed set of codes, some for the auth endpoints (lower case)
 * and some for bearer token checks (upper case).
 *
 * They are not SQL error conditions. The server determines the HTTP status and the envelope of
 * each error.
 */

/** The error codes of the auth endpoints and of bearer token checks. */
export type AuthCode =
  | "already_configured"
  | "rate_limited"
  | "forbidden"
  | "host_not_allowed"
  | "invalid_request"
  | "invalid_user"
  | "weak_password"
  | "user_exists"
  | "unknown_user"
  | "invalid_code"
  | "invalid_invitation"
  | "invalid_setup_code"
  | "invalid_link"
  | "setup_required"
  | "account_locked"
  | "unauthorized"
  | "MISSING_AUTHORIZATION"
  | "TOKEN_EXPIRED"
  | "INVALID_CREDENTIALS"
  | "RATE_LIMIT_EXCEEDED"
  | "AUTHENTICATION_ERROR";

/**
 * An authentication error. Its message contains no secrets and does not reveal whether a user
 * exists.
 */
export class AuthError extends Error {
  readonly code: AuthCode;
  /** The request field to which a `weak_password` error refers. */
  readonly field: string | undefined;
  /** The value of the `Retry-After` header, in seconds. */
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

/** An example request that returns a token, for use in error messages. */
const LOGIN = 'POST /v1/api/auth/login with {"user": "…", "password": "…"}';

const SEND_TOKEN = `send the header Authorization: Bearer <token>; ${LOGIN} returns the token as access_token`;

const OTHER_SCHEMES = /^(?:basic|digest|token|jwt|oauth|negotiate|api-?key)(?= )/i;

/**
 * Returns the error for a token that is not accepted. It is the same for every reason, so that it
 * reveals nothing.
 */
export function invalidCredentials(): AuthError {
  return new AuthError(
    "INVALID_CREDENTIALS",
    `The token is not valid; get a new access_token from ${LOGIN}`,
  );
}

const SEND_COOKIE =
  "; an EventSource cannot send headers, so the page must first log in to get the " +
  "tidemark_auth cookie";

/**
 * Returns the error for a request without a token.
 *
 * @param isInUrl Whether the request URL seems to contain a token.
 * @param mayBeCookie Whether the endpoint also accepts a token in a cookie.
 */
export function noToken({
  isInUrl,
  mayBeCookie,
}: {
  isInUrl: boolean;
  mayBeCookie: boolean;
}): AuthError {
  const what = isInUrl
    ? "The request has no Authorization header, and tokens in the URL are ignored"
    : "The request has no token";
  return new AuthError(
    "MISSING_AUTHORIZATION",
    `${what}: ${SEND_TOKEN}${mayBeCookie ? SEND_COOKIE : ""}`,
  );
}

/**
 * Returns the error for an `Authorization` header that does not use the Bearer scheme. The message
 * repeats only well-known schemes, because a header without a scheme may begin with the secret
 * itself.
 */
export function notBearer(header: string): AuthError {
  const scheme = OTHER_SCHEMES.exec(header)?.[0];
  const what =
    scheme === undefined
      ? "The Authorization header does not begin with Bearer"
      : `The Authorization header has the scheme ${scheme}, which is not supported`;
  return new AuthError("INVALID_CREDENTIALS", `${what}: ${SEND_TOKEN}`);
}

/** Returns the error for an expired token. */
export function tokenExpired(): AuthError {
  return new AuthError(
    "TOKEN_EXPIRED",
    'The token has expired; POST /v1/api/auth/refresh with {"refresh_token": "…"} returns a ' +
      `new one, and so does ${LOGIN}`,
  );
}

/** Returns the error for a signed file URL that is invalid or whose session has ended. */
export function invalidFileUrl(): AuthError {
  return new AuthError(
    "INVALID_CREDENTIALS",
    "The URL is not valid, or its session has ended; FILE_URL and SHOW EXPORT return new URLs",
  );
}

/** Returns the error for a signed file URL that has expired. */
export function fileUrlExpired(): AuthError {
  return new AuthError(
    "TOKEN_EXPIRED",
    "The URL has expired; FILE_URL and SHOW EXPORT return new URLs",
  );
}

/**
 * Returns the error for an expired token from an external issuer. This server cannot renew such a
 * token.
 */
export function externalTokenExpired(): AuthError {
  return new AuthError("TOKEN_EXPIRED", "The token has expired; get a new one from its issuer");
}

/** Returns the error for an expired service token. Service tokens cannot be renewed. */
export function serviceTokenExpired(): AuthError {
  return new AuthError(
    "TOKEN_EXPIRED",
    "The service token has expired; an administrator can create a new one with CREATE TOKEN",
  );
}
