/**
 * Turns failures into HTTP responses. Shape A is used for auth, health, the UI and unknown paths,
 * shape B for SQL and files, and shape C for topics. The shape "events" means shape B, or an event
 * if the client can read only events. Only `protocol/error_codes.ts` defines the status of each
 * error code.
 */
import { type AuthCode, AuthError } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import {
  CorruptionError,
  DatabaseError,
  DiskError,
  type ErrorCode,
  namesOnly,
  withoutPaths,
} from "../../base/errors.ts";
import {
  type ErrorBody,
  type TopicErrorBody,
  topicErrorOf,
  wireErrorOf,
} from "../../protocol/mod.ts";
import { endedStream, wantsEvents } from "./ended_stream.ts";
import { type Exchange, tookMs } from "./exchange.ts";
import { json, jsonText } from "./responses.ts";
import { jsonBody } from "./result_format.ts";

/**
 * An error that the server layer itself raises, for example for a rate limit, a path or a media
 * type.
 */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly extra: ErrorExtra;

  constructor(status: number, code: string, message: string, extra: ErrorExtra = {}) {
    super(message);
    this.name = "HttpError";
    this.status = status;
    this.code = code;
    this.extra = extra;
  }
}

/** The fields of an error other than its code and message. */
export interface ErrorExtra {
  readonly maxBytes?: number;
  readonly sizeBytes?: number;
  readonly retryAfterSeconds?: number;
  readonly allow?: string;
  readonly contentRange?: string;
  /**
   * If set, the connection is closed after the response, so that the rest of the request is not
   * received.
   */
  readonly closes?: true;
  /** The request field to which the error `weak_password` refers. */
  readonly field?: string;
}

/** How many seconds a client should wait before it retries after a temporary failure. */
export const RETRY_SECONDS = 5;

/**
 * Returns the error for a connection beyond the limit.
 * @param all The maximum number of connections, across all addresses.
 */
export function tooManyConnections(all: number): HttpError {
  const message = `Too many connections: the server accepts at most ${all}`;
  return new HttpError(503, "TOO_MANY_CONNECTIONS", message, {
    retryAfterSeconds: RETRY_SECONDS,
  });
}

export type ErrorShape = "A" | "B" | "C" | "events";

/** Returns the response to a request that failed because of a bug. */
export function bugError(shape: ErrorShape): HttpError {
  const message =
    "Cannot complete the request because of a bug in the server; the server's log has the details";
  return new HttpError(500, shape === "A" ? "internal_error" : "INTERNAL_ERROR", message);
}

/** Returns the `error` object (shape B) that reports a bug in the server. */
export function bugBody(): ErrorBody {
  const { code, message } = bugError("B");
  return { code, message };
}

/** Returns the response for an expected failure; undefined for any other error, which is a bug. */
export function responseFromError(
  exchange: Exchange,
  error: unknown,
  { shape, clock }: { shape: ErrorShape; clock: Clock },
): Response | undefined {
  const failure = failureOf(error, shape);
  if (failure === undefined) return undefined;
  // Every endpoint reports a failed check of the bearer token in the same form, so shape C does
  // not apply to it.
  if (shape === "C" && !(error instanceof AuthError)) {
    return refusedTopic(exchange, failure, error);
  }
  if (shape === "C") return failedResponse(exchange, failure, clock);
  if (shape === "events") return refusedStream(exchange, failure, clock);
  if (shape === "B") return failedResponse(exchange, failure, clock);
  const { status, body, extra } = failure;
  const response = json(exchange, status, plainBody(body, extra));
  addErrorHeaders(response.headers, extra);
  return response;
}

/**
 * Refuses an event stream. An EventSource gets the refusal as an event, and any other client gets
 * it in the form of a failed SQL request (shape B).
 */
export function refusedStream(exchange: Exchange, failure: HttpFailure, clock: Clock): Response {
  if (!wantsEvents(exchange)) return failedResponse(exchange, failure, clock);
  return endedStream(exchange, failure);
}

