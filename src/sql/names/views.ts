/**
 * Resolves stored views and functions to relations. It finds the objects to which their texts
 * refer, and the rights that their readers need.
 *
 * The text of a view keeps its meaning: within the view, a table has the name and the columns that
 * it had when the view was created. Columns added later are hidden, renamed columns and tables
 * keep their old names in the view, and a column that the view needs cannot be dropped.
 */

import { mayReadView, type Principal } from "../../auth/mod.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  type ColumnEntry,
  type FunctionEntry,
  type PartitionViewEntry,
  type TableEntry,
  type ViewEntry,
  withPresentRows,
} from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { Requirement, SystemView, ViewOwner } from "../bind/bound.ts";
import { boundView, writtenView } from "../bind/change/view_target.ts";
import { typesOf, withTypes } from "../bind/expression/type_names.ts";
import { isInput } from "../bind/query/routine_resolution.ts";
import { bindInSteps, bindQuery } from "../bind/query/select_binder.ts";
import type { RelationSource, RoutineRelation, ViewRelation } from "../bind/query/select_deps.ts";
import { everyRow, rightsBy } from "../bind/row_rights.ts";
import type { AstNode, Expr, SelectStatement } from "../parse/ast/ast.ts";
import { PARSE_LIMITS, parseExpression, parseStatements } from "../parse/parser.ts";
import { meetsOwn, ownersMeet } from "../rights/requirements.ts";
import { partitionsOf, tableParts } from "./partitions.ts";

/** The parts of the catalog in which views look up names. */
export interface ViewDeps {
  readonly catalog: Pick<Catalog, "definedType" | "namespace" | "table" | "tableById">;
  readonly view: (namespace: string, name: string) => ViewEntry | undefined;
  /** Returns the view or function with the given id. */
  readonly viewById: (viewId: number) => ViewEntry | undefined;
  /** Returns the partitions of a table at all levels. */
  readonly partitionsOf: (tableId: number) => readonly PartitionViewEntry[];
  readonly systemView: (namespace: string, name: string) => SystemView | undefined;
}

export function depsOf(catalog: Catalog, systemView: ViewDeps["systemView"]): ViewDeps {
  return {
    catalog,
    systemView,
    view: (namespace, name) => catalog.view(namespace, name),
    viewById: (viewId) => catalog.viewById(viewId),
    partitionsOf: (tableId) => partitionsOf(catalog, tableId),
  };
}

const queries = new WeakMap<ViewEntry, SelectStatement>();

function queryOf(entry: ViewEntry, { catalog }: ViewDeps): SelectStatement {
  let query = queries.get(entry);
  if (query === undefined) {
    // The parser's limits apply only to requests. The view's text was accepted when the view was
    // created.
    const limits = { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY };
    query = parseStatements(entry.sql, limits)[0] as SelectStatement;
    queries.set(entry, query);
  }
  const columns = entry.tables.flatMap(({ tableId }) => catalog.tableById(tableId)?.columns ?? []);
  const types = (entry.routine?.types ?? []).map((type) => ({ type }));
  const ofColumns = typesOf([...columns, ...types]);
  return withTypes(query, (type) => {
    const { name, schema = entry.searchNamespace } = type;
    return catalog.definedType(schema, name) ?? ofColumns?.(type);
  });
}

/** Returns a view as a relation for use in FROM. */
export function viewRelation(
  entry: ViewEntry,
  deps: ViewDeps,
  shown?: readonly string[],
): ViewRelation {
  return {
    entry,
    name: `${entry.namespace}.${entry.name}`,
    query: queryOf(entry, deps),
    columnNames: entry.columnNames,
    shown,
    source: sourceIn(entry, deps),
    ownRights: entry.ownRights,
    checkOption: entry.checkOption,
    partition: entry.partition && { id: entry.viewId, tableId: entry.partition.tableId },
  };
}

/** Stands in for the query of a program or an aggregate. */
const NO_QUERY: SelectStatement = { type: "select", columns: [], _location: { start: 0, end: 0 } };

