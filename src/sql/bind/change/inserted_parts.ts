/**
 * Combines the values that an INSERT assigns to parts of the same column: `INSERT INTO t (a[1],
 * a[2])`.
 */
import type { TableEntry } from "../../../catalog/mod.ts";
import { TEXT } from "../../../types/mod.ts";
import type { TargetColumn } from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { type PartAssignment, withAssignedParts } from "./assigned_parts.ts";
import { type BoundCell, requireAssignable } from "./dml_target.ts";

/** A value that an INSERT gives for a target column or for part of a target column. */
export interface GivenCell<Cell extends BoundCell> {
  readonly column: TargetColumn | undefined;
  readonly position: number;
  /** Returns the value for the whole column. */
  readonly whole: () => Cell;
  /** Returns the value for part of the column. */
  readonly valueAs: PartAssignment["valueAs"];
}

/**
 * Returns one value for each column that an INSERT fills, in the order in which the columns are
 * first named. If an INSERT assigns to parts of a column, the column begins as NULL, not with its
 * default.
 */
export function joinedParts<Cell extends BoundCell>(
  given: readonly GivenCell<Cell>[],
  table: TableEntry,
  context: ExpressionContext,
): (Cell | BoundExpression)[] {
  const parts = new Map<number, PartAssignment[]>();
  for (const { column, position, valueAs } of given) {
    if (column?.part === undefined) continue;
    requireAssignable(table, position, column);
    const assignments = parts.get(position) ?? [];
    assignments.push({ column, valueAs });
    parts.set(position, assignments);
  }
  const cells = new Map<number, Cell | BoundExpression>();
  for (const { position, whole } of given) {
    if (cells.has(position)) continue;
    const assignments = parts.get(position);
    const type = table.columns[position]?.type ?? TEXT;
    const nothing: BoundExpression = { kind: "constant", type, value: null };
    cells.set(
      position,
      assignments === undefined ? whole() : withAssignedParts(nothing, assignments, context),
    );
  }
  return [...cells.values()];
}
