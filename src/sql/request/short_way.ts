/**
 * The short way of a request: one statement whose plan is cached, or can be.
 *
 * The literals of the text are lifted out, and the rest is the key of its plan. What cannot go this
 * way is found before anything runs, and goes the long one. A run makes no object that only some
 * need: most end in the turn in which they began.
 *
 * A request should touch little memory: with 10 KB of garbage a read by key took 38 µs, and with 5
 * KB 22. So such reads and plain INSERTs make no operators, no closures for each row and no
 * promise that nothing waits for.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { DEFAULT_NAMESPACE } from "../../catalog/mod.ts";
import type { DataType, Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { hasFaultyLiteral, readLiterals } from "../bind/expression/untyped_literals.ts";
import type { Activity, RunningRequest } from "../common/activity.ts";
import type { SqlRequest, SqlResponse, StatementResult } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { isQueryNode } from "../common/node_kinds.ts";
import { parseLimitsOf, requireNoGap, typedParameters } from "../common/parameters.ts";
import type { QueryStat } from "../common/query_stats.ts";
import { textOfKey } from "../common/query_text.ts";
import { authorize, meetsAll, seesTables } from "../common/requirements.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import type { Statement } from "../parse/ast/ast.ts";
import { parseNormalized, parseStatements } from "../parse/parser.ts";
import type { SlotLiteral } from "../parse/text/normalize.ts";
import { type BindingWorld, dmlWorldOf, statisticsOf } from "../prepare/binding_world.ts";
import { type CacheKey, literalValues, PlanCache } from "../prepare/plan_cache.ts";
import { boundFor, type Prepared, prepare } from "../prepare/prepared.ts";
import { watchOf } from "../prepare/statement_watch.ts";
import type { QuerySource } from "../readers/reader.ts";
import { type AnswerChannel, channelOf } from "./answer_stream.ts";
import { failedResponse } from "./at_statement.ts";
import { atCell } from "./faulty_cell.ts";
import { closeRequest } from "./request_end.ts";
import {
  type RunnerOptions,
  type RunOptions,
  StatementRunner,
  type StatementWorld,
} from "./statement_runner.ts";

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
  readonly #way: WayOfRun;

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
    this.#way = options.way;
  }

  renewed(): Prepared {
    return this.#way.renewed(this);
  }

  source(): QuerySource | undefined {
    return this.#way.sourceOf(this);
  }

  channelFor(): AnswerChannel {
    this.channel ??= channelOf(this.request, { clock: this.#way.clock, ledger: this.ledger });
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
> & { readonly way: WayOfRun };

/** What a run asks of the way that it is on. */
interface WayOfRun {
  renewed(run: ShortRun): Prepared;
  sourceOf(run: ShortRun): QuerySource | undefined;
  readonly clock: Clock;
}

/** A text by its key in the plan cache, with what else its plan depends on. */
interface KeyedText {
  readonly key: CacheKey;
  readonly namespace: string;
  readonly principal: Principal;
  readonly types: readonly DataType[];
  /** The ledger of the request for which the statement is prepared. */
  readonly ledger: RequestLedger;
}

/** What a statement on its short way takes of its surroundings. */
interface ShortWayWorld
  extends BindingWorld,
    StatementWorld,
    Pick<SqlEnvironment, "activity" | "bugs" | "limits" | "log"> {}

export class ShortWay {
  readonly #world: ShortWayWorld;
  readonly #plans: PlanCache;
  readonly #activity: Activity;
  readonly #wayOfRuns: WayOfRun;

