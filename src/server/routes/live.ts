/**
 * Serves `GET /v1/api/live`: a subscription as server-sent events. The query string has the same
 * fields as the WebSocket message `subscribe`, and the same function reads both.
 */
import type { Auth, Principal } from "../../auth/mod.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { type LiveEngine, type LiveSink, SubscriptionError } from "../../live/mod.ts";
import type { ErrorMessage, SubscriptionCode, SubscriptionSpec } from "../../protocol/mod.ts";
import type { Connections } from "../connections/connections.ts";
import { EventStream } from "../connections/event_stream.ts";
import type { SendBudget } from "../connections/send_budget.ts";
import { refuseTooMany } from "../connections/upgrade.ts";
import type { ServerConfig } from "../contract/options.ts";
import { errorMessage, readSpec } from "../frames/client_message.ts";
import { STREAM_WORD } from "../http/ended_stream.ts";
import { type EventId, eventIdFrom, eventUser } from "../http/event_ids.ts";
import type { Exchange } from "../http/exchange.ts";
import { type FieldNames, nearMissOf } from "../http/field_names.ts";
import { RETRY_SECONDS, refusedStream } from "../http/http_error.ts";
import { acceptsGzip, empty, eventHeaders, openResponse } from "../http/responses.ts";
import type { Route } from "../http/route.ts";
import { LIVE_OPERATION } from "../openapi/operations.ts";
import { bearerOrCookiePrincipal } from "./bearer_or_cookie.ts";

export interface LiveRouteOptions {
  readonly auth: Auth;
  readonly live: LiveEngine;
  readonly config: ServerConfig;
  readonly clock: Clock;
  readonly onBug: OnBug;
  readonly connections: Connections;
  readonly sendBudget: SendBudget;
  /** Returns whether the page that sent a request may use its cookies. */
  readonly mayUseCookies: (request: Request) => boolean;
  /** Returns the next connection number. */
  readonly nextNumber: () => number;
}

const HEADERS = eventHeaders();

/** The HTTP status for each error code that can refuse a subscription before its stream begins. */
const STATUS_OF_CODE: Readonly<Record<SubscriptionCode, number>> = {
  INVALID_SQL: 400,
  UNSUPPORTED: 400,
  INVALID_OPTIONS: 400,
  INVALID_PARAMETER: 400,
  INVALID_RESUME: 400,
  UNAUTHORIZED: 403,
  NOT_FOUND: 404,
  RESUME_EXPIRED: 410,
  SCHEMA_CHANGED: 410,
  SUBSCRIPTION_LIMIT_EXCEEDED: 429,
  SHUTTING_DOWN: 503,
  // The remaining codes are internal failures, or occur only in an open stream or a socket
  // message.
  SUBSCRIPTION_FAILED: 500,
  CONVERSION_ERROR: 500,
  KILLED: 500,
  TOKEN_EXPIRED: 500,
  TOKEN_REVOKED: 500,
  AUTH_REQUIRED: 500,
  INVALID_SUBSCRIPTION_ID: 500,
  BATCH_FETCH_FAILED: 500,
  AMBIGUOUS_SUBSCRIPTION: 500,
  INVALID_MESSAGE: 500,
  UNSUPPORTED_DATA: 500,
  MESSAGE_TOO_LARGE: 500,
  RATE_LIMIT_EXCEEDED: 500,
};

/**
 * Returns a sink that discards all messages. It is used for a HEAD request, whose subscription is
 * only checked.
 */
function nowhere(): LiveSink {
  return { connectionId: "none", queuedBytes: 0, send: () => true, end() {} };
}

/** The URL parameters, each with the names that other servers use for it. */
const QUERY_FIELDS: FieldNames = {
  sql: ["query", "q", "statement", "text"],
  params: ["parameters", "args", "arguments", "values"],
  namespace_id: ["namespace", "ns", "schema", "database", "db"],
  batch_size: ["batch"],
  last_rows: ["last", "limit"],
  from_seq_id: ["from", "since", "from_seq"],
  replay: [],
  claims: [],
  snapshot: [],
};

export function liveRoute(options: LiveRouteOptions): Route {
  return {
    path: "/v1/api/live",
    method: "GET",
    shape: "events",
    operation: LIVE_OPERATION,
    handle: (exchange) => open(exchange, options),
  };
}

