/**
 * What a scan asks of each place that has rows: a segment, or a memtable.
 */
import type { ColumnRange, KeySpans, ScanBatch, ScanShare } from "../contract/store.ts";

/** Which rows are read; the options with every default filled in. */
export interface RowFilter {
  readonly owner: number;
  readonly upTo: number;
  readonly after: number;
  /** At most `upTo`. */
  readonly seqMax: number;
  readonly columnIds: readonly number[];
  readonly ranges: readonly ColumnRange[];
  readonly keySpans?: KeySpans | undefined;
  readonly withTombstones: boolean;
  readonly reusesMemory?: boolean;
  readonly defersNumbers?: boolean;
  readonly mayBeEmpty: boolean;
  /** Absent: all of them. */
  readonly share?: ScanShare | undefined;
}

/** Batches without a current row that are looked through at once: it takes half a millisecond. */
export const HIDDEN_BATCHES_MAX = 16;

export const NO_ROWS: ScanBatch = { rowCount: 0, columns: [] };

/** Rows of one place, in ascending seq. */
export interface RowSource {
  /** 1 to `limit` rows, or none where that may be; undefined at the end. */
  next(limit: number): ScanBatch | undefined;
  close(): void;
  readonly groupsRead: number;
  readonly groupsPruned: number;
}