  constructor(world: ShortWayWorld) {
    this.#world = world;
    this.#plans = new PlanCache(world.catalog);
    this.#activity = world.activity;
    this.#wayOfRuns = {
      clock: world.clock,
      renewed: (run) => this.#renewed(run),
      sourceOf: (run) => this.#sourceOf(run),
    };
  }

  /**
   * Runs the one statement of a text through the plan cache; undefined for the long way.
   *
   * @throws What is found before it runs: its caller closes the request.
   */
  run(
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
    const known = this.#plans.get(key);
    const prepared =
      known !== undefined && meetsAll(known.requirements, principal, this.#world.catalog)
        ? known
        : this.#prepareOwn(known, request, { key, namespace, principal, types, ledger });
    if (prepared === undefined) return undefined;
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
      way: this.#wayOfRuns,
    });
    return this.#run(run, new StatementRunner(this.#world, run));
  }

  #run(run: ShortRun, runner: StatementRunner): SqlResponse | Promise<SqlResponse> {
    const { prepared } = run;
    let asked: StatementResult | Promise<StatementResult>;
    try {
      if (prepared.literals.length > 0) {
        readLiterals(prepared.literals, run.parameters, (slot) => run.startOf(slot));
      }
      asked = runner.run(prepared, run);
    } catch (error) {
      return this.#failed(run, error);
    }
    if (!(asked instanceof Promise)) return this.#ended(run, asked);
    // A change that only waits for the disk can no longer be ended, and is not listed.
    if (prepared.kind === "query" || runner.isUnderWay) run.running = this.#begin(run);
    return this.#endedLater(run, asked);
  }

  #begin({ ledger, principal, request }: ShortRun): RunningRequest {
    const { userId } = principal;
    return this.#activity.running.begin({ userId, sql: request.sql, ledger });
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

  /** @throws As {@linkcode failedResponse} does. */
  #failed(run: ShortRun, error: unknown): SqlResponse {
    this.#noteEnd(run, 0);
    run.stat.errors += 1;
    const { principal, request } = run;
    return failedResponse(
      error instanceof DatabaseError ? atCell(error, () => this.#statementOf(run)) : error,
      { world: this.#world, principal, request },
    );
  }

  /** The statement with its literals, as they stand in the text. */
  #statementOf({ request }: ShortRun): Statement | undefined {
    return parseStatements(request.sql, parseLimitsOf(this.#world.limits))[0];
  }

  #noteEnd(run: ShortRun, rowCount: number): void {
    const { ledger, running, stat } = run;
    if (running !== undefined) this.#activity.running.end(running);
    const atMs = closeRequest(this.#world, run);
    stat.note(atMs, { ms: atMs - ledger.startMs, rows: rowCount });
  }

  /** A statement as the definitions and rights of this turn have it. */
  #renewed({ ledger, namespace, prepared, principal, request }: ShortRun): Prepared {
    const { catalog, limits } = this.#world;
    const { types } = typedParameters(request.params, limits);
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    const now =
      key === undefined
        ? prepared
        : (this.#plans.get(key) ??
          this.#prepare(request, { key, namespace, principal, types, ledger }) ??
          prepared);
    authorize(now.requirements, principal, catalog);
    return now;
  }

  /** The source of a plan. It is parsed again, because most plans are never asked for it. */
  #sourceOf({ namespace, request }: ShortRun): QuerySource | undefined {
    const { limits } = this.#world;
    const { types } = typedParameters(request.params, limits);
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    if (key === undefined) return undefined;
    const parsed = parseNormalized(request.sql, key.normalized, parseLimitsOf(limits));
    const node = parsed?.statement;
    return node !== undefined && isQueryNode(node) ? { node, types } : undefined;
  }

  /**
   * The statement for a caller who lacks a right of the plan that is kept, or where none is kept.
   *
   * @throws {DatabaseError} PERMISSION_DENIED
   */
  #prepareOwn(
    known: Prepared | undefined,
    request: SqlRequest,
    keyed: KeyedText,
  ): Prepared | undefined {
    const { principal } = keyed;
    const { catalog } = this.#world;
    // A plan that another caller made may read a table that is hidden from this caller.
    const isSeen = known !== undefined && seesTables(known.requirements, principal, catalog);
    const prepared = isSeen ? known : this.#prepareFirst(request, keyed);
    if (prepared !== undefined) authorize(prepared.requirements, principal, catalog);
    return prepared;
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
    const { key, ledger, namespace, principal, types } = keyed;
    const parsed = parseNormalized(sql, key.normalized, parseLimitsOf(this.#world.limits));
    if (parsed === undefined) return undefined;
    const { parameterCount, statement: node } = parsed;
    if (!isQueryNode(node)) return undefined;
    if (parameterCount !== types.length) return undefined;
    const statement = new StatementBinding(types, {
      statistics: statisticsOf(this.#world),
      watch: watchOf(ledger, this.#world),
    });
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
