/**
 * Numbers beside a FLOAT, as in `price = 0.1`.
 *
 * FLOAT has 32 bits here and 64 elsewhere, so a DECIMAL is compared with it as the nearest FLOAT: a
 * value that was stored from the same digits equals it, wherever the DECIMAL comes from. As a
 * DOUBLE it would lie beside every stored value. A parameter that is a number stands for its
 * digits, too; any other DOUBLE keeps its 64 bits.
 */
import { type DataType, DOUBLE, FLOAT, type Value } from "../../../types/mod.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "./casts.ts";

/** The operand of a comparison with `other`: the nearest FLOAT if that is one, as said above. */
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

/** The types in which an operand and the elements of an array are compared. */
export function comparedWithElements(
  operand: BoundExpression,
  element: DataType,
): readonly [DataType, DataType] {
  if (element.kind === "float" && operand.type.kind === "decimal") return [FLOAT, element];
  if (element.kind === "decimal" && operand.type.kind === "float") return [operand.type, FLOAT];
  return [operand.type, element];
}

/** The value itself where no FLOAT is near: beyond the range, or between 0 and the least. */
function nearestFloat(value: Value): number {
  const number = value as number;
  const nearest = Math.fround(number);
  return Number.isFinite(nearest) && (nearest !== 0 || number === 0) ? nearest : number;
}
