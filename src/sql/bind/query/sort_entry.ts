/**
 * One entry of ORDER BY, wherever it stands.
 */
import type { OrderByStatement } from "../../parse/ast/ast.ts";
import type { BoundExpression, BoundSort } from "../bound_expressions.ts";

/** One entry over what it orders by. ASC puts NULL last, DESC first. */
export function sortOf(sort: OrderByStatement, expression: BoundExpression): BoundSort {
  const isDescending = sort.order === "DESC";
  const nullsFirst = sort.nulls === undefined ? isDescending : sort.nulls === "FIRST";
  return { expression, isDescending, nullsFirst };
}
