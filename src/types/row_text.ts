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
    const cell = writtenPart(trimmed, at, CELL_ENDS);
    if (cell === undefined) return undefined;
    cells.push(cell.end === at ? null : cell.text);
    at = cell.end;
    if (at === trimmed.length - 1) return isEmptyRow(cells) ? [] : cells;
    if (trimmed[at] !== ",") return undefined;
  }
}

/** The characters that end a cell outside quotes. */
const CELL_ENDS = "(),";

function isEmptyRow(cells: readonly (string | null)[]): boolean {
  return cells.length === 1 && cells[0] === null;
}

/** A part of a text, such as a cell of a row, without its quotes and backslashes. */
export interface WrittenPart {
  readonly text: string;
  /** The position behind the part. */
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Reads a part of a text up to a character of `ends`, or up to the end of the text. Quotes and
 * backslashes protect special characters, and within quotes, a quote is doubled or escaped. The
 * time is proportional to the length of the part. Returns undefined if a quote is not closed, or
 * nothing follows a backslash.
 */
export function writtenPart(text: string, from: number, ends: string): WrittenPart | undefined {
  let read = "";
  let isQuoted = false;
  let start = from;
  let at = from;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) {
      if (at + 1 === text.length) return undefined;
      read += text.slice(start, at);
      at += 1;
      start = at;
    } else if (code === QUOTE) {
      read += text.slice(start, at);
      const isDoubled = isQuoted && text.charCodeAt(at + 1) === QUOTE;
      if (isDoubled) at += 1;
      else isQuoted = !isQuoted;
      start = isDoubled ? at : at + 1;
    } else if (!isQuoted && ends.includes(text.charAt(at))) break;
  }
  return isQuoted ? undefined : { text: read + text.slice(start, at), end: at };
}

function quoted(text: string): string {
  if (text !== "" && !/[(),"\\\s]/.test(text)) return text;
  return `"${text.replaceAll(/["\\]/g, "$&$&")}"`;
}
