/** Creates the rows of SHOW and DESCRIBE from the parts of the catalog that the caller may see. */
import { isRuledFor, mayRead, mayRun, ownsNamespace, type Principal } from "../../auth/mod.ts";
import { crc32 } from "../../base/checksum.ts";
import {
  accessLevelOf,
  type Catalog,
  type ColumnEntry,
  DEFAULT_NAMESPACE,
  declaredKeyOf,
  ROOT_USER_ID,
  shownColumnsOf,
  shownKindOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  columnTypeName,
  DATETIME,
  type DataType,
  INT,
  JSON_TEXT,
  type Row,
  TEXT,
  typeName,
} from "../../types/mod.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import {
  LOCAL_STORAGE,
  SHARED_TEMPLATE,
  storageIdOf,
  USER_TEMPLATE,
} from "../names/storage_templates.ts";
import type { ShownView } from "../names/views.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { PlainColumn } from "../result/result.ts";

function columns(list: readonly (readonly [string, DataType])[]): PlainColumn[] {
  return list.map(([name, type]) => ({ name, type }));
}

export const SHOW_NAMESPACES_COLUMNS: readonly PlainColumn[] = columns([
  ["namespace_id", TEXT],
  ["name", TEXT],
  ["owner", TEXT],
  ["created_at", DATETIME],
  ["options", JSON_TEXT],
  ["table_count", BIGINT],
]);

export const SHOW_TABLES_COLUMNS: readonly PlainColumn[] = columns([
  ["table_id", TEXT],
  ["table_name", TEXT],
  ["namespace_id", TEXT],
  ["table_type", TEXT],
  ["created_at", DATETIME],
  ["schema_version", INT],
  ["table_comment", TEXT],
  ["updated_at", DATETIME],
  ["options", JSON_TEXT],
  ["access_level", TEXT],
  ["storage_id", TEXT],
]);

export const DESCRIBE_COLUMNS: readonly PlainColumn[] = columns([
  ["column_name", TEXT],
  ["ordinal_position", INT],
  ["column_id", INT],
  ["data_type", TEXT],
  ["is_nullable", BOOLEAN],
  ["is_primary_key", BOOLEAN],
  ["column_default", TEXT],
  ["column_comment", TEXT],
  ["schema_version", INT],
]);

export const SHOW_STATS_COLUMNS: readonly PlainColumn[] = columns([
  ["table_name", TEXT],
  ["namespace", TEXT],
  ["schema_version", INT],
  ["logical_rows", BIGINT],
  ["unflushed_versions", BIGINT],
  ["flushed_segments", BIGINT],
  ["bytes", BIGINT],
  ["active_subscriptions", BIGINT],
  ["memory_bytes", BIGINT],
]);

export const SHOW_STORAGES_COLUMNS: readonly PlainColumn[] = columns([
  ["storage_id", TEXT],
  ["storage_name", TEXT],
  ["description", TEXT],
  ["storage_type", TEXT],
  ["base_directory", TEXT],
  ["config", JSON_TEXT],
  ["shared_tables_template", TEXT],
  ["user_tables_template", TEXT],
  ["created_at", DATETIME],
  ["updated_at", DATETIME],
]);

/** Returns the tables that the caller may read, ordered by namespace and name. */
export function visibleTables(catalog: Catalog, principal: Principal): TableEntry[] {
  return catalog
    .tables()
    .filter((table) => mayRead(principal, table, catalog.namespace(table.namespace)));
}

export function namespaceRows(catalog: Catalog, principal: Principal): Row[] {
  const tables = visibleTables(catalog, principal);
  const countOf = (name: string): number =>
    tables.filter(({ namespace }) => namespace === name).length;
  return catalog
    .namespaces()
    .filter(
      (namespace) =>
        namespace.name === DEFAULT_NAMESPACE ||
        // Namespaces outside the token's scope are hidden.
        (mayRun(principal, "show", namespace) &&
          // A caller who may create tables in every namespace sees every namespace.
          (mayRun(principal, "defineTable") ||
            ownsNamespace(principal, namespace) ||
            countOf(namespace.name) > 0)),
    )
    .map(({ createdAtMs, name, options, owner }) => [
      name,
      name,
      owner ?? null,
      createdAtMs * 1000,
      JSON.stringify(options),
      countOf(name),
    ]);
}

