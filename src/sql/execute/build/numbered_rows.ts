/**
 * Exploits a condition on `row_number()` above a window: below the window, only the first rows of
 * each partition are kept, so that few rows have to be sorted and numbered.
 *
 *     Filter n <= 3 ──► Project ──► Window row_number() AS n ──► first rows ──► input
 */
import type { BoundExpression, BoundWindowCall } from "../../bind/bound_expressions.ts";
import type { PlanNode, WindowNode } from "../../plan/plan.ts";
import type { OperatorFactory } from "../context/operator.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { GROUP_TOP_N_MAX, GroupTopN } from "../sort/group_top_n.ts";
import { sortKeys } from "./build_order.ts";

/** An upper bound on a row number column. Rows beyond the bound are not needed. */
export interface NumberBound {
  readonly columnId: number;
  readonly most: BoundExpression;
  readonly isExclusive: boolean;
}

/** Adds the bounds that a condition implies for integer columns, such as `n <= 3`. */
export function boundsWith(
  condition: BoundExpression,
  bounds: readonly NumberBound[] = [],
): readonly NumberBound[] {
  return [...bounds, ...boundsIn(condition)];
}

function boundsIn(condition: BoundExpression): readonly NumberBound[] {
  if (condition.kind === "and") return condition.operands.flatMap(boundsIn);
  if (condition.kind !== "compare") return [];
  const { left, operator, right } = condition;
  const bound =
    boundOf(left, operator, right) ?? boundOf(right, MIRRORED.get(operator) ?? operator, left);
  return bound === undefined ? [] : [bound];
}

const MIRRORED: ReadonlyMap<string, string> = new Map([
  [">", "<"],
  [">=", "<="],
  ["<", ">"],
  ["<=", ">="],
]);

function boundOf(
  column: BoundExpression,
  operator: string,
  most: BoundExpression,
): NumberBound | undefined {
  if (column.kind !== "column" || column.type.kind !== "bigint" || !isFixed(most)) return undefined;
  if (operator !== "=" && operator !== "<" && operator !== "<=") return undefined;
  return { columnId: column.column.id, most, isExclusive: operator === "<" };
}

function isFixed(expression: BoundExpression): boolean {
  if (expression.kind === "cast") return isFixed(expression.operand);
  return expression.kind === "constant" || expression.kind === "slot";
}

/**
 * Returns the bounds on columns that a projection passes on unchanged. The bounds also apply to
 * the projection's input.
 */
export function boundsBelow(
  { columns, expressions }: Extract<PlanNode, { kind: "project" }>,
  bounds: readonly NumberBound[] = [],
): readonly NumberBound[] {
  return bounds.flatMap((bound) => {
    const expression = expressions[columns.findIndex(({ id }) => id === bound.columnId)];
    return expression?.kind === "column" ? [{ ...bound, columnId: expression.column.id }] : [];
  });
}

/** Removes rows with a row number beyond the bound from the input of a window. */
export function firstsBelow(
  { calls, input }: WindowNode,
  rows: OperatorFactory,
  bounds: readonly NumberBound[] = [],
): OperatorFactory {
  const numbered = calls.find((call) => nameOf(call) === "row_number");
  const bound = bounds.find(({ columnId }) => columnId === numbered?.column.id);
  if (bound === undefined || numbered === undefined || !calls.every(looksBackOnly)) return rows;
  const { orderBy, partitionBy } = numbered.window;
  const layout = layoutOf(input.columns);
  const options = {
    inputTypes: input.columns.map(({ type }) => type),
    on: partitionBy.map((each) => compileExpression(each, layout)),
    onTypes: partitionBy.map(({ type }) => type),
    keys: sortKeys(orderBy, layout),
  };
  const mostOf = compileScalar(bound.most);
  return (context) => {
    const rowsMax = Number(mostOf(context)) - (bound.isExclusive ? 1 : 0);
    const from = rows(context);
    if (!(rowsMax >= 1 && rowsMax <= GROUP_TOP_N_MAX)) return from;
    return new GroupTopN(from, { context, ...options, rowsMax });
  };
}

/** Whether the result of a window call depends only on the current row and earlier rows. */
function looksBackOnly(call: BoundWindowCall): boolean {
  const name = nameOf(call);
  return name === "row_number" || name === "rank" || name === "dense_rank";
}

function nameOf({ form }: BoundWindowCall): string | undefined {
  return form.kind === "function" ? form.name : undefined;
}
