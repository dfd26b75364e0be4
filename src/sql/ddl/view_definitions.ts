/**
 * Executes CREATE VIEW and ALTER VIEW.
 *
 * The owner of a view that runs with its owner's rights is the user who wrote its SQL or, if its
 * options were set later, the user who set them. A user therefore cannot use a view to read data
 * that only a former owner may read.
 */

import { type Principal, requireRun } from "../../auth/mod.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  checkColumnName,
  checkObjectName,
  checkOptionFrom,
  type OptionSetting,
  resetCheckOption,
  resetViewRights,
  type TableEntry,
  type ViewEntry,
  type ViewOptionsPlace,
  type ViewTable,
  viewRightsFrom,
} from "../../catalog/mod.ts";
import { isExactDecimal, sameType, typeName } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundCte, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { plainSelect } from "../bind/bound_nodes.ts";
import { reasonAgainst } from "../bind/change/view_target.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { expressionsIn, relationsIn } from "../bind/query/query_walk.ts";
import { bindQuery } from "../bind/query/select_binder.ts";
import type { RelationSource, SelectDeps } from "../bind/query/select_deps.ts";
import { childrenOf } from "../bind/walk.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { isPartition } from "../names/partitions.ts";
import { findNamespace, requireHolder } from "../names/table_names.ts";
import { refuseTopicName } from "../names/topics.ts";
import {
  dependentsOf,
  depsOf,
  shapeOf,
  type ViewDeps,
  type ViewShape,
  viewRelation,
} from "../names/views.ts";
import type {
  AlterViewStatement,
  CreateViewStatement,
  DropViewStatement,
  Expr,
  Name,
  QName,
  TableAlterationAlterColumn,
} from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { type BindingDeps, dmlDepsOf, type NameDeps } from "../prepare/binding_deps.ts";
import { boundFor } from "../prepare/prepared.ts";
import { watchOf } from "../prepare/statement_watch.ts";
import { meetsOwn, requireRights } from "../rights/requirements.ts";
import type { DefinitionFollowers } from "./definition_followers.ts";
import type { BoundDefinition, EntryDeps } from "./namespace_definitions.ts";
import { isRelation } from "./numbered_columns.ts";
import { redefineView } from "./redefined_table.ts";
import { storingEntry } from "./stored_entry.ts";
import { checkDefault, optionSettings, resetNames } from "./table_elements.ts";

type ViewColumns = ViewShape["columns"];

export interface ViewCall {
  readonly principal: Principal;
  /** The namespace in which view definitions look up unqualified names. */
  readonly namespace: string;
}

export interface NewViewCall extends ViewCall {
  readonly ledger: RequestLedger;
}

/**
 * Checks the caller's rights, before any part of the request runs.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizeView(
  node: AlterViewStatement | CreateViewStatement | DropViewStatement,
  { namespace, principal }: ViewCall,
  catalog: Catalog,
): void {
  const names: readonly QName[] = node.type === "drop view" ? node.names : [node.name];
  for (const name of names) {
    const holder = catalog.namespace(name.schema ?? namespace);
    requireRun(principal, "removeTable", {
      action: `run ${node.type.toUpperCase()} on ${name.schema ?? namespace}.${name.name}`,
      position: name._location.start,
      ...(holder === undefined ? {} : { namespace: holder }),
    });
  }
}

/**
 * Binds CREATE VIEW against the current catalog.
 * @throws {DatabaseError}
 */
