/**
 * Binds a view as the target of INSERT, UPDATE and DELETE. As in PostgreSQL, a view is updatable
 * if it selects from a single table or updatable view, and each of its rows is one row of that
 * table: no join, DISTINCT, GROUP BY, HAVING, LIMIT, set operation, WITH, aggregate or window
 * function.
 *
 * The view takes the place of its table: the statement finds only rows that meet the view's
 * conditions, and sees only the view's columns. A column that the view computes can be read but
 * not written. If the view has WITH CHECK OPTION, the written rows must also meet its conditions.
 *
 * A view with an INSTEAD OF trigger for a change may have any query: the trigger is called in place
 * of the change. Views that select from such a view are written through it.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry, TriggerEvent } from "../../../catalog/mod.ts";
import { isAggregate } from "../../functions/aggregate/aggregates.ts";
import { isTableFunction } from "../../functions/table/table_functions.ts";
import { isWindowName } from "../../functions/window_functions.ts";
import type {
  ExprCall,
  FromTable,
  SelectedColumn,
  SelectFromStatement,
} from "../../parse/ast/ast.ts";
import { holdsQuery } from "../../parse/ast/query_nodes.ts";
import { directPartsOf, partsOf, relocated } from "../../parse/ast/tree_parts.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { bindCondition, bindExpression } from "../expression/expression_binder.ts";
import {
  queriesAround,
  type RelationSource,
  type SelectDeps,
  type ViewRelation,
} from "../query/select_deps.ts";
import { Scope } from "../scope.ts";
import { mapChildren } from "../walk.ts";
import { replacesChange } from "./triggered_view.ts";

/** The position in the statement at which all errors about the view are reported. */
interface ViewPosition {
  readonly _location: { readonly start: number; readonly end: number };
}

/**
 * The object that a change of a view writes to: the table that stores the rows of the view, or a
 * view whose triggers take the place of the change.
 */
export type WrittenView =
  | { readonly table: TableEntry; readonly triggered: undefined }
  | { readonly table: undefined; readonly triggered: ViewRelation };

/** A condition that a view imposes on its rows. */
export interface ViewCondition {
  /** The qualified name of the view. */
  readonly view: string;
  readonly condition: BoundExpression;
  /** Whether WITH CHECK OPTION applies to the condition. */
  readonly isChecked: boolean;
  /** Whether the condition is the bound of a partition. */
  readonly isOfPartition: boolean;
}

/**
 * The bound form of a view in which every column is either a table column or computed from table
 * columns.
 */
export interface ViewOverTable {
  /** The columns of the view. A column that is not computed keeps the id of the table's column. */
  readonly columns: readonly BoundColumn[];
  /** The values of the computed columns, keyed by column id. */
  readonly values: ReadonlyMap<number, BoundExpression>;
  readonly conditions: readonly ViewCondition[];
  /** The DEFAULTs that the view sets for columns, as SQL text keyed by column id. */
  readonly defaults: ReadonlyMap<number, string>;
}

/**
 * Finds the table behind a view, or the view behind it whose triggers take the place of a change.
 *
 * @param options.event The change; undefined to ignore triggers.
 * @throws {DatabaseError} READ_ONLY_OBJECT
 */
export function writtenView(
  view: ViewRelation,
  node: ViewPosition,
  options: { readonly deps: SelectDeps; readonly event?: TriggerEvent | undefined },
): WrittenView {
  const { deps, event } = options;
  if (event !== undefined && replacesChange(view.entry, event)) {
    return { table: undefined, triggered: view };
  }
  const { item } = blockOf(view, node, event);
  if (view.ownRights !== undefined) {
    throw readOnly(view, node, { reason: "the view runs with the rights of its owner", event });
  }
  const inner = view.source.view(item.name);
  if (inner !== undefined) return writtenView(inner, node, options);
  const { tableId } = view.source.table(item.name, node);
  const table = deps.rights.tableById(tableId);
  if (table === undefined) {
    const reason = "the table that the view reads has been dropped";
    throw readOnly(view, node, { reason, event });
  }
  if (table.materialized !== undefined) {
    throw readOnly(view, node, { reason: "the view reads a materialized view", event });
  }
  return { table, triggered: undefined };
}

