/**
 * Defines the errors of the client: one for requests that the server refused, and one for a server
 * that could not be reached. They can be told apart with `instanceof`, and their messages can be
 * shown to users.
 */
import type { StatementEntry } from "../protocol/mod.ts";

/** The properties of an error from the server, apart from its code and message. */
export interface RefusalDetails {
  /** The HTTP status of the response; 0 for an error received over the WebSocket. */
  readonly status?: number;
  readonly position?: number | undefined;
  readonly hint?: string | undefined;
  /** The index of the statement that failed, counted from 0. */
  readonly statement?: number | undefined;
  readonly reason?: string | undefined;
  /** The form field that the server refused. */
  readonly field?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** The result entries of the statements before the one that failed. Their effects remain. */
  readonly results?: readonly StatementEntry[];
}

/** An error returned by the server. */
export class ServerError extends Error {
  readonly code: string;
  readonly status: number;
  /** The 0-based offset into the SQL that was sent, in UTF-16 code units. */
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

/** The server gave no response, or a response that does not follow the protocol. */
export class ConnectionError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ConnectionError";
  }
}

/**
 * The maximum number of causes to follow. It is limited because a chain of causes may be cyclic.
 */
const CAUSES_MAX = 5;

/**
 * Joins the messages of an error and its causes, because often the first message says only that
 * something failed.
 */
export function textOfCauses(error: unknown): string {
  const messages: string[] = [];
  let each = error;
  while (each instanceof Error && messages.length < CAUSES_MAX) {
    messages.push(each.message || each.name);
    each = each.cause;
  }
  return messages.length === 0 ? String(error) : messages.join(": ");
}

/**
 * Reads the body of a failed response, in either shape that the server uses. If the body has
 * neither shape, for example because it comes from a proxy, the error contains only the status.
 *
 * @param told Details from the response headers, used if the body does not contain them.
 */
export function errorFromBody(
  body: unknown,
  status: number,
  told: Pick<RefusalDetails, "retryAfterSeconds"> & { message?: string } = {},
): ServerError {
  const fields = isObject(body) ? body : {};
  const { error } = fields;
  // In one of the two response shapes, the error is an object next to the results.
  const inner = isObject(error) ? error : fields;
  const code = textIn(isObject(error) ? error["code"] : error);
  const message = textIn(inner["message"]);
  if (code === undefined) {
    const said =
      told.message ?? `The server responded with status ${status}, without an explanation`;
    return new ServerError("http_error", said, { ...told, status });
  }
  return new ServerError(code, message ?? code, {
    status,
    position: numberIn(inner["position"]),
    hint: textIn(inner["hint"]),
    statement: numberIn(inner["statement"]),
    reason: textIn(inner["reason"]),
    field: textIn(inner["field"]),
    retryAfterSeconds: numberIn(inner["retry_after_seconds"]) ?? told.retryAfterSeconds,
    results: entriesIn(fields["results"]) ?? [],
  });
}

/** Returns a copy of an error with its results replaced. */
export function withResults(error: ServerError, results: readonly StatementEntry[]): ServerError {
  const { code, field, hint, message, position, reason, retryAfterSeconds, statement, status } =
    error;
  const details = { field, hint, position, reason, retryAfterSeconds, statement, status };
  return new ServerError(code, message, { ...details, results });
}

/** Returns `value` if it is a list of results; otherwise undefined. */
export function entriesIn(value: unknown): readonly StatementEntry[] | undefined {
  return Array.isArray(value) && value.every(isEntry) ? value : undefined;
}

function isEntry(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { rows = [], schema = [] } = value;
  const isTable = Array.isArray(rows) && rows.every(Array.isArray);
  return isTable && Array.isArray(schema) && schema.every(isObject);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function numberIn(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
