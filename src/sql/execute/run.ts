/**
 * What one execution of a statement carries: the caller, the snapshot, the values of its slots.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import type { Store } from "../../storage/mod.ts";
import type { Batch, Row, Value, Vector } from "../../types/mod.ts";
import type { BoundCte, BoundRecursion, BoundSubquery } from "../bind/bound.ts";
import type { CallWorld } from "../functions/function.ts";
import type { TemporaryFiles } from "../spill/mod.ts";
import type { HeldRows } from "./held_rows.ts";
import type { Pauses } from "./pausing.ts";
import type { Profile } from "./profile.ts";
import type { Transaction } from "./transaction.ts";

export interface Run {
  readonly principal: Principal;
  readonly store: Store;
  /** Whether the caller may read tombstones of a table; others see its live rows only. */
  mayReadHistory(table: TableEntry): boolean;
  /** Everything this statement reads is current at this seq. */
  readonly snapshotSeq: Seq;
  readonly transaction: Transaction | undefined;
  /** @throws {DatabaseError} SERIALIZATION_FAILURE when a table was altered since it was bound. */
  requireUnaltered(table: TableEntry): void;
  readonly call: CallWorld;
  /** Parameters and lifted literals, by slot number. */
  readonly slots: readonly Value[];
  /** Files that came with the statement. */
  readonly uploads?: UploadSink | undefined;
  /** @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED */
  checkTime(): void;
  monotonicMs(): number;
  /** @throws {DatabaseError} RESULT_TOO_LARGE if a result may not have so many rows. */
  checkResultRows(rowCount: number): void;
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
  /** Of EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined;
  /** What subqueries of the statement answered so far. */
  readonly subqueries: SubqueryAnswers;
  /** When an evaluation that takes long lets others run. */
  readonly pauses: Pauses;
  /** Lets go of readings that were paused, if there are any. */
  abandonReadings(): void;
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
  stateOf(subquery: BoundSubquery): { prepare(): Reading | undefined };
  /** Lets go of readings that were paused. */
  abandon(): void;
  /** The rows of an entry of WITH as a run sees it; who takes them gives them back. */
  takeRows(cte: BoundCte, run: Run): SharedRows;
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

/** One pass over an inner query, a batch at each step. */
export interface Reading {
  /** Returns whether it is over; it is closed then. @throws {DatabaseError} The time is over. */
  step(): boolean;
  close(): void;
}

/** Takes the rows that a statement is about to write, to place the files that they name. */
export interface UploadSink {
  /** Finds out which rows name them. @throws {DatabaseError} INVALID_INPUT */
  place(
    target: {
      readonly table: TableEntry;
      readonly owner: number;
      readonly filePositions: readonly number[];
      readonly keyOf: (row: Row) => Row;
    },
    rows: readonly Row[],
  ): void;
  /** Lists them and moves them to their places: in the turn in which those rows commit. */
  list(nowMs: number): void;
}

/** What an operator may hold in any case is this part of the budget. */
const CROWD_SHARE = 16;

/** A statement that held this part of the budget leaves garbage worth a collection. */
const LARGE_SHARE = 4;

/** Counts what a statement holds. Estimates: 16 bytes a cell, and the length of text. */
export class MemoryBudget {
  readonly #bytesMax: number;
  readonly #around: MemoryBudget | undefined;
  readonly #isElastic: boolean;
  #bytes = 0;
  #bytesPeak = 0;
  /** Of these, what elastic parts hold. */
  #elasticBytes = 0;

  constructor(bytesMax: number, around?: MemoryBudget, options?: { readonly isElastic: boolean }) {
    this.#bytesMax = bytesMax;
    this.#around = around;
    this.#isElastic = options?.isElastic === true;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /**
   * Whether who holds this part should move it to disk. The half of the whole is for what cannot be
   * moved, and every part may have some, lest its holder writes only crumbs.
   */
  get isCrowded(): boolean {
    const isMuch = this.#bytes > this.#bytesMax / CROWD_SHARE;
    return isMuch && this.#root.#bytes > this.#bytesMax / 2;
  }

  get #root(): MemoryBudget {
    return this.#around === undefined ? this : this.#around.#root;
  }

