/**
 * Binds one SELECT block: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY,
 * LIMIT.
 *
 * Aggregates and window calls in the select list, HAVING and ORDER BY become columns of the query
 * block. `grouping_binder.ts` decides which other columns may be read after grouping.
 */

import { DatabaseError } from "../../../base/errors.ts";
import { runToCompletion } from "../../../base/steps.ts";
import { HIDDEN_KEY_NAME } from "../../../catalog/mod.ts";
import { requireOrder } from "../../functions/base/required_order.ts";
import type {
  Expr,
  ExprRef,
  OrderByStatement,
  QName,
  SelectedColumn,
  SelectFromStatement,
  SelectStatement,
  ValuesStatement,
  WithStatement,
} from "../../parse/ast/ast.ts";
import { holdsQuery, isChangeNode } from "../../parse/ast/query_nodes.ts";
import { directPartsOf, partsOf } from "../../parse/ast/tree_parts.ts";
import { valuesOfLiterals } from "../../parse/text/literal_nodes.ts";
import { type AggregateSink, type ExpressionContext, notAvailable } from "../binding.ts";
import type { BoundOutput, BoundSelect } from "../bound.ts";
import type {
  BoundAggregate,
  BoundColumn,
  BoundExpression,
  BoundSort,
} from "../bound_expressions.ts";
import { columnOutput } from "../bound_nodes.ts";
import { EquivalenceClasses, ExpressionPlaces, formOfList } from "../equivalence.ts";
import { bindCondition, bindExpression, bindValue } from "../expression/expression_binder.ts";
import { Scope } from "../scope.ts";
import { sameList, sameOptional, sameSorts } from "../walk.ts";
import { outerRelation } from "./correlation.ts";
import { expansionsOf, mapExpansions, newExpansionSink } from "./expansions.ts";
import { bindFrom } from "./from_binder.ts";
import { type Block, bindGroups, GroupedBlock, NO_GROUPS, placeOf } from "./grouping_binder.ts";
import { bindLimit, orderedOutput } from "./ordering.ts";
import { queriesAround, type SelectDeps } from "./select_deps.ts";
import { bindSetOperation } from "./set_binder.ts";
import { sortOf } from "./sort_entry.ts";
import { fieldsOf, refOfField } from "./table_function_binder.ts";
import { bindNamedWindows, newWindowSink } from "./window_binder.ts";
import { mapCall } from "./window_walk.ts";
import { depsWith } from "./with_binder.ts";

/**
 * Binds a query without yielding.
 * @throws {DatabaseError}
 */
export function bindQuery(query: SelectStatement, deps: SelectDeps): BoundSelect {
  return query.type === "select"
    ? bindSelect(query, deps)
    : runToCompletion(bindInSteps(query, deps));
}

/**
 * Binds a query in small steps.
 * @throws {DatabaseError}
 */
export function bindInSteps(
  query: SelectStatement,
  deps: SelectDeps,
): Generator<void, BoundSelect> {
  switch (query.type) {
    case "select":
      return selectInSteps(query, deps);
    case "values":
      return selectInSteps(selectFromValues(query), { ...deps, isOutermost: false });
    case "with":
    case "with recursive":
      return bindWith(query, deps);
    default:
      return bindSetOperation(query, deps);
  }
}

function* bindWith(query: WithStatement, deps: SelectDeps): Generator<void, BoundSelect> {
  if (isChangeNode(query.in))
    throw notAvailable(query.in, "INSERT, UPDATE or DELETE inside a query");
  const inner = depsWith(query, deps);
  return yield* bindInSteps(query.in, inner);
}

function withoutTail(query: ValuesStatement): ValuesStatement {
  const { _location, literals } = query;
  if (literals !== undefined) return valuesOfLiterals(literals, _location);
  return { type: "values", values: query.values, _location };
}

/** Binds `VALUES …` as `SELECT * FROM (VALUES …)`. */
function selectFromValues(
  query: Extract<SelectStatement, { type: "values" }>,
): SelectFromStatement {
  const { _location, limit, orderBy } = query;
  return {
    type: "select",
    _location,
    columns: [{ _location, expr: { type: "ref", name: "*", star: true, _location } }],
    from: [
      {
        type: "statement",
        statement: withoutTail(query),
        _location,
      },
    ],
    orderBy,
    limit,
  };
}

export function bindSelect(select: SelectFromStatement, deps: SelectDeps): BoundSelect {
  return runToCompletion(selectInSteps(select, deps));
}

function misplacedInto({ _location }: QName): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    "Cannot use INTO here: only the first SELECT in a statement can create a table",
    { position: _location.start, hint: "move INTO to the first SELECT, or use CREATE TABLE … AS" },
  );
}

