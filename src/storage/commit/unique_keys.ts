/**
 * Refuses rows whose key in a unique index belongs to another live row.
 *
 * Keys are checked at the end of a commit, when all of its rows are known. A statement may
 * therefore swap the keys of two rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { Row } from "../../types/mod.ts";
import { keyOfValues } from "../contract/key.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { Overlaps } from "../read/overlaps.ts";
import { rowsToCompare } from "../table/new_keys.ts";
import type { StoredTable } from "../table/table.ts";
import { holderOf, memIndexOf, type TableIndex } from "../table/table_index.ts";
import { shownKey } from "./conflicts.ts";

/** The rows that a commit has added to a table's memtable. */
export interface AddedRows {
  readonly memtable: Memtable;
  readonly firstRow: number;
  /** The seq up to which rows have expired. */
  readonly expiredSeq: number;
  /** The transaction's snapshot; undefined outside a transaction. */
  readonly snapshotSeq: Seq | undefined;
}

/**
 * Checks the keys of added rows. Their values must already be in the memtable.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, or SERIALIZATION_FAILURE if another commit took the key
 *   after the snapshot.
 */
export function requireUnique(
  table: StoredTable,
  { expiredSeq, firstRow, memtable, snapshotSeq }: AddedRows,
): void {
  for (const index of table.enforcedIndexes) {
    if (index.stored.isExclusion === true) {
      requireApart(table, index, { expiredSeq, firstRow, memtable, snapshotSeq });
      continue;
    }
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

/**
 * For an exclusion constraint, checks that the ranges of added rows overlap no other range.
 *
 * @throws {DatabaseError} EXCLUSION_VIOLATION, or SERIALIZATION_FAILURE if another commit added
 *   the overlapping range after the snapshot.
 */
function requireApart(
  table: StoredTable,
  index: TableIndex,
  { expiredSeq, firstRow, memtable, snapshotSeq }: AddedRows,
): void {
  const overlaps = new Overlaps(index);
  const keys = memIndexOf(memtable, index);
  const { deleted, owners, prevs, replacedBy } = memtable;
  const rows: number[] = [];
  for (let row = firstRow; row < memtable.rowCount; row += 1) {
    if (deleted[row] !== 1 && replacedBy[row] === 0) rows.push(row);
  }
  const added = { memtable, firstRow };
  for (const row of rows) {
    const values = keys.valuesAt(row);
    if (!overlaps.canOverlap(values)) continue;
    const search = { owner: owners[row] ?? 0, expiredSeq, added };
    for (const { seq } of overlaps.rowsOf(table, values, search)) {
      const taken = { values, isNew: prevs[row] === 0 };
      throw snapshotSeq !== undefined && seq > snapshotSeq
        ? keyTakenMeanwhile(table, index, taken)
        : overlapIn(table, index, taken);
    }
  }
  const values = rows.length > 1 ? overlaps.keyAmong(memtable, rows) : undefined;
  if (values !== undefined) throw overlapIn(table, index, { values, isNew: true });
}

/** A unique key that already belongs to a different row. */
export interface TakenKey {
  readonly values: Row;
  /** Whether the row with the key is a new row, as opposed to a new version of an existing row. */
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

/**
 * Returns the error for a key that another row already has, or for a range that overlaps the range
 * of another row.
 */
export function takenIn(table: StoredTable, index: TableIndex, taken: TakenKey): DatabaseError {
  return (index.stored.isExclusion === true ? overlapIn : duplicateIn)(table, index, taken);
}

export function overlapIn(
  { definition }: StoredTable,
  index: TableIndex,
  { isNew, values }: TakenKey,
): DatabaseError {
  return new DatabaseError(
    "EXCLUSION_VIOLATION",
    `Cannot ${isNew ? "insert into" : "update"} ${definition.name}: ${shownKey(index.order.columns, values)} overlaps a row under exclusion constraint "${index.stored.name}"`,
  );
}

function keyTakenMeanwhile(
  { definition }: StoredTable,
  index: TableIndex,
  { isNew, values }: TakenKey,
): DatabaseError {
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot ${isNew ? "insert into" : "update"} ${definition.name}: a concurrent transaction ` +
      `has used ${shownKey(index.order.columns, values)} of ` +
      `${index.stored.isExclusion === true ? "exclusion constraint" : "unique index"} ` +
      `"${index.stored.name}"`,
    { hint: "run the transaction again" },
  );
}
