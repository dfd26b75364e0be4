/**
 * Defines the manifest, which lists the live segments and deletion vectors. Storage owns this
 * interface. The catalog implements it in its database, so publishing a change takes a single
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
  /** The number of versions in the file, including tombstones. */
  readonly rowCount: number;
  /** The length of the file in bytes, which is checked before the file is mapped into memory. */
  readonly bytes: number;
  /** How the segment's chunks are compressed; undefined if no chunk is packed. */
  readonly compression?: "zstd";
  /** The generation of the segment's deletion vector file; 0 if there is no such file. */
  readonly deletionGeneration: number;
  /**
   * The hash of the deletion vector file; undefined if there is no such file, or if an older
   * version of the server listed it.
   */
  readonly deletionHash?: DeletionHash;
  /** The secondary indexes of which the segment has a file; undefined if there are none. */
  readonly indexIds?: readonly number[];
  readonly createdAtMs: number;
  readonly quarantined: boolean;
  /**
   * Whether a repair has given up the segment's rows and moved its files to lost+found/. Undefined
   * means false.
   */
  readonly isGivenUp?: true;
  /** The storage that contains the segment's files; undefined for the data directory. */
  readonly home?: SegmentHome;
  /**
   * For a history segment, the range of the seqs that replaced its versions. Such a segment has no
   * current version and no deletion vector. Undefined for other segments.
   */
  readonly history?: HistoryBounds;
}

/**
 * The lowest and highest seq that replaced a row of a history segment. A tombstone that was never
 * replaced counts with its own seq.
 */
export interface HistoryBounds {
  readonly lowestReplacingSeq: Seq;
  readonly highestReplacingSeq: Seq;
}

/**
 * The hash of a deletion vector file. An older version of the server raises the listed generation
 * without updating the hash. For this reason, the hash includes the generation that it belongs to,
 * and is ignored for any other generation.
 */
export interface DeletionHash extends Hash64 {
  readonly generation: number;
}

/** The location of a table's segments: a storage, and a path in it. */
export interface SegmentHome {
  readonly storageId: string;
  /** The absolute path of the storage that contains the segments. */
  readonly root: string;
  /** The path below `segments` in the storage. It ends with the table id. */
  readonly directory: string;
}

/** The state that the manifest records for a table, besides its segments. */
export interface TableState {
  readonly tableId: number;
  /** The seq up to which every version is in a segment, so that recovery skips it in the log. */
  readonly flushedSeq: Seq;
  /**
   * The seq above which every change can be replayed, except for changes by the owners in
   * `ownerLowWaters`.
   */
  readonly lowWaterSeq: Seq;
  /**
   * The owners whose history was discarded beyond `lowWaterSeq`, each with a low watermark;
   * undefined if there are none.
   */
  readonly ownerLowWaters?: readonly (readonly [number, number])[];
  /** The time of the table's last flush, in Unix milliseconds; 0 for never. */
  readonly lastFlushedAtMs: number;
}

export interface ManifestState {
  readonly segments: readonly SegmentEntry[];
  readonly tables: readonly TableState[];
  /**
   * The number of the log file at which recovery begins; undefined if no log file has been created
   * yet.
   */
  readonly firstLogFile?: number | undefined;
}

/** A change to the manifest, applied completely or not at all. */
export interface ManifestChange {
  readonly addSegments?: readonly SegmentEntry[];
  /**
   * Entries that replace the existing entries with the same ids, for example to list a new
   * deletion generation.
   */
  readonly changeSegments?: readonly SegmentEntry[];
  readonly removeSegmentIds?: readonly number[];
  readonly tables?: readonly TableState[];
  readonly removeTableIds?: readonly number[];
  /**
   * The number of the first log file that recovery needs. It never decreases, and is published
   * before earlier files are released.
   */
  readonly firstLogFile?: number;
}

export interface Manifest {
  /**
   * Whether the manifest refuses all changes until the next startup, possibly because the outcome
   * of the last change is unknown. Meanwhile, callers write no files for further changes, since
   * such files would only fill up the disk.
   */
  readonly isBroken: boolean;
  load(): ManifestState;
  /**
   * Publishes a change in a single durable transaction. Once this method returns, a crash does not
   * undo the change.
   *
   * @throws {DatabaseError} DISK_FULL: nothing was changed. STORAGE_UNAVAILABLE: the outcome may
   *   be unknown.
   */
  publish(change: ManifestChange): void;
  /**
   * Issues a segment id that has never been used before, not even if the server crashed since.
   *
   * @throws {DatabaseError} DISK_FULL. STORAGE_UNAVAILABLE, also if the manifest is broken.
   */
  nextSegmentId(): number;
  /**
   * The seqs of definitions that never took effect. Commits written under such a definition were
   * rolled back with it, so recovery ignores them.
   */
  undoneSeqs(): ReadonlySet<number>;
  /** The highest seq in the manifest or the catalog. Ids at or below it are never issued again. */
  highestSeq(): Seq;
}
