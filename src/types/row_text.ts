/**
 * Reads and writes the text form of rows, as PostgreSQL does: `(1,"a b",)`. A NULL is written as
 * nothing, and an empty string as a pair of quotes.
 */
import type { Value } from "./value.ts";

export function textFromRow(
  cells: readonly Value[],
  textOf: (cell: Value, at: number) => string,
): string {
  const items = cells.map((cell, at) => (cell === null ? "" : quoted(textOf(cell, at))));
  return `(${items.join(",")})`;
}

function quoted(text: string): string {
  if (text !== "" && !/[(),"\\\s]/.test(text)) return text;
  return `"${text.replaceAll(/["\\]/g, "$&$&")}"`;
}
