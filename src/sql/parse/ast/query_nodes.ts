/**
 * Classifies nodes of the syntax tree: queries, changes to rows, and statements that begin a
 * transaction.
 */
import type {
  CallStatement,
  ChangeStatement,
  CopySourceStatement,
  CopyToStatement,
  Expr,
  QueryStatement,
  SelectFromStatement,
  SelectStatement,
  Statement,
  UserName,
} from "./ast.ts";

/** The node types of queries, whether they are statements or parts of an expression. */
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

/**
 * Returns the block that determines the rows of a query; undefined if there are several blocks.
 */
export function coreOf(node: SelectStatement): SelectFromStatement | undefined {
  if (node.type === "select") return node;
  const isWith = node.type === "with" || node.type === "with recursive";
  return isWith && isSelectNode(node.in) ? coreOf(node.in) : undefined;
}

/** Returns a query in which the block that {@linkcode coreOf} returns is replaced. */
export function mapCore(
  node: SelectStatement,
  change: (core: SelectFromStatement) => SelectFromStatement,
): SelectStatement {
  if (node.type === "select") return change(node);
  const isWith = node.type === "with" || node.type === "with recursive";
  if (!isWith || !isSelectNode(node.in)) return node;
  return { ...node, in: mapCore(node.in, change) };
}

/** Whether a part of a syntax tree is a query, or an array built from the rows of a query. */
export function holdsQuery(part: object): boolean {
  if (!("type" in part) || typeof part.type !== "string") return false;
  return part.type === "array select" || SELECT_TYPES.has(part.type);
}

const CHANGE_TYPES: ReadonlySet<string> = new Set<ChangeStatement["type"]>([
  "insert",
  "update",
  "delete",
  "merge",
]);

export function isChangeNode(node: Statement): node is ChangeStatement {
  return CHANGE_TYPES.has(node.type);
}

export function isQueryNode(node: Statement): node is QueryStatement {
  return isSelectNode(node) || isChangeNode(node);
}

/**
 * Whether a statement changes rows, with or without a WITH clause. The entries of the WITH clause
 * are not considered.
 */
export function isChanging(node: QueryStatement): boolean {
  return isChangeNode(node) || ("bind" in node && isChangeNode(node.in));
}

/** Whether a statement or one of its WITH entries changes rows. */
export function changesRows(node: QueryStatement): boolean {
  return (
    isChanging(node) || ("bind" in node && node.bind.some((each) => isChanging(each.statement)))
  );
}

/**
 * Returns the statement that reads or writes rows: the given statement, or the statement nested in
 * EXECUTE AS, EXPLAIN or DECLARE.
 */
export function rowsNode(node: Statement): QueryStatement | undefined {
  if (isQueryNode(node)) return node;
  if (node.type === "copy to") return node.statement;
  if (node.type === "execute as" && node.statement.type === "copy to") {
    return node.statement.statement;
  }
  if (node.type === "select for") return node.query;
  if (node.type === "declare cursor") return rowsNode(node.query);
  if (node.type === "call procedure") return callQuery(node);
  const isAround = node.type === "execute as" || node.type === "explain";
  if (isAround && isQueryNode(node.statement)) return node.statement;
  return undefined;
}

const callQueries = new WeakMap<CallStatement, SelectFromStatement>();

/**
 * Returns a query that calls the procedure of a CALL statement. Its columns are the procedure's
 * outputs.
 */
export function callQuery(node: CallStatement): SelectFromStatement {
  const known = callQueries.get(node);
  if (known !== undefined) return known;
  const { call, _location } = node;
  const query: SelectFromStatement = {
    type: "select",
    columns: [{ expr: { type: "ref", name: "*", star: true, _location }, _location }],
    from: [{ ...call, isProcedure: true, _location }],
    _location,
  };
  callQueries.set(node, query);
  return query;
}

/** Returns the user named in EXECUTE AS; undefined if the statement runs as the caller. */
export function actedForIn(node: Statement): UserName | undefined {
  return node.type === "execute as" || node.type === "explain" ? node.user : undefined;
}

/**
 * Returns the statement about a user's own data that is nested in EXECUTE AS; undefined for any
 * other node.
 */
export function ownDataNode(node: Statement): Statement | undefined {
  if (node.type !== "execute as") return undefined;
  const { type } = node.statement;
  return type === "export user data" || type === "show export" ? node.statement : undefined;
}

/** Returns a COPY TO statement: the given statement, or the statement nested in EXECUTE AS. */
export function copyToNode(node: Statement): CopyToStatement | undefined {
  const inner = node.type === "execute as" ? node.statement : node;
  return inner.type === "copy to" ? inner : undefined;
}

/** Returns the source of a COPY FROM statement, which may be nested in EXECUTE AS. */
export function copySourceNode(node: Statement): CopySourceStatement | undefined {
  const inner = node.type === "execute as" ? node.statement : node;
  return inner.type === "insert" && inner.insert.type === "copy source" ? inner.insert : undefined;
}

export function isBegin(node: Statement | undefined): boolean {
  return node?.type === "begin" || node?.type === "start transaction";
}
