/**
 * Converts the argument of a sum to a single scale if its parts have different known scales,
 * because the loops over numbers of the same scale are fast:
 *
 *     sum(CASE WHEN sold THEN price ELSE 0 END)     numeric → numeric(12,2)
 *     sum(price - coalesce(refund, 0))
 *
 * The value of the sum does not change. The sum has as many decimal places as the part with the
 * largest scale, even if no row uses that part.
 */
import {
  bigDecimalOf,
  comparedType,
  decimalShape,
  decimalType,
  isFiniteNumeric,
  isInteger,
  wholeFromBigint,
} from "../../../types/mod.ts";
import type { Expr } from "../../parse/ast/ast.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { binaryOf } from "./binary_forms.ts";
import { castTo } from "./casts.ts";

/**
 * Returns an equivalent expression in which all numbers have the same scale; undefined if the
 * scale of some part is unknown.
 */
export function ofOneScale(expression: BoundExpression, node: Expr): BoundExpression | undefined {
  const { kind, type } = expression;
  if (type.kind === "decimal" || isInteger(type)) return expression;
  if (type.kind !== "numeric") return undefined;
  switch (kind) {
    case "constant":
      return constantOfOneScale(expression);
    case "cast":
      return ofOneScale(expression.operand, node);
    case "case": {
      const { branches, otherwise } = expression;
      const values = branches.map(({ value }) => value);
      if (otherwise !== undefined) values.push(otherwise);
      const cast = allOfOneScale(values, node);
      if (cast === undefined) return undefined;
      return {
        kind,
        type: cast[0]?.type ?? type,
        branches: branches.map(({ when, value }, i) => ({ when, value: cast[i] ?? value })),
        otherwise: otherwise === undefined ? undefined : cast.at(-1),
      };
    }
    case "coalesce": {
      const operands = allOfOneScale(expression.operands, node);
      return operands && { kind, type: operands[0]?.type ?? type, operands };
    }
    case "call":
      return resultOfOneScale(expression, node);
    default:
      return undefined;
  }
}

function constantOfOneScale({
  value,
}: BoundExpression & { kind: "constant" }): BoundExpression | undefined {
  if (typeof value !== "string" || !isFiniteNumeric(value)) return undefined;
  const digits = bigDecimalOf(value);
  const shape = decimalShape(digits);
  if (shape === undefined) return undefined;
  const type = decimalType(shape.precision, shape.scale);
  return { kind: "constant", type, value: wholeFromBigint(digits.unscaled) };
}

function resultOfOneScale(
  { args, name }: BoundExpression & { kind: "call" },
  node: Expr,
): BoundExpression | undefined {
  if (name !== "+" && name !== "-" && name !== "*") return undefined;
  const [left, right] = args.map((argument) => ofOneScale(argument, node));
  if (left === undefined || right === undefined) return undefined;
  const result = binaryOf({ op: name, left, right }, node);
  return result.type.kind === "decimal" ? result : undefined;
}

/** Casts all expressions to their widest type. NULL fits every scale. */
function allOfOneScale(
  expressions: readonly BoundExpression[],
  node: Expr,
): BoundExpression[] | undefined {
  const narrowed: BoundExpression[] = [];
  for (const expression of expressions) {
    const isNull = expression.kind === "constant" && expression.value === null;
    const one = isNull ? expression : ofOneScale(expression, node);
    if (one === undefined) return undefined;
    narrowed.push(one);
  }
  const known = narrowed.filter(({ type }) => type.kind === "decimal" || isInteger(type));
  const to = comparedType(known.map(({ type }) => type));
  if (to?.kind !== "decimal") return undefined;
  return narrowed.map((each) =>
    each.kind === "constant" && each.value === null
      ? { kind: "constant", type: to, value: null }
      : castTo(each, { to, mode: "implicit", node }),
  );
}
