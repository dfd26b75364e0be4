/**
 * Which statements read or write rows.
 */
import type { QueryStatement, Statement } from "./parse/ast.ts";

const QUERIES: ReadonlySet<string> = new Set<QueryStatement["type"]>([
  "select",
  "union",
  "union all",
  "intersect",
  "intersect all",
  "except",
  "except all",
  "values",
  "with",
  "with recursive",
  "insert",
  "update",
  "delete",
]);

export function isQueryNode(node: Statement): node is QueryStatement {
  return QUERIES.has(node.type);
}
