/** The system views about stored data: schema versions, storages, and uploaded files. */
import {
  accessLevelOf,
  type Catalog,
  declaredKeyOf,
  type FileEntry,
  type FilesOf,
  shownColumnsOf,
  shownKindOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  columnTypeName,
  DATETIME,
  INT,
  JSON_TEXT,
  type Row,
  TEXT,
} from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { storageIdOf } from "../names/storage_templates.ts";
import { MANIFEST_COLUMNS, type ManifestDeps, manifestViewRows } from "./manifest_rows.ts";
import {
  SHOW_STORAGES_COLUMNS,
  type StorageListDeps,
  shownDefault,
  storageRows,
} from "./show_rows.ts";
import { ADMIN_ONLY, type ColumnList, OPEN, portionedView, view } from "./system_view.ts";

/** Returns the views with their names, "namespace.name". */
export function storageViews(deps: ManifestDeps & StorageListDeps): [string, SystemView][] {
  const { catalog } = deps;
  return [
    ["system.schemas", schemasView(catalog)],
    ["system.storages", storagesView(deps)],
    ["system.manifest", manifestView(deps)],
    ["system.files", portionedView(FILE_COLUMNS, () => fileRows(catalog), ADMIN_ONLY)],
    [
      "system.my_files",
      portionedView(
        FILE_COLUMNS,
        ({ userId }) => {
          const owner = catalog.accounts.ownerNumber(userId);
          return owner === undefined ? [] : fileRows(catalog, { owner });
        },
        OPEN,
      ),
    ],
  ];
}

const FILE_COLUMNS: ColumnList = [
  ["file_id", TEXT],
  ["namespace_id", TEXT],
  ["table_name", TEXT],
  ["column_name", TEXT],
  ["user_id", TEXT],
  ["sub", TEXT],
  ["stored_name", TEXT],
  ["name", TEXT],
  ["mime", TEXT],
  ["size", BIGINT],
  ["sha256", TEXT],
  ["created_at", DATETIME],
];

function* fileRows(catalog: Catalog, of?: FilesOf): Generator<readonly Row[]> {
  for (const portion of catalog.files.portions(of)) yield rowsOfFiles(catalog, portion);
}

function rowsOfFiles(catalog: Catalog, files: readonly FileEntry[]): Row[] {
  return files.flatMap((file): Row[] => {
    const table = catalog.tableById(file.tableId);
    if (table === undefined) return [];
    const column = table.columns.find(({ columnId }) => columnId === file.columnId);
    return [
      [
        file.fileId,
        table.namespace,
        table.name,
        column?.name ?? null,
        catalog.accounts.ownerName(file.owner) ?? null,
        file.sub,
        file.storedName,
        file.name,
        file.mime,
        file.size,
        file.sha256,
        file.createdAtMs * 1000,
      ],
    ];
  });
}

/** Returns a view with one row for each schema version of each table. */
function schemasView(catalog: Catalog): SystemView {
  return view(
    [
      ["table_id", TEXT],
      ["table_name", TEXT],
      ["namespace_id", TEXT],
      ["table_type", TEXT],
      ["schema_version", INT],
      ["columns", JSON_TEXT],
      ["constraints", JSON_TEXT],
      ["options", JSON_TEXT],
      ["access_level", TEXT],
      ["storage_id", TEXT],
      ["is_latest", BOOLEAN],
      ["table_comment", TEXT],
      ["created_at", DATETIME],
      ["updated_at", DATETIME],
    ],
    () =>
      catalog
        .tables()
        .flatMap((latest) =>
          catalog
            .tableVersions(latest.tableId)
            .map(
              (table): Row => [
                String(table.tableId),
                table.name,
                table.namespace,
                shownKindOf(table),
                table.schemaVersion,
                JSON.stringify(columnsOf(table)),
                JSON.stringify(constraintsOf(table)),
                JSON.stringify(table.options),
                accessLevelOf(table) ?? null,
                storageIdOf(table.options),
                table.schemaVersion === latest.schemaVersion,
                table.comment ?? null,
                table.createdAtMs * 1000,
                table.updatedAtMs * 1000,
              ],
            ),
        ),
    ADMIN_ONLY,
  );
}

function columnsOf(table: TableEntry): object[] {
  return shownColumnsOf(table).map((column) => ({
    column_id: column.columnId,
    name: column.name,
    data_type: columnTypeName(column),
    nullable: !column.notNull,
    default_value: shownDefault(column) ?? null,
    comment: column.comment,
  }));
}

function constraintsOf(table: TableEntry): object[] {
  const { checks, columns, foreignKeys } = table;
  const key = declaredKeyOf(table);
  const unique = (table.indexes ?? []).filter((each) => each.isConstraint && each !== key);
  return [
    ...(key === undefined ? unique : [key, ...unique]).map((each) => ({
      name: each.name,
      type: each === key ? "PRIMARY KEY" : "UNIQUE",
      nulls_distinct: "equalNulls" in each ? false : undefined,
      columns: each.columnIds.map((id) => columns.find(({ columnId }) => columnId === id)?.name),
      comment: each.comment,
    })),
    ...checks.map(({ comment, name, sql }) => ({ name, type: "CHECK", check: sql, comment })),
    ...(foreignKeys ?? []).map(({ comment, name, columnIds, isValidated, onDelete, tableId }) => ({
      name,
      type: "FOREIGN KEY",
      columns: columnIds.map((id) => columns.find(({ columnId }) => columnId === id)?.name),
      referenced_table_id: tableId,
      on_delete: onDelete.toUpperCase(),
      validated: isValidated,
      comment,
    })),
  ];
}

/**
 * Creates the manifest view, which has one row per table. It has no rows per user, because the
 * rows of all users share the same segments.
 */
function manifestView(deps: ManifestDeps): SystemView {
  return view(MANIFEST_COLUMNS, () => manifestViewRows(deps), ADMIN_ONLY);
}

function storagesView(deps: StorageListDeps): SystemView {
  return view(
    SHOW_STORAGES_COLUMNS.map(({ name, type }) => [name, type] as const),
    () => storageRows(deps, { isAdmin: true }),
    ADMIN_ONLY,
  );
}
