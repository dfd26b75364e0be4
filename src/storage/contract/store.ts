/**
 * The store, as the layers above see it: an ordered stream of row versions, read with a bound.
 *
 * - A row version is one state of one row under one seq; it never changes. It names the version
 *   that it replaces (`prev`, 0 for none) and the last seq of the commit that wrote it.
 * - A tombstone is the version that says deleted; it keeps the last values.
 * - A version is current at S if its seq is at most S and it was not replaced at or before S.
 * - `apply` is the only place that assigns a seq. It runs without an await, so commit order, seq
 *   order and file order are one order.
 * - Nobody above storage sees a version above `visibleSeq`, but for a DML statement, which reads at
 *   `appliedSeq`: it writes in the same turn of the event loop, or by a {@linkcode StagedCommit}
 *   that is begun in it and refused when something of what was read is taken back.
 *
 * `storage/local_store.ts` implements this over a {@linkcode Disk}.
 */
import type { Seq } from "../../base/seq.ts";
import type { SeqEra } from "../../base/seq_times.ts";
import type { Batch, DataType, Row, Value, Vector } from "../../types/mod.ts";
import type { Job } from "./job_list.ts";
import type { SegmentHome } from "./manifest.ts";
import type { DroppedShares, TableShares } from "./shared_tables.ts";

/** The owner of every row of a SHARED table. */
export const SHARED_OWNER = 0;

export interface StoredColumn {
  /** Never reused within a table; survives a rename. 1 or more. */
  readonly columnId: number;
  readonly name: string;
  readonly type: DataType;
  /** What versions written before the column was added read. */
  readonly missing: Value;
}

/**
 * Which chunks of a table are packed:
 *
 * - auto: long text, JSON and bytes that shrink much.
 * - none: no chunk.
 * - zstd: each chunk that shrinks at all.
 */
export type Compression = "auto" | "none" | "zstd";

/** What the store must know about a table. Replaced as a whole by ALTER TABLE. */
export interface TableDefinition {
  readonly tableId: number;
  /** "namespace.table", for messages. */
  readonly name: string;
  /** Declared columns in order; the order of `Row` in {@linkcode TableWrite}. */
  readonly columns: readonly StoredColumn[];
  readonly keyColumnIds: readonly number[];
  readonly flush: FlushPolicy;
  /** Which parts of the segments that are written from now on are packed; absent: none. */
  readonly compression?: Compression | undefined;
  /** How long replaced versions and tombstones stay readable, in milliseconds. */
  readonly historyMs: number;
  /** Row versions vanish this long after their commit; absent: never. */
  readonly ttlMs?: number | undefined;
  /** Those up to here have vanished already, whatever the time to live is now. */
  readonly expiredSeq?: number | undefined;
  /** In which storage segments that are written from now on lie; absent: in the data directory. */
  readonly home?: SegmentHome | undefined;
}

interface FlushPolicy {
  /** Flush when this many row versions of the table are buffered. */
  readonly rowsMax: number;
  /** Flush when the oldest buffered row version is this old. */
  readonly ageMsMax: number;
}

/** Rows of one owner written alike. */
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
  /** Values in the order of the definition's columns, coerced and checked. Taken over. */
  readonly rows: readonly Row[];
  /**
   * Of an insert that is applied in one turn, instead of `rows`, which is empty then: the same, a
   * vector for each column.
   */
  readonly batch?: Batch;
  /**
   * The seq of the version that each row of an update or a delete replaces. A delete in a table
   * without a key needs them; a staged write by columns is faster with them.
   */
  readonly replacedSeqs?: ArrayLike<number>;
}

/** How many row versions a write makes. */
export function rowCountOf({ batch, rows }: TableWrite): number {
  return batch === undefined ? rows.length : batch.rowCount;
}

/** What one commit writes; applied whole or not at all. Seqs ascend in the order given. */
export interface WriteBatch {
  readonly writes: readonly TableWrite[];
  /**
   * For a transaction: the snapshot it read. A key with a version above it fails the batch.
   * Absent for a statement that read at `appliedSeq` in this very turn.
   */
  readonly snapshotSeq?: Seq;
  /** Asks for {@linkcode Commit.seqs}. */
  readonly wantsSeqs?: boolean;
  /** Is let in where only deletes are: few and short rows that must not be missing. */
  readonly usesReserve?: boolean;
}

/**
 * A commit too large for one turn of the event loop. It is prepared in steps of the caller's, of
 * which nobody sees anything, and made in a short turn; to give it up is to forget it.
 */
