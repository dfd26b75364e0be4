/**
 * Parses SQL for tests of the code that reads statements, so that those tests need not know the
 * parser's files.
 */
import type {
  LiteralValuesStatement,
  SelectStatement,
  Statement,
} from "../../src/sql/parse/ast/ast.ts";
import { isSelectNode } from "../../src/sql/parse/ast/query_nodes.ts";
import { parseStatements } from "../../src/sql/parse/parser.ts";
import { scanLiteralList, Utf8Text } from "../../src/sql/parse/text/literal_list.ts";

export type { QueryStatement, SelectStatement, Statement } from "../../src/sql/parse/ast/ast.ts";

/** Returns the parsed statements of an SQL text. */
export function statementsIn(sql: string): readonly Statement[] {
  return parseStatements(sql);
}

/** Returns the only statement of an SQL text, which must be a query. */
export function queryIn(sql: string): SelectStatement {
  const [statement] = parseStatements(sql);
  if (statement === undefined) throw new Error("the text has a statement");
  return asQuery(statement);
}

/** Returns a statement as a query. @throws If the statement is not a query. */
export function asQuery(statement: Statement): SelectStatement {
  if (!isSelectNode(statement)) throw new Error("the statement must be a query");
  return statement;
}

/** Returns the rows in a list of literals. The rows share the memory of `bytes`. */
export function literalRowsIn(text: string, bytes: Uint8Array): LiteralValuesStatement {
  const list = scanLiteralList(new Utf8Text(text, bytes), 0)?.list;
  if (list === undefined) throw new Error("the list is plain");
  return { type: "literal values", ...list, _location: { start: 0, end: text.length } };
}
