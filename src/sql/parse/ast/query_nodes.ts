/**
 * Which nodes of the syntax tree are queries, and which are changes of rows.
 */
import type {
  DeleteStatement,
  Expr,
  InsertStatement,
  SelectStatement,
  Statement,
  UpdateStatement,
} from "./ast.ts";

/** Types of the nodes that are queries, as a statement or inside an expression. */
const SELECT_TYPES: ReadonlySet<string> = new Set<SelectStatement["type"]>([
  "select",
  "values",
  "with",
  "with recursive",
  "union",
  "union all",
  "intersect",
  "intersect all",
  "except",
  "except all",
]);

export function isSelectNode(node: Expr | Statement): node is SelectStatement {
  return SELECT_TYPES.has(node.type);
}

/** Whether a part of a tree is a query, or an array of the rows of one. */
export function holdsQuery(part: object): boolean {
  if (!("type" in part) || typeof part.type !== "string") return false;
  return part.type === "array select" || SELECT_TYPES.has(part.type);
}

export function isChangeNode(
  node: Statement,
): node is InsertStatement | UpdateStatement | DeleteStatement {
  return node.type === "insert" || node.type === "update" || node.type === "delete";
}
