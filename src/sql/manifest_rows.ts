/**
 * Rows of SHOW MANIFEST: what of each table lies in segments, and whether that is all of it. Who
 * administers sees whole tables; anybody else SHARED tables, and of others the own part.
 */
import { mayRun, type Principal } from "../auth/mod.ts";
import type { TableEntry } from "../catalog/mod.ts";
import type { SegmentInfo } from "../storage/mod.ts";
import { BIGINT, DATETIME, JSON_TEXT, type Row, TEXT } from "../types/mod.ts";
import type { SqlEnvironment } from "./environment.ts";
import { ownerOf } from "./execute/scan.ts";
import type { PlainColumn } from "./result.ts";
import { visibleTables } from "./show.ts";

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

/** One row for each visible table, by namespace and name. */
export function manifestRows(environment: SqlEnvironment, principal: Principal): Row[] {
  return visibleTables(environment, principal).map((table) => rowOf(environment, table, principal));
}

/** `rows` are row versions. Of what users share, as a segment's bytes, none sees the others' part. */
function rowOf(environment: SqlEnvironment, table: TableEntry, principal: Principal): Row {
  const { store } = environment;
  const isWhole = table.kind === "shared" || mayRun(principal, "inspect");
  const owner = isWhole ? undefined : ownerOf(principal, table);
  const stats = store.flushedStats(table.tableId, owner);
  const { isDamaged, lastFlushedAtMs, maxSeq, minSeq, unflushedVersions, versions } = stats;
  const files = isWhole ? store.segments().filter(({ tableId }) => tableId === table.tableId) : [];
  const hasRows = stats.segments > 0;
  const settled = unflushedVersions === 0 ? "in_sync" : "pending_write";
  return [
    table.namespace,
    table.name,
    scopeOf(table, isWhole, principal),
    stats.segments,
    versions,
    isWhole ? files.reduce((sum, { bytes }) => sum + bytes, 0) : null,
    hasRows ? minSeq : null,
    hasRows ? maxSeq : null,
    isDamaged ? "error" : settled,
    lastFlushedAtMs === undefined || !isWhole ? null : lastFlushedAtMs * 1000,
    JSON.stringify({ unflushed_versions: unflushedVersions, segments: files.map(listed) }),
  ];
}

function scopeOf({ kind }: TableEntry, isWhole: boolean, { userId }: Principal): string {
  if (kind === "shared") return "shared";
  return isWhole ? "all users" : userId;
}

function listed({ bytes, maxSeq, minSeq, rowCount, segmentId, status }: SegmentInfo): object {
  return { segment_id: segmentId, rows: rowCount, bytes, min_seq: minSeq, max_seq: maxSeq, status };
}
