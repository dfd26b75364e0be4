/**
 * Numbers as written beside a FLOAT, as in `price = 0.1`.
 *
 * FLOAT has 32 bits here and 64 elsewhere, so the nearest FLOAT stands for the number: a value that
 * was stored from the same digits equals it. As a DOUBLE it would lie beside every stored value.
 */
import { FLOAT } from "../../../types/mod.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "./casts.ts";

/**
 * The operand of a comparison with `other`: a FLOAT if that is one and this a number as written.
 */
export function comparedWith(
  other: BoundExpression,
  operand: BoundExpression,
  node: AstNode,
): BoundExpression {
  if (other.type.kind !== "float" || !isWritten(operand)) return operand;
  return castTo(operand, { to: FLOAT, mode: "implicit", node });
}

function isWritten(operand: BoundExpression): boolean {
  if (operand.type.kind !== "decimal") return false;
  if (operand.kind === "slot") return true;
  if (operand.kind === "constant") return operand.isWritten === true;
  const [inner] = operand.kind === "call" && operand.name === "prefix -" ? operand.args : [];
  return inner !== undefined && isWritten(inner);
}
