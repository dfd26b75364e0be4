/**
 * The views of connections and subscriptions: `system.live`, `system.connections`, and views with
 * the same columns that show users only their own connections and subscriptions.
 */
import { BIGINT, DATETIME, DOUBLE, INT, JSON_TEXT, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { ADMIN_ONLY, type ColumnList, OPEN, view } from "./system_view.ts";

const LIVE_COLUMNS: ColumnList = [
  ["live_id", TEXT],
  ["connection_id", TEXT],
  ["subscription_id", TEXT],
  ["namespace_id", TEXT],
  ["table_name", TEXT],
  ["user_id", TEXT],
  ["query", TEXT],
  ["options", JSON_TEXT],
  ["status", TEXT],
  ["changes", BIGINT],
  ["last_seq", BIGINT],
  ["queued", INT],
  ["created_at", DATETIME],
  ["last_update", DATETIME],
  ["node_id", INT],
  ["position", BIGINT],
  ["lag_ms", BIGINT],
  ["changes_per_sec", DOUBLE],
  ["state_bytes", BIGINT],
];

const CONNECTION_COLUMNS: ColumnList = [
  ["connection_id", TEXT],
  ["user_id", TEXT],
  ["role", TEXT],
  ["transport", TEXT],
  ["client_addr", TEXT],
  ["serialization", TEXT],
  ["compression", TEXT],
  ["subscriptions", INT],
  ["bytes_in", BIGINT],
  ["bytes_out", BIGINT],
  ["queued_bytes", BIGINT],
  ["opened_at", DATETIME],
  ["last_seen_at", DATETIME],
];

type LiveViewDeps = Pick<SqlEnvironment, "catalog" | "connections" | "live" | "nodeId">;

export function liveViews(deps: LiveViewDeps): [string, SystemView][] {
  const live = (userId?: string): Row[] => liveRows(deps, userId);
  const connections = (userId?: string): Row[] => connectionRows(deps, userId);
  return [
    ["system.live", view(LIVE_COLUMNS, () => live(), ADMIN_ONLY)],
    ["system.my_live", view(LIVE_COLUMNS, ({ userId }) => live(userId), OPEN)],
    ["system.connections", view(CONNECTION_COLUMNS, () => connections(), ADMIN_ONLY)],
    ["system.my_connections", view(CONNECTION_COLUMNS, ({ userId }) => connections(userId), OPEN)],
  ];
}

/** Returns the subscriptions of all users, or of one user. */
function liveRows({ catalog, live, nodeId }: LiveViewDeps, userId: string | undefined): Row[] {
  return live()
    .rows()
    .filter((row) => userId === undefined || row.userId === userId)
    .map((row) => {
      const tables = row.tableIds.flatMap((tableId) => catalog.tableById(tableId) ?? []);
      const namespaces = new Set(tables.map(({ namespace }) => namespace));
      const [namespace = null] = namespaces;
      const names = tables.map((table) =>
        namespaces.size === 1 ? table.name : `${table.namespace}.${table.name}`,
      );
      return [
        row.liveId,
        row.connectionId,
        row.subscriptionId,
        namespaces.size === 1 ? namespace : null,
        names.length === 0 ? null : names.join(", "),
        row.userId,
        row.query,
        row.options === undefined ? null : JSON.stringify(row.options),
        row.status,
        row.changes,
        row.lastSeq ?? null,
        row.queuedBytes,
        row.createdAtMs * 1000,
        row.lastUpdateMs === undefined ? null : row.lastUpdateMs * 1000,
        nodeId,
        row.position ?? null,
        row.lagMs ?? null,
        row.changesPerSecond,
        row.stateBytes ?? null,
      ];
    });
}

/** Returns the connections of all users, or of one user. */
function connectionRows({ connections }: LiveViewDeps, userId: string | undefined): Row[] {
  return connections()
    .rows()
    .filter((row) => userId === undefined || row.userId === userId)
    .map((row) => [
      row.connectionId,
      row.userId,
      row.role,
      row.transport,
      row.clientAddress,
      row.serialization,
      row.compression,
      row.subscriptions,
      row.bytesIn,
      row.bytesOut,
      row.queuedBytes,
      row.openedAtMs * 1000,
      row.lastSeenAtMs * 1000,
    ]);
}
