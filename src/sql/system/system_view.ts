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

/** Defines a view that may have too many rows to create in one tick. */
export function portionedView(
  columns: ColumnList,
  rows: SystemRows,
  { isOpen }: { isOpen: boolean },
): SystemView {
  return { columns: columns.map(([name, type]) => ({ name, type })), rows, isOpen };
}

/** Restricts a view to users with role dba or higher. */
export const ADMIN_ONLY: { readonly isOpen: boolean } = { isOpen: false };

/** Allows users with any role to read a view, which shows only the caller's rows. */
export const OPEN: { readonly isOpen: boolean } = { isOpen: true };

/** Converts milliseconds since 1970 to a TIMESTAMP cell, which counts microseconds. */
export function microsOf(unixMs: number | undefined): number | null {
  return unixMs === undefined ? null : unixMs * 1000;
}

/** Returns the caller of a view as the principal whose rights are checked. */
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
