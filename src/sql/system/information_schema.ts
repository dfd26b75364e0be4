/**
 * The information_schema views that PostgreSQL tools read. They list the objects that the caller
 * may read.
 */
import { mayRead, mayRun, ownsNamespace, type Principal } from "../../auth/mod.ts";
import {
  type Catalog,
  type ColumnEntry,
  declaredKeyOf,
  type ForeignKeyEntry,
  type IndexEntry,
  shownColumnsOf,
  type TableEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  definedNameOf,
  INT,
  type Row,
  TEXT,
  typeName,
  type Value,
} from "../../types/mod.ts";
import type { SystemCall, SystemView } from "../bind/bound.ts";
import { replacesChange } from "../bind/change/triggered_view.ts";
import { withPartitionTables } from "../names/partition_tables.ts";
import { isPartition } from "../names/partitions.ts";
import { isViewInForce, type ShownView, type ViewDeps, visibleViews } from "../names/views.ts";
import { routinesOfSchema } from "./function_views.ts";
import { sequencesOfSchema } from "./sequence_views.ts";
import { compareNames, namespaceRows, visibleTables } from "./show_rows.ts";
import { OPEN, portionedView, principalOf, view } from "./system_view.ts";
import { triggersOfSchema } from "./trigger_views.ts";

const CATALOG = "tidemark";

/**
 * The number of rows per portion, for views with many rows. Creating a portion takes about a
 * millisecond.
 */
const PORTION_ROWS = 1024;

/** The owner of objects that no user created. */
const SYSTEM_OWNER = "system";

/**
 * Returns the views with their names, "namespace.name".
 *
 * @param systemViews All system views, including the returned views by the time a query reads
 *   them.
 */
export function informationSchema(
  catalog: Catalog,
  systemViews: ReadonlyMap<string, SystemView>,
): [string, SystemView][] {
  const deps: SchemaViewDeps = { catalog, systemViews };
  const views: readonly (readonly [string, SystemView])[] = [
    ["schemata", schemata(deps)],
    ["tables", tables(deps)],
    ["columns", columnsOfSchema(deps)],
    ["views", viewsOfSchema(deps)],
    ["table_constraints", tableConstraints(deps)],
    ["key_column_usage", keyColumnUsage(deps)],
    ["check_constraints", checkConstraints(deps)],
    ["referential_constraints", referentialConstraints(deps)],
    ["constraint_column_usage", constraintColumnUsage(deps)],
    ["sequences", sequencesOfSchema(catalog, CATALOG)],
    ["routines", routinesOfSchema(catalog, CATALOG)],
    [
      "triggers",
      triggersOfSchema(catalog, CATALOG, (principal) =>
        viewsSeenBy(deps, principal).map(({ entry }) => entry),
      ),
    ],
  ];
  return views.map(([name, each]) => [`information_schema.${name}`, each]);
}

interface SchemaViewDeps {
  readonly catalog: Catalog;
  readonly systemViews: ReadonlyMap<string, SystemView>;
}

/** A table or view, as shown to the caller. */
interface Relation {
  readonly namespace: string;
  readonly name: string;
  readonly type: "BASE TABLE" | "MATERIALIZED VIEW" | "VIEW" | "SYSTEM VIEW";
  /** Whether INSERT, UPDATE and DELETE accept the table or view. */
  readonly isWritten: boolean;
  readonly columns: readonly ShownColumn[];
}

interface ShownColumn
  extends Pick<
    ColumnEntry,
    | "defaultSql"
    | "domain"
    | "generatedAlways"
    | "generatedSql"
    | "identity"
    | "name"
    | "notNull"
    | "type"
  > {
  /** Whether statements may write to the table or view. */
  readonly isWritten?: boolean;
}

function relationsSeenBy(deps: SchemaViewDeps, call: SystemCall): Relation[] {
  const { catalog, systemViews } = deps;
  const principal = principalOf(call);
  const stored = visibleTables(catalog, principal).map(relationOf);
  const views = viewsSeenBy(deps, principal).map(({ columns, entry, written }): Relation => {
    const names = written();
    const table = entry.partition && catalog.tableById(entry.partition.tableId);
    return {
      namespace: entry.namespace,
      name: entry.name,
      type: table === undefined ? "VIEW" : "BASE TABLE",
      isWritten: names.size > 0,
      columns: columns.map((column) => ({
        ...(table?.columns.find(({ name }) => name === column.name) ?? plainColumn(column)),
        isWritten: names.has(column.name),
        ...defaultIn(entry, column.name),
      })),
    };
  });
  const system = [...systemViews].flatMap(([name, each]): Relation[] => {
    if (!each.isOpen && !mayRun(principal, "inspect")) return [];
    const dot = name.indexOf(".");
    return [
      {
        namespace: name.slice(0, dot),
        name: name.slice(dot + 1),
        type: "SYSTEM VIEW",
        isWritten: false,
        columns: each.columns.map(plainColumn),
      },
    ];
  });
  return [...stored, ...views, ...system].toSorted(compareNames);
}

