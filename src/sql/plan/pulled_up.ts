/**
 * Replaces lateral joins by rows made of expressions, which are computed next to each row that
 * they read. A lateral join would instead run a plan for each row.
 *
 *     t, LATERAL (VALUES (t.a, 'a'), (t.b, 'b')) x(v, n) JOIN d ON d.v = x.v
 *     becomes   (t beside two rows of expressions) JOIN d ON d.v = x.v
 *
 * The other relations can then be joined by their keys, like any other relation.
 */
import type { BoundFrom, BoundJoin, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression, OuterReference } from "../bind/bound_expressions.ts";
import { readsAround } from "../bind/query/query_walk.ts";
import { conjunctionOf, conjunctsOf, mapChildren } from "../bind/walk.ts";

type ValuesRelation = Extract<BoundRelation, { kind: "values" }>;

/** Whether computing all groups once is cheaper than running a query for each left row. */
export type ChoosesGroups = (lateral: BoundJoin) => boolean;

/**
 * Replaces each lateral join whose right side only computes expressions, or for which computing
 * all groups once is cheaper.
 */
export function withoutLateralRows(select: BoundSelect, choosesGroups: ChoosesGroups): BoundSelect {
  const from = select.from === undefined ? undefined : pulledUp(select.from, choosesGroups);
  return from === select.from ? select : { ...select, from };
}

function pulledUp(from: BoundFrom, choosesGroups: ChoosesGroups): BoundFrom {
  if (from.kind === "relation") return from;
  const left = pulledUp(from.left, choosesGroups);
  const right = pulledUp(from.right, choosesGroups);
  const same = left === from.left && right === from.right ? from : { ...from, left, right };
  const { asGroups, outerReferences } = same;
  if (outerReferences === undefined) return same;
  if (asGroups === undefined) return besideLeft(same, outerReferences) ?? same;
  // The decision is stored in the join node, so that it need not be made again for each enclosing
  // node.
  return choosesGroups(same)
    ? { ...asGroups, left: { ...asGroups.left, left } }
    : { ...same, asGroups: undefined };
}

/**
 * Rewrites a lateral join whose right side is a list of rows made of expressions, possibly joined
 * with relations. Returns undefined for any other right side.
 */
function besideLeft(
  from: BoundJoin,
  outerReferences: readonly OuterReference[],
): BoundFrom | undefined {
  const parts: BoundRelation[] = [];
  const conditions: BoundExpression[] = [];
  if (from.join === "full" || !flatten(from.right, parts, conditions)) return undefined;
  // A list of rows is never empty, so a left join with such a list is an inner join. A joined
  // relation, however, may be empty.
  const isOpen = from.join === "left";
  if (isOpen && (parts.length > 1 || !holdsAlways(from.condition))) return undefined;
  const rows = parts.map(rowsOf);
  const others = parts.filter((_, i) => rows[i] === undefined);
  if (others.length === parts.length || others.some(mayReadAround)) return undefined;
  const read = new Map(outerReferences.map(({ id, value }) => [id, value]));
  const all = [...conditions, ...conjunctsOf(from.condition)].map((each) => instead(each, read));
  const values = rows.flatMap((each) => each ?? []).map((each) => besides(each, read));
  const joined = [
    ...values.map((relation) => ({ relation, isBeside: true as const })),
    ...others.map((relation) => ({ relation, isBeside: undefined })),
  ];
  let whole = from.left;
  for (const [i, { isBeside, relation }] of joined.entries()) {
    const condition = i === joined.length - 1 ? conjunctionOf(all.filter(isAsked)) : undefined;
    const join = condition === undefined ? "cross" : "inner";
    const right: BoundFrom = { kind: "relation", relation };
    const next: BoundFrom = { kind: "join", join, left: whole, right, condition };
    whole = isBeside === true ? { ...next, isBeside } : next;
  }
  return whole;
}

function besides(
  values: ValuesRelation,
  read: ReadonlyMap<number, BoundExpression>,
): ValuesRelation {
  return { ...values, rows: values.rows.map((row) => row.map((cell) => instead(cell, read))) };
}

function isAsked(condition: BoundExpression): boolean {
  return !holdsAlways(condition);
}

/**
 * Collects the relations and conditions of nested plain joins. Returns false if FROM has any other
 * form.
 */
function flatten(from: BoundFrom, parts: BoundRelation[], conditions: BoundExpression[]): boolean {
  if (from.kind === "relation") {
    parts.push(from.relation);
    return true;
  }
  if (from.outerReferences !== undefined || from.isBeside === true) return false;
  if (from.join !== "inner" && from.join !== "cross") return false;
  conditions.push(...conjunctsOf(from.condition));
  return flatten(from.left, parts, conditions) && flatten(from.right, parts, conditions);
}

function holdsAlways(condition: BoundExpression | undefined): boolean {
  return condition === undefined || (condition.kind === "constant" && condition.value === true);
}

/**
 * Converts VALUES, or a SELECT without FROM, to rows made of expressions. Returns undefined for
 * any other relation.
 */
function rowsOf(relation: BoundRelation): ValuesRelation | undefined {
  if (relation.kind === "values") return relation.constants === undefined ? relation : undefined;
  if (relation.kind !== "query") return undefined;
  const { alias, columns, query } = relation;
  const isPlain =
    query.from === undefined &&
    query.where === undefined &&
    !query.isAggregated &&
    query.windows.length === 0 &&
    query.expansions.length === 0 &&
    query.limit === undefined &&
    query.offset === undefined;
  if (!isPlain) return undefined;
  const rows = [query.outputs.map(({ expression }) => expression)];
  return { kind: "values", rows, alias, columns };
}

/** Whether a relation may depend on rows of preceding FROM items. */
function mayReadAround(relation: BoundRelation): boolean {
  switch (relation.kind) {
    case "table":
    case "system":
    case "changes":
      return false;
    case "values":
      return relation.constants === undefined;
    case "query":
      return readsAround(relation.query);
    default:
      return true;
  }
}

/** Replaces outer references by the expressions of the left side to which they refer. */
function instead(
  expression: BoundExpression,
  read: ReadonlyMap<number, BoundExpression>,
): BoundExpression {
  if (expression.kind === "outer") return read.get(expression.id) ?? expression;
  return mapChildren(expression, (child) => instead(child, read));
}
