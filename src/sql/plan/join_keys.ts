/** Assigns conditions to the sides of a join, and determines the join keys. */
import type { BoundFrom } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctionOf, isVolatile, readsColumn, someChild } from "../bind/walk.ts";
import type { Condition } from "./conditions.ts";
import type { JoinNode } from "./plan.ts";

/** The columns of one side of a join. */
export interface ColumnIds {
  has(id: number): boolean;
}

/**
 * Splits the conditions of a join into its keys, which are equalities between the two sides, and
 * the remaining conditions.
 */
export function keysOf(
  conditions: readonly BoundExpression[],
  leftIds: ColumnIds,
  rightIds: ColumnIds,
): Pick<JoinNode, "leftKeys" | "rightKeys" | "residual"> {
  const leftKeys: BoundExpression[] = [];
  const rightKeys: BoundExpression[] = [];
  const residual: BoundExpression[] = [];
  for (const condition of conditions) {
    const sides = equalSides(condition, leftIds, rightIds);
    if (sides === undefined) {
      residual.push(condition);
    } else {
      leftKeys.push(sides.left);
      rightKeys.push(sides.right);
    }
  }
  return { leftKeys, rightKeys, residual: conjunctionOf(residual) };
}

/** Whether a condition may be moved and reads only the given columns. */
export function isConditionOver({ canMove, columnIds }: Condition, ids: ColumnIds): boolean {
  return canMove && columnIds.every((id) => ids.has(id));
}

/**
 * Whether an expression reads only the given columns. The result is false if the expression reads
 * no columns or is volatile.
 */
export function isOver(expression: BoundExpression, ids: ColumnIds): boolean {
  return !readsOther(expression, ids) && readsColumn(expression) && !isVolatile(expression);
}

function readsOther(expression: BoundExpression, ids: ColumnIds): boolean {
  if (expression.kind === "column") return !ids.has(expression.column.id);
  return someChild(expression, readsOther, ids);
}

export interface EqualSides {
  readonly left: BoundExpression;
  readonly right: BoundExpression;
}

/**
 * Returns the two sides of an equality if one side reads only columns of the first set, and the
 * other side only columns of the second.
 */
export function equalSides(
  condition: BoundExpression,
  leftIds: ColumnIds,
  rightIds: ColumnIds,
): EqualSides | undefined {
  if (condition.kind !== "compare" || condition.operator !== "=") return undefined;
  const { left, right } = condition;
  if (isOver(left, leftIds) && isOver(right, rightIds)) return { left, right };
  if (isOver(right, leftIds) && isOver(left, rightIds)) return { left: right, right: left };
  return undefined;
}

export function columnIdsOf(from: BoundFrom): ReadonlySet<number> {
  const ids = new Set<number>();
  addColumns(from, ({ id }) => ids.add(id));
  return ids;
}

/**
 * Returns the columns of all relations in a part of FROM, including columns merged by full joins.
 */
export function columnsOf(from: BoundFrom): readonly BoundColumn[] {
  return from.kind === "relation" ? from.relation.columns : addedColumns(from);
}

function addedColumns(from: BoundFrom): readonly BoundColumn[] {
  const columns: BoundColumn[] = [];
  addColumns(from, (column) => columns.push(column));
  return columns;
}

function addColumns(from: BoundFrom, add: (column: BoundColumn) => void): void {
  if (from.kind === "relation") {
    for (const column of from.relation.columns) add(column);
    return;
  }
  addColumns(from.left, add);
  addColumns(from.right, add);
  for (const { column } of from.merged ?? []) add(column);
}