export function createView(
  node: CreateViewStatement,
  call: NewViewCall,
  deps: BindingDeps & EntryDeps & Pick<DefinitionFollowers, "live">,
): BoundDefinition {
  const { catalog, clock } = deps;
  const namespace = node.name.schema ?? call.namespace;
  const { name, _location } = node.name;
  const position = _location.start;
  requireHolder(catalog, namespace, node.name);
  checkObjectName("view", name, { position });
  const shown = `${namespace}.${name}`;
  const before = catalog.view(namespace, name);
  refuseTopicName(catalog, "view", { namespace, name, position });
  const isPart = isPartition(before);
  const isOther = before !== undefined && before.isTemporary !== node.temporary;
  const isTaken = before !== undefined && (node.orReplace !== true || isOther) && !isPart;
  if (isTaken || isPart || catalog.table(namespace, name) !== undefined) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create view ${shown}: ${isTaken ? "it" : "a table with this name"} already exists`,
      { position },
    );
  }
  const settings = optionSettings(node.options);
  const ownRights = viewRightsFrom(settings, { owner: call.principal.userId });
  if (node.checkOption !== undefined && checkOptionFrom(settings) !== undefined) {
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot create view ${shown}: WITH CHECK OPTION and the option CHECK_OPTION are both given`,
      { position, hint: "write only one of them" },
    );
  }
  const checkOption = node.checkOption ?? checkOptionFrom(settings);
  const content = contentOf({ ...node, checkOption }, call, deps);
  const entryOf = (viewId: number): ViewEntry => {
    const nowMs = clock.nowMs();
    return {
      ...content,
      ...(ownRights && { ownRights }),
      viewId,
      namespace,
      name,
      sql: node.source,
      searchNamespace: call.namespace,
      checkOption,
      isTemporary: node.temporary,
      defaults: before?.defaults,
      triggers: before?.triggers,
      comment: before?.comment,
      createdBy: call.principal.userId,
      createdAtMs: before?.createdAtMs ?? nowMs,
      updatedAtMs: nowMs,
    };
  };
  if (before !== undefined) {
    requireReplaceable(before, entryOf(before.viewId), { position, deps });
  }
  return storingEntry({ shown: `View ${shown}`, before, entryOf }, deps);
}

/**
 * Binds a view's query once, and returns the properties of the view that follow from the query.
 */
function contentOf(
  node: CreateViewStatement,
  call: NewViewCall,
  deps: BindingDeps & EntryDeps,
): Pick<ViewEntry, "columnNames" | "tables" | "views"> {
  const { content, query } = storedContent(call, deps, {
    bind: (place) => {
      const bound = bindQuery(node.query, { ...place, isOutermost: false });
      if (node.checkOption !== undefined) {
        const { name } = node;
        const shown = `${name.schema ?? call.namespace}.${name.name}`;
        const view = { query: node.query, source: place.source };
        requireCheckable(view, shown, name._location.start);
      }
      return bound;
    },
  });
  return { columnNames: columnNamesOf(node, query, call.namespace), ...content };
}

/**
 * Requires that a view WITH CHECK OPTION can be written to.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function requireCheckable(
  view: Parameters<typeof reasonAgainst>[0],
  shown: string,
  position: number,
): void {
  const reason = reasonAgainst(view);
  if (reason === undefined) return;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot define view ${shown} WITH CHECK OPTION: ${reason}, so that no rows can be written ` +
      "through it",
    { position, hint: "omit WITH CHECK OPTION", sqlstate: "0A000" },
  );
}

/** The objects to which the SQL of a view or function refers. */
type StoredContent = Pick<ViewEntry, "tables" | "views">;

/**
 * Binds the query of a view or function once, and returns the objects to which it refers.
 *
 * @param options.bind Binds the query in the given environment.
 * @param options.isTried Whether errors of the query are ignored. If so, the result contains only
 *   the objects found before the first error.
 */
export function storedContent(
  { ledger, namespace, principal }: NewViewCall,
  deps: BindingDeps & EntryDeps,
  { bind, isTried = false }: { bind: (place: SelectDeps) => BoundSelect; isTried?: boolean },
): { readonly query: BoundSelect; readonly content: StoredContent } {
  const tables = new Map<number, TableEntry>();
  const views = new Map<number, ViewEntry>();
  const { catalog } = deps;
  const statement = new StatementBinding([], { watch: watchOf(ledger, deps) });
  const dmlDeps = dmlDepsOf(deps, { namespace, principal, statement });
  const source: RelationSource = {
    ...dmlDeps.source,
    table: (name, at) => {
      const table = dmlDeps.source.table(name, at);
      tables.set(table.tableId, table);
      return table;
    },
    view: (name) => {
      const entry = catalog.view(name.schema ?? namespace, name.name);
      if (entry !== undefined) views.set(entry.viewId, entry);
      return dmlDeps.source.view(name);
    },
    functions: (name) => {
      const found = dmlDeps.source.functions(name);
      if (found.length === 0) return found;
      for (const entry of catalog.functionsNamed(name.schema ?? namespace, name.name)) {
        views.set(entry.viewId, entry);
      }
      return found;
    },
  };
  const query = boundFor({ catalog, principal, statement }, () =>
    boundOrNothing(() => bind({ ...dmlDeps, source }), isTried),
  );
  // The definition of a view may read a materialized view that has not been populated yet.
  requireRights(statement.requirements, principal, catalog);
  readLiterals(statement.literals);
  const used = storedColumnsOf(query);
  const content: StoredContent = {
    tables: [...tables.values()].map(
      ({ columns, tableId }): ViewTable => ({
        tableId,
        columns: columns.map((column) => ({ columnId: column.columnId, name: column.name })),
        used: [...(used.get(tableId) ?? [])],
      }),
    ),
    views: [...views.values()].map(({ columnNames, viewId }) => ({ viewId, columnNames })),
  };
  return { query, content };
}

