/**
 * Defines the figures of the store and the results of its maintenance, which statements and
 * operators use.
 */

/** The replaced versions that a table keeps only because a topic needs its history. */
export interface HeldHistory {
  readonly versions: number;
  /** The size of these versions: their share in the bytes of their segments. */
  readonly bytes: number;
}

export interface FlushResult {
  /** The number of row versions written; 0 if there was nothing to flush. */
  readonly versions: number;
}

export interface CompactResult {
  /** The number of segments that were merged or rewritten; 0 if there was nothing to do. */
  readonly mergedSegments: number;
  /** The number of discarded row versions that were older than the table's history. */
  readonly discardedVersions: number;
}

export interface TableStats {
  /** The number of live rows of all owners; undefined if damage prevents counting. */
  readonly liveRows: number | undefined;
  readonly unflushedVersions: number;
  readonly segments: number;
  readonly bytes: number;
  readonly memoryBytes: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly lastFlushedAtMs: number | undefined;
}

/** Statistics on the row versions in a table's segments, either of one owner or of all owners. */
export interface FlushedStats {
  /** The number of segments that contain these versions. */
  readonly segments: number;
  /** The number of these row versions. */
  readonly versions: number;
  /** The lowest seq of these versions; 0 if there are none. */
  readonly minSeq: number;
  /** The highest seq of these versions; 0 if there are none. */
  readonly maxSeq: number;
  readonly unflushedVersions: number;
  readonly lastFlushedAtMs: number | undefined;
  /** Whether some segments were not examined because they are quarantined. */
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
  /** The compression of the segment's chunks. Absent if no chunk is packed. */
  readonly compression?: "zstd" | undefined;
  readonly createdAtMs: number;
  /** Whether the segment contains current versions or only replaced ones. */
  readonly kind: "current" | "history";
  /** The id of the segment's storage. Absent if the segment is in the data directory. */
  readonly storageId?: string | undefined;
  readonly status: "live" | "quarantined";
}

/** Figures that show an operator a problem before users notice it. */
export interface StoreCondition {
  /** The free bytes on the disk of the data directory. */
  readonly freeBytes: number | undefined;
  /** Whether only deletes and drops are accepted until there is enough free space. */
  readonly isReadOnly: boolean;
  /** The total size of the log files in bytes. */
  readonly logBytes: number;
  readonly quarantinedSegments: number;
}

/** The memory that the store uses, in bytes. */
export interface StoreMemory {
  readonly memtableBytes: number;
  /** The memory taken by unpacked segment parts that this thread caches. */
  readonly cacheBytes: number;
  /** The memory taken by deletion vectors, which record the replaced rows of segments. */
  readonly replacementBytes: number;
  readonly threadHeapBytes: number;
}
