/**
 * Defines the interface of the store for the layers above: an ordered stream of row versions, read
 * up to a bound.
 *
 * - A row version is one state of one row under one seq, and never changes. A row version names the
 *   version that it replaces (`prev`, 0 for none) and the last seq of its commit.
 * - A tombstone is a version that marks its row as deleted, and contains the row's last values.
 * - A version is current at S if its seq is at most S and it was not replaced at or before S.
 * - Only `apply` assigns seqs. The method runs without an await, so commits, seqs and the log file
 *   have the same order.
 * - No layer above storage sees a version above `visibleSeq`, with one exception. A DML statement
 *   reads at `appliedSeq`. The statement writes in the same tick, or through a {@linkcode
 *   StagedCommit} begun in that tick, which fails if anything it read is rolled back.
 *
 * `storage/local_store.ts` implements this over a {@linkcode Disk}.
 */
import type { Seq } from "../../base/seq.ts";
import type { SeqEra } from "../../base/seq_times.ts";
import type { Batch, DataType, Row, Value, Vector } from "../../types/mod.ts";
import type { IndexReads, StoredIndex } from "./index_reads.ts";
import type { Job } from "./job_list.ts";
import type { SegmentHome } from "./manifest.ts";
import type { DroppedShares, ShareBounds, TableShares } from "./shared_tables.ts";

/** The owner of every row of a SHARED table. */
export const SHARED_OWNER = 0;

export interface StoredColumn {
  /**
   * The id of the column, which is 1 or more. An id is never reused within a table, and a rename
   * does not change it.
   */
  readonly columnId: number;
  readonly name: string;
  readonly type: DataType;
  /** The value of the column in versions that are older than the column. */
  readonly missing: Value;
}

/**
 * The policy that decides which chunks of a table are packed:
 *
 * - auto: chunks of long text, JSON and bytes that shrink considerably.
 * - none: no chunk.
 * - zstd: every chunk that shrinks at all.
 */
export type Compression = "auto" | "none" | "zstd";

/** The properties of a table that the store needs. ALTER TABLE replaces the whole object. */
export interface TableDefinition {
  readonly tableId: number;
  /** The name of the table in messages, as "namespace.table". */
  readonly name: string;
  /** The declared columns, in the same order as `Row` in {@linkcode TableWrite}. */
  readonly columns: readonly StoredColumn[];
  readonly keyColumnIds: readonly number[];
  /** Secondary indexes. Absent if the table has none. */
  readonly indexes?: readonly StoredIndex[] | undefined;
  readonly flush: FlushPolicy;
  /** The packing of new segments. Absent if segments are not packed. */
  readonly compression?: Compression | undefined;
  /** The time in milliseconds for which replaced versions and tombstones stay readable. */
  readonly historyMs: number;
  /** The age at which a row version expires. Absent if rows never expire. */
  readonly ttlMs?: number | undefined;
  /** The seq up to which versions have already expired, regardless of the current time to live. */
  readonly expiredSeq?: number | undefined;
  /** The storage for segments that are written from now on. Absent for the data directory. */
  readonly home?: SegmentHome | undefined;
}

interface FlushPolicy {
  /** Flushes when this many row versions of the table are buffered. */
  readonly rowsMax: number;
  /** Flushes when the oldest buffered row version is this old. */
  readonly ageMsMax: number;
}

/** Rows of one owner to be written with the same operation. */
export interface TableWrite {
  readonly tableId: number;
  /** Account number, or SHARED_OWNER. */
  readonly owner: number;
  /**
   * - insert: the key must have no live row.
   * - update: the key has a live row, which these values replace.
   * - delete: the key has a live row; the values are its last ones.
   */
  readonly operation: "insert" | "update" | "delete";
  /**
   * Values in the order of the definition's columns, already coerced and checked. The store takes
   * ownership.
   */
  readonly rows: readonly Row[];
  /**
   * The rows of a columnar insert that is applied in one tick: a vector for each column. `rows` is
   * then empty.
   */
  readonly batch?: Batch;
  /**
   * The seqs of the versions that the rows of an update or a delete replace. A delete in a table
   * without a key requires them. A staged columnar write is faster with them.
   */
  readonly replacedSeqs?: ArrayLike<number>;
  /**
   * Whether the rows of a transaction were computed from the state in this tick, so that its
   * snapshot does not apply to them. In a staged commit this holds for all rows of the table.
   */
  readonly isCurrent?: boolean;
}

/** Returns the number of row versions that a write creates. */
export function rowCountOf({ batch, rows }: TableWrite): number {
  return batch === undefined ? rows.length : batch.rowCount;
}

