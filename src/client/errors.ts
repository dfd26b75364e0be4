/**
 * What can fail: the server refused, or could not be reached. Both are `instanceof`-able, and both
 * carry what a person needs to go on.
 */
import type { ErrorBody, StatementEntry } from "../protocol/mod.ts";

/** What came with a refusal besides its code and message. */
export interface RefusalDetails {
  /** HTTP status; 0 for a refusal by WebSocket. */
  readonly status?: number;
  readonly position?: number | undefined;
  readonly hint?: string | undefined;
  /** 0-based index of the statement that failed. */
  readonly statement?: number | undefined;
  readonly reason?: string | undefined;
  /** The field of a form that was refused. */
  readonly field?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** Entries of the statements before it, which stay in effect. */
  readonly results?: readonly StatementEntry[];
}

/** The server answered, and said no. */
export class ServerError extends Error {
  readonly code: string;
  readonly status: number;
  /** 0-based UTF-16 offset into the SQL that was sent. */
  readonly position: number | undefined;
  readonly hint: string | undefined;
  readonly statement: number | undefined;
  readonly reason: string | undefined;
  readonly field: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly results: readonly StatementEntry[];

  constructor(code: string, message: string, details: RefusalDetails = {}) {
    super(message);
    this.name = "ServerError";
    this.code = code;
    this.status = details.status ?? 0;
    this.position = details.position;
    this.hint = details.hint;
    this.statement = details.statement;
    this.reason = details.reason;
    this.field = details.field;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.results = details.results ?? [];
  }
}

/** No answer, or none that is the protocol's. */
export class ConnectionError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ConnectionError";
  }
}

/** A chain of causes may be a ring. */
const CAUSES_MAX = 5;

/** The messages of an error and of what caused it: the first often says only that it failed. */
export function textOfCauses(error: unknown): string {
  const messages: string[] = [];
  let each = error;
  while (each instanceof Error && messages.length < CAUSES_MAX) {
    messages.push(each.message || each.name);
    each = each.cause;
  }
  return messages.length === 0 ? String(error) : messages.join(": ");
}

/** Reads the body of a failed answer, in either shape of the contract. */
export function errorFromBody(body: unknown, status: number): ServerError {
  const fields = isObject(body) ? body : {};
  const { error } = fields;
  if (isObject(error) && typeof error["code"] === "string") {
    // Shape B: the error is an object beside the results.
    const inner = error as unknown as ErrorBody;
    const results = Array.isArray(fields["results"])
      ? (fields["results"] as readonly StatementEntry[])
      : [];
    return new ServerError(inner.code, inner.message, {
      status,
      position: inner.position,
      hint: inner.hint,
      statement: inner.statement,
      reason: inner.reason,
      retryAfterSeconds: inner.retry_after_seconds,
      results,
    });
  }
  if (typeof error !== "string") {
    return new ServerError("http_error", `The server answered with status ${status}`, { status });
  }
  const { field, message, retry_after_seconds: retryAfterSeconds } = fields;
  return new ServerError(error, typeof message === "string" ? message : error, {
    status,
    field: typeof field === "string" ? field : undefined,
    retryAfterSeconds: typeof retryAfterSeconds === "number" ? retryAfterSeconds : undefined,
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
