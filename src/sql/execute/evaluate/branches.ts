/**
 * Compiles the expressions whose operands are evaluated only for some rows: AND, OR, CASE and
 * COALESCE.
 *
 * An operand is evaluated for a row only if the preceding operands have not decided the result, so
 * a guarded operand cannot fail for a row that does not reach it.
 */

import { defined } from "../../../base/assert.ts";
import type { Vector } from "../../../types/mod.ts";
import type { BoundExpression, ExpressionOf } from "../../bind/bound_expressions.ts";
import { mayFail } from "../../bind/walk.ts";
import { combineTruth, truthTest } from "../kernels/truth.ts";
import type { Evaluator } from "./expression.ts";
import { type BatchLayout, positionsOf } from "./layout.ts";
import { type Answered, placed } from "./placed_values.ts";
import { allRows, openRows, scatter, split, takeColumns } from "./row_choice.ts";

/**
 * The function that compiles operands, and the layout of the batches over which the compiled
 * operands are evaluated.
 */
export interface Compiling {
  readonly layout: BatchLayout;
  readonly compile: (expression: BoundExpression) => Evaluator;
}

/**
 * Compiles AND and OR. Operands that may fail are evaluated only where the preceding operands have
 * not decided the result.
 */
export function compileLogic(
  { kind, operands }: ExpressionOf<"and" | "or">,
  { compile, layout }: Compiling,
): Evaluator {
  const parts = operands.map((operand) => ({
    evaluate: compile(operand),
    needed: mayFail(operand) ? positionsOf(operand, layout) : undefined,
  }));
  // The deciding value. Once an operand has this value, AND or OR needs no further operand.
  const settling = kind === "or";
  return (batch, context) => {
    let result: Vector | undefined;
    for (const { evaluate, needed } of parts) {
      context.effort.noteRows(batch.rowCount);
      if (result === undefined) {
        result = evaluate(batch, context);
      } else if (result.kind === "const" && result.value === settling) {
        return result;
      } else if (needed === undefined) {
        result = combineTruth(kind, result, evaluate(batch, context));
      } else {
        const open = openRows(result, settling, batch.rowCount);
        const narrow = takeColumns(batch, open, needed);
        const values = open.count === 0 ? undefined : evaluate(narrow, context);
        result = combineTruth(kind, result, scatter(values, open, batch.rowCount, settling));
      }
    }
    return defined(result, "expression compiler: AND or OR has no operands");
  };
}

/** Compiles CASE. Each branch is evaluated only for the rows that reach it. */
export function compileCase(
  { branches, otherwise, type }: ExpressionOf<"case">,
  { compile, layout }: Compiling,
): Evaluator {
  const compiled = branches.map(({ when, value }) => ({
    when: compile(when),
    whenColumns: positionsOf(when, layout),
    value: compile(value),
    valueColumns: positionsOf(value, layout),
  }));
  const last =
    otherwise === undefined
      ? undefined
      : { value: compile(otherwise), columns: positionsOf(otherwise, layout) };
  return (batch, context) => {
    const answers: Answered[] = [];
    let open = allRows(batch.rowCount);
    for (const branch of compiled) {
      if (open.count === 0) break;
      context.effort.noteRows(open.count);
      const truth = branch.when(takeColumns(batch, open, branch.whenColumns), context);
      const { chosen, rest } = split(open, truth);
      if (chosen.count > 0) {
        const values = branch.value(takeColumns(batch, chosen, branch.valueColumns), context);
        answers.push({ rows: chosen, values });
      }
      open = rest;
    }
    if (last !== undefined && open.count > 0) {
      const values = last.value(takeColumns(batch, open, last.columns), context);
      answers.push({ rows: open, values });
    }
    return placed(type, answers, batch.rowCount);
  };
}

/**
 * Compiles COALESCE. Each operand is evaluated only for the rows in which all earlier operands are
 * NULL.
 */
export function compileCoalesce(
  { operands, type }: ExpressionOf<"coalesce">,
  { compile, layout }: Compiling,
): Evaluator {
  const compiled = operands.map((operand) => ({
    value: compile(operand),
    columns: positionsOf(operand, layout),
  }));
  return (batch, context) => {
    const answers: Answered[] = [];
    let open = allRows(batch.rowCount);
    for (const { value, columns } of compiled) {
      if (open.count === 0) break;
      const values = value(takeColumns(batch, open, columns), context);
      answers.push({ rows: open, values });
      const isNull: Vector = truthTest(values, { test: "null", negated: false });
      open = split(open, isNull).chosen;
    }
    return placed(type, answers, batch.rowCount);
  };
}
