/** Defines the interface of a source of rows for a scan: a segment or a memtable. */
import type { ColumnRange, KeySpans, ScanBatch, ScanShare } from "../contract/scans.ts";

/** The rows to read: the scan options with all defaults filled in. */
export interface RowFilter {
  readonly owner: number;
  readonly upTo: number;
  readonly after: number;
  /** The inclusive upper bound on the seq of a row. At most `upTo`. */
  readonly seqMax: number;
  readonly columnIds: readonly number[];
  readonly ranges: readonly ColumnRange[];
  readonly keySpans?: KeySpans | undefined;
  readonly withTombstones: boolean;
  readonly reusesMemory?: boolean;
  readonly defersNumbers?: boolean;
  readonly mayBeEmpty: boolean;
  /** The row groups that this reader takes. Absent for all of them. */
  readonly share?: ScanShare | undefined;
}

/**
 * The maximum number of batches without a current row that are examined in one step, which takes
 * about half a millisecond.
 */
export const HIDDEN_BATCHES_MAX = 16;

export const NO_ROWS: ScanBatch = { rowCount: 0, columns: [] };

/** Rows of one segment or memtable, in ascending order of seq. */
export interface RowSource {
  /** Returns 1 to `limit` rows, or none if batches may be empty. Returns undefined at the end. */
  next(limit: number): ScanBatch | undefined;
  close(): void;
  readonly groupsRead: number;
  readonly groupsPruned: number;
}
