/**
 * `POST /v1/api/sql`: bytes to statements, results to bytes.
 *
 *     authenticate → rate of the user → body → SqlEngine.execute → results in the wanted format
 */
import { type Auth, mayRun, type Principal } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import { wireErrorOf } from "../../protocol/mod.ts";
import type {
  AnswerStream,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  StatementResult,
} from "../../sql/mod.ts";
import { type Exchange, tookMs } from "../exchange.ts";
import { errorBodyOf, errorBodyOfFailure, HttpError } from "../http_error.ts";
import { isMultipart } from "../multipart.ts";
import type { ServerConfig } from "../options.ts";
import { RateLimiter } from "../rate_limit.ts";
import { requireJsonType, withBytes } from "../request_body.ts";
import { apiHeaders, streamResponse, textResponse } from "../responses.ts";
import {
  csvPieces,
  type Ending,
  formatFromAccept,
  isLarge,
  jsonBody,
  jsonPieces,
  ndjsonPieces,
  type ResultFormat,
} from "../result_format.ts";
import type { Route } from "../route.ts";
import { sqlRequestFromForm, sqlRequestFromJson } from "../sql_request.ts";
import {
  type StreamedAnswer,
  streamedCsv,
  streamedJson,
  streamedNdjson,
} from "../streamed_result.ts";

export interface SqlRouteOptions {
  readonly auth: Auth;
  readonly sql: SqlEngine;
  readonly config: ServerConfig;
  readonly clock: Clock;
  /** A body is written for as long as its statement runs; what it returns is called at its end. */
  readonly beginStream: () => () => void;
  readonly onBug: (error: unknown) => void;
  /** Scheme, host and port under which this server is reached. */
  readonly baseUrl: (exchange: Exchange) => string;
}

const HEADERS: Readonly<Record<ResultFormat, Headers>> = {
  json: apiHeaders("application/json; charset=utf-8"),
  ndjson: apiHeaders("application/x-ndjson; charset=utf-8"),
  csv: apiHeaders("text/csv; charset=utf-8; header=present"),
};

const STREAMED = { json: streamedJson, ndjson: streamedNdjson, csv: streamedCsv } as const;

function headersFor(format: ResultFormat, isReplayed: true | undefined): Headers {
  if (isReplayed === undefined) return HEADERS[format];
  const headers = new Headers(HEADERS[format]);
  headers.set("Idempotency-Replayed", "true");
  return headers;
}

/** A statement that may run longer than this much less than the keep-alive timeout lifts it. */
const KEEPALIVE_MARGIN_MS = 5000;

export function sqlRoute(options: SqlRouteOptions): Route {
  const route = new SqlRoute(options);
  return {
    path: "/v1/api/sql",
    method: "POST",
    shape: "B",
    handle: (exchange) => route.handle(exchange),
  };
}

class SqlRoute {
  readonly #options: SqlRouteOptions;
  readonly #userRate: RateLimiter;
  readonly #silentMsMax: number;
  readonly #defaultTimeoutMs: number;

  constructor(options: SqlRouteOptions) {
    this.#options = options;
    const { limits, performance } = options.config;
    const perSecond = limits.queries_per_sec_per_user;
    this.#userRate = new RateLimiter({ clock: options.clock, perSecond });
    const keepaliveMs = performance.keepalive_timeout * 1000;
    this.#silentMsMax = keepaliveMs === 0 ? Infinity : keepaliveMs - KEEPALIVE_MARGIN_MS;
    const timeoutMs = performance.request_timeout * 1000;
    this.#defaultTimeoutMs = timeoutMs === 0 ? Infinity : timeoutMs;
  }

  handle(exchange: Exchange): Promise<Response> {
    const { headers } = exchange.request;
    const principal = this.#options.auth.authenticateHeader(headers.get("authorization"), exchange);
    this.#takeFromRate(principal);
    const contentType = headers.get("content-type");
    return withBytes(exchange.request, this.#bytesMax(contentType), (body) =>
      this.#answer(exchange, { body, contentType, principal }),
    );
  }

