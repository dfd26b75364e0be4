/**
 * Defines the functions that handle NULL. COALESCE and NULLIF are defined here for callers that
 * have no dedicated expression node for them. For CASE, the binder has a separate node.
 */
import { BOOLEAN, INT, type Value } from "../../types/mod.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";
import { resolveComparison } from "./operator/operator_compare.ts";

function nullCount(values: readonly Value[]): number {
  return values.filter((value) => value === null).length;
}

function counting(count: (values: readonly Value[]) => number): Overload {
  return overload(["any"], INT, count, { variadic: "any", seesNull: true });
}

const NULLIF: Overload = {
  ...overload(["same", "same"], firstType, () => null, { seesNull: true }),
  specialise: ([left, right]) => {
    if (left === undefined || right === undefined) return undefined;
    const equal = resolveComparison("=", left, right);
    if (equal === undefined || equal.result !== BOOLEAN) return undefined;
    return {
      result: left,
      evaluate: (values) => {
        const [value = null, other = null] = values;
        if (value === null || other === null) return value;
        return equal.evaluate(values) === true ? null : value;
      },
    };
  },
};

export const CONDITIONAL_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["coalesce"],
    overload(["same"], firstType, (values) => values.find((value) => value !== null) ?? null, {
      variadic: "same",
      seesNull: true,
    }),
  ),
  ...functionsNamed(["nullif"], NULLIF),
  ...functionsNamed(["num_nulls"], counting(nullCount)),
  ...functionsNamed(
    ["num_nonnulls"],
    counting((values) => values.length - nullCount(values)),
  ),
];
