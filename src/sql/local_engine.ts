/**
 * Implements the SQL engine. It chooses between a fast path for a single query or change and a
 * general path for everything else.
 */
import type { Principal } from "../auth/mod.ts";
import { isDenial } from "../base/errors.ts";
import type { Activity } from "./activity/activity.ts";
import { renewRightsOf } from "./ddl/given_rights.ts";
import { newLedger, type RequestLedger } from "./execute/context/request_ledger.ts";
import type {
  FollowedPlan,
  LivePlan,
  LiveRequest,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  TransactionEnd,
  TransactionInfo,
  TransactionRequest,
} from "./ports/engine.ts";
import type { SqlEnvironment } from "./ports/environment.ts";
import { planFollowedQuery } from "./prepare/followed_query.ts";
import { FollowedTexts } from "./prepare/followed_text.ts";
import { NotRowByRow, planLiveQuery } from "./prepare/live_planner.ts";
import { PlanCache } from "./prepare/plan_cache.ts";
import { LiveSearches } from "./readers/live_search.ts";
import type { QueryReaders } from "./readers/query_readers.ts";
import { channelOf } from "./request/answer_stream.ts";
import { failedResponse } from "./request/at_statement.ts";
import { FastPath } from "./request/fast_path.ts";
import { FollowedResult } from "./request/followed_rows.ts";
import { type AnswerRecorder, IdempotentRequests } from "./request/idempotency.ts";
import { InteractiveTransactions } from "./request/interactive_transactions.ts";
import { type RequestOptions, RequestRunner } from "./request/request.ts";
import type { RequestDeps } from "./request/request_deps.ts";
import { closeRequest } from "./request/request_end.ts";
import { systemViewsOf } from "./system/system_views.ts";

/** A request on the general path, with everything needed to run it. */
type LongRequest = Pick<RequestOptions, "deps" | "held" | "principal" | "request" | "running">;

export class LocalSqlEngine implements SqlEngine {
  readonly #deps: RequestDeps;
  readonly #fastPath: FastPath;
  readonly #idempotent: IdempotentRequests;
  readonly #activity: Activity;
  readonly #searches: LiveSearches | undefined;
  /** The SQL texts of materialised queries. Subscribers to the same query share one text. */
  readonly #texts: FollowedTexts;
  readonly #interactive: InteractiveTransactions;

  /**
   * Creates an engine.
   * @param readers Threads that run long queries. If they are absent, long queries run on the
   *   event loop.
   */
  constructor(environment: SqlEnvironment, readers?: QueryReaders) {
    const plans = new PlanCache(environment.catalog, environment.limits.planBytes);
    this.#deps = { ...environment, systemViews: systemViewsOf(environment), readers, plans };
    this.#fastPath = new FastPath(this.#deps);
    this.#idempotent = new IdempotentRequests(environment);
    this.#interactive = new InteractiveTransactions(this.#deps);
    const { activity, auth } = environment;
    auth.onRevoked((it) => activity.transactions.endSession(it));
    // A request that changes a password waits until the statements of the affected user have
    // ended.
    auth.onDropped((userId) => {
      activity.running.endUser(userId);
      renewRightsOf(userId, environment);
    });
    this.#activity = environment.activity;
    this.#texts = new FollowedTexts(this.#deps.catalog);
    this.#searches = readers === undefined ? undefined : new LiveSearches(this.#deps, readers);
  }

  execute(principal: Principal, request: SqlRequest): SqlResponse | Promise<SqlResponse> {
    const ledger = this.#newLedger(request.timeoutMs);
    if (isShort(request)) {
      try {
        const short = this.#fastPath.run(principal, request, ledger);
        if (short !== undefined) return short;
      } catch (error) {
        closeRequest(this.#deps, { principal, request, ledger });
        return failedResponse(error, { deps: this.#deps, principal, request });
      }
    }
    return this.#long(principal, request, ledger);
  }

  /** Runs a request that the fast path cannot serve. */
  #long(principal: Principal, given: SqlRequest, ledger: RequestLedger): Promise<SqlResponse> {
    const deps = this.#deps;
    const request = withOrigin(given);
    const { userId } = principal;
    const running = this.#activity.running.begin({ userId, sql: request.sql, ledger });
    const long = { deps, principal, request, running };
    const { check, idempotency } = request;
    if (idempotency !== undefined && check !== true) {
      return this.#ended(long, this.#once(long, idempotency));
    }
    try {
      return this.#answer(this.#continuing(long));
    } catch (error) {
      return this.#ended(long, failedLater(error, long));
    }
  }

  #answer(long: LongRequest): Promise<SqlResponse> {
    const { deps, request, running } = long;
    const { check, reader } = request;
    if (reader === undefined || check === true) {
      return this.#ended(long, this.#run(long, new RequestRunner(long)));
    }
    const { clock, memoryGate } = deps;
    const channel = channelOf(request, { clock, ledger: running.ledger, memoryGate });
    const runner = new RequestRunner({ ...long, channel });
    const whole = this.#ended(long, this.#run(long, runner));
    const answer = channel.answerOf(whole, () => runner.completed);
    if (request.copy === undefined) return answer;
    return answer.then((response) => ({ ...response, copyFormat: runner.copyFormat }));
  }

  /** Adds the open interactive transaction to a request that names one. */
  #continuing(long: LongRequest): LongRequest {
    const { principal, request } = long;
    if (request.transaction === undefined) return long;
    const { held, namespace } = this.#interactive.find(principal, request.transaction);
    const continued = {
      ...long,
      request: { ...request, namespace: request.namespace ?? namespace },
    };
    // A request that only checks a statement changes nothing, so it does not join the transaction.
    return request.check === true ? continued : { ...continued, held };
  }

