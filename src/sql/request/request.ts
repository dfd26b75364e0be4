/**
 * Runs a request. All statements are bound and authorised first, and then run in order. A request
 * with an idempotency key is a single transaction. Either its SQL begins and commits that
 * transaction, or the request itself does so.
 *
 * A statement that follows a definition in the same request may use the new object. If it cannot
 * be bound at first, it is bound just before it runs. Any other error is found before any
 * statement runs.
 */
import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { FIRST_SLICE_MS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import type { TableWrite } from "../../storage/mod.ts";
import { TEXT, type Value } from "../../types/mod.ts";
import type { RunningRequest } from "../activity/activity.ts";
import type { QueryStat } from "../activity/query_stats.ts";
import { bulkShapeOf, textOfStatement } from "../activity/query_text.ts";
import {
  checkDeadline,
  endsRequest,
  type RequestLedger,
} from "../execute/context/request_ledger.ts";
import type { CopyFormat, Statement } from "../parse/ast/ast.ts";
import {
  actedForIn,
  copyToNode,
  isBegin,
  isSelectNode,
  rowsNode,
} from "../parse/ast/query_nodes.ts";
import type { SqlRequest, SqlResponse, StatementResult } from "../ports/engine.ts";
import { messageResult, rowsResult } from "../result/result.ts";
import { isShow } from "../rights/statement_kinds.ts";
import { noteStatement } from "../utility/audited.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import { atStatement, failureFrom } from "./at_statement.ts";
import { requireCopyBodies } from "./copy_statements.ts";
import { atCell } from "./faulty_cell.ts";
import type { AnswerRecorder } from "./idempotency.ts";
import { type BoundUnit, RequestBinding, unboundUnit } from "./request_binding.ts";
import type { RequestDeps } from "./request_deps.ts";
import { RequestScope } from "./request_scope.ts";
import { RequestSettings } from "./request_settings.ts";
import { statementsOf } from "./request_text.ts";
import { RequestTransaction } from "./request_transaction.ts";
import { UnitRunner } from "./unit_runner.ts";

export interface RequestOptions {
  readonly deps: RequestDeps;
  readonly principal: Principal;
  readonly request: SqlRequest;
  /**
   * Returns the writes that record the response to a request with an idempotency key. These writes
   * become part of the request's commit.
   */
  readonly recorder?: AnswerRecorder;
  /** The transaction that the request continues, opened by an earlier request. */
  readonly held?: RequestTransaction | undefined;
  /** The request's entry in the list of running requests. */
  readonly running: RunningRequest;
  /**
   * Streams rows to the client if there are too many to keep in memory. If it is absent, all rows
   * are kept.
   */
  readonly channel?: AnswerChannel | undefined;
}

/**
 * Statements that end a transaction. A ROLLBACK TO after such a statement cannot undo an earlier
 * failure.
 */
const ENDS_TRANSACTION: ReadonlySet<Statement["type"]> = new Set<Statement["type"]>([
  "begin",
  "start transaction",
  "commit",
  "rollback",
]);

export class RequestRunner {
  readonly #deps: RequestDeps;
  readonly #principal: Principal;
  readonly #request: SqlRequest;
  readonly #recorder: AnswerRecorder | undefined;
  readonly #running: RunningRequest;
  readonly #ledger: RequestLedger;
  readonly #scope: RequestScope;
  readonly #unitRunner: UnitRunner;
  readonly #channel: AnswerChannel | undefined;
  readonly #results: StatementResult[] = [];
  /** Lets other work run between two statements or two binding steps. */
  readonly #pause: () => Promise<void>;
  readonly #binding: RequestBinding;
  readonly #settings: RequestSettings;
  readonly #transaction: RequestTransaction;
  readonly #isHeld: boolean;
  /** The format of the data that COPY TO returns; set once the SQL has been parsed. */
  copyFormat: CopyFormat | undefined;
  /** The index of the statement being bound or run. */
  #statementIndex = 0;

  constructor({ channel, held, principal, recorder, request, running, deps }: RequestOptions) {
    this.#deps = deps;
    this.#principal = principal;
    this.#request = request;
    this.#recorder = recorder;
    this.#running = running;
    this.#ledger = running.ledger;
    this.#isHeld = held !== undefined;
    this.#transaction = held ?? newTransaction(deps, this.#ledger);
    this.#settings = this.#transaction.settings;
    this.#channel = channel;
    this.#pause = pauser(deps.clock, {
      check: () => checkDeadline(this.#ledger, deps.clock),
      firstSliceMs: FIRST_SLICE_MS_MAX,
    });
    const { settings } = this.#transaction;
    const ledger = this.#ledger;
    const scope = new RequestScope({
      ledger,
      deps: () => this.#transaction.deps,
      runner: {
        ledger,
        settings,
        isStreamed: channel !== undefined,
        channelFor: () => defined(channel, "request: streamed result has no channel"),
      },
      lockingRunner: { ledger, settings, isStreamed: false, channelFor: refuseChannel },
    });
    this.#scope = scope;
    const common = { scope, principal, request, ledger };
    this.#binding = new RequestBinding(common);
    this.#unitRunner = new UnitRunner({
      ...common,
      binding: this.#binding,
      transaction: this.#transaction,
      pause: this.#pause,
      entryCount: () => this.#results.length,
      commit: (entry) => this.#commit(entry),
    });
  }

  /** The result entries of the completed statements. */
  get completed(): readonly StatementResult[] {
    return this.#results;
  }

  async run(): Promise<SqlResponse> {
    if (this.#isHeld) this.#transaction.continueIn(this.#ledger);
    let units: readonly BoundUnit[] = [];
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
      const isWrapped = this.#recorder !== undefined && !this.#isHeld && !isBegin(units[0]?.node);
      if (isWrapped) this.#transaction.open({ isReadOnly: false, entryIndex: 0 });
      await this.#runAll(units, parameters);
      if (isWrapped) await this.#commitWhole();
      this.#transaction.requireClosed();
      return { results: this.#results };
    } catch (error) {
      const failure = failureFrom(this.#transaction.fail(error), {
        deps: this.#deps,
        principal: this.#principal,
        request: this.#request,
      });
      const failed = units[this.#statementIndex]?.node;
      if (failed !== undefined) await this.#audit(failed, failure);
      const placed = atCell(failure, () => failed);
      // The response does not contain results that were undone together with their transaction.
      const results = this.#results.slice(0, this.#transaction.beginIndex);
      return { results, error: atStatement(placed, this.#statementIndex) };
    }
  }

  #parse(parameterCount: number): BoundUnit[] {
    const isRepeatable = this.#recorder !== undefined;
    const options = {
      limits: this.#deps.limits,
      isRepeatable,
      isHeld: this.#isHeld,
      prepared: this.#transaction.prepared,
      parameterCount,
    };
    const nodes = statementsOf(this.#request, options);
    requireCopyBodies(nodes, this.#request);
    this.copyFormat = nodes[0] && copyToNode(nodes[0])?.options.format;
    // EXECUTE runs a statement that a PREPARE contains, perhaps in an earlier request, so the text
    // of the statement is not the text of this request.
    const isWritten = nodes.length === 1 && this.#transaction.prepared.size === 0;
    return nodes.map((node) => unboundUnit(node, isWritten ? this.#request.sql : undefined));
  }

  /** Binds and authorises all statements before any statement runs. */
  async #bindAll(units: readonly BoundUnit[], parameterCount: number): Promise<void> {
    const isAlone = units.length === 1 && this.#request.check !== true;
    for (const [index, unit] of units.entries()) {
      this.#statementIndex = index;
      await this.#pause();
      const steps = this.#binding.bind(unit, { isAlone });
      while (steps.next().done !== true) await this.#pause();
    }
    // Errors in parameters concern the whole request, so they are reported for its first
    // statement.
    this.#statementIndex = 0;
    this.#binding.requireNoGap(parameterCount);
  }

  /**
   * Runs the statements in order. After a failure, execution continues at the ROLLBACK TO that
   * undoes the failed statement, if there is one.
   */
  async #runAll(units: readonly BoundUnit[], parameters: readonly Value[]): Promise<void> {
    for (let index = 0; index < units.length; index += 1) {
      const unit = defined(units[index], "request: statement index is out of range");
      this.#statementIndex = index;
      await this.#pause();
      const { node } = unit;
      this.#running.asUser = actedForIn(node)?.name ?? this.#principal.userId;
      let result: StatementResult;
      try {
        result = await this.#timed(() => this.#measured(unit, parameters));
      } catch (error) {
        const resumeIndex = this.#undoingIndex(units, index, error);
        if (resumeIndex === undefined) throw error;
        await this.#audit(node, error as DatabaseError);
        this.#results.push(...this.#undoneResults(error as DatabaseError, resumeIndex - index));
        index = resumeIndex - 1;
        continue;
      }
      this.#binding.forget(unit);
      await this.#audit(node);
      this.#results.push(result);
      if (this.#channel?.isOpen === true) this.#channel.pushEntry(result);
    }
  }

  /**
   * Returns the index of the ROLLBACK TO that undoes a failed statement; undefined if the failure
   * ends the request. Rows that the client has already received cannot be taken back.
   */
  #undoingIndex(
    units: readonly BoundUnit[],
    failedIndex: number,
    error: unknown,
  ): number | undefined {
    const isUndoable = error instanceof DatabaseError && !endsRequest(error);
    if (!isUndoable || this.#channel?.isOpen === true) return undefined;
    for (let index = failedIndex + 1; index < units.length; index += 1) {
      const node = units[index]?.node;
      if (node === undefined || ENDS_TRANSACTION.has(node.type)) return undefined;
      if (node.type === "rollback to" && this.#transaction.mayReturnTo(node)) return index;
    }
    return undefined;
  }

  /** Returns the result entries for a failed statement and for the statements skipped after it. */
  #undoneResults({ message }: DatabaseError, count: number): StatementResult[] {
    const { userId } = this.#principal;
    return Array.from({ length: count }, (_, index) =>
      messageResult(index === 0 ? `Failed and rolled back: ${message}` : "Skipped", userId),
    );
  }

  #audit(node: Statement, error?: DatabaseError): Promise<void> {
    const ended = { principal: this.#principal, request: this.#request, error };
    return noteStatement(this.#deps.audit, node, {
      ...ended,
      namespace: this.#binding.namespace,
    });
  }

  /**
   * Runs a statement under statement_timeout, which may be shorter than the time limit of its
   * request.
   */
  async #timed(run: () => Promise<StatementResult>): Promise<StatementResult> {
    const ledger = this.#ledger;
    const limitMs = this.#settings.statementTimeoutMs;
    const endMs = this.#deps.clock.monotonicMs() + (limitMs ?? Number.POSITIVE_INFINITY);
    if (endMs >= ledger.deadlineMs) return await run();
    // The time that the statement waits for its client is added to its deadline. The deadline of
    // the request must be extended as well, so the difference between the two deadlines is added
    // back afterwards.
    const restMs = ledger.deadlineMs - endMs;
    ledger.deadlineMs = endMs;
    try {
      return await run();
    } finally {
      ledger.deadlineMs += restMs;
    }
  }

  async #measured(unit: BoundUnit, parameters: readonly Value[]): Promise<StatementResult> {
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    const note = (rows: number, isError: boolean): void => {
      const atMs = clock.monotonicMs();
      const stat = this.#statOf(unit.node);
      stat.note(atMs, { ms: atMs - startMs, rows });
      if (isError) stat.errors += 1;
    };
    try {
      const result = await this.#unitRunner.run(unit, parameters);
      note(result.rowCount, false);
      return result;
    } catch (error) {
      note(0, true);
      throw error;
    }
  }

  #statOf(node: Statement): QueryStat {
    const { stats } = this.#deps.activity;
    const shape = bulkShapeOf(node, this.#request.sql);
    if (shape === undefined) return stats.of(node, textOfStatement, node);
    return stats.ofShape(shape, () => textOfStatement(node));
  }

  /**
   * Commits the open transaction. Returns the last seq, or null if there was nothing to write.
   *
   * @param entry The result entry of COMMIT, without its `last_seq`; absent if the request has no
   *   COMMIT.
   */
  #commit(entry?: StatementResult): Promise<number | null> {
    return this.#transaction.commit(
      (changesRows) => this.#recordOf(entry, changesRows),
      (transaction) => this.#scope.lockingRunner.runDeferred(transaction),
    );
  }

  /**
   * Commits a request that contains no COMMIT. The entry of its last change gets the `last_seq`.
   */
  async #commitWhole(): Promise<void> {
    const lastSeq = await this.#commit();
    const index = this.#lastChangeIndex();
    const entry = this.#results[index];
    if (lastSeq !== null && entry !== undefined) this.#results[index] = { ...entry, lastSeq };
  }

  /** Returns the index of the last statement that changed rows; negative if no statement did. */
  #lastChangeIndex(): number {
    return this.#results.findLastIndex(({ lastSeq, rowCount }) => lastSeq === null && rowCount > 0);
  }

  /**
   * Returns the writes that record the response to a request with an idempotency key; empty if the
   * request changes no rows.
   */
  #recordOf(entry: StatementResult | undefined, changesRows: boolean): readonly TableWrite[] {
    if (this.#recorder === undefined || !changesRows) return [];
    const results =
      entry === undefined ? this.#results : [...this.#results, { ...entry, lastSeq: null }];
    const index = entry === undefined ? this.#lastChangeIndex() : results.length - 1;
    return this.#recorder(index >= 0 ? { results, commitIndex: index } : { results });
  }

  #checked({ node, prepared }: BoundUnit): StatementResult {
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

/** Creates the transaction of a request, which is not open at first. */
export function newTransaction(deps: RequestDeps, ledger: RequestLedger): RequestTransaction {
  return new RequestTransaction({ deps, ledger, settings: new RequestSettings(deps) });
}

function refuseChannel(): never {
  throw new Error("locking read: statement asked for a streamed result");
}

function returnsRows(node: Statement): boolean {
  if (node.type === "explain" || isShow(node)) return true;
  if (node.type === "consume" || node.type === "ack" || node.type === "fetch") return true;
  if (node.type === "declare cursor") return false;
  const rows = rowsNode(node);
  if (rows === undefined) return false;
  return isSelectNode(rows) || ("returning" in rows && rows.returning !== undefined);
}
