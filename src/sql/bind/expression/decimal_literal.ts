/**
 * Binds untyped literals compared with a DECIMAL, as in `price >= '9.995'` or `price = $1` with a
 * string, and numbers whose scale differs from the DECIMAL's.
 *
 * The literal gets exactly the type of the other side, so that the comparison can use that type's
 * fast loop, key lookups and range checks. The literal is not rounded. If it lies between two
 * neighbouring values of that type, an ordering comparison uses the neighbour that gives the same
 * result, and an equality matches no value.
 */
import {
  addWhole,
  bigDecimalOf,
  castValue,
  compareWhole,
  type DataType,
  fitsPrecision,
  isFiniteNumeric,
  negateWhole,
  numericFromText,
  numericSign,
  rescale,
  truncateScale,
  UNKNOWN,
  type Value,
  type Whole,
  wholeFromBigint,
} from "../../../types/mod.ts";
import type { BoundExpression, ComparisonOperator } from "../bound_expressions.ts";
import { noteLiteral } from "./casts.ts";

export type DecimalDataType = Extract<DataType, { kind: "decimal" }>;

/** Returns the literal as the right side of `value operator literal`. */
export function decimalLiteral(
  literal: BoundExpression,
  { operator, type }: { operator: ComparisonOperator; type: DecimalDataType },
): BoundExpression {
  const compare = literal.type.kind === "numeric" ? comparedNumeric : comparedText;
  const convert = (value: Value): Value =>
    typeof value === "string" ? compare(value, operator, type) : value;
  noteLiteral(literal, convert);
  return { kind: "cast", type, operand: literal, convert, isNumericIdentity: false };
}

function comparedText(text: string, operator: ComparisonOperator, type: DecimalDataType): Value {
  const value = numericFromText(text);
  // The literal is not a number, so the cast raises an error.
  if (value === undefined) return castValue(text, { from: UNKNOWN, to: type, mode: "implicit" });
  return comparedNumeric(value, operator, type);
}

function comparedNumeric(
  value: string,
  operator: ComparisonOperator,
  type: DecimalDataType,
): Value {
  if (!isFiniteNumeric(value)) {
    return numericSign(value) < 0 ? negateWhole(beyond(type)) : beyond(type);
  }
  const digits = bigDecimalOf(value);
  const whole = wholeFromBigint(digits.unscaled);
  const cut = truncateScale(whole, digits.scale, type.scale);
  const isStep =
    digits.scale <= type.scale || compareWhole(rescale(cut, type.scale, digits.scale), whole) === 0;
  const step = isStep ? cut : stepBeside(cut, { operator, type, isNegative: whole < 0 });
  if (fitsPrecision(step, type.precision)) return step;
  return step < 0 ? negateWhole(beyond(type)) : beyond(type);
}

function stepBeside(
  cut: Whole,
  {
    isNegative,
    operator,
    type,
  }: { isNegative: boolean; operator: ComparisonOperator; type: DecimalDataType },
): Whole {
  switch (operator) {
    case "<":
    case ">=":
      return isNegative ? cut : addWhole(cut, 1);
    case "<=":
    case ">":
      return isNegative ? addWhole(cut, -1) : cut;
    case "=":
    case "<>":
      return beyond(type);
  }
}

/**
 * Returns a value that is greater than every value of the type and therefore equals none of them.
 */
function beyond({ precision }: DecimalDataType): Whole {
  return wholeFromBigint(10n ** BigInt(precision));
}