export interface StagedCommit {
  /** Rows so far. */
  readonly rowCount: number;
  /**
   * Adds rows, a few thousand at a time: it takes a turn as long as they are many. A key is
   * written once.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE, ROW_TOO_LARGE, LIMIT_EXCEEDED;
   * the commit is then to be forgotten.
   */
  add(write: TableWrite): void;
  /**
   * Looks at what was committed by others since, a bounded step at a call. Returns whether it may
   * be committed in this very turn.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if one of its keys was written by another commit.
   */
  settle(): boolean;
  /**
   * Makes the commit, in the turn in which it has settled.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE, DISK_FULL
   */
  commit(): Commit;
}

/** How a staged commit is checked and answered: see {@linkcode WriteBatch}. */
export type StageOptions = Pick<WriteBatch, "snapshotSeq" | "wantsSeqs">;

export interface Commit {
  /** Lowest and highest seq assigned. */
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /** The seq of each row, in the order given; only when the batch asked for it. */
  readonly seqs?: Float64Array;
}

/** Inclusive numeric bounds of a column; lets a scan skip row groups by their zone maps. */
export interface ColumnRange {
  readonly columnId: number;
  /** -Infinity for none. */
  readonly min: number;
  /** Infinity for none. */
  readonly max: number;
}

/** Inclusive bounds of the values of a column of numbers or of text. */
export interface ColumnSpan {
  readonly min?: Value | undefined;
  readonly max?: Value | undefined;
}

/** Values that a column has in every wanted row; lets a scan find such rows by their order. */
export interface KeySpans {
  readonly columnId: number;
  readonly spans: readonly ColumnSpan[];
}

export interface ScanOptions {
  readonly owner: number;
  /** Inclusive: rows current at this seq. */
  readonly upTo: Seq;
  /** Exclusive lower bound on the seq of a row, for `WHERE _seq > n`; default 0. */
  readonly after?: Seq;
  /**
   * Inclusive upper bound on the seq of a row, without a change of what is current; default `upTo`.
   */
  readonly seqMax?: Seq;
  /** What each batch holds, in this order; may name SEQ_COLUMN_ID and DELETED_COLUMN_ID. */
  readonly columnIds: readonly number[];
  /** Row groups that cannot hold a row within all of these may be skipped. */
  readonly ranges?: readonly ColumnRange[];
  /** Rows outside of these may be left out. */
  readonly keySpans?: KeySpans;
  /** Also yields the newest tombstone of each key without a live row. Default false. */
  readonly withTombstones?: boolean;
  /** Largest number of rows in one batch, 1 to ROW_GROUP_ROWS_MAX; default BATCH_ROWS_MAX. */
  readonly batchRows?: number;
  /**
   * The memory of a batch is used again by the next one, which is faster: for who is done with a
   * batch before asking for another. Default false.
   */
  readonly reusesMemory?: boolean;
  /**
   * With `reusesMemory`, numbers are decoded when they are first looked at: for who leaves out rows
   * before that. Default false.
   */
  readonly defersNumbers?: boolean;
  /**
   * Where many rows in a row are not current, batches of no rows come in between, so that the
   * caller can let others run. Default false.
   */
  readonly mayBeEmpty?: boolean;
  /** The row groups that this reader takes of a divided scan. Default all. */
  readonly share?: ScanShare | undefined;
}

/**
 * The row groups that one of several readers reads of a scan. All of them open the same scan and
 * ask for the same groups in the same order; each group goes to one of them.
 */
export interface ScanShare {
  /** Whether the next row group belongs to this reader. */
  claimsNext(): boolean;
}

export interface ScanBatch {
  readonly rowCount: number;
  /** As `columnIds`; valid until the next call of `next` or `close`. */
  readonly columns: readonly Vector[];
}

/** Ends by `close`, which must be called, and which lets the files it pinned go. */
export interface Scan {
  /**
   * Rows in ascending seq, 1 or more but for `mayBeEmpty`; undefined once and for ever at the end.
   */
  next(): ScanBatch | undefined;
  close(): void;
  /** Row groups read and skipped so far, for EXPLAIN ANALYZE. */
  readonly groupsRead: number;
  readonly groupsPruned: number;
}

/**
 * With the bounds of the column in whose order rows are read; rows outside of them are left out.
 */
export interface OrderedScanOptions
  extends Pick<ScanOptions, "owner" | "upTo" | "after" | "columnIds">,
    ColumnSpan {
  readonly columnId: number;
  readonly isDescending: boolean;
}

/**
 * Live rows in the order of a column, equal ones in any. Ends by `close`, as a {@linkcode Scan}.
 */
export interface OrderedScan {
  /** At most so many rows; none when work was done, to be asked for again; undefined at the end. */
  next(rowsMax: number): ScanBatch | undefined;
  /** Passes by as many rows without reading them; returns their number, as `next` the rows. */
  skip(rowsMax: number): number | undefined;
  close(): void;
  /** Versions among which the rows are, about. */
  readonly rowCount: number;
  /** Versions that were passed so far; Infinity once it must not be read any further. */
  readonly rowsPassed: number;
}

