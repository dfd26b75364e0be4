/**
 * Stored views as relations: what their names lead to, what they depend on, who sees them.
 *
 * The text of a view keeps its meaning: within it a table has the columns, under the names, that it
 * had when the view was made. A column that was added since is hidden, a renamed one keeps its name
 * here, and one that the view needs cannot be dropped.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Catalog, ColumnEntry, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { Requirement, SystemView } from "../bind/bound.ts";
import { bindInSteps, bindQuery } from "../bind/query/select_binder.ts";
import type { RelationSource, ViewRelation } from "../bind/query/select_world.ts";
import type { AstNode, SelectStatement } from "../parse/ast/ast.ts";
import { PARSE_LIMITS, parseStatements } from "../parse/parser.ts";
import { meets } from "./requirements.ts";

/** Where names lead. */
export interface ViewWorld {
  readonly catalog: Pick<Catalog, "namespace" | "table">;
  readonly view: (namespace: string, name: string) => ViewEntry | undefined;
  readonly systemView: (namespace: string, name: string) => SystemView | undefined;
}

export function worldOf(catalog: Catalog, systemView: ViewWorld["systemView"]): ViewWorld {
  return { catalog, systemView, view: (namespace, name) => catalog.view(namespace, name) };
}

const queries = new WeakMap<ViewEntry, SelectStatement>();

function queryOf(entry: ViewEntry): SelectStatement {
  let query = queries.get(entry);
  if (query === undefined) {
    // The limits of today are for requests; the text was let in once.
    const limits = { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY };
    query = parseStatements(entry.sql, limits)[0] as SelectStatement;
    queries.set(entry, query);
  }
  return query;
}

/** A view as FROM takes it. */
export function viewRelation(
  entry: ViewEntry,
  world: ViewWorld,
  shown?: readonly string[],
): ViewRelation {
  return {
    name: `${entry.namespace}.${entry.name}`,
    query: queryOf(entry),
    columnNames: entry.columnNames,
    shown,
    source: sourceIn(entry, world),
  };
}

/** Where the names in the text of a view lead. */
function sourceIn(entry: ViewEntry, world: ViewWorld): RelationSource {
  const { searchNamespace } = entry;
  return {
    namespace: searchNamespace,
    table: ({ name, schema }, node) => {
      const table = world.catalog.table(schema ?? searchNamespace, name);
      const known = entry.tables.find(({ tableId }) => tableId === table?.tableId);
      if (table === undefined || known === undefined) throw missing(entry, name, node);
      return { ...table, columns: columnsThen(table, known.columns) };
    },
    view: ({ name, schema }) => {
      const other = world.view(schema ?? searchNamespace, name);
      if (other === undefined) return undefined;
      const known = entry.views.find(({ viewId }) => viewId === other.viewId);
      return viewRelation(other, world, known?.columnNames);
    },
    systemView: world.systemView,
  };
}

/** The columns of a table as they were, as far as they are still there. */
function columnsThen(
  { columns }: TableEntry,
  then: readonly { readonly columnId: number; readonly name: string }[],
): ColumnEntry[] {
  return then.flatMap(({ columnId, name }) => {
    const column = columns.find((each) => each.columnId === columnId);
    return column === undefined ? [] : [{ ...column, name }];
  });
}

function missing({ name, namespace }: ViewEntry, table: string, node: AstNode): DatabaseError {
  return new DatabaseError(
    "TABLE_NOT_FOUND",
    `Cannot read view ${namespace}.${name}: its table ${table} is not there`,
    { position: node._location.start },
  );
}

/** What a view yields and needs. */
export interface ViewShape {
  readonly columns: readonly ViewColumn[];
  readonly requirements: readonly Requirement[];
}

export interface ViewColumn {
  readonly name: string;
  readonly type: DataType;
  /** Whether a table or a cast gives the digits of its type; others follow from a computation. */
  readonly isDeclared: boolean;
}

