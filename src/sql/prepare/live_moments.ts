/**
 * Handles special strings such as 'now' in live queries. When such a string is converted to a
 * timestamp, it means the time of the statement, which a live query does not have. A query that
 * contains such a string is rejected. If a row contains such a string, evaluating the row raises
 * an error.
 */
import { DatabaseError } from "../../base/errors.ts";
import { isTimeWord, type Value } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression, RowFunction } from "../bind/bound_expressions.ts";
import { mapChildren, readsColumn } from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import type { AstNode } from "../parse/ast/ast.ts";

/**
 * Returns the query with casts that reject special strings such as 'now'.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE if a string that does not depend on the row is such
 *   a special string.
 */
export function withoutTimeWords(
  select: BoundSelect,
  node: AstNode,
  context: ExecutionContext,
): BoundSelect {
  const without = (expression: BoundExpression): BoundExpression => {
    const inner = mapChildren(expression, without);
    if (inner.kind !== "call" || inner.readsTimeWords !== true) return inner;
    const [operand] = inner.args;
    if (operand !== undefined && !readsColumn(operand)) refuseTimeWord(operand, node, context);
    return { ...inner, evaluate: failingAtTimeWords(inner.evaluate) };
  };
  return {
    ...select,
    outputs: select.outputs.map((output) => ({
      ...output,
      expression: without(output.expression),
    })),
    where: select.where === undefined ? undefined : without(select.where),
  };
}

function refuseTimeWord(operand: BoundExpression, node: AstNode, context: ExecutionContext): void {
  const value = valueOf(operand, context);
  if (typeof value !== "string" || !isTimeWord(value)) return;
  const isLiteral = operand.kind === "constant" || operand.kind === "slot";
  const position = isLiteral ? operand.untyped?.position : undefined;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot subscribe with '${value}' as a time: its value would change even if the row does not`,
    {
      position: position ?? node._location.start,
      hint: "write a fixed time, or pass the time as a parameter",
    },
  );
}

function valueOf(operand: BoundExpression, context: ExecutionContext): Value | undefined {
  context.checkTime();
  try {
    return compileScalar(operand)(context);
  } catch (error) {
    // If the expression cannot be computed now, the error is raised when a row is evaluated.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

function failingAtTimeWords(evaluate: RowFunction): RowFunction {
  return (values, call) => {
    const [value] = values;
    if (typeof value === "string" && isTimeWord(value)) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot use '${value}' as a time in a live query: its value would change even if the ` +
          "row does not",
      );
    }
    return evaluate(values, call);
  };
}
