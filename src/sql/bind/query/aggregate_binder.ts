/**
 * Binds aggregate calls and GROUPING. The enclosing block computes both once per group.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN, INT } from "../../../types/mod.ts";
import {
  type AggregateForm,
  isOrderedSetAggregate,
  resolveAggregate,
} from "../../functions/aggregate/aggregates.ts";
import { requireOrder } from "../../functions/base/required_order.ts";
import type { Expr, ExprCall, ExprRef } from "../../parse/ast/ast.ts";
import { holdsQuery } from "../../parse/ast/query_nodes.ts";
import { partsOf } from "../../parse/ast/tree_parts.ts";
import { expressionToSql } from "../../parse/print/print_queries.ts";
import {
  type Bind,
  type CallableRoutine,
  type Correlation,
  type ExpressionContext,
  unknownFunction,
} from "../binding.ts";
import type {
  AggregateSteps,
  BoundAggregate,
  BoundExpression,
  BoundSort,
} from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { castTo } from "../expression/casts.ts";
import { typeWithDerived } from "../expression/collations.ts";
import { ofOneScale } from "../expression/one_scale.ts";
import { bindRow, knowsRow, presenceOf } from "../expression/row_values.ts";
import type { Scope } from "../scope.ts";
import { readsColumn, sameExpression } from "../walk.ts";
import { aggregateOfCall } from "./aggregate_steps.ts";
import { readsOuter } from "./query_walk.ts";
import { aggregatesOf, isOverStar, resolveAggregateRoutine } from "./routine_resolution.ts";
import { sortOf } from "./sort_entry.ts";

/**
 * Binds an aggregate call without OVER.
 *
 * @throws {DatabaseError} INVALID_QUERY, FUNCTION_NOT_FOUND
 */
export function bindAggregate(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { outer, sink } = context;
  const level = levelOf(call, context);
  if (level === "own" && sink === undefined) throw misplaced(call, context);
  if (outer !== undefined && level === "outer") {
    return outer.referTo(bindAggregate(call, outer.context, bind));
  }
  const undo = level === "unknown" ? outer?.mark() : undefined;
  const made = boundAggregate(call, context, bind);
  if (outer !== undefined && undo !== undefined && readsOuterAlone(made)) {
    undo();
    context.statement.bindAgain(call);
    return outer.referTo(bindAggregate(call, outer.context, bind));
  }
  if (sink === undefined) throw misplaced(call, context);
  const known = sink.known.find(made);
  if (known === undefined) {
    sink.aggregates.push(made);
    sink.known.add(made);
  }
  return columnValue((known ?? made).column);
}

