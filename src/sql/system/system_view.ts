/**
 * How a system view is written down: its columns, and a function that makes its rows.
 */
import type { DataType, Row } from "../../types/mod.ts";
import type { SystemCall, SystemRows, SystemView } from "../bind/bound.ts";

export type ColumnList = readonly (readonly [string, DataType])[];

export function view(
  columns: ColumnList,
  rows: (call: SystemCall) => Row[],
  access: { isOpen: boolean },
): SystemView {
  return portionedView(columns, (call) => [rows(call)], access);
}

/** One whose rows are too many to be made in one turn. */
export function portionedView(
  columns: ColumnList,
  rows: SystemRows,
  { isOpen }: { isOpen: boolean },
): SystemView {
  return { columns: columns.map(([name, type]) => ({ name, type })), rows, isOpen };
}

/** Read by role dba and higher. */
export const ADMIN_ONLY: { readonly isOpen: boolean } = { isOpen: false };

/** Read by every role, filtered to the caller. */
export const OPEN: { readonly isOpen: boolean } = { isOpen: true };

/** A moment as a cell of type TIMESTAMP. */
export function microsOf(unixMs: number | undefined): number | null {
  return unixMs === undefined ? null : unixMs * 1000;
}
