/**
 * Yields the rows of VALUES. The rows are either computed in each run, or were already known when
 * the statement was bound.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  type Batch,
  type DataType,
  type Row,
  type Value,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { BoundExpression, ConstantRows } from "../../bind/bound_expressions.ts";
import type { PlanNode } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Operator, OperatorFactory } from "../context/operator.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { PortionSource } from "./filter.ts";

export function buildValues(node: Extract<PlanNode, { kind: "values" }>): OperatorFactory {
  const types = node.columns.map(({ type }) => type);
  const { constants } = node;
  if (constants !== undefined) return () => new ConstantSource(constants, types);
  const rows = new CompiledRows(node.rows);
  const positions = types.map((_, position) => position);
  return (context) => new PortionSource(rows.portions(context), { context, positions, types });
}

/** The number of rows that are compiled and computed together. */
const ROWS_TOGETHER = 256;

/** The compiled rows of a plan. Each row is compiled in the first run that reaches it. */
class CompiledRows {
  readonly #rows: readonly (readonly BoundExpression[])[];
  readonly #compiled: ((context: ExecutionContext) => Value)[][] = [];

  constructor(rows: readonly (readonly BoundExpression[])[]) {
    this.#rows = rows;
  }

  *portions(context: ExecutionContext): Generator<readonly Row[], void> {
    const rows = this.#rows;
    const compiled = this.#compiled;
    for (let start = 0; start < rows.length; start += ROWS_TOGETHER) {
      const end = Math.min(rows.length, start + ROWS_TOGETHER);
      for (const row of rows.slice(compiled.length, end)) {
        compiled.push(row.map((cell) => compileScalar(cell)));
      }
      yield compiled.slice(start, end).map((row) => row.map((cell) => cell(context)));
    }
  }
}

/** Yields rows that were already known before the statement ran. */
class ConstantSource implements Operator {
  readonly #rows: ConstantRows;
  readonly #types: readonly DataType[];
  #position = 0;

  constructor(rows: ConstantRows, types: readonly DataType[]) {
    this.#rows = rows;
    this.#types = types;
  }

  next(): Batch | undefined {
    const { columns, rowCount } = this.#rows;
    const start = this.#position;
    if (start >= rowCount) return undefined;
    const end = Math.min(rowCount, start + BATCH_ROWS_MAX);
    this.#position = end;
    const vectors = this.#types.map((type, i) => {
      return vectorFromValues(type, columns[i]?.slice(start, end) ?? []);
    });
    return { rowCount: end - start, columns: vectors };
  }

  close(): void {
    this.#position = this.#rows.rowCount;
  }
}
