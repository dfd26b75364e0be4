/**
 * The SQL engine: the short way for one cached statement, and the long way for everything else.
 */
import type { Principal } from "../auth/mod.ts";
import { defined } from "../base/assert.ts";
import { type Condition, DatabaseError } from "../base/errors.ts";
import { collectAfterTurn } from "../base/garbage.ts";
import { DEFAULT_NAMESPACE } from "../catalog/mod.ts";
import type { DataType, Value } from "../types/mod.ts";
import { StatementBinding } from "./bind/binding.ts";
import { hasFaultyLiteral, readLiterals } from "./bind/expression/untyped_literals.ts";
import { type Activity, areJobs, type RunningRequest, shownSql } from "./common/activity.ts";
import type {
  LivePlan,
  LiveRequest,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  StatementResult,
} from "./common/engine.ts";
import type { SqlEnvironment } from "./common/environment.ts";
import { isQueryNode } from "./common/node_kinds.ts";
import { parseLimitsOf, requireNoGap, typedParameters } from "./common/parameters.ts";
import type { QueryStat } from "./common/query_stats.ts";
import { textOfKey } from "./common/query_text.ts";
import { newLedger, type RequestLedger } from "./execute/run/request_ledger.ts";
import type { Statement } from "./parse/ast/ast.ts";
import { parseNormalized, parseStatements } from "./parse/parser.ts";
import type { SlotLiteral } from "./parse/text/normalize.ts";
import { planLiveQuery } from "./prepare/live_planner.ts";
import { type CacheKey, literalValues, PlanCache } from "./prepare/plan_cache.ts";
import { authorize, boundFor, type Prepared, prepare } from "./prepare/prepared.ts";
import { dmlWorldOf, statisticsOf } from "./prepare/relation_source.ts";
import { AnswerChannel } from "./request/answer_stream.ts";
import { atStatement, failureFrom } from "./request/at_statement.ts";
import { atCell } from "./request/faulty_cell.ts";
import { type AnswerRecorder, IdempotentRequests } from "./request/idempotency.ts";
import { RequestRunner, type RequestWorld } from "./request/request.ts";
import {
  type RunnerOptions,
  type RunOptions,
  StatementRunner,
  Written,
} from "./request/statement_runner.ts";
import { systemViewsOf } from "./system/system_views.ts";

/** How a request goes that the plan cache does not know. */
interface LongWay {
  readonly ledger: RequestLedger;
  /** Where rows go that are too many to be held. */
  readonly channel?: AnswerChannel;
  readonly onRunner?: (runner: RequestRunner) => void;
}

/** One statement on its short way: made once, as what its run and its end ask for. */
class ShortRun implements RunOptions, RunnerOptions {
  readonly principal: Principal;
  readonly namespace: string;
  readonly parameters: readonly Value[];
  /** The last of the parameters, as they stand in the text. */
  readonly literals: readonly SlotLiteral[];
  readonly transaction: undefined;
  readonly files: undefined;
  readonly request: SqlRequest;
  readonly prepared: Prepared;
  readonly stat: QueryStat;
  readonly ledger: RequestLedger;
  readonly isStreamed: boolean;
  /** Once it is longer than a turn. */
  channel: AnswerChannel | undefined;
  /** Once it is listed. */
  running: RunningRequest | undefined;
  readonly #engine: EngineOfRun;

  constructor(options: ShortRunOptions) {
    this.principal = options.principal;
    this.namespace = options.namespace;
    this.parameters = options.parameters;
    this.literals = options.literals;
    this.request = options.request;
    this.prepared = options.prepared;
    this.stat = options.stat;
    this.ledger = options.ledger;
    this.isStreamed = options.request.reader !== undefined;
    this.#engine = options.engine;
  }

  renewed(): Prepared {
    return this.#engine.renewed(this);
  }

  channelFor(): AnswerChannel {
    this.channel ??= this.#engine.channelOf(this.request, this.ledger);
    return this.channel;
  }

  /** Where the literal of a slot begins in the text; undefined for a parameter. */
  startOf(slot: number): number | undefined {
    return this.literals[slot - this.parameters.length + this.literals.length]?.start;
  }
}

type ShortRunOptions = Pick<
  ShortRun,
  "principal" | "namespace" | "parameters" | "literals" | "request" | "ledger" | "prepared" | "stat"
> & { readonly engine: EngineOfRun };

/** What a run asks of its engine. */
interface EngineOfRun {
  renewed(run: ShortRun): Prepared;
  channelOf(request: SqlRequest, ledger: RequestLedger): AnswerChannel;
}

