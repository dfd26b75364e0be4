/** A construct of the grammar, as a text that contains it a given number of times. */

export interface Construct {
  readonly title: string;
  readonly sql: (count: number) => string;
  /** Run by the administrator before and after each text, which reads the tables it makes. */
  readonly before?: (count: number) => string;
  readonly after?: string;
  /** Sent by the administrator, because a user may not run the text. */
  readonly isDefining?: boolean;
  /** True if EXPLAIN does not accept the text. */
  readonly isNotExplained?: boolean;
  /** The values of `$1` and so on. */
  readonly params?: (count: number) => readonly unknown[];
  /** True if the text is sent as a subscription. */
  readonly isLive?: boolean;
}

/** Makes a text for each number from 0 and joins the texts. */
export function each(count: number, text: (index: number) => string, separator = ","): string {
  return Array.from({ length: count }, (_, index) => text(index)).join(separator);
}

export function nested(count: number, before: string, middle: string, after: string): string {
  return `${before.repeat(count)}${middle}${after.repeat(count)}`;
}

/** A table of 20,000 rows that everybody may read. */
export const WALL = "app.wall";
