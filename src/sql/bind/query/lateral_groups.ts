/**
 * Rewrites LATERAL aggregates so that they do not have to run once per row of the left side.
 *
 *     t, LATERAL (SELECT count(*) AS n FROM s WHERE s.a = t.b AND rest) x
 *     t LEFT JOIN (SELECT count(*) AS n, a FROM s WHERE rest GROUP BY a) g ON g.a = t.b
 *       beside (CASE WHEN g.a IS NULL THEN 0 ELSE g.n END) x
 *
 * A join can be rewritten if the inner query refers to the left side only in such equalities. The
 * planner chooses between the two forms. The second form may compute groups that no row of the
 * left side needs, so it is used only if computing the groups can raise no error other than an
 * arithmetic overflow.
 */
import { BOOLEAN, compareValues, type Value } from "../../../types/mod.ts";
import type { StatementBinding } from "../binding.ts";
import type { BoundJoin, BoundSelect, JoinedGroups } from "../bound.ts";
import type { BoundAggregate, BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { conjunctionOf, mapChildren, someChild } from "../walk.ts";
import { keyedForm } from "./decorrelate.ts";
import { isVolatileQuery } from "./query_walk.ts";

/**
 * Returns the form of a LATERAL join that computes its groups only once; undefined if the join
 * cannot be rewritten.
 */
export function groupsBeside(
  from: BoundJoin,
  statement: StatementBinding,
): JoinedGroups | undefined {
  const { condition, join, left, outerReferences = [], right } = from;
  if (right.kind !== "relation" || right.relation.kind !== "query") return undefined;
  const { alias, columns, query } = right.relation;
  // An aggregate without GROUP BY yields exactly one row, so a left join ON true is equivalent to
  // an inner join.
  const isTrue = condition === undefined || isConstantTrue(condition);
  if (join === "full" || (join === "left" && !isTrue) || !isWholeAggregate(query)) return undefined;
  const keyed = keyedForm(query, statement);
  if (keyed === undefined || mayFailInGroup(keyed.query)) return undefined;
  const read = new Map(outerReferences.map(({ id, value }) => [id, value]));
  const keys = keyed.keys.map((key) => withValues(key, read));
  const grouped = keyed.query.outputs.map(({ expression, name }): BoundColumn => {
    return statement.newColumn({ name, type: expression.type });
  });
  const found = grouped.slice(query.outputs.length).map(columnValue);
  const [anyKey] = found;
  if (anyKey === undefined) return undefined;
  const groups: BoundJoin = {
    kind: "join",
    join: "left",
    left,
    right: {
      kind: "relation",
      relation: { kind: "query", query: keyed.query, alias, columns: grouped },
    },
    condition: conjunctionOf(keys.map((key, i) => equal(found[i] ?? anyKey, key))),
  };
  const isMissing: BoundExpression = {
    kind: "is",
    type: BOOLEAN,
    test: "null",
    negated: false,
    operand: anyKey,
  };
  const empty = emptyValues(query.aggregates);
  const row = query.outputs.map(({ expression }, i): BoundExpression => {
    const own = grouped[i];
    const otherwise = own === undefined ? undefined : columnValue(own);
    const value = overNoRows(expression, empty);
    return {
      kind: "case",
      type: expression.type,
      branches: [{ when: isMissing, value }],
      otherwise,
    };
  });
  return {
    kind: "join",
    join: isTrue ? "cross" : "inner",
    left: groups,
    right: { kind: "relation", relation: { kind: "values", rows: [row], alias, columns } },
    condition: isTrue ? undefined : condition,
    isBeside: true,
  };
}

function isConstantTrue(condition: BoundExpression): boolean {
  return condition.kind === "constant" && condition.value === true;
}

/**
 * Whether a query always yields exactly one row, whose values over no rows are known,
 * regardless of the rows that it reads.
 */
function isWholeAggregate(query: BoundSelect): boolean {
  return (
    query.isAggregated &&
    query.aggregates.every(({ steps }) => steps === undefined) &&
    query.groupBy.length === 0 &&
    query.groupingSets === undefined &&
    query.having === undefined &&
    query.windows.length === 0 &&
    query.expansions.length === 0 &&
    query.distinct === "none" &&
    query.limit === undefined &&
    query.offset === undefined &&
    !isVolatileQuery(query)
  );
}

function mayFailInGroup({ aggregates, groupBy, where }: BoundSelect): boolean {
  const computed = aggregates.flatMap(({ argument, extra, filter, orderBy }) => [
    ...extra,
    ...orderBy.map(({ expression }) => expression),
    ...[argument, filter].flatMap((each) => each ?? []),
  ]);
  const keys = groupBy.map(({ expression }) => expression);
  return [...computed, ...keys, ...(where === undefined ? [] : [where])].some(mayFailOtherwise);
}

/** Whether evaluating an expression may raise an error other than an overflow. */
function mayFailOtherwise(expression: BoundExpression): boolean {
  if (expression.kind === "call" || expression.kind === "subquery") return true;
  if (expression.kind === "cast" && !expression.isNumericIdentity && !isWidening(expression)) {
    return true;
  }
  return someChild(expression, mayFailOtherwise);
}

/** Whether a cast only adds decimal places, and its target type can represent the result. */
function isWidening({ factor }: Extract<BoundExpression, { kind: "cast" }>): boolean {
  return factor !== undefined;
}

function equal(left: BoundExpression, right: BoundExpression): BoundExpression {
  const evaluate = ([one = null, other = null]: readonly Value[]): Value =>
    compareValues(left.type, one, other) === 0;
  return { kind: "compare", type: BOOLEAN, operator: "=", left, right, evaluate };
}

function withValues(
  expression: BoundExpression,
  read: ReadonlyMap<number, BoundExpression>,
): BoundExpression {
  if (expression.kind === "outer") return read.get(expression.id) ?? expression;
  return mapChildren(expression, (child) => withValues(child, read));
}

/** Returns the values of the aggregates over an empty set of rows, keyed by column id. */
function emptyValues(aggregates: readonly BoundAggregate[]): ReadonlyMap<number, Value> {
  return new Map(aggregates.map(({ column, form }) => [column.id, form.create().finish(0)]));
}

function overNoRows(
  expression: BoundExpression,
  empty: ReadonlyMap<number, Value>,
): BoundExpression {
  if (expression.kind !== "column") {
    return mapChildren(expression, (child) => overNoRows(child, empty));
  }
  const value = empty.get(expression.column.id) ?? null;
  return { kind: "constant", type: expression.type, value };
}
