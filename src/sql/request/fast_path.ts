/**
 * Implements the fast path, for requests with a single statement whose plan is or can be cached.
 *
 * The literals are lifted out of the SQL, and the rest is the key of the plan. A request that
 * cannot use this path is recognised before anything runs, and takes the general path. Objects
 * that only some executions need are created on demand, because most executions end in the tick in
 * which they began.
 *
 * A request should allocate little memory: when the garbage of a lookup by key was halved from 10
 * KB, its time was nearly halved as well. Such lookups and plain INSERTs therefore create no
 * operators, no closures per row, and no unneeded promises.
 */

import type { Principal } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { DEFAULT_NAMESPACE } from "../../catalog/mod.ts";
import type { DataType, Value } from "../../types/mod.ts";
import type { Activity, RunningRequest } from "../activity/activity.ts";
import type { QueryStat } from "../activity/query_stats.ts";
import { textOfKey } from "../activity/query_text.ts";
import type { MemoryGate } from "../admission/memory_gate.ts";
import { StatementBinding } from "../bind/binding.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import { hasFaultyLiteral, readLiterals } from "../bind/expression/untyped_literals.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { Statement } from "../parse/ast/ast.ts";
import { copySourceNode, isQueryNode } from "../parse/ast/query_nodes.ts";
import { parseNormalized, parseStatements } from "../parse/parser.ts";
import type { SlotLiteral } from "../parse/text/normalize.ts";
import type { SqlRequest, SqlResponse, StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { parseLimitsOf, requireNoGap, typedParameters } from "../ports/parameters.ts";
import { type BindingDeps, dmlDepsOf, statisticsOf } from "../prepare/binding_deps.ts";
import { type CacheKey, literalValues, type PlanCache } from "../prepare/plan_cache.ts";
import { boundFor, type Prepared, prepare } from "../prepare/prepared.ts";
import { watchOf } from "../prepare/statement_watch.ts";
import type { QuerySource } from "../readers/reader.ts";
import { authorize, meetsAll, seesTables } from "../rights/requirements.ts";
import { type AnswerChannel, channelOf } from "./answer_stream.ts";
import { failedResponse } from "./at_statement.ts";
import { atCell } from "./faulty_cell.ts";
import { callsPrograms } from "./read_elsewhere.ts";
import { closeRequest } from "./request_end.ts";
import { RequestSettings } from "./request_settings.ts";
import type { RunnerOptions, RunOptions, StatementDeps } from "./run_options.ts";
import { StatementRunner } from "./statement_runner.ts";

/**
 * A statement on the fast path. The object is created once, and implements all interfaces that are
 * needed to run and to end the statement.
 */
class FastStatement implements RunOptions, RunnerOptions {
  readonly principal: Principal;
  readonly namespace: string;
  readonly parameters: readonly Value[];
  /**
   * The lifted literals as they are written in the SQL. Their values come last among the
   * parameters.
   */
  readonly literals: readonly SlotLiteral[];
  readonly transaction: undefined;
  readonly files: undefined;
  readonly request: SqlRequest;
  readonly prepared: Prepared;
  readonly stat: QueryStat;
  readonly ledger: RequestLedger;
  readonly isStreamed: boolean;
  #settings: RequestSettings | undefined;
  /**
   * The channel through which rows are streamed; undefined until the statement has taken longer
   * than a time slice.
   */
  channel: AnswerChannel | undefined;
  /**
   * The entry in the list of running requests; undefined until the statement is added to the list.
   */
  running: RunningRequest | undefined;
  readonly #operations: PathOperations;

  constructor(options: FastStatementOptions) {
    this.principal = options.principal;
    this.namespace = options.namespace;
    this.parameters = options.parameters;
    this.literals = options.literals;
    this.request = options.request;
    this.prepared = options.prepared;
    this.stat = options.stat;
    this.ledger = options.ledger;
    this.isStreamed = options.request.reader !== undefined;
    this.#operations = options.operations;
  }

  /**
   * The settings of the request. No earlier statement can have changed them, because the request
   * consists of a single statement.
   */
  get settings(): RequestSettings {
    this.#settings ??= this.#operations.newSettings();
    return this.#settings;
  }

  renewed(): Prepared {
    return this.#operations.renewed(this);
  }

  source(): QuerySource | undefined {
    return this.#operations.sourceOf(this);
  }

  channelFor(): AnswerChannel {
    const { clock, memoryGate } = this.#operations;
    this.channel ??= channelOf(this.request, { clock, ledger: this.ledger, memoryGate });
    return this.channel;
  }

  /**
   * Returns the position, in the SQL, of the literal in a slot; undefined if the slot is a
   * parameter.
   */
  startOf(slot: number): number | undefined {
    return this.literals[slot - this.parameters.length + this.literals.length]?.start;
  }
}

type FastStatementOptions = Pick<
  FastStatement,
  "principal" | "namespace" | "parameters" | "literals" | "request" | "ledger" | "prepared" | "stat"
> & { readonly operations: PathOperations };

/** Operations of the fast path that a running statement calls. */
interface PathOperations {
  renewed(statement: FastStatement): Prepared;
  sourceOf(statement: FastStatement): QuerySource | undefined;
  newSettings(): RequestSettings;
  readonly clock: Clock;
  readonly memoryGate: MemoryGate;
}

/** An SQL text with its key in the plan cache, and everything else on which its plan depends. */
interface KeyedText {
  readonly key: CacheKey;
  readonly namespace: string;
  readonly principal: Principal;
  readonly types: readonly DataType[];
  /** The ledger of the request for which the statement is prepared. */
  readonly ledger: RequestLedger;
}

/** The parts of the SQL environment that the fast path needs. */
interface FastPathDeps
  extends BindingDeps,
    StatementDeps,
    Pick<SqlEnvironment, "activity" | "bugs" | "limits" | "log"> {
  readonly plans: PlanCache;
}

export class FastPath {
  readonly #deps: FastPathDeps;
  readonly #plans: PlanCache;
  readonly #activity: Activity;
  readonly #operations: PathOperations;

  constructor(deps: FastPathDeps) {
    this.#deps = deps;
    this.#plans = deps.plans;
    this.#activity = deps.activity;
    this.#operations = {
      clock: deps.clock,
      memoryGate: deps.memoryGate,
      newSettings: () => new RequestSettings(deps),
      renewed: (statement) => this.#renewed(statement),
      sourceOf: (statement) => this.#sourceOf(statement),
    };
  }

  /**
   * Runs SQL that consists of one statement, using the plan cache. Returns undefined if the
   * request has to take the general path.
   *
   * @throws errors that occur before the statement runs; the caller then closes the request
   */
  run(
    principal: Principal,
    request: SqlRequest,
    ledger: RequestLedger,
  ): SqlResponse | Promise<SqlResponse> | undefined {
    const { limits } = this.#deps;
    if (request.sql.length > limits.sqlBytesMax) return undefined;
    const { types, values } = typedParameters(request.params, limits);
    const namespace = request.namespace ?? DEFAULT_NAMESPACE;
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    if (key === undefined) return undefined;
    const known = this.#plans.get(key, principal);
    const prepared =
      known !== undefined && meetsAll(known.requirements, principal, this.#deps.catalog)
        ? known
        : this.#prepareOwn(known, request, { key, namespace, principal, types, ledger });
    if (prepared === undefined) return undefined;
    const { stats } = this.#activity;
    const { literals } = key.normalized;
    const statement = new FastStatement({
      principal,
      namespace,
      parameters: literals.length === 0 ? values : [...values, ...literalValues(literals)],
      literals,
      request,
      ledger,
      prepared,
      stat: stats.of(prepared, textOfKey, key.normalized.key),
      operations: this.#operations,
    });
    return this.#run(statement, new StatementRunner(this.#deps, statement));
  }

  #run(statement: FastStatement, runner: StatementRunner): SqlResponse | Promise<SqlResponse> {
    const { prepared } = statement;
    let asked: StatementResult | Promise<StatementResult>;
    try {
      if (prepared.literals.length > 0) {
        readLiterals(prepared.literals, statement.parameters, (slot) => statement.startOf(slot));
      }
      asked = runner.run(prepared, statement);
    } catch (error) {
      return this.#failed(statement, error);
    }
    if (!(asked instanceof Promise)) return this.#ended(statement, asked);
    // A change that is only waiting for the disk can no longer be killed, so it is not added to
    // the list of running requests.
    if (prepared.kind === "query" || runner.isUnderWay) statement.running = this.#begin(statement);
    return this.#endedLater(statement, asked);
  }

  #begin({ ledger, principal, request }: FastStatement): RunningRequest {
    const { userId } = principal;
    return this.#activity.running.begin({ userId, sql: request.sql, ledger });
  }

  #endedLater(statement: FastStatement, asked: Promise<StatementResult>): Promise<SqlResponse> {
    const response = asked.then(
      (result) => {
        const ended = this.#ended(statement, result);
        if (statement.channel?.isOpen === true) statement.channel.pushEntry(result);
        return ended;
      },
      (error: unknown) => this.#failed(statement, error),
    );
    return statement.channel?.answerOf(response, () => []) ?? response;
  }

  #ended(statement: FastStatement, result: StatementResult): SqlResponse {
    this.#noteEnd(statement, result.rowCount);
    return { results: [result] };
  }

  /**
   * Returns the response to a failed statement.
   * @throws the errors of {@linkcode failedResponse}
   */
  #failed(statement: FastStatement, error: unknown): SqlResponse {
    this.#noteEnd(statement, 0);
    statement.stat.errors += 1;
    const { principal, request } = statement;
    return failedResponse(
      error instanceof DatabaseError ? atCell(error, () => this.#statementOf(statement)) : error,
      { deps: this.#deps, principal, request },
    );
  }

  /** Parses the statement without lifting its literals out. */
  #statementOf({ request }: FastStatement): Statement | undefined {
    return parseStatements(request.sql, parseLimitsOf(this.#deps.limits))[0];
  }

  #noteEnd(statement: FastStatement, rowCount: number): void {
    const { ledger, running, stat } = statement;
    if (running !== undefined) this.#activity.running.end(running);
    const atMs = closeRequest(this.#deps, statement);
    stat.note(atMs, { ms: atMs - ledger.startMs, rows: rowCount });
  }

  /**
   * Returns the statement, bound with the definitions and rights that are current in this tick.
   */
  #renewed({ ledger, namespace, prepared, principal, request }: FastStatement): Prepared {
    const { catalog, limits } = this.#deps;
    const { types } = typedParameters(request.params, limits);
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    const now =
      key === undefined
        ? prepared
        : (this.#plans.get(key, principal) ??
          this.#prepare(request, { key, namespace, principal, types, ledger }) ??
          prepared);
    authorize(now.requirements, principal, catalog);
    return now;
  }

  /**
   * Returns the input from which a reader compiles the plan. The SQL is parsed again, because this
   * input is seldom needed.
   */
  #sourceOf({ namespace, request }: FastStatement): QuerySource | undefined {
    const { limits } = this.#deps;
    const { types } = typedParameters(request.params, limits);
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    if (key === undefined) return undefined;
    const parsed = parseNormalized(request.sql, key.normalized, parseLimitsOf(limits));
    const node = parsed?.statement;
    if (node === undefined || !isQueryNode(node)) return undefined;
    return { node: withTypes(node, typesIn(this.#deps.catalog, namespace)), types };
  }

  /**
   * Prepares the statement if no plan is cached, or if the caller lacks a right that the cached
   * plan needs.
   *
   * @throws {DatabaseError} PERMISSION_DENIED
   */
  #prepareOwn(
    known: Prepared | undefined,
    request: SqlRequest,
    keyed: KeyedText,
  ): Prepared | undefined {
    const { principal } = keyed;
    const { catalog } = this.#deps;
    // A plan prepared for another caller may read a table that is hidden from this caller.
    const isSeen = known !== undefined && seesTables(known.requirements, principal, catalog);
    const prepared = isSeen ? known : this.#prepareFirst(request, keyed);
    if (prepared !== undefined) authorize(prepared.requirements, principal, catalog);
    return prepared;
  }

  /**
   * Prepares the statement with its literals lifted out. Returns undefined if the statement may be
   * valid only with its literals.
   */
  #prepareFirst(request: SqlRequest, keyed: KeyedText): Prepared | undefined {
    try {
      return this.#prepare(request, keyed);
    } catch (error) {
      const isOfQuery = error instanceof DatabaseError && error.code === "INVALID_QUERY";
      // Two expressions with the same text, as in GROUP BY, may differ once their literals have
      // become slots.
      if (isOfQuery && keyed.key.normalized.literals.length > 0) return undefined;
      throw error;
    }
  }

  #prepare({ sql }: SqlRequest, keyed: KeyedText): Prepared | undefined {
    const { key, ledger, namespace, principal, types } = keyed;
    const parsed = parseNormalized(sql, key.normalized, parseLimitsOf(this.#deps.limits));
    if (parsed === undefined) return undefined;
    const { parameterCount, statement: node } = parsed;
    if (!isQueryNode(node) || copySourceNode(node) !== undefined) return undefined;
    if (parameterCount !== types.length) return undefined;
    withTypes(node, typesIn(this.#deps.catalog, namespace));
    const statement = new StatementBinding(types, {
      statistics: statisticsOf(this.#deps),
      watch: watchOf(ledger, this.#deps),
    });
    const deps = dmlDepsOf(this.#deps, { namespace, principal, statement });
    const { catalog } = this.#deps;
    const prepared = boundFor({ catalog, principal, statement }, () =>
      prepare(node, { deps, statement }),
    );
    requireNoGap(statement.usedParameters, types.length);
    // A program may need a transaction and several statements, so it takes the general path.
    // If a constant cannot be converted, the plan is not cached, because the constant may be at a
    // different position in the SQL of the next request.
    if (callsPrograms(prepared)) return undefined;
    // The slots of a cursor's row would follow those of the literals.
    if (prepared.kind !== "query" && prepared.currentRow !== undefined) return undefined;
    if (!hasFaultyLiteral(prepared.literals)) this.#plans.set(key, prepared, principal);
    return prepared;
  }
}
