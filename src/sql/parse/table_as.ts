/**
 * Parses CREATE TABLE … AS, and converts SELECT … INTO to this form, because the two mean the
 * same.
 */
import type {
  CreateTableAsStatement,
  CreateTableStatement,
  ExecutePreparedStatement,
  SelectFromStatement,
  SelectStatement,
  Statement,
} from "./ast/ast.ts";
import { isSelectNode } from "./ast/query_nodes.ts";
import type { Cursor } from "./cursor.ts";
import { parseExecute } from "./prepare.ts";
import { parseQuery } from "./select.ts";

/** The parts of CREATE TABLE that precede AS. */
type BeforeAs = Pick<
  CreateTableStatement,
  "ifNotExists" | "kind" | "name" | "onCommit" | "options" | "temporary" | "unlogged"
> &
  Pick<CreateTableAsStatement, "columnNames">;

/** Parses `AS { query | EXECUTE name } [WITH [NO] DATA]`. */
export function parseTableAs(
  cursor: Cursor,
  start: number,
  before: BeforeAs,
): CreateTableAsStatement | ExecutePreparedStatement {
  cursor.expect("as");
  if (cursor.is("execute")) {
    const execute = parseExecute(cursor, start);
    const table = { ...before, withData: acceptData(cursor) };
    return { ...execute, table, _location: cursor.since(start) };
  }
  const query = parseQuery(cursor);
  const withData = acceptData(cursor);
  const _location = cursor.since(start);
  return { type: "create table as", ...before, query, withData, _location };
}

/** Reads `WITH [NO] DATA`. Returns false for WITH NO DATA. */
export function acceptData(cursor: Cursor): boolean {
  if (cursor.acceptAll("with", "no", "data")) return false;
  cursor.acceptAll("with", "data");
  return true;
}

/** Converts SELECT … INTO to CREATE TABLE … AS. Any other statement is returned unchanged. */
export function withoutInto(statement: Statement): Statement {
  if (!isSelectNode(statement)) return statement;
  const path = pathToFirst(statement);
  const first = path.at(-1);
  if (first?.type !== "select" || first.into === undefined) return statement;
  const { _location } = statement;
  const { into, ...block } = first;
  const { temporary, unlogged, ...name } = into;
  const plain: SelectFromStatement = { ...block, into: undefined };
  const query = path.slice(0, -1).reduceRight<SelectStatement>(withFirst, plain);
  return {
    type: "create table as",
    kind: undefined,
    name,
    ...(temporary && { temporary }),
    ...(unlogged && { unlogged }),
    ifNotExists: undefined,
    columnNames: undefined,
    options: undefined,
    query,
    withData: true,
    _location,
  };
}

/**
 * Returns the chain of leftmost operands of a query, from the whole query down to its first block.
 */
function pathToFirst(query: SelectStatement): SelectStatement[] {
  const path: SelectStatement[] = [];
  for (let at: SelectStatement | undefined = query; at !== undefined; at = firstOf(at)) {
    path.push(at);
  }
  return path;
}

function firstOf(query: SelectStatement): SelectStatement | undefined {
  if ("left" in query) return query.left;
  return "in" in query && isSelectNode(query.in) ? query.in : undefined;
}

function withFirst(first: SelectStatement, around: SelectStatement): SelectStatement {
  if ("left" in around) return { ...around, left: first };
  return "in" in around ? { ...around, in: first } : first;
}
