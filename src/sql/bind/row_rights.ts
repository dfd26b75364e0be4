/**
 * The rows that a statement may read and change in the tables that it names: which policies decide
 * about them, and where the tables that policies read come from.
 *
 * Every query is bound with a {@linkcode RowRights}, so no table can be read without a decision.
 */
import type { PolicyEntry, TableEntry } from "../../catalog/mod.ts";

export interface RowRights {
  /**
   * Whether the caller needs the right to read each table. It does not in the text of a policy,
   * which reads tables with the rights of its owner.
   */
  readonly needsRight: boolean;
  /** Returns the policies that permit rows of a table; undefined if every row is permitted. */
  policiesFor(table: TableEntry): readonly PolicyEntry[] | undefined;
  /** Returns a table that a policy reads; undefined if it no longer exists. */
  tableById(tableId: number): TableEntry | undefined;
}

/** Returns the rights to every row of tables that the caller need not be able to read. */
export function everyRow(tableById: RowRights["tableById"]): RowRights {
  return { needsRight: false, policiesFor: () => undefined, tableById };
}
