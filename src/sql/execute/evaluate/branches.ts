/**
 * Expressions whose operands are evaluated on some rows only: AND, OR, CASE and COALESCE.
 *
 * A row asks for an operand only where those before it leave its answer open, so that one guarded
 * by another fails for no row that does not reach it.
 */
import { defined } from "../../../base/assert.ts";
import { physicalKind, type Value, type Vector, vectorFromValues } from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { mayFail } from "../../bind/walk.ts";
import { combineTruth, truthTest } from "../kernels/truth.ts";
import type { Evaluator } from "./expression.ts";
import { type Layout, positionsOf } from "./layout.ts";
import {
  type Answered,
  allRows,
  openRows,
  place,
  placedConstants,
  scatter,
  split,
  takeColumns,
} from "./row_choice.ts";

type Of<Kind extends BoundExpression["kind"]> = Extract<BoundExpression, { kind: Kind }>;

/** How operands are compiled, and for what. */
export interface Compiling {
  readonly layout: Layout;
  readonly compile: (expression: BoundExpression) => Evaluator;
}

/**
 * AND and OR: what can fail is evaluated only where the operands before it have not settled the
 * whole.
 */
export function compileLogic(
  { kind, operands }: Of<"and" | "or">,
  { compile, layout }: Compiling,
): Evaluator {
  const parts = operands.map((operand) => ({
    evaluate: compile(operand),
    needed: mayFail(operand) ? positionsOf(operand, layout) : undefined,
  }));
  // The value that settles the whole: what AND and OR need not look past.
  const settling = kind === "or";
  return (batch, run) => {
    let result: Vector | undefined;
    for (const { evaluate, needed } of parts) {
      run.effort.noteRows(batch.rowCount);
      if (result === undefined) {
        result = evaluate(batch, run);
      } else if (result.kind === "const" && result.value === settling) {
        return result;
      } else if (needed === undefined) {
        result = combineTruth(kind, result, evaluate(batch, run));
      } else {
        const open = openRows(result, settling, batch.rowCount);
        const narrow = takeColumns(batch, open, needed);
        const values = open.count === 0 ? undefined : evaluate(narrow, run);
        result = combineTruth(kind, result, scatter(values, open, batch.rowCount, settling));
      }
    }
    return defined(result, "a conjunction has an operand");
  };
}

/** CASE: each branch is evaluated on the rows that reach it. */
export function compileCase(
  { branches, otherwise, type }: Of<"case">,
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
  return (batch, run) => {
    const answers: Answered[] = [];
    let open = allRows(batch.rowCount);
    for (const branch of compiled) {
      if (open.count === 0) break;
      run.effort.noteRows(open.count);
      const truth = branch.when(takeColumns(batch, open, branch.whenColumns), run);
      const { chosen, rest } = split(open, truth);
      if (chosen.count > 0) {
        const values = branch.value(takeColumns(batch, chosen, branch.valueColumns), run);
        answers.push({ rows: chosen, values });
      }
      open = rest;
    }
    if (last !== undefined && open.count > 0) {
      const values = last.value(takeColumns(batch, open, last.columns), run);
      answers.push({ rows: open, values });
    }
    if (physicalKind(type) === "any") {
      const few = placedConstants(answers, batch.rowCount);
      if (few !== undefined) return few;
    }
    const results: Value[] = Array.from({ length: batch.rowCount }, () => null);
    for (const { rows, values } of answers) place(results, values, rows);
    return vectorFromValues(type, results);
  };
}

/** COALESCE: each operand is evaluated on the rows where those before it are NULL. */
export function compileCoalesce(
  { operands, type }: Of<"coalesce">,
  { compile, layout }: Compiling,
): Evaluator {
  const compiled = operands.map((operand) => ({
    value: compile(operand),
    columns: positionsOf(operand, layout),
  }));
  return (batch, run) => {
    const results: Value[] = Array.from({ length: batch.rowCount }, () => null);
    let open = allRows(batch.rowCount);
    for (const { value, columns } of compiled) {
      if (open.count === 0) break;
      const values = value(takeColumns(batch, open, columns), run);
      place(results, values, open);
      const isNull: Vector = truthTest(values, { test: "null", negated: false });
      open = split(open, isNull).chosen;
    }
    return vectorFromValues(type, results);
  };
}
