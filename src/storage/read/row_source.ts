/** Defines a source of rows for a scan: a segment or a memtable. */
import type { ColumnRange, KeySpans, ScanBatch, ScanShare } from "../contract/scans.ts";

/** Selects the rows to read, with the defaults of the scan options filled in. */
export interface RowFilter {
  readonly owner: number;
  readonly upTo: number;
  readonly after: number;
  /** The inclusive upper bound on the seqs of the rows to read, at most `upTo`. */
  readonly seqMax: number;
  readonly columnIds: readonly number[];
  readonly ranges: readonly ColumnRange[];
  readonly keySpans?: KeySpans | undefined;
  readonly withTombstones: boolean;
  readonly reusesMemory?: boolean;
  readonly defersNumbers?: boolean;
  readonly mayBeEmpty: boolean;
  /**
   * Decides which row groups of a divided scan this reader takes; undefined if it takes all of
   * them.
   */
  readonly share?: ScanShare | undefined;
}

/**
 * The maximum number of batches without a current row that a single step examines. Examining them
 * takes about half a millisecond.
 */
export const HIDDEN_BATCHES_MAX = 16;

export const NO_ROWS: ScanBatch = { rowCount: 0, columns: [] };

/** The rows of one segment or memtable, in ascending seq order. */
export interface RowSource {
  /**
   * Returns 1 to `limit` rows; undefined at the end. If the filter allows empty batches, may also
   * return no rows.
   */
  next(limit: number): ScanBatch | undefined;
  close(): void;
  readonly groupsRead: number;
  readonly groupsPruned: number;
}
