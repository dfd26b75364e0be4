/**
 * Which columns the clauses of a query read: what no clause reads is not read from its table.
 */
import type { BoundExpression, BoundFrom, BoundSelect } from "../bind/bound.ts";
import { columnIdsIn, conjunctsOf } from "../bind/walk.ts";
import { expressionsOfCall } from "../bind/window_walk.ts";

/** Columns that a clause other than WHERE and ON reads. */
export function neededColumns(select: BoundSelect): ReadonlySet<number> {
  const needed = new Set<number>();
  const add = (expression: BoundExpression | undefined): void => {
    if (expression !== undefined) columnIdsIn(expression, needed);
  };
  for (const value of capturedIn(select.from)) add(value);
  for (const value of mergedIn(select.from)) add(value);
  add(select.having);
  for (const call of select.windows) for (const value of expressionsOfCall(call)) add(value);
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

/** The conditions of ON, of a whole tree of joins. */
export function joinConditions(from: BoundFrom | undefined): readonly BoundExpression[] {
  if (from?.kind !== "join") return [];
  const own = conjunctsOf(from.condition);
  return [...own, ...joinConditions(from.left), ...joinConditions(from.right)];
}

/** What LATERAL items read of the rows before them. */
function capturedIn(from: BoundFrom | undefined): readonly BoundExpression[] {
  if (from?.kind !== "join") return [];
  const own = (from.captures ?? []).map(({ value }) => value);
  return [...own, ...capturedIn(from.left), ...capturedIn(from.right)];
}

/** What columns that a full join merged are computed from. */
function mergedIn(from: BoundFrom | undefined): readonly BoundExpression[] {
  if (from?.kind !== "join") return [];
  const own = (from.merged ?? []).map(({ expression }) => expression);
  return [...own, ...mergedIn(from.left), ...mergedIn(from.right)];
}

/** These columns, and those that conditions read. */
export function withColumnsOf(
  conditions: readonly BoundExpression[],
  columns: ReadonlySet<number>,
): ReadonlySet<number> {
  const all = new Set(columns);
  for (const condition of conditions) columnIdsIn(condition, all);
  return all;
}
