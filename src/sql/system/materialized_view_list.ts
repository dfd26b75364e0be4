/**
 * Defines `system.materialized_views`, which lists the materialized views that the caller may see.
 * A view's query is shown only to the owner of its namespace and to users with role `dba` or
 * higher.
 */
import { mayRun, ownsNamespace, type Principal } from "../../auth/mod.ts";
import { accessLevelOf, type Catalog, type TableEntry } from "../../catalog/mod.ts";
import { BOOLEAN, DATETIME, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { visibleTables } from "./show_rows.ts";
import { type ColumnList, microsOf, OPEN, principalOf, view } from "./system_view.ts";

const COLUMNS: ColumnList = [
  ["namespace_id", TEXT],
  ["view_name", TEXT],
  ["access_level", TEXT],
  ["is_populated", BOOLEAN],
  ["definition", TEXT],
  ["created_by", TEXT],
  ["created_at", DATETIME],
];

/** Returns the view with its name, "namespace.name". */
export function materializedViewList({
  catalog,
}: {
  readonly catalog: Catalog;
}): [string, SystemView][] {
  const rows = view(
    COLUMNS,
    (call) => {
      const principal = principalOf(call);
      return visibleTables(catalog, principal).flatMap((table) =>
        rowOf(table, { catalog, principal }),
      );
    },
    OPEN,
  );
  return [["system.materialized_views", rows]];
}

function rowOf(
  table: TableEntry,
  { catalog, principal }: { readonly catalog: Catalog; readonly principal: Principal },
): Row[] {
  const { createdAtMs, createdBy, materialized, name, namespace } = table;
  if (materialized === undefined) return [];
  const maySee =
    mayRun(principal, "inspect") || ownsNamespace(principal, catalog.namespace(namespace));
  const definition = maySee ? catalog.viewById(materialized.queryId)?.sql : undefined;
  return [
    [
      namespace,
      name,
      accessLevelOf(table) ?? null,
      materialized.isPopulated,
      definition ?? null,
      createdBy,
      microsOf(createdAtMs),
    ],
  ];
}
