/**
 * Evaluates simple expressions over the values of a single row. Expressions of programs and the
 * steps of user-defined aggregates are evaluated one row at a time, and creating a vector for each
 * value takes longer than such an evaluation.
 *
 * The results, the errors and the effort that is recorded are those of `expression.ts`.
 */
import { defined } from "../../../base/assert.ts";
import type { Value } from "../../../types/mod.ts";
import type { BoundExpression, ExpressionOf } from "../../bind/bound_expressions.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { BatchLayout } from "./layout.ts";

/** Evaluates an expression. The layout of the expression gives the positions in `row`. */
export type RowEvaluator = (row: readonly Value[], context: ExecutionContext) => Value;

/**
 * Compiles an expression that consists of columns, slots, constants, casts, operators and calls of
 * built-in functions. Returns undefined for any other expression.
 */
export function compileForRow(
  expression: BoundExpression,
  layout: BatchLayout,
): RowEvaluator | undefined {
  switch (expression.kind) {
    case "constant": {
      const { value } = expression;
      return () => value;
    }
    case "slot": {
      const { slot } = expression;
      return (_, context) => context.slots[slot] ?? null;
    }
    case "column": {
      const position = defined(
        layout.get(expression.column.id),
        "single row: column is missing from the layout",
      );
      return (row) => row[position] ?? null;
    }
    case "cast":
      return castOf(expression, layout);
    case "call":
      return callOf(expression, layout);
    case "arithmetic":
    case "compare":
      return operatorOf(expression, layout);
    default:
      return undefined;
  }
}

function castOf(
  { cell, convert, isSameText = false, operand }: ExpressionOf<"cast">,
  layout: BatchLayout,
): RowEvaluator | undefined {
  const inner = compileForRow(operand, layout);
  if (inner === undefined || cell !== undefined) return undefined;
  if (isSameText) return inner;
  return (row, context) => {
    const value = inner(row, context);
    return value === null ? null : convert(value);
  };
}

function operatorOf(
  { evaluate, left, right }: ExpressionOf<"arithmetic" | "compare">,
  layout: BatchLayout,
): RowEvaluator | undefined {
  const first = compileForRow(left, layout);
  const second = compileForRow(right, layout);
  if (first === undefined || second === undefined) return undefined;
  const values: Value[] = [null, null];
  return (row, context) => {
    values[0] = first(row, context);
    values[1] = second(row, context);
    return values[0] === null || values[1] === null ? null : evaluate(values, context.call);
  };
}

function callOf(
  { args, checks, evaluate, program, seesNull }: ExpressionOf<"call">,
  layout: BatchLayout,
): RowEvaluator | undefined {
  if (program !== undefined || checks !== undefined) return undefined;
  const compiled = args.map((argument) => compileForRow(argument, layout));
  if (compiled.includes(undefined)) return undefined;
  const evaluators = compiled.filter((evaluator) => evaluator !== undefined);
  const values: Value[] = args.map(() => null);
  const answer = (row: readonly Value[], context: ExecutionContext): Value => {
    for (const [i, evaluator] of evaluators.entries()) values[i] = evaluator(row, context);
    if (!seesNull && values.includes(null)) return null;
    for (const value of values) context.effort.noteRead(value);
    return evaluate(values, context.call);
  };
  return (row, context) => {
    const value = answer(row, context);
    context.effort.note(value);
    return value;
  };
}
