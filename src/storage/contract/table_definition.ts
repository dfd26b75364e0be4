/** Defines the properties that the store needs to know about a table. */
import type { DataType, Value } from "../../types/mod.ts";
import type { StoredIndex } from "./index_reads.ts";
import type { SegmentHome } from "./manifest.ts";

/** The owner of every row of a SHARED table. */
export const SHARED_OWNER = 0;

export interface StoredColumn {
  /**
   * The id of the column, a number of at least 1. An id is never reused within a table, and a
   * rename does not change it.
   */
  readonly columnId: number;
  readonly name: string;
  readonly type: DataType;
  /** The column's value in versions that are older than the column. */
  readonly missing: Value;
}

/**
 * The policy that decides which chunks of a table are packed:
 *
 * - auto: chunks of long text, JSON and bytes that become considerably smaller.
 * - none: no chunk.
 * - zstd: every chunk that becomes smaller at all.
 */
export type Compression = "auto" | "none" | "zstd";

/** The properties of a table that the store needs. ALTER TABLE replaces the whole object. */
export interface TableDefinition {
  readonly tableId: number;
  /** The name of the table as shown in messages, "namespace.table". */
  readonly name: string;
  /** The declared columns, in the same order as `Row` in {@linkcode TableWrite}. */
  readonly columns: readonly StoredColumn[];
  readonly keyColumnIds: readonly number[];
  /** Secondary indexes. Absent if the table has none. */
  readonly indexes?: readonly StoredIndex[] | undefined;
  readonly flush: FlushPolicy;
  /** The packing policy for new segments. Absent if segments are not packed. */
  readonly compression?: Compression | undefined;
  /** The time in milliseconds for which replaced versions and tombstones stay readable. */
  readonly historyMs: number;
  /** The age at which a row version expires. Absent if rows never expire. */
  readonly ttlMs?: number | undefined;
  /** The seq up to which versions have already expired, whatever the current time to live is. */
  readonly expiredSeq?: number | undefined;
  /** The storage in which new segments are written. Absent for the data directory. */
  readonly home?: SegmentHome | undefined;
}

interface FlushPolicy {
  /** A flush begins when this many row versions of the table are buffered. */
  readonly rowsMax: number;
  /** A flush begins when the oldest buffered row version has this age. */
  readonly ageMsMax: number;
}