function misplaced(
  { _location, function: { name } }: ExprCall,
  { clause }: ExpressionContext,
): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot use the aggregate function ${name} in ${clause}`,
    {
      position: _location.start,
      ...(clause === "WHERE" ? { hint: "move conditions on aggregates to HAVING" } : {}),
    },
  );
}

function boundAggregate(call: ExprCall, context: ExpressionContext, bind: Bind): BoundAggregate {
  const { name } = call.function;
  const inner: ExpressionContext = {
    ...context,
    sink: undefined,
    windows: undefined,
    expansions: undefined,
    clause: `the arguments of ${name}`,
  };
  const { args, form, given, steps } = bindAggregateArguments(call, inner, bind);
  const isDistinct = call.distinct === "distinct";
  if (isDistinct)
    for (const { type } of args) requireOrder(type, `${name}(DISTINCT …)`, call._location.start);
  const orderBy =
    form.isOrderedSet === true ? withinGroup(call, args) : ordersOf(call, given, { inner, bind });
  const [argument, ...extra] = args;
  return {
    column: context.statement.newColumn({
      name,
      type: typeWithDerived(form.result, given ?? args),
    }),
    form,
    steps,
    argument,
    extra,
    isDistinct,
    filter: call.filter === undefined ? undefined : bindFilter(call.filter, inner, bind),
    // With DISTINCT, the aggregate receives its values in sorted order, unless the call requires a
    // different order.
    orderBy: orderBy ?? (isDistinct && form.keepsOrder === true ? args.map(ascending) : []),
  };
}

function ascending(expression: BoundExpression): BoundSort {
  return { expression, isDescending: false, nullsFirst: false };
}

/**
 * Binds the ORDER BY inside an aggregate call. With DISTINCT, it may contain only the arguments
 * being compared, because any other expression could differ between rows with equal arguments.
 */
function ordersOf(
  call: ExprCall,
  given: readonly BoundExpression[] | undefined,
  { bind, inner }: { bind: Bind; inner: ExpressionContext },
): BoundSort[] | undefined {
  if (call.distinct !== "distinct") {
    return call.orderBy?.map((sort) => sortOf(sort, bind(sort.by, inner)));
  }
  return call.orderBy?.flatMap((sort) => {
    const { by } = sort;
    if (given === undefined) {
      // The result of count does not depend on the order of the rows.
      const [row] = call.args;
      if (row !== undefined && expressionToSql(by) === expressionToSql(row)) return [];
      throw notDistinguished(call, by);
    }
    const expression = bind(by, inner);
    if (given.some((argument) => sameExpression(argument, expression))) {
      return [sortOf(sort, expression)];
    }
    throw notDistinguished(call, by);
  });
}

function notDistinguished({ function: { name } }: ExprCall, by: Expr): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot order the values of ${name}(DISTINCT …) by this expression: it is not one of the ` +
      "arguments",
    { position: by._location.start, hint: "order by one of the arguments, or remove DISTINCT" },
  );
}

/**
 * Returns the sort order of an ordered-set aggregate. The aggregate's last argument is the sort
 * expression.
 */
function withinGroup(call: ExprCall, args: readonly BoundExpression[]): BoundSort[] {
  const { withinGroup: sort } = call;
  const expression = args.at(-1);
  return sort === undefined || expression === undefined ? [] : [sortOf(sort, expression)];
}

/**
 * Requires WITHIN GROUP for an ordered-set aggregate, and refuses it for all other aggregates.
 *
 * @throws {DatabaseError} INVALID_QUERY
 */
function checkOrder(call: ExprCall, name: string): void {
  const position = call._location.start;
  if (!isOrderedSetAggregate(name)) {
    if (call.withinGroup === undefined) return;
    throw withoutGroup(call);
  }
  if (call.withinGroup === undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} without WITHIN GROUP: it is an ordered-set aggregate`,
      {
        position,
        hint: `write ${name}(…) WITHIN GROUP (ORDER BY …)`,
      },
    );
  }
  const second = call.withinGroupThen?.[0];
  if (second !== undefined) {
    throw new DatabaseError(
      "FUNCTION_NOT_FOUND",
      `Cannot call ${name} with several sort keys in WITHIN GROUP: it takes exactly one`,
      { position: second._location.start, hint: "remove all sort keys but one" },
    );
  }
  if (call.distinct === undefined && call.orderBy === undefined) return;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot call ${name} with DISTINCT or ORDER BY in its argument list: it is an ordered-set ` +
      "aggregate",
    { position, hint: "write the sort order only in WITHIN GROUP" },
  );
}

