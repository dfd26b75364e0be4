/**
 * Checks the keys of rows inserted in columnar form. A key is looked up only if it could already
 * exist.
 */
import { SEQ_ZERO, type SeqGenerator } from "../../base/seq.ts";
import { type Batch, type Row, type Vector, valueAt } from "../../types/mod.ts";
import { keyOfColumns } from "../contract/key.ts";
import type { TableWrite } from "../contract/writes.ts";
import type { MemPartition } from "../memtable/mem_partition.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";
import { requireInsertable } from "./conflicts.ts";

/** The partition and memtable that receive new rows. */
export interface BatchTarget {
  readonly table: StoredTable;
  /** The table's active memtable, with room for the new rows. */
  readonly memtable: Memtable;
  /** The owner's partition in the active memtable. */
  readonly partition: MemPartition;
  readonly seqs: SeqGenerator;
}

/**
 * Checks the keys of new rows and appends the rows, without their values.
 *
 * @throws {DatabaseError} DUPLICATE_KEY. The rows before the duplicate have been appended.
 */
export function pushBatch(
  { memtable, partition, seqs, table }: BatchTarget,
  write: TableWrite,
  { columns, rowCount }: Batch,
): void {
  const { keyPositions } = table;
  const isKeyed = keyPositions.length > 0;
  const expiredSeq = table.expiredSeq(seqs);
  const highestKey = isKeyed ? table.highestKey(partition.owner) : 0;
  const nowMs = seqs.clockMs();
  const keys = isKeyed ? ascendingKeys(columns, keyPositions, highestKey) : undefined;
  if (!isKeyed || keys !== undefined) {
    const own = new Float64Array(rowCount);
    for (let row = 0; row < rowCount; row += 1) own[row] = seqs.next(nowMs);
    const first = memtable.pushNew(partition, own);
    if (keys !== undefined) partition.setNewRows(keys, first);
    return;
  }
  for (let row = 0; row < rowCount; row += 1) {
    const key = isKeyed ? keyOfColumns(columns, row, keyPositions) : "";
    // The comparison with `partition.highestKey` covers earlier rows of the same batch, each of
    // which has raised the highest key.
    const isNew = typeof key === "number" && key > highestKey && key > partition.highestKey;
    const mayBeThere = isKeyed && !isNew;
    const found = mayBeThere
      ? table.findNewestAt(partition.owner, key, { columns, row })
      : undefined;
    let prev = 0;
    if (found !== undefined && found.seq > expiredSeq) {
      const conflict = {
        table,
        write,
        snapshotSeq: undefined,
        firstSeq: SEQ_ZERO,
      };
      requireInsertable(conflict, found, rowOfColumns(columns, row));
      prev = found.seq;
    }
    const seq = seqs.next(nowMs);
    if (prev !== 0) found?.replace(seq);
    const at = memtable.push(partition, { seq, prev, isDeleted: false });
    if (isKeyed) partition.setRow(key, at);
  }
}

/**
 * Returns the keys if they are certain to be new: single numbers in ascending order, above
 * `highestKey`. Otherwise returns undefined.
 */
export function ascendingKeys(
  columns: readonly Vector[],
  keyPositions: readonly number[],
  highestKey: number,
): Float64Array | Int32Array | undefined {
  const column = columns[keyPositions[0] ?? 0];
  if (keyPositions.length !== 1 || (column?.kind !== "f64" && column?.kind !== "i32")) {
    return undefined;
  }
  const { length } = column;
  const keys = column.values.length === length ? column.values : column.values.subarray(0, length);
  let last = highestKey;
  for (let row = 0; row < length; row += 1) {
    const key = keys[row] ?? 0;
    // The condition is negated so that it rejects NaN as well.
    if (!(key > last)) return undefined;
    last = key;
  }
  return keys;
}

export function rowOfColumns(columns: readonly Vector[], row: number): Row {
  return columns.map((column) => valueAt(column, row));
}
