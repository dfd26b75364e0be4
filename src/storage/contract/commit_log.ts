/**
 * The commit log as the commit path sees it. `local_wal/` implements it on a Disk; another
 * implementation may store the log elsewhere.
 *
 * A commit is written in one tick: `begin`, then rows, then `end`. `abort` instead of `end`
 * discards the commit. Commits become durable in groups, in order. Each group has a number, and
 * numbers ascend.
 */
import type { Batch, Row } from "../../types/mod.ts";
import type { StoredColumn } from "./table_definition.ts";
import type { TableWrite } from "./writes.ts";

/** Called when groups settle, but never between `begin` and `end`. */
export interface CommitLogEvents {
  /** Called when all commits up to and including this group may be acknowledged. */
  onSettled(groupNumber: number): void;
  /**
   * Called when this group and every later one were rolled back completely, because there was no
   * room or no file for them.
   */
  onTakenBack(groupNumber: number, cause: unknown): void;
  /**
   * Called when the log has failed. Nobody knows which commits after the settled groups are
   * durable, and the log accepts no further ones.
   */
  onFatal(cause: unknown): void;
}

/**
 * A commit on its way to the log. The caller calls its methods in this order: `beginWrite` and the
 * rows of each write, then `end`.
 */
export interface PreparedCommit {
  /** Begins a write. The following rows have this table, owner and order of columns. */
  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void;
  /**
   * Adds a row. Indexes ascend.
   *
   * @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED. The commit is unusable afterwards.
   */
  addRow(row: Row, index: number, prev: number): void;
  /** Adds rows in columnar form. @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED */
  addBatch(batch: Batch, firstIndex: number, prevs: Float64Array): void;
  /** Ends the commit. No rows may follow. */
  end(): void;
}

/** A log file and its size. */
export interface ListedLogFile {
  readonly number: number;
  readonly bytes: number;
}

export interface CommitLog {
  events: CommitLogEvents;
  /** A lower bound on the numbers of the log files that will contain commits not yet written. */
  readonly oldestUnwrittenFile: number;
  /** Existing files, ascending by number. The last one is still being written. */
  readonly files: readonly ListedLogFile[];
  readonly oldestFile: number;
  /** The end of the written part, durable or not, and the highest seq in it. */
  readonly written: { readonly fileNumber: number; readonly offset: number; readonly seq: number };

  begin(catalogSeq: number): void;
  /** Begins a write. The following rows have this table, owner and order of columns. */
  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void;
  /** Adds a row. @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED; `abort` must follow. */
  addRow(row: Row, seq: number, prev: number): void;
  /**
   * Adds rows in columnar form.
   *
   * @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED; `abort` must follow.
   */
  addBatch(batch: Batch, seqs: Float64Array, prevs: Float64Array): void;
  abort(): void;
  /**
   * Submits the commit to the log. Returns the number of the group with which it becomes durable.
   */
  end(): number;
  /**
   * Starts to write a large pending group in this tick if nothing is ahead of it, so that the disk
   * works while the caller continues. Does not call any event handler.
   */
  writeEarly(): void;

  /**
   * Begins a commit that is encoded over many ticks, before its seqs are known. No part of it is in
   * the log before `append`. @param offsetOf The distance of a row's seq from that of the first
   * row.
   */
  prepare(offsetOf: (index: number) => number): PreparedCommit;
  /** Submits a prepared commit instead of `begin` to `end`. Returns the number of its group. */
  append(prepared: PreparedCommit, head: { catalogSeq: number; firstSeq: number }): number;

  /**
   * Resolves once the disk has everything up to a submitted seq, which may be after its group has
   * settled. Rejects if the log has failed.
   */
  synced(seq: number): Promise<void>;

  /** Allows the log to remove files below this number, since no table needs them for recovery. */
  release(belowFileNumber: number): void;
  /** Waits for pending writes and closes the files. */
  close(): Promise<void>;
}
