/**
 * Plans EXISTS and NOT EXISTS as joins.
 *
 *     WHERE EXISTS (SELECT … FROM s WHERE s.a = t.b AND s.c <> t.d AND rest)
 *     t ⋉ (SELECT s.a, s.c FROM s WHERE rest)  on  t.b = a, besides c <> t.d
 *
 * A condition is rewritten only if it stands in WHERE, which drops a row for both false and NULL,
 * and only if an equality can serve as the join key.
 *
 * The join raises the same errors as a query that is read once, without the conditions that relate
 * it to the outer query (`sql/bind/query/decorrelate.ts`). The conditions on inner rows alone are
 * tested even if there are no outer rows, but their errors are raised only if there is an outer
 * row. Keys are evaluated for all rows of their side, except that an outer key is evaluated only
 * if the outer row satisfies the conditions on outer rows alone. All other conditions are tested
 * on pairs with equal keys, and conditions that may fail come last.
 */
import { defined } from "../../base/assert.ts";
import { physicalKind } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { columnOutput, columnValue } from "../bind/bound_nodes.ts";
import {
  isPlainSelect,
  isVolatileQuery,
  readsAround,
  readsOuter,
} from "../bind/query/query_walk.ts";
import {
  childrenOf,
  conjunctionOf,
  conjunctsOf,
  hasSubquery,
  isVolatile,
  mapChildren,
  mayFailOnRow,
  readsColumn,
  readsForEachRow,
  someChild,
} from "../bind/walk.ts";
import { rowsOfPlan } from "./estimate.ts";
import { isOver, keysOf } from "./join_keys.ts";
import type { JoinNode, PlanNode } from "./plan.ts";
import { isLookup } from "./plan_walk.ts";

/**
 * The number of rows that can be scanned in the time it takes a subquery to find one row by its
 * key.
 */
const ROWS_PER_LOOKUP = 500;

interface Existence {
  readonly subquery: Extract<BoundExpression, { kind: "subquery" }>;
  readonly isNegated: boolean;
}

/**
 * Adds a semi or anti join above a plan. Returns undefined if the condition cannot become a join.
 */
export function semiJoined(
  left: PlanNode,
  condition: BoundExpression,
  planQuery: (query: BoundSelect) => PlanNode,
): JoinNode | undefined {
  const existence = existenceIn(condition);
  if (existence === undefined) return undefined;
  const { outerReferences, subquery } = existence.subquery;
  const { query } = subquery;
  const inner: BoundExpression[] = [];
  const across: BoundExpression[] = [];
  for (const each of conjunctsOf(query.where)) (readsOuter(each) ? across : inner).push(each);
  const open: BoundSelect = { ...query, where: conjunctionOf(inner) };
  // If a query block is read again for each row of another query, a join would be slower than a
  // subquery, which tests only a few rows each time.
  if (
    readsAround(open) ||
    inner.some((each) => readsForEachRow(each) || isVolatile(each)) ||
    across.some((each) => hasSubquery(each) || isVolatile(each))
  ) {
    return undefined;
  }
  const columns = innerColumns(across);
  const outputs = columns.map(columnOutput);
  const right = planQuery({ ...open, outputs });
  // The right side of the join is the inner query without the conditions that refer to the outer
  // query, so the join would read all of its rows.
  if (subquery.keyed === undefined && rowsOfPlan(left) * ROWS_PER_LOOKUP < rowsOfPlan(right)) {
    if (isLookup(planQuery(query))) return undefined;
  }
  const values = new Map(subquery.outerIds.map((id, i) => [id, outerReferences[i]]));
  const places = new Map(columns.map(({ id }, i) => [id, right.columns[i]]));
  const conditions = across.map((each) => moved(each, values, places));
  const leftIds = new Set(left.columns.map(({ id }) => id));
  const rightIds = new Set(right.columns.map(({ id }) => id));
  const keys = keysOf(surestFirst(conditions), leftIds, rightIds);
  if (keys.leftKeys.length === 0 || mayHoldTick(keys.residual)) return undefined;
  const ofLeft = conditions.filter((each) => isOver(each, leftIds) && !mayFailOnRow(each));
  return {
    kind: "join",
    join: existence.isNegated ? "anti" : "semi",
    left,
    right,
    ...keys,
    leftKeys: keys.leftKeys.map((key) => askedWhere(key, conjunctionOf(ofLeft))),
    holdsLeft: rowsOfPlan(left) < rowsOfPlan(right),
    // A guarded join with a residual condition cannot spill to disk, so a join is guarded only if
    // necessary.
    isGuarded: [...inner, ...keys.rightKeys].some(mayFailOnRow),
    columns: left.columns,
  };
}

