/**
 * Reads row versions by seq, wherever they are stored. Topics build messages from these versions.
 */
import type { Value } from "../../types/mod.ts";
import type { VersionRows, VersionsOptions } from "../contract/changes.ts";
import { SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";
import { foundUnlessLost } from "./old_versions.ts";

/** Implements `Store.versions`. */
export function versionRows(
  table: StoredTable,
  { columnIds, owners, seqs, wantsOld = false }: VersionsOptions,
): VersionRows {
  const rowCount = seqs.length;
  const isFound = new Uint8Array(rowCount);
  const deleted = new Uint8Array(rowCount);
  const hasOld = new Uint8Array(rowCount);
  const columns = columnIds.map((): Value[] => []);
  const oldColumns = columnIds.map((): Value[] => []);
  for (let row = 0; row < rowCount; row += 1) {
    const owner = owners[row] ?? 0;
    const version = foundUnlessLost(table, owner, seqs[row] ?? 0);
    if (version !== undefined) {
      isFound[row] = 1;
      deleted[row] = version.isDeleted ? 1 : 0;
    }
    pushCells(table, version, { columnIds, columns });
    if (!wantsOld) continue;
    const prev = version?.prev ?? 0;
    const old = prev === 0 ? undefined : foundUnlessLost(table, owner, prev);
    const replaced = old?.isDeleted === true ? undefined : old;
    if (replaced !== undefined) hasOld[row] = 1;
    pushCells(table, replaced, { columnIds, columns: oldColumns });
  }
  return { rowCount, isFound, deleted, hasOld, columns, oldColumns };
}

function pushCells(
  table: StoredTable,
  version: VersionCursor | undefined,
  { columnIds, columns }: { columnIds: readonly number[]; columns: readonly Value[][] },
): void {
  for (let index = 0; index < columnIds.length; index += 1) {
    const columnId = columnIds[index] ?? SEQ_COLUMN_ID;
    columns[index]?.push(version === undefined ? null : table.valueAt(version, columnId));
  }
}
