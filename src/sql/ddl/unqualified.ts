/**
 * Removes the table's name from expressions that are stored with the table, so that renaming the
 * table does not change them.
 */
import type { Expr } from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { parseExpression } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";

/**
 * Returns an expression over a single table, with the table's name removed from its column
 * references.
 */
export function unqualified(sql: string): string {
  const places: { start: number; end: number; name: string }[] = [];
  for (const part of partsOf(parseExpression(sql))) {
    const node: Partial<Expr> = part;
    if (node.type !== "ref" || node.table === undefined || node._location === undefined) continue;
    if (node.name !== undefined) places.push({ ...node._location, name: node.name });
  }
  return places
    .toSorted((left, right) => right.start - left.start)
    .reduce(
      (text, { end, name, start }) => text.slice(0, start) + nameText(name) + text.slice(end),
      sql,
    );
}
