/**
 * Defines the queue that the benchmark measures, with the operations that each database
 * implements.
 */

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

/**
 * How statements address an owner's rows: the table, and the values that select or mark the owner.
 */
export interface Target {
  readonly table: string;
  /**
   * The value of the `owner` column in the owner's rows; absent if the table has no such column.
   */
  readonly owner?: number;
  /** An additional column that an update has to set. */
  readonly touched?: string;
}

/**
 * A table used as a queue. If it has several owners, each has a separate queue in the same table.
 */
export interface Queue {
  readonly ownerCount: number;
  /**
   * Runs statements one after another on behalf of an owner. Returns the last seq of each
   * statement, if known.
   */
  run(statements: readonly string[], owner: number): Promise<readonly number[]>;
  /** Returns how statements address the rows of an owner. */
  target(owner: number): Target;
  /** Removes all rows, including the history. */
  renew(): Promise<void>;
  /** Waits for all background work whose end can be observed. */
  settled(): Promise<void>;
  /** Runs a query on behalf of an owner. Returns the number of rows in its result. */
  ask(sql: string, owner: number): Promise<number>;
  /** The name of the column by which queries find the newest rows. */
  readonly newestColumn: string;
  /** Loads all rows of an owner, as a live query does. Returns the number of rows. */
  snapshot(owner: number): Promise<number>;
  /**
   * Kills the database process, restarts it, and waits until it responds again. Undefined if the
   * database cannot be restarted.
   */
  readonly restart: (() => Promise<void>) | undefined;
}
