/** Defines trigger entries, which are part of their tables' entries. */

export type TriggerEvent = "insert" | "update" | "delete" | "truncate";

/** A trigger on a table. It calls a function when rows of the table change. */
export interface TriggerEntry {
  /** The name, unique among the table's triggers. */
  readonly name: string;
  readonly timing: "before" | "after" | "instead of";
  readonly events: readonly TriggerEvent[];
  /** The ids of the columns after UPDATE OF; absent if every UPDATE fires the trigger. */
  readonly columnIds?: readonly number[];
  readonly level: "row" | "statement";
  /**
   * The names, set by REFERENCING, under which the function reads the rows changed by the
   * statement.
   */
  readonly oldTable?: string;
  readonly newTable?: string;
  /**
   * The WHEN condition as SQL text on the columns of `old` and `new`. Renaming a column updates
   * it.
   */
  readonly whenSql?: string;
  /** The id of the function, which is stored among the views and functions. */
  readonly functionId: number;
  readonly arguments: readonly string[];
  /** Set for a constraint trigger, which may be deferred until the commit. */
  readonly constraint?: TriggerDeferral;
  /** Set if the trigger is disabled. */
  readonly isDisabled?: true;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

export interface TriggerDeferral {
  readonly isDeferrable: boolean;
  /** Whether the trigger fires at the commit. SET CONSTRAINTS can override this. */
  readonly isDeferred: boolean;
}