/** How a view is bound over the table or view that stores or receives its rows. */
export interface ViewBinding {
  readonly deps: SelectDeps;
  readonly node: ViewPosition;
  /** Whether an enclosing view checks this view's conditions. */
  readonly isCascaded: boolean;
  /** The view whose triggers take the place of the change; absent if a table is written. */
  readonly triggered?: ViewRelation | undefined;
}

/**
 * Binds a view over the columns of its table.
 *
 * @param base The columns of the table, or of the view with triggers, as the statement sees them.
 */
export function boundView(
  view: ViewRelation,
  base: readonly BoundColumn[],
  binding: ViewBinding,
): ViewOverTable {
  const { deps, isCascaded, node, triggered } = binding;
  if (view.entry.viewId === triggered?.entry.viewId) {
    const defaults = defaultsOf(view, base);
    return { columns: shownOf(base, view), values: new Map(), conditions: [], defaults };
  }
  const { block, item } = blockOf(view, node);
  const isChecked = isCascaded || view.checkOption !== undefined;
  const within = { ...binding, isCascaded: isCascaded || view.checkOption === "cascaded" };
  const inner = innerOf(view, item, base, within);
  const context = {
    statement: deps.statement,
    scope: new Scope([
      {
        alias: item.name.alias ?? item.name.name,
        namespace: undefined,
        columns: renamedColumns(inner.columns, item),
        systemColumns: [],
      },
    ]),
    clause: "a view",
    sink: undefined,
    // The view's query can see neither the WITH entries nor the columns of the statement that
    // writes through it.
    ...queriesAround({
      ...deps,
      source: view.source,
      isOutermost: false,
      keepsUntyped: false,
      ctes: undefined,
      outer: undefined,
    }),
  };
  const values = new Map<number, BoundExpression>();
  const outputs = (block.columns ?? []).flatMap(({ alias, expr }): readonly BoundColumn[] => {
    if (expr.type === "ref" && expr.star === true) return inner.columns;
    const bound = bindExpression(relocated(expr, node._location), context);
    if (bound.kind === "column") return [bound.column];
    const { type } = bound;
    const column = deps.statement.newColumn({ name: alias?.name ?? "", type });
    values.set(column.id, withValues(bound, inner.values));
    return [column];
  });
  for (const { id } of outputs) {
    const value = inner.values.get(id);
    if (value !== undefined) values.set(id, value);
  }
  const named = outputs.map((column, i) => withName(column, view.columnNames[i] ?? column.name));
  const columns = shownOf(named, view);
  const defaults = new Map([...inner.defaults, ...defaultsOf(view, named)]);
  if (block.where === undefined) return { columns, values, conditions: inner.conditions, defaults };
  const where = bindCondition(relocated(block.where, node._location), context);
  const condition = withValues(where, inner.values);
  const isOfPartition = view.partition !== undefined;
  const own = { view: view.name, condition, isChecked, isOfPartition };
  return { columns, values, conditions: [...inner.conditions, own], defaults };
}

/** Returns the DEFAULTs of a view's columns, keyed by column id. */
function defaultsOf(
  { entry: { defaults = [] } }: ViewRelation,
  columns: readonly BoundColumn[],
): ReadonlyMap<number, string> {
  return new Map(
    defaults.flatMap(({ column, sql }) => {
      const found = columns.find(({ name }) => name === column);
      return found === undefined ? [] : [[found.id, sql] as const];
    }),
  );
}

/** Returns the columns of a view that are visible to the reader. */
function shownOf(columns: readonly BoundColumn[], { shown }: ViewRelation): readonly BoundColumn[] {
  if (shown === undefined) return columns;
  return shown.flatMap((name) => columns.find((column) => column.name === name) ?? []);
}

