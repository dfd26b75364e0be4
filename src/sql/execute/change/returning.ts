/** Computes the RETURNING rows of a change from the rows that the change has written. */
import type { Batch, DataType, Row, Value } from "../../../types/mod.ts";
import type { BoundReturning } from "../../bind/change/returning_binder.ts";
import { columnIdsIn, hasSubquery } from "../../bind/walk.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { columnsFromRows } from "../operators/filter.ts";
import type { Evaluation } from "./evaluation.ts";
import type { RowChange } from "./row_changes.ts";

export interface Returning {
  /** Evaluates all RETURNING outputs over the rows of {@linkcode returnedRows}. */
  readonly evaluation: Evaluation;
  /**
   * The column types of a row that RETURNING reads. {@linkcode BoundReturning} describes its
   * layout.
   */
  readonly types: readonly DataType[];
  /** Whether RETURNING reads `_seq`. If so, its input rows are complete only after the commit. */
  readonly readsSystemColumns: boolean;
  /** Whether RETURNING contains a query that runs again once the rows have their seqs. */
  readonly readsAgain: boolean;
  /** Evaluates RETURNING outputs that read system columns again, after the commit. */
  readonly renew: (first: Batch, rows: Batch, context: ExecutionContext) => Batch;
  /** Whether the table's rows have the column `_deleted`. Rows of STREAM tables do not have it. */
  readonly hasDeleted: boolean;
}

export function compileReturning(
  returning: BoundReturning | undefined,
  { table }: TableRuntime,
): Returning | undefined {
  if (returning === undefined) return undefined;
  const { carried, columns } = returning;
  const layout = layoutOf(columns);
  const systemColumns = columns.slice(table.columns.length, columns.length - carried.length);
  const outputs = returning.outputs.map(({ expression }) => {
    const used = columnIdsIn(expression);
    return {
      evaluate: compileExpression(expression, layout),
      readsSystemColumns: systemColumns.some(({ id }) => used.has(id)),
      holdsQuery: hasSubquery(expression),
    };
  });
  return {
    evaluation: {
      name: "returning",
      holdsQuery: outputs.some(({ holdsQuery }) => holdsQuery),
      evaluate: (rows, context) => ({
        rowCount: rows.rowCount,
        columns: outputs.map(({ evaluate }) => evaluate(rows, context)),
      }),
    },
    types: columns.map(({ type }) => type),
    readsSystemColumns: outputs.some(({ readsSystemColumns }) => readsSystemColumns),
    readsAgain: outputs.some((output) => output.readsSystemColumns && output.holdsQuery),
    renew: ({ columns: known, rowCount }, rows, context) => ({
      rowCount,
      columns: known.map((column, i) => {
        const output = outputs[i];
        return output?.readsSystemColumns === true ? output.evaluate(rows, context) : column;
      }),
    }),
    hasDeleted: systemColumns.some(({ name }) => name === "_deleted"),
  };
}

/**
 * Returns the rows that RETURNING reads.
 *
 * @param seqs The seq of each change. For a change without a seq, `_seq` is NULL.
 */
export function returnedRows(
  { hasDeleted, types }: Returning,
  changes: readonly RowChange[],
  seqs: readonly Value[],
): Batch {
  const rows = changes.map(({ carried = NOTHING_CARRIED, operation, row }, i): Row => {
    const deleted = hasDeleted ? [operation === "delete"] : [];
    return [...row, seqs[i] ?? null, ...deleted, ...carried];
  });
  return { rowCount: rows.length, columns: columnsFromRows(rows, types) };
}

const NOTHING_CARRIED: Row = [];