/** Returns the response to a failed request about a topic (shape C). */
function refusedTopic(
  exchange: Exchange,
  { body: { code, message, ...rest }, extra, status }: HttpFailure,
  error: unknown,
): Response {
  const known = error instanceof DatabaseError ? topicErrorOf(error.code) : { code, status };
  const { hint, max_bytes, retry_after_seconds, size_bytes } = rest;
  const body: TopicErrorBody = {
    error: message,
    code: known.code,
    ...(hint === undefined ? {} : { hint }),
    ...(retry_after_seconds === undefined ? {} : { retry_after_seconds }),
    ...(max_bytes === undefined ? {} : { max_bytes }),
    ...(size_bytes === undefined ? {} : { size_bytes }),
  };
  const response = json(exchange, known.status, body);
  addErrorHeaders(response.headers, extra);
  return response;
}

/** Returns the response to a failed request in the form that SQL and files use (shape B). */
function failedResponse(
  exchange: Exchange,
  { body, extra, status }: HttpFailure,
  clock: Clock,
): Response {
  const answer = jsonBody([], { tookMs: tookMs(exchange, clock), error: body });
  const response = jsonText(exchange, status, answer);
  addErrorHeaders(response.headers, extra);
  if (status === 401) response.headers.set("WWW-Authenticate", "Bearer");
  return response;
}

/**
 * Returns whether a failure should be logged. Refused requests are not logged. Neither are
 * failures that were logged where they occurred.
 */
export function isWorthLogging(error: unknown): boolean {
  if (error instanceof HttpError || error instanceof AuthError) return false;
  if (error instanceof CorruptionError) return !error.isLogged;
  if (error instanceof DatabaseError) return !LOGGED_BELOW.has(error.code);
  return true;
}

/** The codes of failures that the store or the shutdown has already logged. */
const LOGGED_BELOW: ReadonlySet<ErrorCode> = new Set([
  "DISK_FULL",
  "COMMIT_UNKNOWN",
  "SHUTTING_DOWN",
]);

/**
 * Returns the `error` object (shape B) for a database error. With `isAdmin`, it includes the
 * internal cause and file paths.
 */
export function errorBodyOf(error: DatabaseError, { isAdmin }: { isAdmin: boolean }): ErrorBody {
  const { code, reason } = wireErrorOf(error.code);
  const statement = error.statementIndex;
  const { hint, message } = isAdmin ? error : withoutPaths(error);
  return {
    code,
    message: statement === undefined ? message : numbered(statement, message),
    ...(error.position === undefined ? {} : { position: error.position }),
    ...(hint === undefined ? {} : { hint }),
    ...(statement === undefined ? {} : { statement }),
    ...(reason === undefined ? {} : { reason }),
    ...(error.code === "SHUTTING_DOWN" ? { retry_after_seconds: RETRY_SECONDS } : {}),
    ...(error.earliestSeq === undefined ? {} : { earliest_seq: error.earliestSeq }),
    ...(isAdmin && isInternal(error.cause) ? { details: error.cause.message } : {}),
  };
}

/** Returns the `error` object (shape B) for any expected failure; undefined for a bug. */
export function errorBodyOfFailure(
  error: unknown,
  options: { isAdmin: boolean },
): ErrorBody | undefined {
  if (error instanceof DatabaseError) return errorBodyOf(error, options);
  const body = failureOf(error, "B")?.body;
  const isNamed = options.isAdmin && error instanceof CorruptionError;
  return body !== undefined && isNamed ? { ...body, message: error.message } : body;
}

/** Whether an error's cause provides information that its message does not. */
function isInternal(cause: unknown): cause is Error {
  return cause instanceof Error && !(cause instanceof DatabaseError);
}

/**
 * The type requires an entry for every code, so a new code does not compile until its status is
 * defined.
 */