function* selectInSteps(
  select: SelectFromStatement,
  deps: SelectDeps,
): Generator<void, BoundSelect> {
  if (select.into !== undefined) throw misplacedInto(select.into);
  const { from, scope: read } =
    select.from === undefined
      ? { from: undefined, scope: new Scope([]) }
      : yield* bindFrom(select.from, deps);
  const scope = read.beside(select.columns);
  const sink = newAggregateSink();
  const windows = newWindowSink();
  const expansions = newExpansionSink();
  const queries = queriesAround(deps);
  const block: Block = { select, deps, scope, sink, windows, expansions, queries };
  const where =
    select.where === undefined ? undefined : bindCondition(select.where, placeOf(block, "WHERE"));

  if (select.windows !== undefined) {
    bindNamedWindows(select.windows, placeOf(block, "WINDOW", { sink, expansions }), {
      sink: windows,
      bind: bindExpression,
    });
  }
  // A step costs more than binding an empty clause, so absent clauses do not get a separate step.
  const outputs = yield* bindOutputs(block);
  const grouped =
    select.groupBy === undefined ? NO_GROUPS : yield* bindGroups(select.groupBy, outputs, block);
  const having = bindHaving(block);
  const orderBy =
    select.orderBy === undefined ? [] : yield* bindOrderBy(select.orderBy, outputs, block);
  const distinctOn =
    typeof select.distinct === "object"
      ? yield* bindDistinctOn(select.distinct, outputs, block)
      : undefined;

  const isAggregated =
    select.groupBy !== undefined ||
    sink.aggregates.length + sink.groupings.length > 0 ||
    having !== undefined;
  const made = expansionsOf(expansions, {
    grouped: grouped.expressions,
    windows: windows.calls,
    orderBy,
    distinctOn: distinctOn ?? [],
    isDistinct: select.distinct === "distinct",
  });
  const grouping = isAggregated ? new GroupedBlock(block, grouped, made) : undefined;
  const over = (e: BoundExpression): BoundExpression => grouping?.rewrite(e) ?? e;
  const aggregates = grouping?.aggregates() ?? [];
  const bound: BoundSelect = {
    from,
    where,
    outputs: outputs.map(({ name, expression }) => ({ name, expression: over(expression) })),
    having: having === undefined ? undefined : over(having),
    orderBy: orderBy.map(({ expression, isDescending, nullsFirst }) => ({
      expression: over(expression),
      isDescending,
      nullsFirst,
    })),
    windows: windows.calls.map((call) => mapCall(call, over)),
    expansions: mapExpansions(made, over),
    // Only at this point is the list of columns that grouping has to yield complete.
    groupBy: grouping?.groupBy ?? [],
    groupingSets: grouping?.sets,
    aggregates,
    isAggregated,
    distinct: distinctOn === undefined ? plainDistinctOf(select) : { on: distinctOn.map(over) },
    ...bindLimit(select.limit, orderBy, deps),
  };
  checkDistinct(bound, select);
  return bound;
}

function bindOutputs(block: Block): Generator<void, BoundOutput[]> {
  const { expansions, sink, windows } = block;
  const { columns, distinct, orderBy } = block.select;
  return selectedInSteps(columns ?? [], {
    context: placeOf(block, "the select list", { sink, windows, expansions }),
    withSystemColumns: showsSystemColumns(block),
    keepsUntyped:
      block.deps.keepsUntyped === true && distinct === undefined && orderBy === undefined,
  });
}

/**
 * Whether `*` includes the system columns. It does so only in a plain SELECT from a single stored
 * table, without DISTINCT, grouping or windows.
 */
function showsSystemColumns({ deps, scope, select }: Block): boolean {
  if (!deps.isOutermost || scope.relations.length !== 1) return false;
  if (hasWindowCall([select.columns, select.orderBy])) return false;
  return (
    select.distinct === undefined && select.groupBy === undefined && select.having === undefined
  );
}

/**
 * Whether the clauses of a query block contain a window call. Calls in inner queries do not count.
 */
function hasWindowCall(clauses: readonly unknown[]): boolean {
  for (const part of partsOf(clauses, ownPartsOf)) {
    const { over, type }: { readonly type?: unknown; readonly over?: unknown } = part;
    if (type === "call" && over !== undefined) return true;
  }
  return false;
}

function ownPartsOf(part: object): readonly unknown[] {
  return holdsQuery(part) ? [] : directPartsOf(part);
}

/**
 * The maximum number of outputs after each `*` has been expanded. A short statement may select
 * thousands of columns, and each output is compiled in the first time slice.
 */
const OUTPUTS_MAX = 16_384;

