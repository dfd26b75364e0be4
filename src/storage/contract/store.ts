/**
 * Defines the store for the layers above: an ordered stream of row versions, which is read up to a
 * bound.
 *
 * - A row version is one state of one row under one seq, and never changes. It records the version
 *   that it replaces (`prev`, 0 for none) and the last seq of its commit.
 * - A tombstone is a version that marks its row as deleted and contains the row's last values.
 * - A version is current at S if its seq is at most S and it was not replaced at or before S.
 * - Only `apply` assigns seqs to rows. It runs without an await, so that commits, seqs and the log
 *   file have the same order.
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

/** The rows of one owner in one table that a commit has changed. */
export interface ChangedPartition {
  readonly tableId: number;
  readonly owner: number;
}

/** Called in the tick in which `visibleSeq` has moved, before the waiting writers are answered. */
export type OnVisible = (changed: readonly ChangedPartition[], visibleSeq: Seq) => void;

/** A range of seqs removed by a restore or a crash: above `after` and below `upTo`. */
export interface SeqGap {
  readonly after: number;
  readonly upTo: number;
}

/** The state of the store for one reader in another thread. */
export interface TableSharing {
  /**
   * Returns the objects that the reader has but that no longer belong to any table, and clears this
   * list.
   */
  takeDropped(): DroppedShares;
}

/** A store whose tables can be read by readers in other threads. */
export interface SharingStore<Known extends TableSharing = TableSharing> {
  /** The mapping between seqs and clock times; see `base/seq_times.ts`. */
  readonly seqEras: readonly SeqEra[];
  /** Returns the state of the sharing for a new reader, which does not have any data yet. */
  newSharing(): Known;
  /**
   * Shares tables with a reader. The files of the tables are kept until the shares are released.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE, DATA_DAMAGED @throws {CorruptionError}
   */
  share(known: Known, tableIds: readonly number[], bounds: ShareBounds): TableShares;
}

/** The part of the store that a query uses. A reader in another thread also implements it. */
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

/** The part of the store that a statement needs to write rows. */
export type WriteStore = Pick<Store, "apply" | "stage">;

export interface Store extends IndexReads {
  /** The highest seq that is durable. */
  readonly visibleSeq: Seq;
  /** The highest seq that has been applied in memory, durable or not. */
  readonly appliedSeq: Seq;
  /** Handles commits that become visible. Set once, before the first commit. */
  onVisible: OnVisible;

  /**
   * Checks that the disk has room for data other than rows. Call this before adding such data.
   *
   * @throws {DatabaseError} DISK_FULL in read-only mode.
   */
  requireFreeSpace(): void;
  /**
   * Adds a table or changes its definition. If the table has existing data, that data is already
   * loaded.
   */
  defineTable(definition: TableDefinition): void;
  /**
   * Removes a table that the manifest no longer lists. The files of the table are removed as soon
   * as no reader pins them.
   */
  dropTable(tableId: number): void;

  /**
   * Checks keys, assigns seqs, and appends the rows to memory and to the log, completely or not at
   * all, in this tick.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE, DISK_FULL (read-only mode),
   * ROW_TOO_LARGE, LIMIT_EXCEEDED.
   */
  apply(batch: WriteBatch): Commit;
  /**
   * Waits until no commit is on its way to the disk, and then runs `work` in one tick with all
   * earlier commits durable and visible. Other commits wait until `work` has ended.
   */
  exclusively<T>(work: () => T): Promise<T>;
  /**
   * Within {@linkcode exclusively}, makes a commit together with definitions: both are durable and
   * visible, or neither is.
   *
   * @throws {DatabaseError} The errors of `apply`, of `durable` and of `publish`.
   */
  applyWith(batch: WriteBatch, definitions: PublishedDefinitions): Commit;
  /** Begins a commit whose preparation takes longer than a tick. */
  stage(options: StageOptions): StagedCommit;
  /**
   * Resolves when everything up to `seq` is durable and visible. Rejects with COMMIT_UNKNOWN, or
   * with DISK_FULL or STORAGE_UNAVAILABLE if the group was rolled back.
   */
  durable(seq: Seq): Promise<void>;

