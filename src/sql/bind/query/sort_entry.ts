/** Binds an ORDER BY entry, in any clause that sorts rows. */
import { collationOf, mixedCollations } from "../../../types/mod.ts";
import { requireOrder } from "../../functions/base/required_order.ts";
import type { OrderByStatement } from "../../parse/ast/ast.ts";
import type { BoundExpression, BoundSort } from "../bound_expressions.ts";

/**
 * Returns the entry for a sort expression. By default, ASC puts NULL last and DESC puts it first.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if the values cannot be sorted, or if parts of a string
 *   expression have different collations.
 */
export function sortOf(sort: OrderByStatement, expression: BoundExpression): BoundSort {
  requireOrder(expression.type, "ORDER BY", sort.by._location.start);
  const collation = collationOf(expression.type);
  if (collation?.kind === "mixed") throw mixedCollations(collation);
  const isDescending = sort.order === "DESC";
  const nullsFirst = sort.nulls === undefined ? isDescending : sort.nulls === "FIRST";
  return { expression, isDescending, nullsFirst };
}
