/**
 * Keeps the definitions that a transaction has changed: a draft of the catalog, the definitions of
 * its tables for the store, and the work to do once they have been published.
 *
 *     first definition ──► draft ──more definitions──► draft ──COMMIT──► published with the rows
 *                            └──ROLLBACK: dropped. Nothing of it has left this object.
 *
 * - A savepoint keeps the draft unchanged. The next definition continues with a copy.
 * - The commit takes one tick, in which no other commit is in progress. The rows reach the log
 *   before the definitions reach the catalog, and the catalog decides about both (see
 *   `catalog/undone_definitions.ts`).
 * - A definition may depend on the rows of a table, as SET NOT NULL does. If any other transaction
 *   has written to such a table since the snapshot, the commit fails.
 * - An index on a table with rows is built after the commit. Until a unique index is ready, nobody
 *   can write to its table, or to a table with a foreign key to it. Ending the request does not
 *   end the build, because the transaction has committed the index.
 */
import { defined } from "../../base/assert.ts";
import { inDoubt } from "../../base/bugs.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import {
  type DraftedCatalog,
  type IndexEntry,
  type PreparedDraft,
  refusesRows,
  type TableEntry,
} from "../../catalog/mod.ts";
import type { Commit, TableDefinition, TableWrite, WriteBatch } from "../../storage/mod.ts";
import { WriteGates } from "../admission/write_gates.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import type { DefinitionDeps } from "../ddl/definitions.ts";
import { dropTemporary } from "../ddl/drop_table.ts";
import { HeldOffsets } from "../ddl/held_offsets.ts";
import { finishIndexes, isCommittedIndex, withReferring } from "../ddl/index_definitions.ts";
import { holdsRows } from "../ddl/row_inspection.ts";
import { dropTemporarySequences } from "../ddl/sequence_definitions.ts";
import type { DroppedFileDeps } from "../ddl/table_statement.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type {
  CreateSequenceStatement,
  CreateTableStatement,
  CreateViewStatement,
  Statement,
} from "../parse/ast/ast.ts";
import { PlanCache } from "../prepare/plan_cache.ts";
import { systemViewsOf } from "../system/system_views.ts";
import { DraftedStore, type DraftedTables } from "./drafted_store.ts";
import type { RequestDeps } from "./request_deps.ts";

interface DefinitionsState {
  readonly draft: DraftedCatalog;
  readonly tables: DraftedTables;
  /** The tables whose live queries have to check the changed definitions. */
  readonly notified: Set<number>;
  /** The tables on whose stored rows a definition depends. */
  readonly inspected: Set<number>;
  /** The work that changes of definitions have deferred until after the commit. */
  readonly later: ((deps: DroppedFileDeps) => Promise<void>)[];
  hasViewChanges: boolean;
  hasTopicChanges: boolean;
  hasWebhookChanges: boolean;
}

/** A state that ROLLBACK TO can restore. */
export type DefinitionsMark = DefinitionsState;

/** Commits rows, if there are any, in the tick in which the definitions are published. */
export type MakeCommit = (apply: (batch: WriteBatch) => Commit) => Commit | undefined;

export class TransactionDefinitions {
  readonly #base: RequestDeps;
  readonly #transaction: Transaction;
  #state: DefinitionsState;
  /** Whether a savepoint refers to the current state, which must then not be modified. */
  #isKept = false;
  #deps: RequestDeps;

