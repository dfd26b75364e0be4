/**
 * The places in which a recursive query may not read itself: the nullable side of an outer join,
 * behind EXCEPT, beside INTERSECT ALL or EXCEPT ALL, and inside a query that aggregates. There,
 * more rows in one step could mean fewer in the next, and an empty step could still produce rows,
 * so the recursion might never end. INTERSECT ALL and EXCEPT ALL depend on how often a row occurs
 * in a step. A WITH entry that reads the recursion has the rows of one step, and may be read
 * anywhere.
 */
import type { BoundFrom, BoundRecursion, BoundSelect } from "../bound.ts";

/** The first such place of a query, in words; undefined if there is none. */
export function refusedPlaceOf(query: BoundSelect, recursion: BoundRecursion): string | undefined {
  return placeInQuery(query, recursion, undefined);
}

function placeInQuery(
  query: BoundSelect,
  recursion: BoundRecursion,
  around: string | undefined,
): string | undefined {
  // GROUP BY is allowed, but a group without keys exists even for an empty step.
  const isOver = query.aggregates.length > 0 || (query.isAggregated && query.groupBy.length === 0);
  return placeIn(query.from, recursion, isOver ? (around ?? "a query that aggregates") : around);
}

function placeIn(
  from: BoundFrom | undefined,
  recursion: BoundRecursion,
  around: string | undefined,
): string | undefined {
  if (from === undefined) return undefined;
  if (from.kind === "join") {
    const open = around ?? "an outer join that may have no row of it";
    const left = placeIn(from.left, recursion, from.join === "full" ? open : around);
    const isOpen = from.join === "left" || from.join === "full";
    return left ?? placeIn(from.right, recursion, isOpen ? open : around);
  }
  const { relation } = from;
  switch (relation.kind) {
    case "working":
      return relation.recursion === recursion ? around : undefined;
    case "query":
      if (relation.isEntry === true) return undefined;
      return placeInQuery(relation.query, recursion, around);
    case "set": {
      const isCounted = relation.isAll && relation.operator !== "union";
      const before = isCounted ? (around ?? `${relation.operator.toUpperCase()} ALL`) : around;
      const behind = relation.operator === "except" ? (around ?? "EXCEPT") : before;
      return (
        placeInQuery(relation.left, recursion, before) ??
        placeInQuery(relation.right, recursion, behind)
      );
    }
    default:
      return undefined;
  }
}
