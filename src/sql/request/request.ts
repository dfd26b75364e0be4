/**
 * One request: its statements are all bound and authorised first, then run in order.
 * A request with a key is one transaction, begun and committed by its text or around it.
 *
 * A statement behind a definition in the same text may name what that definition makes: when it
 * does not bind at first, it is bound at its turn. Any other fault is found before anything runs.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert, defined } from "../../base/assert.ts";
import { inDoubt } from "../../base/bugs.ts";
import { DatabaseError } from "../../base/errors.ts";
import { TURN_MS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import type { TableWrite } from "../../storage/mod.ts";
import { TEXT, type Value } from "../../types/mod.ts";
import { Administration } from "../administer/administration.ts";
import { noteStatement } from "../administer/audited.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import type { RunningRequest } from "../common/activity.ts";
import type { SqlRequest, SqlResponse, StatementResult } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { isBegin, rowsNode } from "../common/node_kinds.ts";
import type { QueryStat } from "../common/query_stats.ts";
import { bulkShapeOf, textOfStatement } from "../common/query_text.ts";
import { messageResult, rowsResult } from "../common/result.ts";
import {
  type DefiningStatement,
  isAdministering,
  isDefining,
  isReadOnlyNode,
  isShow,
} from "../common/statement_kinds.ts";
import { Definitions } from "../define/definitions.ts";
import { Profile } from "../execute/run/profile.ts";
import { checkDeadline, type RequestLedger } from "../execute/run/request_ledger.ts";
import type { ExplainStatement, Statement } from "../parse/ast/ast.ts";
import { isSelectNode } from "../parse/ast/query_nodes.ts";
import type { NameWorld } from "../prepare/binding_world.ts";
import { explained } from "../prepare/explain.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import { atStatement, failureFrom } from "./at_statement.ts";
import { atCell } from "./faulty_cell.ts";
import type { AnswerRecorder } from "./idempotency.ts";
import { RequestBinding, type Unit } from "./request_binding.ts";
import { RequestSettings } from "./request_settings.ts";
import { statementsOf } from "./request_text.ts";
import { RequestTransaction } from "./request_transaction.ts";
import { StatementRunner, type StatementWorld } from "./statement_runner.ts";

/** What an engine was given, and the system views that it made of that for all its requests. */
export type RequestWorld = SqlEnvironment & NameWorld & Pick<StatementWorld, "readers">;

export interface RequestOptions {
  readonly world: RequestWorld;
  readonly principal: Principal;
  readonly request: SqlRequest;
  /** Of a request with a key: its writes go into the commit. */
  readonly recorder?: AnswerRecorder;
  /** How it is listed. */
  readonly running: RunningRequest;
  /** Where rows go that are too many to be held; without one all are. */
  readonly channel?: AnswerChannel | undefined;
}

export class RequestRunner {
  readonly #world: RequestWorld;
  readonly #principal: Principal;
  readonly #request: SqlRequest;
  readonly #recorder: AnswerRecorder | undefined;
  readonly #running: RunningRequest;
  readonly #ledger: RequestLedger;
  readonly #definitions: Definitions;
  readonly #administration: Administration;
  readonly #runner: StatementRunner;
  readonly #channel: AnswerChannel | undefined;
  readonly #results: StatementResult[] = [];
  /** Lets others run between two statements, or two steps of binding. */
  readonly #pause: () => Promise<void>;
  readonly #binding: RequestBinding;
  readonly #settings: RequestSettings;
  readonly #transaction: RequestTransaction;
  /** Of the statement that is bound or run. */
  #statementIndex = 0;

