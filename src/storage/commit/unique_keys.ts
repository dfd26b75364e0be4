/**
 * Refuses rows whose key in a unique index belongs to another live row.
 *
 * Keys are checked at the end of a commit, once all of its rows are known. A statement may
 * therefore exchange the keys of two rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { Row } from "../../types/mod.ts";
import { keyOfValues } from "../contract/key.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { rowsToCompare } from "../table/new_keys.ts";
import type { StoredTable } from "../table/table.ts";
import { holderOf, memIndexOf, type TableIndex } from "../table/table_index.ts";
import { shownKey } from "./conflicts.ts";

/** The rows that a commit has added to a memtable of a table. */
export interface AddedRows {
  readonly memtable: Memtable;
  readonly firstRow: number;
  /** Rows up to this seq have expired. */
  readonly expiredSeq: number;
  /** The snapshot at which a transaction reads. */
  readonly snapshotSeq: Seq | undefined;
}

/**
 * Checks the keys of added rows, whose values are in the memtable.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, or SERIALIZATION_FAILURE if another commit took the key
 *   after the snapshot.
 */
export function requireUnique(
  table: StoredTable,
  { expiredSeq, firstRow, memtable, snapshotSeq }: AddedRows,
): void {
  for (const index of table.enforcedIndexes) {
    const rows = memIndexOf(memtable, index);
    rows.catchUp(firstRow);
    const { deleted, owners, prevs, replacedBy, seqs } = memtable;
    for (const row of rowsToCompare(table, index, { memtable, firstRow })) {
      if (deleted[row] === 1 || replacedBy[row] !== 0) continue;
      const values = rows.valuesAt(row);
      if (!index.order.canRecur(values)) continue;
      const written = { owner: owners[row] ?? 0, key: keyOfValues(values), values, memtable, row };
      const holder = holderOf(table, index, { written, expiredSeq });
      if (holder === undefined) continue;
      const taken = { values, isNew: prevs[row] === 0 };
      const isOfOther = holder.seq < (seqs[firstRow] ?? 0);
      throw isOfOther && snapshotSeq !== undefined && holder.seq > snapshotSeq
        ? keyTakenMeanwhile(table, index, taken)
        : duplicateIn(table, index, taken);
    }
  }
}

/** A key in a unique index that belongs to a different row. */
export interface TakenKey {
  readonly values: Row;
  /** Whether the row with the key is newly inserted, as opposed to replacing another version. */
  readonly isNew: boolean;
}

export function duplicateIn(
  { definition }: StoredTable,
  index: TableIndex,
  { isNew, values }: TakenKey,
): DatabaseError {
  return new DatabaseError(
    "DUPLICATE_KEY",
    `Cannot ${isNew ? "insert into" : "update"} ${definition.name}: ${shownKey(index.order.columns, values)} already exists in unique index "${index.stored.name}"`,
  );
}

function keyTakenMeanwhile(
  { definition }: StoredTable,
  index: TableIndex,
  { isNew, values }: TakenKey,
): DatabaseError {
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot ${isNew ? "insert into" : "update"} ${definition.name}: another transaction has used ${shownKey(index.order.columns, values)} of unique index "${index.stored.name}"`,
    { hint: "run the transaction again" },
  );
}