function withoutGroup({ _location, function: { name } }: ExprCall): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot use WITHIN GROUP with ${name}: it is not an ordered-set aggregate`,
    { position: _location.start, hint: `write ${name}(… ORDER BY …)` },
  );
}

export interface AggregateArguments {
  readonly form: AggregateForm;
  /** The aggregate's arguments, cast to the types of the chosen form. */
  readonly args: readonly BoundExpression[];
  /** The aggregate's arguments before the casts; undefined if the argument is a row. */
  readonly given: readonly BoundExpression[] | undefined;
  /** Set for a user-defined aggregate. */
  readonly steps?: AggregateSteps | undefined;
}

/**
 * Binds the arguments of an aggregate.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND, INVALID_QUERY
 */
export function bindAggregateArguments(
  call: ExprCall,
  inner: ExpressionContext,
  bind: Bind,
): AggregateArguments {
  const { name } = call.function;
  const routines = aggregatesOf(call, inner);
  if (routines !== undefined) return routineArguments(call, routines, { bind, context: inner });
  checkOrder(call, name);
  const counted = countedRows(call, inner, bind);
  if (counted !== undefined) return counted;
  const isStar = isOverStar(call);
  // The expression to sort by is passed as the last argument of an ordered-set aggregate.
  const ordered = call.withinGroup === undefined ? [] : [call.withinGroup.by];
  const nodes = isStar ? [] : [...call.args, ...ordered];
  const args = nodes.map((argument) => {
    const bound = bindArgument(call, argument, inner, bind);
    return (SUMS.has(name) ? ofOneScale(bound, argument) : undefined) ?? bound;
  });
  if (!isStar && args.length === 0) throw unknownFunction(name, [], call);
  const types = args.map((argument) => argument.type);
  const form = resolveAggregate(name, types);
  if (form === undefined) throw unknownFunction(name, types, call);
  const cast = args.map((argument, i) =>
    castTo(argument, {
      // DISTINCT and WITHIN GROUP compare the arguments under the arguments' own collation.
      to: typeWithDerived(form.argumentTypes[i] ?? argument.type, [argument]),
      mode: "implicit",
      node: nodes[i],
    }),
  );
  return { form, args: cast, given: args };
}

/** Binds the arguments of a user-defined aggregate. */
function routineArguments(
  call: ExprCall,
  routines: readonly CallableRoutine[],
  place: { readonly bind: Bind; readonly context: ExpressionContext },
): AggregateArguments {
  if (call.withinGroup !== undefined) throw withoutGroup(call);
  const found = resolveAggregateRoutine(call, routines, place);
  const { form, steps } = aggregateOfCall(found, {
    bind: place.bind,
    statement: place.context.statement,
  });
  return { form, steps, args: found.args, given: found.args };
}

/** Aggregates whose result does not depend on the scales of individual numbers. */
const SUMS: ReadonlySet<string> = new Set(["sum", "avg"]);

/**
 * Binds `count(DISTINCT (a, b))`. DISTINCT compares all arguments, and count reads the first
 * argument, which is NULL only if the row is missing.
 */
function countedRows(
  call: ExprCall,
  inner: ExpressionContext,
  bind: Bind,
): AggregateArguments | undefined {
  const [argument] = call.args;
  const { name } = call.function;
  if (name !== "count" || call.distinct !== "distinct" || call.args.length > 1) return undefined;
  if (argument === undefined || isStarRef(argument)) return undefined;
  const row = bindRow(argument, inner, bind);
  if (row === undefined) return undefined;
  const args = [presenceOf(row), ...row.fields.map(({ value }) => value)];
  const form = resolveAggregate(name, [BOOLEAN]);
  return {
    form: defined(form, "aggregate binder: no form of count accepts this argument type"),
    args,
    given: undefined,
  };
}

/**
 * Binds an argument of an aggregate. For count, a row is reduced to a value that shows only
 * whether the row exists.
 */
function bindArgument(
  call: ExprCall,
  argument: Expr,
  inner: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const counted = call.function.name === "count" ? bindRow(argument, inner, bind) : undefined;
  return counted === undefined ? bind(argument, inner) : presenceOf(counted);
}

export function bindFilter(
  condition: Expr,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  return castTo(bind(condition, context), { to: BOOLEAN, mode: "implicit", node: condition });
}

function isStarRef(expression: Expr | undefined): boolean {
  return expression?.type === "ref" && expression.star === true && expression.table === undefined;
}

/** The maximum number of arguments of GROUPING, each of which is one bit of an INT. */
const GROUPING_ARGUMENTS_MAX = 31;

/**
 * The name of the placeholder for a GROUPING call, which is used until the groups of the call's
 * query block are known.
 */
export const GROUPING = "grouping";

/**
 * Returns a placeholder for a GROUPING call. The query block replaces the placeholder once the
 * block's groups are known.
 */
export function bindGrouping(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const position = call._location.start;
  const { outer } = context;
  if (outer !== undefined && levelOf(call, context) === "outer") {
    return outer.referTo(bindGrouping(call, outer.context, bind));
  }
  if (context.sink === undefined) {
    throw new DatabaseError("INVALID_QUERY", `Cannot use GROUPING in ${context.clause}`, {
      position,
      hint: "call GROUPING in the select list, HAVING or ORDER BY",
    });
  }
  if (call.args.length === 0 || call.args.length > GROUPING_ARGUMENTS_MAX) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call GROUPING with ${call.args.length} arguments: it takes from 1 to ` +
        GROUPING_ARGUMENTS_MAX,
      { position },
    );
  }
  const inner: ExpressionContext = {
    ...context,
    sink: undefined,
    windows: undefined,
    expansions: undefined,
    clause: "GROUPING",
  };
  const args = call.args.map((argument) => bind(argument, inner));
  context.sink.groupings.push({ args, start: position });
  return {
    kind: "call",
    type: INT,
    name: GROUPING,
    args,
    evaluate: () => null,
    seesNull: true,
    volatility: "immutable",
  };
}