  /**
   * Runs a request. A request within a transaction first waits for the transaction's earlier
   * requests to finish.
   */
  async #run(long: LongRequest, runner: RequestRunner): Promise<SqlResponse> {
    const { held, principal, request, running } = long;
    const { transaction: id } = request;
    if (held === undefined || id === undefined) return await runner.run();
    const { ledger } = running;
    try {
      return await this.#activity.transactions.run({ principal, id, ledger }, () => runner.run());
    } catch (error) {
      return failedResponse(error, long);
    }
  }

  /** Runs a request with an idempotency key, or returns the response of its first run. */
  #once(long: LongRequest, key: NonNullable<SqlRequest["idempotency"]>): Promise<SqlResponse> {
    const run = (recorder: AnswerRecorder): Promise<SqlResponse> => {
      const continuing = this.#continuing(long);
      return this.#run(continuing, new RequestRunner({ ...continuing, recorder }));
    };
    const isStillAllowed = async (): Promise<boolean> => {
      const checked = { ...long.request, check: true };
      const { error } = await new RequestRunner({ ...long, request: checked }).run();
      if (error === undefined) return true;
      return !isDenial(error) && error.code !== "SHARED_IMPERSONATION";
    };
    return this.#idempotent
      .execute(long.principal, key, { run, isStillAllowed })
      .catch((error: unknown) => failedResponse(error, long));
  }

  openTransaction(principal: Principal, request: TransactionRequest): TransactionInfo {
    return this.#interactive.open(principal, request);
  }

  transaction(principal: Principal, id: string): TransactionInfo {
    return this.#interactive.info(principal, id);
  }

  async endTransaction(principal: Principal, end: TransactionEnd): Promise<TransactionInfo> {
    const { id, statement, ...request } = end;
    const isEnded = (): TransactionInfo | undefined => {
      const ended = this.#interactive.ended(principal, id);
      const wanted = statement === "COMMIT" ? "committed" : "rolled back";
      return ended?.state === wanted ? ended : undefined;
    };
    const ended = isEnded();
    if (ended !== undefined) return ended;
    const response = await this.execute(principal, {
      ...request,
      sql: statement,
      params: [],
      transaction: id,
    });
    const { error, results } = response;
    if (error === undefined) {
      const lastSeq = results.at(-1)?.lastSeq ?? null;
      return isEnded() ?? { id, state: "committed", lastSeq };
    }
    // While this request waited, an earlier request may have ended the transaction, and its
    // response may have been lost.
    const now = error.code === "TRANSACTION_NOT_FOUND" ? isEnded() : undefined;
    if (now !== undefined) return now;
    throw error;
  }

  /** Releases the resources of a request that has ended, successfully or not. */
  async #ended(
    { principal, request, running }: LongRequest,
    response: Promise<SqlResponse>,
  ): Promise<SqlResponse> {
    try {
      return await response;
    } finally {
      this.#activity.running.end(running);
      closeRequest(this.#deps, { principal, request, running, ledger: running.ledger });
    }
  }

  planLive(principal: Principal, request: LiveRequest): LivePlan {
    const ledger = this.#newLedger(undefined);
    const searches = this.#searches;
    return planLiveQuery(this.#deps, request, { principal, ledger, searches });
  }

  planFollowed(principal: Principal, request: LiveRequest): FollowedPlan {
    try {
      return { way: "rows", plan: this.planLive(principal, request) };
    } catch (error) {
      if (!(error instanceof NotRowByRow)) throw error;
      const ledger = this.#newLedger(undefined);
      const texts = this.#texts;
      const query = planFollowedQuery(this.#deps, request, { principal, ledger, texts });
      return { way: "result", plan: new FollowedResult(this.#deps, query), part: error.part };
    }
  }

  #newLedger(timeoutMs: number | undefined): RequestLedger {
    const { clock, limits } = this.#deps;
    return newLedger(clock.monotonicMs(), {
      timeoutMs,
      timeoutMsDefault: limits.timeoutMs,
      timeoutMsMax: limits.timeoutMsMax,
    });
  }

  /** The estimated memory of all cached plans, in bytes. */
  get planBytes(): number {
    return this.#deps.plans.bytes;
  }

  shutDown(): number {
    this.#activity.transactions.shutDown();
    return this.#activity.running.shutDown();
  }
}

/**
 * Whether the fast path may serve a request. It does not support files, COPY data, checks,
 * idempotency keys or open transactions.
 */
function isShort({ check, copy, files, idempotency, transaction }: SqlRequest): boolean {
  const hasBody = files !== undefined || copy !== undefined;
  return !hasBody && check !== true && idempotency === undefined && transaction === undefined;
}

async function failedLater(error: unknown, long: LongRequest): Promise<SqlResponse> {
  return failedResponse(error, long);
}

/**
 * Copies the client's address into the request immediately, because the address is no longer
 * available after the client has disconnected.
 */
function withOrigin(request: SqlRequest): SqlRequest {
  if (request.origin === undefined) return request;
  const { address, requestId } = request.origin;
  return { ...request, origin: { address, requestId } };
}
