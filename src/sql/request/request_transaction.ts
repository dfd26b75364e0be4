/**
 * Manages the transaction of a request: tracks whether one is open, and begins and ends it.
 *
 *     idle ──begin──► open ──commit──► idle
 *                      ├──rollback──► idle
 *                      └──fail──────► idle, what was to happen since `beginIndex` has not
 *
 *     held ──fail──► failed ──rollback to a savepoint──► held
 *                       └──commit, rollback──► idle
 *
 * - A failed commit leaves the transaction open, so that `fail` can still undo the uploads.
 * - A transaction that spans requests is called held. A request that ends with an open transaction
 *   has failed, unless the transaction is held. A held transaction survives a failed statement,
 *   but cannot be committed until ROLLBACK TO has undone that statement.
 * - Changes that SET has made are kept or undone together with the rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { type Commit, SEQ_COLUMN_ID, type TableWrite, type WriteBatch } from "../../storage/mod.ts";
import type { HeldTransaction, TransactionOutcome } from "../activity/open_transactions.ts";
import type { DefinitionDeps } from "../ddl/definitions.ts";
import { checkDeferred } from "../execute/change/followed_references.ts";
import { requireUnbroken } from "../execute/change/references.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";
import { Transaction } from "../execute/context/transaction.ts";
import type {
  AckStatement,
  BeginStatement,
  DeallocateStatement,
  PrepareStatement,
  SavepointStatement,
  SetConstraintsStatement,
  SetTransactionStatement,
  Statement,
} from "../parse/ast/ast.ts";
import type { TopicAckRequest } from "../ports/ports.ts";
import { NO_PRINCIPAL, newContext } from "../prepare/statement_context.ts";
import { Cursors } from "./cursors.ts";
import { requireDeferrable } from "./deferrable_constraints.ts";
import type { RequestDeps } from "./request_deps.ts";
import type { RequestSettings } from "./request_settings.ts";
import { type RestoredParts, Savepoints } from "./savepoints.ts";
import { TransactionAcks } from "./transaction_acks.ts";
import { TransactionDefinitions } from "./transaction_definitions.ts";

export interface RequestTransactionOptions {
  readonly deps: RequestDeps;
  /** The ledger of the running request. */
  readonly ledger: RequestLedger;
  readonly settings: RequestSettings;
}

/** Runs all constraint triggers that were deferred to the commit, or only some of them. */
export type RunDeferred = (
  transaction: Transaction,
  isChosen?: (trigger: NamedConstraint) => boolean,
) => Promise<void>;

/** A constraint that SET CONSTRAINTS can name. */
interface NamedConstraint {
  readonly name: string;
}

/** The options with which BEGIN opens a transaction. */
export interface OpeningOptions {
  readonly isReadOnly: boolean;
  /** The index of the BEGIN in the response; absent for a transaction that spans requests. */
  readonly entryIndex?: number;
  /**
   * The time in milliseconds for which the transaction may stay open;
   * `limits.transaction_timeout_secs` applies if absent.
   */
  readonly timeoutMs?: number | undefined;
  readonly onGrow?: ((bytes: number) => void) | undefined;
  /** The tables whose write gates the request has closed for this transaction. */
  readonly gatedIds?: readonly number[];
}

/**
 * Returns the writes that are added to a commit, which depend on whether the commit changes rows.
 */
export type RecordedWrites = (changesRows: boolean) => readonly TableWrite[];

/** The result of ending a transaction. */
interface Written {
  readonly changesRows: boolean;
  /** The commit of the transaction; undefined if there was nothing to write. */
  readonly commit: Commit | undefined;
}

export class RequestTransaction implements HeldTransaction {
  /** The dependencies that apply outside the transaction. */
  readonly #base: RequestDeps;
  #ledger: RequestLedger;
  readonly settings: RequestSettings;
  #current: Transaction | undefined;
  /** The definitions that the open transaction has changed; undefined if it has changed none. */
  #definitions: TransactionDefinitions | undefined;
  #acks: TransactionAcks;
  #beginIndex: number | undefined;
  readonly cursors: Cursors;
  readonly #savepoints = new Savepoints();
  #isHeld = false;
  #isFailed = false;
  /**
   * Whether a commit has been attempted. If the commit fails, there is no transaction to continue.
   */
  #isEnding = false;
  #outcome: TransactionOutcome | undefined;
  /**
   * The statements that PREPARE has named, for later requests of a transaction that spans
   * requests.
   */
  readonly #prepared = new Map<string, PrepareStatement>();

