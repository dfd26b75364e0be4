/**
 * The system views of what is stored: every version of a schema, storages, uploaded files.
 */
import {
  accessLevelOf,
  type Catalog,
  type FileEntry,
  type FilesOf,
  keyNameOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  DATETIME,
  INT,
  JSON_TEXT,
  type Row,
  TEXT,
  typeName,
} from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { storageIdOf } from "../common/storage_templates.ts";
import { MANIFEST_COLUMNS, type ManifestWorld, manifestViewRows } from "./manifest_rows.ts";
import { SHOW_STORAGES_COLUMNS, type StorageListWorld, storageRows } from "./show_rows.ts";
import { ADMIN_ONLY, type ColumnList, OPEN, portionedView, view } from "./system_view.ts";

/** The views by "namespace.name". */
export function storageViews(world: ManifestWorld & StorageListWorld): [string, SystemView][] {
  const { catalog } = world;
  return [
    ["system.schemas", schemasView(catalog)],
    ["system.storages", storagesView(world)],
    ["system.manifest", manifestView(world)],
    ["system.files", portionedView(FILE_COLUMNS, () => fileRows(catalog), ADMIN_ONLY)],
    [
      "system.my_files",
      portionedView(
        FILE_COLUMNS,
        ({ userId }) => {
          const owner = catalog.ownerNumber(userId);
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
  for (const portion of catalog.filePortions(of)) yield rowsOfFiles(catalog, portion);
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
        catalog.ownerName(file.owner) ?? null,
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

/** One row for each version of each table. */
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
                table.kind.toUpperCase(),
                table.schemaVersion,
                JSON.stringify(columnsOf(table)),
                JSON.stringify(constraintsOf(table)),
                JSON.stringify(table.options),
                accessLevelOf(table) ?? null,
                storageIdOf(table.options),
                table.schemaVersion === latest.schemaVersion,
                null,
                table.createdAtMs * 1000,
                table.updatedAtMs * 1000,
              ],
            ),
        ),
    ADMIN_ONLY,
  );
}

function columnsOf({ columns }: TableEntry): object[] {
  return columns.map(({ columnId, defaultSql, name, notNull, type }) => ({
    column_id: columnId,
    name,
    data_type: typeName(type),
    nullable: !notNull,
    default_value: defaultSql ?? null,
  }));
}

function constraintsOf(table: TableEntry): object[] {
  const { checks, columns, primaryKey } = table;
  const keyColumns = primaryKey.map((id) => columns.find(({ columnId }) => columnId === id)?.name);
  const keys =
    primaryKey.length === 0
      ? []
      : [{ name: keyNameOf(table), type: "PRIMARY KEY", columns: keyColumns }];
  return [
    ...keys,
    ...checks.map((check) => ({ name: check.name, type: "CHECK", check: check.sql })),
  ];
}

/** One row for each table: the rows of all users lie in the same segments. */
function manifestView(world: ManifestWorld): SystemView {
  return view(MANIFEST_COLUMNS, () => manifestViewRows(world), ADMIN_ONLY);
}

function storagesView(world: StorageListWorld): SystemView {
  return view(
    SHOW_STORAGES_COLUMNS.map(({ name, type }) => [name, type] as const),
    () => storageRows(world, { isAdmin: true }),
    ADMIN_ONLY,
  );
}
