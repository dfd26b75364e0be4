/**
 * Finds the versions that later versions have replaced, so that changes can include the old
 * values.
 */
import { isDamage } from "../../base/errors.ts";
import {
  BIGINT,
  BOOLEAN,
  constVector,
  type DataType,
  TEXT,
  type Value,
  vectorFromValues,
} from "../../types/mod.ts";
import type { ChangeBatch } from "../contract/changes.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";

/** Selects the columns to read, and either the owner of all rows or the owner of each row. */
export interface OldVersionsOptions {
  readonly columnIds: readonly number[];
  readonly owner: number | Float64Array;
  /** The function that finds a version. Defaults to {@linkcode found}. */
  readonly find?: typeof found;
}

/** Finds the version that has a given seq. @throws {DatabaseError} DATA_DAMAGED */
function found(table: StoredTable, owner: number, seq: number): VersionCursor | undefined {
  return table.findSeq(owner, seq);
}

/**
 * Finds a version as {@linkcode found} does, but returns undefined if it is in a permanently
 * damaged segment.
 */
export function foundUnlessLost(
  table: StoredTable,
  owner: number,
  seq: number,
): VersionCursor | undefined {
  try {
    return table.findSeq(owner, seq);
  } catch (error) {
    const mayBeLost = table.allSegments.some(
      ({ entry, listedEntry }) =>
        listedEntry.quarantined && entry.minSeq <= seq && seq <= entry.maxSeq,
    );
    // Ignoring the damage is safe: the version is lost, and the caller reports it as missing.
    if (isDamage(error) && mayBeLost) return undefined;
    throw error;
  }
}

/**
 * Reads the replaced versions with the given seqs. A seq of 0 means that no version was replaced.
 * Tombstones have no values.
 */
export function oldVersions(
  table: StoredTable,
  prevs: Float64Array,
  { columnIds, find = found, owner }: OldVersionsOptions,
): Pick<ChangeBatch, "hasOld" | "oldColumns"> {
  const rowCount = prevs.length;
  const hasOld = new Uint8Array(rowCount);
  if (areZero(prevs)) {
    const nothing = constVector(null, rowCount);
    return { hasOld, oldColumns: columnIds.map(() => nothing) };
  }
  const oldValues = columnIds.map((): Value[] => Array.from({ length: rowCount }, () => null));
  for (let row = 0; row < rowCount; row += 1) {
    const prev = prevs[row] ?? 0;
    const ownerOfRow = typeof owner === "number" ? owner : (owner[row] ?? 0);
    const old = prev === 0 ? undefined : find(table, ownerOfRow, prev);
    if (old === undefined || old.isDeleted) continue;
    hasOld[row] = 1;
    for (const [index, columnId] of columnIds.entries()) {
      const values = oldValues[index];
      if (values !== undefined) values[row] = table.valueAt(old, columnId);
    }
  }
  const oldColumns = columnIds.map((columnId, index) =>
    vectorFromValues(typeOf(table, columnId), oldValues[index] ?? []),
  );
  return { hasOld, oldColumns };
}

/**
 * Returns the type of a column. Returns TEXT for a column that has been dropped, because a reader
 * may not know of the drop yet.
 */
function typeOf(table: StoredTable, columnId: number): DataType {
  if (columnId === SEQ_COLUMN_ID) return BIGINT;
  if (columnId === DELETED_COLUMN_ID) return BOOLEAN;
  return table.column(columnId)?.type ?? TEXT;
}

/** Whether all values are 0. This is a plain loop because it runs for every single change. */
function areZero(values: Float64Array): boolean {
  for (let index = 0; index < values.length; index += 1) if (values[index] !== 0) return false;
  return true;
}
