/**
 * RETURNING: what a change answers with, computed over the rows that it wrote.
 */
import type { Batch, DataType, Row, Value } from "../../../types/mod.ts";
import type { BoundReturning } from "../../bind/change/returning_binder.ts";
import { columnIdsIn } from "../../bind/walk.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import { compileExpression, type Evaluator } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { columnsFromRows } from "../operators/filter.ts";
import type { Run } from "../run/run.ts";
import type { RowChange } from "./row_changes.ts";

export interface Returning {
  readonly expressions: readonly Evaluator[];
  /** Of a returned row: see {@linkcode BoundReturning}. */
  readonly types: readonly DataType[];
  /** Its rows are complete only once they have their seqs. */
  readonly readsSystemColumns: boolean;
  /** Of the table's rows: those of a STREAM table have no `_deleted`. */
  readonly hasDeleted: boolean;
}

export function compileReturning(
  returning: BoundReturning | undefined,
  { table }: TableRuntime,
): Returning | undefined {
  if (returning === undefined) return undefined;
  const { carried, columns, outputs } = returning;
  const layout = layoutOf(columns);
  const used = new Set<number>();
  for (const { expression } of outputs) columnIdsIn(expression, used);
  const systemColumns = columns.slice(table.columns.length, columns.length - carried.length);
  return {
    expressions: outputs.map(({ expression }) => compileExpression(expression, layout)),
    types: columns.map(({ type }) => type),
    readsSystemColumns: systemColumns.some(({ id }) => used.has(id)),
    hasDeleted: systemColumns.some(({ name }) => name === "_deleted"),
  };
}

/** @param seqs Of each change; what is missing reads NULL. */
export function returnRows(
  { expressions, hasDeleted, types }: Returning,
  changes: readonly RowChange[],
  { run, seqs }: { run: Run; seqs: readonly Value[] },
): Batch {
  const rows = changes.map(({ carried = NOTHING_CARRIED, operation, row }, i): Row => {
    const deleted = hasDeleted ? [operation === "delete"] : [];
    return [...row, seqs[i] ?? null, ...deleted, ...carried];
  });
  const batch: Batch = { rowCount: rows.length, columns: columnsFromRows(rows, types) };
  return {
    rowCount: rows.length,
    columns: expressions.map((evaluate) => evaluate(batch, run)),
  };
}

const NOTHING_CARRIED: Row = [];