function boundOrNothing(bind: () => BoundSelect, isTried: boolean): BoundSelect {
  try {
    return bind();
  } catch (error) {
    // Ignoring the error is safe: callers that set `isTried` expect that the query may be invalid.
    if (!isTried || !(error instanceof DatabaseError)) throw error;
    return plainSelect({ from: undefined, outputs: [] });
  }
}

function columnNamesOf(
  { columnNames, name }: CreateViewStatement,
  query: BoundSelect,
  namespace: string,
): string[] {
  const shown = `${name.schema ?? namespace}.${name.name}`;
  const position = name._location.start;
  if (columnNames !== undefined && columnNames.length > query.outputs.length) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot name ${columnNames.length} columns of view ${shown}: its query returns only ` +
        query.outputs.length,
      { position },
    );
  }
  for (const each of columnNames ?? []) {
    checkColumnName(each.name, { isQuoted: true, position: each._location.start });
  }
  const names = query.outputs.map((output, i) => columnNames?.[i]?.name ?? output.name);
  const twice = names.find((each, i) => names.indexOf(each) !== i);
  if (twice === undefined) return names;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot create view ${shown}: two of its columns are named "${twice}"`,
    { position, hint: "give one of the columns an alias" },
  );
}

/**
 * Requires that a view can be replaced with a new definition.
 *
 * @throws {DatabaseError} INVALID_DEFINITION, DEPENDENT_OBJECTS
 */
function requireReplaceable(
  before: ViewEntry,
  entry: ViewEntry,
  { position, deps: { catalog, systemViews } }: { position: number; deps: NameDeps },
): void {
  const shown = `${entry.namespace}.${entry.name}`;
  const dependents = dependentsOf(catalog, { viewIds: new Set([before.viewId]) });
  const reads = new Set(entry.views.map(({ viewId }) => viewId));
  if (reads.has(entry.viewId) || dependents.some(({ viewId }) => reads.has(viewId))) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot replace view ${shown}: the new query reads the view itself`,
      {
        position,
      },
    );
  }
  const today = depsOf(catalog, systemViews.find);
  const after: ViewDeps = {
    ...today,
    view: (namespace, name) =>
      namespace === entry.namespace && name === entry.name ? entry : today.view(namespace, name),
  };
  requireSameColumns(shown, {
    old: shapeOf(before, today).columns,
    columns: shapeOf(entry, after).columns,
    position,
  });
  const broken = dependents.filter((dependent) => !keepsShape(dependent, today, after));
  if (broken.length === 0) return;
  const names = broken.map((each) => `${each.namespace}.${each.name}`).join(", ");
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot replace view ${shown}: the new definition would break ${counted(broken.length, "view")}: ` +
      names,
    { position, hint: "drop these views first, then create them again" },
  );
}

/**
 * Requires that a replaced view keeps its existing columns in order. New columns may follow. The
 * precision and scale of computed decimals may change, because in PostgreSQL such columns have
 * neither.
 */
