/**
 * Expressions that name no column: one value for each execution, without a batch around it.
 *
 * What most statements have of them, as LIMIT, a key, or a row of VALUES, is a constant, a slot or
 * a cast of one, and is read without a vector; anything else is one row of `expression.ts`.
 */
import { type Value, valueAt } from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import type { Run } from "../run/run.ts";
import { compileExpression } from "./expression.ts";
import { EMPTY_LAYOUT, SINGLE_ROW } from "./layout.ts";

/** Compiles an expression that names no column to a function of the execution alone. */
export function compileScalar(expression: BoundExpression): (run: Run) => Value {
  switch (expression.kind) {
    case "constant": {
      const value = expression.value;
      return () => value;
    }
    case "slot": {
      const slot = expression.slot;
      return (run) => run.slots[slot] ?? null;
    }
    case "cast": {
      const operand = compileScalar(expression.operand);
      const convert = expression.convert;
      return (run) => {
        const value = operand(run);
        return value === null ? null : convert(value);
      };
    }
    default: {
      const evaluate = compileExpression(expression, EMPTY_LAYOUT);
      return (run) => valueAt(evaluate(SINGLE_ROW, run), 0);
    }
  }
}
