/**
 * Defines the manifest, which lists the live segments and deletion vectors. Storage owns this
 * interface. The catalog implements it in its database, so that publishing takes a single
 * transaction.
 */
import type { Hash64 } from "../../base/checksum.ts";
import type { Seq } from "../../base/seq.ts";

/** A segment file that belongs to a table. */
export interface SegmentEntry {
  readonly segmentId: number;
  readonly tableId: number;
  readonly minSeq: Seq;
  readonly maxSeq: Seq;
  /** The number of versions in the file, tombstones included. */
  readonly rowCount: number;
  /** The length of the file, which is checked before the file is mapped into memory. */
  readonly bytes: number;
  /** The compression of the segment's chunks. Absent if no chunk is packed. */
  readonly compression?: "zstd";
  /** The generation of the segment's deletion vector file; 0 if the segment has no such file. */
  readonly deletionGeneration: number;
  /**
   * The hash of the deletion vector file. Absent if the segment has no such file, or if an older
   * version of the server listed the file.
   */
  readonly deletionHash?: DeletionHash;
  /** The secondary indexes that have a file next to the segment. Absent if no index has a file. */
  readonly indexIds?: readonly number[];
  readonly createdAtMs: number;
  readonly quarantined: boolean;
  /**
   * Whether a repair has given up the segment's rows and moved its files to lost+found/. Absent
   * means false.
   */
  readonly isGivenUp?: true;
  /** The storage that contains the segment's files. Absent for the data directory. */
  readonly home?: SegmentHome;
  /**
   * The range of the replacing seqs in a history segment, which has no current version and no
   * deletion vector. Absent for other segments.
   */
  readonly history?: HistoryBounds;
}

/**
 * The lowest and highest seq that replaced a row of a history segment. For a tombstone that was
 * never replaced, its own seq counts.
 */
export interface HistoryBounds {
  readonly lowestReplacingSeq: Seq;
  readonly highestReplacingSeq: Seq;
}

/**
 * The hash of a deletion vector file. An older version of the server changes the listed generation
 * without updating the hash. The hash therefore includes the generation to which it belongs, and is
 * ignored for any other generation.
 */
export interface DeletionHash extends Hash64 {
  readonly generation: number;
}

/** The location of a table's segments in a storage. */
export interface SegmentHome {
  readonly storageId: string;
  /** The absolute path of the storage that contains the segments. */
  readonly root: string;
  /** The path below `segments` in the storage, which ends with the table id. */
  readonly directory: string;
}

/** The state that the manifest records for a table in addition to its segments. */
export interface TableState {
  readonly tableId: number;
  /** Every version at or below this seq is in a segment, and recovery skips it in the log. */
  readonly flushedSeq: Seq;
  /** Every change above this seq can be replayed, except for owners in `ownerLowWaters`. */
  readonly lowWaterSeq: Seq;
  /**
   * The owners of which more history was discarded, each with a low watermark. Absent if there are
   * none.
   */
  readonly ownerLowWaters?: readonly (readonly [number, number])[];
  /** The time of the last flush; 0 if there was none. */
  readonly lastFlushedAtMs: number;
}

export interface ManifestState {
  readonly segments: readonly SegmentEntry[];
  readonly tables: readonly TableState[];
  /** The log file at which recovery begins; undefined if no log file has been created yet. */
  readonly firstLogFile?: number | undefined;
}

/** A change to the manifest, which is applied completely or not at all. */
export interface ManifestChange {
  readonly addSegments?: readonly SegmentEntry[];
  /** Replaces the entries with the same ids, for example with a new deletion generation. */
  readonly changeSegments?: readonly SegmentEntry[];
  readonly removeSegmentIds?: readonly number[];
  readonly tables?: readonly TableState[];
  readonly removeTableIds?: readonly number[];
  /**
   * The number of the first log file that recovery needs. The number never decreases, and is
   * published before earlier files are released.
   */
  readonly firstLogFile?: number;
}

export interface Manifest {
  /**
   * Whether the manifest refuses all changes until the next startup. The outcome of the last change
   * may then be unknown. While it does, callers write no files for further changes, since such
   * files would only fill the disk.
   */
  readonly isBroken: boolean;
  load(): ManifestState;
  /**
   * Publishes a change in one durable transaction. Once this method returns, a crash does not undo
   * the change.
   *
   * @throws {DatabaseError} DISK_FULL: nothing was changed. STORAGE_UNAVAILABLE: the outcome of the
   *   change may be unknown.
   */
  publish(change: ManifestChange): void;
  /**
   * Issues a segment id that has never been used, not even before a crash.
   *
   * @throws {DatabaseError} DISK_FULL. STORAGE_UNAVAILABLE, also if the manifest is broken.
   */
  nextSegmentId(): number;
  /**
   * The seqs of definitions that never took effect. Commits that were written under one of them
   * were rolled back together with it, so recovery ignores them.
   */
  undoneSeqs(): ReadonlySet<number>;
  /** The highest seq in the manifest or the catalog. No id at or below this seq is issued again. */
  highestSeq(): Seq;
}