function relationOf(table: TableEntry): Relation {
  const isWritten = table.materialized === undefined;
  const columns = shownColumnsOf(table).map((column) =>
    isWritten ? writtenColumn(column) : column,
  );
  return {
    namespace: table.namespace,
    name: table.name,
    type: isWritten ? "BASE TABLE" : "MATERIALIZED VIEW",
    isWritten,
    columns: [...columns, ...systemColumnsOf(table)],
  };
}

function viewsSeenBy(deps: SchemaViewDeps, principal: Principal): ShownView[] {
  return visibleViews(deps.catalog, principal, findSystemView(deps));
}

function findSystemView({ systemViews }: SchemaViewDeps): ViewDeps["systemView"] {
  return (namespace, name) => systemViews.get(`${namespace}.${name}`);
}

/** Returns the DEFAULT that a view sets for a column. */
function defaultIn({ defaults = [] }: ViewEntry, column: string): Pick<ShownColumn, "defaultSql"> {
  const own = defaults.find((each) => each.column === column);
  return own === undefined ? {} : { defaultSql: own.sql };
}

function writtenColumn(column: ColumnEntry): ShownColumn {
  return { ...column, isWritten: true };
}

function plainColumn({ name, type }: { name: string; type: DataType }): ShownColumn {
  return { name, type, notNull: false, generatedAlways: false };
}

function yesOrNo(is: boolean): string {
  return is ? "YES" : "NO";
}

function schemata({ catalog }: SchemaViewDeps): SystemView {
  return view(
    [
      ["catalog_name", TEXT],
      ["schema_name", TEXT],
      ["schema_owner", TEXT],
    ],
    (call) => {
      const own = namespaceRows(catalog, principalOf(call)).map(
        ([name = null, , owner = null]): Row => [CATALOG, name, owner ?? SYSTEM_OWNER],
      );
      const system = ["information_schema", "system"].map((name): Row => {
        return [CATALOG, name, SYSTEM_OWNER];
      });
      return [...own, ...system];
    },
    OPEN,
  );
}

function tables(deps: SchemaViewDeps): SystemView {
  return view(
    [
      ["table_catalog", TEXT],
      ["table_schema", TEXT],
      ["table_name", TEXT],
      ["table_type", TEXT],
      ["is_insertable_into", TEXT],
    ],
    (call) =>
      relationsSeenBy(deps, call).map(({ isWritten, name, namespace, type }) => [
        CATALOG,
        namespace,
        name,
        type,
        yesOrNo(isWritten),
      ]),
    OPEN,
  );
}

function columnsOfSchema(deps: SchemaViewDeps): SystemView {
  return portionedView(
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
      ["numeric_precision_radix", INT],
      ["numeric_scale", INT],
      ["datetime_precision", INT],
      ["domain_schema", TEXT],
      ["domain_name", TEXT],
      ["udt_catalog", TEXT],
      ["udt_schema", TEXT],
      ["udt_name", TEXT],
      ["is_identity", TEXT],
      ["identity_generation", TEXT],
      ["is_generated", TEXT],
      ["generation_expression", TEXT],
      ["is_updatable", TEXT],
    ],
    (call) => columnRows(relationsSeenBy(deps, call)),
    OPEN,
  );
}

/**
 * Yields the columns of tables in portions, because there may be thousands of tables and a single
 * tick is too short for all of their columns.
 */
function* columnRows(relations: readonly Relation[]): Generator<readonly Row[]> {
  let rows: Row[] = [];
  for (const relation of relations) {
    for (const [i, column] of relation.columns.entries()) {
      rows.push(columnRow(relation, column, i + 1));
      if (rows.length < PORTION_ROWS) continue;
      yield rows;
      rows = [];
    }
  }
  yield rows;
}

/**
 * Returns the view information_schema.views. The definitions and owners of views are shown only to
 * users who may define views.
 */
