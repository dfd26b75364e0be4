/**
 * Defines the context in which a statement is executed: the caller, the snapshot, and the values of
 * the statement's slots.
 */
import type { Principal } from "../../../auth/mod.ts";
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { Seq } from "../../../base/seq.ts";
import type { ForeignKeyEntry, TableEntry } from "../../../catalog/mod.ts";
import type { ReadStore, ScanShare, WriteStore } from "../../../storage/mod.ts";
import type { Batch, Row, Value, Vector } from "../../../types/mod.ts";
import type { BoundCte, BoundRecursion, PastRead } from "../../bind/bound.ts";
import type { BoundSubquery } from "../../bind/bound_expressions.ts";
import type { CallDeps } from "../../functions/base/function.ts";
import type { TemporaryFiles } from "../../spill/mod.ts";
import type { MaterialisedRows } from "../materialised/materialised_rows.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import type { Effort } from "./effort.ts";
import type { Profile } from "./profile.ts";
import type { StatementParts } from "./statement_parts.ts";
import type { StorageMeter } from "./storage_meter.ts";
import type { StagedRows, Transaction } from "./transaction.ts";
import type { TriggerCalls } from "./trigger_calls.ts";

export interface ExecutionContext {
  readonly principal: Principal;
  readonly store: ReadStore;
  /** The store to which changes are written; absent for a query. */
  readonly writes: WriteStore | undefined;
  /** Whether the caller may read a table's tombstones. Other callers see only live rows. */
  mayReadHistory(table: TableEntry): boolean;
  /** The seq as of which the statement reads everything except past reads. */
  readonly snapshotSeq: Seq;
  /**
   * Returns the seq of a past read. The seq stays the same throughout the run. Call this
   * immediately before each read, because history may be discarded.
   *
   * @throws {DatabaseError} HISTORY_TOO_OLD, VALUE_OUT_OF_RANGE, and the errors of the expression.
   */
  pastSeq(past: PastRead): Seq;
  /** The transaction that receives the statement's changes; absent in a reader. */
  readonly transaction: Transaction | undefined;
  /** The staged rows that the statement sees in place of stored rows with the same keys. */
  readonly staged: StagedRows | undefined;
  /**
   * Requires that a table still has the definition with which the statement was bound.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if the table was altered.
   */
  requireUnaltered(table: TableEntry): void;
  /**
   * The information about other tables that foreign keys need. A reader thread has none, because
   * it changes nothing.
   */
  readonly references?: References | undefined;
  readonly call: CallDeps;
  /** The values of parameters and lifted literals, indexed by slot number. */
  readonly slots: readonly Value[];
  /** Checks storage limits; undefined if there are none. */
  readonly storageMeter: StorageMeter | undefined;
  /** Receives the files uploaded with the statement. */
  readonly uploads?: UploadSink | undefined;
  /** The data from which COPY FROM reads rows. */
  readonly copyInput?: CopyInput | undefined;
  /**
   * Throws if the statement has to end or to leave the event loop. Every loop that may take a long
   * time calls this method.
   *
   * @throws SLICE_OVER
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  checkTime(): void;
  /**
   * Whether the statement is still in its first time slice on the event loop. If so, it may be
   * restarted in a reader.
   */
  readonly mayLeave: boolean;
  /** Keeps the rest of the statement in this thread. Its first time slice is no longer limited. */
  stay(): void;
  /**
   * Lets other work run if the time slice is over. The other work may change any state.
   *
   * @throws {DatabaseError}
   */
  pause(): Promise<void>;
  monotonicMs(): number;
  /**
   * Checks the number of rows in a result.
   * @throws {DatabaseError} RESULT_TOO_LARGE
   */
  checkResultRows(rowCount: number): void;
  /** Records that rows are being read in a sort order, which only the event loop maintains. */
  noteReadInOrder(): void;
  /** Records the number of rows read from a table, for monitoring. */
  noteRead(rowCount: number): void;
  /** The memory budget for operators that keep rows. */
  readonly memory: MemoryBudget;
  /** The temporary files for rows that do not fit into memory. */
  readonly temporary: TemporaryFiles;
  /** The values passed from the enclosing query, keyed by the id of the outer reference. */
  readonly outer: ReadonlyMap<number, Value>;
  /** The rows of the previous step of each running recursive query. */
  readonly working: ReadonlyMap<BoundRecursion, MaterialisedRows>;
  /**
   * The part of the query that this reader executes, if several readers divide the query among
   * themselves.
   */
  readonly division?: QueryShare | undefined;
  /** The measurements for EXPLAIN ANALYZE; absent for other statements. */
  readonly profile?: Profile | undefined;
  /** The subqueries of the statement, with the results that have been computed so far. */
  readonly subqueries: SubqueryAnswers;
  readonly effort: Effort;
  /** Calls the functions of triggers; absent for a query and in a reader. */
  readonly triggers?: TriggerCalls | undefined;
  /** The state of a statement with changes in WITH; absent for any other statement. */
  readonly parts?: StatementParts | undefined;
}

