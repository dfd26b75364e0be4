/**
 * Words like 'now' in live queries. Where a text becomes a time they are the time of the statement,
 * which a live query does not have: one that holds such a word is refused, and a row that does
 * fails.
 */
import { DatabaseError } from "../../base/errors.ts";
import { isTimeWord, type Value } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression, RowFunction } from "../bind/bound_expressions.ts";
import { mapChildren, readsColumn } from "../bind/walk.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import type { Run } from "../execute/run/run.ts";
import type { AstNode } from "../parse/ast/ast.ts";

/**
 * The query with casts that take no such word.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE when a text that no row changes is one.
 */
export function withoutTimeWords(select: BoundSelect, node: AstNode, run: Run): BoundSelect {
  const without = (expression: BoundExpression): BoundExpression => {
    const inner = mapChildren(expression, without);
    if (inner.kind !== "call" || inner.readsTimeWords !== true) return inner;
    const [operand] = inner.args;
    if (operand !== undefined && !readsColumn(operand)) refuseTimeWord(operand, node, run);
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

function refuseTimeWord(operand: BoundExpression, node: AstNode, run: Run): void {
  const value = valueOf(operand, run);
  if (typeof value !== "string" || !isTimeWord(value)) return;
  const isLiteral = operand.kind === "constant" || operand.kind === "slot";
  const position = isLiteral ? operand.untyped?.position : undefined;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot subscribe with '${value}' as a time: its value changes without the row`,
    {
      position: position ?? node._location.start,
      hint: "write the time itself, or pass it as a parameter",
    },
  );
}

function valueOf(operand: BoundExpression, run: Run): Value | undefined {
  run.checkTime();
  try {
    return compileScalar(operand)(run);
  } catch (error) {
    // What cannot be computed fails on a row, as it does anywhere.
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
        `Cannot read '${value}' as a time in a live query: its value changes without the row`,
      );
    }
    return evaluate(values, call);
  };
}
