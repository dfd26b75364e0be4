/**
 * SHOW and DESCRIBE: what there is, as far as the caller may know of it.
 */
import { mayRun, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { TEXT } from "../../types/mod.ts";
import type { StatementResult } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import type { ShownSetting } from "../common/layers_above.ts";
import { type PlainColumn, rowsResult } from "../common/result.ts";
import type { ShowStatement } from "../common/statement_kinds.ts";
import { findNamespace, findTable, visibleView } from "../common/table_names.ts";
import { type ShownView, visibleViews } from "../common/views.ts";
import type { QName, ShowSimpleStatement, ShowVariableStatement } from "../parse/ast/ast.ts";
import type { NameWorld } from "../prepare/binding_world.ts";
import {
  type ManifestWorld,
  manifestRows,
  SHOW_MANIFEST_COLUMNS,
} from "../system/manifest_rows.ts";
import {
  DESCRIBE_COLUMNS,
  describeRows,
  describeViewRows,
  namespaceRows,
  SHOW_NAMESPACES_COLUMNS,
  SHOW_STATS_COLUMNS,
  SHOW_STORAGES_COLUMNS,
  SHOW_TABLES_COLUMNS,
  type StorageListWorld,
  statsRow,
  storageRows,
  tableRows,
} from "../system/show_rows.ts";
import { isSystemViews } from "../system/system_views.ts";

/** What these statements show. */
export interface ShowWorld
  extends NameWorld,
    ManifestWorld,
    StorageListWorld,
    Pick<SqlEnvironment, "live" | "settings"> {}

interface ShowCall {
  readonly principal: Principal;
  readonly namespace: string;
  /** What SET changes. */
  readonly requestSettings: readonly ShownSetting[];
}

const SETTING_COLUMNS: readonly PlainColumn[] = ["name", "value", "description", "category"].map(
  (name) => ({ name, type: TEXT }),
);

/** @throws {DatabaseError} For what is not there, or is not the caller's to see. */
export function show(
  world: ShowWorld,
  node: ShowStatement,
  { namespace, principal, requestSettings }: ShowCall,
): StatementResult {
  const { catalog, settings, systemViews } = world;
  const asUser = principal.userId;
  switch (node.type) {
    case "show namespaces":
      return rowsResult(SHOW_NAMESPACES_COLUMNS, namespaceRows(catalog, principal), asUser);
    case "show tables": {
      const within = node.namespace?.name;
      if (node.namespace !== undefined && !isSystemViews(node.namespace.name)) {
        findNamespace(catalog, node.namespace.name, node.namespace);
      }
      const views = visibleViews(catalog, principal, systemViews.find);
      const systemNames = systemViews.namesFor(principal);
      const rows = tableRows(catalog, { principal, namespace: within, systemNames, views });
      return rowsResult(SHOW_TABLES_COLUMNS, rows, asUser);
    }
    case "show columns":
    case "describe": {
      const system = systemViews.findFor(node.table, { namespace, principal });
      if (system !== undefined) {
        return rowsResult(DESCRIBE_COLUMNS, describeViewRows(system), asUser);
      }
      const view = shownView(world, node.table, { namespace, principal });
      if (view !== undefined) {
        return rowsResult(DESCRIBE_COLUMNS, describeViewRows(view), asUser);
      }
      const table = findTable(world, node.table, { namespace, node: node.table, principal });
      const versions =
        node.type === "describe" && node.history === true
          ? catalog.tableVersions(table.tableId)
          : [table];
      return rowsResult(DESCRIBE_COLUMNS, versions.flatMap(describeRows), asUser);
    }
    case "show stats": {
      const action = "show stats of";
      systemViews.refuse(node.table, { namespace, principal, action });
      const table = findTable(world, node.table, { namespace, node: node.table, principal });
      return rowsResult(SHOW_STATS_COLUMNS, [statsRow(world, table, principal)], asUser);
    }
    case "show manifest":
      return rowsResult(SHOW_MANIFEST_COLUMNS, manifestRows(world, principal), asUser);
    case "show storages": {
      const rows = storageRows(world, { isAdmin: mayRun(principal, "inspect") });
      return rowsResult(SHOW_STORAGES_COLUMNS, rows, asUser);
    }
    case "show all":
    case "show":
      return settingsOf(node, [...settings(), ...requestSettings], asUser);
  }
}

function settingsOf(
  node: ShowVariableStatement | ShowSimpleStatement,
  settings: readonly ShownSetting[],
  asUser: string,
): StatementResult {
  const wanted = node.type === "show" ? node.variable.name.toLowerCase() : undefined;
  const found = settings.filter(({ name }) => wanted === undefined || name === wanted);
  if (found.length === 0) {
    throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find setting "${wanted ?? ""}"`, {
      position: node._location.start,
      hint: "SHOW ALL lists them",
    });
  }
  const rows = found.map(({ category, description, name, value }) => [
    name,
    value,
    description,
    category,
  ]);
  return rowsResult(SETTING_COLUMNS, rows, asUser);
}

/** @throws {DatabaseError} PERMISSION_DENIED for a view that only other roles may read. */
function shownView(
  world: NameWorld,
  name: QName,
  { namespace, principal }: { namespace: string; principal: Principal },
): ShownView | undefined {
  const { catalog, systemViews } = world;
  const named = { namespace: name.schema ?? namespace, name: name.name };
  const entry = visibleView(world, named, principal);
  if (entry === undefined) return undefined;
  const views = visibleViews(catalog, principal, systemViews.find);
  const view = views.find((each) => each.entry === entry);
  if (view !== undefined) return view;
  throw new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot describe view ${entry.namespace}.${entry.name}: it is not readable`,
    { position: name._location.start },
  );
}
