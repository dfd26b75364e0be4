/** A grammar construct: a function that makes an SQL text containing it a given number of times. */

export interface Construct {
  readonly title: string;
  readonly sql: (count: number) => string;
  /**
   * SQL text that the administrator runs before and after each text, to create and drop the tables
   * that it reads.
   */
  readonly before?: (count: number) => string;
  readonly after?: string;
  /** True if the administrator sends the text, because an ordinary user may not run it. */
  readonly isDefining?: boolean;
  /** True if EXPLAIN does not accept the text. */
  readonly isNotExplained?: boolean;
  /** The values of the parameters `$1`, `$2` and so on. */
  readonly params?: (count: number) => readonly unknown[];
  /** True if the text is sent as a subscription. */
  readonly isLive?: boolean;
}

/** Creates one text for each number from 0, and joins the texts. */
export function each(count: number, text: (index: number) => string, separator = ","): string {
  return Array.from({ length: count }, (_, index) => text(index)).join(separator);
}

export function nested(count: number, before: string, middle: string, after: string): string {
  return `${before.repeat(count)}${middle}${after.repeat(count)}`;
}

/** A table of 20,000 rows that every user may read. */
export const WALL = "app.wall";
