/** Plans the top of a query block: its outputs, DISTINCT, ORDER BY and LIMIT. */

import type { BoundSelect, ExpansionStage } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression, BoundSort } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { ExpressionPlaces } from "../bind/equivalence.ts";
import { areInOrder } from "./ordered_input.ts";
import type { PlanNode } from "./plan.ts";

/** The plan of a query, and the number of its leading columns that are outputs of the query. */
export interface QueryPlan {
  readonly root: PlanNode;
  readonly outputCount: number;
}

/** Adds the nodes that expand each row by the table functions of one stage. */
export function expanded(
  input: PlanNode,
  { expansions }: BoundSelect,
  stage: ExpansionStage,
): PlanNode {
  let node = input;
  for (const { columns, functions, stage: own } of expansions) {
    if (own !== stage) continue;
    node = { kind: "expand", input: node, functions, columns: [...node.columns, ...columns] };
  }
  return node;
}

/** Adds the outputs, DISTINCT, ORDER BY and LIMIT above the rows of a block. */
export function planOutputs(select: BoundSelect, block: PlanNode): QueryPlan {
  const input = expanded(block, select, "outputs");
  // Columns that exist only in the plan have negative ids, so they differ from all columns that
  // the binder created.
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
  if (select.expansions.some(({ stage }) => stage === "order")) {
    return planOutputsLate(select, input, { expressions, columns, keys, distinctOn });
  }
  let root: PlanNode = { kind: "project", input, expressions, columns };
  if (select.distinct === "all") {
    const on = columns.slice(0, select.outputs.length).map(columnValue);
    root = { kind: "distinct", input: root, on, columns };
  }
  root = planOrder(select, root, { keys, distinctOn });
  return { root, outputCount: select.outputs.length };
}

interface Projected {
  /** The outputs, followed by the expressions of ORDER BY and DISTINCT. */
  readonly expressions: readonly BoundExpression[];
  readonly columns: readonly BoundColumn[];
  readonly keys: readonly BoundSort[];
  readonly distinctOn: readonly BoundExpression[] | undefined;
}

/**
 * Plans a sort below the table functions of the select list. All rows expanded from the same row
 * therefore stay together, whatever the sort order. If an output is also a sort key, it keeps the
 * value by which the rows were sorted.
 */
function planOutputsLate(
  select: BoundSelect,
  input: PlanNode,
  { columns, distinctOn, expressions, keys }: Projected,
): QueryPlan {
  const asked = new Set([...keys.map(({ expression }) => expression), ...(distinctOn ?? [])]);
  const askedIds = new Set([...asked].map((each) => (each.kind === "column" ? each.column.id : 0)));
  const early = columns.flatMap((column, i) => {
    const expression = expressions[i];
    return askedIds.has(column.id) && expression !== undefined ? [{ column, expression }] : [];
  });
  const base: PlanNode = {
    kind: "project",
    input,
    expressions: [...input.columns.map(columnValue), ...early.map(({ expression }) => expression)],
    columns: [...input.columns, ...early.map(({ column }) => column)],
  };
  const unlimited = { ...select, limit: undefined, offset: undefined };
  const ordered = planOrder(unlimited, base, { keys, distinctOn });
  const root: PlanNode = {
    kind: "project",
    input: expanded(ordered, select, "order"),
    expressions: expressions.map((expression, i) => {
      const column = columns[i];
      return column !== undefined && askedIds.has(column.id) ? columnValue(column) : expression;
    }),
    columns,
  };
  return { root: planLimit(select, root, keys), outputCount: select.outputs.length };
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
  let root = input;
  if (keys.length > 0 && !areInOrder(root, keys)) {
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
  return planLimit(select, root, keys);
}

function planLimit(
  { limit, offset, withTies }: BoundSelect,
  input: PlanNode,
  keys: readonly BoundSort[],
): PlanNode {
  if (limit === undefined && offset === undefined) return input;
  const { columns } = input;
  return { kind: "limit", input, limit, offset, ties: withTies ? keys : undefined, columns };
}
