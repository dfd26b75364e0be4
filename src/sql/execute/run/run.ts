/**
 * What one execution of a statement carries: the caller, the snapshot, the values of its slots.
 */
import type { Principal } from "../../../auth/mod.ts";
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { Seq } from "../../../base/seq.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import type { ReadStore, ScanShare, WriteStore } from "../../../storage/mod.ts";
import type { Batch, Row, Value, Vector } from "../../../types/mod.ts";
import type { BoundCte, BoundRecursion } from "../../bind/bound.ts";
import type { BoundSubquery } from "../../bind/bound_expressions.ts";
import type { CallWorld } from "../../functions/base/function.ts";
import type { TemporaryFiles } from "../../spill/mod.ts";
import type { HeldRows } from "../held/held_rows.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import type { Effort } from "./effort.ts";
import type { Profile } from "./profile.ts";
import type { StorageMeter } from "./storage_meter.ts";
import type { StagedRows, Transaction } from "./transaction.ts";

export interface Run {
  readonly principal: Principal;
  readonly store: ReadStore;
  /** The store that takes the changes; a query has none. */
  readonly writes: WriteStore | undefined;
  /** Whether the caller may read tombstones of a table; others see its live rows only. */
  mayReadHistory(table: TableEntry): boolean;
  /** Everything this statement reads is current at this seq. */
  readonly snapshotSeq: Seq;
  /** The one that takes the changes of the statement; none in a reader. */
  readonly transaction: Transaction | undefined;
  /** The rows that the statement reads in place of stored ones. */
  readonly staged: StagedRows | undefined;
  /** @throws {DatabaseError} SERIALIZATION_FAILURE when a table was altered since it was bound. */
  requireUnaltered(table: TableEntry): void;
  readonly call: CallWorld;
  /** Parameters and lifted literals, by slot number. */
  readonly slots: readonly Value[];
  /** Present if users have a storage limit. */
  readonly storageMeter: StorageMeter | undefined;
  /** Files that came with the statement. */
  readonly uploads?: UploadSink | undefined;
  /**
   * Called in each loop that may run for long.
   *
   * @throws TURN_OVER @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  checkTime(): void;
  /** From now on the statement runs to its end here: its turn has no end. */
  stay(): void;
  /** Lets others run if it is time to: others may have changed anything. @throws {DatabaseError} */
  pause(): Promise<void>;
  monotonicMs(): number;
  /** @throws {DatabaseError} RESULT_TOO_LARGE if a result may not have so many rows. */
  checkResultRows(rowCount: number): void;
  /** Rows are read in an order that only the event loop keeps. */
  noteReadInOrder(): void;
  /** Rows were read from a table: for who watches the statement. */
  noteRead(rowCount: number): void;
  /** Bytes of memory left for operators that hold rows. */
  readonly memory: MemoryBudget;
  /** Where operators put rows that the memory does not hold. */
  readonly temporary: TemporaryFiles;
  /** Values of the query around this one, by the id of their capture. */
  readonly outer: ReadonlyMap<number, Value>;
  /** Rows of the step before, of each recursive query that is under way. */
  readonly working: ReadonlyMap<BoundRecursion, HeldRows>;
  /** Present if several readers divide the query. */
  readonly division?: RunDivision | undefined;
  /** Of EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined;
  /** What subqueries of the statement answered so far. */
  readonly subqueries: SubqueryAnswers;
  readonly effort: Effort;
}

/** The part of a divided query that one run reads. */
export interface RunDivision {
  /** The row groups that it reads. */
  readonly share: ScanShare;
  /** The rows of all parts, once the rest of the query runs over them. */
  gathered: readonly Batch[];
}

/** @throws {DatabaseError} RESULT_TOO_LARGE above `rowsMax`; 0 is no limit. */
export function checkResultRows(rowCount: number, rowsMax: number): void {
  if (rowsMax === 0 || rowCount <= rowsMax) return;
  throw new DatabaseError("RESULT_TOO_LARGE", `Cannot answer with more than ${rowsMax} rows`, {
    hint: "add LIMIT, or raise limits.max_result_rows",
  });
}

/** Answers the subqueries of one run. */
export interface SubqueryAnswers {
  /** @throws {DatabaseError} What the query raises. */
  valuesOf(subquery: BoundSubquery, questions: RowsOfQuestions): Value[];
  /** The rows of an entry of WITH as a run sees it; who takes them gives them back. */
  takeRows(cte: BoundCte, run: Run): SharedRows;
  /**
   * The answers for one step of a recursion: new ones where they depend on the previous step's
   * rows.
   */
  inStep(recursion: BoundRecursion, step: Run): StepAnswers;
}

export interface StepAnswers extends SubqueryAnswers {
  /** Releases what the step held. */
  end(): void;
}

/** Rows that several readers share, computed as far as one of them has come. */
export interface SharedRows {
  /** At most one batch of rows from a position on; undefined where none are computed yet. */
  read(position: number): Batch | undefined;
  /** Computes a further batch. Returns false when there is none. */
  advance(): boolean;
  giveBack(): void;
}

/** What the rows around a subquery give to it. */
export interface RowsOfQuestions {
  readonly captured: readonly Vector[];
  readonly operands: readonly Vector[];
  readonly rowCount: number;
}

/** Where the rows of a statement go. */
export interface UploadTarget {
  readonly table: TableEntry;
  readonly owner: number;
  readonly filePositions: readonly number[];
  readonly keyOf: (row: Row) => Row;
}

/** Takes the rows that a statement is about to write, to place the files that they name. */
export interface UploadSink {
  /** Finds out which rows name them. @throws {DatabaseError} INVALID_INPUT */
  place(target: UploadTarget, rows: readonly Row[]): void;
  /** Lists them and moves them to their places: in the turn in which those rows commit. */
  list(nowMs: number): void;
  /** The size of the uploaded files that rows refer to. */
  readonly placedBytes: number;
}

/** The store that takes the changes of a statement. */
export function writeStoreOf({ writes }: Run): WriteStore {
  return defined(writes, "a change has a store to write to");
}
