/**
 * Pulls up LATERAL rows of expressions: they are computed beside each row that they read, where a
 * lateral join would run a plan for each of these rows.
 *
 *     t, LATERAL (VALUES (t.a, 'a'), (t.b, 'b')) x(v, n) JOIN d ON d.v = x.v
 *     becomes   (t beside two rows of expressions) JOIN d ON d.v = x.v
 *
 * The relations beside the rows can then be joined by their keys, like any other relation.
 */
import type { BoundFrom, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundCapture, BoundExpression } from "../bind/bound_expressions.ts";
import { readsAround } from "../bind/query/query_walk.ts";
import { conjunctionOf, conjunctsOf, mapChildren } from "../bind/walk.ts";

type Join = Extract<BoundFrom, { kind: "join" }>;
type Values = Extract<BoundRelation, { kind: "values" }>;

/** Removes LATERAL where only rows of expressions need it. */
export function withoutLateralRows(select: BoundSelect): BoundSelect {
  const from = select.from === undefined ? undefined : pulledUp(select.from);
  return from === select.from ? select : { ...select, from };
}

function pulledUp(from: BoundFrom): BoundFrom {
  if (from.kind === "relation") return from;
  const left = pulledUp(from.left);
  const right = pulledUp(from.right);
  const same = left === from.left && right === from.right ? from : { ...from, left, right };
  return same.captures === undefined ? same : (besideLeft(same, same.captures) ?? same);
}

/**
 * Returns undefined unless the right side is rows of expressions, possibly joined with relations.
 */
function besideLeft(from: Join, captures: readonly BoundCapture[]): BoundFrom | undefined {
  const parts: BoundRelation[] = [];
  const conditions: BoundExpression[] = [];
  if (from.join === "full" || !flatten(from.right, parts, conditions)) return undefined;
  // Rows of expressions always exist, so a left join is an inner one; a joined relation may be
  // empty.
  const isOpen = from.join === "left";
  if (isOpen && (parts.length > 1 || !holdsAlways(from.condition))) return undefined;
  const rows = parts.map(rowsOf);
  const others = parts.filter((_, i) => rows[i] === undefined);
  if (others.length === parts.length || others.some(mayReadAround)) return undefined;
  const read = new Map(captures.map(({ id, value }) => [id, value]));
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

function besides(values: Values, read: ReadonlyMap<number, BoundExpression>): Values {
  return { ...values, rows: values.rows.map((row) => row.map((cell) => instead(cell, read))) };
}

function isAsked(condition: BoundExpression): boolean {
  return !holdsAlways(condition);
}

/** Collects the relations and the conditions of plain joins; returns false for any other form. */
function flatten(from: BoundFrom, parts: BoundRelation[], conditions: BoundExpression[]): boolean {
  if (from.kind === "relation") {
    parts.push(from.relation);
    return true;
  }
  if (from.captures !== undefined || from.isBeside === true) return false;
  if (from.join !== "inner" && from.join !== "cross") return false;
  conditions.push(...conjunctsOf(from.condition));
  return flatten(from.left, parts, conditions) && flatten(from.right, parts, conditions);
}

function holdsAlways(condition: BoundExpression | undefined): boolean {
  return condition === undefined || (condition.kind === "constant" && condition.value === true);
}

/** Rows of expressions: VALUES, or a single SELECT of expressions without FROM. */
function rowsOf(relation: BoundRelation): Values | undefined {
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

/** Whether a relation may depend on the rows before it. */
function mayReadAround(relation: BoundRelation): boolean {
  switch (relation.kind) {
    case "table":
    case "system":
      return false;
    case "values":
      return relation.constants === undefined;
    case "query":
      return readsAround(relation.query);
    default:
      return true;
  }
}

/** Replaces captured values by the expressions of the left side from which they come. */
function instead(
  expression: BoundExpression,
  read: ReadonlyMap<number, BoundExpression>,
): BoundExpression {
  if (expression.kind === "outer") return read.get(expression.id) ?? expression;
  return mapChildren(expression, (child) => instead(child, read));
}
