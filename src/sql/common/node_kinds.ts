/**
 * Which statements read or write rows, and which begin a transaction; what else is decided for a
 * kind of statement is in `statement_kinds.ts`.
 */
import type { QueryStatement, Statement } from "../parse/ast/ast.ts";
import { isChangeNode, isSelectNode } from "../parse/ast/query_nodes.ts";

export function isQueryNode(node: Statement): node is QueryStatement {
  return isSelectNode(node) || isChangeNode(node);
}

/** The statement that reads or writes rows: itself, or inside EXECUTE AS or EXPLAIN. */
export function rowsNode(node: Statement): QueryStatement | undefined {
  if (isQueryNode(node)) return node;
  const isAround = node.type === "execute as" || node.type === "explain";
  if (isAround && isQueryNode(node.statement)) return node.statement;
  return undefined;
}

export function isBegin(node: Statement | undefined): boolean {
  return node?.type === "begin" || node?.type === "start transaction";
}
