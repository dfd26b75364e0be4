/**
 * The SQL engine: chooses between the short way of one cached statement and the long way of
 * everything else.
 */
import type { Principal } from "../auth/mod.ts";
import type { Condition } from "../base/errors.ts";
import type { Activity } from "./common/activity.ts";
import type {
  LivePlan,
  LiveRequest,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  StatementResult,
} from "./common/engine.ts";
import type { SqlEnvironment } from "./common/environment.ts";
import { newLedger, type RequestLedger } from "./execute/run/request_ledger.ts";
import { planLiveQuery } from "./prepare/live_planner.ts";
import { type AnswerChannel, channelOf } from "./request/answer_stream.ts";
import { failedResponse } from "./request/at_statement.ts";
import { type AnswerRecorder, IdempotentRequests } from "./request/idempotency.ts";
import { RequestRunner, type RequestWorld } from "./request/request.ts";
import { closeRequest } from "./request/request_end.ts";
import { ShortWay } from "./request/short_way.ts";
import { systemViewsOf } from "./system/system_views.ts";

/** How a request goes that the plan cache does not know. */
interface LongWay {
  readonly ledger: RequestLedger;
  /** Where rows go that are too many to be held. */
  readonly channel?: AnswerChannel;
  readonly onRunner?: (runner: RequestRunner) => void;
}

export class LocalSqlEngine implements SqlEngine {
  readonly #world: RequestWorld;
  readonly #shortWay: ShortWay;
  readonly #idempotent: IdempotentRequests;
  readonly #activity: Activity;

  constructor(environment: SqlEnvironment) {
    this.#world = { ...environment, systemViews: systemViewsOf(environment) };
    this.#shortWay = new ShortWay(this.#world);
    this.#idempotent = new IdempotentRequests(environment);
    this.#activity = environment.activity;
  }

  execute(principal: Principal, request: SqlRequest): SqlResponse | Promise<SqlResponse> {
    const { clock, limits } = this.#world;
    const ledger = newLedger(clock.monotonicMs(), {
      timeoutMs: request.timeoutMs,
      timeoutMsDefault: limits.timeoutMs,
      timeoutMsMax: limits.timeoutMsMax,
    });
    const { idempotency } = request;
    if (request.files === undefined && request.check !== true && idempotency === undefined) {
      try {
        const short = this.#shortWay.run(principal, request, ledger);
        if (short !== undefined) return short;
      } catch (error) {
        closeRequest(this.#world, { principal, request, ledger });
        return failedResponse(error);
      }
    }
    const { reader } = request;
    if (reader === undefined || request.check === true || idempotency !== undefined) {
      return this.#long(principal, request, { ledger });
    }
    return this.#longWithReader(principal, request, ledger);
  }

  /** Apart from the rest, which would have to keep for this what it does not need itself. */
  #longWithReader(
    principal: Principal,
    request: SqlRequest,
    ledger: RequestLedger,
  ): Promise<SqlResponse> {
    const channel = channelOf(request, { clock: this.#world.clock, ledger });
    let completed: readonly StatementResult[] = [];
    const onRunner = (runner: RequestRunner): void => {
      completed = runner.completed;
    };
    const whole = this.#long(principal, request, { ledger, channel, onRunner });
    return channel.answerOf(whole, () => completed);
  }

  async #long(
    principal: Principal,
    given: SqlRequest,
    { channel, ledger, onRunner }: LongWay,
  ): Promise<SqlResponse> {
    const request = withOrigin(given);
    const { idempotency } = request;
    const { userId } = principal;
    const running = this.#activity.running.begin({ userId, sql: request.sql, ledger });
    const world = this.#world;
    try {
      if (idempotency === undefined || request.check === true) {
        const runner = new RequestRunner({ world, principal, request, running, channel });
        onRunner?.(runner);
        return await runner.run();
      }
      const run = (recorder: AnswerRecorder): Promise<SqlResponse> =>
        new RequestRunner({ world, principal, request, recorder, running }).run();
      const isStillAllowed = async (): Promise<boolean> => {
        const checked = { ...request, check: true };
        const parts = { world, principal, request: checked, running };
        const { error } = await new RequestRunner(parts).run();
        return error === undefined || !RIGHTS_LOST.has(error.condition);
      };
      return await this.#idempotent
        .execute(principal, idempotency, { run, isStillAllowed })
        .catch(failedResponse);
    } finally {
      this.#activity.running.end(running);
      closeRequest(world, { principal, request, ledger });
    }
  }

  planLive(principal: Principal, request: LiveRequest): LivePlan {
    return planLiveQuery(this.#world, principal, request);
  }

  shutDown(): number {
    return this.#activity.running.shutDown();
  }
}

/** What a request is refused with whose caller may no longer do what it once did. */
const RIGHTS_LOST: ReadonlySet<Condition> = new Set(["PERMISSION_DENIED", "SHARED_IMPERSONATION"]);

/** With the address as it is now: a client that leaves before the end has none any more then. */
function withOrigin(request: SqlRequest): SqlRequest {
  if (request.origin === undefined) return request;
  const { address, requestId } = request.origin;
  return { ...request, origin: { address, requestId } };
}
