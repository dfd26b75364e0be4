/**
 * Defines the secondary indexes of a table and how they are read.
 *
 * - A sorted index contains every row of its table, ordered by owner and then by the values of its
 *   columns, in ascending order with NULL last. A descending read goes backwards, so NULL comes
 *   first.
 * - An inverted index lists, for each term of `terms.ts`, the rows that contain it.
 * - A row found through an index may be obsolete, so it is checked like a row found in any other
 *   way.
 */
import type { Seq } from "../../base/seq.ts";
import type { DataType, Row, TermKind } from "../../types/mod.ts";
import type { CountedScan, OrderedScan } from "./scans.ts";
import type { TermQuery } from "./terms.ts";

/** The state of a secondary index: */
export type IndexState = "building" | "checking" | "ready";

/** A key part that is computed from columns. */
export interface StoredExpression {
  readonly columnId: number;
  /** The name of the key part, for messages. */
  readonly name: string;
  readonly sql: string;
  readonly type: DataType;
  /** The ids of the columns that the key expression reads. */
  readonly readIds: readonly number[];
  /** The kind of terms that it produces, if it belongs to an inverted index. */
  readonly terms?: TermKind | undefined;
}

/** The properties that the store needs to know about an index. */
export interface StoredIndex {
  /** The id of the index. An id is never used again within its table. */
  readonly indexId: number;
  /** The name of the index or its constraint, for messages. */
  readonly name: string;
  /**
   * The parts of the key in order, each a column of the table or an expression. An index has at
   * least one part.
   */
  readonly columnIds: readonly number[];
  /**
   * The computed parts of the key. The id of such a part is either an id that no column has, or the
   * id of the column with the same value in all rows that belong to the index.
   */
  readonly expressions?: readonly StoredExpression[] | undefined;
  /**
   * Whether the index refuses two live rows of one owner with the same values. Rows with a NULL in
   * one of these values never count as equal, unless `equalNulls` is set.
   */
  readonly isUnique: boolean;
  /** Whether a unique index treats NULLs as equal (NULLS NOT DISTINCT). */
  readonly equalNulls?: boolean | undefined;
  /**
   * Whether the index belongs to an exclusion constraint: it refuses two live rows of one owner
   * whose ranges in the last column overlap while their other values are equal. NULLs equal
   * nothing.
   */
  readonly isExclusion?: boolean | undefined;
  readonly state: IndexState;
  /**
   * Whether older segments may lack the file of the index, because no job builds it for them. The
   * index is not read until merges have replaced these segments.
   */
  readonly isOptional?: boolean | undefined;
  /**
   * The seq above which new duplicates were refused. Absent if the index never contained unchecked
   * rows.
   */
  readonly enforcedSeq?: number | undefined;
}

/** One end of a range of keys, given by values of all columns of the index or of the first ones. */
export interface IndexBound {
  /** Values of the first columns. The bound covers all keys that begin with these values. */
  readonly values: Row;
  /** Whether keys that begin with these values belong to the range. */
  readonly isInclusive: boolean;
}

/** A range of keys. Without a bound, the range extends to the first or last key, including NULL. */
export interface IndexSpan {
  readonly min?: IndexBound | undefined;
  readonly max?: IndexBound | undefined;
}

export interface IndexScanOptions {
  readonly indexId: number;
  readonly owner: number;
  /** The inclusive upper bound: the scan returns rows that are current at this seq. */
  readonly upTo: Seq;
  /** The exclusive lower bound on the seq of a row; default 0. */
  readonly after?: Seq;
  /** The columns of each batch, in order. May include SEQ_COLUMN_ID. */
  readonly columnIds: readonly number[];
  /** Ranges of keys in ascending order, without overlaps. */
  readonly spans: readonly IndexSpan[];
  /** Whether keys, and therefore the spans, are read from the last to the first. */
  readonly isDescending: boolean;
}

/** Selects the live rows that have one key of an index. */
export interface IndexLookupOptions {
  readonly indexId: number;
  readonly owner: number;
  /** One value for each column of the index; none may be NULL. */
  readonly key: Row;
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
  /**
   * The number of row versions with the key that may be visited. If there are more, `lookupIndex`
   * returns undefined. If this is absent, all of them are visited.
   */
  readonly versionsMax?: number;
}

/** A selection of rows through secondary indexes or primary keys. */
export type RowChoice =
  | { readonly kind: "primary"; readonly keys: readonly Row[] }
  | { readonly kind: "keys"; readonly indexId: number; readonly spans: readonly IndexSpan[] }
  | { readonly kind: "terms"; readonly indexId: number; readonly query: TermQuery }
  /** Selects the rows that at least one of the choices selects. */
  | { readonly kind: "any"; readonly choices: readonly RowChoice[] };

export type ChosenScanOptions = Omit<IndexScanOptions, "indexId" | "isDescending" | "spans"> & {
  readonly choice: RowChoice;
};

/** The reads of a store that use secondary indexes. */
export interface IndexReads {
  /**
   * Reads rows sorted by an index. Returns undefined if the index is not ready, or if some of the
   * rows are in history, which has no indexes.
   */
  scanIndex(tableId: number, options: IndexScanOptions): OrderedScan | undefined;
  /**
   * Reads the rows that a choice selects, each once, in no defined order. An inverted index may
   * yield rows that do not match, but never misses one that does. Returns undefined in the same
   * cases as `scanIndex`.
   */
  scanChosen(tableId: number, options: ChosenScanOptions): CountedScan | undefined;
  /**
   * Returns the live rows with one key of an index, in no defined order. This is efficient only for
   * few rows. Returns undefined in the same cases as `scanIndex`.
   */
  lookupIndex(tableId: number, options: IndexLookupOptions): readonly Row[] | undefined;
}
