/** Defines a queue in a database, and the methods that run and time its statements. */

/** The measured jobs. Their times are in milliseconds. */
export const JOBS = [
  "grouped count",
  "count(*)",
  "DELETE by range",
  "UPDATE of a tenth",
  "read by key",
  "newest 20 by _seq",
  "oldest 20 by key",
  "snapshot",
  "start after a kill",
] as const;

export type JobName = (typeof JOBS)[number];

/** A table, and the conditions and values that select an owner's rows in a statement. */
export interface Target {
  readonly table: string;
  /** The value of the `owner` column in the rows that a statement affects. */
  readonly owner?: number;
  /** An additional column that an update has to set. */
  readonly touched?: string;
}

/** A queue. If there are owners, each has a separate queue in the same table. */
export interface Queue {
  readonly ownerCount: number;
  /**
   * Runs statements one after another for an owner. Returns the last seq of each statement, if
   * known.
   */
  run(statements: readonly string[], owner: number): Promise<readonly number[]>;
  /** Returns how statements select an owner's rows. */
  target(owner: number): Target;
  /** Removes all rows, including the history. */
  renew(): Promise<void>;
  /** Waits for all background work whose end can be observed. */
  settled(): Promise<void>;
  /** Runs a query for an owner. Returns the number of rows. */
  ask(sql: string, owner: number): Promise<number>;
  /** The column by which the newest rows are found. */
  readonly newestColumn: string;
  /** Loads all rows of an owner, as a live query does. Returns the number of rows. */
  snapshot(owner: number): Promise<number>;
  /** Kills the process and waits until it responds again; undefined if it cannot be restarted. */
  readonly restart: (() => Promise<void>) | undefined;
}
