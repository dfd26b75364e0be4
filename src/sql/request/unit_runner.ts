/**
 * Runs one statement of a request. A statement may change rows, definitions, the server, or the
 * state of the request itself.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert, defined } from "../../base/assert.ts";
import { inDoubt } from "../../base/bugs.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { CursorRow } from "../bind/bound.ts";
import type { CursorRowKeys } from "../bind/change/cursor_rows.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { DefinitionStatements } from "../ddl/definitions.ts";
import { Profile } from "../execute/context/profile.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { withinRequest } from "../execute/context/request_wait.ts";
import type {
  AckStatement,
  CloseCursorStatement,
  CreateTableAsStatement,
  DeallocateStatement,
  DeclareCursorStatement,
  DeleteStatement,
  ExplainStatement,
  FetchStatement,
  InsertStatement,
  PrepareStatement,
  RefreshStatement,
  SavepointStatement,
  SelectForStatement,
  Statement,
  TruncateStatement,
} from "../parse/ast/ast.ts";
import { copyToNode, ownDataNode } from "../parse/ast/query_nodes.ts";
import type { SqlRequest, StatementResult } from "../ports/engine.ts";
import { explained } from "../prepare/explain.ts";
import type { Prepared, PreparedQuery } from "../prepare/prepared.ts";
import { messageResult } from "../result/result.ts";
import {
  type DefiningStatement,
  isAdministering,
  isDefining,
  isReadOnlyNode,
  isTransactional,
} from "../rights/statement_kinds.ts";
import { ackRequest, ackResult } from "../utility/topic_statements.ts";
import { copyFeedOf, copyResult } from "./copy_statements.ts";
import { type KeyedResult, keyedResult } from "./cursors.ts";
import { lockedNames, readAndLock } from "./locking_read.ts";
import { createWithElements } from "./namespace_elements.ts";
import { changePartitions, movesRows, type PartitionSteps } from "./partition_changes.ts";
import { ProgramRunner } from "./program_runner.ts";
import { hasOutputs, runWithPrograms } from "./program_statements.ts";
import { populationOf, type RefreshingStatement, refresh, refreshedView } from "./refresh.ts";
import { type BoundUnit, type RequestBinding, unboundUnit } from "./request_binding.ts";
import type { RequestDeps } from "./request_deps.ts";
import type { RequestScope } from "./request_scope.ts";
import type { RequestSettings } from "./request_settings.ts";
import type { RequestTransaction } from "./request_transaction.ts";
import { createTableAs } from "./table_as.ts";
import { isTemporaryDefinition, temporaryOutside } from "./transaction_definitions.ts";
import { deletesOf, restartsOf, wholeTruncation } from "./truncation.ts";

/** The parts of the request that its statements need. */
export interface UnitRunnerParts {
  readonly scope: RequestScope;
  readonly principal: Principal;
  readonly request: SqlRequest;
  readonly ledger: RequestLedger;
  readonly binding: RequestBinding;
  readonly transaction: RequestTransaction;
  /** Lets the event loop do other work. */
  readonly pause: () => Promise<void>;
  /** Returns the number of completed statements of the request. */
  readonly entryCount: () => number;
  /**
   * Commits the request's transaction, with the result entry of COMMIT if there is one. Returns
   * the last seq, or null if there was nothing to write.
   */
  readonly commit: (entry?: StatementResult) => Promise<number | null>;
}

/** A statement that reads or writes rows, with the values of its slots. */
interface PreparedUnit {
  readonly prepared: Prepared;
  readonly unit: BoundUnit;
  readonly parameters: readonly Value[];
}

/**
 * The maximum number of attempts at work on whole tables that conflicts with other transactions.
 */
const ATTEMPTS_MAX = 3;

export class UnitRunner {
  readonly #parts: UnitRunnerParts;
  readonly #scope: RequestScope;
  readonly #principal: Principal;
  readonly #request: SqlRequest;
  readonly #ledger: RequestLedger;
  readonly #binding: RequestBinding;
  readonly #settings: RequestSettings;
  readonly #transaction: RequestTransaction;

  constructor(parts: UnitRunnerParts) {
    this.#parts = parts;
    this.#scope = parts.scope;
    this.#principal = parts.principal;
    this.#request = parts.request;
    this.#ledger = parts.ledger;
    this.#binding = parts.binding;
    this.#transaction = parts.transaction;
    this.#settings = parts.transaction.settings;
  }

