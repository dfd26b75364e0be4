/**
 * Binary operators over bound operands: which form serves their types, and whether the evaluator
 * has a loop of its own for it.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  type DataType,
  DECIMAL_PRECISION_MAX,
  decimalType,
  isInteger,
  sameType,
  typeName,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../../functions/base/function.ts";
import { resolveBinary } from "../../functions/operator/operators.ts";
import type { Expr } from "../../parse/ast/ast.ts";
import type { BoundExpression, ComparisonOperator } from "../bound_expressions.ts";
import { comparedByDay } from "./day_comparison.ts";
import { decimalLiteral } from "./decimal_literal.ts";
import { comparedWith } from "./float_literal.ts";
import { castArgument } from "./integer_parameters.ts";
import { numberAsTimeHint } from "./time_hints.ts";

/** Magnitude up to which whole numbers are exact in doubles. */
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

/** The same test with its sides exchanged. */
export const MIRRORED: Readonly<Record<ComparisonOperator, ComparisonOperator>> = {
  "=": "=",
  "<>": "<>",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};

/** The comparison that an operator is, if it is one; `!=` is `<>`. */
export function comparisonOf(op: string): ComparisonOperator | undefined {
  return COMPARISONS.get(op);
}

export interface BinaryOperands {
  readonly op: string;
  readonly left: BoundExpression;
  readonly right: BoundExpression;
}

/** The form of an operator, and its operands in the types of the form. */
export interface FormedOperands {
  readonly form: OperatorForm;
  readonly left: BoundExpression;
  readonly right: BoundExpression;
}

/** Casts operands for an operator. @throws {DatabaseError} TYPE_MISMATCH if there is no form. */
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
      `Cannot apply ${op} to ${typeName(left.type)} and ${typeName(right.type)}`,
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

/** An operator over bound operands. @throws {DatabaseError} TYPE_MISMATCH if there is no form. */
export function binaryOf(operands: BinaryOperands, node: Expr): BoundExpression {
  const comparison = comparisonOf(operands.op);
  const op = comparison ?? operands.op;
  const { form, left: l, right: r } = operandsOf(operands, node);
  const { left, right } = operands;
  const [leftType = left.type, rightType = right.type] = form.operands;
  const { evaluate, evaluateVector, result, seesNull } = form;
  if (comparison !== undefined && sameType(leftType, rightType)) {
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
    type: result,
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
 * Sums and differences of decimals of two scales, over operands of the larger one: so the
 * evaluator's loops serve them.
 */
function atOneScale(op: string, form: OperatorForm | undefined): OperatorForm | undefined {
  if (form === undefined || (op !== "+" && op !== "-")) return form;
  const [left, right] = form.operands;
  if (left?.kind !== "decimal" || right?.kind !== "decimal") return form;
  if (left.scale === right.scale || form.result.kind !== "decimal") return form;
  const scale = Math.max(left.scale, right.scale);
  const wholeDigits = Math.max(left.precision - left.scale, right.precision - right.scale);
  if (wholeDigits + scale >= DECIMAL_PRECISION_MAX) return form;
  const widened = decimalType(wholeDigits + scale, scale);
  return resolveBinary(op, widened, widened);
}

/** The types of a comparison: a literal without one has that of a DECIMAL beside it. */
function comparedTypes(
  { type: left }: BoundExpression,
  { type: right }: BoundExpression,
): [DataType, DataType] {
  return [isUntypedBeside(left, right) ? right : left, isUntypedBeside(right, left) ? left : right];
}

function isUntypedBeside(type: DataType, other: DataType): boolean {
  return type.kind === "unknown" && other.kind === "decimal";
}

/** An untyped literal that is compared with a DECIMAL; undefined for every other operand. */
function comparedLiteral(
  operand: BoundExpression,
  operator: ComparisonOperator | undefined,
  type: DataType,
): BoundExpression | undefined {
  if (operator === undefined || operand.type.kind !== "unknown" || type.kind !== "decimal") {
    return undefined;
  }
  if (operand.kind === "constant" && operand.value === null) return undefined;
  return decimalLiteral(operand, { operator, type });
}

/** Largest result that doubles compute exactly as the form does; undefined where none is. */
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

/** The type of array elements, or undefined for another type. */
export function elementOf(type: DataType): DataType | undefined {
  return type.kind === "array" ? type.element : undefined;
}

/** Suggests the form that was probably meant when an operator does not accept these types. */
function hintOf({ left, op, right }: BinaryOperands): string {
  const kinds = [left.type.kind, right.type.kind];
  switch (op) {
    case "||":
      if (kinds.includes("boolean")) return "|| concatenates texts: write a OR b";
      break;
    case "&&":
      if (!kinds.includes("array")) return "&& tests whether arrays overlap: write a AND b";
      break;
    case "<=>":
      return "write a IS NOT DISTINCT FROM b";
    case "+":
      if (kinds.every((kind) => kind === "text" || kind === "unknown")) return "write a || b";
      break;
  }
  const timeHint =
    numberAsTimeHint(left.type, right.type) ?? numberAsTimeHint(right.type, left.type);
  if (timeHint === undefined) return "cast one side explicitly";
  if (op === "+" || op === "-") return "write a + INTERVAL '1 day'";
  return kinds.includes("int") ? "write a date in quotes: '2026-01-31'" : timeHint;
}