/**
 * Binds a select list or a RETURNING list, expanding `*`.
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
export function bindSelectedColumns(
  columns: readonly SelectedColumn[],
  options: SelectedOptions,
): BoundOutput[] {
  return runToCompletion(selectedInSteps(columns, options));
}

interface SelectedOptions {
  readonly context: ExpressionContext;
  readonly withSystemColumns: boolean;
  readonly keepsUntyped?: boolean;
}

function* selectedInSteps(
  columns: readonly SelectedColumn[],
  { keepsUntyped = false, context, withSystemColumns }: SelectedOptions,
): Generator<void, BoundOutput[]> {
  const outputs: BoundOutput[] = [];
  let starCount = 0;
  for (const { alias, expr: written } of columns) {
    const expr = written.type === "field" ? (refOfField(written, context) ?? written) : written;
    const outer = outerStar(expr, context);
    if (outer !== undefined) {
      starCount += outer.length;
      if (starCount > OUTPUTS_MAX) throw tooManyOutputs(expr);
      for (const column of outer) {
        outputs.push({ name: column.name, expression: bindExpression(column, context) });
      }
    } else if ((expr.type === "ref" || expr.type === "field") && expr.star === true) {
      const expanded =
        expr.type === "ref"
          ? starColumns(expr, context.scope, withSystemColumns).map(columnOutput)
          : fieldsOf(expr, context, bindExpression);
      starCount += expanded.length;
      if (starCount > OUTPUTS_MAX) throw tooManyOutputs(expr);
      outputs.push(...expanded);
    } else {
      const expression = keepsUntyped ? bindExpression(expr, context) : bindValue(expr, context);
      outputs.push({ name: alias?.name ?? nameOf(expr), expression });
    }
    if (context.statement.isSliceOver()) yield;
  }
  return outputs;
}

/**
 * Returns references to the columns of `t.*` if no relation `t` is in this query but an enclosing
 * query has one.
 */
function outerStar(
  expr: Expr,
  { outer, scope, statement }: ExpressionContext,
): ExprRef[] | undefined {
  if (expr.type !== "ref" || expr.star !== true || expr.table === undefined) return undefined;
  const { _location, table } = expr;
  if (scope.relationNamed(table) !== undefined) return undefined;
  const variable = statement.variables?.named({ type: "ref", name: table.name, _location }, outer);
  const columns =
    outerRelation(table, outer)?.columns ??
    (variable?.type.kind === "row" ? variable.type.fields : undefined);
  return columns?.map(({ name }) => ({ type: "ref", table, name, _location }));
}

/**
 * Returns the columns to which `*` or `t.*` expands.
 * @throws {DatabaseError}
 */
function starColumns(
  star: ExprRef,
  scope: Scope,
  withSystemColumns: boolean,
): readonly BoundColumn[] {
  const relation = star.table === undefined ? undefined : scope.relationOf(star, star.table);
  if (scope.relations.length === 0) {
    throw new DatabaseError("INVALID_QUERY", 'Cannot expand "*": the query has no FROM', {
      position: star._location.start,
      hint: "add FROM, as in SELECT * FROM namespace.table",
    });
  }
  const columns = relation?.columns ?? scope.visible;
  if (star.isDeclared === true) return columns.filter((column) => !isGenerated(column));
  if (!withSystemColumns) return columns;
  const { systemColumns = [] } = relation ?? scope.relations[0] ?? {};
  return [...columns, ...systemColumns.filter(({ name }) => name !== HIDDEN_KEY_NAME)];
}

/** Whether a table column is computed from other columns. COPY TO leaves out such columns. */
function isGenerated({ origin }: BoundColumn): boolean {
  const stored = origin?.table.columns.find(({ columnId }) => columnId === origin.columnId);
  return stored?.generatedSql !== undefined;
}

