/** Defines scans over the rows that are current at a seq. */
import type { Seq } from "../../base/seq.ts";
import type { Row, Value, Vector } from "../../types/mod.ts";

/**
 * Inclusive numeric bounds of a column, with which a scan can skip row groups by their zone maps.
 */
export interface ColumnRange {
  readonly columnId: number;
  /** The lower bound of a column's values; -Infinity if there is none. */
  readonly min: number;
  /** The upper bound of a column's values; Infinity if there is none. */
  readonly max: number;
}

/** The inclusive bounds of the values of a column of numbers or of text. */
export interface ColumnSpan {
  readonly min?: Value | undefined;
  readonly max?: Value | undefined;
}

/**
 * Ranges of a column that contain the values of all requested rows, so that a scan can find the
 * rows through a sorted order.
 */
export interface KeySpans {
  readonly columnId: number;
  readonly spans: readonly ColumnSpan[];
}

export interface ScanOptions {
  readonly owner: number;
  /** The inclusive upper bound: the scan returns rows that are current at this seq. */
  readonly upTo: Seq;
  /** The exclusive lower bound on the seq of a row, for `WHERE _seq > n`; default 0. */
  readonly after?: Seq;
  /**
   * The inclusive upper bound on the seq of a row. The bound does not affect which version is
   * current. Default `upTo`.
   */
  readonly seqMax?: Seq;
  /** The columns of each batch, in order. May include SEQ_COLUMN_ID and DELETED_COLUMN_ID. */
  readonly columnIds: readonly number[];
  /** A row group may be skipped if it has no row within all of these bounds. */
  readonly ranges?: readonly ColumnRange[];
  /** Rows outside these spans may be omitted. */
  readonly keySpans?: KeySpans;
  /** Whether to include the newest tombstone of each key that has no live row. Default false. */
  readonly withTombstones?: boolean;
  /** The maximum number of rows in one batch, 1 to ROW_GROUP_ROWS_MAX; default BATCH_ROWS_MAX. */
  readonly batchRows?: number;
  /**
   * Whether each batch reuses the memory of the previous one, which is faster. The caller must have
   * finished with a batch before it requests the next one. Default false.
   */
  readonly reusesMemory?: boolean;
  /**
   * With `reusesMemory`, numbers are decoded on first access, which pays off if the caller first
   * discards rows. The default is false.
   */
  readonly defersNumbers?: boolean;
  /**
   * Whether to return an empty batch after many consecutive rows that are not current, so that the
   * caller can let other work run. Default false.
   */
  readonly mayBeEmpty?: boolean;
  /**
   * The row groups that this reader takes from a divided scan. By default, it takes all of them.
   */
  readonly share?: ScanShare | undefined;
}

/**
 * Divides the row groups of a scan among several readers. All readers open the same scan and ask
 * about the same groups in the same order. Each group goes to one reader.
 */
export interface ScanShare {
  /** Returns whether this reader takes the next row group. */
  claimsNext(): boolean;
}

export interface ScanBatch {
  readonly rowCount: number;
  /** Vectors in the order of `columnIds`, valid until the next call of `next` or `close`. */
  readonly columns: readonly Vector[];
}

/** A running scan. The caller must call `close`, which unpins the files. */
export interface Scan {
  /**
   * Returns rows in ascending seq order: at least one, or possibly none if `mayBeEmpty` is set.
   * Returns undefined once the scan has ended.
   */
  next(): ScanBatch | undefined;
  close(): void;
  /**
   * The number of row groups read so far. EXPLAIN ANALYZE shows it, together with the number of
   * skipped groups.
   */
  readonly groupsRead: number;
  readonly groupsPruned: number;
}

/**
 * The options of an ordered scan, including bounds on the ordering column. Rows outside these
 * bounds are omitted. For SEQ_COLUMN_ID, the order is descending; a {@linkcode Scan} yields
 * ascending seqs.
 */
export interface OrderedScanOptions
  extends Pick<ScanOptions, "owner" | "upTo" | "after" | "columnIds">,
    ColumnSpan {
  readonly columnId: number;
  readonly isDescending: boolean;
}

/**
 * A scan of live rows sorted by a column. Rows with equal values have no defined order. The caller
 * must call `close`, as for a {@linkcode Scan}.
 */
export interface OrderedScan {
  /**
   * Returns at most `rowsMax` rows. An empty batch means that the search continues in the next
   * call; undefined means the end.
   */
  next(rowsMax: number): ScanBatch | undefined;
  /**
   * Skips at most `rowsMax` rows without reading them. Returns the number of skipped rows: 0 if the
   * search continues in the next call, undefined at the end.
   */
  skip(rowsMax: number): number | undefined;
  close(): void;
  /** The approximate number of versions that the scan has to search. */
  readonly rowCount: number;
  /** The number of versions visited so far. Infinity once the scan must not be continued. */
  readonly rowsPassed: number;
}

/** A scan whose approximate row count is known before any row is read. */
export type CountedScan = Pick<OrderedScan, "close" | "next" | "rowCount">;

export interface LookupOptions {
  readonly owner: number;
  /** The key values in the order of `keyColumnIds`; none may be NULL. */
  readonly key: Row;
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
}