/** The writes of one commit, applied completely or not at all. Seqs ascend in the given order. */
export interface WriteBatch {
  readonly writes: readonly TableWrite[];
  /**
   * For a transaction: the snapshot that it read. The batch fails if a key has a version above it.
   * Absent for a statement whose reads took place at `appliedSeq` in this tick.
   */
  readonly snapshotSeq?: Seq;
  /** Whether the commit must return {@linkcode Commit.seqs}. */
  readonly wantsSeqs?: boolean;
  /**
   * Whether to accept the batch in read-only mode. Only for a few short rows that must not be lost.
   */
  readonly usesReserve?: boolean;
}

/**
 * A commit too large for one tick. The caller prepares it in steps without visible effect, and then
 * makes it in a short tick. To abandon it, drop it.
 */
export interface StagedCommit {
  /** Number of rows added so far. */
  readonly rowCount: number;
  /**
   * Adds rows, a few thousand at a time, since adding them extends the tick. A key may be written
   * only once.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE, ROW_TOO_LARGE, LIMIT_EXCEEDED.
   * Drop the commit afterwards.
   */
  add(write: TableWrite): void;
  /**
   * Examines other commits made since the last call, in a bounded step. Returns whether this commit
   * may be made in the same tick.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if one of its keys was written by another commit.
   */
  settle(): boolean;
  /**
   * Makes the commit, in the tick in which `settle` allowed it.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE, DISK_FULL
   */
  commit(): Commit;
}

/** Options of a staged commit, which {@linkcode WriteBatch} describes. */
export type StageOptions = Pick<WriteBatch, "snapshotSeq" | "wantsSeqs">;

export interface Commit {
  /** Lowest seq assigned to the commit. */
  readonly firstSeq: Seq;
  /** Highest seq assigned to the commit. */
  readonly lastSeq: Seq;
  /** The seq of each row, in the given order. Present only on request. */
  readonly seqs?: Float64Array;
}

/** Inclusive numeric bounds of a column, which let a scan skip row groups through zone maps. */
export interface ColumnRange {
  readonly columnId: number;
  /** Lower bound; -Infinity if there is none. */
  readonly min: number;
  /** Upper bound; Infinity if there is none. */
  readonly max: number;
}

/** Inclusive bounds of the values of a column of numbers or of text. */
export interface ColumnSpan {
  readonly min?: Value | undefined;
  readonly max?: Value | undefined;
}

/**
 * Values of a column that include the values of all requested rows, so that a scan can find the
 * rows through their order.
 */
export interface KeySpans {
  readonly columnId: number;
  readonly spans: readonly ColumnSpan[];
}

export interface ScanOptions {
  readonly owner: number;
  /** Inclusive upper bound: the scan returns rows that are current at this seq. */
  readonly upTo: Seq;
  /** Exclusive lower bound on the seq of a row, for `WHERE _seq > n`; default 0. */
  readonly after?: Seq;
  /**
   * Inclusive upper bound on the seq of a row. The bound does not affect which version is current.
   * Default `upTo`.
   */
  readonly seqMax?: Seq;
  /** The columns of each batch, in order. May include SEQ_COLUMN_ID and DELETED_COLUMN_ID. */
  readonly columnIds: readonly number[];
  /** A row group may be skipped if it has no row within all of these bounds. */
  readonly ranges?: readonly ColumnRange[];
  /** Rows outside these spans may be omitted. */
  readonly keySpans?: KeySpans;
  /** Also yields the newest tombstone of each key without a live row. Default false. */
  readonly withTombstones?: boolean;
  /** Largest number of rows in one batch, 1 to ROW_GROUP_ROWS_MAX; default BATCH_ROWS_MAX. */
  readonly batchRows?: number;
  /**
   * Whether each batch reuses the memory of the previous one, which is faster. The reader must be
   * done with a batch before it requests another. Default false.
   */
  readonly reusesMemory?: boolean;
  /**
   * With `reusesMemory`: decodes numbers on first access, which pays off if the reader first
   * discards rows. Default false.
   */
  readonly defersNumbers?: boolean;
  /**
   * Whether to return empty batches where many consecutive rows are not current, so that the caller
   * can let other work run. Default false.
   */
  readonly mayBeEmpty?: boolean;
  /** The row groups of a divided scan that this reader takes, in any order. Default all. */
  readonly share?: ScanShare | undefined;
}

/**
 * Divides the row groups of a scan among several readers. All readers open the same scan and query
 * the same groups in the same order. Each group goes to one reader.
 */
