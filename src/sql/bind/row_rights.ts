/**
 * Defines which rows a statement may read and change in the tables to which it refers: the policies
 * that decide about these rows, and the source of the tables that policies read.
 *
 * Every query is bound with {@linkcode RowRights}, so no table can be read without such a decision.
 */
import type { PolicyEntry, TableEntry } from "../../catalog/mod.ts";

export interface RowRights {
  /**
   * Whether the caller needs the right to read each table. The text of a policy does not need it,
   * because it reads tables with the rights of the policy's owner.
   */
  readonly needsRight: boolean;
  /** Returns the policies that permit rows of a table; undefined if every row is permitted. */
  policiesFor(table: TableEntry): readonly PolicyEntry[] | undefined;
  /** Returns a table that a policy reads; undefined if it no longer exists. */
  tableById(tableId: number): TableEntry | undefined;
}

/** Returns rights to every row of all tables, even if the caller has no right to read them. */
export function everyRow(tableById: RowRights["tableById"]): RowRights {
  return { needsRight: false, policiesFor: () => undefined, tableById };
}