const defaults = new WeakMap<FunctionEntry, readonly (Expr | undefined)[]>();

/** Returns a function as a relation, for binding calls. */
export function routineOf(entry: FunctionEntry, deps: ViewDeps): RoutineRelation {
  const routine = withPresentRows(entry.routine, (tableId) => deps.catalog.tableById(tableId));
  let known = defaults.get(entry);
  if (known === undefined) {
    const find = typesOf(routine.types.map((type) => ({ type })));
    known = routine.parameters
      .filter(isInput)
      .map(({ defaultSql }) =>
        defaultSql === undefined ? undefined : withTypes(parseExpression(defaultSql), find),
      );
    defaults.set(entry, known);
  }
  const name = `${entry.namespace}.${routine.name}`;
  if (routine.program === undefined && routine.aggregate === undefined) {
    const relation = viewRelation(entry, deps);
    return { ...relation, name, routine, entry, program: undefined, defaults: known };
  }
  return {
    name,
    query: NO_QUERY,
    columnNames: [],
    shown: undefined,
    source: sourceIn(entry, deps),
    ownRights: undefined,
    routine,
    entry,
    program: routine.program === undefined ? undefined : entry,
    defaults: known,
  };
}

/**
 * Returns the user with whose rights a view runs; undefined if it runs with the rights of its
 * reader.
 */
function ownerOf({ name, namespace, ownRights }: ViewEntry): ViewOwner | undefined {
  return ownRights && { userId: ownRights.owner, view: `${namespace}.${name}` };
}

/** Returns the object that resolves table names in the text of a view. */
function sourceIn(entry: ViewEntry, deps: ViewDeps): RelationSource {
  const { searchNamespace } = entry;
  return {
    namespace: searchNamespace,
    table: ({ name, schema = searchNamespace }, node) => {
      const table =
        renamedIn(entry, { namespace: schema, name }, deps) ?? deps.catalog.table(schema, name);
      const known = entry.tables.find(({ tableId }) => tableId === table?.tableId);
      if (table === undefined || known === undefined) throw missing(entry, name, node);
      return { ...table, columns: columnsThen(table, known.columns) };
    },
    view: ({ name, schema = searchNamespace }) => {
      if (renamedIn(entry, { namespace: schema, name }, deps) !== undefined) return undefined;
      const other = viewIn(entry, { namespace: schema, name }, deps);
      if (other === undefined) return undefined;
      const known = entry.views.find(({ viewId }) => viewId === other.viewId);
      return viewRelation(other, deps, known?.columnNames);
    },
    partsOf: (tableId, within) => {
      const { catalog, partitionsOf: list } = deps;
      const catalogOf = { tableById: catalog.tableById.bind(catalog), partitionsOf: list };
      return tableParts(catalogOf, tableId, within);
    },
    systemView: deps.systemView,
    functions: ({ name, schema = searchNamespace }) =>
      functionsIn(entry, { namespace: schema, name }, deps).map((each) => routineOf(each, deps)),
  };
}

/**
 * Returns the functions to which a name in a view's text refers, even if they have been renamed
 * since.
 */
export function functionsIn(
  { views }: ViewEntry,
  { name, namespace }: { namespace: string; name: string },
  deps: Pick<ViewDeps, "viewById">,
): FunctionEntry[] {
  return views.flatMap(({ renamedFrom, viewId }) => {
    const entry = deps.viewById(viewId);
    if (!isFunction(entry) || entry.namespace !== namespace) return [];
    return (renamedFrom ?? entry.routine.name) === name ? [entry] : [];
  });
}

export function isFunction(entry: ViewEntry | undefined): entry is FunctionEntry {
  return entry?.routine !== undefined;
}

/**
 * Returns the table to which a name in a view's text refers if the table has been renamed since
 * the view was created; otherwise undefined.
 */
