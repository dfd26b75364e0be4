/**
 * Defines how row versions are read in seq order (the changes of one owner or of all owners), and
 * how single versions are read.
 */
import type { Seq } from "../../base/seq.ts";
import type { Value, Vector } from "../../types/mod.ts";

export interface ChangesOptions {
  readonly owner: number;
  /** The exclusive lower bound: the highest seq that the caller has already read. */
  readonly after: Seq;
  /** The last seq to read (inclusive), which is at most `visibleSeq`. */
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
  /** The maximum number of versions per batch. Defaults to BATCH_ROWS_MAX. */
  readonly batchRows?: number;
  /**
   * If a version replaced a tombstone above this seq, `prevs` contains that tombstone's seq. If
   * undefined, tombstones in history are not looked up, and `prevs` contains 0 for a version that
   * was inserted after one.
   */
  readonly prevsAfter?: Seq;
}

/** A batch of versions in ascending seq order, each with the version that it replaced. */
export interface ChangeBatch {
  readonly rowCount: number;
  readonly seqs: Float64Array;
  /** For each version, the last seq of the commit that wrote it. */
  readonly commitSeqs: Float64Array;
  /**
   * For each version, the seq of the version that it replaced, or 0. Tombstones count as replaced
   * versions; see also `prevsAfter`.
   */
  readonly prevs: Float64Array;
  /** For each version, 1 if it is a tombstone, otherwise 0. */
  readonly deleted: Uint8Array;
  /**
   * For each version, 1 if the version that it replaced exists and is not a tombstone, otherwise
   * 0. `oldColumns` has the values of the replaced versions.
   */
  readonly hasOld: Uint8Array;
  readonly columns: readonly Vector[];
  /** The values of the replaced versions, by column; NULL where `hasOld` is 0. */
  readonly oldColumns: readonly Vector[];
}

export interface ChangeScan {
  next(): ChangeBatch | undefined;
  close(): void;
}

export type AllChangesOptions = Omit<ChangesOptions, "owner" | "prevsAfter">;

/** A batch of versions from all owners in ascending seq order, each with its owner. */
export interface OwnedChangeBatch extends ChangeBatch {
  readonly owners: Float64Array;
}

/** A running scan of all owners' changes. The caller must call `close`, which unpins the files. */
export interface OwnedChangeScan {
  /**
   * Returns the next versions; undefined at the end. An empty batch means that the search
   * continues with the next call, to let other work run in between.
   */
  next(): OwnedChangeBatch | undefined;
  close(): void;
}

export interface VersionsOptions {
  /** The seq of each row version to read. */
  readonly seqs: Float64Array;
  /** The owner of each row version to read. */
  readonly owners: Float64Array;
  readonly columnIds: readonly number[];
  /** Whether to read the replaced versions as well. Defaults to false. */
  readonly wantsOld?: boolean;
}

/**
 * The requested versions, in the requested order. A version that no longer exists has NULL in
 * every column.
 */
export interface VersionRows {
  readonly rowCount: number;
  /**
   * For each version, 1 if it was found; 0 if it has been discarded or is in a permanently damaged
   * segment.
   */
  readonly isFound: Uint8Array;
  /** For each version, 1 if it is a tombstone, otherwise 0. */
  readonly deleted: Uint8Array;
  /** The values of the row versions, by column. */
  readonly columns: readonly (readonly Value[])[];
  /**
   * For each version, 1 if the version that it replaced exists and is not a tombstone, otherwise
   * 0. Always 0 unless replaced versions were requested.
   */
  readonly hasOld: Uint8Array;
  /** The values of the replaced versions; empty unless they were requested. */
  readonly oldColumns: readonly (readonly Value[])[];
}
