/**
 * Defines the store for the layers above: an ordered stream of row versions, read up to a bound.
 *
 * - A row version is one state of one row under one seq, and never changes. It records the version
 *   that it replaces (`prev`, 0 for none) and the last seq of its commit.
 * - A tombstone is a version that marks its row as deleted and contains the row's last values.
 * - A version is current at S if its seq is at most S and it was not replaced at or before S.
 * - Only `apply` assigns seqs to rows. It runs without an await, so commits, seqs and the log file
 *   all have the same order.
 * - No layer above storage sees a version above `visibleSeq`, with one exception. A DML statement
 *   reads at `appliedSeq`. It writes in the same tick, or through a {@linkcode StagedCommit} that
 *   was begun in that tick and fails if anything that the statement read is rolled back.
 *
 * `storage/local_store.ts` implements this interface on a {@linkcode Disk}.
 */
import type { Seq } from "../../base/seq.ts";
import type { SeqEra } from "../../base/seq_times.ts";
import type { Row } from "../../types/mod.ts";
import type {
  AllChangesOptions,
  ChangeScan,
  ChangesOptions,
  OwnedChangeScan,
  VersionRows,
  VersionsOptions,
} from "./changes.ts";
import type { IndexReads } from "./index_reads.ts";
import type { Job } from "./job_list.ts";
import type { LookupOptions, OrderedScan, OrderedScanOptions, Scan, ScanOptions } from "./scans.ts";
import type { DroppedShares, ShareBounds, TableShares } from "./shared_tables.ts";
import type {
  CompactResult,
  FlushedStats,
  FlushResult,
  HeldHistory,
  ListedSegment,
  TableStats,
} from "./store_figures.ts";
import type { TableDefinition } from "./table_definition.ts";
import type {
  Commit,
  PublishedDefinitions,
  StagedCommit,
  StageOptions,
  WriteBatch,
} from "./writes.ts";

/** A partition in which a commit has changed rows. */
export interface ChangedPartition {
  readonly tableId: number;
  readonly owner: number;
}

/** Called in the tick in which `visibleSeq` advances, before the waiting writers are answered. */
export type OnVisible = (changed: readonly ChangedPartition[], visibleSeq: Seq) => void;

/** A range of seqs lost in a restore or a crash: above `after` and below `upTo`. */
export interface SeqGap {
  readonly after: number;
  readonly upTo: number;
}

/** The segments and memtables that the store has shared with one reader in another thread. */
export interface TableSharing {
  /**
   * Returns the segments and memtables that the reader still has although no table uses them, and
   * clears this list.
   */
  takeDropped(): DroppedShares;
}

/** A store whose tables can be read by readers in other threads. */
export interface SharingStore<Known extends TableSharing = TableSharing> {
  /** The mapping between seqs and clock times; see `base/seq_times.ts`. */
  readonly seqEras: readonly SeqEra[];
  /** Returns the sharing state for a new reader, which has no data yet. */
  newSharing(): Known;
  /**
   * Shares tables with a reader. The tables' files are kept until the share is released.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE, DATA_DAMAGED @throws {CorruptionError}
   */
  share(known: Known, tableIds: readonly number[], bounds: ShareBounds): TableShares;
}

/** The part of the store that queries use. Readers in other threads implement it, too. */
export type ReadStore = Pick<
  Store,
  | "visibleSeq"
  | "scan"
  | "changes"
  | "scanOrdered"
  | "scanChosen"
  | "scanIndex"
  | "lookup"
  | "lookupIndex"
  | "liveRowCount"
  | "commitMs"
  | "lastSeqUpTo"
  | "snowflakeId"
>;

/** The part of the store that statements need to write rows. */
export type WriteStore = Pick<Store, "apply" | "stage">;

