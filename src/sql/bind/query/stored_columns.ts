/**
 * Which stored columns a bound query needs: of its tables, and of those in the queries inside it.
 */
import type { BoundCte, BoundSelect } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { childrenOf } from "../walk.ts";
import { expressionsIn, relationsIn } from "./query_walk.ts";

/** Column ids by table id. */
export function storedColumnsOf(query: BoundSelect): ReadonlyMap<number, ReadonlySet<number>> {
  const used = new Map<number, Set<number>>();
  const seen = new Set<BoundCte>();
  const visitExpression = (expression: BoundExpression): void => {
    if (expression.kind === "column" && expression.column.origin !== undefined) {
      const { columnId, table } = expression.column.origin;
      const columns = used.get(table.tableId) ?? new Set<number>();
      used.set(table.tableId, columns.add(columnId));
    }
    if (expression.kind === "subquery") visit(expression.subquery.query);
    for (const child of childrenOf(expression)) visitExpression(child);
  };
  const visit = (select: BoundSelect): void => {
    for (const expression of expressionsIn(select)) visitExpression(expression);
    for (const relation of relationsIn(select)) {
      if (relation.kind !== "cte" || seen.has(relation.cte)) continue;
      seen.add(relation.cte);
      visit(relation.cte.query);
    }
  };
  visit(query);
  return used;
}