function viewsOfSchema(deps: SchemaViewDeps): SystemView {
  const { catalog } = deps;
  return view(
    [
      ["table_catalog", TEXT],
      ["table_schema", TEXT],
      ["table_name", TEXT],
      ["view_definition", TEXT],
      ["check_option", TEXT],
      ["is_updatable", TEXT],
      ["is_insertable_into", TEXT],
      ["is_trigger_updatable", TEXT],
      ["is_trigger_deletable", TEXT],
      ["is_trigger_insertable_into", TEXT],
      ["security_invoker", BOOLEAN],
      ["access_level", TEXT],
      ["view_owner", TEXT],
      ["is_in_force", BOOLEAN],
    ],
    (call) => {
      const principal = principalOf(call);
      const views = viewsSeenBy(deps, principal).filter(({ entry }) => !isPartition(entry));
      return views.map(({ entry, written }) => {
        const { checkOption = "none", name, namespace, ownRights, sql } = entry;
        const holder = catalog.namespace(namespace);
        const isShown = mayRun(principal, "inspect") || ownsNamespace(principal, holder);
        const isInForce = isViewInForce(entry, catalog, findSystemView(deps));
        const isWritten = yesOrNo(written().size > 0);
        return [
          CATALOG,
          namespace,
          name,
          isShown ? sql : null,
          checkOption.toUpperCase(),
          isWritten,
          isWritten,
          yesOrNo(replacesChange(entry, "update")),
          yesOrNo(replacesChange(entry, "delete")),
          yesOrNo(replacesChange(entry, "insert")),
          ownRights === undefined,
          ownRights?.accessLevel ?? null,
          isShown ? (ownRights?.owner ?? null) : null,
          isInForce,
        ];
      });
    },
    OPEN,
  );
}

const CONSTRAINT_COLUMNS = [
  ["constraint_schema", TEXT],
  ["constraint_name", TEXT],
  ["table_schema", TEXT],
  ["table_name", TEXT],
] as const;

function constraintRow(
  { name, namespace }: TableEntry,
  constraint: string,
  ...more: readonly Value[]
): Row {
  return [namespace, constraint, namespace, name, ...more];
}

/** Returns the primary key of a table as a list, which is empty if the table has none. */
function keyOf(table: TableEntry): readonly Pick<IndexEntry, "columnIds" | "name">[] {
  const key = declaredKeyOf(table);
  return key === undefined ? [] : [key];
}

/**
 * Returns the UNIQUE constraints in force. EXCLUDE constraints are not part of the information
 * schema.
 */
function uniqueOf({ indexes = [] }: TableEntry): readonly IndexEntry[] {
  return indexes.filter(
    ({ isConstraint, isPrimary, isUnique, state }) =>
      isConstraint && isUnique && isPrimary !== true && state === "ready",
  );
}

function tableConstraints({ catalog }: SchemaViewDeps): SystemView {
  return view(
    [
      ...CONSTRAINT_COLUMNS,
      ["constraint_type", TEXT],
      ["is_deferrable", TEXT],
      ["initially_deferred", TEXT],
      ["enforced", TEXT],
      ["nulls_distinct", TEXT],
    ],
    (call) => visibleConstrained(catalog, call).flatMap(constraintsOf),
    OPEN,
  );
}

/** Returns the tables and partitions whose constraints the caller may see. */
function visibleConstrained(
  catalog: Catalog,
  call: Parameters<typeof principalOf>[0],
): readonly TableEntry[] {
  return visibleTables(catalog, principalOf(call)).flatMap((table) =>
    withPartitionTables(table, catalog),
  );
}

function constraintsOf(table: TableEntry): Row[] {
  const row = (
    name: string,
    type: string,
    { nulls = null, timing = ["NO", "NO"] }: { nulls?: string | null; timing?: string[] } = {},
  ): Row => constraintRow(table, name, type, ...timing, "YES", nulls);
  return [
    ...keyOf(table).map(({ name }) => row(name, "PRIMARY KEY")),
    ...uniqueOf(table).map(({ equalNulls, name }) =>
      row(name, "UNIQUE", { nulls: equalNulls === true ? "NO" : "YES" }),
    ),
    ...table.checks.map(({ name }) => row(name, "CHECK")),
    ...(table.foreignKeys ?? []).map((key) =>
      row(key.name, "FOREIGN KEY", { timing: timingOf(key) }),
    ),
  ];
}

