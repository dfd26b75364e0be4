/**
 * Defines which rows a statement may read and change in the tables to which it refers: the
 * policies that control access to these rows, and the lookup of the tables that policies read.
 *
 * Every query is bound with {@linkcode RowRights}, so no table can be read without a decision
 * about its rows.
 */
import { accessLevelOf, type PolicyEntry, type TableEntry } from "../../catalog/mod.ts";
import type { StatementBinding } from "./binding.ts";
import type { ViewOwner } from "./bound.ts";

export interface RowRights {
  /**
   * Whether the caller needs the right to read each table. The SQL of a policy needs no such
   * right, because it reads tables with the rights of the policy's owner.
   */
  readonly needsRight: boolean;
  /**
   * The user who needs the rights in place of the caller. It is set inside a view that runs with
   * its owner's rights.
   */
  readonly viewOwner?: ViewOwner | undefined;
  /**
   * Returns the policies that control access to the rows of a table; undefined if every row is
   * permitted.
   */
  policiesFor(table: TableEntry): readonly PolicyEntry[] | undefined;
  /** Returns a table that a policy reads; undefined if the table no longer exists. */
  tableById(tableId: number): TableEntry | undefined;
  /**
   * Returns the rights that apply inside a view.
   *
   * @param owner The view's owner, if the view runs with the owner's rights. Any other view runs
   *   with the caller's rights, even inside a view that runs with its owner's rights.
   */
  within(owner: ViewOwner | undefined): RowRights;
}

/** The functions that decide which rows users may read and write. */
export interface RowDecisions {
  /**
   * Returns the policies that apply to the owner of a view or, outside such views, to the caller.
   */
  readonly policiesFor: (
    table: TableEntry,
    owner: ViewOwner | undefined,
  ) => readonly PolicyEntry[] | undefined;
  readonly tableById: (tableId: number) => TableEntry | undefined;
}

/** Returns the row rights of a caller who needs the right to read each table. */
export function rightsBy({ policiesFor, tableById }: RowDecisions): RowRights {
  const within = (viewOwner: ViewOwner | undefined): RowRights => ({
    needsRight: true,
    viewOwner,
    policiesFor: (table) => policiesFor(table, viewOwner),
    tableById,
    within,
  });
  return within(undefined);
}

/**
 * Returns row rights that include every row of every table, even of tables that the caller may not
 * read.
 */
export function everyRow(tableById: RowRights["tableById"]): RowRights {
  const every: RowRights = {
    needsRight: false,
    policiesFor: () => undefined,
    tableById,
    within: () => every,
  };
  return every;
}

/**
 * Returns the user who needs the right to a table; undefined if it is the caller. In any view, a
 * USER table shows the caller's rows, so the caller needs the right to read it.
 */
export function readerOf(
  table: TableEntry,
  { viewOwner }: Pick<RowRights, "viewOwner">,
): ViewOwner | undefined {
  return accessLevelOf(table) === undefined ? undefined : viewOwner;
}

/** Records that a statement reads a table, and which user needs the right to read it. */
export function noteRight(
  table: TableEntry,
  { rights, statement }: { rights: RowRights; statement: Pick<StatementBinding, "requirements"> },
): void {
  statement.requirements.push(
    rights.needsRight
      ? { action: "read", table, viewOwner: readerOf(table, rights) }
      : { action: "policy-read", table },
  );
}
