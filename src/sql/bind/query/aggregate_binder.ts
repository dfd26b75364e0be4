/**
 * Aggregate calls and GROUPING: what the block around them computes for each group.
 */

import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN, INT } from "../../../types/mod.ts";
import {
  type AggregateForm,
  isOrderedSetAggregate,
  resolveAggregate,
} from "../../functions/aggregate/aggregates.ts";
import type { Expr, ExprCall } from "../../parse/ast/ast.ts";
import { expressionToSql } from "../../parse/print/print_queries.ts";
import { type Bind, type Place, unknownFunction } from "../binding.ts";
import type { BoundAggregate, BoundExpression, BoundSort } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { castTo } from "../expression/casts.ts";
import { bindRow, jsonOfRow, misusedRow, presenceOf, takesRows } from "../expression/row_values.ts";
import { sameExpression } from "../walk.ts";
import { levelOf, readsOuterAlone } from "./outer_aggregates.ts";
import { sortOf } from "./sort_entry.ts";

/** An aggregate call without OVER. @throws {DatabaseError} INVALID_QUERY, FUNCTION_NOT_FOUND */
export function bindAggregate(call: ExprCall, place: Place, bind: Bind): BoundExpression {
  const { outer, sink } = place;
  const level = levelOf(call, place);
  if (level === "own" && sink === undefined) throw misplaced(call, place);
  if (outer !== undefined && level === "outer") {
    return outer.capture(bindAggregate(call, outer.place, bind));
  }
  const undo = level === "unknown" ? outer?.mark() : undefined;
  const made = boundAggregate(call, place, bind);
  if (outer !== undefined && undo !== undefined && readsOuterAlone(made)) {
    undo();
    place.statement.bindAgain(call);
    return outer.capture(bindAggregate(call, outer.place, bind));
  }
  if (sink === undefined) throw misplaced(call, place);
  const known = sink.known.find(made);
  if (known === undefined) {
    sink.aggregates.push(made);
    sink.known.add(made);
  }
  return columnValue((known ?? made).column);
}

function misplaced({ _location, function: { name } }: ExprCall, { clause }: Place): DatabaseError {
  return new DatabaseError("INVALID_QUERY", `Cannot use aggregate ${name} in ${clause}`, {
    position: _location.start,
    ...(clause === "WHERE" ? { hint: "put conditions on aggregates into HAVING" } : {}),
  });
}

function boundAggregate(call: ExprCall, place: Place, bind: Bind): BoundAggregate {
  const { name } = call.function;
  const inner: Place = {
    ...place,
    sink: undefined,
    windows: undefined,
    expansions: undefined,
    clause: `the arguments of ${name}`,
  };
  const { args, form, given } = bindAggregateArguments(call, inner, bind);
  const isDistinct = call.distinct === "distinct";
  const orderBy =
    form.isOrderedSet === true ? withinGroup(call, args) : ordersOf(call, given, { inner, bind });
  const [argument, ...extra] = args;
  return {
    column: place.statement.newColumn({ name, type: form.result }),
    form,
    argument,
    extra,
    isDistinct,
    filter: call.filter === undefined ? undefined : bindFilter(call.filter, inner, bind),
    // Distinct values come in their order, unless the text wants another one.
    orderBy: orderBy ?? (isDistinct && form.keepsOrder === true ? args.map(ascending) : []),
  };
}

function ascending(expression: BoundExpression): BoundSort {
  return { expression, isDescending: false, nullsFirst: false };
}

/**
 * ORDER BY in the parentheses; behind DISTINCT it can only be by what tells the values apart, since
 * of equal ones any might be asked for something else.
 */