function tooManyOutputs({ _location }: Expr): DatabaseError {
  return new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot expand "*": the select list would have more than ${OUTPUTS_MAX} columns`,
    { position: _location.start, hint: "list the columns that you need" },
  );
}

const FIXED_NAMES: ReadonlyMap<Expr["type"], string> = new Map<Expr["type"], string>([
  ["extract", "extract"],
  ["substring", "substring"],
  ["overlay", "overlay"],
  ["array", "array"],
  ["array select", "array"],
  ["list", "row"],
]);

/** Returns the name that PostgreSQL gives to an output without an alias. */
function nameOf(expression: Expr): string {
  switch (expression.type) {
    case "ref":
    case "field":
      return expression.name;
    case "call":
      return expression.function.name;
    case "keyword":
      return expression.keyword;
    case "cast": {
      const inner = nameOf(expression.operand);
      if (inner !== "?column?") return inner;
      return expression.to.kind === "array" ? inner : expression.to.name;
    }
    case "case": {
      const otherwise = expression.else === undefined ? "?column?" : nameOf(expression.else);
      return otherwise === "?column?" ? "case" : otherwise;
    }
    case "trim":
      return { both: "btrim", leading: "ltrim", trailing: "rtrim" }[expression.side];
    case "select":
      return nameOfScalar(expression);
    case "arrayIndex":
      return nameOf(expression.array);
    case "collate":
      return nameOf(expression.operand);
    default:
      return FIXED_NAMES.get(expression.type) ?? "?column?";
  }
}

/** Returns the name of a scalar subquery, which is the name of its only column. */
function nameOfScalar({ columns }: SelectFromStatement): string {
  const [column] = columns ?? [];
  return column === undefined ? "?column?" : (column.alias?.name ?? nameOf(column.expr));
}

function bindOrderTarget(
  target: Expr,
  outputs: readonly BoundOutput[],
  { block, clause }: { readonly block: Block; readonly clause: string },
): BoundExpression {
  const output = orderedOutput(target, outputs, clause);
  if (output !== undefined) return output;
  const { expansions, sink, windows } = block;
  return bindValue(target, placeOf(block, clause, { sink, windows, expansions }));
}

function bindHaving(block: Block): BoundExpression | undefined {
  const { having } = block.select;
  if (having === undefined) return undefined;
  return bindCondition(having, placeOf(block, "HAVING", { sink: block.sink }));
}

function bindOrderBy(
  sorts: readonly OrderByStatement[],
  outputs: readonly BoundOutput[],
  block: Block,
): Generator<void, BoundSort[]> {
  const at = { block, clause: "ORDER BY" };
  const { statement } = block.deps;
  return statement.each(sorts, (sort) => sortOf(sort, bindOrderTarget(sort.by, outputs, at)));
}

function bindDistinctOn(
  expressions: readonly Expr[],
  outputs: readonly BoundOutput[],
  block: Block,
): Generator<void, BoundExpression[]> {
  const at = { block, clause: "DISTINCT ON" };
  const { statement } = block.deps;
  return statement.each(expressions, (expression) => bindOrderTarget(expression, outputs, at));
}

function plainDistinctOf({ distinct }: SelectFromStatement): "all" | "none" {
  return distinct === "distinct" ? "all" : "none";
}

function checkDistinct(bound: BoundSelect, { orderBy = [], _location }: SelectFromStatement): void {
  const startOf = (index: number): number => (orderBy[index]?.by ?? { _location })._location.start;
  if (bound.distinct === "all") {
    for (const { expression } of bound.outputs) {
      requireOrder(expression.type, "SELECT DISTINCT", _location.start);
    }
    const selected = new ExpressionPlaces(bound.outputs.map(({ expression }) => expression));
    for (const [i, { expression }] of bound.orderBy.entries()) {
      if (selected.find(expression) !== undefined) continue;
      throw new DatabaseError(
        "INVALID_QUERY",
        "Cannot order by this expression: with SELECT DISTINCT, it must be in the select list",
        {
          position: startOf(i),
          hint: "add the expression to the select list, or use GROUP BY instead of DISTINCT",
        },
      );
    }
  }
  if (typeof bound.distinct !== "object") return;
  const { on } = bound.distinct;
  for (const { type } of on) requireOrder(type, "DISTINCT ON", _location.start);
  const leading = bound.orderBy.slice(0, on.length);
  const distinct = new ExpressionPlaces(on);
  for (const [i, { expression }] of leading.entries()) {
    if (distinct.find(expression) !== undefined) continue;
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot use DISTINCT ON: its expressions must come first in ORDER BY",
      { position: startOf(i), hint: "start ORDER BY with the DISTINCT ON expressions" },
    );
  }
}

/**
 * Creates the sink for the aggregates of a query block. An aggregate that appears twice is
 * computed only once.
 */
function newAggregateSink(): AggregateSink {
  const known = new EquivalenceClasses({ formOf: formOfAggregate, areEquivalent: isSameAggregate });
  return { aggregates: [], known, groupings: [] };
}

function formOfAggregate(aggregate: BoundAggregate): string {
  const { argument, extra, filter, form, orderBy } = aggregate;
  const sorts = orderBy.map(({ expression }) => expression);
  return `${form.name} ${formOfList([argument, ...extra, filter, ...sorts])}`;
}

function isSameAggregate(left: BoundAggregate, right: BoundAggregate): boolean {
  return (
    left.form.name === right.form.name &&
    left.isDistinct === right.isDistinct &&
    sameOptional(left.argument, right.argument) &&
    sameList(left.extra, right.extra) &&
    sameOptional(left.filter, right.filter) &&
    sameSorts(left.orderBy, right.orderBy)
  );
}
