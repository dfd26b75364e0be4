/**
 * The SQL engine: the short way for one cached statement, and the long way for everything else.
 */
import type { Principal } from "../auth/mod.ts";
import { type Condition, DatabaseError } from "../base/errors.ts";
import { collectAfterTurn } from "../base/garbage.ts";
import { DEFAULT_NAMESPACE } from "../catalog/mod.ts";
import type { DataType } from "../types/mod.ts";
import { type Activity, type RunningRequest, shownSql } from "./activity.ts";
import { AnswerChannel } from "./answer_stream.ts";
import { atStatement } from "./at_statement.ts";
import { StatementBinding } from "./bind/binding.ts";
import { hasFaultyLiteral, readLiterals } from "./bind/untyped_literals.ts";
import type {
  LivePlan,
  LiveRequest,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  StatementResult,
} from "./engine.ts";
import type { SqlEnvironment } from "./environment.ts";
import type { Deadline } from "./execute/operator.ts";
import { type AnswerRecorder, IdempotentRequests } from "./idempotency.ts";
import { planLiveQuery } from "./live_planner.ts";
import { isQueryNode } from "./node_kinds.ts";
import { deadlineOf, parseLimitsOf, requireNoGap, typedParameters } from "./parameters.ts";
import { parseNormalized } from "./parse/parser.ts";
import { type CacheKey, literalValues, PlanCache } from "./plan_cache.ts";
import { authorize, type Prepared, prepare } from "./prepared.ts";
import { textOfKey } from "./query_text.ts";
import { dmlContextOf, statisticsOf } from "./relation_source.ts";
import { RequestRunner } from "./request.ts";
import { StatementRunner } from "./statement_runner.ts";

/** When a request began, and when it must end. */
interface Timing {
  readonly startMs: number;
  readonly deadline: Deadline;
}

/** How a request goes that the plan cache does not know. */
interface LongWay {
  readonly timing: Timing;
  /** Where rows go that are too many to be held. */
  readonly channel?: AnswerChannel;
  readonly onRunner?: (runner: RequestRunner) => void;
}

export class LocalSqlEngine implements SqlEngine {
  readonly #environment: SqlEnvironment;
  readonly #plans: PlanCache;
  readonly #idempotent: IdempotentRequests;
  readonly #activity: Activity;

  constructor(environment: SqlEnvironment) {
    this.#environment = environment;
    this.#plans = new PlanCache(environment.catalog);
    this.#idempotent = new IdempotentRequests(environment);
    this.#activity = environment.activity;
  }

  execute(principal: Principal, request: SqlRequest): SqlResponse | Promise<SqlResponse> {
    const startMs = this.#environment.clock.monotonicMs();
    const timing = { startMs, deadline: deadlineOf(request, this.#environment.limits, startMs) };
    const { idempotency } = request;
    if (request.files === undefined && request.check !== true && idempotency === undefined) {
      try {
        const short = this.#short(principal, request, timing);
        if (short !== undefined) return short;
      } catch (error) {
        this.#noteTime(principal, request, {
          startMs,
          atMs: this.#environment.clock.monotonicMs(),
        });
        return failedResponse(error);
      }
    }
    const { reader } = request;
    if (reader === undefined || request.check === true || idempotency !== undefined) {
      return this.#long(principal, request, { timing });
    }
    const channel = new AnswerChannel(this.#environment.clock, timing.deadline);
    let completed: readonly StatementResult[] = [];
    const onRunner = (runner: RequestRunner): void => {
      completed = runner.completed;
    };
    const whole = this.#long(principal, request, { timing, channel, onRunner });
    return channel.answerOf(whole, () => completed);
  }

  async #long(
    principal: Principal,
    given: SqlRequest,
    { channel, onRunner, timing }: LongWay,
  ): Promise<SqlResponse> {
    const request = withOrigin(given);
    const { idempotency } = request;
    const running = this.#begin(principal, request, timing);
    const environment = this.#environment;
    try {
      if (idempotency === undefined || request.check === true) {
        const runner = new RequestRunner({ environment, principal, request, running, channel });
        onRunner?.(runner);
        return await runner.run();
      }
      const run = (recorder: AnswerRecorder): Promise<SqlResponse> =>
        new RequestRunner({ environment, principal, request, recorder, running }).run();
      const isStillAllowed = async (): Promise<boolean> => {
        const checked = { ...request, check: true };
        const parts = { environment, principal, request: checked, running };
        const { error } = await new RequestRunner(parts).run();
        return error === undefined || !RIGHTS_LOST.has(error.condition);
      };
      return await this.#idempotent
        .execute(principal, idempotency, { run, isStillAllowed })
        .catch(failedResponse);
    } finally {
      this.#letGo(timing.deadline);
      this.#activity.running.end(running);
      const atMs = environment.clock.monotonicMs();
      this.#noteTime(principal, request, { startMs: timing.startMs, atMs });
    }
  }

