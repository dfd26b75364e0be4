/**
 * Comparisons of a DATE with a moment, asked in days.
 *
 *     date <  moment   =   date <  the first day that begins at the moment or later
 *     date <= moment   =   date <= the day of the moment              (>= and > alike)
 *
 * So that the column is compared as it is stored: nothing is converted for each row, and its bounds
 * let a scan skip row groups. `date < DATE '1994-01-01' + INTERVAL '1 year'` is such a comparison.
 */
import { DATE, splitTimestamp, type Value, type Whole } from "../../../types/mod.ts";
import type { BoundExpression, ComparisonOperator } from "../bound_expressions.ts";
import { readsColumn } from "../walk.ts";

type Comparison = Extract<BoundExpression, { kind: "compare" }>;

/**
 * The same comparison in days where one side is a DATE and the other a moment without columns.
 *
 * @param mirrored Its operator with the sides exchanged.
 */
export function comparedByDay(comparison: Comparison, mirrored: ComparisonOperator): Comparison {
  const { left, operator, right } = comparison;
  if (operator === "=" || operator === "<>") return comparison;
  const leftDate = dateUnder(left);
  if (leftDate !== undefined && isMoment(right)) {
    return {
      ...comparison,
      left: leftDate,
      right: dayOf(right, operator),
      evaluate: orderOf(operator),
    };
  }
  const rightDate = dateUnder(right);
  if (rightDate !== undefined && isMoment(left)) {
    const day = dayOf(left, mirrored);
    return { ...comparison, left: day, right: rightDate, evaluate: orderOf(operator) };
  }
  return comparison;
}

function dateUnder(expression: BoundExpression): BoundExpression | undefined {
  if (expression.kind !== "cast" || !isMomentType(expression)) return undefined;
  const { operand } = expression;
  return operand.type.kind === "date" && readsColumn(operand) ? operand : undefined;
}

function isMoment(expression: BoundExpression): boolean {
  return isMomentType(expression) && !readsColumn(expression);
}

function isMomentType({ type }: BoundExpression): boolean {
  return type.kind === "timestamp" || type.kind === "datetime";
}

/** The day that stands for a moment on the right side of an operator. */
function dayOf(moment: BoundExpression, operator: ComparisonOperator): BoundExpression {
  const isUpper = operator === "<" || operator === ">=";
  return {
    kind: "call",
    type: DATE,
    // Named as a cast: EXPLAIN shows the moment as it was written.
    name: isUpper ? "cast to the next day" : "cast to its day",
    args: [moment],
    evaluate: ([value = null]) => {
      const { days, micros } = splitTimestamp(value as Whole);
      return isUpper && micros > 0 ? days + 1 : days;
    },
    seesNull: false,
    volatility: "immutable",
  };
}

function orderOf(operator: ComparisonOperator): (values: readonly Value[]) => Value {
  const test = ORDERS[operator];
  return ([left = null, right = null]) => test(left as number, right as number);
}

const ORDERS: Readonly<Record<ComparisonOperator, (left: number, right: number) => boolean>> = {
  "=": (left, right) => left === right,
  "<>": (left, right) => left !== right,
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
};