export interface Store extends IndexReads {
  /** The highest durable seq. */
  readonly visibleSeq: Seq;
  /** The highest seq applied in memory, durable or not. */
  readonly appliedSeq: Seq;
  /** Called when commits become visible. Set once, before the first commit. */
  onVisible: OnVisible;

  /**
   * Checks that the disk has room for data other than rows. Must be called before such data is
   * added.
   *
   * @throws {DatabaseError} DISK_FULL in read-only mode.
   */
  requireFreeSpace(): void;
  /**
   * Adds a table, or changes its definition. Data that the table already has must have been
   * loaded.
   */
  defineTable(definition: TableDefinition): void;
  /**
   * Removes a table that the manifest no longer lists. Its files are removed once no reader pins
   * them.
   */
  dropTable(tableId: number): void;

  /**
   * Checks keys, assigns seqs, and appends the rows to memory and to the log. All of this happens
   * in this tick, completely or not at all.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE, DISK_FULL (read-only mode),
   *   ROW_TOO_LARGE, LIMIT_EXCEEDED.
   */
  apply(batch: WriteBatch): Commit;
  /**
   * Waits until no commit is being written to disk, and then runs `work` in one tick in which all
   * earlier commits are durable and visible. Other commits wait until `work` has ended.
   */
  exclusively<T>(work: () => T): Promise<T>;
  /**
   * Within {@linkcode exclusively}, combines a commit with definitions: both become durable and
   * visible, or neither does.
   *
   * @throws {DatabaseError} The errors of `apply`, of `durable` and of `publish`.
   */
  applyWith(batch: WriteBatch, definitions: PublishedDefinitions): Commit;
  /** Begins a commit whose preparation takes longer than a tick. */
  stage(options: StageOptions): StagedCommit;
  /**
   * Resolves when every commit up to `seq` is durable and visible. Rejects with COMMIT_UNKNOWN, or
   * with DISK_FULL or STORAGE_UNAVAILABLE if the commit was rolled back.
   */
  durable(seq: Seq): Promise<void>;

  scan(tableId: number, options: ScanOptions): Scan;
  /**
   * Reads rows in the order of a column. Returns undefined if there are few rows, if some of them
   * cannot be sorted, or if the order of this column is requested for the first time: sorting a
   * table takes as long as several scans.
   */
  scanOrdered(tableId: number, options: OrderedScanOptions): OrderedScan | undefined;
  changes(tableId: number, options: ChangesOptions): ChangeScan;
  /** Returns the row that is live under a key at a seq; undefined if there is none. */
  lookup(tableId: number, options: LookupOptions): Row | undefined;
  /**
   * Returns the seq at or below which row versions have expired for good; 0 if the table has no
   * TTL.
   */
  expiredSeq(tableId: number): number;
  /**
   * Returns the clock time at which a seq was issued, in Unix milliseconds. The time encoded in the
   * seq may be ahead of the clock.
   */
  commitMs(seq: number): number;
  /** Returns the last seq issued at or before a wall-clock time in Unix milliseconds. */
  lastSeqUpTo(unixMs: number): number;
  /**
   * Returns the newest seq such that it and all earlier seqs were issued at least `ageMs`
   * milliseconds ago; 0 if there is none.
   */
  agedSeq(ageMs: number): number;
  /**
   * Returns the earliest seq from which a client can resume without missing changes; 0 if no
   * history has been discarded.
   */
  earliestSeq(tableId: number, owner: number): Seq;
  /** Returns the highest seq, at most `upTo`, at which a partition shows only complete commits. */
  wholeCommitsUpTo(tableId: number, owner: number, upTo: Seq): Seq;
  /** Returns the seq of the newest commit at or below `upTo` that changed a partition, or 0. */
  lastCommitUpTo(tableId: number, owner: number, upTo: Seq): Seq;
  /**
   * Whether clients may have seen commits at this seq that were later lost. If so, a client cannot
   * resume from this seq.
   */
  wasLost(seq: number): boolean;
  /** Returns the owners who may have row versions in the table, in ascending order. */
  owners(tableId: number): readonly number[];
  /**
   * Returns the number of live rows at `visibleSeq`, for one owner or, if `owner` is undefined,
   * for all owners.
   */
  liveRowCount(tableId: number, owner: number | undefined): number;
  /**
   * Returns the number of distinct values in a column over all owners, estimated from a sample of
   * its segments; undefined if unknown.
   */
  distinctValues(tableId: number, columnId: number): number | undefined;

