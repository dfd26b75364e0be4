/**
 * Binds binary operators on bound operands. It selects the form that fits the operand types and,
 * if one exists, the evaluator's loop for that form.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  COMPUTED_PRECISION_MAX,
  DATE,
  type DataType,
  dateOfTimestamp,
  decimalType,
  hasOrder,
  isFiniteTimestamp,
  isGeometric,
  isInteger,
  sameType,
  splitTimestamp,
  typeName,
  type Value,
  type Whole,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../../functions/base/function.ts";
import { resolveBinary } from "../../functions/operator/operators.ts";
import type { Expr } from "../../parse/ast/ast.ts";
import type { BoundComparison, BoundExpression, ComparisonOperator } from "../bound_expressions.ts";
import { readsColumn } from "../walk.ts";
import { numberAsTimeHint } from "./casts.ts";
import { checkPattern, typeWithDerived } from "./collations.ts";
import { decimalLiteral } from "./decimal_literal.ts";
import { comparedWith } from "./float_literal.ts";
import { castArgument } from "./integer_parameters.ts";

/** The largest magnitude up to which doubles represent every integer exactly. */
const WHOLE_MAX = Number.MAX_SAFE_INTEGER;

const COMPARISONS: ReadonlyMap<string, ComparisonOperator> = new Map<string, ComparisonOperator>([
  ["=", "="],
  ["!=", "<>"],
  ["<>", "<>"],
  ["<", "<"],
  ["<=", "<="],
  [">", ">"],
  [">=", ">="],
]);

/** The mirror image of each comparison operator: `a < b` is `b > a`. */
export const MIRRORED: Readonly<Record<ComparisonOperator, ComparisonOperator>> = {
  "=": "=",
  "<>": "<>",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};

/**
 * Returns the comparison that an operator denotes; undefined if the operator is not a comparison.
 * `!=` means `<>`.
 */
export function comparisonOf(op: string): ComparisonOperator | undefined {
  return COMPARISONS.get(op);
}

export interface BinaryOperands {
  readonly op: string;
  readonly left: BoundExpression;
  readonly right: BoundExpression;
}

/** The form of an operator that fits the operands, and the operands cast to the form's types. */
export interface FormedOperands {
  readonly form: OperatorForm;
  readonly left: BoundExpression;
  readonly right: BoundExpression;
}

/**
 * Casts operands to the types that an operator needs.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if no form of the operator accepts them.
 */
