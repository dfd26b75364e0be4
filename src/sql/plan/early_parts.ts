/**
 * Finds what a condition may compute before its row is known to be permitted.
 *
 * An error of such a computation must be raised whether or not the row exists. The parts that fail
 * on all rows can be computed before any row. A part that is evaluated for some rows only cannot.
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
 * Returns the largest parts of an expression that may fail, and then fail on all rows. Literals
 * that are read before the statement runs are left out, because they fail it in any case.
 */
export function partsThatMayFail(expression: BoundExpression): readonly BoundExpression[] {
  if (!mayFailInRun(expression)) return [];
  return dependsOnRow(expression) ? childrenOf(expression).flatMap(partsThatMayFail) : [expression];
}

/**
 * Whether an expression has parts that must not be computed before its row is known, because their
 * errors belong to some evaluations only: parts behind a condition, as in `$1 = 0 OR a = 10 / $1`,
 * and parts that read the row of an outer query.
 */
export function mayFailIfReached(expression: BoundExpression): boolean {
  if (!mayFailInRun(expression)) return false;
  if (!dependsOnRow(expression)) return readsOuter(expression);
  return skippableOf(expression).some(mayFailInRun) || someChild(expression, mayFailIfReached);
}

/** Returns the direct operands whose evaluation depends on the value of another operand. */
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

/** Whether an expression may raise an error that reading its literals in advance does not raise. */
function mayFailInRun(expression: BoundExpression): boolean {
  if (isReadInAdvance(expression)) return false;
  const mayFailItself = failsHere(expression) && !isArrayCall(expression);
  return mayFailItself || someChild(expression, mayFailInRun);
}

/** Whether an expression converts an untyped literal, which is read before the statement runs. */
function isReadInAdvance(expression: BoundExpression): boolean {
  if (expression.kind === "cast") return isUntyped(expression.operand);
  return expression.kind === "call" && expression.readsTimeWords === true
    ? expression.args.every(isUntyped)
    : false;
}

function isUntyped(value: BoundExpression): boolean {
  return (value.kind === "constant" || value.kind === "slot") && value.untyped !== undefined;
}

function isArrayCall(expression: BoundExpression): boolean {
  return expression.kind === "call" && expression.name === "array";
}
