/**
 * Defines a grammar construct: a function that returns SQL containing the construct a given number
 * of times.
 */

export interface Construct {
  readonly title: string;
  readonly sql: (count: number) => string;
  /**
   * SQL that the administrator runs before and after each request, to create and drop the tables
   * that the request reads.
   */
  readonly before?: (count: number) => string;
  readonly after?: string;
  /** True if the administrator sends the SQL, because an ordinary user may not run it. */
  readonly isDefining?: boolean;
  /** True if EXPLAIN does not accept the SQL. */
  readonly isNotExplained?: boolean;
  /** The values of the parameters `$1`, `$2` and so on; absent if there are none. */
  readonly params?: (count: number) => readonly unknown[];
  /** True if the SQL is sent as a subscription. */
  readonly isLive?: boolean;
}

/** Calls `text` for each number from 0 to `count` − 1, and joins the results. */
export function each(count: number, text: (index: number) => string, separator = ","): string {
  return Array.from({ length: count }, (_, index) => text(index)).join(separator);
}

export function nested(count: number, before: string, middle: string, after: string): string {
  return `${before.repeat(count)}${middle}${after.repeat(count)}`;
}

/** A table of 20,000 rows that every user may read. */
export const WALL = "app.wall";
