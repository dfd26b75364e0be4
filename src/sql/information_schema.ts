/**
 * The views of information_schema: what PostgreSQL tools ask, of the tables that the caller may read.
 */
import type { Principal } from "../auth/mod.ts";
import type { ColumnEntry, TableEntry } from "../catalog/mod.ts";
import { BIGINT, BOOLEAN, type DataType, INT, type Row, TEXT, typeName } from "../types/mod.ts";
import type { SystemCall } from "./bind/bound.ts";
import type { SystemView } from "./bind/select_context.ts";
import type { SqlEnvironment } from "./environment.ts";
import { visibleTables } from "./show.ts";
import { OPEN, view } from "./view.ts";

/** The views by "namespace.name". */
export function informationSchema(environment: SqlEnvironment): [string, SystemView][] {
  return [
    [
      "information_schema.tables",
      view(
        [
          ["table_catalog", TEXT],
          ["table_schema", TEXT],
          ["table_name", TEXT],
          ["table_type", TEXT],
          ["is_insertable_into", TEXT],
        ],
        (call) =>
          tablesSeenBy(environment, call).map(({ name, namespace }) => [
            "tidemark",
            namespace,
            name,
            "BASE TABLE",
            "YES",
          ]),
        OPEN,
      ),
    ],
    ["information_schema.columns", columnsOfSchema(environment)],
  ];
}

function columnsOfSchema(environment: SqlEnvironment): SystemView {
  return view(
    [
      ["table_catalog", TEXT],
      ["table_schema", TEXT],
      ["table_name", TEXT],
      ["column_name", TEXT],
      ["ordinal_position", INT],
      ["column_default", TEXT],
      ["is_nullable", TEXT],
      ["data_type", TEXT],
      ["character_maximum_length", INT],
      ["numeric_precision", INT],
      ["numeric_scale", INT],
      ["datetime_precision", INT],
      ["udt_name", TEXT],
      ["is_identity", TEXT],
    ],
    (call) =>
      tablesSeenBy(environment, call).flatMap((table) =>
        [...table.columns, ...systemColumnsOf(table)].map((column, i) =>
          columnRow(table, column, i + 1),
        ),
      ),
    OPEN,
  );
}

type ShownColumn = Pick<
  ColumnEntry,
  "name" | "type" | "notNull" | "generatedAlways" | "defaultSql"
>;

function systemColumnsOf({ kind }: TableEntry): ShownColumn[] {
  const seq = { name: "_seq", type: BIGINT, notNull: true, generatedAlways: false };
  const deleted = { name: "_deleted", type: BOOLEAN, notNull: true, generatedAlways: false };
  return kind === "stream" ? [seq] : [seq, deleted];
}

function columnRow(
  { name: tableName, namespace }: TableEntry,
  { defaultSql, generatedAlways, name, notNull, type }: ShownColumn,
  ordinal: number,
): Row {
  const [precision, scale] = numericShape(type);
  const isTime = ["timestamp", "datetime", "time"].includes(type.kind);
  return [
    "tidemark",
    namespace,
    tableName,
    name,
    ordinal,
    defaultSql ?? null,
    notNull ? "NO" : "YES",
    typeName(type).replace(/\(.*\)$/, ""),
    type.kind === "text" ? (type.lengthMax ?? null) : null,
    precision,
    scale,
    isTime ? 6 : null,
    type.kind,
    generatedAlways ? "YES" : "NO",
  ];
}

function numericShape(type: DataType): [number | null, number | null] {
  switch (type.kind) {
    case "decimal":
      return [type.precision, type.scale];
    case "smallint":
      return [16, 0];
    case "int":
      return [32, 0];
    case "bigint":
      return [64, 0];
    case "float":
      return [24, null];
    case "double":
      return [53, null];
    default:
      return [null, null];
  }
}

function tablesSeenBy(
  environment: SqlEnvironment,
  { isImpersonated, role, userId }: SystemCall,
): TableEntry[] {
  const principal: Principal = {
    userId,
    role,
    owner: undefined,
    actorId: userId,
    actorRole: role,
    isImpersonated,
    sessionId: "",
  };
  return visibleTables(environment, principal);
}