export class LocalSqlEngine implements SqlEngine {
  readonly #world: RequestWorld;
  readonly #plans: PlanCache;
  readonly #idempotent: IdempotentRequests;
  readonly #activity: Activity;
  readonly #engineOfRuns: EngineOfRun = {
    renewed: (run) => this.#renewed(run),
    channelOf: (request, ledger) => this.#channelOf(request, ledger),
  };

  constructor(environment: SqlEnvironment) {
    this.#world = { ...environment, systemViews: systemViewsOf(environment) };
    this.#plans = new PlanCache(environment.catalog);
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
        const short = this.#short(principal, request, ledger);
        if (short !== undefined) return short;
      } catch (error) {
        this.#close(principal, request, ledger);
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
    const channel = this.#channelOf(request, ledger);
    let completed: readonly StatementResult[] = [];
    const onRunner = (runner: RequestRunner): void => {
      completed = runner.completed;
    };
    const whole = this.#long(principal, request, { ledger, channel, onRunner });
    return channel.answerOf(whole, () => completed);
  }

  #channelOf({ reader }: SqlRequest, ledger: RequestLedger): AnswerChannel {
    const { clock } = this.#world;
    return new AnswerChannel({ clock, ledger, reader: defined(reader, "somebody reads") });
  }

  async #long(
    principal: Principal,
    given: SqlRequest,
    { channel, ledger, onRunner }: LongWay,
  ): Promise<SqlResponse> {
    const request = withOrigin(given);
    const { idempotency } = request;
    const running = this.#begin(principal, request, ledger);
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
      this.#close(principal, request, ledger);
    }
  }

  #begin({ userId }: Principal, { sql }: SqlRequest, ledger: RequestLedger): RunningRequest {
    return this.#activity.running.begin({ userId, sql, ledger });
  }

  planLive(principal: Principal, request: LiveRequest): LivePlan {
    return planLiveQuery(this.#world, principal, request);
  }

  shutDown(): number {
    return this.#activity.running.shutDown();
  }

  /** Gives back what a request holds, however it ended. Returns when that was. */
  #close(principal: Principal, request: SqlRequest, ledger: RequestLedger): number {
    const { clock, limits } = this.#world;
    const atMs = clock.monotonicMs();
    const { memory, startMs, temporary } = ledger;
    temporary?.close();
    if (memory?.wasLarge === true) collectAfterTurn(clock);
    const { slowQueryMs } = limits;
    if (slowQueryMs !== 0 && atMs - startMs >= slowQueryMs) {
      this.#logSlow(principal, request, Math.round(atMs - startMs));
    }
    return atMs;
  }

  /** Prints the statements anew, so that no password gets into the log. */
  #logSlow({ userId }: Principal, { origin, sql }: SqlRequest, tookMs: number): void {
    const limits = parseLimitsOf(this.#world.limits);
    if (areJobs(sql, limits)) return;
    const shown = shownSql(sql, limits, { hasLiterals: false });
    this.#world.log.warn("slow query", {
      ms: tookMs,
      user: userId,
      request: origin?.requestId,
      sql: shown,
    });
  }

  /** Runs the one statement of a text through the plan cache; undefined for the long way. */
  #short(
    principal: Principal,
    request: SqlRequest,
    ledger: RequestLedger,
  ): SqlResponse | Promise<SqlResponse> | undefined {
    const { limits } = this.#world;
    if (request.sql.length > limits.sqlBytesMax) return undefined;
    const { types, values } = typedParameters(request.params, limits);
    const namespace = request.namespace ?? DEFAULT_NAMESPACE;
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    if (key === undefined) return undefined;
    const prepared =
      this.#plans.get(key) ?? this.#prepareFirst(request, { key, namespace, principal, types });
    if (prepared === undefined) return undefined;
    authorize(prepared.requirements, principal, this.#world.catalog);
    const { stats } = this.#activity;
    const { literals } = key.normalized;
    const run = new ShortRun({
      principal,
      namespace,
      parameters: literals.length === 0 ? values : [...values, ...literalValues(literals)],
      literals,
      request,
      ledger,
      prepared,
      stat: stats.of(prepared, textOfKey, key.normalized.key),
      engine: this.#engineOfRuns,
    });
    return this.#run(run, new StatementRunner(this.#world, run));
  }

  #run(run: ShortRun, runner: StatementRunner): SqlResponse | Promise<SqlResponse> {
    const { prepared } = run;
    let asked: StatementResult | Written | Promise<StatementResult>;
    try {
      if (prepared.literals.length > 0) {
        readLiterals(prepared.literals, run.parameters, (slot) => run.startOf(slot));
      }
      asked = runner.begin(prepared, run);
    } catch (error) {
      return this.#failed(run, error);
    }
    if (asked instanceof Written) return this.#endedOnDisk(run, asked);
    if (!(asked instanceof Promise)) return this.#ended(run, asked);
    if (prepared.kind === "query" || runner.isUnderWay) {
      run.running = this.#begin(run.principal, run.request, run.ledger);
    }
    return this.#endedLater(run, asked);
  }

  /** What has been written and waits for the disk is no longer to be killed, and not listed. */
  #endedOnDisk(run: ShortRun, { durable, result }: Written): Promise<SqlResponse> {
    return durable.then(
      () => this.#ended(run, result),
      (error: unknown) => this.#failed(run, error),
    );
  }

  #endedLater(run: ShortRun, asked: Promise<StatementResult>): Promise<SqlResponse> {
    const response = asked.then(
      (result) => {
        const ended = this.#ended(run, result);
        if (run.channel?.isOpen === true) run.channel.pushEntry(result);
        return ended;
      },
      (error: unknown) => this.#failed(run, error),
    );
    return run.channel?.answerOf(response, () => []) ?? response;
  }

  #ended(run: ShortRun, result: StatementResult): SqlResponse {
    this.#noteEnd(run, result.rowCount);
    return { results: [result] };
  }

  /** @throws What is no expected failure. */
  #failed(run: ShortRun, error: unknown): SqlResponse {
    this.#noteEnd(run, 0);
    const response = failedResponse(
      error instanceof DatabaseError ? atCell(error, () => this.#statementOf(run)) : error,
    );
    run.stat.errors += 1;
    return response;
  }

  /** The statement with its literals, as they stand in the text. */
  #statementOf({ request }: ShortRun): Statement | undefined {
    return parseStatements(request.sql, parseLimitsOf(this.#world.limits))[0];
  }

  #noteEnd(run: ShortRun, rowCount: number): void {
    const { ledger, principal, request, running, stat } = run;
    if (running !== undefined) this.#activity.running.end(running);
    const atMs = this.#close(principal, request, ledger);
    stat.note(atMs, { ms: atMs - ledger.startMs, rows: rowCount });
  }

  /** A statement as the definitions and rights of this turn have it. */
  #renewed({ namespace, prepared, principal, request }: ShortRun): Prepared {
    const { catalog, limits } = this.#world;
    const { types } = typedParameters(request.params, limits);
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

  /** The statement without its literals; undefined where it may be valid only with them. */
  #prepareFirst(request: SqlRequest, keyed: KeyedText): Prepared | undefined {
    try {
      return this.#prepare(request, keyed);
    } catch (error) {
      const isOfQuery = error instanceof DatabaseError && error.condition === "INVALID_QUERY";
      // Two queries that are one expression by their equal literals differ without them.
      if (isOfQuery && keyed.key.normalized.literals.length > 0) return undefined;
      throw error;
    }
  }

  #prepare({ sql }: SqlRequest, keyed: KeyedText): Prepared | undefined {
    const { key, namespace, principal, types } = keyed;
    const parsed = parseNormalized(sql, key.normalized, parseLimitsOf(this.#world.limits));
    if (parsed === undefined) return undefined;
    const { parameterCount, statement: node } = parsed;
    if (!isQueryNode(node)) return undefined;
    if (parameterCount !== types.length) return undefined;
    const statement = new StatementBinding(types, statisticsOf(this.#world));
    const world = dmlWorldOf(this.#world, { namespace, principal, statement });
    const { catalog } = this.#world;
    const prepared = boundFor({ catalog, principal, statement }, () =>
      prepare(node, { world, statement }),
    );
    requireNoGap(statement.usedParameters, types.length);
    // Its constants may stand elsewhere in the next text, and it fails there, too.
    if (!hasFaultyLiteral(prepared.literals)) this.#plans.set(key, prepared);
    return prepared;
  }
}

/** A text by its key in the plan cache, with what else its plan depends on. */
interface KeyedText {
  readonly key: CacheKey;
  readonly namespace: string;
  readonly principal: Principal;
  readonly types: readonly DataType[];
}

/** What a request is refused with whose caller may no longer do what it once did. */
const RIGHTS_LOST: ReadonlySet<Condition> = new Set(["PERMISSION_DENIED", "SHARED_IMPERSONATION"]);

/** @throws What is no expected failure. */
function failedResponse(error: unknown): SqlResponse {
  return { results: [], error: atStatement(failureFrom(error), 0) };
}

/** With the address as it is now: a client that leaves before the end has none any more then. */
function withOrigin(request: SqlRequest): SqlRequest {
  if (request.origin === undefined) return request;
  const { address, requestId } = request.origin;
  return { ...request, origin: { address, requestId } };
}
