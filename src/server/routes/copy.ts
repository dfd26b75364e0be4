/**
 * Serves `POST /v1/api/copy?sql=COPY …`, which transfers rows in and out as a stream of bytes.
 *
 *     COPY … FROM STDIN   body of the request ──piece by piece──► SqlEngine ──► a result in JSON
 *     COPY … TO STDOUT    SqlEngine ──piece by piece──► body of the response
 *
 * - A piece of the body is read only when the statement requests it, so a slow statement slows
 *   down the client.
 * - The caller is checked again at the end of the body, before anything is stored: if the session
 *   has ended in the meantime, nothing is stored.
 */
import { type Auth, mayRun, type Principal } from "../../auth/mod.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { wireErrorOf } from "../../protocol/mod.ts";
import type { AnswerStream, CopyBody, SqlEngine, SqlRequest, SqlResponse } from "../../sql/mod.ts";
import { callerBelow } from "../admission/base_path.ts";
import type { ServerConfig } from "../contract/options.ts";
import type { BodyLedger } from "../http/body_ledger.ts";
import { type Exchange, tookMs } from "../http/exchange.ts";
import { errorBodyOf } from "../http/http_error.ts";
import { invalidInput } from "../http/request_body.ts";
import { apiHeaders, streamResponse, textResponse } from "../http/responses.ts";
import { jsonBody } from "../http/result_format.ts";
import type { Route } from "../http/route.ts";
import { copyRequestFromQuery } from "../http/sql_request.ts";
import { BrokenAnswer, streamedAnswer, streamedBytes } from "../http/streamed_result.ts";
import type { UserRate } from "../http/user_rate.ts";
import { COPY_OPERATION } from "../openapi/operations.ts";

export interface CopyRouteOptions {
  readonly auth: Auth;
  readonly sql: SqlEngine;
  readonly config: ServerConfig;
  readonly clock: Clock;
  readonly bodies: BodyLedger;
  readonly userRate: UserRate;
  /** Begins a streamed response. See {@linkcode SqlRouteOptions}. */
  readonly beginStream: () => () => void;
  readonly onBug: OnBug;
}

const JSON_HEADERS: Headers = apiHeaders("application/json; charset=utf-8");

/** The content type of each COPY format. */
const TYPES: Readonly<Record<string, string>> = {
  text: "text/plain; charset=utf-8",
  csv: "text/csv; charset=utf-8",
  ndjson: "application/x-ndjson; charset=utf-8",
  binary: "application/octet-stream",
};

/**
 * How many bytes are still read after a failure, so that the client finishes sending and reads the
 * response.
 */
const DRAINED_BYTES_MAX: number = 16 * 1024 * 1024;

/**
 * If the client sends no data for this long, in milliseconds, the server stops draining the body
 * and responds.
 */
const DRAIN_PAUSE_MS_MAX = 200;

export function copyRoute(options: CopyRouteOptions): Route {
  const route = new CopyRoute(options);
  return {
    path: "/v1/api/copy",
    method: "POST",
    shape: "B",
    operation: COPY_OPERATION,
    handle: (exchange) => route.handle(exchange),
  };
}

class CopyRoute {
  readonly #options: CopyRouteOptions;

  constructor(options: CopyRouteOptions) {
    this.#options = options;
  }

  async handle(exchange: Exchange): Promise<Response> {
    const { auth, bodies, config, sql, userRate } = this.#options;
    const { headers } = exchange.request;
    const principal = auth.authenticateHeader(headers.get("authorization"), exchange);
    userRate.take(principal);
    const coding = headers.get("content-encoding") ?? "identity";
    if (coding !== "identity") {
      throw invalidInput(`Cannot read a body compressed with "${coding}": send it uncompressed`);
    }
    const sender = { userId: principal.actorId, address: () => exchange.address };
    const entry = bodies.enter(sender, undefined);
    exchange.onLeave(() => entry.leave());
    exchange.liftIdleTimeout();
    const body = new RequestBytes(exchange.request, () =>
      auth.requireStanding(principal, exchange),
    );
    const request: SqlRequest = {
      ...copyRequestFromQuery(exchange, { config, sender: exchange }),
      copy: { body },
      transaction: headers.get("tidemark-transaction") ?? undefined,
    };
    try {
      const caller = callerBelow(exchange.basePath, principal);
      const response = await sql.execute(caller, request);
      if (body.refusal !== undefined) throw body.refusal;
      if (response.error !== undefined) await body.drain(this.#options.clock);
      return await this.#response(exchange, principal, response);
    } finally {
      body.cancel();
      entry.leave();
      exchange.resetIdleTimeout();
    }
  }

  #response(
    exchange: Exchange,
    principal: Principal,
    response: SqlResponse,
  ): Response | Promise<Response> {
    const { clock, config } = this.#options;
    const { error, results, stream } = response;
    const isAdmin = mayRun(principal, "inspect");
    const mayCompress = config.performance.http_compression;
    if (stream !== undefined) return this.#streamed(exchange, response, { isAdmin, stream });
    const copied = results[0]?.copied;
    if (copied !== undefined) {
      const onFailure = (failure: unknown): void => this.#noteBroken(exchange, failure);
      const options = { status: 200, headers: headersOf(response), mayCompress, clock };
      return streamResponse(exchange, { pieces: piecesOf(copied), onFailure }, options);
    }
    const ending = {
      tookMs: tookMs(exchange, clock),
      error: error === undefined ? undefined : errorBodyOf(error, { isAdmin }),
    };
    const status = error === undefined ? 200 : wireErrorOf(error.code).status;
    const options = { status, headers: JSON_HEADERS, mayCompress };
    return textResponse(exchange, jsonBody(results, ending), options);
  }

