/** Analyses equality conditions of the form `one = other`. */
import type { BoundExpression } from "../bind/bound_expressions.ts";

/**
 * Returns the two sides of an equality in both orders, because a caller may look for a match on
 * either side. For any other condition, the result is empty.
 */
export function equalitySides(
  condition: BoundExpression,
): readonly (readonly [one: BoundExpression, other: BoundExpression])[] {
  if (condition.kind !== "compare" || condition.operator !== "=") return [];
  const { left, right } = condition;
  return [
    [left, right],
    [right, left],
  ];
}
