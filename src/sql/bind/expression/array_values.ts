/** Builds arrays from bound values. */
import { arrayOfArrays, type DataType } from "../../../types/mod.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { arrayTypeOf } from "./types.ts";

/** Returns `ARRAY[…]` with the given values, all of which have the same type. */
export function arrayOfValues(
  values: readonly BoundExpression[],
  element: DataType,
): BoundExpression {
  return {
    kind: "call",
    type: arrayTypeOf(element),
    name: "array",
    args: values,
    evaluate: element.kind === "array" ? arrayOfArrays : (items) => [...items],
    seesNull: true,
    volatility: "immutable",
  };
}
