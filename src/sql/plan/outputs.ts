/**
 * The top of a plan: outputs, DISTINCT, ORDER BY and LIMIT over the rows of a block.
 */

import { ExpressionPlaces } from "../bind/alike.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression, BoundSort } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import type { PlanNode } from "./plan.ts";

/** A plan and what of its columns the caller sees: the first ones, by number. */
export interface QueryPlan {
  readonly root: PlanNode;
  readonly outputCount: number;
}

/** Puts the outputs of a block above its rows, and what DISTINCT, ORDER BY and LIMIT do to them. */
export function planOutputs(select: BoundSelect, input: PlanNode): QueryPlan {
  // Ids of columns that only the plan knows: below every bound one.
  let nextId = -1;
  const takeId = (): number => {
    nextId -= 1;
    return nextId;
  };
  const expressions: BoundExpression[] = select.outputs.map(({ expression }) => expression);
  const columns: BoundColumn[] = select.outputs.map(({ name, expression }) => ({
    id: takeId(),
    name,
    type: expression.type,
  }));
  let places: ExpressionPlaces | undefined;
  const columnFor = (expression: BoundExpression): BoundExpression => {
    places ??= new ExpressionPlaces(expressions);
    let position = places.find(expression);
    if (position === undefined) {
      position = places.add(expression);
      expressions.push(expression);
      columns.push({ id: takeId(), name: "", type: expression.type });
    }
    const column = columns[position];
    if (column === undefined) return expression;
    return columnValue(column);
  };
  const keys = select.orderBy.map(({ expression, isDescending, nullsFirst }): BoundSort => {
    return { expression: columnFor(expression), isDescending, nullsFirst };
  });
  const distinctOn =
    typeof select.distinct === "object" ? select.distinct.on.map(columnFor) : undefined;
  let root: PlanNode = { kind: "project", input, expressions, columns };
  if (select.distinct === "all") {
    const on = columns.slice(0, select.outputs.length).map(columnValue);
    root = { kind: "distinct", input: root, on, columns };
  }
  root = planOrder(select, root, { keys, distinctOn });
  return { root, outputCount: select.outputs.length };
}

function planOrder(
  select: BoundSelect,
  input: PlanNode,
  {
    keys,
    distinctOn,
  }: { keys: readonly BoundSort[]; distinctOn: readonly BoundExpression[] | undefined },
): PlanNode {
  const { columns } = input;
  const { limit, offset, withTies } = select;
  const isCut = limit !== undefined || offset !== undefined;
  let root = input;
  if (keys.length > 0) {
    const canCut = distinctOn === undefined && !withTies;
    root = {
      kind: "sort",
      input: root,
      keys,
      limit: canCut ? limit : undefined,
      offset: canCut ? offset : undefined,
      columns,
    };
  }
  if (distinctOn !== undefined) root = { kind: "distinct", input: root, on: distinctOn, columns };
  if (!isCut) return root;
  return { kind: "limit", input: root, limit, offset, ties: withTies ? keys : undefined, columns };
}