/** Binds the table or view that another view selects from. */
function innerOf(
  view: ViewRelation,
  item: FromTable,
  base: readonly BoundColumn[],
  within: ViewBinding,
): ViewOverTable {
  const inner = view.source.view(item.name);
  if (inner !== undefined) return boundView(inner, base, within);
  const table = view.source.table(item.name, within.node);
  const columns = table.columns.flatMap(({ columnId, isHidden, name }): BoundColumn[] => {
    const column = base.find(({ origin }) => origin?.columnId === columnId);
    return column === undefined || isHidden === true ? [] : [{ ...column, name }];
  });
  return { columns, values: new Map(), conditions: [], defaults: new Map() };
}

function renamedColumns(columns: readonly BoundColumn[], { name }: FromTable): BoundColumn[] {
  return columns.map((column, i) => withName(column, name.columnNames?.[i]?.name ?? column.name));
}

function withName(column: BoundColumn, name: string): BoundColumn {
  return { ...column, name };
}

/**
 * Replaces the computed columns of a view with their values.
 * @throws {DatabaseError}
 */
export function withValues(
  expression: BoundExpression,
  values: ReadonlyMap<number, BoundExpression>,
): BoundExpression {
  if (values.size === 0) return expression;
  const replaced = (each: BoundExpression): BoundExpression =>
    (each.kind === "column" ? values.get(each.column.id) : undefined) ??
    mapChildren(each, replaced);
  return replaced(expression);
}

/**
 * Returns the view's query, and the only item of its FROM.
 * @throws {DatabaseError}
 */
function blockOf(
  view: ViewRelation,
  node: ViewPosition,
  event?: TriggerEvent,
): { readonly block: SelectFromStatement; readonly item: FromTable } {
  const reason = reasonAgainst(view);
  const block = view.query;
  const [item] = block.type === "select" ? (block.from ?? []) : [];
  if (reason !== undefined || block.type !== "select" || item?.type !== "table") {
    const why = reason ?? "the view does not select from exactly one table";
    throw readOnly(view, node, { reason: why, event });
  }
  return { block, item };
}

/** Returns the reason why a view with this query cannot be written to; undefined if it can. */
export function reasonAgainst({
  query,
  source,
}: Pick<ViewRelation, "query" | "source">): string | undefined {
  if (query.type !== "select") return "the view is not a single SELECT from one table";
  const [item, ...others] = query.from ?? [];
  if (item?.type !== "table" || others.length > 0)
    return "the view does not select from exactly one table";
  if (item.systemTime !== undefined) return "the view reads an earlier state of its table";
  if (item.sample !== undefined) return "the view uses TABLESAMPLE";
  if (query.distinct !== undefined && query.distinct !== "all") return "the view uses DISTINCT";
  if (query.groupBy !== undefined) return "the view uses GROUP BY";
  if (query.having !== undefined) return "the view uses HAVING";
  if (query.limit !== undefined) return "the view uses LIMIT or OFFSET";
  return reasonInColumns(query.columns ?? [], source);
}

function reasonInColumns(
  columns: readonly SelectedColumn[],
  source: RelationSource,
): string | undefined {
  for (const part of partsOf(columns, ownParts)) {
    if (!("type" in part) || part.type !== "call") continue;
    const called = (part as ExprCall).function;
    const { name } = called;
    if ("over" in part && part.over !== undefined) return "the view uses a window function";
    if (isAggregate(name) || isWindowName(name)) return "the view uses an aggregate function";
    if (source.functions(called).some(({ routine }) => routine.aggregate !== undefined)) {
      return "the view uses an aggregate function";
    }
    if (isTableFunction(name)) return "the view uses a function that returns a set of rows";
  }
  return undefined;
}

function ownParts(part: object): readonly unknown[] {
  return holdsQuery(part) ? [] : directPartsOf(part);
}

function readOnly(
  { name }: ViewRelation,
  node: ViewPosition,
  { event, reason }: { readonly reason: string; readonly event: TriggerEvent | undefined },
): DatabaseError {
  const created =
    event === undefined ? "" : `, or create an INSTEAD OF ${event.toUpperCase()} trigger`;
  return new DatabaseError("READ_ONLY_OBJECT", `Cannot write to view ${name}: ${reason}`, {
    position: node._location.start,
    hint: `write to the tables that the view reads${created}`,
  });
}
