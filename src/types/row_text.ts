/**
 * Reads and writes the text form of rows, as PostgreSQL does: `(1,"a b",)`. NULL is an empty cell,
 * and an empty string is a pair of quotes.
 */
import type { Value } from "./value.ts";

export function textFromRow(
  cells: readonly Value[],
  textOf: (cell: Value, at: number) => string,
): string {
  const items = cells.map((cell, at) => (cell === null ? "" : quoted(textOf(cell, at))));
  return `(${items.join(",")})`;
}

/**
 * Returns the cells of a row, with NULL for each empty cell; undefined if the text has a different
 * form. Within a cell, special characters are quoted or escaped with a backslash, and whitespace
 * is part of the cell.
 */
export function cellsFromRowText(text: string): (string | null)[] | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith("(") || !trimmed.endsWith(")")) return undefined;
  const cells: (string | null)[] = [];
  for (let at = 1; ; at += 1) {
    CELL.lastIndex = at;
    const [written = ""] = CELL.exec(trimmed) ?? [];
    cells.push(written === "" ? null : unquoted(written));
    at += written.length;
    if (at === trimmed.length - 1) return isEmptyRow(cells) ? [] : cells;
    if (trimmed[at] !== ",") return undefined;
  }
}

/**
 * Matches a cell: quoted parts, in which quotes are doubled or escaped, and unquoted characters.
 */
const CELL = /(?:"(?:[^"\\]|""|\\[\s\S])*"|\\[\s\S]|[^(),"\\])*/y;

function isEmptyRow(cells: readonly (string | null)[]): boolean {
  return cells.length === 1 && cells[0] === null;
}

/** Matches the parts of a cell: quoted text, an escaped character, and plain text. */
const PART = /"((?:[^"\\]|""|\\[\s\S])*)"|\\([\s\S])|([^"\\]+)/g;

/** Removes the quotes and backslashes that protect special characters. */
export function unquoted(written: string): string {
  return written.replaceAll(PART, (_, inQuotes?: string, escaped?: string, plain?: string) => {
    if (inQuotes === undefined) return escaped ?? plain ?? "";
    return inQuotes.replaceAll(/""|\\([\s\S])/g, (_match, character?: string) => character ?? '"');
  });
}

function quoted(text: string): string {
  if (text !== "" && !/[(),"\\\s]/.test(text)) return text;
  return `"${text.replaceAll(/["\\]/g, "$&$&")}"`;
}
