/**
 * Decides whether a query has the same result in every evaluation at the same seq. This is not the
 * case if the result depends on the order in which rows are read: sums of doubles round
 * differently, and any of the rows that tie in an ORDER BY may come first.
 *
 * Such a result may be shown, because SQL allows each of the possible results. But it must not be
 * added to kept state, because a later evaluation might not remove exactly the same values.
 */

import { isLooselyEqual } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundAggregate, BoundExpression } from "../bind/bound_expressions.ts";
import { expressionsIn, relationsIn } from "../bind/query/query_walk.ts";
import { showsFirstForm } from "./tallies.ts";

/** Aggregates whose result does not depend on the order of the rows, for any argument type. */
const FREE_OF_ORDER: ReadonlySet<string> = new Set([
  "count",
  "min",
  "max",
  "bool_and",
  "bool_or",
  "every",
]);

function isExactAggregate({ form }: Pick<BoundAggregate, "form">): boolean {
  if (showsFirstForm({ form })) return false;
  if (form.argumentTypes.some(isLooselyEqual)) return false;
  if (FREE_OF_ORDER.has(form.name)) return true;
  if (form.name !== "sum" && form.name !== "avg") return false;
  // Sums of NUMERIC are exact, as are all aggregates from which a value can be removed.
  return form.argumentTypes[0]?.kind === "numeric" || form.create().remove !== undefined;
}

export function isExactQuery(query: BoundSelect): boolean {
  const { aggregates, distinct, expansions, groupBy, isAggregated, limit, offset, windows } = query;
  if (windows.length > 0 || expansions.length > 0 || typeof distinct === "object") return false;
  if (!aggregates.every(isExactAggregate)) return false;
  if (limit === undefined && offset === undefined) return true;
  return isAggregated ? groupBy.length === 0 : isOrderedByKey(query);
}

/** Returns the expressions of a block that are computed from its joins. */
export function expressionsOfBlock(select: BoundSelect): readonly BoundExpression[] {
  // WHERE is a condition of the joins; it is not computed from them.
  return expressionsIn({ ...select, from: undefined, where: undefined });
}

/** Whether ORDER BY distinguishes all rows, because it contains the primary keys of all tables. */
function isOrderedByKey(query: BoundSelect): boolean {
  const sorted = new Set(
    query.orderBy.map(({ expression }) => {
      return expression.kind === "column" ? expression.column.id : undefined;
    }),
  );
  return relationsIn(query).every((relation) => {
    if (relation.kind !== "table" || relation.table.primaryKey.length === 0) return false;
    return relation.table.primaryKey.every((columnId) => {
      const own = relation.columns.find(({ origin }) => origin?.columnId === columnId);
      return own !== undefined && sorted.has(own.id);
    });
  });
}
