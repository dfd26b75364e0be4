/** Defines the rows of a write, and the commits to which writes belong. */
import type { Seq } from "../../base/seq.ts";
import type { Batch, Row } from "../../types/mod.ts";

/** Rows of one owner that are written with the same operation. */
export interface TableWrite {
  readonly tableId: number;
  /** The owner of the row: an account number, or SHARED_OWNER. */
  readonly owner: number;
  /**
   * - insert: the key must have no live row.
   * - update: the key must have a live row, which these values replace.
   * - delete: the key must have a live row; the values are the last values of that row.
   */
  readonly operation: "insert" | "update" | "delete";
  /**
   * The values in the order of the definition's columns, already coerced and checked. The store
   * takes ownership of them.
   */
  readonly rows: readonly Row[];
  /**
   * The rows of a columnar insert that is applied in one tick: one vector for each column. `rows`
   * is then empty.
   */
  readonly batch?: Batch;
  /**
   * The seqs of the versions that the rows of an update or a delete replace. A delete in a table
   * without a key requires them. With them, a staged columnar write is faster.
   */
  readonly replacedSeqs?: ArrayLike<number>;
  /**
   * Whether the rows of a transaction were computed from the state in this tick, so that its
   * snapshot does not apply to them. In a staged commit, this applies to all rows of the table.
   */
  readonly isCurrent?: boolean;
}

/** Returns the number of row versions that a write creates. */
export function rowCountOf({ batch, rows }: TableWrite): number {
  return batch === undefined ? rows.length : batch.rowCount;
}

/**
 * The writes of one commit, applied completely or not at all. Seqs ascend in the order of the
 * writes.
 */
export interface WriteBatch {
  readonly writes: readonly TableWrite[];
  /**
   * For a transaction: the snapshot that it read. The batch fails if a key has a version above it.
   * Absent for a statement whose reads took place at `appliedSeq` in this tick.
   */
  readonly snapshotSeq?: Seq;
  /** Whether the result of the commit must contain {@linkcode Commit.seqs}. */
  readonly wantsSeqs?: boolean;
  /**
   * Whether to accept the batch in read-only mode. This is only for a few short rows that must not
   * be lost.
   */
  readonly usesReserve?: boolean;
}

/**
 * A commit that is too large for one tick. The caller prepares it in steps without visible effect,
 * and then makes it in a short tick. A caller abandons it by dropping its reference.
 */
export interface StagedCommit {
  /** The number of rows that were added to the commit so far. */
  readonly rowCount: number;
  /**
   * Adds rows, which should be a few thousand at a time, because adding them extends the tick. A
   * key may be written only once.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE, ROW_TOO_LARGE, LIMIT_EXCEEDED.
   * If this throws, the commit must be dropped.
   */
  add(write: TableWrite): void;
  /**
   * Examines, in a bounded step, the commits that others have made since the last call. Returns
   * whether this commit may be made in the same tick.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if one of its keys was written by another commit.
   */
  settle(): boolean;
  /**
   * Makes the commit, in the tick in which `settle` allowed it.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE, DISK_FULL
   */
  commit(): Commit;
}

/** Definitions that take effect together with a commit of rows. */
export interface PublishedDefinitions {
  /** The position of the definitions in commit order, which precedes the rows. */
  readonly seq: Seq;
  /**
   * Called before the first row is written to the log. From then on, the log may have the rows,
   * even if the commit fails.
   */
  onWriting?(): void;
  /**
   * Makes the definitions durable within this tick.
   *
   * @param lastSeq The seq of the commit, at which a restore has both rows and definitions.
   * @throws {DatabaseError}
   */
  publish(lastSeq: Seq): void;
}

/** Options of a staged commit, which {@linkcode WriteBatch} describes. */
export type StageOptions = Pick<WriteBatch, "snapshotSeq" | "wantsSeqs">;

export interface Commit {
  /** The lowest seq of the rows in the commit. */
  readonly firstSeq: Seq;
  /** The highest seq of the rows in the commit. */
  readonly lastSeq: Seq;
  /** The seq of each row, in the order of the rows. Present only on request. */
  readonly seqs?: Float64Array;
}
