/**
 * Binds numbers compared with a FLOAT, as in `price = 0.1`.
 *
 * FLOAT has 32 bits, so a DECIMAL is compared with it as the nearest FLOAT. The DECIMAL then
 * equals a FLOAT that was stored from the same digits. Compared as DOUBLE, the two would never be
 * equal. A numeric parameter is also compared as the nearest FLOAT, but any other DOUBLE keeps its
 * 64 bits.
 */
import { type DataType, DOUBLE, FLOAT, type Value } from "../../../types/mod.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "./casts.ts";

/**
 * Returns the operand of a comparison with `other`, converted to the nearest FLOAT if `other` is a
 * FLOAT and the operand is a DECIMAL or a DOUBLE parameter.
 */
export function comparedWith(
  other: BoundExpression,
  operand: BoundExpression,
  node: AstNode | undefined,
): BoundExpression {
  if (other.type.kind !== "float") return operand;
  if (operand.type.kind === "decimal") {
    return castTo(operand, { to: FLOAT, mode: "implicit", node });
  }
  if (operand.kind !== "slot" || operand.type.kind !== "double") return operand;
  return {
    kind: "call",
    type: DOUBLE,
    name: "nearest real",
    args: [operand],
    evaluate: ([value = null]) => nearestFloat(value),
    seesNull: false,
    volatility: "immutable",
  };
}

/** Returns the types in which an operand is compared with the elements of an array. */
export function comparedWithElements(
  operand: BoundExpression,
  element: DataType,
): readonly [DataType, DataType] {
  if (element.kind === "float" && operand.type.kind === "decimal") return [FLOAT, element];
  if (element.kind === "decimal" && operand.type.kind === "float") return [operand.type, FLOAT];
  return [operand.type, element];
}

/**
 * Returns the nearest FLOAT. A value that is out of range, or between 0 and the smallest FLOAT, is
 * returned unchanged.
 */
function nearestFloat(value: Value): number {
  const number = value as number;
  const nearest = Math.fround(number);
  return Number.isFinite(nearest) && (nearest !== 0 || number === 0) ? nearest : number;
}