function renamedIn(
  { tables }: ViewEntry,
  { name, namespace }: { namespace: string; name: string },
  { catalog }: Pick<ViewDeps, "catalog">,
): TableEntry | undefined {
  for (const { renamedFrom, tableId } of tables) {
    if (renamedFrom !== name) continue;
    const table = catalog.tableById(tableId);
    if (table?.namespace === namespace) return table;
  }
  return undefined;
}

/**
 * Returns the view to which a name in a view's text refers, even if that view has been renamed
 * since.
 */
function viewIn(
  { views }: ViewEntry,
  { name, namespace }: { namespace: string; name: string },
  deps: ViewDeps,
): ViewEntry | undefined {
  for (const { renamedFrom, viewId } of views) {
    if (renamedFrom !== name) continue;
    const renamed = deps.viewById(viewId);
    if (renamed?.namespace === namespace && !isFunction(renamed)) return renamed;
  }
  return deps.view(namespace, name);
}

/** Returns the columns that a table had when a view was created and still has. */
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
    `Cannot read view ${namespace}.${name}: it reads the table ${table}, which no longer exists`,
    { position: node._location.start },
  );
}

/** The columns of a view, and the objects on which it depends. */
export interface ViewShape {
  readonly columns: readonly ViewColumn[];
  readonly requirements: readonly Requirement[];
}

export interface ViewColumn {
  readonly name: string;
  readonly type: DataType;
  /**
   * Whether the precision and scale of the column's type were declared by a table or a cast, as
   * opposed to a computed result.
   */
  readonly isDeclared: boolean;
}

const shapes = new WeakMap<ViewEntry, { readonly version: number; readonly shape: ViewShape }>();

/** Binds the query of a view. @throws {DatabaseError} if the query can no longer be bound */
export function shapeOf(entry: ViewEntry, deps: ViewDeps): ViewShape {
  const statement = new StatementBinding([]);
  const { query, source } = viewRelation(entry, deps);
  // Determining the shape of a view reads no rows, so policies do not matter here. The view's
  // readers still need the right to read each table.
  const rights = rightsBy({
    policiesFor: () => undefined,
    tableById: (tableId) => deps.catalog.tableById(tableId),
  }).within(ownerOf(entry));
  const place = { statement, source, rights, bindInSteps, isOutermost: false };
  const { outputs } = bindQuery(query, place);
  return {
    columns: outputs.map(({ expression, name }, i) => ({
      name: entry.columnNames[i] ?? name,
      type: expression.type,
      isDeclared:
        expression.kind === "cast" ||
        (expression.kind === "column" && expression.column.origin !== undefined),
    })),
    requirements: statement.requirements.filter(({ action }) => action !== "rows"),
  };
}

/**
 * Returns the names of the columns that can be written through a view; an empty set if the view is
 * not writable.
 */
export function writtenColumns(entry: ViewEntry, deps: ViewDeps): ReadonlySet<string> {
  const statement = new StatementBinding([]);
  const rights = everyRow((tableId) => deps.catalog.tableById(tableId));
  const view = viewRelation(entry, deps);
  const place = { statement, source: view.source, rights, bindInSteps, isOutermost: false };
  const node = { _location: { start: 0, end: 0 } };
  try {
    const { table } = writtenView(view, node, { deps: place });
    if (table === undefined) return new Set();
    const base = table.columns.map(({ columnId, name, type }) =>
      statement.newColumn({ name, type, origin: { table, columnId } }),
    );
    const { columns } = boundView(view, base, { deps: place, isCascaded: false, node });
    return new Set(columns.flatMap(({ name, origin }) => (origin === undefined ? [] : [name])));
  } catch (error) {
    if (error instanceof DatabaseError) return new Set();
    throw error;
  }
}

/** A view that a caller may read, with its current columns. */
export interface ShownView {
  readonly entry: ViewEntry;
  readonly columns: ViewShape["columns"];
  /** The names of the columns that can be written through the view. */
  readonly written: () => ReadonlySet<string>;
}