const shapes = new WeakMap<ViewEntry, { readonly version: number; readonly shape: ViewShape }>();

/** @throws {DatabaseError} If its query cannot be bound any more. */
export function shapeOf(entry: ViewEntry, world: ViewWorld): ViewShape {
  const statement = new StatementBinding([]);
  const { query, source } = viewRelation(entry, world);
  const { outputs } = bindQuery(query, { statement, source, bindInSteps, isOutermost: false });
  return {
    columns: outputs.map(({ expression, name }, i) => ({
      name: entry.columnNames[i] ?? name,
      type: expression.type,
      isDeclared:
        expression.kind === "cast" ||
        (expression.kind === "column" && expression.column.origin !== undefined),
    })),
    requirements: statement.requirements,
  };
}

/** A view that a caller may read, with its columns as they are now. */
export interface ShownView {
  readonly entry: ViewEntry;
  readonly columns: ViewShape["columns"];
}

/** Views that the caller may read, ordered by namespace and name. */
export function visibleViews(
  catalog: Catalog,
  principal: Principal,
  systemView: ViewWorld["systemView"],
): ShownView[] {
  return catalog.views().flatMap((entry) => {
    const shape = currentShape(entry, catalog, systemView);
    if (shape === undefined) return [];
    const { columns, requirements } = shape;
    if (!requirements.every((requirement) => meets(requirement, principal, catalog))) return [];
    return [{ entry, columns }];
  });
}

/** The rights that a reader of a view needs; none while nobody can read it. */
export function requirementsOf(
  entry: ViewEntry,
  catalog: Catalog,
  systemView: ViewWorld["systemView"],
): readonly Requirement[] {
  return currentShape(entry, catalog, systemView)?.requirements ?? [];
}

/** The shape of a view; undefined while it cannot be read by anybody. */
function currentShape(
  entry: ViewEntry,
  catalog: Catalog,
  systemView: ViewWorld["systemView"],
): ViewShape | undefined {
  const { version } = catalog;
  const known = shapes.get(entry);
  if (known?.version === version) return known.shape;
  try {
    const shape = shapeOf(entry, worldOf(catalog, systemView));
    shapes.set(entry, { version, shape });
    return shape;
  } catch (error) {
    // A reader of the view itself is told why; in a list it is as if it were not there.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

/** What a view is asked about when something else is to go. */
export interface Removal {
  readonly tableIds?: ReadonlySet<number>;
  readonly viewIds?: ReadonlySet<number>;
  /** Of one table. */
  readonly columns?: { readonly tableId: number; readonly columnIds: ReadonlySet<number> };
}

/** The views that need what is to go, and those that need them; not those that go anyway. */
export function dependentsOf(
  catalog: Pick<Catalog, "views">,
  { columns, tableIds, viewIds }: Removal,
): ViewEntry[] {
  const gone = new Set(viewIds);
  const found: ViewEntry[] = [];
  let isComplete = false;
  while (!isComplete) {
    isComplete = true;
    for (const entry of catalog.views()) {
      if (gone.has(entry.viewId)) continue;
      const needs =
        entry.views.some(({ viewId }) => gone.has(viewId)) ||
        entry.tables.some(
          ({ tableId, used }) =>
            tableIds?.has(tableId) === true ||
            (columns?.tableId === tableId && used.some((id) => columns.columnIds.has(id))),
        );
      if (!needs) continue;
      gone.add(entry.viewId);
      found.push(entry);
      isComplete = false;
    }
  }
  return found;
}

/** Refuses what leaves views without what they need. @throws {DatabaseError} DEPENDENT_OBJECTS */
export function refuseDependents(
  what: string,
  dependents: readonly ViewEntry[],
  position: number,
): void {
  if (dependents.length === 0) return;
  const names = dependents.map(({ name, namespace }) => `${namespace}.${name}`).join(", ");
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot ${what}: ${dependents.length} view(s) need it: ${names}`,
    { position, hint: "add CASCADE to drop them too" },
  );
}
