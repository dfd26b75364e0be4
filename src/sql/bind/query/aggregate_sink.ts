/**
 * Collects the aggregates of a query block. An aggregate that is written twice is computed once,
 * and DISTINCT and ORDER BY need to know whether two expressions are the same.
 */
import { Alike, formOfList } from "../alike.ts";
import type { AggregateSink } from "../binding.ts";
import type { BoundAggregate } from "../bound_expressions.ts";
import { sameList, sameOptional, sameSorts } from "../walk.ts";

/** Makes the collector for the aggregates of one query block. */
export function newAggregateSink(): AggregateSink {
  const known = new Alike({ formOf: formOfAggregate, areAlike: isSameAggregate });
  return { aggregates: [], known, groupings: [] };
}

function formOfAggregate(aggregate: BoundAggregate): string {
  const { argument, extra, filter, form, orderBy } = aggregate;
  const sorts = orderBy.map(({ expression }) => expression);
  return `${form.name} ${formOfList([argument, ...extra, filter, ...sorts])}`;
}

function isSameAggregate(left: BoundAggregate, right: BoundAggregate): boolean {
  return (
    left.form.name === right.form.name &&
    left.isDistinct === right.isDistinct &&
    sameOptional(left.argument, right.argument) &&
    sameList(left.extra, right.extra) &&
    sameOptional(left.filter, right.filter) &&
    sameSorts(left.orderBy, right.orderBy)
  );
}
