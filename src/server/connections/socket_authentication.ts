/**
 * Handles the authentication of a socket, from the upgrade to the first attempt to authenticate.
 * The state consists of the options in the upgrade request and the time limit. A later renewal
 * needs neither.
 *
 *     waiting ──authenticate──► over: a principal, or an error code
 *        └──no token in time, close──► over
 *
 * The connection drops this object after the attempt, so that an authenticated connection uses no
 * memory for it.
 */
import { type Auth, AuthError, type Caller, type Principal } from "../../auth/mod.ts";
import type { CancelTimer } from "../../base/clock.ts";
import type { ControlMessage } from "../../protocol/mod.ts";
import type { AuthenticateFields } from "../frames/client_message.ts";
import { type FrameFormat, frameFormat } from "../frames/encode.ts";
import type { ConnectionParts, ConnectionRequest } from "./connection_options.ts";

/** The maximum length of an access token. */
const TOKEN_BYTES_MAX = 16384;

/**
 * The error codes that `auth_error` reports. Every other failure is reported as if the token were
 * incorrect.
 */
const AUTH_ERROR_CODES: ReadonlySet<string> = new Set([
  "INVALID_CREDENTIALS",
  "TOKEN_EXPIRED",
  "AUTH_TIMEOUT",
  "RATE_LIMIT_EXCEEDED",
  "AUTHENTICATION_ERROR",
]);

/**
 * The message for each error code. It is also used as the reason in a close frame, which has room
 * for 123 bytes.
 */
const MESSAGES: Readonly<Record<string, string>> = {
  AUTH_TIMEOUT: "Authentication timed out: send authenticate immediately after connecting",
  TOKEN_EXPIRED: "The token has expired; POST /v1/api/auth/refresh returns a new one",
  AUTHENTICATION_ERROR: "The keys of the token's issuer cannot be fetched; try again later",
  OTHER_USER: "A connection cannot change its user: open a separate connection for the other user",
};

type AuthFailure = Extract<ControlMessage, { type: "auth_error" }>;

export class PendingAuthentication {
  readonly #request: ConnectionRequest;
  readonly #parts: Pick<ConnectionParts, "auth" | "clock" | "config">;
  #cancelTimeout: CancelTimer | undefined;

  constructor(
    request: ConnectionRequest,
    parts: Pick<ConnectionParts, "auth" | "clock" | "config">,
  ) {
    this.#request = request;
    this.#parts = parts;
  }

  /** The Authorization header of the upgrade request; undefined if it had none. */
  get bearer(): string | undefined {
    return this.#request.bearer;
  }

  /** Starts the time limit for the `authenticate` message. */
  wait(onTimeout: () => void): void {
    const { clock, config } = this.#parts;
    this.#cancelTimeout = clock.after(config.websocket.auth_timeout_secs * 1000, onTimeout);
  }

  /**
   * Returns the frame format that applies after this message. A message cannot enable gzip if the
   * upgrade request or the server forbids it.
   */
  formatBy(fields: AuthenticateFields, before: FrameFormat): FrameFormat {
    const mayGzip = this.#parts.config.websocket.compression && !this.#request.isGzipForbidden;
    return formatFrom(fields, { before, mayGzip });
  }

  /** Authenticates the connection with a token. @returns The user, or the error code. */
  authenticate(bearer: string): Principal | string {
    this.close();
    return principalOrCode(this.#parts.auth, bearer, this.#request.caller);
  }

  /** Cancels the time limit. */
  close(): void {
    this.#cancelTimeout?.();
  }
}

/**
 * Returns the `Authorization` header equivalent to an `authenticate` message. For a message
 * without a token, returns a header without a token, so that the attempt counts as a failure for
 * its address.
 */
export function bearerFrom({ method, token }: AuthenticateFields): string {
  return method === "jwt" && token.length <= TOKEN_BYTES_MAX ? `Bearer ${token}` : "Bearer";
}

/**
 * Returns the message and the close code for a failed authentication.
 * @param code The code of an {@linkcode AuthError}, or OTHER_USER.
 */
export function authFailure(code: string): AuthFailure {
  const word = AUTH_ERROR_CODES.has(code) ? code : "INVALID_CREDENTIALS";
  return { type: "auth_error", message: MESSAGES[code] ?? "Authentication failed", code: word };
}

/** The result of renewing the authentication of an open connection with a newer token. */
export interface Renewal {
  readonly principal: Principal;
  /**
   * Whether the new token has different claims from the old one, for example because the user has
   * verified an address. Policies may then permit different rows.
   */
  readonly hasOtherClaims: boolean;
}

/**
 * Renews the authentication of an open connection with a newer token of the same user.
 *
 * @returns The renewal or an error code.
 */
export function renewed(
  before: Principal,
  bearer: string,
  { auth, caller }: { readonly auth: Auth; readonly caller: Caller },
): Renewal | string {
  const principal = principalOrCode(auth, bearer, caller);
  if (typeof principal === "string") return principal;
  if (identityOf(principal) !== identityOf(before)) return "OTHER_USER";
  return { principal, hasOtherClaims: claimsOf(principal) !== claimsOf(before) };
}

/** Returns a string that identifies a connection's user, role and scope, for comparisons. */
function identityOf({ role, tokenScope, userId }: Principal): string {
  return JSON.stringify([userId, role, tokenScope?.tokenName]);
}

/** Returns a token's claims as a string, for comparisons. */
function claimsOf({ claims = {} }: Principal): string {
  const claimed = Object.entries(claims).map(([name, value]) => `${name}=${value}`);
  return JSON.stringify(claimed.toSorted());
}

function principalOrCode(auth: Auth, bearer: string, caller: Caller): Principal | string {
  try {
    return auth.authenticateHeader(bearer, caller);
  } catch (error) {
    if (!(error instanceof AuthError)) throw error;
    return error.code;
  }
}

/**
 * Returns the frame format that a message requests. For properties that the message does not
 * specify, the format from the upgrade request applies.
 */
function formatFrom(
  { compression, serialization }: AuthenticateFields,
  { before, mayGzip }: { before: FrameFormat; mayGzip: boolean },
): FrameFormat {
  const wantsGzip = compression === undefined ? before.isGzipOn : compression === "gzip";
  return frameFormat(serialization ?? before.serialization, mayGzip && wantsGzip);
}
