/**
 * Serves `POST /v1/api/sql`: turns bytes into statements, and results into bytes.
 *
 *     authenticate → rate of the user → body → SqlEngine.execute → results in the requested format
 *
 * The body is read only after the caller is authenticated. The caller is then checked again:
 * otherwise, a client could hold back its body and act in a session that has ended in the
 * meantime.
 */
import { type Auth, mayRun, type Principal } from "../../auth/mod.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { wireErrorOf } from "../../protocol/mod.ts";
import type {
  AnswerStream,
  ResultFormat,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  StatementResult,
} from "../../sql/mod.ts";
import { callerBelow } from "../admission/base_path.ts";
import type { ServerConfig } from "../contract/options.ts";
import { type BodyLedger, SHORT_BODY_BYTES } from "../http/body_ledger.ts";
import { type Exchange, tookMs } from "../http/exchange.ts";
import { misplacedInQuery } from "../http/field_names.ts";
import { errorBodyOf, HttpError } from "../http/http_error.ts";
import { type BodyAdmission, LARGE_BODY_BYTES, type LargeBodies } from "../http/large_bodies.ts";
import { isMultipart } from "../http/multipart.ts";
import {
  declaredBytes,
  endedEarly,
  invalidInput,
  readBody,
  refuseLarger,
  refusePacked,
  requireJsonType,
} from "../http/request_body.ts";
import {
  apiHeaders,
  streamResponse,
  type TextResponseOptions,
  textResponse,
} from "../http/responses.ts";
import {
  csvPieces,
  type Ending,
  formatFromAccept,
  isLarge,
  jsonBody,
  jsonPieces,
  ndjsonPieces,
} from "../http/result_format.ts";
import type { Route } from "../http/route.ts";
import { releaseBody } from "../http/sql_body.ts";
import {
  SQL_BODIES,
  SQL_FIELDS,
  sqlRequestFromForm,
  sqlRequestFromJson,
} from "../http/sql_request.ts";
import {
  BrokenAnswer,
  streamedAnswer,
  streamedCsv,
  streamedJson,
  streamedNdjson,
} from "../http/streamed_result.ts";
import type { UserRate } from "../http/user_rate.ts";
import { SQL_OPERATION } from "../openapi/operations.ts";

export interface SqlRouteOptions {
  readonly auth: Auth;
  readonly sql: SqlEngine;
  readonly config: ServerConfig;
  readonly clock: Clock;
  readonly bodies: BodyLedger;
  readonly largeBodies: LargeBodies;
  readonly userRate: UserRate;
  /**
   * Registers a response body that is written while its statement runs. Returns a function to be
   * called when the body ends.
   */
  readonly beginStream: () => () => void;
  readonly onBug: OnBug;
}

/**
 * The maximum number of notices in the response header. Proxies accept 8 KiB of headers in total.
 */
const NOTICES_MAX = 5;

/**
 * How much longer the keep-alive timeout must be than a statement's timeout, in milliseconds.
 * Otherwise, the keep-alive timeout is lifted while the statement runs.
 */
const KEEPALIVE_MARGIN_MS = 5000;

const HEADERS: Readonly<Record<ResultFormat, Headers>> = {
  json: apiHeaders("application/json; charset=utf-8"),
  ndjson: apiHeaders("application/x-ndjson; charset=utf-8"),
  csv: apiHeaders("text/csv; charset=utf-8; header=present"),
};

const STREAMED = { json: streamedJson, ndjson: streamedNdjson, csv: streamedCsv } as const;

export function sqlRoute(options: SqlRouteOptions): Route {
  const route = new SqlRoute(options);
  return {
    path: "/v1/api/sql",
    method: "POST",
    shape: "B",
    operation: SQL_OPERATION,
    handle: (exchange) => route.handle(exchange),
  };
}

class SqlRoute {
  readonly #options: SqlRouteOptions;
  readonly #silentMsMax: number;
  readonly #defaultTimeoutMs: number;
  /** The response options that nearly every request uses. */
  readonly #plainJson: TextResponseOptions;

  constructor(options: SqlRouteOptions) {
    this.#options = options;
    const { performance } = options.config;
    const keepaliveMs = performance.keepalive_timeout * 1000;
    this.#silentMsMax = keepaliveMs === 0 ? Infinity : keepaliveMs - KEEPALIVE_MARGIN_MS;
    const timeoutMs = performance.request_timeout * 1000;
    this.#defaultTimeoutMs = timeoutMs === 0 ? Infinity : timeoutMs;
    const mayCompress = performance.http_compression;
    this.#plainJson = { status: 200, headers: HEADERS.json, mayCompress };
  }

  handle(exchange: Exchange): Promise<Response> {
    const { headers } = exchange.request;
    const principal = this.#options.auth.authenticateHeader(headers.get("authorization"), exchange);
    this.#options.userRate.take(principal);
    const bytesMax = this.#bytesMax(headers.get("content-type"));
    const sizeBytes = declaredBytes(exchange.request);
    refuseLarger(sizeBytes, bytesMax);
    return sizeBytes !== undefined && sizeBytes <= SHORT_BODY_BYTES
      ? this.#withShort(exchange, principal, sizeBytes)
      : this.#withLong(exchange, principal, { sizeBytes, bytesMax });
  }

