/**
 * Creates the rows of SHOW MANIFEST. They show how many of a table's rows are in segments, and
 * whether all of its rows are. Administrators see whole tables. Other users see SHARED tables, and
 * their own part of other tables.
 */
import { isRuledFor, mayRun, type Principal } from "../../auth/mod.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import type { ListedSegment, Store } from "../../storage/mod.ts";
import { BIGINT, DATETIME, INT, JSON_TEXT, type Row, TEXT } from "../../types/mod.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { PlainColumn } from "../result/result.ts";
import { visibleTables } from "./show_rows.ts";
import type { ColumnList } from "./system_view.ts";

export const SHOW_MANIFEST_COLUMNS: readonly PlainColumn[] = [
  { name: "namespace_id", type: TEXT },
  { name: "table_name", type: TEXT },
  { name: "scope", type: TEXT },
  { name: "segments", type: BIGINT },
  { name: "rows", type: BIGINT },
  { name: "bytes", type: BIGINT },
  { name: "min_seq", type: BIGINT },
  { name: "max_seq", type: BIGINT },
  { name: "sync_state", type: TEXT },
  { name: "last_flushed_at", type: DATETIME },
  { name: "manifest_json", type: JSON_TEXT },
];

/** The parts of the database that know the state of segments. */
export type ManifestDeps = Pick<SqlEnvironment, "catalog" | "store">;

/** Returns one row for each visible table, ordered by namespace and name. */
export function manifestRows({ catalog, store }: ManifestDeps, principal: Principal): Row[] {
  const filesOf = segmentsByTable(store);
  // The figures of such a table would reveal the existence of rows that policies hide.
  const tables = visibleTables(catalog, principal).filter(
    (table) => !isRuledFor(principal, table, catalog),
  );
  return tables.map((table) =>
    rowOf(store, table, { principal, files: filesOf.get(table.tableId) ?? [] }),
  );
}

/**
 * Returns the row for a table. `rows` counts row versions. Figures that cover several users, such
 * as the size of a segment, are hidden.
 */
function rowOf(
  store: Store,
  table: TableEntry,
  { files: all, principal }: { files: readonly ListedSegment[]; principal: Principal },
): Row {
  const isWhole = table.kind === "shared" || mayRun(principal, "inspect");
  const owner = isWhole ? undefined : ownerOf(principal, table);
  const stats = store.flushedStats(table.tableId, owner);
  const { isDamaged, lastFlushedAtMs, maxSeq, minSeq, unflushedVersions, versions } = stats;
  const files = isWhole ? all : [];
  const hasRows = stats.segments > 0;
  return [
    table.namespace,
    table.name,
    scopeOf(table, isWhole, principal),
    stats.segments,
    versions,
    isWhole ? files.reduce((sum, { bytes }) => sum + bytes, 0) : null,
    hasRows ? minSeq : null,
    hasRows ? maxSeq : null,
    stateOf(isDamaged, unflushedVersions),
    lastFlushedAtMs === undefined || !isWhole ? null : lastFlushedAtMs * 1000,
    JSON.stringify({ unflushed_versions: unflushedVersions, segments: files.map(listed) }),
  ];
}

/** The columns of `system.manifest`. */
export const MANIFEST_COLUMNS: ColumnList = [
  ["namespace_id", TEXT],
  ["table_name", TEXT],
  ["user_id", TEXT],
  ["segments", INT],
  ["pending_versions", BIGINT],
  ["flushed_seq", BIGINT],
  ["sync_state", TEXT],
  ["updated_at", DATETIME],
  ["manifest_json", JSON_TEXT],
];

/** Returns one row for every table, for administrators. */
export function manifestViewRows({ catalog, store }: ManifestDeps): Row[] {
  const filesOf = segmentsByTable(store);
  return catalog.tables().map((table): Row => {
    const { isDamaged, lastFlushedAtMs, maxSeq, segments, unflushedVersions } = store.flushedStats(
      table.tableId,
      undefined,
    );
    const files = filesOf.get(table.tableId) ?? [];
    return [
      table.namespace,
      table.name,
      null,
      segments,
      unflushedVersions,
      segments === 0 ? null : maxSeq,
      stateOf(isDamaged, unflushedVersions),
      (lastFlushedAtMs ?? table.updatedAtMs) * 1000,
      JSON.stringify({ unflushed_versions: unflushedVersions, segments: files.map(listed) }),
    ];
  });
}

function segmentsByTable(store: Store): ReadonlyMap<number, ListedSegment[]> {
  return Map.groupBy(store.segments(), ({ tableId }) => tableId);
}

function stateOf(isDamaged: boolean, unflushedVersions: number): string {
  if (isDamaged) return "error";
  return unflushedVersions === 0 ? "in_sync" : "pending_write";
}

function scopeOf({ kind }: TableEntry, isWhole: boolean, { userId }: Principal): string {
  if (kind === "shared") return "shared";
  return isWhole ? "all users" : userId;
}

function listed({
  bytes,
  compression,
  kind,
  maxSeq,
  minSeq,
  rowCount,
  segmentId,
  status,
}: ListedSegment): object {
  return {
    segment_id: segmentId,
    rows: rowCount,
    bytes,
    compression: compression ?? "none",
    min_seq: minSeq,
    max_seq: maxSeq,
    kind,
    status,
  };
}
