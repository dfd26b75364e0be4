/**
 * The views of information_schema: what PostgreSQL tools ask, of the objects that the caller may
 * read.
 */
import { mayRun, ownsNamespace, type Principal } from "../../auth/mod.ts";
import { type Catalog, type ColumnEntry, keyNameOf, type TableEntry } from "../../catalog/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  INT,
  type Row,
  TEXT,
  typeName,
  type Value,
} from "../../types/mod.ts";
import type { SystemCall, SystemView } from "../bind/bound.ts";
import { type ShownView, visibleViews } from "../common/views.ts";
import { compareNames, namespaceRows, visibleTables } from "./show_rows.ts";
import { OPEN, portionedView, view } from "./system_view.ts";

const CATALOG = "tidemark";

/** Rows that are made at a time where they may be many: they take a millisecond. */
const PORTION_ROWS = 1024;

/** Who owns what no user made. */
const SYSTEM_OWNER = "system";

/**
 * The views by "namespace.name".
 *
 * @param systemViews All views of the system, these included once they are made.
 */
export function informationSchema(
  catalog: Catalog,
  systemViews: ReadonlyMap<string, SystemView>,
): [string, SystemView][] {
  const world: World = { catalog, systemViews };
  const views: readonly (readonly [string, SystemView])[] = [
    ["schemata", schemata(world)],
    ["tables", tables(world)],
    ["columns", columnsOfSchema(world)],
    ["views", viewsOfSchema(world)],
    ["table_constraints", tableConstraints(world)],
    ["key_column_usage", keyColumnUsage(world)],
    ["check_constraints", checkConstraints(world)],
  ];
  return views.map(([name, each]) => [`information_schema.${name}`, each]);
}

interface World {
  readonly catalog: Catalog;
  readonly systemViews: ReadonlyMap<string, SystemView>;
}

/** A table or view as the caller sees it. */
interface Relation {
  readonly namespace: string;
  readonly name: string;
  readonly type: "BASE TABLE" | "VIEW" | "SYSTEM VIEW";
  readonly columns: readonly ShownColumn[];
}

type ShownColumn = Pick<
  ColumnEntry,
  "name" | "type" | "notNull" | "generatedAlways" | "defaultSql"
>;

function relationsSeenBy(world: World, call: SystemCall): Relation[] {
  const { catalog, systemViews } = world;
  const principal = principalOf(call);
  const stored = visibleTables(catalog, principal).map(
    (table): Relation => ({
      namespace: table.namespace,
      name: table.name,
      type: "BASE TABLE",
      columns: [...table.columns, ...systemColumnsOf(table)],
    }),
  );
  const views = viewsSeenBy(world, principal).map(
    ({ columns, entry }): Relation => ({
      namespace: entry.namespace,
      name: entry.name,
      type: "VIEW",
      columns: columns.map(plainColumn),
    }),
  );
  const system = [...systemViews].flatMap(([name, each]): Relation[] => {
    if (!each.isOpen && !mayRun(principal, "inspect")) return [];
    const dot = name.indexOf(".");
    return [
      {
        namespace: name.slice(0, dot),
        name: name.slice(dot + 1),
        type: "SYSTEM VIEW",
        columns: each.columns.map(plainColumn),
      },
    ];
  });
  return [...stored, ...views, ...system].toSorted(compareNames);
}

function viewsSeenBy({ catalog, systemViews }: World, principal: Principal): ShownView[] {
  return visibleViews(catalog, principal, (namespace, name) =>
    systemViews.get(`${namespace}.${name}`),
  );
}

function plainColumn({ name, type }: { name: string; type: DataType }): ShownColumn {
  return { name, type, notNull: false, generatedAlways: false };
}

