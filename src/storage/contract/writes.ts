/** Defines commits and the writes of which they consist. A write contains rows of one table. */
import type { Seq } from "../../base/seq.ts";
import type { Batch, Row } from "../../types/mod.ts";

/** Rows of one owner, all written by the same operation. */
export interface TableWrite {
  readonly tableId: number;
  /** The owner of the rows: an account number, or SHARED_OWNER. */
  readonly owner: number;
  /**
   * - insert: the key must have no live row.
   * - update: the key must have a live row, which these values replace.
   * - delete: the key must have a live row; the values are the last values of that row.
   */
  readonly operation: "insert" | "update" | "delete";
  /**
   * The values in the order of the definition's columns, already coerced and checked. The store
   * takes ownership of the arrays.
   */
  readonly rows: readonly Row[];
  /**
   * The rows of a columnar insert that is applied in one tick, with one vector per column. `rows`
   * is then empty.
   */
  readonly batch?: Batch;
  /**
   * The seqs of the versions that an update or a delete replaces, one per row. A delete from a
   * table without a key requires them. A staged columnar write is faster with them.
   */
  readonly replacedSeqs?: ArrayLike<number>;
  /**
   * Whether the rows of a transaction were computed from the state in the tick of this write. If
   * so, the transaction's snapshot does not apply to them. In a staged commit, the setting applies
   * to all rows of the table.
   */
  readonly isCurrent?: boolean;
}

/** Returns the number of row versions that a write creates. */
export function rowCountOf({ batch, rows }: TableWrite): number {
  return batch === undefined ? rows.length : batch.rowCount;
}

/**
 * The writes of a commit, applied completely or not at all. Seqs ascend in the order of the
 * writes.
 */
export interface WriteBatch {
  readonly writes: readonly TableWrite[];
  /**
   * The snapshot that a transaction read. The batch fails if one of its keys has a version above
   * the snapshot. Undefined for a statement whose reads took place at `appliedSeq` in this tick.
   */
  readonly snapshotSeq?: Seq;
  /** Whether the result of the commit must include {@linkcode Commit.seqs}. */
  readonly wantsSeqs?: boolean;
  /**
   * Whether to accept the batch even in read-only mode. Only for a few short rows that must not be
   * lost.
   */
  readonly usesReserve?: boolean;
}

/**
 * A commit too large for one tick. The caller prepares it in steps that have no visible effect,
 * and then makes it in one short tick. A caller abandons the commit by dropping its reference to
 * it.
 */
export interface StagedCommit {
  /** The number of rows added to the commit so far. */
  readonly rowCount: number;
  /**
   * Adds rows. A call should add no more than a few thousand rows, because it runs within one
   * tick. A key may be written only once.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE, ROW_TOO_LARGE, LIMIT_EXCEEDED.
   *   The commit must then be dropped.
   */
  add(write: TableWrite): void;
  /**
   * Examines, in a bounded step, the commits that other callers have made since the last call.
   * Returns true if this commit may be made in the same tick.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if another commit has written one of its keys.
   */
  settle(): boolean;
  /**
   * Makes the commit. Must be called in the tick in which `settle` returned true.
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
   * Called before the first row is written to the log. From then on, the log may contain the rows
   * even if the commit fails.
   */
  onWriting?(): void;
  /**
   * Makes the definitions durable within this tick.
   *
   * @param lastSeq The seq of the commit. A restore to this seq restores both rows and
   *   definitions.
   * @throws {DatabaseError}
   */
  publish(lastSeq: Seq): void;
}

/** The options of a staged commit, as described in {@linkcode WriteBatch}. */
export type StageOptions = Pick<WriteBatch, "snapshotSeq" | "wantsSeqs">;

export interface Commit {
  /** The lowest seq of the rows in the commit. */
  readonly firstSeq: Seq;
  /** The highest seq of the rows in the commit. */
  readonly lastSeq: Seq;
  /**
   * The seqs of the rows, in the order in which the rows were passed; present only if requested.
   */
  readonly seqs?: Float64Array;
}