function keyColumnUsage({ catalog }: SchemaViewDeps): SystemView {
  return view(
    [
      ...CONSTRAINT_COLUMNS,
      ["column_name", TEXT],
      ["ordinal_position", INT],
      ["position_in_unique_constraint", INT],
    ],
    (call) =>
      visibleConstrained(catalog, call).flatMap((table): Row[] =>
        [
          ...[...keyOf(table), ...uniqueOf(table)].map(({ columnIds, name }) => ({
            name,
            columnIds,
            order: [],
          })),
          ...(table.foreignKeys ?? []).map(({ columnIds, name, referencedIds, tableId }) => {
            const parent = catalog.tableById(tableId);
            const order = parent && referencedOf(parent, referencedIds)?.columnIds;
            return {
              name,
              columnIds,
              order: referencedIds.map((id) => (order?.indexOf(id) ?? -1) + 1),
            };
          }),
        ].flatMap(({ columnIds, name, order }) =>
          columnIds.map((columnId, i) => {
            const column = table.columns.find((each) => each.columnId === columnId);
            return constraintRow(table, name, column?.name ?? null, i + 1, order[i] ?? null);
          }),
        ),
      ),
    OPEN,
  );
}

/** Returns the primary key or unique index that consists of the given columns. */
function referencedOf(
  table: TableEntry,
  ids: readonly number[],
): Pick<IndexEntry, "columnIds" | "name"> | undefined {
  const unique = (table.indexes ?? []).filter(
    ({ isUnique, where }) => isUnique && where === undefined,
  );
  return [...keyOf(table), ...unique].find(
    ({ columnIds }) => columnIds.length === ids.length && columnIds.every((id) => ids.includes(id)),
  );
}

function timingOf({ isDeferrable, isDeferred }: ForeignKeyEntry): [string, string] {
  return [isDeferrable ? "YES" : "NO", isDeferred ? "YES" : "NO"];
}

/** Returns the table to which a foreign key refers, if the caller may read it. */
function visibleParent(
  catalog: Catalog,
  principal: Principal,
  { tableId }: ForeignKeyEntry,
): TableEntry | undefined {
  const table = catalog.tableById(tableId);
  if (table === undefined) return undefined;
  return mayRead(principal, table, catalog.namespace(table.namespace)) ? table : undefined;
}

function referentialConstraints({ catalog }: SchemaViewDeps): SystemView {
  return view(
    [
      ["constraint_catalog", TEXT],
      ["constraint_schema", TEXT],
      ["constraint_name", TEXT],
      ["unique_constraint_catalog", TEXT],
      ["unique_constraint_schema", TEXT],
      ["unique_constraint_name", TEXT],
      ["match_option", TEXT],
      ["update_rule", TEXT],
      ["delete_rule", TEXT],
    ],
    (call) => {
      const principal = principalOf(call);
      return visibleTables(catalog, principal).flatMap((table): Row[] =>
        (table.foreignKeys ?? []).map((key) => {
          const parent = visibleParent(catalog, principal, key);
          return [
            CATALOG,
            table.namespace,
            key.name,
            CATALOG,
            parent?.namespace ?? null,
            (parent && referencedOf(parent, key.referencedIds)?.name) ?? null,
            key.isFull ? "FULL" : "NONE",
            key.onUpdate.toUpperCase(),
            key.onDelete.toUpperCase(),
          ];
        }),
      );
    },
    OPEN,
  );
}

/**
 * Creates the view of the columns to which constraints refer. A primary key or UNIQUE constraint
 * refers to its own columns.
 */
function constraintColumnUsage({ catalog }: SchemaViewDeps): SystemView {
  return view(
    [
      ["table_schema", TEXT],
      ["table_name", TEXT],
      ["column_name", TEXT],
      ["constraint_schema", TEXT],
      ["constraint_name", TEXT],
    ],
    (call) => {
      const principal = principalOf(call);
      return visibleTables(catalog, principal).flatMap((table): Row[] => {
        const used = (of: TableEntry, ids: readonly number[], name: string): Row[] =>
          of.columns
            .filter(({ columnId }) => ids.includes(columnId))
            .map((column) => [of.namespace, of.name, column.name, table.namespace, name]);
        const own = keyOf(table).flatMap(({ columnIds, name }) => used(table, columnIds, name));
        const foreign = (table.foreignKeys ?? []).flatMap((key) => {
          const parent = visibleParent(catalog, principal, key);
          return parent === undefined ? [] : used(parent, key.referencedIds, key.name);
        });
        return own.concat(foreign);
      });
    },
    OPEN,
  );
}