function open(exchange: Exchange, options: LiveRouteOptions): Response {
  const { clock, config, connections, live } = options;
  const principal = bearerOrCookiePrincipal(exchange, options);
  try {
    const spec = specFrom(exchange, config);
    requireSameReader(exchange, principal);
    refuseTooMany(exchange, { config, connections });
    // A HEAD request gets only the headers. If the function did not return here, the response
    // would be a stream that never ends.
    if (exchange.request.method === "HEAD") {
      live.subscribe({ principal, spec, sink: nowhere() }).close();
      return empty(exchange, 200, { "Content-Type": "text/event-stream" });
    }
    const isCompressed = config.performance.http_compression && acceptsGzip(exchange.request);
    const stream = new EventStream({
      connectionId: `sse-${options.nextNumber()}`,
      principal,
      address: exchange.address,
      isCompressed,
      isNetReplay: spec.options?.replay === "latest",
      clock,
      onBug: options.onBug,
      sendBudget: options.sendBudget,
      commentEveryMs: config.websocket.ping_interval_secs * 1000,
      onEnding: () => exchange.shortenIdleTimeout(),
      onClosed: () => connections.remove(stream),
    });
    stream.carry(live.subscribe({ principal, spec, sink: stream }));
    connections.add(stream);
    // The event stream may already have ended with the first batch.
    if (!stream.isEnding) exchange.liftIdleTimeout();
    return openResponse(exchange, stream.body(), { headers: HEADERS, isCompressed });
  } catch (error) {
    if (!(error instanceof SubscriptionError)) throw error;
    return refusal(exchange, error.response, clock);
  }
}

/**
 * Reads a subscription request from the query parameters.
 * @throws {SubscriptionError}
 */
function specFrom(exchange: Exchange, { limits }: ServerConfig): SubscriptionSpec {
  const query = new URLSearchParams(exchange.query);
  const miss = nearMissOf(Object.fromEntries(query), QUERY_FIELDS);
  if (miss !== undefined) throw mistaken(`Cannot read ${miss}`);
  const last = lastEventId(exchange);
  const from = last.position ?? query.get("from_seq_id") ?? undefined;
  const isLiveOnly = query.get("snapshot") === "false" && from === undefined;
  const given = query.get("params") ?? "[]";
  // The parameters are wrapped in the JSON text of a socket message, so that numbers keep all of
  // their digits.
  const text = `{"subscription":{"params":${given}}}`;
  const params = paramsFrom(text);
  const options = {
    ...definedOnly({
      batch_size: wholeNumber(query.get("batch_size")),
      last_rows: wholeNumber(query.get("last_rows")),
      from_seq_id: from,
      claims: last.claims ?? query.get("claims") ?? undefined,
      replay: query.get("replay") ?? undefined,
    }),
  };
  const subscription = {
    sql: query.get("sql") ?? "",
    params,
    options: isLiveOnly ? null : options,
    ...definedOnly({ namespace_id: query.get("namespace_id") ?? undefined }),
  };
  return readSpec({ value: { subscription }, text }, STREAM_WORD, limits);
}

function lastEventId({ request }: Exchange): EventId {
  return eventIdFrom(request.headers.get("last-event-id") ?? "");
}

/**
 * Refuses to resume for a user other than the one who received the last event.
 * @throws {SubscriptionError} RESUME_EXPIRED if another user received the last event.
 */
function requireSameReader(exchange: Exchange, { userId }: Principal): void {
  const { user } = lastEventId(exchange);
  if (user === undefined || user === eventUser(userId)) return;
  const why = "The rows up to this position were sent to a different user; load a new snapshot";
  throw new SubscriptionError(errorMessage("RESUME_EXPIRED", STREAM_WORD, why));
}

function mistaken(message: string): SubscriptionError {
  return new SubscriptionError(errorMessage("INVALID_OPTIONS", STREAM_WORD, message));
}

/**
 * Returns the parsed parameters. Text that is not JSON is returned unchanged, and is then refused
 * in the same way as JSON that is not an array.
 */
function paramsFrom(text: string): unknown {
  try {
    const { subscription } = JSON.parse(text) as { subscription?: { params?: unknown } };
    return subscription?.params ?? [];
  } catch {
    return text;
  }
}

/**
 * Returns the number in the text. Any other text is returned unchanged, so that the live engine,
 * which knows the option, can report the error.
 */
function wholeNumber(text: string | null): number | string | undefined {
  if (text === null) return undefined;
  return /^\d+$/.test(text) ? Number(text) : text;
}

function definedOnly(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function refusal(exchange: Exchange, response: ErrorMessage, clock: Clock): Response {
  const { code, earliest_seq, hint, message, position } = response;
  const status = STATUS_OF_CODE[code];
  // The subscription limit (429) is temporary as well, because other subscriptions will end.
  const retryAfterSeconds = status === 429 || status === 503 ? RETRY_SECONDS : undefined;
  const body = {
    code,
    message,
    ...definedOnly({ position, hint, earliest_seq, retry_after_seconds: retryAfterSeconds }),
  };
  const extra = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return refusedStream(exchange, { status, body, extra }, clock);
}
