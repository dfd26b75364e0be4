/**
 * Checks collations. Text is compared by code point. The collations of PostgreSQL that have this
 * order are accepted, and all others are refused.
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

/** Whether a collation orders text by code point. */
export function isOwnCollation(name: string): boolean {
  return OWN.has(name.toLowerCase());
}

/** Reads the COLLATE clause of a column, if it follows. */
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