function ordersOf(
  call: ExprCall,
  given: readonly BoundExpression[] | undefined,
  { bind, inner }: { bind: Bind; inner: Place },
): BoundSort[] | undefined {
  if (call.distinct !== "distinct") {
    return call.orderBy?.map((sort) => sortOf(sort, bind(sort.by, inner)));
  }
  return call.orderBy?.flatMap((sort) => {
    const { by } = sort;
    if (given === undefined) {
      // The order of rows that are counted changes nothing.
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
    `Cannot order ${name}(DISTINCT …) by this: it must be one of its arguments`,
    { position: by._location.start },
  );
}

/** The order of an ordered-set aggregate, whose last argument is what it orders by. */
function withinGroup(call: ExprCall, args: readonly BoundExpression[]): BoundSort[] {
  const { withinGroup: sort } = call;
  const expression = args.at(-1);
  return sort === undefined || expression === undefined ? [] : [sortOf(sort, expression)];
}

/**
 * @throws {DatabaseError} INVALID_QUERY for an order where none belongs, or none where one does.
 */
function checkOrder(call: ExprCall, name: string): void {
  const position = call._location.start;
  if (!isOrderedSetAggregate(name)) {
    if (call.withinGroup === undefined) return;
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot use WITHIN GROUP with ${name}: it is no ordered-set aggregate`,
      { position, hint: `write ${name}(… ORDER BY …)` },
    );
  }
  if (call.withinGroup === undefined) {
    throw new DatabaseError("INVALID_QUERY", `Cannot call ${name} without WITHIN GROUP`, {
      position,
      hint: `write ${name}(…) WITHIN GROUP (ORDER BY …)`,
    });
  }
  if (call.distinct === undefined && call.orderBy === undefined) return;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot call ${name} with DISTINCT or ORDER BY in its parentheses beside WITHIN GROUP`,
    { position },
  );
}

export interface AggregateArguments {
  readonly form: AggregateForm;
  /** Cast to what the form takes. */
  readonly args: readonly BoundExpression[];
  /** As they are written; undefined for a row. */
  readonly given: readonly BoundExpression[] | undefined;
}

/** The arguments of an aggregate. @throws {DatabaseError} FUNCTION_NOT_FOUND, INVALID_QUERY */
export function bindAggregateArguments(
  call: ExprCall,
  inner: Place,
  bind: Bind,
): AggregateArguments {
  const { name } = call.function;
  checkOrder(call, name);
  const counted = countedRows(call, inner, bind);
  if (counted !== undefined) return counted;
  const isStar = call.args.length === 1 && isStarRef(call.args[0]);
  // What an ordered-set aggregate orders by is its last argument.
  const ordered = call.withinGroup === undefined ? [] : [call.withinGroup.by];
  const nodes = isStar ? [] : [...call.args, ...ordered];
  const args = nodes.map((argument) => bindArgument(call, argument, inner, bind));
  if (!isStar && args.length === 0) throw unknownFunction(name, [], call);
  const types = args.map((argument) => argument.type);
  const form = resolveAggregate(name, types);
  if (form === undefined) throw unknownFunction(name, types, call);
  const cast = args.map((argument, i) =>
    castTo(argument, {
      to: form.argumentTypes[i] ?? argument.type,
      mode: "implicit",
      node: nodes[i],
    }),
  );
  return { form, args: cast, given: args };
}

/**
 * `count(DISTINCT (a, b))`: DISTINCT tells rows apart by all arguments, and count takes the first
 * of them, which says that there is a row.
 */
function countedRows(call: ExprCall, inner: Place, bind: Bind): AggregateArguments | undefined {
  const [argument] = call.args;
  const { name } = call.function;
  if (name !== "count" || call.distinct !== "distinct" || call.args.length > 1) return undefined;
  if (argument === undefined || isStarRef(argument)) return undefined;
  const row = bindRow(argument, inner, bind);
  if (row === undefined) return undefined;
  const args = [presenceOf(row), ...row.fields.map(({ value }) => value)];
  const form = resolveAggregate(name, [BOOLEAN]);
  return { form: defined(form, "count takes any value"), args, given: undefined };
}

/** count and the aggregates of JSON take rows as a whole. */
function bindArgument(call: ExprCall, argument: Expr, inner: Place, bind: Bind): BoundExpression {
  const { name } = call.function;
  const isCount = name === "count";
  const row = isCount || takesRows(name) ? bindRow(argument, inner, bind) : undefined;
  if (row === undefined) return bind(argument, inner);
  if (call.distinct === "distinct") throw misusedRow(argument, "a row behind DISTINCT");
  return isCount ? presenceOf(row) : jsonOfRow(row);
}

export function bindFilter(condition: Expr, place: Place, bind: Bind): BoundExpression {
  return castTo(bind(condition, place), { to: BOOLEAN, mode: "implicit", node: condition });
}

function isStarRef(expression: Expr | undefined): boolean {
  return expression?.type === "ref" && expression.star === true && expression.table === undefined;
}

/** Arguments of GROUPING: each is a bit of a result that is an INT. */
const GROUPING_ARGUMENTS_MAX = 31;

/** Name of the call that GROUPING is until its block knows the groups. */
export const GROUPING = "grouping";

/** GROUPING(…) stands for itself until the block knows its groups. */
export function bindGrouping(call: ExprCall, place: Place, bind: Bind): BoundExpression {
  const position = call._location.start;
  const { outer } = place;
  if (outer !== undefined && levelOf(call, place) === "outer") {
    return outer.capture(bindGrouping(call, outer.place, bind));
  }
  if (place.sink === undefined) {
    throw new DatabaseError("INVALID_QUERY", `Cannot use GROUPING in ${place.clause}`, {
      position,
    });
  }
  if (call.args.length === 0 || call.args.length > GROUPING_ARGUMENTS_MAX) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call GROUPING with ${call.args.length} arguments: it takes 1 to ${GROUPING_ARGUMENTS_MAX}`,
      { position },
    );
  }
  const inner: Place = {
    ...place,
    sink: undefined,
    windows: undefined,
    expansions: undefined,
    clause: "GROUPING",
  };
  const args = call.args.map((argument) => bind(argument, inner));
  place.sink.groupings.push({ args, start: position });
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
