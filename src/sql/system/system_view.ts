/** The definition of a system view: its columns, and a function that creates its rows. */
import type { Principal } from "../../auth/mod.ts";
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

/** Defines a view that may have too many rows for one tick. */
export function portionedView(
  columns: ColumnList,
  rows: SystemRows,
  { isOpen }: { isOpen: boolean },
): SystemView {
  return { columns: columns.map(([name, type]) => ({ name, type })), rows, isOpen };
}

/** Only role dba and higher may read the view. */
export const ADMIN_ONLY: { readonly isOpen: boolean } = { isOpen: false };

/** Every role may read the view, which shows only rows for the caller. */
export const OPEN: { readonly isOpen: boolean } = { isOpen: true };

/** Returns a time as a cell of type TIMESTAMP. */
export function microsOf(unixMs: number | undefined): number | null {
  return unixMs === undefined ? null : unixMs * 1000;
}

/** Returns the caller of a view in the form in which rights are checked. */
export function principalOf({ isImpersonated, role, tokenScope, userId }: SystemCall): Principal {
  return {
    userId,
    role,
    owner: undefined,
    actorId: userId,
    actorRole: role,
    isImpersonated,
    sessionId: "",
    ...(tokenScope === undefined ? {} : { tokenScope }),
  };
}