export interface ChangesOptions {
  readonly owner: number;
  /** Exclusive: the last seq already seen. */
  readonly after: Seq;
  /** Inclusive, at most `visibleSeq`. */
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
  /** Largest number of versions in one batch; default BATCH_ROWS_MAX. */
  readonly batchRows?: number;
}

/** Versions in ascending seq, each beside the version that it replaced. */
export interface ChangeBatch {
  readonly rowCount: number;
  readonly seqs: Float64Array;
  /** Last seq of the commit that wrote the version. */
  readonly commitSeqs: Float64Array;
  /** Seq of the replaced version (tombstones count), 0 for none. */
  readonly prevs: Float64Array;
  /** 1 for a tombstone. */
  readonly deleted: Uint8Array;
  /** 1 where the replaced version is there and is not a tombstone: `oldColumns` is then valid. */
  readonly hasOld: Uint8Array;
  readonly columns: readonly Vector[];
  /** The replaced versions' values; NULL where `hasOld` is 0. */
  readonly oldColumns: readonly Vector[];
}

export interface ChangeScan {
  next(): ChangeBatch | undefined;
  close(): void;
}

export interface LookupOptions {
  readonly owner: number;
  /** Key values in the order of `keyColumnIds`, none NULL. */
  readonly key: Row;
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
}

/** One partition that a commit changed. */
export interface ChangedPartition {
  readonly tableId: number;
  readonly owner: number;
}

/** Called in the turn in which `visibleSeq` moved, before waiting writers are answered. */
export type OnVisible = (changed: readonly ChangedPartition[], visibleSeq: Seq) => void;

export interface FlushResult {
  /** Row versions written; 0 when there was nothing to flush. */
  readonly versions: number;
}

export interface CompactResult {
  /** Segments that were merged or rewritten; 0 when there was nothing to do. */
  readonly mergedSegments: number;
  /** Row versions older than the table's history that are gone. */
  readonly discardedVersions: number;
}

export interface TableStats {
  /** Live rows of all owners; undefined where damage keeps them from being counted. */
  readonly liveRows: number | undefined;
  readonly unflushedVersions: number;
  readonly segments: number;
  readonly bytes: number;
  readonly memoryBytes: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly lastFlushedAtMs: number | undefined;
}

/** Row versions of a table in its segments. */
export interface FlushedStats {
  /** Segments that have any of them, how many those have, and their seqs; 0 for none. */
  readonly segments: number;
  readonly versions: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly unflushedVersions: number;
  readonly lastFlushedAtMs: number | undefined;
  /** There are segments out of use, which were not looked into. */
  readonly isDamaged: boolean;
}

export interface ListedSegment {
  readonly segmentId: number;
  readonly tableId: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly rowCount: number;
  readonly bytes: number;
  /** How parts of it are packed; absent: none is. */
  readonly compression?: "zstd" | undefined;
  readonly createdAtMs: number;
  /** Absent in the data directory. */
  readonly storageId?: string | undefined;
  readonly status: "live" | "quarantined";
}

/** What operators look at before others notice. */
export interface StoreCondition {
  /** On the disk of the data directory. */
  readonly freeBytes: number | undefined;
  /** Only deletes and drops are let in, until there is room. */
  readonly isReadOnly: boolean;
  /** Of the files of the log. */
  readonly logBytes: number;
  readonly quarantinedSegments: number;
}

/** Seqs that a restore or a crash took away: above `after` and below `upTo`. */
export interface SeqGap {
  readonly after: number;
  readonly upTo: number;
}

/** The knowledge of the store about one reader in another thread. */
export interface TableSharing {
  /** Takes the list of things that the reader has and no table has any more. */
  takeDropped(): DroppedShares;
}

/** A store whose tables readers in other threads may read. */
export interface SharingStore<Known extends TableSharing = TableSharing> {
  /** How ids and times of the clock belong together: see `base/seq_times.ts`. */
  readonly seqEras: readonly SeqEra[];
  /** Begins to share tables with a reader. */
  newSharing(): Known;
  /**
   * Shares tables with a reader at a seq, which is visible: what is above may be taken back. Their
   * files stay until the shares are released.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE, DATA_DAMAGED @throws {CorruptionError}
   */
  share(known: Known, tableIds: readonly number[], upTo: Seq): TableShares;
}

/** The part of the store that a query reads, and which a reader in another thread has, too. */
export type ReadStore = Pick<
  Store,
  | "visibleSeq"
  | "scan"
  | "scanOrdered"
  | "lookup"
  | "liveRowCount"
  | "commitMs"
  | "lastSeqUpTo"
  | "snowflakeId"
