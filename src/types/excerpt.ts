/**
 * Shortens values for messages.
 */
import { beginningOf } from "../base/short_text.ts";

const LENGTH_MAX = 60;

/** Returns `text` in double quotes, shortened if it is long. */
export function excerpt(text: string): string {
  return text.length <= LENGTH_MAX ? `"${text}"` : `"${beginningOf(text, LENGTH_MAX - 3)}..."`;
}
