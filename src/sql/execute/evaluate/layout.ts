/**
 * Where the columns of a plan lie in the batches that an operator is handed.
 */
import { defined } from "../../../base/assert.ts";
import type { Batch } from "../../../types/mod.ts";
import type { BoundColumn, BoundExpression } from "../../bind/bound_expressions.ts";
import { columnIdsIn } from "../../bind/walk.ts";

/** Where the values of each column id lie in a batch. */
export type Layout = ReadonlyMap<number, number>;

export const EMPTY_LAYOUT: Layout = new Map();

/** One row and no column: what an expression without columns is evaluated over. */
export const SINGLE_ROW: Batch = { rowCount: 1, columns: [] };

/** Where the columns lie that an expression reads. */
export function positionsOf(expression: BoundExpression, layout: Layout): ReadonlySet<number> {
  const positions = new Set<number>();
  for (const id of columnIdsIn(expression)) {
    positions.add(defined(layout.get(id), "a column is in its layout"));
  }
  return positions;
}

/** Where each column of a list lies. */
export function layoutOf(columns: readonly BoundColumn[]): Layout {
  return new Map(columns.map(({ id }, position) => [id, position]));
}
