/**
 * How a socket says who it is: what an `authenticate` message changes about the format of its
 * frames, and what its client is told when it fails.
 */
import type { ControlMessage } from "../../protocol/mod.ts";
import type { AuthenticateFields } from "../frames/client_message.ts";
import { type FrameFormat, frameFormat } from "../frames/encode.ts";

/** Longest access token. */
const TOKEN_BYTES_MAX = 16384;

/** The codes of `auth_error`; every other failure looks like a wrong token. */
const AUTH_ERROR_CODES: ReadonlySet<string> = new Set([
  "INVALID_CREDENTIALS",
  "TOKEN_EXPIRED",
  "AUTH_TIMEOUT",
  "RATE_LIMIT_EXCEEDED",
]);

/** Each is also the reason of a close frame, which has room for 123 bytes. */
const MESSAGES: Readonly<Record<string, string>> = {
  AUTH_TIMEOUT: "Authentication timed out",
  TOKEN_EXPIRED: "The token has expired: POST /v1/api/auth/refresh returns a new one",
};

type AuthFailure = Extract<ControlMessage, { type: "auth_error" }>;

/**
 * The `Authorization` header that a message stands for. What can be none is one without a token,
 * so that it counts against its address as every failure does.
 */
export function bearerFrom({ method, token }: AuthenticateFields): string {
  return method === "jwt" && token.length <= TOKEN_BYTES_MAX ? `Bearer ${token}` : "Bearer";
}

/** The format from now on: what a message leaves open stays as the upgrade asked. */
export function formatFrom(
  { compression, serialization }: AuthenticateFields,
  { before, mayGzip }: { before: FrameFormat; mayGzip: boolean },
): FrameFormat {
  const wantsGzip = compression === undefined ? before.isGzipOn : compression === "gzip";
  return frameFormat(serialization ?? before.serialization, mayGzip && wantsGzip);
}

export function authFailure(code: string): AuthFailure {
  const word = AUTH_ERROR_CODES.has(code) ? code : "INVALID_CREDENTIALS";
  return { type: "auth_error", message: MESSAGES[word] ?? "Authentication failed", code: word };
}