  constructor({ ledger, settings, deps }: RequestTransactionOptions) {
    this.#base = deps;
    this.#ledger = ledger;
    this.settings = settings;
    this.cursors = new Cursors(deps.limits.transactionBytesMax);
    this.#acks = new TransactionAcks(deps.topics);
  }

  /**
   * The dependencies of the transaction's statements, which see the definitions that the
   * transaction has changed.
   */
  get deps(): RequestDeps {
    return this.#definitions?.deps ?? this.#base;
  }

  get #deps(): RequestDeps {
    return this.deps;
  }

  /**
   * Runs a change of definitions, which takes effect with the commit.
   *
   * @throws {DatabaseError} INVALID_OPERATION if the transaction is READ ONLY,
   *   SERIALIZATION_FAILURE, and the errors of `run`.
   */
  async define<T>(node: Statement, run: (deps: DefinitionDeps) => Promise<T>): Promise<T> {
    const transaction = this.#required(node.type.toUpperCase());
    if (transaction.isReadOnly) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot run ${node.type.toUpperCase()}: the transaction is READ ONLY`,
        { position: node._location.start },
      );
    }
    transaction.fixSnapshot();
    this.#definitions ??= new TransactionDefinitions(this.#base, transaction);
    return await this.#definitions.define(run);
  }

  /** Opens a transaction that outlives this request. */
  hold(options: Omit<OpeningOptions, "entryIndex">): void {
    this.open(options);
    this.#isHeld = true;
  }

  /** The statements from earlier requests that EXECUTE can run. */
  get prepared(): ReadonlyMap<string, PrepareStatement> {
    return this.#prepared;
  }

  /**
   * Called when PREPARE or DEALLOCATE runs.
   *
   * @throws {DatabaseError} TRANSACTION_LIMIT if the total length of all prepared statements would
   *   be too long.
   */
  notePrepared(node: PrepareStatement | DeallocateStatement): void {
    if (!this.#isHeld) return;
    if (node.type === "prepare") {
      this.#prepared.set(node.name.name, node);
      this.#requireRoomForPrepared(node);
    } else if (node.name === undefined) this.#prepared.clear();
    else this.#prepared.delete(node.name.name);
  }

  #requireRoomForPrepared({ name: { _location, name } }: PrepareStatement): void {
    let length = 0;
    for (const { _location: at } of this.#prepared.values()) length += at.end - at.start;
    if (length <= this.#deps.limits.sqlBytesMax) return;
    this.#prepared.delete(name);
    throw new DatabaseError(
      "TRANSACTION_LIMIT",
      `Cannot prepare statement "${name}": the transaction's prepared statements would have ` +
        `more than ${this.#deps.limits.sqlBytesMax} characters in total`,
      {
        position: _location.start,
        hint: "run DEALLOCATE for prepared statements that are no longer needed",
      },
    );
  }

  /** Called when another request continues the held transaction. */
  continueIn(ledger: RequestLedger): void {
    this.#ledger = ledger;
  }

  /**
   * Whether a statement of a transaction that spans requests has failed and has not been undone.
   */
  get isFailed(): boolean {
    return this.#isFailed;
  }

  /** The outcome of a transaction that spans requests; undefined while it is open. */
  get outcome(): TransactionOutcome | undefined {
    return this.#outcome;
  }

  /** The open transaction; undefined if no transaction is open. */
  get current(): Transaction | undefined {
    return this.#current;
  }

  get snapshotSeq(): Seq {
    return this.#current?.snapshotSeq ?? SEQ_ZERO;
  }

  get stagedRowCount(): number {
    return this.#current?.keyCount ?? 0;
  }

  get stagedBytes(): number {
    return this.#current?.bytes ?? 0;
  }

  /** The index of the BEGIN whose changes have not been committed. */
  get beginIndex(): number | undefined {
    return this.#beginIndex;
  }

  /**
   * Opens a transaction.
   * @param entryIndex The index of the BEGIN in the response.
   * @throws {DatabaseError} INVALID_TRANSACTION_STATE
   */
  begin(node: BeginStatement, entryIndex: number): void {
    if (this.#current !== undefined) {
      throw new DatabaseError(
        "INVALID_TRANSACTION_STATE",
        "Cannot run BEGIN: a transaction is already open",
        {
          position: node._location.start,
        },
      );
    }
    this.open({ isReadOnly: node.writeable === "read only", entryIndex });
  }

  /** Opens the transaction of a request that forms a single transaction without a BEGIN. */
  open({ entryIndex, gatedIds, isReadOnly, onGrow, timeoutMs }: OpeningOptions): void {
    this.#beginIndex = entryIndex;
    const { clock, limits, storageQuota, store } = this.#deps;
    this.settings.begin();
    this.#acks = new TransactionAcks(this.#deps.topics);
    this.#savepoints.clear();
    this.#current = new Transaction({
      snapshotSeq: store.visibleSeq,
      nowMicros: clock.nowMs() * 1000,
      isReadOnly,
      startedAtMs: clock.monotonicMs(),
      timeoutMs: timeoutMs ?? limits.transactionTimeoutMs,
      bytesMax: limits.transactionBytesMax,
      isMetered: storageQuota !== undefined,
      onGrow,
      gatedIds,
    });
  }

  /** Creates a savepoint. @throws {DatabaseError} */
  savepoint(node: SavepointStatement): void {
    const parts = this.#partsFor(node);
    switch (node.type) {
      case "savepoint":
        this.#requireUsable(parts.transaction);
        this.#savepoints.add(node, parts);
        return;
      case "release savepoint":
        this.#requireUsable(parts.transaction);
        this.#savepoints.release(node, parts);
        return;
      case "rollback to":
        this.#definitions = this.#savepoints.rollbackTo(node, parts);
        this.#isFailed = false;
        return;
    }
  }

  /**
   * Sets when foreign keys are checked and when constraint triggers run. If they become immediate,
   * pending checks and triggers run at once.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND, INVALID_OPERATION, FOREIGN_KEY_VIOLATION
   */
  async setConstraints(
    { isDeferred, names, _location }: SetConstraintsStatement,
    runDeferred: RunDeferred,
  ): Promise<void> {
    // Outside a transaction, each statement checks its foreign keys before it ends.
    if (!isDeferred && this.#current === undefined) {
      for (const name of names ?? []) requireDeferrable(name, this.#deps.catalog);
      return;
    }
    const transaction = this.#required("SET CONSTRAINTS", _location.start);
    this.#requireUsable(transaction);
    for (const name of names ?? []) requireDeferrable(name, this.#deps.catalog);
    const chosen = names?.map(({ name }) => name);
    if (!isDeferred) {
      const isChosen = ({ name }: NamedConstraint): boolean => chosen?.includes(name) !== false;
      checkDeferred(this.#contextOf(transaction), isChosen);
      await runDeferred(transaction, isChosen);
    }
    transaction.setConstraints(chosen, isDeferred);
  }

  /**
   * Requires an open transaction that SET TRANSACTION can change.
   * @throws {DatabaseError} TRANSACTION_REQUIRED, INVALID_OPERATION, TRANSACTION_FAILED
   */
  requireOpen({ writeable, _location }: SetTransactionStatement): void {
    const transaction = this.#required("SET TRANSACTION", _location.start);
    this.#requireUsable(transaction);
    if (writeable === undefined || !transaction.isReadOnly) return;
    throw new DatabaseError(
      "INVALID_OPERATION",
      "Cannot run SET TRANSACTION READ WRITE: the transaction began as READ ONLY",
      { position: _location.start },
    );
  }

  /** Whether ROLLBACK TO this savepoint can undo the statement that has just failed. */
  mayReturnTo({ name: { name } }: SavepointStatement): boolean {
    return this.#current !== undefined && this.#savepoints.has(name);
  }

  #partsFor({ _location, type }: SavepointStatement): RestoredParts {
    const transaction = this.#required(type.toUpperCase(), _location.start);
    const { advisory, locks } = this.#deps.activity;
    const { cursors, settings } = this;
    const definitions = this.#definitions;
    return { transaction, acks: this.#acks, settings, locks, advisory, cursors, definitions };
  }

  /**
   * Must be called before a statement that may run in a transaction. Requires that an open
   * transaction has not timed out and that its tables are unchanged.
   */
  requireUsable(): void {
    if (this.#current !== undefined) this.#requireUsable(this.#current);
  }

  /**
   * Acknowledges messages as part of the commit. Returns the committed offset (exclusive) that the
   * group will then have.
   *
   * @throws {DatabaseError}
   */
  ack(request: TopicAckRequest, node: AckStatement): number {
    const transaction = this.#required("ACK");
    this.#requireUsable(transaction);
    if (transaction.isReadOnly) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        "Cannot acknowledge messages: the transaction is READ ONLY",
        { position: node._location.start },
      );
    }
    transaction.fixSnapshot();
    return this.#acks.add(request, node);
  }

  /**
   * Commits the open transaction.
   *
   * @returns The last seq; null if there was nothing to write.
   */
  async commit(record: RecordedWrites, runDeferred: RunDeferred): Promise<number | null> {
    const transaction = this.#required("COMMIT");
    this.#isEnding = true;
    this.#requireUsable(transaction);
    await runDeferred(transaction);
    if ((await this.#definitions?.dropTemporary(this.#ledger)) === false) {
      this.#definitions = undefined;
    }
    const { storageQuota, writeGates } = this.#deps;
    if (storageQuota !== undefined) {
      await storageQuota.prepare(transaction.growths, this.#ledger);
      transaction.requireUnaltered(this.#deps.catalog);
    }
    const tableIds = transaction.tableIds.filter((id) => !transaction.gatedIds.includes(id));
    while (writeGates.areClosed(tableIds)) {
      await writeGates.opened(tableIds, this.#ledger);
      transaction.requireUnaltered(this.#deps.catalog);
    }
    const lastSeq = await this.#write(transaction, record);
    this.#close({ kind: "committed", lastSeq });
    this.#beginIndex = undefined;
    this.settings.commit();
    for (const uploads of transaction.uploads) uploads.keep();
    return lastSeq;
  }

  rollback(): void {
    const { uploads } = this.#required("ROLLBACK");
    for (const each of uploads) each.fail(undefined);
    this.#close({ kind: "rolled back" });
    this.#beginIndex = undefined;
    this.settings.rollback();
  }

  abandon(): void {
    if (this.#current !== undefined) this.rollback();
  }

  #close(outcome: TransactionOutcome): void {
    const transaction = this.#current;
    this.#current = undefined;
    this.#definitions = undefined;
    this.#savepoints.clear();
    this.cursors.endTransaction({ isCommitted: outcome.kind === "committed" });
    if (transaction !== undefined) {
      const { activity, store } = this.#deps;
      const committedSeq = outcome.kind === "rolled back" ? undefined : store.appliedSeq;
      activity.locks.release(transaction, committedSeq);
      activity.advisory.release(transaction);
      transaction.release();
    }
    if (this.#isHeld) this.#outcome = outcome;
    this.#isHeld = false;
    this.#isFailed = false;
    this.#isEnding = false;
  }

  /**
   * Must be called when a statement has failed. Ends the open transaction, unless it spans
   * requests.
   *
   * @returns The error to report.
   */
  fail(error: unknown): unknown {
    const transaction = this.#current;
    if (transaction === undefined) return error;
    const staysOpen = this.#isHeld && !this.#isEnding;
    if (!staysOpen) {
      const isUnknown = error instanceof DatabaseError && error.code === "COMMIT_UNKNOWN";
      this.#close({ kind: isUnknown ? "unknown" : "rolled back" });
      return failUploads(transaction, error);
    }
    this.#isFailed = true;
    // A failed transaction without a savepoint can never be committed, so its locks are released.
    if (!this.#savepoints.isEmpty) return error;
    const { advisory, locks } = this.#deps.activity;
    locks.release(transaction);
    advisory.release(transaction);
    transaction.release();
    return failUploads(transaction, error);
  }

  /**
   * Requires that no transaction is open at the end of the request.
   *
   * @throws {DatabaseError} TRANSACTION_OPEN
   */
  requireClosed(): void {
    if (this.#current === undefined || this.#isHeld) return;
    throw new DatabaseError(
      "TRANSACTION_OPEN",
      "Cannot end the request while its transaction is open: the transaction was rolled back",
      { hint: "end the transaction with COMMIT or ROLLBACK" },
    );
  }

  /**
   * Commits once no other writer blocks the commit. From then on, only the disk can delay it, and
   * only a conflict can make it fail.
   */
  async #write(transaction: Transaction, record: RecordedWrites): Promise<number | null> {
    const { store } = this.#deps;
    const { changesRows, commit } = await this.#committed(transaction, record);
    if (commit !== undefined) await store.durable(commit.lastSeq);
    return commit !== undefined && changesRows ? commit.lastSeq : null;
  }

  #committed(transaction: Transaction, record: RecordedWrites): Written | Promise<Written> {
    if (this.#definitions !== undefined) {
      return this.#writtenWith(this.#definitions, transaction, record);
    }
    if (transaction.keyCount > BATCH_ROWS_MAX) return this.#writtenInTicks(transaction, record);
    return this.#written(transaction, record, (batch) => this.#deps.store.apply(batch));
  }

  /** Commits rows together with changed definitions. */
  async #writtenWith(
    definitions: TransactionDefinitions,
    transaction: Transaction,
    record: RecordedWrites,
  ): Promise<Written> {
    let changesRows = false;
    const commit = await definitions.commit(
      { gatedIds: transaction.gatedIds, ledger: this.#ledger },
      (apply) => {
        const written = this.#written(transaction, record, apply);
        ({ changesRows } = written);
        return written.commit;
      },
    );
    return { changesRows, commit };
  }

  /** Commits the transaction in the current tick. */
  #written(
    transaction: Transaction,
    record: RecordedWrites,
    apply: (batch: WriteBatch) => Commit,
  ): Written {
    const { snapshotSeq } = transaction;
    this.#requireReferences(transaction);
    const rows = [...transaction.writes()];
    const changesRows = rows.length > 0;
    this.#requireUnchanged(transaction);
    return this.#withAcks((acks) => {
      const writes = [...acks, ...rows];
      writes.push(...record(writes.length > 0));
      if (writes.length === 0) return { changesRows, commit: undefined };
      const make = (): Commit => apply({ writes, snapshotSeq });
      return { changesRows, commit: this.#made(transaction, make) };
    });
  }

  /**
   * Checks, in the tick of the commit, that no row that the transaction has locked has changed.
   * @throws {DatabaseError} SERIALIZATION_FAILURE
   */
  #requireUnchanged({ locked }: Transaction): void {
    const { catalog, store } = this.#deps;
    for (const { key, owner, seq, tableId } of locked) {
      const table = catalog.tableById(tableId);
      // If this transaction has changed definitions, no other transaction can have dropped a
      // table.
      if (table === undefined && this.#definitions !== undefined) continue;
      const options = { owner, key, upTo: store.appliedSeq, columnIds: [SEQ_COLUMN_ID] };
      if (table !== undefined && store.lookup(tableId, options)?.[0] === seq) continue;
      const name = table === undefined ? "a table" : `${table.namespace}.${table.name}`;
      throw new DatabaseError(
        "SERIALIZATION_FAILURE",
        `Cannot commit the transaction: a concurrent transaction has changed rows of ${name} ` +
          "that this transaction has locked",
        { hint: "run the transaction again" },
      );
    }
  }

  /**
   * Checks the foreign keys of changed rows, in the tick of the commit. @throws {DatabaseError}
   */
  #requireReferences(transaction: Transaction): void {
    const context = this.#contextOf(transaction);
    checkDeferred(context);
    requireUnbroken(transaction.claims, context);
  }

  #contextOf(transaction: Transaction): ExecutionContext {
    return newContext(this.#deps, {
      principal: NO_PRINCIPAL,
      namespace: "default",
      slots: [],
      atSeq: transaction.snapshotSeq,
      transaction,
      ledger: this.#ledger,
    });
  }

  /** Commits in this tick, including the rows that acknowledge messages. */
  #withAcks(commit: (writes: readonly TableWrite[]) => Written): Written {
    const acks = this.#acks.prepare();
    let written: Written;
    try {
      written = commit(acks.writes);
    } catch (error) {
      acks.abandoned();
      throw error;
    }
    acks.done();
    return written;
  }

  async #writtenInTicks(transaction: Transaction, record: RecordedWrites): Promise<Written> {
    const { catalog, clock, store } = this.#deps;
    const pause = pauser(clock, { check: () => checkDeadline(this.#ledger, clock) });
    const staged = store.stage({ snapshotSeq: transaction.snapshotSeq });
    for (const write of transaction.writes()) {
      await pause();
      staged.add(write);
    }
    const changesRows = staged.rowCount > 0;
    // If another consumer acknowledges messages after the acknowledgements were prepared and
    // before the commit, the commit fails with a conflict. To keep that window short, most rows
    // are settled before the acknowledgements are prepared.
    const settled = async (): Promise<void> => {
      while (!staged.settle()) await pause();
    };
    if (!this.#acks.isEmpty) await settled();
    const acks = this.#acks.prepare();
    try {
      for (const write of acks.writes) staged.add(write);
      for (const write of record(staged.rowCount > 0)) staged.add(write);
      if (staged.rowCount === 0) {
        this.#requireUnchanged(transaction);
        return { changesRows, commit: undefined };
      }
      await settled();
      this.#requireUnchanged(transaction);
      transaction.requireUnaltered(catalog);
      this.#requireReferences(transaction);
      const commit = this.#made(transaction, () => staged.commit());
      acks.done();
      return { changesRows, commit };
    } catch (error) {
      acks.abandoned();
      throw error;
    }
  }

  /** Adds the uploaded files to the catalog and then commits, in the same tick. */
  #made(transaction: Transaction, make: () => Commit): Commit {
    const { clock, storageQuota } = this.#deps;
    const makeAll = (): Commit => {
      for (const uploads of transaction.uploads) uploads.list(clock.nowMs());
      return make();
    };
    if (storageQuota === undefined) return makeAll();
    return storageQuota.charge(transaction.growths, makeAll);
  }

  #required(what: string, position?: number): Transaction {
    if (this.#current !== undefined) return this.#current;
    throw new DatabaseError("TRANSACTION_REQUIRED", `Cannot ${what}: no transaction is open`, {
      position,
    });
  }

  #requireUsable(transaction: Transaction): void {
    const { catalog, clock } = this.#deps;
    if (this.#isFailed) {
      throw new DatabaseError(
        "TRANSACTION_FAILED",
        this.#isEnding
          ? "Cannot commit: a statement in the transaction has failed, so the transaction was " +
              "rolled back"
          : "Cannot continue the transaction: one of its statements failed",
        this.#isEnding ? {} : { hint: "send ROLLBACK, or ROLLBACK TO a savepoint" },
      );
    }
    const elapsedMs = clock.monotonicMs() - transaction.startedAtMs;
    if (elapsedMs > transaction.timeoutMs) {
      throw new DatabaseError(
        "TRANSACTION_LIMIT",
        "Cannot continue the transaction: it may stay open for at most " +
          `${transaction.timeoutMs / 1000} s`,
      );
    }
    this.#definitions?.requireCurrent();
    transaction.requireUnaltered(catalog);
  }
}

/**
 * Removes the uploaded files of a transaction that will not be committed.
 *
 * @returns The error to report.
 */
function failUploads({ uploads }: Transaction, error: unknown): unknown {
  let reported = error;
  for (const each of uploads) {
    try {
      each.fail(error);
    } catch (worse) {
      // The error from undoing the upload is reported instead of the original error, because a
      // failing disk or catalog requires attention.
      reported = worse;
    }
  }
  return reported;
}
