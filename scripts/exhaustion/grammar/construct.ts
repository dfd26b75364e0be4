/** A construct of the grammar as a text that holds it any number of times. */

export interface Construct {
  readonly title: string;
  readonly sql: (count: number) => string;
  /** Run by the administrator before and after each text; what it makes is what the text reads. */
  readonly before?: (count: number) => string;
  readonly after?: string;
  /** Sent by the administrator: a user may not define. */
  readonly isDefining?: boolean;
  /** A text that EXPLAIN does not take. */
  readonly isNotExplained?: boolean;
  /** Values for `$1` and so on. */
  readonly params?: (count: number) => readonly unknown[];
  /** Sent as a subscription. */
  readonly isLive?: boolean;
}

/** A text for each number from 0, joined. */
export function each(count: number, text: (index: number) => string, separator = ","): string {
  return Array.from({ length: count }, (_, index) => text(index)).join(separator);
}

export function nested(count: number, before: string, middle: string, after: string): string {
  return `${before.repeat(count)}${middle}${after.repeat(count)}`;
}

/** A table of 20,000 rows that everybody may read. */
export const WALL = "app.wall";
