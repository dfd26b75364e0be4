/**
 * Questions about whole bound queries.
 */
import type { BoundFrom, BoundRecursion, BoundRelation, BoundSelect } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { childrenOf, isVolatile } from "../walk.ts";
import { expressionsOfCall } from "./window_walk.ts";

/**
 * The expressions of a query and of the queries in its FROM. A query inside an expression belongs
 * to that expression: it is reached through its operands and captures.
 */
export function expressionsIn(query: BoundSelect): BoundExpression[] {
  const { distinct, from, having, limit, offset, where } = query;
  return [
    ...expressionsInFrom(from),
    ...query.groupBy.map(({ expression }) => expression),
    ...query.aggregates.flatMap(({ argument, extra, filter, orderBy }) => [
      ...[argument, filter].flatMap((expression) => expression ?? []),
      ...extra,
      ...orderBy.map(({ expression }) => expression),
    ]),
    ...query.windows.flatMap(expressionsOfCall),
    ...query.outputs.map(({ expression }) => expression),
    ...query.orderBy.map(({ expression }) => expression),
    ...(typeof distinct === "object" ? distinct.on : []),
    ...[where, having, limit, offset].flatMap((expression) => expression ?? []),
  ];
}

function expressionsInFrom(from: BoundFrom | undefined): BoundExpression[] {
  if (from === undefined) return [];
  if (from.kind === "join") {
    return [
      ...expressionsInFrom(from.left),
      ...expressionsInFrom(from.right),
      ...(from.condition === undefined ? [] : [from.condition]),
      ...(from.captures ?? []).map(({ value }) => value),
      ...(from.merged ?? []).map(({ expression }) => expression),
    ];
  }
  const { relation } = from;
  if (relation.kind === "values") return relation.rows.flat();
  if (relation.kind === "function") return relation.functions.flatMap(({ args }) => args);
  return queriesIn(relation).flatMap(expressionsIn);
}

function queriesIn(relation: BoundRelation): readonly BoundSelect[] {
  switch (relation.kind) {
    case "table":
    case "system":
    case "values":
    case "function":
    case "working":
    // It may be read at many places: what is to be known of it, it says itself.
    case "cte":
      return [];
    case "query":
      return [relation.query];
    case "set":
      return [relation.left, relation.right];
    case "recursive":
      return [relation.first, relation.next];
  }
}

/** Every relation in the FROM of a query and of the queries in it. */
export function relationsIn({ from }: BoundSelect): BoundRelation[] {
  const relations: BoundRelation[] = [];
  const visit = (part: BoundFrom | undefined): void => {
    if (part === undefined) return;
    if (part.kind === "join") {
      visit(part.left);
      visit(part.right);
      return;
    }
    relations.push(part.relation);
    for (const query of queriesIn(part.relation)) visit(query.from);
  };
  visit(from);
  return relations;
}

/** Whether the rows of a query hang on more than the run: outer columns, a recursion around it. */
export function readsAround(query: BoundSelect): boolean {
  const own = lateralIdsIn(query.from);
  const reads = (expression: BoundExpression): boolean =>
    expression.kind === "outer" ? !own.has(expression.id) : childrenOf(expression).some(reads);
  return expressionsIn(query).some(reads) || readsRecursion(query.from, new Set());
}

/** What LATERAL items read of the items before them is no part of the query around. */
function lateralIdsIn(from: BoundFrom | undefined, into: Set<number> = new Set()): Set<number> {
  if (from?.kind === "join") {
    for (const { id } of from.captures ?? []) into.add(id);
    lateralIdsIn(from.left, into);
    lateralIdsIn(from.right, into);
  } else if (from !== undefined) {
    for (const query of queriesIn(from.relation)) lateralIdsIn(query.from, into);
  }
  return into;
}

/** Whether a working table is read whose recursion is not in the query itself. */
function readsRecursion(from: BoundFrom | undefined, inner: ReadonlySet<BoundRecursion>): boolean {
  if (from === undefined) return false;
  if (from.kind === "join") {
    return readsRecursion(from.left, inner) || readsRecursion(from.right, inner);
  }
  const { relation } = from;
  if (relation.kind === "working") return !inner.has(relation.recursion);
  if (relation.kind === "cte") return !relation.cte.isFree;
  const own = relation.kind === "recursive" ? new Set([...inner, relation.recursion]) : inner;
  return queriesIn(relation).some((query) => readsRecursion(query.from, own));
}

function readsVolatileEntry(from: BoundFrom | undefined): boolean {
  if (from === undefined) return false;
  if (from.kind === "join") return readsVolatileEntry(from.left) || readsVolatileEntry(from.right);
  const { relation } = from;
  if (relation.kind === "cte") return relation.cte.isVolatile;
  return queriesIn(relation).some((query) => readsVolatileEntry(query.from));
}

/** Whether a query may answer differently each time it is asked in one run. */
export function isVolatileQuery(query: BoundSelect): boolean {
  return expressionsIn(query).some(isVolatile) || readsVolatileEntry(query.from);
}

/** Whether an expression reads the query around its own. */
export function readsOuter(expression: BoundExpression): boolean {
  return expression.kind === "outer" || childrenOf(expression).some(readsOuter);
}
