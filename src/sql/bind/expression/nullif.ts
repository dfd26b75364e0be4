/**
 * NULLIF(value, other): NULL where `value = other`, compared as the operator compares them, and
 * else the value.
 *
 *     NULLIF(int, bigint)   → integer     the two can be compared as they are
 *     NULLIF(int, decimal)  → numeric     only decimals can be compared, so the value becomes one
 *
 * That is PostgreSQL's rule for the type of the result.
 */
import { casterFor, type DataType, isInteger, type Value } from "../../../types/mod.ts";
import type { ExprCall } from "../../parse/ast/ast.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { operandsOf } from "./binary_forms.ts";

/** @throws {DatabaseError} TYPE_MISMATCH */
export function bindNullif(
  value: BoundExpression,
  other: BoundExpression,
  node: ExprCall,
): BoundExpression {
  const { form, left, right } = operandsOf({ op: "=", left: value, right: other }, node);
  const isKept = keepsType(value.type, left.type);
  const returned = isKept ? value : left;
  const convert = isKept ? casterFor(value.type, left.type, "implicit") : undefined;
  return {
    kind: "call",
    type: returned.type,
    name: "nullif",
    args: [returned, right],
    evaluate: ([first = null, second = null]: readonly Value[]): Value => {
      if (first === null || second === null) return first;
      const compared = convert === undefined ? first : convert(first);
      return form.evaluate([compared, second]) === true ? null : first;
    },
    seesNull: true,
    volatility: "immutable",
  };
}

/** Whether a value is returned in its own type although another type is compared. */
function keepsType(own: DataType, compared: DataType): boolean {
  if (own.kind === compared.kind) return true;
  if (isInteger(own)) return isInteger(compared);
  if (own.kind === "float") return compared.kind === "double";
  return isMoment(own) && isMoment(compared);
}

function isMoment({ kind }: DataType): boolean {
  return kind === "date" || kind === "timestamp" || kind === "datetime";
}