/**
 * Determines whether an aggregate belongs to its own query or to an outer query. It belongs to the
 * nearest query with columns that its arguments, ORDER BY or FILTER read, or to its own query if
 * they read no columns. The result is "unknown" if the arguments contain a query, which resolves
 * its own names.
 *
 *     SELECT (SELECT sum(o.v) FROM i) FROM o           one sum over o, which the inner query reads
 *     SELECT (SELECT sum(o.v + i.w) FROM i) FROM o     a sum over i for each row of o
 *
 * Most arguments contain only names, which can be resolved before binding. Arguments with a
 * subquery are bound as part of the aggregate's own query, and bound again if they turn out to
 * belong to an outer query.
 */
function levelOf(call: ExprCall, { outer, scope }: ExpressionContext): "own" | "outer" | "unknown" {
  if (outer === undefined) return "own";
  const refs = refsIn(expressionsOf(call));
  if (refs === undefined) return "unknown";
  const isOuter = refs.every((ref) => !isInScope(ref, scope) && isKnown(ref, outer));
  return isOuter && refs.length > 0 ? "outer" : "own";
}

/** Whether a bound aggregate reads only columns of outer queries. */
function readsOuterAlone({ argument, extra, filter, orderBy }: BoundAggregate): boolean {
  const sorted = orderBy.map(({ expression }) => expression);
  const parts = [argument, filter].flatMap((part) => part ?? []).concat(extra, sorted);
  return parts.some(readsOuter) && !parts.some(readsColumn);
}

/**
 * Returns the expressions that determine to which query an aggregate belongs. The star in
 * `count(*)` is not a column.
 */
function expressionsOf(call: ExprCall): readonly Expr[] {
  const { args, filter, orderBy = [], withinGroup: sort, withinGroupThen = [] } = call;
  const sorts = sort === undefined ? orderBy : [...orderBy, sort, ...withinGroupThen];
  const all = [...args, ...sorts.map(({ by }) => by)];
  if (filter !== undefined) all.push(filter);
  return all.filter((part) => !isStarRef(part));
}

/**
 * Returns the column references in the expressions; undefined if the expressions contain a query.
 */
function refsIn(expressions: readonly Expr[]): readonly ExprRef[] | undefined {
  const refs: ExprRef[] = [];
  for (const part of partsOf(expressions)) {
    if (holdsQuery(part)) return undefined;
    if ("type" in part && part.type === "ref") refs.push(part as ExprRef);
  }
  return refs;
}

function isKnown(ref: ExprRef, outer: Correlation | undefined): boolean {
  if (outer === undefined) return false;
  const { context } = outer;
  return isInScope(ref, context.scope) || isKnown(ref, context.outer);
}

/** Whether a name refers to a column or a row of this scope; `t.*` is not a column. */
function isInScope(ref: ExprRef, scope: Scope): boolean {
  if (ref.star === true) return scope.rowNamed(ref) !== undefined;
  return scope.lookup(ref) !== undefined || knowsRow(scope, ref);
}
