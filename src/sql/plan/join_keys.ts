/**
 * Which conditions belong to which side of a join, and which of them are its keys.
 */
import type { BoundColumn, BoundExpression, BoundFrom } from "../bind/bound.ts";
import { columnIdsIn, conjunctionOf, isVolatile } from "../bind/walk.ts";
import type { JoinNode } from "./plan.ts";

/** Equalities between the sides, and what must hold besides. */
export function keysOf(
  conditions: readonly BoundExpression[],
  leftIds: ReadonlySet<number>,
  rightIds: ReadonlySet<number>,
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

const NO_IDS: ReadonlySet<number> = new Set();

/** Columns of conditions that are asked about for each of many joins; none of volatile ones. */
const fixedIds = new WeakMap<BoundExpression, ReadonlySet<number>>();

/** Whether all columns of a condition are among these; one without columns or volatile is not. */
export function isOver(condition: BoundExpression, ids: ReadonlySet<number>): boolean {
  let used = fixedIds.get(condition);
  if (used === undefined) {
    used = isVolatile(condition) ? NO_IDS : columnIdsIn(condition);
    fixedIds.set(condition, used);
  }
  if (used.size === 0) return false;
  for (const id of used) if (!ids.has(id)) return false;
  return true;
}

/** The sides of an equality, each over one of two sets of columns. */
export function equalSides(
  condition: BoundExpression,
  leftIds: ReadonlySet<number>,
  rightIds: ReadonlySet<number>,
): { left: BoundExpression; right: BoundExpression } | undefined {
  if (condition.kind !== "compare" || condition.operator !== "=") return undefined;
  const { left, right } = condition;
  if (isOver(left, leftIds) && isOver(right, rightIds)) return { left, right };
  if (isOver(right, leftIds) && isOver(left, rightIds)) return { left: right, right: left };
  return undefined;
}

export function columnIdsOf(from: BoundFrom): ReadonlySet<number> {
  return new Set(columnsOf(from).map(({ id }) => id));
}

/** The columns of all relations, and those that full joins merged. */
export function columnsOf(from: BoundFrom): readonly BoundColumn[] {
  if (from.kind === "relation") return from.relation.columns;
  const merged = (from.merged ?? []).map(({ column }) => column);
  return [...columnsOf(from.left), ...columnsOf(from.right), ...merged];
}