export function operandsOf(operands: BinaryOperands, node: Expr): FormedOperands {
  const comparison = comparisonOf(operands.op);
  const op = comparison ?? operands.op;
  const tested = comparison ?? (op.endsWith("DISTINCT FROM") ? "=" : undefined);
  const { left, right } = tested === undefined ? operands : asCompared(operands, node);
  const [leftSide, rightSide] =
    tested === undefined ? [left.type, right.type] : comparedTypes(left, right);
  const form = atOneScale(op, resolveBinary(op, leftSide, rightSide));
  if (form === undefined) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot apply ${op} to values of type ${typeName(left.type)} and ${typeName(right.type)}`,
      { position: node._location.start, hint: hintOf(operands) },
    );
  }
  const [leftType = left.type, rightType = right.type] = form.operands;
  return {
    form,
    left:
      comparedLiteral(left, tested === undefined ? undefined : MIRRORED[tested], leftType) ??
      castArgument(left, { to: leftType, node }),
    right:
      comparedLiteral(right, tested, rightType) ?? castArgument(right, { to: rightType, node }),
  };
}

/**
 * Applies an operator to bound operands.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if no form of the operator accepts them.
 */
export function binaryOf(operands: BinaryOperands, node: Expr): BoundExpression {
  const comparison = comparisonOf(operands.op);
  const op = comparison ?? operands.op;
  const { form, left: l, right: r } = operandsOf(operands, node);
  const { left, right } = operands;
  checkPattern(op, [left, right], node._location.start);
  const [leftType = left.type, rightType = right.type] = form.operands;
  const { evaluate, evaluateVector, result, seesNull } = form;
  if (comparison !== undefined && sameType(leftType, rightType) && hasOrder(leftType)) {
    return comparedByDay(
      { kind: "compare", type: BOOLEAN, operator: comparison, left: l, right: r, evaluate },
      MIRRORED[comparison],
    );
  }
  const magnitudeMax = arithmeticMagnitude(op, form);
  if (magnitudeMax !== undefined && (op === "+" || op === "-" || op === "*")) {
    return {
      kind: "arithmetic",
      type: result,
      operator: op,
      left: l,
      right: r,
      magnitudeMax,
      evaluate,
    };
  }
  return {
    kind: "call",
    type: typeWithDerived(result, [left, right]),
    name: op,
    args: [l, r],
    evaluate,
    evaluateVector,
    seesNull: seesNull === true,
    volatility: "immutable",
  };
}

function asCompared(
  { left, right }: BinaryOperands,
  node: Expr,
): Pick<BinaryOperands, "left" | "right"> {
  return { left: comparedWith(right, left, node), right: comparedWith(left, right, node) };
}

/**
 * Converts decimals with two different scales to the larger scale before they are added or
 * subtracted, because the evaluator's loops require equal scales.
 */
function atOneScale(op: string, form: OperatorForm | undefined): OperatorForm | undefined {
  if (form === undefined || (op !== "+" && op !== "-")) return form;
  const [left, right] = form.operands;
  if (left?.kind !== "decimal" || right?.kind !== "decimal") return form;
  if (left.scale === right.scale || form.result.kind !== "decimal") return form;
  const scale = Math.max(left.scale, right.scale);
  const wholeDigits = Math.max(left.precision - left.scale, right.precision - right.scale);
  if (wholeDigits + scale >= COMPUTED_PRECISION_MAX) return form;
  const widened = decimalType(wholeDigits + scale, scale);
  return resolveBinary(op, widened, widened);
}

/**
 * Returns the types in which two operands are compared. An untyped literal takes the type of a
 * DECIMAL on the other side.
 */
function comparedTypes(
  leftSide: BoundExpression,
  rightSide: BoundExpression,
): [DataType, DataType] {
  const { type: left } = leftSide;
  const { type: right } = rightSide;
  if (isUntypedBeside(left, right) || isSteppedBeside(leftSide, rightSide)) return [right, right];
  return isUntypedBeside(right, left) || isSteppedBeside(rightSide, leftSide)
    ? [left, left]
    : [left, right];
}

function isUntypedBeside(type: DataType, other: DataType): boolean {
  return type.kind === "unknown" && other.kind === "decimal";
}

/**
 * Whether a comparison converts a NUMERIC operand to the DECIMAL type of the other side. If the
 * other side is a column, it then keeps its fast comparison, its key lookups and its range checks.
 */
function isSteppedBeside(operand: BoundExpression, other: BoundExpression): boolean {
  if (operand.type.kind !== "numeric" || other.type.kind !== "decimal") return false;
  return readsColumn(other) || !readsColumn(operand);
}

/**
 * Returns an operand that is compared with a DECIMAL if it is an untyped literal or a NUMERIC;
 * undefined for any other operand.
 */
function comparedLiteral(
  operand: BoundExpression,
  operator: ComparisonOperator | undefined,
  type: DataType,
): BoundExpression | undefined {
  if (operator === undefined || type.kind !== "decimal") return undefined;
  if (operand.type.kind !== "unknown" && operand.type.kind !== "numeric") return undefined;
  if (operand.kind === "constant" && operand.value === null) return undefined;
  return decimalLiteral(operand, { operator, type });
}

/**
 * Returns the largest magnitude up to which doubles compute the result of an operation exactly;
 * undefined if there is none.
 */
function arithmeticMagnitude(op: string, { operands, result }: OperatorForm): number | undefined {
  const [left, right] = operands;
  if (left === undefined || right === undefined) return undefined;
  if (isInteger(left) && isInteger(right) && isInteger(result)) {
    if (result.kind === "smallint") return 32767;
    return result.kind === "int" ? 2147483647 : WHOLE_MAX;
  }
  if (left.kind === "double" && right.kind === "double" && result.kind === "double") {
    return Number.MAX_VALUE;
  }
  if (left.kind !== "decimal" || right.kind !== "decimal" || result.kind !== "decimal") {
    return undefined;
  }
  const scaleFits =
    op === "*"
      ? left.scale + right.scale === result.scale
      : left.scale === result.scale && right.scale === result.scale;
  return scaleFits ? Math.min(WHOLE_MAX, 10 ** result.precision - 1) : undefined;
}

/** Returns the element type of an array type; undefined for any other type. */
export function elementOf(type: DataType): DataType | undefined {
  return type.kind === "array" ? type.element : undefined;
}

/**
 * Suggests the operator or the cast that the author probably meant, if the operator does not
 * accept the operand types.
 */
function hintOf({ left, op, right }: BinaryOperands): string {
  const kinds = [left.type.kind, right.type.kind];
  if (comparisonOf(op) !== undefined && (isGeometric(left.type) || isGeometric(right.type))) {
    return "to test whether two shapes are the same, write a ~= b";
  }
  switch (op) {
    case "||":
      if (kinds.includes("boolean"))
        return "|| concatenates strings; to combine conditions, use OR";
      break;
    case "&&":
      if (!kinds.includes("array"))
        return "&& tests whether arrays overlap; to combine conditions, use AND";
      break;
    case "<=>":
      return "write name IS NOT DISTINCT FROM other_name";
    case "+":
      if (kinds.every((kind) => kind === "text" || kind === "unknown"))
        return "write first_name || last_name";
      break;
  }
  const timeHint =
    numberAsTimeHint(left.type, right.type) ?? numberAsTimeHint(right.type, left.type);
  if (timeHint === undefined) return "cast one of the two sides";
  if (op === "+" || op === "-") return "write sent_at + INTERVAL '1 day'";
  return kinds.includes("int") ? "write dates in quotes: '2026-01-31'" : timeHint;
}

/**
 * Rewrites a comparison of a DATE with a timestamp that reads no columns as a comparison of days.
 *
 *     date <  moment   =   date <  the first day that begins at the moment or later
 *     date <= moment   =   date <= the day of the moment              (likewise >= and >)
 *
 * The column is then compared in its stored form: no row needs to be converted, and the column's
 * bounds allow a scan to skip row groups. `date < DATE '1994-01-01' + INTERVAL '1 year'` is such a
 * comparison.
 *
 * @param mirrored The operator with both sides exchanged.
 */
function comparedByDay(comparison: BoundComparison, mirrored: ComparisonOperator): BoundComparison {
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

/** Returns the day that replaces a timestamp on the right side of a comparison. */
function dayOf(moment: BoundExpression, operator: ComparisonOperator): BoundExpression {
  const isUpper = operator === "<" || operator === ">=";
  return {
    kind: "call",
    type: DATE,
    // The function that converts the timestamp has a name that reads like a cast, so that EXPLAIN
    // still shows the original timestamp.
    name: isUpper ? "cast to the next day" : "cast to its day",
    args: [moment],
    evaluate: ([value = null]) => {
      const timestamp = value as Whole;
      const isWithin = isFiniteTimestamp(timestamp) && splitTimestamp(timestamp).micros > 0;
      return dateOfTimestamp(timestamp) + (isUpper && isWithin ? 1 : 0);
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
