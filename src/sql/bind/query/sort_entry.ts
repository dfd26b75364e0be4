/** Binds one ORDER BY entry of any kind of clause. */
import type { OrderByStatement } from "../../parse/ast/ast.ts";
import type { BoundExpression, BoundSort } from "../bound_expressions.ts";

/** Returns the entry for an ordering expression. ASC puts NULL last, DESC first. */
export function sortOf(sort: OrderByStatement, expression: BoundExpression): BoundSort {
  const isDescending = sort.order === "DESC";
  const nullsFirst = sort.nulls === undefined ? isDescending : sort.nulls === "FIRST";
  return { expression, isDescending, nullsFirst };
}