/** Returns the views that the caller may read, ordered by namespace and name. */
export function visibleViews(
  catalog: Catalog,
  principal: Principal,
  systemView: ViewDeps["systemView"],
): ShownView[] {
  return catalog.views().flatMap((entry) => {
    const shape = currentShape(entry, catalog, systemView);
    if (shape === undefined) return [];
    if (!mayReadView(principal, entry, catalog.namespace(entry.namespace))) return [];
    const { columns, requirements } = shape;
    if (!meetsOwn(requirements, principal, catalog)) return [];
    const written = (): ReadonlySet<string> => writtenColumns(entry, depsOf(catalog, systemView));
    return [{ entry, columns, written }];
  });
}

/**
 * Returns the rights that a reader of a view needs; an empty list while the view cannot be bound.
 */
export function requirementsOf(
  entry: ViewEntry,
  catalog: Catalog,
  systemView: ViewDeps["systemView"],
): readonly Requirement[] {
  return currentShape(entry, catalog, systemView)?.requirements ?? [];
}

/**
 * Whether a view may currently be read. A view that runs with its owner's rights requires that the
 * owner still has these rights. Any other view may always be read.
 */
export function isViewInForce(
  entry: ViewEntry,
  catalog: Catalog,
  systemView: ViewDeps["systemView"],
): boolean {
  return ownersMeet(requirementsOf(entry, catalog, systemView), catalog);
}

/** Returns the shape of a view; undefined while the view cannot be bound. */
function currentShape(
  entry: ViewEntry,
  catalog: Catalog,
  systemView: ViewDeps["systemView"],
): ViewShape | undefined {
  const { version } = catalog;
  const known = shapes.get(entry);
  if (known?.version === version) return known.shape;
  try {
    const shape = shapeOf(entry, depsOf(catalog, systemView));
    shapes.set(entry, { version, shape });
    return shape;
  } catch (error) {
    // Lists of views omit a view that cannot be bound. A statement that reads it reports the
    // error.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

/** The objects that a statement is about to remove. */
export interface Removal {
  readonly tableIds?: ReadonlySet<number>;
  /** The ids of the views and functions to be removed. */
  readonly viewIds?: ReadonlySet<number>;
  /** The columns to be removed from one table. */
  readonly columns?: { readonly tableId: number; readonly columnIds: ReadonlySet<number> };
}

/**
 * The part of the catalog that contains views, functions and the queries of materialized views.
 */
export type QueryCatalog = Pick<Catalog, "storedQueries">;

/**
 * Returns the views and functions that depend on removed objects, directly or indirectly. Objects
 * that are also removed are not included.
 */
export function dependentsOf(
  catalog: QueryCatalog,
  { columns, tableIds, viewIds }: Removal,
): ViewEntry[] {
  const gone = new Set(viewIds);
  const found: ViewEntry[] = [];
  let isComplete = false;
  while (!isComplete) {
    isComplete = true;
    for (const entry of catalog.storedQueries()) {
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

/** The hint for a statement that would succeed if CASCADE were added. */
export const DROPPED_BY_CASCADE = "add CASCADE to drop the dependent objects as well";

/**
 * Refuses a change that would break dependent views or functions.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
export function refuseDependents(
  what: string,
  dependents: readonly ViewEntry[],
  { hint = DROPPED_BY_CASCADE, position }: { hint?: string; position: number },
): void {
  if (dependents.length === 0) return;
  const names = dependents.map(({ name, namespace }) => `${namespace}.${name}`).join(", ");
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot ${what}: it is used by ${shownCounts(dependents)}: ${names}`,
    { position, hint },
  );
}

function shownCounts(entries: readonly ViewEntry[]): string {
  const functions = entries.filter(isFunction).length;
  const views = entries.length - functions;
  return [
    ...(views === 0 ? [] : [counted(views, "view")]),
    ...(functions === 0 ? [] : [counted(functions, "function")]),
  ].join(" and ");
}