function schemata({ catalog }: World): SystemView {
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

function tables(world: World): SystemView {
  return view(
    [
      ["table_catalog", TEXT],
      ["table_schema", TEXT],
      ["table_name", TEXT],
      ["table_type", TEXT],
      ["is_insertable_into", TEXT],
    ],
    (call) =>
      relationsSeenBy(world, call).map(({ name, namespace, type }) => [
        CATALOG,
        namespace,
        name,
        type,
        type === "BASE TABLE" ? "YES" : "NO",
      ]),
    OPEN,
  );
}

function columnsOfSchema(world: World): SystemView {
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
      ["numeric_scale", INT],
      ["datetime_precision", INT],
      ["udt_name", TEXT],
      ["is_identity", TEXT],
    ],
    (call) => columnRows(relationsSeenBy(world, call)),
    OPEN,
  );
}

/** Of thousands of tables: in portions, none of which is a long turn. */
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

/** The text of a view is for those who may define it. */
function viewsOfSchema(world: World): SystemView {
  const { catalog } = world;
  return view(
    [
      ["table_catalog", TEXT],
      ["table_schema", TEXT],
      ["table_name", TEXT],
      ["view_definition", TEXT],
    ],
    (call) => {
      const principal = principalOf(call);
      return viewsSeenBy(world, principal).map(({ entry: { name, namespace, sql } }) => {
        const holder = catalog.namespace(namespace);
        const isShown = mayRun(principal, "inspect") || ownsNamespace(principal, holder);
        return [CATALOG, namespace, name, isShown ? sql : null];
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

/** STREAM tables may have none. */
function keyName(table: TableEntry): string[] {
  return table.primaryKey.length === 0 ? [] : [keyNameOf(table)];
}

function tableConstraints({ catalog }: World): SystemView {
  return view(
    [...CONSTRAINT_COLUMNS, ["constraint_type", TEXT]],
    (call) =>
      visibleTables(catalog, principalOf(call)).flatMap((table): Row[] => {
        const keys = keyName(table).map((name) => constraintRow(table, name, "PRIMARY KEY"));
        return keys.concat(table.checks.map(({ name }) => constraintRow(table, name, "CHECK")));
      }),
    OPEN,
  );
}

function keyColumnUsage({ catalog }: World): SystemView {
  return view(
    [...CONSTRAINT_COLUMNS, ["column_name", TEXT], ["ordinal_position", INT]],
    (call) =>
      visibleTables(catalog, principalOf(call)).flatMap((table): Row[] =>
        keyName(table).flatMap((name) =>
          table.primaryKey.map((columnId, i) => {
            const column = table.columns.find((each) => each.columnId === columnId);
            return constraintRow(table, name, column?.name ?? null, i + 1);
          }),
        ),
      ),
    OPEN,
  );
}

function checkConstraints({ catalog }: World): SystemView {
  return view(
    [...CONSTRAINT_COLUMNS, ["check_clause", TEXT]],
    (call) =>
      visibleTables(catalog, principalOf(call)).flatMap((table): Row[] =>
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
  { defaultSql, generatedAlways, name, notNull, type }: ShownColumn,
  ordinal: number,
): Row {
  const [precision, scale] = numericShape(type);
  return [
    CATALOG,
    namespace,
    tableName,
    name,
    ordinal,
    defaultSql ?? null,
    notNull ? "NO" : "YES",
    typeName(type).replace(/\(.*\)/, ""),
    type.kind === "text" ? (type.lengthMax ?? null) : null,
    precision,
    scale,
    timeDigits(type),
    type.kind,
    generatedAlways ? "YES" : "NO",
  ];
}

/** Digits of a second's fraction. */
function timeDigits(type: DataType): number | null {
  switch (type.kind) {
    case "timestamp":
    case "datetime":
    case "time":
      return type.digits ?? 6;
    default:
      return null;
  }
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

function principalOf({ isImpersonated, role, userId }: SystemCall): Principal {
  return {
    userId,
    role,
    owner: undefined,
    actorId: userId,
    actorRole: role,
    isImpersonated,
    sessionId: "",
  };
}