  scan(tableId: number, options: ScanOptions): Scan;
  /**
   * Reads rows in order. Returns undefined if there are few rows, if some of them cannot be sorted,
   * or if this order is requested for the first time, since building an order takes as long as
   * several scans.
   */
  scanOrdered(tableId: number, options: OrderedScanOptions): OrderedScan | undefined;
  changes(tableId: number, options: ChangesOptions): ChangeScan;
  /** Returns the row with a key that is live at a seq, or undefined if no such row exists. */
  lookup(tableId: number, options: LookupOptions): Row | undefined;
  /**
   * Returns the seq at or below which row versions have expired for good; 0 if the table has no
   * time to live.
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
   * Returns the newest seq that, like all seqs before it, has at least this age; 0 if no seq has.
   */
  agedSeq(ageMs: number): number;
  /**
   * Returns the earliest seq from which a resume misses no changes; 0 if no history was discarded.
   */
  earliestSeq(tableId: number, owner: number): Seq;
  /** Returns the highest seq up to a bound at which a partition shows only complete commits. */
  wholeCommitsUpTo(tableId: number, owner: number, upTo: Seq): Seq;
  /** Returns the seq of the newest commit up to a bound that changed a partition, or 0. */
  lastCommitUpTo(tableId: number, owner: number, upTo: Seq): Seq;
  /**
   * Whether commits at this position may have been seen by clients and then lost, so that a resume
   * from it is not valid.
   */
  wasLost(seq: number): boolean;
  /** Returns the owners whose row versions the table may contain, ascending. */
  owners(tableId: number): readonly number[];
  /**
   * Returns the number of live rows at `visibleSeq`, of one owner, or of all owners if `owner` is
   * undefined.
   */
  liveRowCount(tableId: number, owner: number | undefined): number;
  /**
   * Returns the estimated number of distinct values in a column, according to a sample of its
   * segments. All owners are included. Undefined if it is unknown.
   */
  distinctValues(tableId: number, columnId: number): number | undefined;

  /**
   * Flushes all versions that are in the table's memtables at the time of the call. A given job is
   * started when its work begins; the caller ends it.
   */
  flush(tableId: number, job?: Job): Promise<FlushResult>;
  /**
   * Merges the segments of a table, and discards versions that are older than its history. A given
   * job is started here; the caller ends it.
   */
  compact(tableId: number, job?: Job): Promise<CompactResult>;
  /**
   * Removes every version of an erased owner, and refuses all further writes of the owner. A given
   * job is started here but not ended, since other work may be part of it.
   *
   * @returns The number of removed row versions, including old versions of other owners.
   * @throws {DatabaseError} DATA_DAMAGED if a damaged segment may hold rows of the owner.
   */
  erase(tableId: number, owner: number, job?: Job): Promise<number>;
  /**
   * Adds all existing rows to an index of the definition. Resolves to false if the job was
   * cancelled, or the index is no longer defined. A given job is neither started nor ended.
   *
   * @throws {DatabaseError} DATA_DAMAGED if some rows cannot be read. @throws {DiskError}
   */
  buildIndex(tableId: number, indexId: number, job: Job): Promise<boolean>;
  /**
   * Checks that no two live rows have the same key in a unique index that refuses new duplicates.
   * Resolves as `buildIndex` does.
   *
   * @throws {DatabaseError} DUPLICATE_KEY if several rows have the same key.
   */
  checkIndex(tableId: number, indexId: number, job: Job): Promise<boolean>;
  stats(tableId: number): TableStats;
  /**
   * Returns the statistics of a table's segments, for one owner, or for all if `owner` is
   * undefined.
   */
  flushedStats(tableId: number, owner: number | undefined): FlushedStats;
  segments(): readonly ListedSegment[];

  /** Assigns a seq to a definition (CREATE, ALTER, DROP), in commit order with the rows. */
  issueSeq(): Seq;
  /**
   * Issues an id with the layout of a seq, from a separate generator. Ids ascend and never repeat.
   */
  snowflakeId(): number;

  /** Syncs the log and closes all files, without flushing memtables. */
  close(): Promise<void>;
}

/** The operations of a store that topics use. */
export interface HistoryStore {
  /**
   * Reads changes of all owners, including rows that have expired in the meantime. Rows in segments
   * that are permanently damaged are left out.
   *
   * @throws {DatabaseError} DATA_DAMAGED from `next` if the disk currently cannot read a segment.
   */
  changesOfAll(tableId: number, options: AllChangesOptions): OwnedChangeScan;
  /**
   * Reads versions by their seqs, including rows that have expired in the meantime.
   *
   * @throws {DatabaseError} DATA_DAMAGED if the disk currently cannot read a segment.
   */
  versions(tableId: number, options: VersionsOptions): VersionRows;
  /**
   * Keeps every version that is replaced above a seq, until the next call of this method. With
   * undefined, only the history that the table's definition requires is kept. Rows of erased owners
   * are not kept.
   */
  holdHistory(tableId: number, afterSeq: Seq | undefined): void;
  /**
   * Estimates the versions in segments that a table keeps only because of {@linkcode holdHistory}.
   * A step examines one segment.
   *
   * @throws {DatabaseError} @throws {CorruptionError}
   */
  heldHistory(tableId: number): Generator<void, HeldHistory>;
}
