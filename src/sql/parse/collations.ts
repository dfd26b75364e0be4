/**
 * Collations. Text is compared by code point, which is what some of PostgreSQL's collations mean;
 * these are accepted, and any other one is refused.
 */
import type { Cursor } from "./cursor.ts";

const OWN: ReadonlySet<string> = new Set([
  "c",
  "posix",
  "ucs_basic",
  "default",
  "c.utf8",
  "c.utf-8",
]);

/** Whether a collation compares by code point. */
export function isOwnCollation(name: string): boolean {
  return OWN.has(name.toLowerCase());
}

/** Takes COLLATE after a column, if it is there. */
export function acceptCollation(cursor: Cursor): void {
  const { start } = cursor;
  if (!cursor.accept("collate")) return;
  const { name } = cursor.qname("a collation");
  if (isOwnCollation(name)) return;
  cursor.refuse(
    `COLLATE "${name}" of a column`,
    'text is compared by code point, as with COLLATE "C"',
    start,
  );
}
