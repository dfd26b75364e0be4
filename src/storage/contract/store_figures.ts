/**
 * Defines the store's figures and the results of its maintenance, for use by statements and
 * operators.
 */

/** The replaced versions that a table keeps only because topics need its history. */
export interface HeldHistory {
  readonly versions: number;
  /** The size of the kept versions in bytes, as their share of their segments' bytes. */
  readonly bytes: number;
}

export interface FlushResult {
  /** The number of row versions written; 0 if there was nothing to flush. */
  readonly versions: number;
}

export interface CompactResult {
  /** The number of segments merged or rewritten; 0 if there was nothing to do. */
  readonly mergedSegments: number;
  /**
   * The number of row versions discarded because they were older than the history that the table
   * retains.
   */
  readonly discardedVersions: number;
}

export interface TableStats {
  /** The number of live rows over all owners; undefined if damage prevents counting. */
  readonly liveRows: number | undefined;
  readonly unflushedVersions: number;
  readonly segments: number;
  readonly bytes: number;
  readonly memoryBytes: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly lastFlushedAtMs: number | undefined;
}

/** Statistics on the row versions in a table's segments, for one owner or for all owners. */
export interface FlushedStats {
  /** The number of segments that contain the counted row versions. */
  readonly segments: number;
  /** The number of row versions in segments. */
  readonly versions: number;
  /** The lowest seq of the row versions in segments; 0 if there are none. */
  readonly minSeq: number;
  /** The highest seq of the row versions in segments; 0 if there are none. */
  readonly maxSeq: number;
  readonly unflushedVersions: number;
  readonly lastFlushedAtMs: number | undefined;
  /** Whether some segments were skipped because they are quarantined. */
  readonly isDamaged: boolean;
  /** Whether live rows can be counted: true if no damaged segment has current versions. */
  readonly isCountable: boolean;
}

export interface ListedSegment {
  readonly segmentId: number;
  readonly tableId: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly rowCount: number;
  readonly bytes: number;
  /** How the segment's chunks are compressed; undefined if none of them is. */
  readonly compression?: "zstd" | undefined;
  readonly createdAtMs: number;
  /** Whether the segment contains current versions or only obsolete versions. */
  readonly kind: "current" | "history";
  /** The id of the segment's storage; undefined if the segment is in the data directory. */
  readonly storageId?: string | undefined;
  readonly status: "live" | "quarantined";
}

/** Figures that reveal a problem to operators before users notice it. */
export interface StoreCondition {
  /** The number of free bytes on the disk that contains the data directory. */
  readonly freeBytes: number | undefined;
  /** Whether the store accepts only deletes and drops until there is enough free space. */
  readonly isReadOnly: boolean;
  /** The total size of the log files in bytes. */
  readonly logBytes: number;
  readonly quarantinedSegments: number;
}

/** The memory that the store uses, in bytes. */
export interface StoreMemory {
  readonly memtableBytes: number;
  /** The memory taken up by decompressed parts of segments that this thread has cached. */
  readonly cacheBytes: number;
  /** The memory taken up by deletion vectors, which record the replaced rows of segments. */
  readonly replacementBytes: number;
  readonly threadHeapBytes: number;
}