  get #deps(): RequestDeps {
    return this.#scope.deps;
  }

  readonly #currentKey = (row: CursorRow): Row => this.#transaction.cursors.currentKey(row);

  async run(unit: BoundUnit, parameters: readonly Value[]): Promise<StatementResult> {
    const node = ownDataNode(unit.node) ?? unit.node;
    const own = await this.#runOwn(node);
    if (own !== undefined) return own;
    if (node.type === "create table as") return await this.#createTableAs(node, parameters);
    if (node.type === "refresh materialized view") return await this.#refresh(node);
    const steps = this.#binding.renew(unit);
    while (steps.next().done !== true) await this.#parts.pause();
    const prepared = this.#binding.renewed(unit);
    if (prepared !== undefined) {
      this.#transaction.requireUsable();
      readLiterals(prepared.literals, parameters);
      if (prepared.kind === "query" && prepared.calls.length > 0 && this.#reads(node)) {
        return await this.#runProgram(unit, (programs) =>
          this.#runCalls(programs, { node, prepared, parameters, unit }),
        );
      }
      const read = await this.#readFor(node, { prepared, unit, parameters });
      return read ?? this.#runRows(prepared, unit, parameters);
    }
    if (node.type === "ack" && this.#transaction.current !== undefined) {
      return this.#ackWithin(node, parameters);
    }
    if (!isReadOnlyNode(node) && !isDefining(node)) this.#requireNoTransaction(node);
    const principal = this.#binding.principalOf(unit.node);
    const { namespace } = this.#binding;
    const partitions = this.#partitionSteps();
    if (movesRows(node, partitions)) return await changePartitions(node, partitions);
    if (isDefining(node)) return await this.#defineAll(node, namespace);
    assert(isAdministering(node), "statement runner: unknown statement kind");
    const { params, server } = this.#request;
    const { version } = this.#deps;
    const requestSettings = this.#settings.rows({ namespace, version });
    return this.#scope.administration.run(node, {
      principal,
      namespace,
      server,
      requestSettings,
      params,
      parameters,
      ledger: this.#ledger,
    });
  }

  /**
   * Whether a statement that contains a query reads the query's rows. EXPLAIN, for example, may
   * only show its plan.
   */
  #reads(node: Statement): boolean {
    if (node.type === "explain") return node.analyze;
    if (node.type !== "declare cursor") return true;
    return this.#transaction.current !== undefined || node.isHeld === true;
  }

  /**
   * Runs a statement that contains a query, such as EXPLAIN or DECLARE CURSOR. Returns undefined
   * for any other statement.
   */
  async #readFor(
    node: Statement,
    { parameters, prepared, unit }: PreparedUnit,
  ): Promise<StatementResult | undefined> {
    switch (node.type) {
      case "explain":
        return await this.#explain(node, unit, parameters);
      case "select for":
        return (await this.#readAndLock(node, parameters)).result;
      case "declare cursor":
        return await this.#declare(node, prepared, parameters);
      default:
        return undefined;
    }
  }

  /**
   * Runs a statement that changes the state of the request itself. Returns undefined for any other
   * statement.
   */
  async #runOwn(node: Statement): Promise<StatementResult | undefined> {
    switch (node.type) {
      case "begin":
      case "start transaction":
        this.#transaction.begin(node, this.#parts.entryCount());
        return messageResult("Transaction started", this.#principal.userId);
      case "commit": {
        const result = messageResult("Transaction committed", this.#principal.userId);
        const lastSeq = await this.#parts.commit(result);
        return this.#scope.lockingRunner.withNotices({ ...result, lastSeq });
      }
      case "rollback":
        this.#transaction.rollback();
        return messageResult("Transaction rolled back", this.#principal.userId);
      case "truncate":
        return await this.#truncate(node);
      case "do block":
        return await this.#runProgram(unboundUnit(node), async (programs) => {
          await programs.block(node.source);
          return messageResult("Block executed", this.#principal.userId);
        });
      case "set constraints":
        await this.#transaction.setConstraints(node, (transaction, isChosen) =>
          this.#scope.lockingRunner.runDeferred(transaction, isChosen),
        );
        return this.#scope.lockingRunner.withNotices(
          messageResult("Constraints set", this.#principal.userId),
        );
      case "savepoint":
      case "release savepoint":
      case "rollback to":
        this.#transaction.savepoint(node);
        return messageResult(savepointMessage(node), this.#principal.userId);
      case "use namespace":
        this.#binding.useNamespace(node);
        return messageResult(`Namespace ${node.name.name} in use`, this.#principal.userId);
      case "set":
      case "set timezone":
        this.#scope.administration.authorize(node, this.#principal);
        {
          const { name, value } = this.#settings.set(node);
          return messageResult(`Setting ${name} set to "${value}"`, this.#principal.userId);
        }
      case "set transaction":
        if (!node.isOfSession) this.#transaction.requireOpen(node);
        return messageResult(
          "Nothing changed: transactions always have snapshot isolation",
          this.#principal.userId,
        );
      case "reset all":
        this.#settings.resetAll();
        return messageResult("All settings reset", this.#principal.userId);
      case "prepare":
      case "deallocate":
        this.#transaction.notePrepared(node);
        return preparedAnswer(node, this.#principal.userId);
      default:
        return this.#useCursor(node);
    }
  }

  /**
   * Deletes the rows of several tables in one transaction, or the rows of one table as a long
   * change.
   */
  async #truncate(given: TruncateStatement): Promise<StatementResult> {
    const { namespace } = this.#binding;
    const principal = this.#principal;
    const isInside = this.#transaction.current !== undefined;
    const caller = { deps: this.#deps, namespace, principal };
    const node = wholeTruncation(given, caller);
    const restarts = node.restart === true ? restartsOf(node, caller) : [];
    for (const each of restarts) this.#scope.definitions.authorize(each, principal, namespace);
    const deletes = deletesOf(node);
    const isWrapped = !isInside && deletes.length > 1;
    if (isWrapped) {
      this.#transaction.open({ isReadOnly: false, entryIndex: this.#parts.entryCount() });
    }
    let lastSeq: number | null = null;
    for (const each of deletes) {
      await this.#parts.pause();
      lastSeq = (await this.#change(each, [])).lastSeq ?? null;
    }
    if (isWrapped) lastSeq = await this.#parts.commit();
    for (const each of restarts) await this.#define(each, namespace);
    const names = given.tables.map(({ name, schema }) => `${schema ?? namespace}.${name}`);
    const what = names.length === 1 ? "Table" : "Tables";
    return { ...messageResult(`${what} ${names.join(", ")} truncated`, principal.userId), lastSeq };
  }

  #partitionSteps(): PartitionSteps {
    const { namespace } = this.#binding;
    return {
      deps: () => this.#deps,
      principal: this.#principal,
      namespace,
      isInside: this.#transaction.current !== undefined,
      check: (node) => this.#scope.definitions.check(node, this.#principal, namespace),
      define: (node) => this.#define(node, namespace),
      change: (node) => this.#change(node, []),
      atomically: (tableIds, work) => this.#atomically(tableIds, work),
    };
  }

  /**
   * Runs `work` in the open transaction or, if none is open, in a transaction of its own. In the
   * latter case, other statements that write to the tables wait, and a conflict makes `work` run
   * again.
   */
  async #atomically(
    tableIds: readonly number[],
    work: () => Promise<StatementResult>,
  ): Promise<StatementResult> {
    if (this.#transaction.current !== undefined) return await work();
    const { store, writeGates } = this.#deps;
    const open = await writeGates.close(tableIds, this.#ledger);
    try {
      for (let attempt = 1; ; attempt += 1) {
        // Without this wait, a commit that is not yet durable would be newer than the snapshot.
        await Promise.allSettled([store.durable(store.appliedSeq)]);
        const entryIndex = this.#parts.entryCount();
        this.#transaction.open({ isReadOnly: false, entryIndex, gatedIds: tableIds });
        try {
          const result = await work();
          return { ...result, lastSeq: await this.#parts.commit() };
        } catch (error) {
          const isConflict =
            error instanceof DatabaseError && error.code === "SERIALIZATION_FAILURE";
          const isLarge = error instanceof DatabaseError && error.code === "TRANSACTION_LIMIT";
          if (!isLarge && (!isConflict || attempt === ATTEMPTS_MAX)) throw error;
          this.#transaction.rollback();
          if (isLarge) throw error;
        }
      }
    } finally {
      open();
    }
  }

  #createTableAs(
    node: CreateTableAsStatement,
    parameters: readonly Value[],
  ): Promise<StatementResult> {
    const { namespace } = this.#binding;
    return createTableAs(node, {
      // The table is looked up on each call, because a definition may replace the catalog with a
      // draft.
      table: (path) => this.#deps.catalog.table(path.namespace, path.name),
      namespace,
      prepare: (each) => this.#binding.prepareRowsOf(each),
      define: (each) => this.#define(each, namespace),
      change: (each) => this.#change(each, parameters),
    });
  }

  #refresh(node: RefreshStatement): Promise<StatementResult> {
    const { namespace } = this.#binding;
    const { table } = refreshedView(node, {
      deps: this.#deps,
      namespace,
      principal: this.#principal,
    });
    return refresh(node, {
      // The table is looked up on each call, because a definition may replace the catalog with a
      // draft.
      table: () => this.#deps.catalog.tableById(table.tableId),
      populate: (isPopulated) =>
        this.#define(populationOf(node.name, isPopulated, node._location), namespace),
      change: (each) => this.#change(each, []),
    });
  }

  /**
   * Refuses a statement that may not run inside a transaction.
   * @throws {DatabaseError} INVALID_TRANSACTION_STATE
   */
  #requireNoTransaction(node: Statement): void {
    if (this.#transaction.current === undefined) return;
    const { _location, type } = node;
    const isConcurrent = "isConcurrent" in node && node.isConcurrent === true;
    throw new DatabaseError(
      "INVALID_TRANSACTION_STATE",
      `Cannot run ${type.toUpperCase()}${isConcurrent ? " CONCURRENTLY" : ""} inside a ` +
        "transaction: commit the transaction or roll it back first",
      { position: _location.start },
    );
  }

  /** Runs a change that the server has derived from a statement. */
  async #change(
    node: DeleteStatement | InsertStatement | RefreshingStatement,
    parameters: readonly Value[],
  ): Promise<StatementResult> {
    const unit = unboundUnit(node);
    const prepared = defined(this.#binding.renewed(unit), "prepared change writes no rows");
    this.#transaction.requireUsable();
    readLiterals(prepared.literals, parameters);
    return await this.#scope.runner.run(prepared, {
      principal: this.#principal,
      namespace: this.#binding.namespace,
      transaction: this.#transaction.current,
      parameters,
      files: undefined,
      source: () => this.#binding.sourceOf(unit),
      renewed: () => this.#binding.renewed(unit) ?? prepared,
    });
  }

  /**
   * Runs a locking read on the event loop. A row is locked in a tick in which no other transaction
   * holds a conflicting lock.
   */
  async #readAndLock(node: SelectForStatement, parameters: readonly Value[]): Promise<KeyedResult> {
    const { namespace } = this.#binding;
    const principal = this.#principal;
    const transaction = this.#transaction.current;
    let keyed: CursorRowKeys = { tables: [], isLocking: true, rows: [] };
    const result = await readAndLock(node, {
      deps: this.#deps,
      locks: this.#deps.activity.locks,
      principal,
      namespace,
      transaction,
      run: async (query) => {
        const prepared = this.#binding.prepareNow(query, { locked: lockedNames(node) });
        readLiterals(prepared.literals, parameters);
        const options = { principal, namespace, transaction, parameters, files: undefined };
        const found = keyedResult(await this.#scope.lockingRunner.run(prepared, options), prepared);
        ({ keyed } = found);
        return found.result;
      },
    });
    return { keyed, result };
  }

  #runProgram(
    { node }: BoundUnit,
    run: (programs: ProgramRunner) => Promise<StatementResult>,
  ): Promise<StatementResult> {
    const transaction = this.#transaction;
    const newRunner = (): ProgramRunner =>
      new ProgramRunner({
        deps: () => this.#deps,
        principal: this.#binding.principalOf(node),
        namespace: this.#binding.namespace,
        transaction,
        runner: () => this.#scope.lockingRunner,
        ledger: this.#ledger,
        currentKey: this.#currentKey,
        runOther: (other, namespace) => this.#runOther(other, namespace),
      });
    const { commit, entryCount } = this.#parts;
    return runWithPrograms(run, { newRunner, transaction, entryCount, commit });
  }

  /** Runs the programs that a query calls, and then runs the query. */
  async #runCalls(
    programs: ProgramRunner,
    {
      node,
      parameters,
      prepared,
      unit,
    }: PreparedUnit & { readonly node: Statement; readonly prepared: PreparedQuery },
  ): Promise<StatementResult> {
    const principal = this.#binding.principalOf(unit.node);
    const slots = await programs.called(prepared.calls, parameters);
    const read = await this.#readFor(node, { prepared, unit, parameters: slots });
    if (read !== undefined) return read;
    if (node.type === "call procedure" && !hasOutputs(prepared)) {
      return messageResult(`Procedure ${node.call.function.name} called`, principal.userId);
    }
    return await this.#scope.lockingRunner.run(prepared, {
      principal,
      namespace: this.#binding.namespace,
      transaction: this.#transaction.current,
      parameters: slots,
      files: undefined,
      copyTo: copyToNode(node)?.options,
      onNotice: programs.note,
    });
  }

  /** Runs a statement of a program that neither reads nor writes rows. */
  async #runOther(node: Statement, namespace: string): Promise<StatementResult> {
    if (isDefining(node)) {
      this.#scope.definitions.authorize(node, this.#principal, namespace);
      return await this.#defineAll(node, namespace);
    }
    if (node.type === "create table as") return await this.#createTableAs(node, []);
    return defined(await this.#runOwn(node), "statement runner: unknown statement in a program");
  }

  #useCursor(node: Statement): StatementResult | undefined {
    switch (node.type) {
      case "fetch":
      case "move":
        return this.#fetch(node);
      case "close cursor":
        return this.#close(node);
      default:
        return undefined;
    }
  }

  #close({ name }: CloseCursorStatement): StatementResult {
    this.#transaction.cursors.close(name);
    const message = name === undefined ? "All cursors closed" : `Cursor ${name.name} closed`;
    return messageResult(message, this.#principal.userId);
  }

  #fetch({ direction, name, type }: FetchStatement): StatementResult {
    this.#transaction.requireUsable();
    const found = this.#transaction.cursors.fetch(name, direction, type === "move");
    if (type === "fetch") return found;
    return messageResult(`Moved over ${found.rowCount} row(s)`, this.#principal.userId);
  }

  /** Runs the query of a cursor and keeps its rows. @throws {DatabaseError} */
  async #declare(
    node: DeclareCursorStatement,
    prepared: Prepared,
    parameters: readonly Value[],
  ): Promise<StatementResult> {
    const { namespace } = this.#binding;
    const principal = this.#principal;
    const transaction = this.#transaction.current;
    const { name } = node.name;
    if (transaction === undefined && node.isHeld !== true) {
      throw new DatabaseError(
        "TRANSACTION_REQUIRED",
        `Cannot declare cursor "${name}": no transaction is open, so the cursor would be ` +
          "closed at the end of this statement",
        {
          position: node._location.start,
          hint: "open a transaction with BEGIN, or declare the cursor WITH HOLD",
        },
      );
    }
    const { cursors } = this.#transaction;
    cursors.requireFree(node.name);
    const options = { principal, namespace, transaction, parameters, files: undefined };
    const { keyed, result } =
      node.query.type === "select for"
        ? await this.#readAndLock(node.query, parameters)
        : keyedResult(await this.#scope.lockingRunner.run(prepared, options), prepared);
    cursors.open(node, result, keyed);
    return messageResult(`Cursor ${name} declared`, principal.userId);
  }

  async #runRows(
    prepared: Prepared,
    unit: BoundUnit,
    parameters: readonly Value[],
  ): Promise<StatementResult> {
    const { node } = unit;
    const { clock } = this.#deps;
    const copyInput = copyFeedOf(node, this.#request, { clock, ledger: this.#ledger });
    try {
      const result = await this.#scope.runner.run(prepared, {
        principal: this.#binding.principalOf(node),
        namespace: this.#binding.namespace,
        transaction: this.#transaction.current,
        parameters,
        files: this.#request.files,
        copyInput,
        copyTo: copyToNode(node)?.options,
        source: () => this.#binding.sourceOf(unit),
        renewed: () => this.#binding.renewed(unit) ?? prepared,
        currentKey: this.#currentKey,
      });
      return copyInput === undefined ? result : copyResult(result, copyInput);
    } finally {
      copyInput?.cancel();
    }
  }

  /** Acknowledges messages as part of the commit of the open transaction. */
  async #ackWithin(node: AckStatement, parameters: readonly Value[]): Promise<StatementResult> {
    this.#scope.administration.authorize(node, this.#principal);
    const { namespace } = this.#binding;
    const call = { principal: this.#principal, namespace, parameters };
    const request = ackRequest(this.#deps, node, call);
    await withinRequest(() => this.#deps.topics().counted(request.topicId), {
      clock: this.#deps.clock,
      ledger: this.#ledger,
    });
    const committedOffset = this.#transaction.ack(request, node);
    return ackResult(node, { request, committedOffset, call });
  }

  /** Runs a change of definitions, with the definitions that it contains. */
  #defineAll(node: DefiningStatement, namespace: string): Promise<StatementResult> {
    if (node.type !== "create namespace" || node.elements === undefined) {
      return this.#define(node, namespace);
    }
    return createWithElements(node, node.elements, {
      namespace,
      define: (each, inside) => this.#define(each, inside),
      atomically: (work) => this.#atomically([], work),
    });
  }

  /**
   * Runs a change of definitions. If an error occurs after the catalog has changed, the outcome is
   * uncertain, because the other layers still have to follow the catalog.
   */
  async #define(node: DefiningStatement, namespace: string): Promise<StatementResult> {
    if (this.#transaction.current !== undefined) return await this.#defineWithin(node, namespace);
    if (isTemporaryDefinition(node)) throw temporaryOutside(node);
    const { catalog } = this.#deps;
    const { version } = catalog;
    try {
      return await this.#scope.definitions.run(node, this.#principal, namespace);
    } catch (error) {
      throw catalog.version === version ? error : inDoubt(error);
    }
  }

  /** Runs a change of definitions that takes effect when the open transaction commits. */
  async #defineWithin(node: DefiningStatement, namespace: string): Promise<StatementResult> {
    if (!isTransactional(node)) this.#requireNoTransaction(node);
    this.#transaction.requireUsable();
    return await this.#transaction.define(node, (deps) =>
      new DefinitionStatements(deps, this.#ledger).run(node, this.#principal, namespace),
    );
  }

  async #explain(
    node: ExplainStatement,
    unit: BoundUnit,
    parameters: readonly Value[],
  ): Promise<StatementResult> {
    const prepared = defined(unit.prepared, "EXPLAIN: statement was not prepared");
    const principal = this.#binding.principalOf(node);
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    const profile = node.analyze ? new Profile(clock) : undefined;
    let isPlannedAnew = false;
    const outcome =
      profile === undefined
        ? undefined
        : await this.#scope.runner.run(prepared, {
            principal,
            namespace: this.#binding.namespace,
            transaction: this.#transaction.current,
            parameters,
            files: undefined,
            profile,
            currentKey: this.#currentKey,
            source: () => this.#binding.sourceOf(unit),
            renewed: () => {
              // A reader thread plans the statement again with the current row counts, so the
              // earlier plan is not the plan to explain.
              if (!isPlannedAnew) this.#binding.forget(unit);
              isPlannedAnew = true;
              return this.#binding.renewed(unit) ?? prepared;
            },
          });
    const tookMs = clock.monotonicMs() - startMs;
    const call = { principal, slots: parameters, profile, outcome, tookMs };
    // The statement may have been bound again while it was waiting.
    return explained(node, unit.prepared ?? prepared, { call, store: this.#deps.store });
  }
}

function savepointMessage({ name: { name }, type }: SavepointStatement): string {
  switch (type) {
    case "savepoint":
      return `Savepoint ${name} created`;
    case "release savepoint":
      return `Savepoint ${name} released`;
    case "rollback to":
      return `Transaction rolled back to savepoint ${name}`;
  }
}

/**
 * Returns the results of PREPARE and DEALLOCATE. Both statements already took effect when the
 * request was parsed.
 */
function preparedAnswer(
  node: PrepareStatement | DeallocateStatement,
  asUser: string,
): StatementResult {
  if (node.type === "prepare") {
    return messageResult(`Statement ${node.name.name} prepared`, asUser);
  }
  const { name } = node;
  return messageResult(
    name === undefined ? "All statements deallocated" : `Statement ${name.name} deallocated`,
    asUser,
  );
}
