/**
 * Maps the columns of a plan to positions in the batches of an operator.
 */
import { defined } from "../../../base/assert.ts";
import type { Batch } from "../../../types/mod.ts";
import type { BoundColumn, BoundExpression } from "../../bind/bound_expressions.ts";
import { columnIdsIn } from "../../bind/walk.ts";

/** Maps column ids to positions in a batch. */
export type BatchLayout = ReadonlyMap<number, number>;

export const EMPTY_LAYOUT: BatchLayout = new Map();

/** A batch with one row and no columns, for evaluating expressions that read no columns. */
export const SINGLE_ROW: Batch = { rowCount: 1, columns: [] };

/** Returns the positions of the columns that an expression reads. */
export function positionsOf(expression: BoundExpression, layout: BatchLayout): ReadonlySet<number> {
  const positions = new Set<number>();
  for (const id of columnIdsIn(expression)) {
    positions.add(
      defined(layout.get(id), "expression compiler: column is missing from the layout"),
    );
  }
  return positions;
}

/** Returns the position of each column of a list. */
export function layoutOf(columns: readonly BoundColumn[]): BatchLayout {
  return new Map(columns.map(({ id }, position) => [id, position]));
}
