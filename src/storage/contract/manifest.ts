/**
 * The manifest: which segments and deletion vectors are live. Storage owns this interface; the
 * catalog implements it in its database, so that publishing is one transaction.
 */
import type { Hash64 } from "../../base/checksum.ts";
import type { Seq } from "../../base/seq.ts";

/** One live segment file. */
export interface SegmentEntry {
  readonly segmentId: number;
  readonly tableId: number;
  readonly minSeq: Seq;
  readonly maxSeq: Seq;
  /** Versions in the file, tombstones included. */
  readonly rowCount: number;
  /** File length, checked before the file is mapped. */
  readonly bytes: number;
  /** How chunks of it are packed; absent: none is. */
  readonly compression?: "zstd";
  /** Generation of its deletion vector file; 0 for none. */
  readonly deletionGeneration: number;
  /** What is in that file; absent for none, and where a server listed it that noted no hash. */
  readonly deletionHash?: DeletionHash;
  readonly createdAtMs: number;
  readonly quarantined: boolean;
  /** A repair named its rows as lost and moved its files to lost+found/; absent: none did. */
  readonly isGivenUp?: true;
  /** In which storage its files lie; absent: in the data directory. */
  readonly home?: SegmentHome;
}

/**
 * The hash of a deletion vector file. An older server lists another generation and leaves this as
 * it was, so it names the one that it is of and says nothing of any other.
 */
export interface DeletionHash extends Hash64 {
  readonly generation: number;
}

/** Where in a storage segments of a table lie. */
export interface SegmentHome {
  readonly storageId: string;
  /** Of the storage: an absolute path. */
  readonly root: string;
  /** Below the `segments` of the storage; its last part is the id of the table. */
  readonly directory: string;
}

/** What storage remembers about a table beside its segments. */
export interface TableState {
  readonly tableId: number;
  /** Every version at or below this is in a segment; recovery skips it in the log. */
  readonly flushedSeq: Seq;
  /** Exact replay is possible from this position on, for every owner but those below. */
  readonly lowWaterSeq: Seq;
  /** Owners from whom more was discarded, and from where on theirs is whole; absent for none. */
  readonly ownerLowWaters?: readonly (readonly [number, number])[];
  /** 0 for never. */
  readonly lastFlushedAtMs: number;
}

export interface ManifestState {
  readonly segments: readonly SegmentEntry[];
  readonly tables: readonly TableState[];
  /** Number of the log file that recovery begins with; undefined before there was a log. */
  readonly firstLogFile?: number | undefined;
}

/** Applied whole or not at all. */
export interface ManifestChange {
  readonly addSegments?: readonly SegmentEntry[];
  /** Replaces entries with the same id, e.g. a new deletion generation. */
  readonly changeSegments?: readonly SegmentEntry[];
  readonly removeSegmentIds?: readonly number[];
  readonly tables?: readonly TableState[];
  readonly removeTableIds?: readonly number[];
  /** Only grows: published before the files below it are let go. */
  readonly firstLogFile?: number;
}

export interface Manifest {
  /**
   * Whether nothing can be published any more before the next start, and nobody knows whether the
   * last change was: what is written for another would only fill the disk.
   */
  readonly isBroken: boolean;
  load(): ManifestState;
  /**
   * One durable transaction: when this returns, a crash does not undo it.
   *
   * @throws {DatabaseError} DISK_FULL, and nothing happened; STORAGE_UNAVAILABLE, and nobody may
   * know whether it did.
   */
  publish(change: ManifestChange): void;
  /**
   * A segment id that was never used before, also not before a crash.
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE, also when it is broken.
   */
  nextSegmentId(): number;
  /** Highest seq that the manifest or the catalog knows; no id at or below it is issued again. */
  highestSeq(): Seq;
}
