/** Binds one ORDER BY entry of any clause that sorts rows. */
import type { OrderByStatement } from "../../parse/ast/ast.ts";
import type { BoundExpression, BoundSort } from "../bound_expressions.ts";

/**
 * Returns the entry for a sort expression. By default, ASC puts NULL last and DESC puts it first.
 */
export function sortOf(sort: OrderByStatement, expression: BoundExpression): BoundSort {
  const isDescending = sort.order === "DESC";
  const nullsFirst = sort.nulls === undefined ? isDescending : sort.nulls === "FIRST";
  return { expression, isDescending, nullsFirst };
}