  #begin({ userId }: Principal, { sql }: SqlRequest, timing: Timing): RunningRequest {
    return this.#activity.running.begin({ userId, sql, ...timing });
  }

  planLive(principal: Principal, request: LiveRequest): LivePlan {
    return planLiveQuery(this.#environment, principal, request);
  }

  /** What a request leaves, however it ended. */
  #letGo({ memory, temporary }: Deadline): void {
    temporary?.close();
    if (memory?.wasLarge === true) collectAfterTurn(this.#environment.clock);
  }

  #noteTime(
    principal: Principal,
    request: SqlRequest,
    { atMs, startMs }: { startMs: number; atMs: number },
  ): void {
    const { slowQueryMs } = this.#environment.limits;
    if (slowQueryMs === 0 || atMs - startMs < slowQueryMs) return;
    this.#logSlow(principal, request, Math.round(atMs - startMs));
  }

  /** Prints the statements anew, so that no password gets into the log. */
  #logSlow({ userId }: Principal, { sql }: SqlRequest, tookMs: number): void {
    const shown = shownSql(sql, parseLimitsOf(this.#environment), { hasLiterals: false });
    this.#environment.log.warn("slow query", { ms: tookMs, user: userId, sql: shown });
  }

  /** Runs the one statement of a text through the plan cache; undefined for the long way. */
  #short(
    principal: Principal,
    request: SqlRequest,
    timing: Timing,
  ): SqlResponse | Promise<SqlResponse> | undefined {
    const { limits } = this.#environment;
    if (request.sql.length > limits.sqlBytesMax) return undefined;
    const { types, values } = typedParameters(request.params, limits);
    const namespace = request.namespace ?? DEFAULT_NAMESPACE;
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    if (key === undefined) return undefined;
    const prepared =
      this.#plans.get(key) ?? this.#prepare(request, { key, namespace, principal, types });
    if (prepared === undefined) return undefined;
    authorize(prepared.requirements, principal, this.#environment.catalog);
    const { deadline } = timing;
    const runner = new StatementRunner(this.#environment, { deadline, reader: request.reader });
    const { literals } = key.normalized;
    const parameters = literals.length === 0 ? values : [...values, ...literalValues(literals)];
    const options = {
      principal,
      namespace,
      transaction: undefined,
      parameters,
      files: undefined,
      renewed: () => this.#renewed(prepared, principal, request),
    };
    const { stats } = this.#activity;
    const stat = stats.known(prepared) ?? stats.of(prepared, () => textOfKey(key.normalized.key));
    const { startMs } = timing;
    // What has been written and waits for the disk is no longer to be killed, and not listed.
    let running: RunningRequest | undefined;
    const ended = (result: StatementResult | undefined, error?: unknown): SqlResponse => {
      const atMs = this.#environment.clock.monotonicMs();
      this.#letGo(timing.deadline);
      if (running !== undefined) this.#activity.running.end(running);
      this.#noteTime(principal, request, { startMs, atMs });
      stat.note(atMs, { ms: atMs - startMs, rows: result?.rowCount ?? 0 });
      if (result !== undefined) {
        if (runner.channel?.isOpen === true) runner.channel.pushEntry(result);
        return { results: [result] };
      }
      const response = failedResponse(error);
      stat.errors += 1;
      return response;
    };
    let asked: StatementResult | Promise<StatementResult>;
    try {
      if (prepared.literals.length > 0) {
        const startOf = (slot: number): number | undefined => literals[slot - values.length]?.start;
        readLiterals(prepared.literals, parameters, startOf);
      }
      asked = runner.run(prepared, options);
    } catch (error) {
      return ended(undefined, error);
    }
    if (!(asked instanceof Promise)) return ended(asked);
    if (prepared.kind === "query" || runner.isUnderWay)
      running = this.#begin(principal, request, timing);
    const response = asked.then(ended, (error: unknown) => ended(undefined, error));
    return runner.channel?.answerOf(response, () => []) ?? response;
  }

  /** A statement as the definitions and rights of this turn have it. */
  #renewed(prepared: Prepared, principal: Principal, request: SqlRequest): Prepared {
    const { catalog, limits } = this.#environment;
    const { types } = typedParameters(request.params, limits);
    const namespace = request.namespace ?? DEFAULT_NAMESPACE;
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    const now =
      key === undefined
        ? prepared
        : (this.#plans.get(key) ??
          this.#prepare(request, { key, namespace, principal, types }) ??
          prepared);
    authorize(now.requirements, principal, catalog);
    return now;
  }

  #prepare(
    { sql }: SqlRequest,
    {
      key,
      namespace,
      principal,
      types,
    }: {
      key: CacheKey;
      namespace: string;
      principal: Principal;
      types: readonly DataType[];
    },
  ): Prepared | undefined {
    const parsed = parseNormalized(sql, key.normalized, parseLimitsOf(this.#environment));
    if (parsed === undefined) return undefined;
    const { parameterCount, statement: node } = parsed;
    if (!isQueryNode(node)) return undefined;
    if (parameterCount !== types.length) return undefined;
    const statement = new StatementBinding(types, statisticsOf(this.#environment));
    const context = dmlContextOf(this.#environment, { namespace, principal, statement });
    const prepared = prepare(node, { context, statement });
    requireNoGap(statement.usedParameters, types.length);
    // Its constants may stand elsewhere in the next text, and it fails there, too.
    if (!hasFaultyLiteral(prepared.literals)) this.#plans.set(key, prepared);
    return prepared;
  }
}

/** What a request is refused with whose caller may no longer do what it once did. */
const RIGHTS_LOST: ReadonlySet<Condition> = new Set(["PERMISSION_DENIED", "SHARED_IMPERSONATION"]);

/** @throws What is no expected failure. */
function failedResponse(error: unknown): SqlResponse {
  if (!(error instanceof DatabaseError)) throw error;
  return { results: [], error: atStatement(error, 0) };
}

/** With the address as it is now: a client that leaves before the end has none any more then. */
function withOrigin(request: SqlRequest): SqlRequest {
  if (request.origin === undefined) return request;
  const { address, requestId } = request.origin;
  return { ...request, origin: { address, requestId } };
}