  async #withShort(exchange: Exchange, principal: Principal, sizeBytes: number): Promise<Response> {
    const { bodies } = this.#options;
    let body: Uint8Array;
    bodies.takeShort(principal.actorId, sizeBytes);
    try {
      body = await exchange.request.bytes();
    } catch (error) {
      throw endedEarly(error);
    } finally {
      bodies.giveShort(principal.actorId, sizeBytes);
    }
    return this.#answer(exchange, principal, body);
  }

  async #withLong(
    exchange: Exchange,
    principal: Principal,
    { bytesMax, sizeBytes }: { bytesMax: number; sizeBytes: number | undefined },
  ): Promise<Response> {
    const { actorId: userId } = principal;
    const sender = { userId, address: () => exchange.address };
    const entry = this.#options.bodies.enter(sender, sizeBytes);
    const mayBeLarge = sizeBytes === undefined || sizeBytes > LARGE_BODY_BYTES;
    const admission = mayBeLarge ? this.#options.largeBodies.enter(userId) : undefined;
    const leave = (): void => {
      admission?.leave();
      entry.leave();
    };
    exchange.onLeave(leave);
    const place =
      admission === undefined ? { entry } : { entry, admission: waitingAs(exchange, admission) };
    try {
      const body = await readBody(exchange.request, bytesMax, place);
      return await this.#answer(exchange, principal, body);
    } finally {
      leave();
    }
  }

  /** Responds to a request, without creating a promise if the result is available immediately. */
  #answer(
    exchange: Exchange,
    principal: Principal,
    body: Uint8Array,
  ): Response | Promise<Response> {
    this.#options.auth.requireStanding(principal, exchange);
    const format = formatFromAccept(exchange.request.headers.get("accept"));
    const request = this.#requestFrom(exchange, body, format);
    if ((request.timeoutMs ?? this.#defaultTimeoutMs) > this.#silentMsMax) {
      exchange.liftIdleTimeout();
    }
    const caller = callerBelow(exchange.basePath, principal);
    const answer = this.#options.sql.execute(caller, request);
    if (!(answer instanceof Promise)) return this.#response(format, exchange, principal, answer);
    return answer.then((response) => {
      if (request.sqlUtf8 !== undefined && response.stream === undefined) {
        releaseBody(request.sqlUtf8);
      }
      return this.#response(format, exchange, principal, response);
    });
  }

  /**
   * Returns the maximum size of a body with this content type.
   * @throws {HttpError} 415
   */
  #bytesMax(contentType: string | null): number {
    const { files, limits } = this.#options.config;
    if (isMultipart(contentType)) return files.max_request_bytes;
    requireJsonType(contentType, SQL_BODIES);
    return limits.max_body_bytes;
  }

  #requestFrom(exchange: Exchange, body: Uint8Array, format: ResultFormat): SqlRequest {
    const misplaced = misplacedInQuery(exchange.query, SQL_FIELDS);
    if (misplaced !== undefined) throw invalidInput(`Cannot read ${misplaced}`);
    const { config } = this.#options;
    const contentType = exchange.request.headers.get("content-type");
    const options = { config, sender: exchange, format };
    const transaction = exchange.request.headers.get("tidemark-transaction");
    try {
      const request = isMultipart(contentType)
        ? sqlRequestFromForm(body, contentType, options)
        : sqlRequestFromJson(body, options);
      return transaction === null ? request : { ...request, transaction };
    } catch (error) {
      refusePacked(exchange.request.headers);
      throw error;
    }
  }

  #response(
    format: ResultFormat,
    exchange: Exchange,
    principal: Principal,
    response: SqlResponse,
  ): Response | Promise<Response> {
    const { error, results, stream } = response;
    const isAdmin = (): boolean => mayRun(principal, "inspect");
    if (stream !== undefined) {
      return this.#streamed(format, exchange, { isAdmin: isAdmin(), results, stream });
    }
    const errorBody = error === undefined ? undefined : errorBodyOf(error, { isAdmin: isAdmin() });
    if (format === "json") return this.#jsonResponse(exchange, response, errorBody);
    return this.#onlyResult(format, exchange, response, errorBody);
  }

  #jsonResponse(
    exchange: Exchange,
    { error, isReplayed, results }: SqlResponse,
    errorBody: Ending["error"],
  ): Response | Promise<Response> {
    const options =
      error === undefined && isReplayed === undefined
        ? this.#plainJson
        : {
            ...this.#plainJson,
            status: error === undefined ? 200 : wireErrorOf(error.code).status,
            headers: headersFor("json", {
              isReplayed,
              retrySeconds: errorBody?.retry_after_seconds,
            }),
          };
    if (isLarge(results)) return this.#inPieces(exchange, { results, errorBody }, options);
    const ending = { tookMs: tookMs(exchange, this.#options.clock), error: errorBody };
    return textResponse(exchange, jsonBody(results, ending), options);
  }

  #inPieces(
    exchange: Exchange,
    { errorBody, results }: { results: readonly StatementResult[]; errorBody: Ending["error"] },
    options: TextResponseOptions,
  ): Response {
    const { clock } = this.#options;
    const ending = (): Ending => ({ tookMs: tookMs(exchange, clock), error: errorBody });
    const pieces = jsonPieces(results, ending);
    const onFailure = (error: unknown): void => this.#noteBroken(exchange, error);
    return streamResponse(exchange, { pieces, onFailure }, { ...options, clock });
  }

  /**
   * Sends rows while the statement is still producing more. A server that is shutting down waits
   * for the last row.
   */
  #streamed(
    format: ResultFormat,
    exchange: Exchange,
    {
      isAdmin,
      results,
      stream,
    }: { isAdmin: boolean; results: readonly StatementResult[]; stream: AnswerStream },
  ): Response {
    const { beginStream, clock, config } = this.#options;
    const answer = streamedAnswer(exchange, { isAdmin, results, stream }, this.#options);
    const endStream = beginStream();
    const onEnd = (): void => {
      stream.cancel();
      endStream();
    };
    return streamResponse(
      exchange,
      {
        pieces: STREAMED[format](answer),
        onEnd,
        onFailure: (error) => this.#noteBroken(exchange, error),
      },
      {
        status: 200,
        headers: headersFor(format, { notices: noticesOf(format, results) }),
        mayCompress: config.performance.http_compression,
        clock,
      },
    );
  }

  /**
   * Responds in NDJSON or CSV with the single result that has rows. If no statement returns rows,
   * the response is JSON.
   */
  #onlyResult(
    format: Exclude<ResultFormat, "json">,
    exchange: Exchange,
    response: SqlResponse,
    errorBody: Ending["error"],
  ): Response | Promise<Response> {
    const { clock, config } = this.#options;
    const found = response.results.filter(({ schema }) => schema !== undefined);
    const { rowResultCount = found.length } = response;
    if (rowResultCount > 1) {
      throw new HttpError(
        406,
        "NOT_ACCEPTABLE",
        `Cannot respond in this format: ${rowResultCount} statements return rows, but at most ` +
          "one may",
      );
    }
    const [result] = found;
    if (response.error !== undefined || result === undefined) {
      return this.#jsonResponse(exchange, response, errorBody);
    }
    const pieces =
      format === "csv" ? csvPieces(result) : ndjsonPieces(result, () => tookMs(exchange, clock));
    const options = {
      status: 200,
      headers: headersFor(format, {
        isReplayed: response.isReplayed,
        notices: noticesOf(format, response.results),
      }),
      mayCompress: config.performance.http_compression,
    };
    if (!isLarge([result])) return textResponse(exchange, [...pieces].join(""), options);
    const body = { pieces, onFailure: (error: unknown) => this.#noteBroken(exchange, error) };
    return streamResponse(exchange, body, { ...options, clock });
  }

  /**
   * Logs that a response body was broken off. The status has already been sent, so the client
   * cannot be told of the error.
   */
  #noteBroken({ requestId }: Exchange, error: unknown): void {
    if (error instanceof BrokenAnswer) return;
    this.#options.onBug(error, "the body of an answer", { request: requestId });
  }
}