  constructor(base: RequestDeps, transaction: Transaction) {
    this.#base = base;
    this.#transaction = transaction;
    this.#state = {
      draft: base.catalog.draft(transaction.snapshotSeq),
      tables: new Map(),
      notified: new Set(),
      inspected: new Set(),
      later: [],
      hasViewChanges: false,
      hasTopicChanges: false,
      hasWebhookChanges: false,
    };
    this.#deps = this.#depsWith(this.#storeFor(undefined));
  }

  /** The dependencies of the transaction's statements on rows. */
  get deps(): RequestDeps {
    return this.#deps;
  }

  mark(): DefinitionsMark {
    this.#isKept = true;
    return this.#state;
  }

  returnTo(mark: DefinitionsMark): void {
    this.#state = mark;
    this.#isKept = true;
    this.#deps = this.#depsWith(this.#storeFor(undefined));
  }

  /**
   * Requires that no other transaction has changed a definition in the meantime.
   * @throws {DatabaseError} SERIALIZATION_FAILURE
   */
  requireCurrent(): void {
    this.#state.draft.requireCurrent();
  }

  /** Runs a change of definitions, which sees the transaction's definitions and rows. */
  async define<T>(run: (deps: DefinitionDeps) => Promise<T>): Promise<T> {
    this.requireCurrent();
    if (this.#isKept) this.#continueInCopy();
    try {
      return await run(this.#definitionDeps());
    } finally {
      this.#deps = this.#depsWith(this.#storeFor(undefined));
    }
  }

  #continueInCopy(): void {
    const { draft, inspected, later, notified, tables, ...rest } = this.#state;
    this.#state = {
      ...rest,
      draft: draft.copy(),
      tables: new Map(tables),
      notified: new Set(notified),
      inspected: new Set(inspected),
      later: [...later],
    };
    this.#isKept = false;
  }

  #storeFor(onInspected: ((tableId: number) => void) | undefined): DraftedStore {
    const { catalog, definitionOf, store } = this.#base;
    return new DraftedStore({
      store,
      catalog: this.#state.draft,
      tables: this.#state.tables,
      transaction: this.#transaction,
      storedOf: (tableId) => {
        const table = catalog.tableById(tableId);
        return table && definitionOf(table);
      },
      ...(onInspected !== undefined && { onInspected }),
    });
  }

  #depsWith(store: DraftedStore): RequestDeps {
    const { draft } = this.#state;
    const environment = { ...this.#base, catalog: draft, store };
    return {
      ...environment,
      systemViews: systemViewsOf(environment),
      plans: new PlanCache(draft, this.#base.limits.planBytes),
      // Readers cannot be used, because only the event loop has the transaction's definitions.
      readers: undefined,
    };
  }

  #definitionDeps(): DefinitionDeps {
    const state = this.#state;
    const { clock, webhooks } = this.#base;
    const {
      live: _live,
      topics: _topics,
      webhooks: _webhooks,
      ...deps
    } = this.#depsWith(this.#storeFor((tableId) => state.inspected.add(tableId)));
    return {
      ...deps,
      // Other statements may write until the commit, which checks whether they have written.
      writeGates: new WriteGates(clock),
      live: () => ({
        tableChanged: (tableId) => void state.notified.add(tableId),
        viewChanged: () => {
          state.hasViewChanges = true;
        },
      }),
      topics: () => ({
        holdOffsets: async () => () => {},
        topicsChanged: () => {
          state.hasTopicChanges = true;
        },
      }),
      webhooks: () => ({
        requireUrl: (url, position) => webhooks().requireUrl(url, position),
        webhooksChanged: () => {
          state.hasWebhookChanges = true;
        },
      }),
      afterCommit: (work) => void state.later.push(work),
    };
  }

  /**
   * Drops temporary objects, which end with the transaction. Returns whether there are other
   * definitions to publish.
   *
   * @throws {DatabaseError}
   */
  async dropTemporary(ledger: RequestLedger): Promise<boolean> {
    const { draft } = this.#state;
    const tables = draft.tables().filter(endsHere);
    const views = draft.views().filter(endsHere);
    if (tables.length + views.length > 0) {
      const ids = {
        tableIds: tables.map(({ tableId }) => tableId),
        viewIds: views.map(({ viewId }) => viewId),
      };
      await this.define((deps) => dropTemporary(ids, ledger, deps));
    }
    if (draft.sequences().some(endsHere)) {
      await this.define(async (deps) => dropTemporarySequences(deps));
    }
    return this.#state.draft.hasLastingChanges;
  }

  /**
   * Publishes the definitions, and commits rows together with them.
   *
   * @param gatedIds The tables whose write gates the transaction has already closed.
   * @throws {DatabaseError} SERIALIZATION_FAILURE, and the errors of `make` and of the commit. In
   *   all of these cases, nothing has changed.
   */
  async commit(
    { gatedIds, ledger }: { readonly gatedIds: readonly number[]; readonly ledger: RequestLedger },
    make: MakeCommit,
  ): Promise<Commit | undefined> {
    const { jobs, store, writeGates } = this.#base;
    const held = new HeldOffsets(this.#base);
    const gated = this.#gatedIds().filter((id) => !gatedIds.includes(id));
    const open = gated.length === 0 ? undefined : await writeGates.close(gated, ledger);
    try {
      for (const tableId of this.#storedIds()) await held.hold(tableId);
      const commit = await store.exclusively(() => this.#publish(make));
      await this.#finish();
      return commit;
    } finally {
      held.release();
      // If the server is stopping, the build of the index continues after the next startup, and no
      // statement may write to the table before that.
      if (!jobs.isClosing) open?.();
    }
  }

  /** Returns the tables that existed before the transaction and were changed by it. */
  #storedIds(): readonly number[] {
    return [...this.#state.tables].flatMap(([id, { stored }]) => (stored === undefined ? [] : id));
  }

  /** Publishes the definitions in this tick. */
  #publish(make: MakeCommit): Commit | undefined {
    const { store } = this.#base;
    const { draft, tables } = this.#state;
    this.#requireUnwritten();
    const seq = store.issueSeq();
    const prepared = draft.prepare(seq, (table) => this.#published(table));
    const publish = (lastSeq?: Seq): void => prepared.publish(lastSeq);
    let isAnnounced = false;
    let isLogged = false;
    const onWriting = (): void => {
      isLogged = true;
    };
    let commit: Commit | undefined;
    try {
      commit = make((batch) => {
        prepared.announce();
        isAnnounced = true;
        this.#defineForWriting(prepared);
        return store.applyWith(this.#withDropped(batch), { seq, onWriting, publish });
      });
      if (commit === undefined) publish();
    } catch (error) {
      if (isAnnounced) this.#undo();
      // The log may still contain the rows of the failed commit, and recovery has to ignore them.
      if (isAnnounced && !isLogged) this.#withdraw(prepared);
      throw error;
    }
    try {
      for (const [tableId, { definition, stored }] of tables) {
        if (definition !== undefined) store.defineTable(this.#definitionIn(prepared, tableId));
        else if (stored !== undefined) store.dropTable(tableId);
      }
      this.#notify();
    } catch (error) {
      throw inDoubt(error);
    }
    return commit;
  }

  #definitionIn(prepared: PreparedDraft, tableId: number): TableDefinition {
    const entry = defined(
      prepared.tableById(tableId),
      "transaction: redefined table is missing from the catalog",
    );
    return this.#base.definitionOf(entry);
  }

  /**
   * Gives the store definitions with which rows can be written. They still include the columns and
   * indexes to be dropped, because the store would otherwise discard their values. A unique index
   * that is to be dropped rejects no rows.
   */
  #defineForWriting(prepared: PreparedDraft): void {
    for (const [tableId, { definition, stored }] of this.#state.tables) {
      if (definition === undefined) continue;
      const next = this.#definitionIn(prepared, tableId);
      const { indexes = [] } = next;
      const kept = (stored?.indexes ?? [])
        .filter(({ indexId }) => indexes.every((index) => index.indexId !== indexId))
        .map((index) => Object.assign({}, index, { isUnique: false, isExclusion: false }));
      this.#base.store.defineTable({
        ...next,
        columns: [...next.columns, ...droppedColumns({ definition: next, stored })],
        indexes: [...indexes, ...kept],
      });
    }
  }

  /** Returns rows to which a value has been added for each column to be dropped. */
  #withDropped(batch: WriteBatch): WriteBatch {
    const writes = batch.writes.map((write): TableWrite => {
      const table = this.#state.tables.get(write.tableId);
      const dropped = table === undefined ? [] : droppedColumns(table);
      if (dropped.length === 0) return write;
      const nothing = dropped.map(() => null);
      return { ...write, rows: write.rows.map((row) => [...row, ...nothing]) };
    });
    return { ...batch, writes };
  }

  /** Restores the definitions that the store had before the commit. */
  #undo(): void {
    const { store } = this.#base;
    try {
      for (const [tableId, { definition, stored }] of this.#state.tables) {
        if (stored !== undefined && definition !== undefined) store.defineTable(stored);
        else if (definition !== undefined) store.dropTable(tableId);
      }
    } catch (error) {
      throw inDoubt(error);
    }
  }

  #withdraw(prepared: PreparedDraft): void {
    try {
      prepared.withdraw();
    } catch (error) {
      // Safe to ignore: no row was written under the seq of the failed commit, and that seq is
      // never issued again.
      if (!isExpected(error)) throw error;
      this.#base.log.warn("cannot withdraw the unpublished definitions of a failed transaction", {
        error: error.message,
      });
    }
  }

  /**
   * Requires that no other transaction has written to the tables on whose rows the definitions
   * depend.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE
   */
  #requireUnwritten(): void {
    const { catalog, store } = this.#base;
    const { snapshotSeq } = this.#transaction;
    for (const tableId of this.#state.inspected) {
      const table = catalog.tableById(tableId);
      if (table === undefined) continue;
      for (const owner of store.owners(tableId)) {
        if (store.lastCommitUpTo(tableId, owner, store.appliedSeq) <= snapshotSeq) continue;
        throw new DatabaseError(
          "SERIALIZATION_FAILURE",
          `Cannot commit the transaction: it checked the rows of ${nameOf(table)} for a ` +
            "definition, but a concurrent transaction has changed them",
          { hint: "run the transaction again" },
        );
      }
    }
  }

  /**
   * Returns the form in which a table is published. New indexes on tables with rows are built
   * afterwards.
   */
  #published(table: TableEntry): TableEntry {
    const { catalog, store } = this.#base;
    const before = catalog.tableById(table.tableId);
    if (before === undefined || table.indexes === undefined) return table;
    if (!holdsRows(store, table.tableId)) return table;
    const known = new Set(before.indexes?.map(({ indexId }) => indexId));
    const indexes = table.indexes.map((index): IndexEntry => {
      if (known.has(index.indexId)) return index;
      const { enforcedSeq: _, ...rest } = index;
      return { ...rest, state: "building", isCommitted: true };
    });
    return { ...table, indexes };
  }

  /**
   * Returns the tables to which nobody can write until unique indexes have been built after the
   * commit.
   */
  #gatedIds(): readonly number[] {
    const built = [...this.#state.tables.keys()].filter((id) => this.#isBuiltLater(id));
    return withReferring(built, this.#state.draft.tables());
  }

  /** Whether a table gets a unique index that is built after the commit. */
  #isBuiltLater(tableId: number): boolean {
    const { catalog } = this.#base;
    const before = catalog.tableById(tableId);
    const after = this.#state.draft.tableById(tableId);
    if (before === undefined || after === undefined) return false;
    const known = new Set(before.indexes?.map(({ indexId }) => indexId));
    return after.indexes?.some((index) => refusesRows(index) && !known.has(index.indexId)) === true;
  }

  #notify(): void {
    const { live, topics, webhooks } = this.#base;
    const { hasTopicChanges, hasViewChanges, hasWebhookChanges, notified } = this.#state;
    for (const tableId of notified) live().tableChanged(tableId);
    if (hasViewChanges) live().viewChanged();
    if (hasTopicChanges) topics().topicsChanged();
    if (hasWebhookChanges) webhooks().webhooksChanged();
  }

  /** Builds new indexes, and does the work that was deferred until after the commit. */
  async #finish(): Promise<void> {
    const { catalog, log } = this.#base;
    for (const tableId of this.#storedIds()) {
      const table = catalog.tableById(tableId);
      const made = table?.indexes?.filter(isCommittedIndex) ?? [];
      if (table === undefined || made.length === 0) continue;
      try {
        await finishIndexes(this.#base, tableId, { made });
      } catch (error) {
        // Safe to ignore: the transaction has committed, and the job shows why the index is
        // missing.
        if (!isExpected(error)) throw error;
        log.error("cannot build an index", { table: nameOf(table), error: error.message });
      }
    }
    for (const work of this.#state.later) await work(this.#base);
  }
}

