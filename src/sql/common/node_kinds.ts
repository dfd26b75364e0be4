/**
 * Which statements read or write rows, which begin a transaction or a job.
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

/** Whether the work of a statement is a job, which goes on by itself while the statement waits. */
export function isJobNode({ type }: Statement): boolean {
  return type === "backup" || type === "restore" || type.startsWith("storage ");
}

/** Whether a statement that is not about rows may stand in a transaction. */
export function isReadOnlyNode({ type }: Statement): boolean {
  return type.startsWith("show") || type === "describe" || type.startsWith("explain");
}
