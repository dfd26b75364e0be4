/** Defines the properties of a table that the store needs to know. */
import type { DataType, Value } from "../../types/mod.ts";
import type { StoredIndex } from "./index_reads.ts";
import type { SegmentHome } from "./manifest.ts";

/** The owner of every row of a SHARED table. */
export const SHARED_OWNER = 0;

export interface StoredColumn {
  /**
   * The id of the column, 1 or higher. It is never reused within a table, and a rename does not
   * change it.
   */
  readonly columnId: number;
  readonly name: string;
  readonly type: DataType;
  /** The column's value in versions older than the column itself. */
  readonly missing: Value;
}

/**
 * Decides which column chunks of a table are packed, that is, compressed:
 *
 * - auto: chunks of long text, JSON and bytes that become considerably smaller
 * - none: no chunk
 * - zstd: every chunk that becomes smaller at all
 */
export type Compression = "auto" | "none" | "zstd";

/**
 * The properties of a table that the store needs to know. ALTER TABLE replaces the whole object.
 */
export interface TableDefinition {
  readonly tableId: number;
  /** The table's name as shown in messages, "namespace.table". */
  readonly name: string;
  /** The declared columns. A `Row` in a {@linkcode TableWrite} has its values in this order. */
  readonly columns: readonly StoredColumn[];
  readonly keyColumnIds: readonly number[];
  /** The secondary indexes; undefined if there are none. */
  readonly indexes?: readonly StoredIndex[] | undefined;
  readonly flush: FlushPolicy;
  /** How the chunks of new segments are compressed; undefined if they are not. */
  readonly compression?: Compression | undefined;
  /** The time for which replaced versions and tombstones stay readable, in milliseconds. */
  readonly historyMs: number;
  /** The age at which a row version expires, in milliseconds; undefined if rows never expire. */
  readonly ttlMs?: number | undefined;
  /** The seq up to which versions have already expired, regardless of the current TTL. */
  readonly expiredSeq?: number | undefined;
  /** The storage to which new segments are written; undefined for the data directory. */
  readonly home?: SegmentHome | undefined;
}

interface FlushPolicy {
  /** The number of buffered row versions at which a flush of the table begins. */
  readonly rowsMax: number;
  /**
   * The age of the oldest buffered row version, in milliseconds, at which a flush of the table
   * begins.
   */
  readonly ageMsMax: number;
}
