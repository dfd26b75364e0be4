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

export function isBegin(node: Statement | undefined): boolean {
  return node?.type === "begin" || node?.type === "start transaction";
}

/** Whether a statement can change what later names mean. */
export function changesNames({ type }: Statement): boolean {
  return /^(?:create|alter|drop|use) /.test(type);
}

/** Whether a statement may stand in a transaction although it reads no rows of tables. */
export function isReadOnlyNode({ type }: Statement): boolean {
  return type.startsWith("show") || type === "describe" || type.startsWith("explain");
}

/** The statement that reads or writes rows: itself, or inside EXECUTE AS. */
export function rowsNode(node: Statement): QueryStatement | undefined {
  if (isQueryNode(node)) return node;
  const isAround = node.type === "execute as" || node.type === "explain";
  if (isAround && isQueryNode(node.statement)) return node.statement;
  return undefined;
}