export interface ScanShare {
  /** Whether the next row group belongs to this reader. */
  claimsNext(): boolean;
}

export interface ScanBatch {
  readonly rowCount: number;
  /** Vectors in the order of `columnIds`, valid until the next call of `next` or `close`. */
  readonly columns: readonly Vector[];
}

/** A running scan. The caller must call `close`, which unpins the files. */
export interface Scan {
  /**
   * Returns rows in ascending order of seq: at least one, or possibly none with `mayBeEmpty`.
   * Returns undefined once the scan has ended.
   */
  next(): ScanBatch | undefined;
  close(): void;
  /** The numbers of row groups read and skipped so far, for EXPLAIN ANALYZE. */
  readonly groupsRead: number;
  readonly groupsPruned: number;
}

/**
 * Options of an ordered scan, with bounds on the ordering column. Rows outside the bounds are left
 * out. For SEQ_COLUMN_ID, the order is descending; a {@linkcode Scan} yields ascending seqs.
 */
export interface OrderedScanOptions
  extends Pick<ScanOptions, "owner" | "upTo" | "after" | "columnIds">,
    ColumnSpan {
  readonly columnId: number;
  readonly isDescending: boolean;
}

/**
 * A scan of live rows sorted by a column. Rows with equal values have no defined order. The caller
 * must call `close`, as for a {@linkcode Scan}.
 */
export interface OrderedScan {
  /**
   * Returns at most `rowsMax` rows. Returns none if the search needs more calls, and undefined at
   * the end.
   */
  next(rowsMax: number): ScanBatch | undefined;
  /**
   * Skips at most `rowsMax` rows without reading them. Returns their number: 0 if the search needs
   * more calls, and undefined at the end.
   */
  skip(rowsMax: number): number | undefined;
  close(): void;
  /** The approximate number of versions that the scan has to search. */
  readonly rowCount: number;
  /** Versions visited so far. Infinity once the scan must not be read further. */
  readonly rowsPassed: number;
}

export interface ChangesOptions {
  readonly owner: number;
  /** The exclusive lower bound: the last seq that the caller has seen. */
  readonly after: Seq;
  /** Inclusive upper bound, at most `visibleSeq`. */
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
  /** Largest number of versions in one batch. Default BATCH_ROWS_MAX. */
  readonly batchRows?: number;
  /**
   * If a version replaced a tombstone above this seq, `prevs` contains that tombstone. If absent, a
   * tombstone that moved to history before its key was inserted again is not looked up, and `prevs`
   * contains 0.
   */
  readonly prevsAfter?: Seq;
}

/** Versions in ascending seq, each with the version that it replaced. */
export interface ChangeBatch {
  readonly rowCount: number;
  readonly seqs: Float64Array;
  /** For each version, the last seq of its commit. */
  readonly commitSeqs: Float64Array;
  /**
   * For each version, the seq of the replaced version, or 0. Tombstones count, but see
   * `prevsAfter`.
   */
  readonly prevs: Float64Array;
  /** For each version, 1 if it is a tombstone, else 0. */
  readonly deleted: Uint8Array;
  /**
   * For each version, 1 if the replaced version exists and is not a tombstone. Its values in
   * `oldColumns` are then valid.
   */
  readonly hasOld: Uint8Array;
  readonly columns: readonly Vector[];
  /** The values of the replaced versions; NULL where `hasOld` is 0. */
  readonly oldColumns: readonly Vector[];
}

export interface ChangeScan {
  next(): ChangeBatch | undefined;
  close(): void;
}

export type AllChangesOptions = Omit<ChangesOptions, "owner" | "prevsAfter">;

/** Versions of all owners in ascending seq, each with its owner. */
export interface OwnedChangeBatch extends ChangeBatch {
  readonly owners: Float64Array;
}

/**
 * A running scan of the changes of all owners. The caller must call `close`, which unpins the
 * files.
 */
export interface OwnedChangeScan {
  /**
   * Returns the next versions. Returns none if the search needs more calls, so that other work can
   * run in the meantime, and undefined at the end.
   */
  next(): OwnedChangeBatch | undefined;
  close(): void;
}

export interface VersionsOptions {
  /** The seq of each version to read. */
  readonly seqs: Float64Array;
  /** The owner of each version. */
  readonly owners: Float64Array;
  readonly columnIds: readonly number[];
  /** Whether to read the replaced versions as well. Default false. */
  readonly wantsOld?: boolean;
}

/**
 * The requested versions, in the requested order. A version that is gone has NULL in every column.
 */
