/**
 * Estimates the share of a relation's rows that satisfy a condition. The estimate is intentionally
 * rough: only the number of distinct values is known, and only the join order depends on it. Each
 * type of condition has a share of its own, so that relations with different conditions can be
 * compared. `estimate.ts`, which estimates entire plans, uses the same share for all conditions.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";

const EQUAL_SHARE = 0.05;
const RANGE_SHARE = 0.4;
const OTHER_SHARE = 1 / 3;

/**
 * Returns the estimated share of rows that satisfy a conjunct, in a relation with `rowCount` rows.
 */
export function shareOf(condition: BoundExpression, rowCount: number): number {
  switch (condition.kind) {
    case "and":
      return condition.operands.reduce((share, each) => share * shareOf(each, rowCount), 1);
    case "or":
      return Math.min(
        1,
        condition.operands.reduce((share, each) => share + shareOf(each, rowCount), 0),
      );
    case "not":
      return Math.max(0, 1 - shareOf(condition.operand, rowCount));
    case "in": {
      const count = condition.items.length + condition.constants.length;
      const each = isKey(condition.operand) ? 1 / Math.max(1, rowCount) : EQUAL_SHARE;
      const share = Math.min(0.5, count * each);
      return condition.negated ? 1 - share : share;
    }
    case "row in":
      return Math.min(0.5, condition.rows.length / Math.max(1, rowCount));
    case "compare":
      return shareOfComparison(condition, rowCount);
    case "call":
      return condition.name.includes("like") ? EQUAL_SHARE : OTHER_SHARE;
    default:
      return OTHER_SHARE;
  }
}

function shareOfComparison(
  { left, operator, right }: Extract<BoundExpression, { kind: "compare" }>,
  rowCount: number,
): number {
  if (operator === "<>") return 1 - EQUAL_SHARE;
  if (operator !== "=") return RANGE_SHARE;
  return isKey(left) || isKey(right) ? 1 / Math.max(1, rowCount) : EQUAL_SHARE;
}

function isKey(side: BoundExpression): boolean {
  const table = side.kind === "column" ? side.column.origin?.table : undefined;
  return table !== undefined && isWholeKey(table, columnIdOf(side));
}

function isWholeKey({ primaryKey }: TableEntry, columnId: number | undefined): boolean {
  return primaryKey.length === 1 && primaryKey[0] === columnId;
}

/**
 * Returns the id of the stored column that an expression reads, ignoring casts; undefined for any
 * other expression.
 */
export function columnIdOf(expression: BoundExpression): number | undefined {
  if (expression.kind === "column") return expression.column.origin?.columnId;
  return expression.kind === "cast" ? columnIdOf(expression.operand) : undefined;
}
