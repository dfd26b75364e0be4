/**
 * Values in messages: quoted, and short enough to be read.
 */
import { beginningOf } from "../base/short_text.ts";

const LENGTH_MAX = 60;

/** A text in double quotes, cut when it is long. */
export function excerpt(text: string): string {
  return text.length <= LENGTH_MAX ? `"${text}"` : `"${beginningOf(text, LENGTH_MAX - 3)}..."`;
}