export interface VersionRows {
  readonly rowCount: number;
  /**
   * For each version, 1 if it was found; 0 if it was discarded or is in a permanently damaged
   * segment.
   */
  readonly isFound: Uint8Array;
  /** For each version, 1 if it is a tombstone, else 0. */
  readonly deleted: Uint8Array;
  /** The values of the versions, by column. */
  readonly columns: readonly (readonly Value[])[];
  /**
   * For each version, 1 if the replaced version exists and is not a tombstone. Always 0 unless
   * replaced versions were requested.
   */
  readonly hasOld: Uint8Array;
  /** The values of the replaced versions; empty unless they were requested. */
  readonly oldColumns: readonly (readonly Value[])[];
}

/**
 * Statistics on the replaced versions that a table keeps only because a topic needs its history.
 */
export interface HeldHistory {
  readonly versions: number;
  /** The share of these versions in the bytes of their segments. */
  readonly bytes: number;
}

export interface LookupOptions {
  readonly owner: number;
  /** Key values in the order of `keyColumnIds`, none NULL. */
  readonly key: Row;
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
}

/** A partition changed by a commit. */
export interface ChangedPartition {
  readonly tableId: number;
  readonly owner: number;
}

/** Called in the tick in which `visibleSeq` moved, before waiting writers are answered. */
export type OnVisible = (changed: readonly ChangedPartition[], visibleSeq: Seq) => void;

export interface FlushResult {
  /** Number of row versions written; 0 if there was nothing to flush. */
  readonly versions: number;
}

export interface CompactResult {
  /** Number of segments that were merged or rewritten; 0 if there was nothing to do. */
  readonly mergedSegments: number;
  /** Number of discarded row versions that were older than the table's history. */
  readonly discardedVersions: number;
}

export interface TableStats {
  /** Number of live rows of all owners; undefined if damage prevents counting. */
  readonly liveRows: number | undefined;
  readonly unflushedVersions: number;
  readonly segments: number;
  readonly bytes: number;
  readonly memoryBytes: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly lastFlushedAtMs: number | undefined;
}

/** Statistics on the row versions in a table's segments, of one owner or of all owners. */
export interface FlushedStats {
  /** Number of segments with these versions. */
  readonly segments: number;
  /** Number of these versions. */
  readonly versions: number;
  /** Lowest seq of these versions; 0 if there are none. */
  readonly minSeq: number;
  /** Highest seq of these versions; 0 if there are none. */
  readonly maxSeq: number;
  readonly unflushedVersions: number;
  readonly lastFlushedAtMs: number | undefined;
  /** Whether some segments are quarantined and were not examined. */
  readonly isDamaged: boolean;
  /**
   * Whether none of the damaged segments has current versions, so that live rows can still be
   * counted.
   */
  readonly isCountable: boolean;
}

export interface ListedSegment {
  readonly segmentId: number;
  readonly tableId: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly rowCount: number;
  readonly bytes: number;
  /** How the segment's chunks are packed. Absent if none is packed. */
  readonly compression?: "zstd" | undefined;
  readonly createdAtMs: number;
  /** Whether the segment contains current versions or only replaced ones. */
  readonly kind: "current" | "history";
  /** The id of the segment's storage. Absent if the segment is in the data directory. */
  readonly storageId?: string | undefined;
  readonly status: "live" | "quarantined";
}

/** Figures that tell an operator about a problem before users notice it. */
export interface StoreCondition {
  /** The free bytes on the disk of the data directory. */
  readonly freeBytes: number | undefined;
  /** Whether only deletes and drops are accepted, until there is enough free space. */
  readonly isReadOnly: boolean;
  /** Total size of the log files in bytes. */
  readonly logBytes: number;
  readonly quarantinedSegments: number;
}

/** The memory of the store, in bytes. */
export interface StoreMemory {
  readonly memtableBytes: number;
  /** Memory of unpacked segment parts cached in this thread. */
  readonly cacheBytes: number;
  /** Memory of deletion vectors, which record replaced rows of segments. */
  readonly replacementBytes: number;
  readonly threadHeapBytes: number;
}

/** A range of seqs removed by a restore or a crash: above `after` and below `upTo`. */
export interface SeqGap {
  readonly after: number;
  readonly upTo: number;
}

/** The state of the store for one reader in another thread. */
export interface TableSharing {
  /**
   * Returns the objects that the reader has but that no longer belong to any table, and clears the
   * list.
   */
  takeDropped(): DroppedShares;
}

