/** Traverses entire bound queries to find their expressions, relations and properties. */
import type {
  BoundExpansion,
  BoundFrom,
  BoundRecursion,
  BoundRelation,
  BoundSelect,
} from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { childrenOf, isVolatile } from "../walk.ts";
import { expressionsOfCall } from "./window_walk.ts";

/**
 * Returns the expressions of a query and of the queries in its FROM. A query inside an expression
 * contributes only its operands and outer references, as parts of that expression.
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
    ...argumentsOf(query.expansions),
    ...query.outputs.map(({ expression }) => expression),
    ...query.orderBy.map(({ expression }) => expression),
    ...(typeof distinct === "object" ? distinct.on : []),
    ...[where, having, limit, offset].flatMap((expression) => expression ?? []),
  ];
}

/** Returns the arguments of all table functions of a query block. */
export function argumentsOf(expansions: readonly BoundExpansion[]): BoundExpression[] {
  if (expansions.length === 0) return [];
  return expansions.flatMap(({ functions }) => functions.flatMap(({ args }) => args));
}

function expressionsInFrom(from: BoundFrom | undefined): BoundExpression[] {
  if (from === undefined) return [];
  if (from.kind === "join") {
    return [
      ...expressionsInFrom(from.left),
      ...expressionsInFrom(from.right),
      ...(from.condition === undefined ? [] : [from.condition]),
      ...(from.outerReferences ?? []).map(({ value }) => value),
      ...(from.merged ?? []).map(({ expression }) => expression),
    ];
  }
  const { relation } = from;
  if (relation.kind === "values") return relation.rows.flat();
  if (relation.kind === "function") return relation.functions.flatMap(({ args }) => args);
  if (relation.kind === "table") {
    const { past, rule } = relation;
    return [past?.moment, rule].flatMap((expression) => expression ?? []);
  }
  if (relation.kind === "changes") {
    const { past, upTo } = relation.changes;
    return upTo === undefined ? [past.moment] : [past.moment, upTo];
  }
  return queriesIn(relation).flatMap(expressionsIn);
}

function queriesIn(relation: BoundRelation): readonly BoundSelect[] {
  switch (relation.kind) {
    case "table":
    case "system":
    case "values":
    case "function":
    case "changes":
    case "working":
    // A WITH entry may be read in many places, so its properties are cached with the entry itself.
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

/** Returns every relation in the FROM clauses of a query and of its nested queries. */
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

/**
 * Whether each row of a query block comes from a single row of its FROM and depends on no other
 * rows.
 */
export function isPlainSelect(query: BoundSelect): boolean {
  return (
    !query.isAggregated &&
    query.groupBy.length === 0 &&
    query.groupingSets === undefined &&
    query.windows.length === 0 &&
    query.expansions.length === 0 &&
    query.having === undefined &&
    query.distinct === "none" &&
    query.limit === undefined &&
    query.offset === undefined &&
    !query.withTies
  );
}

/** Whether the rows of a query depend on outer columns or on an enclosing recursion. */
export function readsAround(query: BoundSelect): boolean {
  return readsOuterColumns(query) || recursionsAround(query).size > 0;
}

/** Whether a query reads columns of an outer query. */
export function readsOuterColumns(query: BoundSelect): boolean {
  const own = lateralIdsIn(query.from);
  const reads = (expression: BoundExpression): boolean =>
    expression.kind === "outer" ? !own.has(expression.id) : childrenOf(expression).some(reads);
  return (
    expressionsIn(query).some(reads) ||
    relationsIn(query).some((relation) => relation.kind === "cte" && relation.cte.readsOuter)
  );
}

const RECURSIONS = new WeakMap<BoundSelect, ReadonlySet<BoundRecursion>>();

/**
 * Returns the enclosing recursions whose working tables a query reads, at any depth: in FROM,
 * through WITH entries, and in subqueries of its expressions.
 */
export function recursionsAround(query: BoundSelect): ReadonlySet<BoundRecursion> {
  const known = RECURSIONS.get(query);
  if (known !== undefined) return known;
  const found = new Set<BoundRecursion>();
  const inner: BoundRecursion[] = [];
  const addAll = (recursions: ReadonlySet<BoundRecursion>): void => {
    for (const recursion of recursions) found.add(recursion);
  };
  for (const relation of relationsIn(query)) {
    if (relation.kind === "working") found.add(relation.recursion);
    else if (relation.kind === "cte") addAll(recursionsAround(relation.cte.query));
    else if (relation.kind === "recursive") inner.push(relation.recursion);
  }
  const visit = (expression: BoundExpression): void => {
    if (expression.kind === "subquery") addAll(recursionsAround(expression.subquery.query));
    for (const child of childrenOf(expression)) visit(child);
  };
  for (const expression of expressionsIn(query)) visit(expression);
  for (const recursion of inner) found.delete(recursion);
  RECURSIONS.set(query, found);
  return found;
}

/**
 * Returns the ids through which LATERAL items read earlier items. The values with these ids do not
 * come from an enclosing query.
 */
function lateralIdsIn(from: BoundFrom | undefined, into: Set<number> = new Set()): Set<number> {
  if (from?.kind === "join") {
    for (const { id } of from.outerReferences ?? []) into.add(id);
    lateralIdsIn(from.left, into);
    lateralIdsIn(from.right, into);
  } else if (from !== undefined) {
    for (const query of queriesIn(from.relation)) lateralIdsIn(query.from, into);
  }
  return into;
}

function readsVolatileEntry(from: BoundFrom | undefined): boolean {
  if (from === undefined) return false;
  if (from.kind === "join") return readsVolatileEntry(from.left) || readsVolatileEntry(from.right);
  const { relation } = from;
  if (relation.kind === "cte") return relation.cte.isVolatile;
  return queriesIn(relation).some((query) => readsVolatileEntry(query.from));
}

/** Whether a query may return different results each time it runs. */
export function isVolatileQuery(query: BoundSelect): boolean {
  return expressionsIn(query).some(isVolatile) || readsVolatileEntry(query.from);
}

/** Whether an expression reads values of an enclosing query. */
export function readsOuter(expression: BoundExpression): boolean {
  return expression.kind === "outer" || childrenOf(expression).some(readsOuter);
}