  #answer(
    exchange: Exchange,
    {
      body,
      contentType,
      principal,
    }: { body: Uint8Array; contentType: string | null; principal: Principal },
  ): Response | Promise<Response> {
    const request = this.#requestFrom(body, { contentType, exchange });
    if ((request.timeoutMs ?? this.#defaultTimeoutMs) > this.#silentMsMax) {
      exchange.liftIdleTimeout();
    }
    const format = formatFromAccept(exchange.request.headers.get("accept"));
    if (format !== "json") return this.#executeAs(format, exchange, { principal, request });
    const answer = this.#options.sql.execute(principal, request);
    return answer instanceof Promise
      ? answer.then((response) => this.#jsonResponse(exchange, response, principal))
      : this.#jsonResponse(exchange, answer, principal);
  }

  #takeFromRate(principal: Principal): void {
    const waitMs = this.#userRate.take(principal.actorId);
    if (waitMs === 0) return;
    throw new HttpError(429, "RATE_LIMIT_EXCEEDED", "Too many requests of this user", {
      retryAfterSeconds: Math.ceil(waitMs / 1000),
    });
  }

  /** How many bytes a body of this type may have. @throws {HttpError} 415 */
  #bytesMax(contentType: string | null): number {
    const { files, limits } = this.#options.config;
    if (isMultipart(contentType)) return files.max_request_bytes;
    requireJsonType(contentType);
    return limits.max_body_bytes;
  }

  #requestFrom(
    body: Uint8Array,
    { contentType, exchange }: { contentType: string | null; exchange: Exchange },
  ): SqlRequest {
    const { baseUrl: urlOf, config } = this.#options;
    const baseUrl = (): string => urlOf(exchange);
    if (isMultipart(contentType)) {
      return sqlRequestFromForm(body, contentType, { ...config, baseUrl, origin: exchange });
    }
    return sqlRequestFromJson(body, config, { reader: exchange, baseUrl, origin: exchange });
  }

  #jsonResponse(
    exchange: Exchange,
    { results, error, isReplayed, stream }: SqlResponse,
    principal: Principal,
  ): Response | Promise<Response> {
    if (stream !== undefined) {
      return this.#streamed("json", exchange, { results, stream, principal });
    }
    const { clock, config } = this.#options;
    const options = {
      status: error === undefined ? 200 : wireErrorOf(error.condition).status,
      headers: headersFor("json", isReplayed),
      mayCompress: config.performance.http_compression,
    };
    const errorBody =
      error === undefined
        ? undefined
        : errorBodyOf(error, { isAdmin: mayRun(principal, "inspect") });
    const ending = (): Ending => ({ tookMs: tookMs(exchange, clock), error: errorBody });
    return isLarge(results)
      ? streamResponse(exchange, { pieces: jsonPieces(results, ending) }, { ...options, clock })
      : textResponse(exchange, jsonBody(results, ending()), options);
  }

  /** Answers with rows while there are more to come; the server waits for the last when it stops. */
  #streamed(
    format: ResultFormat,
    exchange: Exchange,
    {
      principal,
      results,
      stream,
    }: {
      principal: Principal;
      results: readonly StatementResult[];
      stream: AnswerStream;
    },
  ): Response {
    const { beginStream, clock, config, onBug } = this.#options;
    const isAdmin = mayRun(principal, "inspect");
    const answer: StreamedAnswer = {
      results,
      stream,
      tookMs: () => tookMs(exchange, clock),
      errorBodyOf: (error) => {
        const body = errorBodyOfFailure(error, { isAdmin });
        if (body !== undefined) return body;
        onBug(error);
        throw error;
      },
    };
    const endStream = beginStream();
    const onEnd = (): void => {
      stream.cancel();
      endStream();
    };
    return streamResponse(
      exchange,
      { pieces: STREAMED[format](answer), onEnd },
      {
        status: 200,
        headers: headersFor(format, undefined),
        mayCompress: config.performance.http_compression,
        clock,
      },
    );
  }

  /** NDJSON and CSV hold one result, which must be known before anything runs. */
  async #executeAs(
    format: Exclude<ResultFormat, "json">,
    exchange: Exchange,
    { principal, request }: { principal: Principal; request: SqlRequest },
  ): Promise<Response> {
    const { sql, clock, config } = this.#options;
    const checked = await sql.execute(principal, { ...request, check: true });
    const rowResults = checked.results.filter(({ schema }) => schema !== undefined);
    if (rowResults.length > 1) {
      throw new HttpError(
        406,
        "NOT_ACCEPTABLE",
        `Cannot answer in this format: ${rowResults.length} statements return rows, and only one may`,
      );
    }
    const mustRun = checked.error === undefined && request.check !== true;
    const response = mustRun ? await sql.execute(principal, request) : checked;
    const { results, stream } = response;
    if (stream !== undefined) {
      return this.#streamed(format, exchange, { results, stream, principal });
    }
    const result = response.results.find(({ schema }) => schema !== undefined);
    if (response.error !== undefined || result === undefined) {
      return await this.#jsonResponse(exchange, response, principal);
    }
    const pieces =
      format === "csv" ? csvPieces(result) : ndjsonPieces(result, () => tookMs(exchange, clock));
    const options = {
      status: 200,
      headers: headersFor(format, response.isReplayed),
      mayCompress: config.performance.http_compression,
    };
    return isLarge([result])
      ? streamResponse(exchange, { pieces }, { ...options, clock })
      : await textResponse(exchange, [...pieces].join(""), options);
  }
}