function droppedColumns({
  definition,
  stored,
}: {
  definition: TableDefinition | undefined;
  stored: TableDefinition | undefined;
}): TableDefinition["columns"] {
  const kept = new Set(definition?.columns.map(({ columnId }) => columnId));
  return (stored?.columns ?? []).filter(({ columnId }) => !kept.has(columnId));
}

/** Whether a table, view or sequence ends with its transaction. */
function endsHere({ isTemporary }: { readonly isTemporary?: true | undefined }): boolean {
  return isTemporary === true;
}

type TemporaryDefinition = CreateSequenceStatement | CreateTableStatement | CreateViewStatement;

/** Whether a statement creates a temporary object. */
export function isTemporaryDefinition(node: Statement): node is TemporaryDefinition {
  return "temporary" in node && node.temporary === true && node.type !== "create table as";
}

/**
 * Returns the error for a temporary object that would disappear at the end of its own statement.
 */
export function temporaryOutside({ name, type }: TemporaryDefinition): DatabaseError {
  const kind = type.replace("create ", "");
  return new DatabaseError(
    "TRANSACTION_REQUIRED",
    `Cannot create temporary ${kind} ${name.name}: no transaction is open, so the ${kind} would ` +
      "be dropped at the end of this statement",
    {
      position: name._location.start,
      hint: `open a transaction with BEGIN; the ${kind} is dropped when the transaction ends`,
    },
  );
}