/** A store whose tables readers in other threads may read. */
export interface SharingStore<Known extends TableSharing = TableSharing> {
  /** The mapping between ids and clock times: see `base/seq_times.ts`. */
  readonly seqEras: readonly SeqEra[];
  /** Returns the initial state for sharing tables with a reader. */
  newSharing(): Known;
  /**
   * Shares tables with a reader. Their files stay until the shares are released.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE, DATA_DAMAGED @throws {CorruptionError}
   */
  share(known: Known, tableIds: readonly number[], bounds: ShareBounds): TableShares;
}

/** The part of the store that a query reads. A reader in another thread also implements it. */
export type ReadStore = Pick<
  Store,
  | "visibleSeq"
  | "scan"
  | "changes"
  | "scanOrdered"
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
  /** Highest durable seq. */
  readonly visibleSeq: Seq;
  /** Highest seq applied in memory, durable or not. */
  readonly appliedSeq: Seq;
  /** Handles commits that become visible. Set once, before the first commit. */
  onVisible: OnVisible;

  /**
   * Checks that the disk has room for data other than rows. Call this method before adding such
   * data.
   *
   * @throws {DatabaseError} DISK_FULL in read-only mode.
   */
  requireFreeSpace(): void;
  /** Adds a table or changes its definition. Existing data of the table is already loaded. */
  defineTable(definition: TableDefinition): void;
  /**
   * Removes a table that the manifest no longer lists. The files of the table are removed once no
   * reader pins them.
   */
  dropTable(tableId: number): void;

  /**
   * Checks keys, assigns seqs, and appends to memory and to the log: all or nothing, in this tick.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE, DISK_FULL (read-only mode),
   * ROW_TOO_LARGE, LIMIT_EXCEEDED.
   */
  apply(batch: WriteBatch): Commit;
  /** Begins a commit whose preparation takes longer than a tick. */
  stage(options: StageOptions): StagedCommit;
  /**
   * Resolves when everything up to `seq` is durable and visible. Rejects with COMMIT_UNKNOWN, or
   * with DISK_FULL or STORAGE_UNAVAILABLE if the group was rolled back.
   */
  durable(seq: Seq): Promise<void>;

  scan(tableId: number, options: ScanOptions): Scan;
  /**
   * Reads rows in order. Returns undefined if there are few rows, if some rows cannot be sorted, or
   * if the order is requested for the first time, since building it takes as long as several scans.
   */
  scanOrdered(tableId: number, options: OrderedScanOptions): OrderedScan | undefined;
  changes(tableId: number, options: ChangesOptions): ChangeScan;
  /** Returns the row with a key that is live at a seq, or undefined if no such row exists. */
  lookup(tableId: number, options: LookupOptions): Row | undefined;
  /**
   * Returns the seq at or below which row versions have permanently expired; 0 if the table has no
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
   * Returns the number of integers between the smallest and the largest value of a column,
   * according to the zone maps of segments. The range covers all owners and replaced versions.
   * Undefined if unknown.
   */
  valueSpan(tableId: number, columnId: number): number | undefined;

  /**
   * Flushes all versions that are in the table's memtables at the time of the call. A given job is
   * started when its turn comes, and is ended by the caller.
   */
  flush(tableId: number, job?: Job): Promise<FlushResult>;
  /**
   * Merges the segments of a table, and discards versions that are older than its history. A given
   * job is started here and ended by the caller.
   */
  compact(tableId: number, job?: Job): Promise<CompactResult>;
  /**
   * Removes every version of an erased owner, and refuses all further writes of the owner. A given
   * job is started here but not ended, since other work may belong to it.
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
   * Reads changes of all owners, including rows that have expired since. Rows in segments that are
   * permanently damaged are left out.
   *
   * @throws {DatabaseError} DATA_DAMAGED from `next` if the disk currently cannot read a segment.
   */
  changesOfAll(tableId: number, options: AllChangesOptions): OwnedChangeScan;
  /**
   * Reads versions by their seqs, including rows that have expired since.
   *
   * @throws {DatabaseError} DATA_DAMAGED if the disk currently cannot read a segment.
   */
  versions(tableId: number, options: VersionsOptions): VersionRows;
  /**
   * Keeps every version that is replaced above a seq, until this is called again. If undefined,
   * only the history that the table's definition requires is kept. Rows of erased owners are not
   * kept.
   */
  holdHistory(tableId: number, afterSeq: Seq | undefined): void;
  /**
   * Estimates the versions in segments that a table keeps only because its history is held. A step
   * examines one segment.
   *
   * @throws {DatabaseError} @throws {CorruptionError}
   */
  heldHistory(tableId: number): Generator<void, HeldHistory>;
}
