/** Defines scans over the rows that are current at a seq. */
import type { Seq } from "../../base/seq.ts";
import type { Row, Value, Vector } from "../../types/mod.ts";

/**
 * Inclusive numeric bounds on a column, which let a scan skip row groups based on their zone maps.
 */
export interface ColumnRange {
  readonly columnId: number;
  /** The lowest value that a row may have in the column; -Infinity for no bound. */
  readonly min: number;
  /** The highest value that a row may have in the column; Infinity for no bound. */
  readonly max: number;
}

/** Inclusive bounds on the values of a numeric or text column. */
export interface ColumnSpan {
  readonly min?: Value | undefined;
  readonly max?: Value | undefined;
}

/**
 * Ranges of a column's values that cover all requested rows. With them, a scan can find the rows
 * through a sorted order.
 */
export interface KeySpans {
  readonly columnId: number;
  readonly spans: readonly ColumnSpan[];
}

export interface ScanOptions {
  readonly owner: number;
  /** The inclusive upper bound: the scan returns the rows current at this seq. */
  readonly upTo: Seq;
  /** The exclusive lower bound on a row's seq, for `WHERE _seq > n`. Defaults to 0. */
  readonly after?: Seq;
  /**
   * The inclusive upper bound on a row's seq. It does not affect which version counts as current.
   * Defaults to `upTo`.
   */
  readonly seqMax?: Seq;
  /** The columns of each batch, in order. May include SEQ_COLUMN_ID and DELETED_COLUMN_ID. */
  readonly columnIds: readonly number[];
  /** Bounds on columns. A row group may be skipped if none of its rows lies within all of them. */
  readonly ranges?: readonly ColumnRange[];
  /** Ranges of a column's values. Rows outside them may be omitted. */
  readonly keySpans?: KeySpans;
  /**
   * Whether to include, for each key without a live row, its newest tombstone. Defaults to false.
   */
  readonly withTombstones?: boolean;
  /**
   * The maximum number of rows per batch, from 1 to ROW_GROUP_ROWS_MAX. Defaults to
   * BATCH_ROWS_MAX.
   */
  readonly batchRows?: number;
  /**
   * Whether each batch reuses the memory of the previous batch, which is faster. The caller must
   * be done with a batch before requesting the next batch. Defaults to false.
   */
  readonly reusesMemory?: boolean;
  /**
   * With `reusesMemory`, whether numbers are decoded only on first access. This saves time if the
   * caller discards rows before it reads their numbers. Defaults to false.
   */
  readonly defersNumbers?: boolean;
  /**
   * Whether to return an empty batch after many consecutive rows that are not current, which lets
   * the caller run other work. Defaults to false.
   */
  readonly mayBeEmpty?: boolean;
  /**
   * Decides which row groups this scan reads when several readers divide a scan. By default, it
   * reads all of them.
   */
  readonly share?: ScanShare | undefined;
}

/**
 * Divides the row groups of a scan among several readers. All readers open the same scan and ask
 * about the same groups in the same order. Each group goes to exactly one reader.
 */
export interface ScanShare {
  /** Returns true if this reader takes the next row group. */
  claimsNext(): boolean;
}

export interface ScanBatch {
  readonly rowCount: number;
  /** Vectors in the order of `columnIds`, valid until the next call to `next` or `close`. */
  readonly columns: readonly Vector[];
}

/** A running scan. The caller must call `close`, which unpins the files. */
export interface Scan {
  /**
   * Returns rows in ascending order of seq; undefined once the scan has ended. A batch has at
   * least one row, unless `mayBeEmpty` is set.
   */
  next(): ScanBatch | undefined;
  close(): void;
  /**
   * The number of row groups read so far. EXPLAIN ANALYZE shows this number along with the number
   * of groups skipped.
   */
  readonly groupsRead: number;
  readonly groupsPruned: number;
}

/**
 * The options of an ordered scan, including bounds on the ordering column. Rows outside these
 * bounds are omitted. An ordered scan by SEQ_COLUMN_ID is descending, whereas a {@linkcode Scan}
 * yields ascending seqs.
 */
export interface OrderedScanOptions
  extends Pick<ScanOptions, "owner" | "upTo" | "after" | "columnIds">,
    ColumnSpan {
  readonly columnId: number;
  readonly isDescending: boolean;
}

/**
 * A scan of live rows sorted by a column. Rows with equal values are in no defined order. The
 * caller must call `close`, as for a {@linkcode Scan}.
 */
export interface OrderedScan {
  /**
   * Returns at most `rowsMax` rows; undefined at the end. An empty batch means that the search
   * continues with the next call.
   */
  next(rowsMax: number): ScanBatch | undefined;
  /**
   * Skips up to `rowsMax` rows without reading them. Returns the number of rows skipped; 0 if the
   * search continues with the next call, and undefined at the end.
   */
  skip(rowsMax: number): number | undefined;
  close(): void;
  /** The approximate number of versions that the scan has to search. */
  readonly rowCount: number;
  /** The number of versions visited so far; Infinity if the scan must not be continued. */
  readonly rowsPassed: number;
}

/** A scan whose approximate row count is known before any row is read. */
export type CountedScan = Pick<OrderedScan, "close" | "next" | "rowCount">;

export interface LookupOptions {
  readonly owner: number;
  /** The key's values in the order of `keyColumnIds`, none of them NULL. */
  readonly key: Row;
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
}