/** Finds foreign keys, and the owners of rows, in other tables of the catalog. */
export interface References {
  /** The seq of the newest state, on which a commit in this tick builds. */
  readonly appliedSeq: Seq;
  tableById(tableId: number): TableEntry | undefined;
  /** Returns whether the caller may read a table, so that messages may name it. */
  mayName(table: TableEntry): boolean;
  /** Returns the foreign keys that reference a table. */
  to(tableId: number): readonly IncomingReference[];
  /** Returns the owners whose rows a table may contain. */
  owners(tableId: number): readonly number[];
}

/** A foreign key, and the table that declares it. */
export interface IncomingReference {
  readonly child: TableEntry;
  readonly key: ForeignKeyEntry;
}

/** The part of a divided query that a single reader executes. */
export interface QueryShare {
  /** The row groups that this part of the query scans. */
  readonly share: ScanShare;
  /**
   * The rows of all parts of a divided query, for the reader that runs the rest of the query over
   * them.
   */
  gathered: readonly Batch[];
}

/**
 * Checks the number of rows in a result.
 *
 * @param rowsMax 0 for no limit.
 * @throws {DatabaseError} RESULT_TOO_LARGE if the result has more rows than `rowsMax`.
 */
export function checkResultRows(rowCount: number, rowsMax: number): void {
  if (rowsMax === 0 || rowCount <= rowsMax) return;
  throw new DatabaseError(
    "RESULT_TOO_LARGE",
    `Cannot return more than ${rowsMax} rows (limits.max_result_rows)`,
    {
      hint: "add a LIMIT clause, or raise limits.max_result_rows",
    },
  );
}

/** Computes the results of an execution's subqueries, and keeps them. */
export interface SubqueryAnswers {
  /**
   * Returns the result of a subquery for each combination of outer values in `questions`.
   * @throws {DatabaseError} The errors of the query.
   */
  valuesOf(subquery: BoundSubquery, questions: RowsOfQuestions): Value[];
  /**
   * Returns the rows of a WITH entry. The caller must call `giveBack` when it no longer reads
   * them.
   */
  takeRows(cte: BoundCte, context: ExecutionContext): SharedRows;
  /**
   * Returns the subquery results for a single step of a recursion. Subqueries that depend on the
   * rows of the previous step are computed anew.
   */
  inStep(recursion: BoundRecursion, step: ExecutionContext): StepAnswers;
}

export interface StepAnswers extends SubqueryAnswers {
  /** Whether any result that is valid only in this step has been stored. */
  readonly isUsed: boolean;
  /** Releases the resources of the recursion step. */
  end(): void;
}

/**
 * Rows that several consumers read. They are computed only as far as the fastest consumer has
 * advanced.
 */
export interface SharedRows {
  /**
   * Returns at most one batch of rows, starting at `position`; undefined if no more rows have been
   * computed yet.
   */
  read(position: number): Batch | undefined;
  /** Computes another batch of rows. Returns false if there are no more rows. */
  advance(): boolean;
  giveBack(): void;
}

/** The combinations of outer values for which a subquery has to be evaluated. */
export interface RowsOfQuestions {
  readonly outerValues: readonly Vector[];
  readonly operands: readonly Vector[];
  readonly rowCount: number;
}

/** The data of a COPY FROM, which is read in pieces. */
export interface CopyInput {
  /**
   * Returns the next bytes; undefined at the end of the data.
   *
   * @throws {DatabaseError} CANCELLED or another reason to end the request
   */
  next(): Promise<Uint8Array | undefined>;
  /** Records that COPY FROM has read a number of rows. */
  note(rowCount: number): void;
  /** Records that COPY FROM has skipped a number of rows, each because of a faulty value. */
  noteSkipped(rowCount: number): void;
}

/** The table to which a statement writes rows with files. */
export interface UploadTarget {
  readonly table: TableEntry;
  readonly owner: number;
  readonly filePositions: readonly number[];
  readonly keyOf: (row: Row) => Row;
}

/**
 * Receives the rows that a statement is about to write, in order to store the files that they
 * mention.
 */
export interface UploadSink {
  /**
   * Assigns the uploaded files of a statement to the rows that mention them.
   *
   * @throws {DatabaseError} INVALID_INPUT
   */
  place(target: UploadTarget, rows: readonly Row[]): void;
  /**
   * Adds the uploaded files to the catalog and moves them into place, in the tick in which their
   * rows commit.
   */
  list(nowMs: number): void;
  /** The total size of the uploaded files that rows mention, in bytes. */
  readonly placedBytes: number;
}

/** Returns the store to which a statement writes its changes. */
export function writeStoreOf({ writes }: ExecutionContext): WriteStore {
  return defined(writes, "execution context: data-modifying statement has no store to write to");
}
