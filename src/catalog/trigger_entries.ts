/** Defines the entries of triggers, which belong to the entries of their tables. */

export type TriggerEvent = "insert" | "update" | "delete" | "truncate";

/** A trigger of a table, which calls a function when rows of the table change. */
export interface TriggerEntry {
  /** The name, which is unique among the triggers of the table. */
  readonly name: string;
  readonly timing: "before" | "after" | "instead of";
  readonly events: readonly TriggerEvent[];
  /** The ids of the columns after UPDATE OF; absent if every UPDATE fires the trigger. */
  readonly columnIds?: readonly number[];
  readonly level: "row" | "statement";
  /** The names of REFERENCING by which the function reads the rows of the statement. */
  readonly oldTable?: string;
  readonly newTable?: string;
  /**
   * The condition of WHEN as SQL text over the columns of `old` and `new`. The text is updated
   * when a column is renamed.
   */
  readonly whenSql?: string;
  /** The id of the function among the views and functions. */
  readonly functionId: number;
  readonly arguments: readonly string[];
  /** Set for a constraint trigger, which may run at the commit. */
  readonly constraint?: TriggerDeferral;
  /** Set if the trigger is disabled. */
  readonly isDisabled?: true;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

export interface TriggerDeferral {
  readonly isDeferrable: boolean;
  /** Whether the trigger runs at the commit, unless SET CONSTRAINTS overrides this. */
  readonly isDeferred: boolean;
}
