/**
 * Evaluates expressions that read no columns. Such an expression has a single value per execution,
 * so it needs no batch.
 *
 * Most such expressions (for LIMIT, a key, a row of VALUES, or a program) consist of constants,
 * slots, operators and built-in functions, and are evaluated without a vector. All others are
 * evaluated by `expression.ts` over a batch of one row.
 */
import { type Value, valueAt } from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileExpression } from "./expression.ts";
import { EMPTY_LAYOUT, SINGLE_ROW } from "./layout.ts";
import { compileForRow } from "./single_row.ts";

/**
 * Compiles an expression that reads no columns to a function whose result depends only on the
 * execution.
 */
export function compileScalar(expression: BoundExpression): (context: ExecutionContext) => Value {
  switch (expression.kind) {
    case "constant": {
      const value = expression.value;
      return () => value;
    }
    case "slot": {
      const slot = expression.slot;
      return (context) => context.slots[slot] ?? null;
    }
    case "cast": {
      const operand = compileScalar(expression.operand);
      const convert = expression.convert;
      return (context) => {
        const value = operand(context);
        return value === null ? null : convert(value);
      };
    }
    default: {
      const direct = compileForRow(expression, EMPTY_LAYOUT);
      if (direct !== undefined) return (context) => direct([], context);
      const evaluate = compileExpression(expression, EMPTY_LAYOUT);
      return (context) => valueAt(evaluate(SINGLE_ROW, context), 0);
    }
  }
}