>;

/** The part that a statement changes. */
export type WriteStore = Pick<Store, "apply" | "stage">;

export interface Store {
  /** Highest durable seq. */
  readonly visibleSeq: Seq;
  /** Highest seq applied in memory, durable or not. */
  readonly appliedSeq: Seq;
  /** Set once, before the first commit. */
  onVisible: OnVisible;

  /**
   * For who is about to add something that is no row.
   *
   * @throws {DatabaseError} DISK_FULL in read-only mode.
   */
  requireRoom(): void;
  /** Makes a table known, or changes its definition. Its data, if it has any, is already here. */
  defineTable(definition: TableDefinition): void;
  /**
   * Forgets a table, of which the manifest has let go with its definition; its files go once no
   * reader pins them.
   */
  dropTable(tableId: number): void;

  /**
   * Checks keys, assigns seqs, appends to memory and to the log. All or nothing, in this turn.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE, DISK_FULL (read-only mode),
   * ROW_TOO_LARGE, LIMIT_EXCEEDED.
   */
  apply(batch: WriteBatch): Commit;
  /** Begins a commit that takes longer than a turn to prepare. */
  stage(options: StageOptions): StagedCommit;
  /**
   * Resolves when everything up to `seq` is durable and visible.
   * Rejects with COMMIT_UNKNOWN, or DISK_FULL or STORAGE_UNAVAILABLE when the group was taken back.
   */
  durable(seq: Seq): Promise<void>;

  scan(tableId: number, options: ScanOptions): Scan;
  /**
   * Undefined where the rows are few, or some cannot be put in order, or nobody has asked for this
   * order before: to make it takes as long as several scans.
   */
  scanOrdered(tableId: number, options: OrderedScanOptions): OrderedScan | undefined;
  changes(tableId: number, options: ChangesOptions): ChangeScan;
  /** The live row of a key at a seq, or undefined. */
  lookup(tableId: number, options: LookupOptions): Row | undefined;
  /** Row versions at or below this have vanished by their time to live, for good; 0 without one. */
  expiredSeq(tableId: number): number;
  /**
   * The clock time at which a seq was issued, in Unix milliseconds; its bits may be ahead of it.
   */
  commitMs(seq: number): number;
  /** The last seq issued at or before a Unix millisecond of the wall clock. */
  lastSeqUpTo(unixMs: number): number;
  /**
   * The newest seq that has at least this age; every seq before it does too. 0 if there is none.
   */
  agedSeq(ageMs: number): number;
  /** A resume from a position below this cannot be answered exactly; 0 while nothing was lost. */
  earliestSeq(tableId: number, owner: number): Seq;
  /** Whether commits of that time may have been seen, and are gone: nobody stands at this seq. */
  wasLost(seq: number): boolean;
  /** Owners of whose rows the table may hold versions, ascending. */
  owners(tableId: number): readonly number[];
  /** Live rows at `visibleSeq`; of one owner, or of all when `owner` is undefined. */
  liveRowCount(tableId: number, owner: number | undefined): number;
  /**
   * How many whole numbers lie from the smallest to the largest value of a column, as the segments
   * say; over all owners, replaced versions included. Undefined where they say nothing.
   */
  valueSpan(tableId: number, columnId: number): number | undefined;

  /**
   * Writes the unflushed versions of a table to a segment now. A job that is given is started when
   * its turn comes; the caller ends it.
   */
  flush(tableId: number, job?: Job): Promise<FlushResult>;
  /**
   * Merges the segments of a table, and discards versions that are older than its history. A job
   * likewise.
   */
  compact(tableId: number, job?: Job): Promise<CompactResult>;
  /**
   * Removes every version of an owner who reads no more, and refuses from now on what the owner
   * still writes. A job likewise; it is not ended here, since others may belong to it.
   *
   * @returns How many row versions are gone, old ones of others included.
   * @throws {DatabaseError} DATA_DAMAGED if a damaged segment may hold rows of the owner.
   */
  erase(tableId: number, owner: number, job?: Job): Promise<number>;
  stats(tableId: number): TableStats;
  /** What of a table is in segments; of one owner, or of all when `owner` is undefined. */
  flushedStats(tableId: number, owner: number | undefined): FlushedStats;
  segments(): readonly ListedSegment[];

  /** Assigns a seq to a definition (CREATE, ALTER, DROP), in commit order with the rows. */
  issueSeq(): Seq;
  /** An id with the layout of a seq from a generator of its own: ascending, never repeated. */
  snowflakeId(): number;

  /** Flushes nothing, syncs the log, and lets go of all files. */
  close(): Promise<void>;
}
