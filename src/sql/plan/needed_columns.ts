/**
 * Which columns the clauses of a query read: what no clause reads is not read from its table.
 */
import type { BoundFrom, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { argumentsOf } from "../bind/query/query_walk.ts";
import { expressionsOfCall } from "../bind/query/window_walk.ts";
import { columnIdsIn } from "../bind/walk.ts";

/** Columns that a clause other than WHERE and ON reads. */
export function neededColumns(select: BoundSelect): ReadonlySet<number> {
  const needed = new Set<number>();
  const add = (expression: BoundExpression | undefined): void => {
    if (expression !== undefined) columnIdsIn(expression, needed);
  };
  addJoins(select.from, add);
  add(select.having);
  for (const call of select.windows) for (const value of expressionsOfCall(call)) add(value);
  for (const argument of argumentsOf(select.expansions)) add(argument);
  for (const { expression } of select.groupBy) add(expression);
  for (const { expression } of select.outputs) add(expression);
  for (const { expression } of select.orderBy) add(expression);
  if (typeof select.distinct === "object") for (const on of select.distinct.on) add(on);
  for (const { argument, extra, filter, orderBy } of select.aggregates) {
    add(argument);
    add(filter);
    for (const expression of extra) add(expression);
    for (const { expression } of orderBy) add(expression);
  }
  return needed;
}

/** Rows of expressions read the rows of the relation beside them. */
function cellsBeside({ isBeside, right }: Extract<BoundFrom, { kind: "join" }>): BoundExpression[] {
  if (isBeside !== true || right.kind !== "relation") return [];
  return right.relation.kind === "values" ? right.relation.rows.flat() : [];
}

/** What LATERAL items read of the rows before them, and what full joins merge their columns of. */
function addJoins(
  from: BoundFrom | undefined,
  add: (expression: BoundExpression | undefined) => void,
): void {
  if (from?.kind !== "join") return;
  for (const { value } of from.captures ?? []) add(value);
  for (const cell of cellsBeside(from)) add(cell);
  for (const { expression } of from.merged ?? []) add(expression);
  addJoins(from.left, add);
  addJoins(from.right, add);
}
