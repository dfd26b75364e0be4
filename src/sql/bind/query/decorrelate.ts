/**
 * Rewrites correlated queries so that they do not have to run once per outer row.
 *
 *     … WHERE EXISTS (SELECT … FROM s WHERE s.a = t.b AND rest)
 *     reads once    SELECT …, s.a FROM s WHERE rest        and finds rows by s.a = t.b
 *
 * The result is a hash join in which the outer query is the streaming side. A query can be
 * rewritten if outer references occur only in such equalities. Its sides of the equalities (here
 * s.a) are the keys of the join. They become the first grouping expressions, so that an aggregate
 * is computed per key.
 */
import { BOOLEAN } from "../../../types/mod.ts";
import type { StatementBinding } from "../binding.ts";
import type { BoundSelect } from "../bound.ts";
import type { BoundExpression, BoundWindowCall, KeyedQuery } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { conjunctionOf, conjunctsOf } from "../walk.ts";
import { readsAround, readsOuter } from "./query_walk.ts";

interface KeyPair {
  readonly inner: BoundExpression;
  readonly outer: BoundExpression;
}

/**
 * Returns an equivalent of a query that runs once for all outer rows; undefined if there is none.
 * The query must not be volatile.
 */
export function keyedForm(query: BoundSelect, statement: StatementBinding): KeyedQuery | undefined {
  if (query.withTies || typeof query.distinct === "object") return undefined;
  // With grouping sets, each set would have to include the keys of the join.
  if (query.groupingSets !== undefined) return undefined;
  const pairs: KeyPair[] = [];
  const rest: BoundExpression[] = [];
  for (const condition of conjunctsOf(query.where)) {
    if (!readsOuter(condition)) {
      rest.push(condition);
      continue;
    }
    const pair = keyPairOf(condition);
    if (pair === undefined) return undefined;
    pairs.push(pair);
  }
  if (pairs.length === 0) return undefined;
  const open: BoundSelect = {
    ...query,
    where: conjunctionOf(rest),
    limit: undefined,
    offset: undefined,
  };
  const { limit, offset } = query;
  const counts = [limit, offset].flatMap((count) => count ?? []);
  if (readsAround(open) || counts.some(readsOuter)) return undefined;
  const inner = pairs.map((pair) => pair.inner);
  return {
    query: query.isAggregated ? groupedByKeys(open, inner, statement) : withKeys(open, inner),
    keys: pairs.map((pair) => pair.outer),
    limit,
    offset,
    withoutRows:
      query.isAggregated && query.groupBy.length === 0
        ? { ...query, where: { kind: "constant", type: BOOLEAN, value: false } }
        : undefined,
  };
}

function keyPairOf(condition: BoundExpression): KeyPair | undefined {
  if (condition.kind !== "compare" || condition.operator !== "=") return undefined;
  const { left, right } = condition;
  if (isOuterOnly(left) && !readsOuter(right)) return { inner: right, outer: left };
  if (isOuterOnly(right) && !readsOuter(left)) return { inner: left, outer: right };
  return undefined;
}

/**
 * Whether the expression is an outer reference, possibly cast, and can therefore be computed
 * without a row.
 */
function isOuterOnly(expression: BoundExpression): boolean {
  if (expression.kind === "cast") return isOuterOnly(expression.operand);
  return expression.kind === "outer";
}

function withKeys(query: BoundSelect, keys: readonly BoundExpression[]): BoundSelect {
  const outputs = keys.map((expression) => ({ name: "", expression }));
  // A window must not span several keys, so the keys are added to PARTITION BY.
  const windows = query.windows.map((call): BoundWindowCall => {
    const partitionBy = [...keys, ...call.window.partitionBy];
    return { ...call, window: { ...call.window, partitionBy } };
  });
  return { ...query, windows, outputs: [...query.outputs, ...outputs] };
}

function groupedByKeys(
  query: BoundSelect,
  keys: readonly BoundExpression[],
  statement: StatementBinding,
): BoundSelect {
  const groups = keys.map((expression) => ({
    expression,
    column: statement.newColumn({ name: "", type: expression.type }),
  }));
  const values = groups.map(({ column }) => columnValue(column));
  return withKeys({ ...query, groupBy: [...groups, ...query.groupBy] }, values);
}