const AUTH_STATUS: Readonly<Record<AuthCode, number>> = {
  already_configured: 409,
  rate_limited: 429,
  forbidden: 403,
  host_not_allowed: 403,
  invalid_request: 400,
  invalid_user: 400,
  weak_password: 400,
  user_exists: 409,
  unknown_user: 401,
  invalid_code: 403,
  invalid_invitation: 403,
  invalid_setup_code: 403,
  invalid_link: 403,
  setup_required: 428,
  account_locked: 401,
  unauthorized: 401,
  MISSING_AUTHORIZATION: 401,
  TOKEN_EXPIRED: 401,
  INVALID_CREDENTIALS: 401,
  RATE_LIMIT_EXCEEDED: 429,
  AUTHENTICATION_ERROR: 503,
};

interface HttpFailure {
  readonly status: number;
  readonly body: ErrorBody;
  readonly extra: ErrorExtra;
}

function failureOf(error: unknown, shape: ErrorShape): HttpFailure | undefined {
  if (error instanceof HttpError) {
    const { extra } = error;
    const code = shape === "A" ? error.code : error.code.toUpperCase();
    return {
      status: error.status,
      body: { code, message: error.message, ...sizes(extra) },
      extra,
    };
  }
  if (error instanceof AuthError) {
    const extra: ErrorExtra = {
      ...(error.field === undefined ? {} : { field: error.field }),
      ...(error.retryAfterSeconds === undefined
        ? {}
        : { retryAfterSeconds: error.retryAfterSeconds }),
    };
    const body = { code: error.code, message: error.message, ...sizes(extra) };
    return { status: AUTH_STATUS[error.code], body, extra };
  }
  if (error instanceof DatabaseError) {
    const body = errorBodyOf(error, { isAdmin: false });
    const { retry_after_seconds: retryAfterSeconds } = body;
    const extra: ErrorExtra = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return { status: wireErrorOf(error.code).status, body, extra };
  }
  if (error instanceof CorruptionError) {
    const { code, status } = wireErrorOf("DATA_DAMAGED");
    return {
      status,
      body: { code, message: namesOnly(error.message) },
      extra: {},
    };
  }
  if (error instanceof DiskError && error.code === "ENOSPC") {
    const { code, status } = wireErrorOf("DISK_FULL");
    return {
      status,
      body: { code, message: "Cannot write: the disk is full" },
      extra: {},
    };
  }
  if (error instanceof DiskError) {
    const { code: own, status } = wireErrorOf("INTERNAL_ERROR");
    const code = shape === "A" ? own.toLowerCase() : own;
    const message =
      "Cannot complete the request: a disk operation failed; the server's log has the details";
    return { status, body: { code, message }, extra: {} };
  }
  return undefined;
}

function sizes({ maxBytes, sizeBytes, retryAfterSeconds }: ErrorExtra): Partial<ErrorBody> {
  return {
    ...(maxBytes === undefined ? {} : { max_bytes: maxBytes }),
    ...(sizeBytes === undefined ? {} : { size_bytes: sizeBytes }),
    ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
  };
}

function plainBody({ code, ...rest }: ErrorBody, { field }: ErrorExtra): object {
  return { error: code, ...rest, ...(field === undefined ? {} : { field }) };
}

function addErrorHeaders(headers: Headers, extra: ErrorExtra): void {
  if (extra.retryAfterSeconds !== undefined) {
    headers.set("Retry-After", String(extra.retryAfterSeconds));
  }
  if (extra.allow !== undefined) headers.set("Allow", extra.allow);
  if (extra.contentRange !== undefined) headers.set("Content-Range", extra.contentRange);
  if (extra.closes !== undefined) headers.set("Connection", "close");
}

/**
 * Prefixes a message with the number of the statement, counted from 1, unless the engine has
 * already done so.
 */
function numbered(statementIndex: number, message: string): string {
  const prefix = `Statement ${statementIndex + 1}: `;
  return message.startsWith(prefix) ? message : prefix + message;
}