export function tableRows(
  catalog: Catalog,
  {
    namespace,
    principal,
    systemNames,
    views,
  }: {
    principal: Principal;
    namespace: string | undefined;
    /** The names of the system views that the caller may read, each qualified by its namespace. */
    systemNames: readonly string[];
    views: readonly ShownView[];
  },
): Row[] {
  const tables = visibleTables(catalog, principal).map((table) => ({
    place: table,
    row: [
      String(table.tableId),
      table.name,
      table.namespace,
      shownKindOf(table),
      table.createdAtMs * 1000,
      table.schemaVersion,
      table.comment ?? null,
      table.updatedAtMs * 1000,
      JSON.stringify(table.options),
      accessLevelOf(table) ?? null,
      storageIdOf(table.options),
    ],
  }));
  const shown = views.map(({ entry }) => ({
    place: entry,
    row: [
      String(entry.viewId),
      entry.name,
      entry.namespace,
      entry.partition === undefined ? "VIEW" : "PARTITION",
      entry.createdAtMs * 1000,
      1,
      entry.comment ?? null,
      entry.updatedAtMs * 1000,
      null,
      entry.ownRights?.accessLevel ?? null,
      null,
    ],
  }));
  const system = systemTables(catalog, systemNames).map((table) => ({
    place: table,
    row: [
      table.tableId,
      table.name,
      table.namespace,
      "SYSTEM",
      table.madeAt,
      1,
      null,
      table.madeAt,
      null,
      null,
      null,
    ],
  }));
  return [...tables, ...shown, ...system]
    .filter(({ place }) => namespace === undefined || place.namespace === namespace)
    .toSorted((left, right) => compareNames(left.place, right.place))
    .map(({ row }) => row);
}

/** The fields of a system view when it is listed as a table. */
export interface SystemTable {
  readonly tableId: string;
  readonly namespace: string;
  readonly name: string;
  /** When the database was created, in microseconds since 1970. */
  readonly madeAt: number;
}

/** The lowest id of a system view. Table ids are assigned from 1 upwards and never reach it. */
const SYSTEM_ID_BASE = 2 ** 40;

/** Returns the system views with the given names as entries of a list of tables. */
export function systemTables(catalog: Catalog, names: readonly string[]): SystemTable[] {
  const madeAt = (catalog.accounts.user(ROOT_USER_ID)?.createdAtMs ?? 0) * 1000;
  return names.map((shown) => {
    const dot = shown.indexOf(".");
    return {
      // Deriving the id from the name keeps it stable when other views are added or removed.
      tableId: String(SYSTEM_ID_BASE + crc32(Buffer.from(shown))),
      namespace: shown.slice(0, dot),
      name: shown.slice(dot + 1),
      madeAt,
    };
  });
}

/** Compares two objects by namespace, then by name. */
export function compareNames(
  left: { readonly namespace: string; readonly name: string },
  right: { readonly namespace: string; readonly name: string },
): number {
  if (left.namespace !== right.namespace) return left.namespace < right.namespace ? -1 : 1;
  return left.name < right.name ? -1 : left.name > right.name ? 1 : 0;
}

/** Describes the columns of a user-defined or system view. */
export function describeViewRows(shown: { readonly columns: readonly PlainColumn[] }): Row[] {
  return shown.columns.map(({ name, type }, i) => [
    name,
    i + 1,
    i + 1,
    typeName(type),
    true,
    false,
    null,
    null,
    1,
  ]);
}