/**
 * Wraps the admission of a request's body, so that the connection may stay silent while the body
 * waits.
 */
function waitingAs(exchange: Exchange, admission: BodyAdmission): BodyAdmission {
  return {
    take(bytes, start) {
      let isWaiting = false;
      let hasBegun = false;
      admission.take(bytes, () => {
        hasBegun = true;
        if (isWaiting) exchange.resetIdleTimeout();
        start();
      });
      isWaiting = !hasBegun;
      if (isWaiting) exchange.liftIdleTimeout();
    },
    leave: () => admission.leave(),
  };
}

function headersFor(
  format: ResultFormat,
  {
    isReplayed,
    notices = [],
    retrySeconds,
  }: {
    isReplayed?: true | undefined;
    notices?: readonly string[];
    retrySeconds?: number | undefined;
  },
): Headers {
  if (isReplayed === undefined && retrySeconds === undefined && notices.length === 0) {
    return HEADERS[format];
  }
  const headers = new Headers(HEADERS[format]);
  if (isReplayed !== undefined) headers.set("Idempotency-Replayed", "true");
  if (retrySeconds !== undefined) headers.set("Retry-After", String(retrySeconds));
  if (notices.length > 0) headers.set("Tidemark-Notices", asciiJson(notices));
  return headers;
}

/**
 * Returns the notices for the response header. Only NDJSON and CSV responses need it, because
 * their bodies have no place for the notices of all statements.
 */
function noticesOf(format: ResultFormat, results: readonly StatementResult[]): readonly string[] {
  if (format === "json") return [];
  return results.flatMap(({ notices = [] }) => notices).slice(0, NOTICES_MAX);
}

/**
 * Writes JSON in ASCII for a header, because clients differ in how they decode other characters.
 */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
