/**
 * Finds the parts of a condition that may be computed before it is known whether the caller may
 * see the row.
 *
 * Whether such a part raises an error must not reveal whether the row exists. A part that fails
 * for all rows can be computed before any row is read, but a part that is evaluated only for some
 * rows cannot.
 */
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { readsOuter } from "../bind/query/query_walk.ts";
import {
  childrenOf,
  failsHere,
  hasSubquery,
  isVolatile,
  readsColumn,
  someChild,
} from "../bind/walk.ts";

/**
 * Returns the largest parts of an expression that may fail and, if they fail, do so for every row.
 * Literals converted before the statement runs are not included, because an invalid literal fails
 * the statement anyway.
 */
export function partsThatMayFail(expression: BoundExpression): readonly BoundExpression[] {
  if (!mayFailInRun(expression)) return [];
  return dependsOnRow(expression) ? childrenOf(expression).flatMap(partsThatMayFail) : [expression];
}

/**
 * Whether an expression has parts that are evaluated only under a condition and may fail, as in
 * `$1 = 0 OR a = 10 / $1`. Such parts must not be computed before the row is known.
 */
export function mayFailIfReached(expression: BoundExpression): boolean {
  if (!mayFailInRun(expression) || !dependsOnRow(expression)) return false;
  return skippableOf(expression).some(mayFailInRun) || someChild(expression, mayFailIfReached);
}

/**
 * Whether an expression has parts that may fail depending on the row of an outer query. For a
 * given outer row, they fail for all rows of their own query or for none.
 */
export function mayFailForOuterRow(expression: BoundExpression): boolean {
  return partsThatMayFail(expression).some(readsOuter);
}

/** Returns the direct operands that are evaluated only for certain values of another operand. */
function skippableOf(expression: BoundExpression): readonly BoundExpression[] {
  switch (expression.kind) {
    case "and":
    case "or":
    case "coalesce":
    case "case":
      return childrenOf(expression).slice(1);
    default:
      return [];
  }
}

function dependsOnRow(expression: BoundExpression): boolean {
  return readsColumn(expression) || isVolatile(expression) || hasSubquery(expression);
}

/**
 * Whether evaluating an expression may raise an error, apart from errors in literals that are
 * converted in advance.
 */
function mayFailInRun(expression: BoundExpression): boolean {
  if (isReadInAdvance(expression)) return false;
  const mayFailItself = failsHere(expression) && !isArrayCall(expression);
  return mayFailItself || someChild(expression, mayFailInRun);
}

/**
 * Whether an expression is an untyped literal being converted, which happens before the statement
 * runs.
 */
function isReadInAdvance(expression: BoundExpression): boolean {
  if (expression.kind === "cast") return isUntyped(expression.operand);
  return expression.kind === "call" && expression.readsTimeWords === true
    ? expression.args.every(isUntyped)
    : false;
}

function isUntyped(value: BoundExpression): boolean {
  if (value.kind !== "constant" && value.kind !== "slot") return false;
  return value.untyped !== undefined && value.untyped.parameter === undefined;
}

function isArrayCall(expression: BoundExpression): boolean {
  return expression.kind === "call" && expression.name === "array";
}