/** Returns a row for each declared column of a table, then for each system column. */
export function describeRows(table: TableEntry): Row[] {
  const declared = shownColumnsOf(table).map((column, i) => describeColumn(column, i + 1, table));
  const system: Row[] = [
    ["_seq", declared.length + 1, -1, "bigint", false, false, null, null, table.schemaVersion],
    ["_deleted", declared.length + 2, -2, "boolean", false, false, null, null, table.schemaVersion],
  ];
  return [...declared, ...(table.kind === "stream" ? system.slice(0, 1) : system)];
}

function describeColumn(column: ColumnEntry, ordinal: number, table: TableEntry): Row {
  const { columnId, comment, name, notNull } = column;
  const isKey = declaredKeyOf(table)?.columnIds.includes(columnId) === true;
  return [
    name,
    ordinal,
    columnId,
    columnTypeName(column),
    !notNull,
    isKey,
    shownDefault(column) ?? null,
    comment ?? null,
    table.schemaVersion,
  ];
}

/**
 * Returns the default of a column as it is shown to users: the expression of its DEFAULT clause,
 * or the way in which its values are generated.
 */
export function shownDefault({
  defaultSql,
  generatedSql,
  identity,
}: ColumnEntry): string | undefined {
  if (identity !== undefined) return `GENERATED ${identity.toUpperCase()} AS IDENTITY`;
  return generatedSql === undefined ? defaultSql : `GENERATED ALWAYS AS (${generatedSql}) STORED`;
}

/**
 * Returns statistics about a table. For a USER table, they cover only the caller's own rows,
 * unless the caller is an administrator. If policies restrict which rows of the table the caller
 * sees, the row counts are hidden.
 */
export function statsRow(
  { catalog, live, store }: Pick<SqlEnvironment, "catalog" | "live" | "store">,
  table: TableEntry,
  principal: Principal,
): Row {
  const stats = store.stats(table.tableId);
  const isRuled = isRuledFor(principal, table, catalog);
  const seesAll = (table.kind === "shared" && !isRuled) || mayRun(principal, "inspect");
  const owner = seesAll ? undefined : ownerOf(principal, table);
  const flushed = store.flushedStats(table.tableId, owner);
  const subscriptions = live()
    .rows()
    .filter(
      ({ tableIds, userId }) =>
        tableIds.includes(table.tableId) && (seesAll || userId === principal.userId),
    );
  return [
    table.name,
    table.namespace,
    table.schemaVersion,
    // The count is unknown if a segment with current rows is quarantined; SHOW MANIFEST and
    // system.segments show that segment. History segments contain no live rows.
    flushed.isCountable && !isRuled ? store.liveRowCount(table.tableId, owner) : null,
    isRuled ? null : flushed.unflushedVersions,
    isRuled ? null : flushed.segments,
    seesAll ? stats.bytes : null,
    subscriptions.length,
    seesAll ? stats.memoryBytes : null,
  ];
}

/** The parts of the database needed to list storages. */
export type StorageListDeps = Pick<SqlEnvironment, "catalog" | "settings">;

/**
 * Returns `local`, which every database has and which cannot be altered, followed by all other
 * storages.
 *
 * @param isAdmin Whether the caller may see the storages' paths.
 */
export function storageRows(
  { catalog, settings }: StorageListDeps,
  { isAdmin }: { isAdmin: boolean },
): Row[] {
  const path = settings().find(({ name }) => name === "storage.data_path")?.value;
  const madeAtMs = catalog.accounts.user(ROOT_USER_ID)?.createdAtMs ?? 0;
  const local = {
    storageId: LOCAL_STORAGE,
    name: LOCAL_STORAGE,
    description: "The data directory of this server",
    root: path,
    sharedTemplate: SHARED_TEMPLATE,
    userTemplate: USER_TEMPLATE,
    createdAtMs: madeAtMs,
    updatedAtMs: madeAtMs,
  };
  return [local, ...catalog.storages.all()].map((storage) => [
    storage.storageId,
    storage.name,
    storage.description ?? null,
    "filesystem",
    isAdmin && storage.root !== undefined ? storage.root : null,
    null,
    storage.sharedTemplate,
    storage.userTemplate,
    storage.createdAtMs * 1000,
    storage.updatedAtMs * 1000,
  ]);
}