/** Moves conditions that may raise an error to the end. */
function surestFirst(conditions: readonly BoundExpression[]): readonly BoundExpression[] {
  return conditions.toSorted(
    (left, right) => Number(mayFailOnRow(left)) - Number(mayFailOnRow(right)),
  );
}

/**
 * Guards a join key that may raise an error: for rows that do not satisfy the condition, the key
 * becomes NULL, which equals nothing.
 */
function askedWhere(key: BoundExpression, condition: BoundExpression | undefined): BoundExpression {
  if (condition === undefined || !mayFailOnRow(key)) return key;
  const branches = [{ when: condition, value: key }];
  return { kind: "case", type: key.type, branches, otherwise: undefined };
}

/**
 * Whether testing a batch of pairs may take longer than a time slice. A batch cannot be
 * interrupted, and a single call on values of unlimited length may take an entire tick.
 */
function mayHoldTick(expression: BoundExpression | undefined): boolean {
  if (expression === undefined || !readsColumn(expression)) return false;
  const isCall =
    expression.kind === "call" || (expression.kind === "cast" && !expression.isNumericIdentity);
  if (isCall && [expression, ...childrenOf(expression)].some(isOfAnyLength)) return true;
  return someChild(expression, mayHoldTick);
}

function isOfAnyLength({ type }: BoundExpression): boolean {
  return type.kind !== "interval" && type.kind !== "uuid" && physicalKind(type) === "any";
}

/**
 * Whether a condition is `x IN (SELECT …)` with an uncorrelated query. It can become a semi join
 * on the query's columns, because NULL equals nothing and a condition drops rows for which it is
 * unknown.
 */
export function isMembership(condition: BoundExpression): condition is Membership {
  if (condition.kind !== "subquery") return false;
  const { outerIds, form, isVolatile: isUnsteady } = condition.subquery;
  if (outerIds.length > 0 || isUnsteady || isVolatileQuery(condition.subquery.query)) return false;
  if (form.kind !== "any" || form.operator !== "=") return false;
  return condition.operands.every((operand) => !isVolatile(operand) && !hasSubquery(operand));
}

type Membership = Extract<BoundExpression, { kind: "subquery" }>;

/**
 * Adds a semi join for a membership test, such as `x IN (SELECT …)`, above a plan that yields the
 * columns of x.
 */
export function memberJoined(
  left: PlanNode,
  { operands, subquery }: Membership,
  planQuery: (query: BoundSelect) => PlanNode,
): JoinNode {
  const right = planQuery(subquery.query);
  return {
    kind: "join",
    join: "semi",
    left,
    right,
    leftKeys: operands,
    rightKeys: operands.map((_, i) =>
      columnValue(
        defined(right.columns[i], "semi-join planner: subquery has no column for this output"),
      ),
    ),
    residual: undefined,
    holdsLeft: rowsOfPlan(left) < rowsOfPlan(right),
    isGuarded: true,
    columns: left.columns,
  };
}

/** Whether a condition is an EXISTS that may become a join above all other conditions. */
export function isExistence(condition: BoundExpression): boolean {
  return existenceIn(condition) !== undefined;
}

/**
 * Returns the EXISTS or NOT EXISTS test if a condition consists of nothing else. Returns undefined
 * for any other condition.
 */
export function existenceIn(condition: BoundExpression): Existence | undefined {
  const isNegated = condition.kind === "not";
  const subquery = isNegated ? condition.operand : condition;
  if (subquery.kind !== "subquery") return undefined;
  const { outerIds, form, isVolatile: isUnsteady, query } = subquery.subquery;
  if (form.kind !== "exists" || outerIds.length === 0 || isUnsteady) return undefined;
  return isPlainSelect(query) && query.from !== undefined ? { subquery, isNegated } : undefined;
}

/** Returns the columns of the inner query that the given conditions read. */
function innerColumns(conditions: readonly BoundExpression[]): readonly BoundColumn[] {
  const found = new Map<number, BoundColumn>();
  const visit = (expression: BoundExpression): BoundExpression => {
    if (expression.kind === "column") found.set(expression.column.id, expression.column);
    return mapChildren(expression, visit);
  };
  for (const condition of conditions) if (readsColumn(condition)) visit(condition);
  return [...found.values()];
}

/**
 * Adapts a condition to its place above a join: replaces outer references and renames inner
 * columns.
 */
function moved(
  expression: BoundExpression,
  values: ReadonlyMap<number, BoundExpression | undefined>,
  places: ReadonlyMap<number, BoundColumn | undefined>,
): BoundExpression {
  if (expression.kind === "outer") return values.get(expression.id) ?? expression;
  if (expression.kind === "column") {
    const column = places.get(expression.column.id);
    return column === undefined ? expression : columnValue(column);
  }
  return mapChildren(expression, (child) => moved(child, values, places));
}
