/**
 * The SQL engine: chooses between the short way of one cached statement and the long way of
 * everything else.
 */
import type { Principal } from "../auth/mod.ts";
import { isDenial } from "../base/errors.ts";
import type { Activity } from "./common/activity.ts";
import type { LivePlan, LiveRequest, SqlEngine, SqlRequest, SqlResponse } from "./common/engine.ts";
import type { SqlEnvironment } from "./common/environment.ts";
import { newLedger, type RequestLedger } from "./execute/run/request_ledger.ts";
import { planLiveQuery } from "./prepare/live_planner.ts";
import { LiveSearches } from "./readers/live_search.ts";
import type { QueryReaders } from "./readers/query_readers.ts";
import { channelOf } from "./request/answer_stream.ts";
import { failedResponse } from "./request/at_statement.ts";
import { type AnswerRecorder, IdempotentRequests } from "./request/idempotency.ts";
import { type RequestOptions, RequestRunner, type RequestWorld } from "./request/request.ts";
import { closeRequest } from "./request/request_end.ts";
import { ShortWay } from "./request/short_way.ts";
import { systemViewsOf } from "./system/system_views.ts";

/** A request that goes the long way. */
type LongRequest = Pick<RequestOptions, "world" | "principal" | "request" | "running">;

export class LocalSqlEngine implements SqlEngine {
  readonly #world: RequestWorld;
  readonly #shortWay: ShortWay;
  readonly #idempotent: IdempotentRequests;
  readonly #activity: Activity;
  readonly #searches: LiveSearches | undefined;

  /** @param readers Where long queries run; absent: on the event loop. */
  constructor(environment: SqlEnvironment, readers?: QueryReaders) {
    this.#world = { ...environment, systemViews: systemViewsOf(environment), readers };
    this.#shortWay = new ShortWay(this.#world);
    this.#idempotent = new IdempotentRequests(environment);
    this.#activity = environment.activity;
    this.#searches = readers === undefined ? undefined : new LiveSearches(this.#world, readers);
  }

  execute(principal: Principal, request: SqlRequest): SqlResponse | Promise<SqlResponse> {
    const ledger = this.#newLedger(request.timeoutMs);
    const { idempotency } = request;
    if (request.files === undefined && request.check !== true && idempotency === undefined) {
      try {
        const short = this.#shortWay.run(principal, request, ledger);
        if (short !== undefined) return short;
      } catch (error) {
        closeRequest(this.#world, { principal, request, ledger });
        return failedResponse(error, { world: this.#world, principal, request });
      }
    }
    return this.#long(principal, request, ledger);
  }

  /** How a request goes that the plan cache does not know. */
  #long(principal: Principal, given: SqlRequest, ledger: RequestLedger): Promise<SqlResponse> {
    const world = this.#world;
    const request = withOrigin(given);
    const { userId } = principal;
    const running = this.#activity.running.begin({ userId, sql: request.sql, ledger });
    const long = { world, principal, request, running };
    const { check, idempotency, reader } = request;
    if (idempotency !== undefined && check !== true) {
      return this.#ended(long, this.#once(long, idempotency));
    }
    if (reader === undefined || check === true) {
      return this.#ended(long, new RequestRunner(long).run());
    }
    const channel = channelOf(request, { clock: world.clock, ledger });
    const runner = new RequestRunner({ ...long, channel });
    return channel.answerOf(this.#ended(long, runner.run()), () => runner.completed);
  }

  /** A request with a key: its answer, or that of its first run. */
  #once(long: LongRequest, key: NonNullable<SqlRequest["idempotency"]>): Promise<SqlResponse> {
    const run = (recorder: AnswerRecorder): Promise<SqlResponse> =>
      new RequestRunner({ ...long, recorder }).run();
    const isStillAllowed = async (): Promise<boolean> => {
      const checked = { ...long.request, check: true };
      const { error } = await new RequestRunner({ ...long, request: checked }).run();
      if (error === undefined) return true;
      return !isDenial(error) && error.condition !== "SHARED_IMPERSONATION";
    };
    return this.#idempotent
      .execute(long.principal, key, { run, isStillAllowed })
      .catch((error: unknown) => failedResponse(error, long));
  }

  /** Gives back what a request holds once it has its response, or has failed. */
  async #ended(
    { principal, request, running }: LongRequest,
    response: Promise<SqlResponse>,
  ): Promise<SqlResponse> {
    try {
      return await response;
    } finally {
      this.#activity.running.end(running);
      closeRequest(this.#world, { principal, request, running, ledger: running.ledger });
    }
  }

  planLive(principal: Principal, request: LiveRequest): LivePlan {
    const ledger = this.#newLedger(undefined);
    const searches = this.#searches;
    return planLiveQuery(this.#world, request, { principal, ledger, searches });
  }

  #newLedger(timeoutMs: number | undefined): RequestLedger {
    const { clock, limits } = this.#world;
    return newLedger(clock.monotonicMs(), {
      timeoutMs,
      timeoutMsDefault: limits.timeoutMs,
      timeoutMsMax: limits.timeoutMsMax,
    });
  }

  shutDown(): number {
    return this.#activity.running.shutDown();
  }
}

/** With the address as it is now: a client that leaves before the end has none any more then. */
function withOrigin(request: SqlRequest): SqlRequest {
  if (request.origin === undefined) return request;
  const { address, requestId } = request.origin;
  return { ...request, origin: { address, requestId } };
}
