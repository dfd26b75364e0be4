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

/** The one answer for every reason why a token opens nothing. */
export function invalidCredentials(): AuthError {
  return new AuthError("INVALID_CREDENTIALS", "The token is not valid");
}

/**
 * The same of a header whose scheme is another one, or none: what is wrong with it is no secret.
 */
export function notBearer(): AuthError {
  return new AuthError(
    "INVALID_CREDENTIALS",
    "The request should carry a bearer token, as Authorization: Bearer <token>",
  );
}
