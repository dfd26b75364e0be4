/**
 * Finds the query to which an aggregate belongs: the nearest query whose columns its arguments,
 * ORDER BY or FILTER read, or its own query if they read no columns.
 *
 *     SELECT (SELECT sum(o.v) FROM i) FROM o           one sum over o, which the inner query reads
 *     SELECT (SELECT sum(o.v + i.w) FROM i) FROM o     a sum over i for each row of o
 *
 * Most arguments contain only names, which can be resolved before binding. A subquery in them has
 * names of its own, so such arguments are bound as part of the aggregate's own query, and bound
 * again if they turn out to belong further out.
 */
import type { Expr, ExprCall, ExprRef } from "../../parse/ast/ast.ts";
import { holdsQuery } from "../../parse/ast/query_nodes.ts";
import { partsOf } from "../../parse/ast/tree_parts.ts";
import type { Correlation, Place } from "../binding.ts";
import type { BoundAggregate } from "../bound_expressions.ts";
import { knowsRow } from "../expression/row_values.ts";
import type { Scope } from "../scope.ts";
import { readsColumn } from "../walk.ts";
import { readsOuter } from "./query_walk.ts";

/**
 * Whether a call belongs to its own query or to an outer one; unknown if its arguments contain a
 * query, which has names of its own.
 */
export function levelOf(call: ExprCall, { outer, scope }: Place): "own" | "outer" | "unknown" {
  if (outer === undefined) return "own";
  const refs = refsIn(expressionsOf(call));
  if (refs === undefined) return "unknown";
  const isOuter = refs.every((ref) => !isInScope(ref, scope) && isKnown(ref, outer));
  return isOuter && refs.length > 0 ? "outer" : "own";
}

/** Whether a bound aggregate reads columns of outer queries only. */
export function readsOuterAlone({ argument, extra, filter, orderBy }: BoundAggregate): boolean {
  const sorted = orderBy.map(({ expression }) => expression);
  const parts = [argument, filter].flatMap((part) => part ?? []).concat(extra, sorted);
  return parts.some(readsOuter) && !parts.some(readsColumn);
}

/** All expressions that decide the level; the star of `count(*)` is not a column. */
function expressionsOf({ args, filter, orderBy = [], withinGroup }: ExprCall): readonly Expr[] {
  const sorts = withinGroup === undefined ? orderBy : [...orderBy, withinGroup];
  const all = [...args, ...sorts.map(({ by }) => by)];
  if (filter !== undefined) all.push(filter);
  return all.filter((part) => !isStarRef(part));
}

function isStarRef(expression: Expr): boolean {
  return expression.type === "ref" && expression.star === true && expression.table === undefined;
}

/** The column references; undefined if there is a query among the expressions. */
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
  const { place } = outer;
  return isInScope(ref, place.scope) || isKnown(ref, place.outer);
}

/** Whether a name refers to a column or a row of this scope; `t.*` is not a column. */
function isInScope(ref: ExprRef, scope: Scope): boolean {
  if (ref.star === true) return scope.rowNamed(ref) !== undefined;
  return scope.lookup(ref) !== undefined || knowsRow(scope, ref);
}