  #streamed(
    exchange: Exchange,
    response: SqlResponse,
    { isAdmin, stream }: { isAdmin: boolean; stream: AnswerStream },
  ): Response {
    const { beginStream, clock, config } = this.#options;
    const { results } = response;
    const answer = streamedAnswer(exchange, { isAdmin, results, stream }, this.#options);
    const endStream = beginStream();
    return streamResponse(
      exchange,
      {
        pieces: streamedBytes(answer),
        onEnd: () => {
          stream.cancel();
          endStream();
        },
        onFailure: (error) => this.#noteBroken(exchange, error),
      },
      {
        status: 200,
        headers: headersOf(response),
        mayCompress: config.performance.http_compression,
        clock,
      },
    );
  }

  #noteBroken({ requestId }: Exchange, error: unknown): void {
    if (error instanceof BrokenAnswer) return;
    this.#options.onBug(error, "the body of an answer", { request: requestId });
  }
}

async function* piecesOf(
  bytes: readonly Uint8Array<ArrayBuffer>[],
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  yield* bytes;
}

function headersOf({ copyFormat = "text" }: SqlResponse): Headers {
  return apiHeaders(TYPES[copyFormat] ?? TYPES["binary"] ?? "");
}

/** Provides the body of a request as the data of a COPY statement. */
class RequestBytes implements CopyBody {
  /**
   * The error that refused the caller at the end of the body; undefined if the caller was not
   * refused.
   */
  refusal: Error | undefined;
  readonly #pieces: AsyncIterator<Uint8Array> | undefined;
  readonly #onEnd: () => void;
  #isOver = false;

  /**
   * Prepares to read the body of a request.
   * @param onEnd Called at the end of the body. If it throws, the data is refused with that error.
   */
  constructor({ body }: Request, onEnd: () => void) {
    this.#pieces = body?.[Symbol.asyncIterator]();
    this.#onEnd = onEnd;
    this.#isOver = body === null;
  }

  async next(): Promise<Uint8Array | undefined> {
    const piece = await this.#read();
    if (piece !== undefined) return piece;
    try {
      this.#onEnd();
      return undefined;
    } catch (error) {
      this.refusal = error as Error;
      throw invalidInput("Cannot read the body: its session has ended");
    }
  }

  async #read(): Promise<Uint8Array | undefined> {
    if (this.#pieces === undefined || this.#isOver) return undefined;
    try {
      const { done, value } = await this.#pieces.next();
      if (done !== true) return value;
    } catch {
      // Reading fails only if the connection was lost.
      this.#isOver = true;
      throw invalidInput("Cannot read the body: it ended prematurely");
    }
    this.#isOver = true;
    return undefined;
  }

  /** Reads and discards data for as long as it keeps arriving, up to a limit. */
  async drain(clock: Clock): Promise<void> {
    let bytes = 0;
    while (!this.#isOver && bytes < DRAINED_BYTES_MAX) {
      const { promise: silence, resolve } = Promise.withResolvers<"silent">();
      const cancelTimer = clock.after(DRAIN_PAUSE_MS_MAX, () => resolve("silent"));
      try {
        const piece = await Promise.race([this.#read(), silence]);
        if (piece === "silent") return;
        bytes += piece?.length ?? 0;
      } catch {
        // The client has disconnected, so it will not read the response either.
        return;
      } finally {
        cancelTimer();
      }
    }
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    void this.#pieces?.return?.().catch(() => undefined);
  }
}
