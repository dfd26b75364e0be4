/**
 * To which query an aggregate belongs: the nearest one of which its arguments, its order or its
 * FILTER read a column, and its own if they read none.
 *
 *     SELECT (SELECT sum(o.v) FROM i) FROM o           one sum over o, which the inner query reads
 *     SELECT (SELECT sum(o.v + i.w) FROM i) FROM o     a sum over i for each row of o
 *
 * Most arguments hold names alone, and are looked through as they are written. A query in them has
 * names of its own, so they are bound as if they were of their own query, and once more if not.
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
 * Whether a call belongs to the query of its place or to one around it; unknown where a query in
 * its arguments has names of its own.
 */
export function levelOf(call: ExprCall, { outer, scope }: Place): "own" | "outer" | "unknown" {
  if (outer === undefined) return "own";
  const refs = refsIn(expressionsOf(call));
  if (refs === undefined) return "unknown";
  const isOuter = refs.every((ref) => !isInScope(ref, scope) && isKnown(ref, outer));
  return isOuter && refs.length > 0 ? "outer" : "own";
}

/** Whether an aggregate, as it was bound, reads columns of a query around its own and no others. */
export function readsOuterAlone({ argument, extra, filter, orderBy }: BoundAggregate): boolean {
  const sorted = orderBy.map(({ expression }) => expression);
  const parts = [argument, filter].flatMap((part) => part ?? []).concat(extra, sorted);
  return parts.some(readsOuter) && !parts.some(readsColumn);
}

/** All that decides; the star of `count(*)` is no column. */
function expressionsOf({ args, filter, orderBy = [], withinGroup }: ExprCall): readonly Expr[] {
  const sorts = withinGroup === undefined ? orderBy : [...orderBy, withinGroup];
  const all = [...args, ...sorts.map(({ by }) => by)];
  if (filter !== undefined) all.push(filter);
  return all.filter((part) => !isStarRef(part));
}

function isStarRef(expression: Expr): boolean {
  return expression.type === "ref" && expression.star === true && expression.table === undefined;
}

/** The columns that are named; undefined where there is a query, whose names are its own. */
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

/** Whether a name means a column or a row here; `t.*` is no column. */
function isInScope(ref: ExprRef, scope: Scope): boolean {
  if (ref.star === true) return scope.rowNamed(ref) !== undefined;
  return scope.lookup(ref) !== undefined || knowsRow(scope, ref);
}
