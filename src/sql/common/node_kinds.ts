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
export function isJobNode(node: Statement): boolean {
  if (node.type === "drop user") return node.purge === true;
  return WORK[node.type] === "job";
}

/** Whether a statement that is not about rows may stand in a transaction. */
export function isReadOnlyNode({ type }: Statement): boolean {
  return WORK[type] === "show";
}

/** What a statement does, as far as its transaction and the log of slow requests ask. */
type Work = "show" | "job" | "other";

/** Total: a statement that is added does not compile before somebody has decided. */
const WORK: Readonly<Record<Statement["type"], Work>> = {
  select: "other",
  union: "other",
  "union all": "other",
  intersect: "other",
  "intersect all": "other",
  except: "other",
  "except all": "other",
  values: "other",
  with: "other",
  "with recursive": "other",
  insert: "other",
  update: "other",
  delete: "other",
  begin: "other",
  "start transaction": "other",
  commit: "other",
  rollback: "other",
  "use namespace": "other",
  subscribe: "other",
  copy: "other",
  "export user data": "other",
  "show export": "show",
  "show namespaces": "show",
  "show tables": "show",
  "show columns": "show",
  "show stats": "show",
  "show storages": "show",
  "show manifest": "show",
  describe: "show",
  "execute as": "other",
  "create namespace": "other",
  "alter namespace": "other",
  "drop namespace": "other",
  "create table": "other",
  "alter table": "other",
  "drop table": "other",
  "create view": "other",
  "drop view": "other",
  "storage flush": "job",
  "storage compact": "job",
  consume: "other",
  ack: "other",
  explain: "show",
  "explain subscribe": "show",
  show: "show",
  "show all": "show",
  set: "other",
  "set timezone": "other",
  kill: "other",
  "storage check": "other",
  "create storage": "other",
  "alter storage": "other",
  "drop storage": "other",
  "create user": "other",
  "alter user": "other",
  "drop user": "other",
  backup: "job",
  restore: "job",
  "create topic": "other",
  "alter topic": "other",
  "drop topic": "other",
  "clear topic": "other",
  "create policy": "other",
  "alter policy": "other",
  "drop policy": "other",
};