function checkConstraints({ catalog }: SchemaViewDeps): SystemView {
  return view(
    [...CONSTRAINT_COLUMNS, ["check_clause", TEXT]],
    (call) =>
      visibleConstrained(catalog, call).flatMap((table): Row[] =>
        table.checks.map(({ name, sql }) => constraintRow(table, name, sql)),
      ),
    OPEN,
  );
}
function systemColumnsOf({ kind }: TableEntry): ShownColumn[] {
  const seq = { name: "_seq", type: BIGINT, notNull: true, generatedAlways: false };
  const deleted = { name: "_deleted", type: BOOLEAN, notNull: true, generatedAlways: false };
  return kind === "stream" ? [seq] : [seq, deleted];
}

function columnRow(
  { name: tableName, namespace }: Relation,
  column: ShownColumn,
  ordinal: number,
): Row {
  const { defaultSql, domain, generatedSql, isWritten = false, name, notNull, type } = column;
  const identity = identityOf(column);
  return [
    CATALOG,
    namespace,
    tableName,
    name,
    ordinal,
    identity === undefined ? (defaultSql ?? null) : null,
    notNull ? "NO" : "YES",
    dataTypeOf(type),
    lengthOf(type),
    ...numericShape(type),
    timeDigits(type),
    domain?.namespace ?? null,
    domain?.name ?? null,
    CATALOG,
    definedNameOf(elementOf(type))?.namespace ?? "pg_catalog",
    internalName(type),
    identity === undefined ? "NO" : "YES",
    identity?.toUpperCase() ?? null,
    generatedSql === undefined ? "NEVER" : "ALWAYS",
    generatedSql ?? null,
    yesOrNo(isWritten),
  ];
}

/**
 * Returns the identity option of a column. An identity column created before sequences existed
 * generates its values with SNOWFLAKE_ID().
 */
function identityOf({
  generatedAlways,
  generatedSql,
  identity,
}: ShownColumn): ShownColumn["identity"] {
  return identity ?? (generatedAlways && generatedSql === undefined ? "always" : undefined);
}

function dataTypeOf(type: DataType): string {
  if (type.kind === "array") return "ARRAY";
  return definedNameOf(type) === undefined ? typeName(type).replace(/\(.*\)/, "") : "USER-DEFINED";
}

function elementOf(type: DataType): DataType {
  return type.kind === "array" ? type.element : type;
}

/** Returns PostgreSQL's internal name for a type. The name of an array type begins with "_". */
function internalName(type: DataType): string {
  switch (type.kind) {
    case "array":
      return `_${internalName(type.element)}`;
    case "text":
      return type.lengthMax === undefined ? "text" : "varchar";
    case "json":
      return type.binary ? "jsonb" : "json";
    case "bit":
      return type.isVarying === true ? "varbit" : "bit";
    case "range":
    case "multirange":
      return definedNameOf(type)?.name ?? typeName(type);
    default:
      return definedNameOf(type)?.name ?? INTERNAL_NAMES[type.kind] ?? type.kind;
  }
}

const INTERNAL_NAMES: Readonly<Partial<Record<DataType["kind"], string>>> = {
  boolean: "bool",
  smallint: "int2",
  int: "int4",
  bigint: "int8",
  float: "float4",
  double: "float8",
  decimal: "numeric",
  datetime: "timestamptz",
  bytes: "bytea",
};

/** Returns the maximum length of a string or bit string type; null if there is none. */
function lengthOf(type: DataType): number | null {
  if (type.kind === "text") return type.lengthMax ?? null;
  return type.kind === "bit" ? (type.length ?? null) : null;
}

/** Returns the fractional-seconds precision of a type; null for a type without a time. */
function timeDigits(type: DataType): number | null {
  switch (type.kind) {
    case "date":
      return 0;
    case "interval":
      return 6;
    case "timestamp":
    case "datetime":
    case "time":
    case "timetz":
      return type.digits ?? 6;
    default:
      return null;
  }
}

/** Returns the precision of a numeric type, its radix, and its scale. */
function numericShape(type: DataType): [number | null, number | null, number | null] {
  switch (type.kind) {
    case "decimal":
      return [type.precision, 10, type.scale];
    case "numeric":
      return [type.size?.precision ?? null, 10, type.size?.scale ?? null];
    case "smallint":
      return [16, 2, 0];
    case "int":
      return [32, 2, 0];
    case "bigint":
      return [64, 2, 0];
    case "float":
      return [24, 2, null];
    case "double":
      return [53, 2, null];
    default:
      return [null, null, null];
  }
}