function requireSameColumns(
  shown: string,
  { columns, old, position }: { old: ViewColumns; columns: ViewColumns; position: number },
): void {
  for (const [i, { isDeclared, name, type }] of old.entries()) {
    const column = columns[i];
    const areDecimals = column !== undefined && isExactDecimal(column.type) && isExactDecimal(type);
    const keepsType = areDecimals && !isDeclared && !column.isDeclared;
    if (column?.name === name && (keepsType || sameType(column.type, type))) continue;
    const found =
      column === undefined
        ? `does not return a column ${i + 1}, which must be "${name}"`
        : column.name === name
          ? `returns column "${name}" as ${typeName(column.type)}, but its type must be ` +
            typeName(type)
          : `returns "${column.name}" as column ${i + 1}, which must be "${name}"`;
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot replace view ${shown}: the new query ${found}`,
      { position, hint: "add new columns after the existing ones, or drop the view first" },
    );
  }
}

/** Whether a view has the same columns before and after a change. */
function keepsShape(entry: ViewEntry, before: ViewDeps, after: ViewDeps): boolean {
  const old = shapeOf(entry, before).columns;
  try {
    const next = shapeOf(entry, after).columns;
    return (
      next.length === old.length &&
      next.every((column, i) => sameType(column.type, old[i]?.type ?? column.type))
    );
  } catch (error) {
    // If the old query can no longer be bound, the view has no columns to keep.
    if (error instanceof DatabaseError) return false;
    throw error;
  }
}

/**
 * Returns the view named by a statement.
 *
 * @throws {DatabaseError} INVALID_OPERATION, TABLE_NOT_FOUND, NAMESPACE_NOT_FOUND
 */
export function viewNamed(
  catalog: Catalog,
  node: QName,
  {
    action,
    ifExists,
    namespace,
  }: { action: "drop" | "alter"; ifExists: true | undefined; namespace: string },
): ViewEntry | undefined {
  const { name, schema = namespace, _location } = node;
  const entry = catalog.view(schema, name);
  const isPart = isPartition(entry);
  if (entry !== undefined && entry.resultId === undefined && !isPart) return entry;
  const position = _location.start;
  const table = catalog.table(schema, name);
  if (isPart || table !== undefined) {
    const kind = table?.materialized === undefined ? "table" : "materialized view";
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot ${action} view ${schema}.${name}: it is a ${kind}`,
      { position, hint: `${action.toUpperCase()} ${kind.toUpperCase()}` },
    );
  }
  if (ifExists === true) return undefined;
  findNamespace(catalog, schema, node);
  throw new DatabaseError("TABLE_NOT_FOUND", `Cannot find view ${schema}.${name}`, { position });
}

type AlterDeps = NameDeps & EntryDeps & Pick<DefinitionFollowers, "live">;

/**
 * Binds ALTER VIEW against the current catalog.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, ALREADY_EXISTS, INVALID_NAME, INVALID_OPTION
 */
export function alterView(
  { change, ifExists, name }: AlterViewStatement,
  { namespace, principal }: ViewCall,
  deps: AlterDeps,
): BoundDefinition {
  const { catalog, systemViews } = deps;
  systemViews.refuse(name, { namespace, principal, action: "alter", ifExists });
  const part = catalog.view(name.schema ?? namespace, name.name);
  const isRenamed = isPartition(part) && change.type === "rename";
  const found = isRenamed
    ? part
    : viewNamed(catalog, name, { namespace, action: "alter", ifExists });
  if (found === undefined) {
    return () => `View ${name.schema ?? namespace}.${name.name} does not exist`;
  }
  if (change.type === "rename") return renameView(found, change.to, deps);
  if (change.type === "alter column") return alterDefault(found, change, deps);
  const position = name._location.start;
  const given = { before: found.ownRights, owner: principal.userId };
  const altered =
    change.type === "set options"
      ? setOptions(found, optionSettings(change.options), given)
      : resetOptions(found, resetNames(change), given);
  if (altered.checkOption !== undefined) {
    const view = viewRelation(found, depsOf(catalog, systemViews.find));
    requireCheckable(view, view.name, position);
  }
  return changeOptions(found, altered, { principal, position, deps });
}

/**
 * Changes the DEFAULT of a column of a view, which applies to rows that are inserted through it.
 *
 * @throws {DatabaseError} COLUMN_NOT_FOUND, INVALID_DEFINITION, UNSUPPORTED_FEATURE
 */
function alterDefault(
  found: ViewEntry,
  { alter, column }: TableAlterationAlterColumn,
  deps: AlterDeps,
): BoundDefinition {
  const { catalog, clock, systemViews } = deps;
  const shown = `${found.namespace}.${found.name}`;
  const { columns } = shapeOf(found, depsOf(catalog, systemViews.find));
  const altered = columns.find(({ name }) => name === column.name);
  if (altered === undefined) {
    throw new DatabaseError("COLUMN_NOT_FOUND", `Cannot find column "${column.name}" in ${shown}`, {
      position: column._location.start,
    });
  }
  const others = (found.defaults ?? []).filter((each) => each.column !== column.name);
  const defaults = [...others];
  if (alter.type === "set default") {
    checkDefault(alter.default, altered);
    refuseSequences(alter.default, shown);
    defaults.push({ column: column.name, sql: alter.source });
  }
  return () => {
    const updatedAtMs = clock.nowMs();
    redefineView(deps, {
      ...found,
      defaults: defaults.length === 0 ? undefined : defaults,
      updatedAtMs,
    });
    return `View ${shown} altered`;
  };
}

