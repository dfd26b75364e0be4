/**
 * Values in messages: quoted, and short enough to be read.
 */

const LENGTH_MAX = 60;

/** A text in double quotes, cut when it is long. */
export function excerpt(text: string): string {
  return text.length <= LENGTH_MAX ? `"${text}"` : `"${text.slice(0, LENGTH_MAX - 3)}..."`;
}
