/** Splits SQL into statements, and chooses the statement that a live view follows. */
import { TIDEMARK_SQL } from "./sql_dialect.ts";

/** A part of the editor's text, with its position. */
export interface Submitted {
  readonly text: string;
  readonly offset: number;
}

/** Returns the statements in an SQL text, without the comments between them. */
export function statementsIn(sql: string): Submitted[] {
  const { topNode } = TIDEMARK_SQL.language.parser.parse(sql);
  return topNode
    .getChildren("Statement")
    .map(({ from, to }) => ({ text: sql.slice(from, to), offset: from }))
    .filter(({ text }) => text !== ";");
}

/**
 * Returns the query that a live view follows: the statement at or before the cursor. If that
 * statement is not a query, returns the next query below it or, if there is none, the last query
 * above it; undefined if there is no query at all.
 */
export function queryToFollow(sql: string, cursor: number): Submitted | undefined {
  const statements = statementsIn(sql);
  const near = statements.findLast(({ offset }) => offset <= cursor) ?? statements[0];
  if (near === undefined || isQuery(near)) return near;
  const queries = statements.filter(isQuery);
  return queries.find(({ offset }) => offset > near.offset) ?? queries.at(-1);
}

function isQuery({ text }: Submitted): boolean {
  return /^[\s(]*(?:select|with)\b/i.test(text);
}
