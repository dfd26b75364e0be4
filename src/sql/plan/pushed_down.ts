/**
 * Moves conditions on the result of a query in FROM into the query itself, where they determine
 * the keys and indexes by which its rows are found.
 *
 *     SELECT … FROM (SELECT a AS x, count(*) AS n FROM t GROUP BY a) q WHERE x = 5 AND n > 1
 *     becomes       (SELECT a AS x, count(*) AS n FROM t WHERE a = 5 GROUP BY a) q WHERE n > 1
 *
 * A condition moves only if it drops entire groups, partitions or sets of duplicates, so that all
 * remaining results stay the same. An OR that has to stay above the query also moves in a weaker
 * form:
 *
 *     WHERE (x = 5 AND n > 1) OR (x = 6 AND n > 2)     moves     a = 5 OR a = 6
 *
 * The query may drop rows itself, and the error of a condition on such a row would reveal the row.
 * A condition that may fail therefore stays above, unless the query returns every row that it
 * reads.
 */
import { DELETED_COLUMN_ID } from "../../storage/mod.ts";
import { isLooselyEqual, sameType } from "../../types/mod.ts";
import type { BoundFrom, BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { expressionsIn, isPlainSelect } from "../bind/query/query_walk.ts";
import {
  columnIdsIn,
  conjunctionOf,
  conjunctsOf,
  hasSubquery,
  isImmutable,
  isVolatile,
  mapChildren,
  mayFail,
  readsColumn,
  sameExpression,
  someChild,
} from "../bind/walk.ts";
import { type Condition, conditionOf } from "./conditions.ts";
import { columnIdsOf } from "./join_keys.ts";
import { inferredOver } from "./predicate_inference.ts";

/** A query, with conditions that moved into it. */
export interface Restricted {
  readonly query: BoundSelect;
  /** The conditions that are now tested inside the query, and need not be tested above it. */
  readonly moved: ReadonlySet<Condition>;
}

/**
 * Moves conditions on the result of a query into the query, if they can be tested there.
 *
 * @param columns The columns through which the conditions read the query's outputs.
 */
export function restricted(
  query: BoundSelect,
  columns: readonly BoundColumn[],
  conditions: readonly Condition[],
): Restricted {
  const moved = new Set<Condition>();
  if (conditions.length === 0 || !mayBeRestricted(query)) return { query, moved };
  const block: RestrictedBlock = {
    query,
    columns,
    ids: query.from === undefined ? new Set() : columnIdsOf(query.from),
    groups: new Map(query.groupBy.map(({ column, expression }) => [column.id, expression])),
    returnsAll: isPlainSelect(query) && query.where === undefined && !isJoin(query.from),
  };
  const inner: BoundExpression[] = [];
  for (const condition of conditions) {
    const below = conditionBelow(condition, block);
    if (below !== undefined) {
      inner.push(below);
      moved.add(condition);
      continue;
    }
    const weaker = weakerBelow(condition, block);
    if (weaker !== undefined) inner.push(weaker);
  }
  if (inner.length === 0) return { query, moved };
  const where = conjunctionOf([...conjunctsOf(query.where), ...inner]);
  return { query: { ...query, where }, moved };
}

/** The query block into which conditions move. */
interface RestrictedBlock {
  readonly query: BoundSelect;
  readonly columns: readonly BoundColumn[];
  /** The columns that the block's WHERE can read. */
  readonly ids: ReadonlySet<number>;
  /** The GROUP BY expressions, keyed by the columns through which outputs read them. */
  readonly groups: ReadonlyMap<number, BoundExpression>;
  /** Whether the block returns every row of a single relation. */
  readonly returnsAll: boolean;
}

/**
 * Whether dropping rows of FROM can only drop rows of the result. This does not hold for a query
 * with volatile expressions, which must be computed for all rows in case they have side effects.
 */
function mayBeRestricted(query: BoundSelect): boolean {
  const { groupBy, groupingSets, isAggregated, limit, offset } = query;
  if (limit !== undefined || offset !== undefined) return false;
  if (isAggregated && (groupBy.length === 0 || groupingSets !== undefined)) return false;
  return !expressionsIn(query).some(isVolatile);
}

function isJoin(from: BoundFrom | undefined): boolean {
  return from?.kind === "join";
}

/**
 * Rewrites a condition so that it reads the columns of a query block. Returns undefined if the
 * condition has to stay above the block.
 */
function conditionBelow(
  { canMove, columnIds, expression }: Condition,
  block: RestrictedBlock,
): BoundExpression | undefined {
  if (!canMove || hasSubquery(expression)) return undefined;
  const values = new Map<number, BoundExpression>();
  for (const id of columnIds) {
    const value = valueBelow(id, block);
    if (value === undefined) return undefined;
    values.set(id, value);
  }
  const below = replaced(expression, values);
  return block.returnsAll || !mayFail(below) ? below : undefined;
}

/**
 * Returns the part of an OR that can move into a block although the OR itself has to stay above.
 * Parts that read no columns of the block are left out if each branch has another part.
 */
function weakerBelow(
  { canMove, expression }: Condition,
  block: RestrictedBlock,
): BoundExpression | undefined {
  if (!canMove || expression.kind !== "or") return undefined;
  const values = new Map<number, BoundExpression | undefined>();
  const valueOf = (id: number): BoundExpression | undefined => {
    if (!values.has(id)) values.set(id, valueBelow(id, block));
    return values.get(id);
  };
  const isColumn = (id: number): boolean => {
    const value = valueOf(id);
    return value !== undefined && readsColumn(value);
  };
  const inferred =
    inferredOver(expression, { has: isColumn }) ??
    inferredOver(expression, { has: (id) => valueOf(id) !== undefined });
  return inferred && conditionBelow(conditionOf(inferred), block);
}

/**
 * Returns an output as an expression on the columns of a query block, or undefined if a condition
 * that moves into the block must not read this output.
 */
function valueBelow(
  id: number,
  { columns, groups, ids, query }: RestrictedBlock,
): BoundExpression | undefined {
  const position = columns.findIndex((column) => column.id === id);
  const type = columns[position]?.type;
  const output = query.outputs[position]?.expression;
  if (type === undefined || output === undefined || !sameType(type, output.type)) return undefined;
  if (!isOfWholeParts(output, query)) return undefined;
  // The query block returns one of several strings that compare as equal. If a condition dropped
  // some of them, the block might return a different one.
  const isMerged = query.distinct !== "none" || query.isAggregated || query.windows.length > 0;
  if (isMerged && isLooselyEqual(output.type)) return undefined;
  const value = replaced(output, groups);
  if (!isImmutable(value) || readsDeleted(value)) return undefined;
  for (const read of columnIdsIn(value)) if (!ids.has(read)) return undefined;
  return value;
}

/**
 * Whether an output has the same value in all rows that DISTINCT ON or a window function compares
 * with each other.
 */
function isOfWholeParts(output: BoundExpression, { distinct, windows }: BoundSelect): boolean {
  const isSame = (key: BoundExpression): boolean => sameExpression(key, output);
  if (typeof distinct === "object" && !distinct.on.some(isSame)) return false;
  return windows.every(({ window }) => window.partitionBy.some(isSame));
}

/**
 * Whether an expression reads `_deleted`. In the WHERE of a query, it would make deleted rows
 * visible.
 */
function readsDeleted(expression: BoundExpression): boolean {
  return expression.kind === "column"
    ? expression.column.origin?.columnId === DELETED_COLUMN_ID
    : someChild(expression, readsDeleted);
}

function replaced(
  expression: BoundExpression,
  values: ReadonlyMap<number, BoundExpression>,
): BoundExpression {
  if (values.size === 0) return expression;
  if (expression.kind === "column") return values.get(expression.column.id) ?? expression;
  return mapChildren(expression, (child) => replaced(child, values));
}
