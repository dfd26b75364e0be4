/** Renames columns in the SQL texts that the catalog stores. */
import type { Expr } from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { parseExpression } from "../parse/parser.ts";

/**
 * Returns SQL text in which one column is renamed. Occurrences are replaced from last to first, so
 * that the offsets of the remaining occurrences stay valid.
 */
export function withRenamedColumn(sql: string, from: string, to: string): string {
  const places: { start: number; end: number }[] = [];
  for (const part of partsOf(parseExpression(sql))) {
    const node: Partial<Expr> = part;
    if (node.type === "ref" && node.name === from && node._location !== undefined) {
      places.push(node._location);
    }
  }
  const quoted = `"${to.replaceAll('"', '""')}"`;
  return places
    .toSorted((left, right) => right.start - left.start)
    .reduce((text, { end, start }) => text.slice(0, start) + quoted + text.slice(end), sql);
}