/** Refuses sequences in the DEFAULT of a view, because they could be renamed or dropped. */
function refuseSequences(node: Expr, shown: string): void {
  for (const part of partsOf(node)) {
    const { function: called, type }: { type?: unknown; function?: { name?: unknown } } = part;
    if (type !== "call" || called?.name !== "nextval") continue;
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot use nextval in the DEFAULT of a column of view ${shown}`,
      { position: node._location.start, hint: "set the DEFAULT of the column of the table" },
    );
  }
}

type ViewSettings = Pick<ViewEntry, "checkOption" | "ownRights">;

function setOptions(
  { checkOption }: ViewEntry,
  settings: readonly OptionSetting[],
  given: ViewOptionsPlace,
): ViewSettings {
  const ownRights = viewRightsFrom(settings, given);
  return { ownRights, checkOption: checkOptionFrom(settings, checkOption) };
}

function resetOptions(
  { checkOption }: ViewEntry,
  names: ReturnType<typeof resetNames>,
  given: ViewOptionsPlace,
): ViewSettings {
  const ownRights = resetViewRights(names, given);
  return { ownRights, checkOption: resetCheckOption(names, checkOption) };
}

/**
 * Changes the options of a view. If it runs with its owner's rights, the caller becomes the owner
 * and therefore needs rights to all objects that the view reads.
 */
function changeOptions(
  before: ViewEntry,
  { checkOption, ownRights }: ViewSettings,
  {
    deps,
    position,
    principal,
  }: { readonly deps: AlterDeps; readonly position: number; readonly principal: Principal },
): BoundDefinition {
  const { catalog, clock, systemViews } = deps;
  const found = { ...before, ownRights: undefined };
  const { requirements } = shapeOf(found, depsOf(catalog, systemViews.find));
  if (ownRights !== undefined && !meetsOwn(requirements, principal, catalog)) {
    throw new DatabaseError(
      "PERMISSION_DENIED",
      `Cannot alter view ${found.namespace}.${found.name}: it would run with your rights, but ` +
        "you are not allowed to read all objects that it reads",
      { position },
    );
  }
  return () => {
    redefineView(deps, { ...found, checkOption, ownRights, updatedAtMs: clock.nowMs() });
    return `View ${found.namespace}.${found.name} altered`;
  };
}

/** Renames a view. Other views that read it keep their SQL, which contains the former name. */
function renameView(
  found: ViewEntry,
  to: Name,
  { catalog, clock, live }: AlterDeps,
): BoundDefinition {
  const position = to._location.start;
  checkObjectName("view", to.name, { position });
  if (isRelation(catalog, found.namespace, to.name)) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot rename ${found.namespace}.${found.name} to "${to.name}": ${found.namespace}.${to.name} already exists`,
      { position },
    );
  }
  return () => {
    const { viewId } = found;
    const renamed = { ...found, name: to.name, updatedAtMs: clock.nowMs() };
    const readers = catalog.storedQueries().flatMap((view) => {
      if (!view.views.some((each) => each.viewId === viewId)) return [];
      const views = view.views.map((each) =>
        each.viewId === viewId ? { renamedFrom: found.name, ...each } : each,
      );
      return [{ ...view, views }];
    });
    catalog.changeViews([renamed, ...readers]);
    live().viewChanged();
    const what = isPartition(found) ? "Table" : "View";
    return `${what} ${found.namespace}.${found.name} renamed to ${to.name}`;
  };
}

/**
 * Returns the stored columns that a bound query and its inner queries need, as column ids keyed by
 * table id.
 */
export function storedColumnsOf(query: BoundSelect): ReadonlyMap<number, ReadonlySet<number>> {
  const used = new Map<number, Set<number>>();
  const seen = new Set<BoundCte>();
  const visitExpression = (expression: BoundExpression): void => {
    if (expression.kind === "column" && expression.column.origin !== undefined) {
      const { columnId, table } = expression.column.origin;
      const columns = used.get(table.tableId) ?? new Set<number>();
      used.set(table.tableId, columns.add(columnId));
    }
    if (expression.kind === "subquery") visit(expression.subquery.query);
    for (const child of childrenOf(expression)) visitExpression(child);
  };
  const visit = (select: BoundSelect): void => {
    for (const expression of expressionsIn(select)) visitExpression(expression);
    for (const relation of relationsIn(select)) {
      if (relation.kind !== "cte" || seen.has(relation.cte)) continue;
      seen.add(relation.cte);
      visit(relation.cte.query);
    }
  };
  visit(query);
  return used;
}