  constructor({ channel, principal, recorder, request, running, world }: RequestOptions) {
    this.#world = world;
    this.#principal = principal;
    this.#request = request;
    this.#recorder = recorder;
    this.#running = running;
    this.#ledger = running.ledger;
    this.#definitions = new Definitions(world, this.#ledger);
    this.#administration = new Administration(world);
    this.#binding = new RequestBinding({
      world,
      principal,
      request,
      definitions: this.#definitions,
      administration: this.#administration,
      ledger: this.#ledger,
    });
    this.#settings = new RequestSettings(world.limits);
    this.#transaction = new RequestTransaction({
      world,
      ledger: this.#ledger,
      settings: this.#settings,
    });
    this.#channel = channel;
    this.#pause = pauser(world.clock, {
      check: () => checkDeadline(this.#ledger, world.clock),
      firstTurnMs: TURN_MS_MAX,
    });
    this.#runner = new StatementRunner(world, {
      ledger: this.#ledger,
      isStreamed: channel !== undefined,
      channelFor: () => defined(channel, "rows are given away where somebody takes them"),
    });
  }

  /** Entries of the statements that have ended. */
  get completed(): readonly StatementResult[] {
    return this.#results;
  }

  async run(): Promise<SqlResponse> {
    let units: readonly Unit[] = [];
    try {
      const parameters = this.#binding.readParameters();
      units = this.#parse(parameters.length);
      this.#running.statements = units.map(({ node }) => node);
      await this.#bindAll(units, parameters.length);
      if ((this.#request.format ?? "json") !== "json") {
        const rowResultCount = units.filter(({ node }) => returnsRows(node)).length;
        if (rowResultCount > 1) return { results: [], rowResultCount };
      }
      if (this.#request.check === true) {
        for (const unit of units) this.#results.push(this.#checked(unit));
        return { results: this.#results };
      }
      this.#binding.leaveNamespaces();
      this.#statementIndex = 0;
      const isWrapped = this.#recorder !== undefined && !isBegin(units[0]?.node);
      if (isWrapped) this.#transaction.open({ isReadOnly: false, entryIndex: 0 });
      for (const [index, unit] of units.entries()) {
        this.#statementIndex = index;
        await this.#pause();
        const { node } = unit;
        this.#running.asUser = node.type === "execute as" ? node.user.name : this.#principal.userId;
        const result = await this.#timed(() => this.#measured(unit, parameters));
        this.#binding.forget(unit);
        await this.#audit(node);
        this.#results.push(result);
        if (this.#channel?.isOpen === true) this.#channel.pushEntry(result);
      }
      if (isWrapped) await this.#commitWhole();
      this.#transaction.requireClosed();
      return { results: this.#results };
    } catch (error) {
      const failure = failureFrom(this.#transaction.fail(error), {
        world: this.#world,
        principal: this.#principal,
        request: this.#request,
      });
      const failed = units[this.#statementIndex]?.node;
      if (failed !== undefined) await this.#audit(failed, failure);
      const placed = atCell(failure, () => failed);
      // What was undone with its transaction did not happen.
      const results = this.#results.slice(0, this.#transaction.beginIndex);
      return { results, error: atStatement(placed, this.#statementIndex) };
    }
  }

  #parse(parameterCount: number): Unit[] {
    const isRepeatable = this.#recorder !== undefined;
    const options = { limits: this.#world.limits, isRepeatable, parameterCount };
    return statementsOf(this.#request, options).map((node) => ({
      node,
      prepared: undefined,
      catalogVersion: -1,
      namespace: "",
    }));
  }

  /** Binds and authorises all before any runs. */
  async #bindAll(units: readonly Unit[], parameterCount: number): Promise<void> {
    const isAlone = units.length === 1 && this.#request.check !== true;
    for (const [index, unit] of units.entries()) {
      this.#statementIndex = index;
      await this.#pause();
      const steps = this.#binding.bind(unit, { isAlone });
      while (steps.next().done !== true) await this.#pause();
    }
    // The parameters are those of the whole text.
    this.#statementIndex = 0;
    this.#binding.requireNoGap(parameterCount);
  }

  #audit(node: Statement, error?: DatabaseError): Promise<void> {
    const ended = { principal: this.#principal, request: this.#request, error };
    return noteStatement(this.#world.audit, node, {
      ...ended,
      namespace: this.#binding.namespace,
    });
  }

  /** By SET, a statement may have less time than its request. */
  async #timed<Result>(run: () => Promise<Result>): Promise<Result> {
    const ledger = this.#ledger;
    const limitMs = this.#settings.statementTimeoutMs;
    const endMs = this.#world.clock.monotonicMs() + (limitMs ?? Number.POSITIVE_INFINITY);
    if (endMs >= ledger.deadlineMs) return await run();
    // What the statement waits for its reader is added while it runs, and stays added.
    const restMs = ledger.deadlineMs - endMs;
    ledger.deadlineMs = endMs;
    try {
      return await run();
    } finally {
      ledger.deadlineMs += restMs;
    }
  }

  async #measured(unit: Unit, parameters: readonly Value[]): Promise<StatementResult> {
    const { clock } = this.#world;
    const startMs = clock.monotonicMs();
    const note = (rows: number, isError: boolean): void => {
      const atMs = clock.monotonicMs();
      const stat = this.#statOf(unit.node);
      stat.note(atMs, { ms: atMs - startMs, rows });
      if (isError) stat.errors += 1;
    };
    try {
      const result = await this.#runUnit(unit, parameters);
      note(result.rowCount, false);
      return result;
    } catch (error) {
      note(0, true);
      throw error;
    }
  }

  #statOf(node: Statement): QueryStat {
    const { stats } = this.#world.activity;
    const shape = bulkShapeOf(node, this.#request.sql);
    if (shape === undefined) return stats.of(node, textOfStatement, node);
    return stats.ofShape(shape, () => textOfStatement(node));
  }

  async #runUnit(unit: Unit, parameters: readonly Value[]): Promise<StatementResult> {
    const { node } = unit;
    switch (node.type) {
      case "begin":
      case "start transaction":
        this.#transaction.begin(node, this.#results.length);
        return messageResult("Transaction started", this.#principal.userId);
      case "commit": {
        const result = messageResult("Transaction committed", this.#principal.userId);
        const lastSeq = await this.#commit(result);
        return { ...result, lastSeq };
      }
      case "rollback":
        this.#transaction.rollback();
        return messageResult("Transaction rolled back", this.#principal.userId);
      case "use namespace":
        this.#binding.useNamespace(node);
        return messageResult(`Namespace ${node.name.name} in use`, this.#principal.userId);
      case "set":
      case "set timezone":
        this.#administration.authorize(node, this.#principal);
        return messageResult(this.#settings.set(node), this.#principal.userId);
      default:
        break;
    }
    const steps = this.#binding.renew(unit);
    while (steps.next().done !== true) await this.#pause();
    const prepared = this.#binding.renewed(unit);
    if (prepared !== undefined) {
      this.#transaction.requireUsable();
      readLiterals(prepared.literals);
      if (node.type === "explain") return this.#explain(node, unit, parameters);
      return this.#runner.run(prepared, {
        principal: this.#binding.principalOf(node),
        namespace: this.#binding.namespace,
        transaction: this.#transaction.current,
        parameters,
        files: this.#request.files,
        source: () => this.#binding.sourceOf(unit),
        renewed: () => this.#binding.renewed(unit) ?? prepared,
      });
    }
    if (this.#transaction.current !== undefined && !isReadOnlyNode(node)) {
      throw new DatabaseError(
        "INVALID_TRANSACTION_STATE",
        `Cannot run ${node.type.toUpperCase()} inside a transaction`,
        { position: node._location.start },
      );
    }
    const principal = this.#principal;
    const { namespace } = this.#binding;
    if (isDefining(node)) return this.#define(node, namespace);
    assert(isAdministering(node), "all other statements have had their turn");
    const { params, server } = this.#request;
    const requestSettings = this.#settings.rows();
    return this.#administration.run(node, {
      principal,
      namespace,
      server,
      requestSettings,
      params,
      ledger: this.#ledger,
    });
  }

  /** A failure after the catalog changed is in doubt, because the other layers have to follow. */
  async #define(node: DefiningStatement, namespace: string): Promise<StatementResult> {
    const { catalog } = this.#world;
    const { version } = catalog;
    try {
      return await this.#definitions.run(node, this.#principal, namespace);
    } catch (error) {
      throw catalog.version === version ? error : inDoubt(error);
    }
  }

  async #explain(
    node: ExplainStatement,
    unit: Unit,
    parameters: readonly Value[],
  ): Promise<StatementResult> {
    const prepared = defined(unit.prepared, "it was bound for its turn");
    const principal = this.#principal;
    const { clock } = this.#world;
    const startMs = clock.monotonicMs();
    const profile = node.analyze ? new Profile(clock) : undefined;
    let isPlannedAnew = false;
    const outcome =
      profile === undefined
        ? undefined
        : await this.#runner.run(prepared, {
            principal,
            namespace: this.#binding.namespace,
            transaction: this.#transaction.current,
            parameters,
            files: undefined,
            profile,
            source: () => this.#binding.sourceOf(unit),
            renewed: () => {
              // A reader plans it now, too, by the number of rows that there are now.
              if (!isPlannedAnew) this.#binding.forget(unit);
              isPlannedAnew = true;
              return this.#binding.renewed(unit) ?? prepared;
            },
          });
    const tookMs = clock.monotonicMs() - startMs;
    const call = { principal, slots: parameters, profile, outcome, tookMs };
    // It may have been bound again while it waited.
    return explained(node, unit.prepared ?? prepared, { call, store: this.#world.store });
  }

  /**
   * Returns the last seq, null when nothing was to be written.
   *
   * @param entry The entry of COMMIT, without its `last_seq`; absent when the text has none.
   */
  #commit(entry?: StatementResult): Promise<number | null> {
    return this.#transaction.commit((changesRows) => this.#recordOf(entry, changesRows));
  }

  /** Commits a request without a COMMIT of its own: its last change has the `last_seq`. */
  async #commitWhole(): Promise<void> {
    const lastSeq = await this.#commit();
    const index = this.#lastChangeIndex();
    const entry = this.#results[index];
    if (lastSeq !== null && entry !== undefined) this.#results[index] = { ...entry, lastSeq };
  }

  /** Below 0 when no statement changed a row. */
  #lastChangeIndex(): number {
    return this.#results.findLastIndex(({ lastSeq, rowCount }) => lastSeq === null && rowCount > 0);
  }

  /** The writes that record the answer to a request with a key; none if no row changes. */
  #recordOf(entry: StatementResult | undefined, changesRows: boolean): readonly TableWrite[] {
    if (this.#recorder === undefined || !changesRows) return [];
    const results =
      entry === undefined ? this.#results : [...this.#results, { ...entry, lastSeq: null }];
    const index = entry === undefined ? this.#lastChangeIndex() : results.length - 1;
    return this.#recorder(index >= 0 ? { results, commitIndex: index } : { results });
  }

  #checked({ node, prepared }: Unit): StatementResult {
    const asUser = this.#binding.principalOf(node).userId;
    const result = messageResult("checked", asUser);
    if (node.type === "explain") {
      const { schema = [] } = rowsResult([{ name: "plan", type: TEXT }], [], asUser);
      return { ...result, schema, rows: [] };
    }
    return prepared?.fields === undefined
      ? result
      : { ...result, schema: prepared.fields, rows: [] };
  }
}

function returnsRows(node: Statement): boolean {
  if (node.type === "explain" || isShow(node)) return true;
  const rows = rowsNode(node);
  if (rows === undefined) return false;
  return isSelectNode(rows) || ("returning" in rows && rows.returning !== undefined);
}
