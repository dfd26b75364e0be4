/**
 * Defines the commit log as seen by the commit path. `local_wal/` implements it on a Disk; another
 * implementation could store the log elsewhere.
 *
 * A commit is written in one tick: `begin`, then rows, then `end`. Calling `abort` instead of
 * `end` discards the commit. Commits become durable in groups, in ascending order of group number.
 */
import type { Batch, Row } from "../../types/mod.ts";
import type { StoredColumn } from "./table_definition.ts";
import type { TableWrite } from "./writes.ts";

/** Events of the log when groups of commits settle. None occurs between `begin` and `end`. */
export interface CommitLogEvents {
  /** Called when all commits up to and including this group of commits may be acknowledged. */
  onSettled(groupNumber: number): void;
  /**
   * Called when this group and all later groups have been rolled back completely, because the disk
   * is full or a file could not be opened.
   */
  onTakenBack(groupNumber: number, cause: unknown): void;
  /**
   * Called when the log has failed. It is then unknown which commits after the settled groups are
   * durable, and the log accepts no more commits.
   */
  onFatal(cause: unknown): void;
}

/**
 * A commit that is being encoded for the log. For each write, the caller calls `beginWrite` and
 * adds the rows. After the last write, it calls `end`.
 */
export interface PreparedCommit {
  /**
   * Begins a write within the commit. Its table, owner and column order apply to the rows added
   * next.
   */
  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void;
  /**
   * Adds a row to the commit. Row indexes within the commit must ascend.
   *
   * @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED. The commit is unusable afterwards.
   */
  addRow(row: Row, index: number, prev: number): void;
  /**
   * Adds rows in columnar form to the commit. @throws {DatabaseError} ROW_TOO_LARGE,
   * LIMIT_EXCEEDED
   */
  addBatch(batch: Batch, firstIndex: number, prevs: Float64Array): void;
  /** Ends the commit. No rows may be added afterwards. */
  end(): void;
}

/** A log file and its size. */
export interface ListedLogFile {
  readonly number: number;
  readonly bytes: number;
}

export interface CommitLog {
  events: CommitLogEvents;
  /** A lower bound on the numbers of the log files that will receive commits not yet written. */
  readonly oldestUnwrittenFile: number;
  /**
   * The existing log files, in ascending order of number. The last file is still being written.
   */
  readonly files: readonly ListedLogFile[];
  readonly oldestFile: number;
  /** The end of the written part of the log, durable or not, and the highest seq in it. */
  readonly written: { readonly fileNumber: number; readonly offset: number; readonly seq: number };

  begin(catalogSeq: number): void;
  /**
   * Begins a write within the commit. Its table, owner and column order apply to the rows added
   * next.
   */
  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void;
  /**
   * Adds a row to the commit. @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED; `abort` must
   * follow.
   */
  addRow(row: Row, seq: number, prev: number): void;
  /**
   * Adds rows in columnar form to the commit.
   * @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED; `abort` must follow.
   */
  addBatch(batch: Batch, seqs: Float64Array, prevs: Float64Array): void;
  abort(): void;
  /**
   * Submits the commit to the log. Returns the number of the group with which it becomes durable.
   */
  end(): number;
  /**
   * If a large group is pending and no other group is ahead of it, starts writing the group in
   * this tick, so that the disk works while the caller continues. Never calls an event handler.
   */
  writeEarly(): void;

  /**
   * Begins a commit that is encoded over many ticks, before its seqs are known. No part of it is
   * in the log until `append` is called.
   *
   * @param offsetOf Returns the offset of a row's seq from the first row's seq.
   */
  prepare(offsetOf: (index: number) => number): PreparedCommit;
  /**
   * Submits a prepared commit, in place of the calls from `begin` to `end`. Returns its group
   * number.
   */
  append(prepared: PreparedCommit, head: { catalogSeq: number; firstSeq: number }): number;

  /**
   * Waits until no group of commits is being written to disk, and prevents further writing until
   * the returned function is called. Commits may be submitted in the meantime.
   */
  pause(): Promise<() => void>;
  /**
   * While the log is paused, makes all submitted commits durable within this tick.
   *
   * @param decide Called once the commits are durable and before they settle. If it throws, the
   *   commits are rolled back in memory, and the error is rethrown. Their frames remain in the
   *   log, so the caller must have recorded that recovery is to ignore them.
   * @returns Whether the commits have settled. If not, the events have reported the reason.
   */
  writeNow(decide?: () => void): boolean;

  /**
   * Resolves once all commits up to a submitted seq are on disk, which may be after their groups
   * have settled. Rejects if the log has failed.
   */
  synced(seq: number): Promise<void>;

  /**
   * Allows the log to remove all files with numbers below the given one, because recovery no
   * longer needs them.
   */
  release(belowFileNumber: number): void;
  /** Waits for pending writes and closes the files. */
  close(): Promise<void>;
}
