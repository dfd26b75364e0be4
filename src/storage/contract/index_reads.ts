/**
 * Defines the secondary indexes of a table and how they are read.
 *
 * - A sorted index contains every row of its table, ordered by owner and then by the values of its
 *   columns, in ascending order with NULL last. A descending read goes backwards, so NULL comes
 *   first.
 * - An inverted index lists, for each term (see `terms.ts`), the rows that contain the term.
 * - A row found through an index may be obsolete, so it is checked like any other row.
 */
import type { Seq } from "../../base/seq.ts";
import type { DataType, Row, TermKind } from "../../types/mod.ts";
import type { CountedScan, OrderedScan } from "./scans.ts";
import type { TermQuery } from "./terms.ts";

/**
 * The state of a secondary index. See `storage/background/index_builder.ts` for the meaning of
 * each state.
 */
export type IndexState = "building" | "checking" | "ready";

/** A part of an index key that is computed from columns. */
export interface StoredExpression {
  readonly columnId: number;
  /** The name of the key part, used in messages. */
  readonly name: string;
  readonly sql: string;
  readonly type: DataType;
  /** The ids of the columns that the expression reads. */
  readonly readIds: readonly number[];
  /** The kind of terms that the expression produces, if it belongs to an inverted index. */
  readonly terms?: TermKind | undefined;
}

/** The properties of an index that the store needs to know. */
export interface StoredIndex {
  /** The id of the index. It is never reused within the table. */
  readonly indexId: number;
  /** The name of the index or its constraint, used in messages. */
  readonly name: string;
  /**
   * The parts of the index key in order, at least one. Each part is a column of the table or an
   * expression.
   */
  readonly columnIds: readonly number[];
  /**
   * The computed parts of the key. The id of such a part is either one that no column has, or that
   * of the column that has the same value in all rows in the index.
   */
  readonly expressions?: readonly StoredExpression[] | undefined;
  /**
   * Whether the index refuses two live rows of the same owner with equal values. A row with a NULL
   * among these values never equals another row, unless `equalNulls` is set.
   */
  readonly isUnique: boolean;
  /** Whether a unique index treats NULLs as equal (NULLS NOT DISTINCT). */
  readonly equalNulls?: boolean | undefined;
  /**
   * Whether the index enforces an exclusion constraint: it refuses two live rows of the same owner
   * whose ranges in the last column overlap while their other values are equal. NULLs equal
   * nothing.
   */
  readonly isExclusion?: boolean | undefined;
  readonly state: IndexState;
  /**
   * Whether older segments may lack the file of the index, because no job builds it for them. The
   * index is not used until merges have replaced these segments.
   */
  readonly isOptional?: boolean | undefined;
  /**
   * The seq above which new duplicates have been refused; undefined if the index never contained
   * unchecked rows.
   */
  readonly enforcedSeq?: number | undefined;
}

/**
 * One end of a range of keys, given by values for some leading columns or all columns of the
 * index.
 */
export interface IndexBound {
  /** Values of the leading columns. The bound applies to all keys that begin with these values. */
  readonly values: Row;
  /** Whether the range includes the keys that begin with the values of the bound. */
  readonly isInclusive: boolean;
}

/**
 * A range of keys. If a bound is undefined, the range extends to the first or last key, including
 * NULL.
 */
export interface IndexSpan {
  readonly min?: IndexBound | undefined;
  readonly max?: IndexBound | undefined;
}

export interface IndexScanOptions {
  readonly indexId: number;
  readonly owner: number;
  /** The inclusive upper bound: the scan returns the rows current at this seq. */
  readonly upTo: Seq;
  /** The exclusive lower bound on a row's seq. Defaults to 0. */
  readonly after?: Seq;
  /** The columns of each batch, in order. May include SEQ_COLUMN_ID. */
  readonly columnIds: readonly number[];
  /** The key ranges, ascending and without overlaps. */
  readonly spans: readonly IndexSpan[];
  /** Whether keys, and therefore the ranges, are read from last to first. */
  readonly isDescending: boolean;
}

/** Selects the live rows that have a given key. */
export interface IndexLookupOptions {
  readonly indexId: number;
  readonly owner: number;
  /** One value per index column, none of them NULL. */
  readonly key: Row;
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
  /**
   * The maximum number of row versions with the key that may be visited. If there are more
   * versions, `lookupIndex` returns undefined. If the limit is undefined, all of them are visited.
   */
  readonly versionsMax?: number;
}

/** A selection of rows through secondary indexes or primary keys. */
export type RowChoice =
  | { readonly kind: "primary"; readonly keys: readonly Row[] }
  | { readonly kind: "keys"; readonly indexId: number; readonly spans: readonly IndexSpan[] }
  | { readonly kind: "terms"; readonly indexId: number; readonly query: TermQuery }
  /** Selects the rows that at least one of the given choices selects. */
  | { readonly kind: "any"; readonly choices: readonly RowChoice[] };

export type ChosenScanOptions = Omit<IndexScanOptions, "indexId" | "isDescending" | "spans"> & {
  readonly choice: RowChoice;
};

/** A store's reads through secondary indexes. */
export interface IndexReads {
  /**
   * Reads rows in the order of an index. Returns undefined if the index is not ready, or if some
   * of the rows are in history, which has no indexes.
   */
  scanIndex(tableId: number, options: IndexScanOptions): OrderedScan | undefined;
  /**
   * Reads each row that a choice selects once, in no defined order. An inverted index may yield
   * rows that do not match, but never misses a matching row. Returns undefined in the same cases
   * as `scanIndex`.
   */
  scanChosen(tableId: number, options: ChosenScanOptions): CountedScan | undefined;
  /**
   * Returns the live rows with a given key, in no defined order. Efficient only for a few rows.
   * Returns undefined in the same cases as `scanIndex`, and if `versionsMax` is exceeded.
   */
  lookupIndex(tableId: number, options: IndexLookupOptions): readonly Row[] | undefined;
}
