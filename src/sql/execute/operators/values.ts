/**
 * The rows of VALUES: computed for each run, or as they were known when the statement was bound.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, type DataType, vectorFromValues } from "../../../types/mod.ts";
import type { ConstantRows } from "../../bind/bound_expressions.ts";
import type { PlanNode } from "../../plan/plan.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import type { Operator, OperatorFactory } from "../run/operator.ts";
import { RowSource } from "./filter.ts";

export function buildValues(node: Extract<PlanNode, { kind: "values" }>): OperatorFactory {
  const types = node.columns.map(({ type }) => type);
  const { constants } = node;
  if (constants !== undefined) return () => new ConstantSource(constants, types);
  const rows = node.rows.map((row) => row.map((cell) => compileScalar(cell)));
  return (run) =>
    new RowSource(
      rows.map((row) => row.map((cell) => cell(run))),
      types,
    );
}

/** Yields rows that were known before the statement ran. */
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
