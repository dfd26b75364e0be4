/**
 * How a system view is written down: its columns, and a function that makes its rows.
 */
import type { DataType, Row } from "../types/mod.ts";
import type { SystemCall } from "./bind/bound.ts";
import type { SystemView } from "./bind/select_world.ts";

export type ColumnList = readonly (readonly [string, DataType])[];

export function view(
  columns: ColumnList,
  rows: (call: SystemCall) => Row[],
  { isOpen }: { isOpen: boolean },
): SystemView {
  return { columns: columns.map(([name, type]) => ({ name, type })), rows, isOpen };
}

/** Read by role dba and higher. */
export const ADMIN_ONLY: { readonly isOpen: boolean } = { isOpen: false };

/** Read by every role, filtered to the caller. */
export const OPEN: { readonly isOpen: boolean } = { isOpen: true };