  /** Bytes that are held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether so much was held at a time that its memory is worth being asked back. */
  get wasLarge(): boolean {
    return this.#bytesPeak > this.#bytesMax / LARGE_SHARE;
  }

  /** A part of this budget that can be given back as a whole. */
  nested(): MemoryBudget {
    return new MemoryBudget(this.#bytesMax, this);
  }

  /**
   * The same, and never refused: for an operator that asks {@linkcode isCrowded} after each batch
   * and then moves to disk what it holds, so that it is over the budget by a batch at most. That
   * batch is not held against others: elastic parts count for at most the half that is theirs.
   */
  elastic(): MemoryBudget {
    return new MemoryBudget(this.#bytesMax, this, { isElastic: true });
  }

  /** Gives back all that was taken; it may be used again. */
  close(): void {
    this.#give(this.#bytes, this.#elasticBytes);
  }

  /** Takes the rows of a batch that are going to be kept. @throws {DatabaseError} MEMORY_EXCEEDED */
  takeBatch({ columns, rowCount }: Batch): void {
    this.take(batchBytes({ columns, rowCount }));
  }

  /** Gives back what was taken and is held no longer. */
  release(bytes: number): void {
    this.#give(bytes, this.#isElastic ? bytes : 0);
  }

  #give(bytes: number, elasticBytes: number): void {
    this.#bytes -= bytes;
    this.#elasticBytes -= elasticBytes;
    const around = this.#around;
    if (around !== undefined) around.#give(bytes, around.#isElastic ? bytes : elasticBytes);
  }

  #hold(bytes: number): void {
    this.#bytes += bytes;
    this.#elasticBytes += bytes;
    this.#bytesPeak = Math.max(this.#bytesPeak, this.#bytes);
    if (this.#around !== undefined) this.#around.#hold(bytes);
  }

  /** @throws {DatabaseError} MEMORY_EXCEEDED when the statement would hold more than it may. */
  take(bytes: number): void {
    if (this.#isElastic) return this.#hold(bytes);
    this.#bytes += bytes;
    this.#bytesPeak = Math.max(this.#bytesPeak, this.#bytes);
    if (this.#around !== undefined) this.#around.take(bytes);
    const excess = Math.max(0, this.#elasticBytes - this.#bytesMax / 2);
    if (this.#bytes - excess <= this.#bytesMax) return;
    throw new DatabaseError(
      "MEMORY_EXCEEDED",
      `Cannot run the statement: it needs more than ${this.#bytesMax} bytes of memory`,
      { hint: "read fewer rows, or raise performance.query_memory_bytes" },
    );
  }
}

/** Bytes that the rows of a batch are counted as. */
export function batchBytes({ columns, rowCount }: Batch): number {
  let bytes = 16 * rowCount * columns.length;
  for (const column of columns) {
    if (column.kind === "any") {
      for (const value of column.values) bytes += bytesOf(value) - 16;
    } else if (column.kind === "const") {
      bytes += rowCount * (bytesOf(column.value) - 16);
    } else if (column.kind === "utf8") {
      const { length, offsets } = column;
      bytes += 2 * ((offsets[length] ?? 0) - (offsets[0] ?? 0));
    }
  }
  return bytes;
}

/** Bytes that a value held by an operator is counted as. */
export function bytesOf(value: Value): number {
  if (typeof value === "string") return 16 + 2 * value.length;
  if (typeof value !== "object" || value === null) return 16;
  if (value instanceof Uint8Array || value instanceof Float32Array) return 16 + value.byteLength;
  return Array.isArray(value) ? 16 + 16 * value.length : 16;
}
