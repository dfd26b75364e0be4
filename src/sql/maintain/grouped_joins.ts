/**
 * Rewrites a join with a grouped query as a LATERAL join, so that for each row, only the group
 * with which it joins is computed:
 *
 *     a JOIN (SELECT k, count(*) AS n FROM b GROUP BY k) g ON g.k = a.id
 *     a JOIN LATERAL (SELECT k, count(*) AS n FROM b WHERE k = a.id GROUP BY k) g ON g.k = a.id
 */
import type { BoundFrom, BoundJoin, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression, OuterReference } from "../bind/bound_expressions.ts";
import { compared } from "../bind/change/index_terms.ts";
import { columnIdsIn, conjunctionOf, conjunctsOf } from "../bind/walk.ts";
import { equalitySides } from "./equality_sides.ts";

interface GroupedSide {
  readonly rest: BoundFrom;
  readonly columns: BoundRelation["columns"];
  readonly query: BoundSelect;
}

/**
 * Returns the join rewritten as a LATERAL join; undefined unless one side is a grouped query and
 * the join condition determines its grouping key.
 */
export function groupsAsLateral(from: BoundJoin): BoundJoin | undefined {
  const { condition, join, left, outerReferences, right } = from;
  if (join === "full" || outerReferences !== undefined) return undefined;
  const sides = [groupedSide(left, right), join === "left" ? undefined : groupedSide(right, left)];
  for (const side of sides) {
    const lateral = side && lateralOf(side, conjunctsOf(condition));
    if (lateral === undefined) continue;
    return { kind: "join", join: join === "left" ? "left" : "inner", condition, ...lateral };
  }
  return undefined;
}

function groupedSide(rest: BoundFrom, from: BoundFrom): GroupedSide | undefined {
  if (from.kind !== "relation") return undefined;
  const { relation } = from;
  if (relation.kind !== "query" && relation.kind !== "cte") return undefined;
  const query = relation.kind === "query" ? relation.query : relation.cte.query;
  return isGrouped(query) ? { rest, columns: relation.columns, query } : undefined;
}

/** Whether each row of a query comes from a single group. */
function isGrouped(query: BoundSelect): boolean {
  const { distinct, expansions, groupBy, groupingSets, limit, offset, windows } = query;
  const isLimited = limit !== undefined || offset !== undefined;
  const isPlain = windows.length === 0 && expansions.length === 0 && distinct === "none";
  return groupBy.length > 0 && groupingSets === undefined && isPlain && !isLimited;
}

function lateralOf(
  { columns, query, rest }: GroupedSide,
  conditions: readonly BoundExpression[],
): Pick<BoundJoin, "left" | "outerReferences" | "right"> | undefined {
  const outerReferences: OuterReference[] = [];
  const keys: BoundExpression[] = [];
  for (const condition of conditions) {
    const key = keyIn(condition, { columns, query, rest });
    if (key === undefined) continue;
    // The id of the new outer reference is negative, so that it differs from the id of every
    // reference in the statement.
    const id = -1 - outerReferences.length;
    outerReferences.push({ id, value: key.value });
    keys.push(compared("=", key.key, { kind: "outer", type: key.key.type, id }));
  }
  if (keys.length === 0) return undefined;
  const where = conjunctionOf([...conjunctsOf(query.where), ...keys]);
  const relation = { kind: "query", query: { ...query, where }, alias: "", columns } as const;
  return { left: rest, right: { kind: "relation", relation }, outerReferences };
}

/**
 * Returns the grouping key and its value if a condition has the form `grouping key = value of the
 * other side`; otherwise undefined.
 */
function keyIn(
  condition: BoundExpression,
  { columns, query }: GroupedSide,
): { readonly key: BoundExpression; readonly value: BoundExpression } | undefined {
  for (const [column, value] of equalitySides(condition)) {
    if (column.kind !== "column") continue;
    const index = columns.findIndex(({ id }) => id === column.column.id);
    const output = query.outputs[index]?.expression;
    if (output?.kind !== "column") continue;
    const group = query.groupBy.find((each) => each.column.id === output.column.id);
    const read = columnIdsIn(value);
    if (group !== undefined && !columns.some(({ id }) => read.has(id))) {
      return { key: group.expression, value };
    }
  }
  return undefined;
}