  /**
   * Flushes all versions in the table's memtables at the time of the call. If a job is passed, it
   * is started when the work begins; the caller ends it.
   */
  flush(tableId: number, job?: Job): Promise<FlushResult>;
  /**
   * Merges the segments of a table, and discards versions older than the history that the table
   * retains. If a job is passed, it is started here; the caller ends it.
   */
  compact(tableId: number, job?: Job): Promise<CompactResult>;
  /**
   * Removes every version of an erased owner, and refuses all further writes by that owner. If a
   * job is passed, it is started here but not ended, since it may include other work.
   *
   * @returns The number of row versions removed, including old versions of other owners.
   * @throws {DatabaseError} DATA_DAMAGED if a damaged segment may contain rows of the owner.
   */
  erase(tableId: number, owner: number, job?: Job): Promise<number>;
  /**
   * Adds all existing rows to one of the table's indexes. Resolves to false if the job was
   * cancelled or the index is no longer defined. The caller starts and ends the job.
   *
   * @throws {DatabaseError} DATA_DAMAGED if some rows cannot be read. @throws {DiskError}
   */
  buildIndex(tableId: number, indexId: number, job: Job): Promise<boolean>;
  /**
   * Checks that no two live rows have the same key in a unique index that already refuses new
   * duplicates. Resolves as `buildIndex` does.
   *
   * @throws {DatabaseError} DUPLICATE_KEY if several rows have the same key.
   */
  checkIndex(tableId: number, indexId: number, job: Job): Promise<boolean>;
  stats(tableId: number): TableStats;
  /**
   * Returns statistics of a table's segments, for one owner or, if `owner` is undefined, for all
   * owners.
   */
  flushedStats(tableId: number, owner: number | undefined): FlushedStats;
  segments(): readonly ListedSegment[];

  /**
   * Assigns a seq to a definition (CREATE, ALTER, DROP). Definitions and rows share one commit
   * order.
   */
  issueSeq(): Seq;
  /**
   * Issues an id that is laid out like a seq but comes from a separate generator. Ids ascend and
   * never repeat.
   */
  snowflakeId(): number;

  /** Syncs the log and closes all files, without flushing memtables. */
  close(): Promise<void>;
}

/** The operations of the store that topics use. */
export interface HistoryStore {
  /**
   * Reads the changes of all owners, including rows that have since expired. Rows in permanently
   * damaged segments are left out.
   *
   * @throws {DatabaseError} DATA_DAMAGED from `next` if the disk currently cannot read a segment.
   */
  changesOfAll(tableId: number, options: AllChangesOptions): OwnedChangeScan;
  /**
   * Reads versions by seq, including rows that have since expired.
   *
   * @throws {DatabaseError} DATA_DAMAGED if the disk currently cannot read a segment.
   */
  versions(tableId: number, options: VersionsOptions): VersionRows;
  /**
   * Keeps every version replaced above a seq until the next call to this method. If `afterSeq` is
   * undefined, only the history that the table's definition requires is kept. Rows of erased
   * owners are not kept.
   */
  holdHistory(tableId: number, afterSeq: Seq | undefined): void;
  /**
   * Estimates how many versions a table's segments keep only because of {@linkcode holdHistory}. A
   * step examines one segment.
   *
   * @throws {DatabaseError} @throws {CorruptionError}
   */
  heldHistory(tableId: number): Generator<void, HeldHistory>;
}
