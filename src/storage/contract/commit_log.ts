/**
 * The log of commits, as the commit path sees it. `local_wal/` implements it over a Disk; another
 * implementation may keep it elsewhere.
 *
 * A commit is written in one turn: `begin`, then rows, then `end`; `abort` instead of `end` leaves
 * nothing. Commits become durable in groups, in order. A group is named by a number that ascends.
 */
import type { Batch, Row } from "../../types/mod.ts";
import type { StoredColumn, TableWrite } from "./store.ts";

/** Called as groups settle; never from within `begin` to `end`. */
export interface CommitLogEvents {
  /** Everything up to and including this group may be acknowledged. */
  onSettled(groupNumber: number): void;
  /** This group and every later one was taken back whole: there was no room, or no file, for it. */
  onTakenBack(groupNumber: number, cause: unknown): void;
  /** Nobody knows what is durable beyond the settled groups. The log takes nothing more. */
  onFatal(cause: unknown): void;
}

/** A commit on its way to the log: `beginWrite`, its rows, and so on, then `end`. */
export interface CommitDraft {
  /** The rows that follow are of this table and owner, in the order of these columns. */
  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void;
  /**
   * Indexes ascend.
   *
   * @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED; the draft is then of no use.
   */
  addRow(row: Row, index: number, prev: number): void;
  /** Rows of a write that is given by columns. @throws {DatabaseError} The same. */
  addBatch(batch: Batch, firstIndex: number, prevs: Float64Array): void;
  /** No row follows. */
  end(): void;
}

/** A file of the log, and its size. */
export interface ListedLogFile {
  readonly number: number;
  readonly bytes: number;
}

export interface CommitLog {
  events: CommitLogEvents;
  /** No frame that is handed over now, or was and is not yet written, is in a file before this. */
  readonly oldestUnwrittenFile: number;
  /** Files that are kept, ascending by number; the last one is written on. */
  readonly files: readonly ListedLogFile[];
  readonly oldestFile: number;
  /** The end of what was written, durable or not, and the highest seq in it. */
  readonly written: { readonly fileNumber: number; readonly offset: number; readonly seq: number };

  begin(catalogSeq: number): void;
  /** The rows that follow are of this table and owner, in the order of these columns. */
  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void;
  /** @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED; `abort` must follow. */
  addRow(row: Row, seq: number, prev: number): void;
  /**
   * Rows of a write that is given by columns.
   *
   * @throws {DatabaseError} ROW_TOO_LARGE, LIMIT_EXCEEDED; `abort` must follow.
   */
  addBatch(batch: Batch, seqs: Float64Array, prevs: Float64Array): void;
  abort(): void;
  /** Hands the commit over; returns the number of the group whose durability is the commit's. */
  end(): number;
  /**
   * Begins to write what was handed over, in this very turn, where that is large and nothing stands
   * before it: the disk works while the caller has more to do. Calls no event.
   */
  writeEarly(): void;

  /**
   * A commit that is encoded over many turns, before its seqs are known. Nothing of it is in the
   * log until `append`. @param offsetOf How far the seq of a row is behind that of the first row.
   */
  draft(offsetOf: (index: number) => number): CommitDraft;
  /** Hands a draft over, whole, in place of `begin` to `end`; returns what `end` does. */
  append(draft: CommitDraft, head: { catalogSeq: number; firstSeq: number }): number;

  /**
   * Resolves once the disk has everything up to a seq that was handed over, which may be later than
   * it was settled. Rejects when the log has failed.
   */
  synced(seq: number): Promise<void>;

  /** Files below this number are not needed to recover any table. */
  release(belowFileNumber: number): void;
  /** Waits for what is under way, and lets go of the files. */
  close(): Promise<void>;
}
