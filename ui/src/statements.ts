/**
 * The statements of a text, and which of them a live view follows.
 */
import { TIDEMARK_SQL } from "./sql_dialect.ts";

/** A piece of the editor's text, and where it stood. */
export interface Submitted {
  readonly text: string;
  readonly offset: number;
}

/** The statements, without the comments between them. */
export function statementsIn(sql: string): Submitted[] {
  const { topNode } = TIDEMARK_SQL.language.parser.parse(sql);
  return topNode
    .getChildren("Statement")
    .map(({ from, to }) => ({ text: sql.slice(from, to), offset: from }))
    .filter(({ text }) => text !== ";");
}

/**
 * The query that a live view follows: the statement that the cursor is in or behind; if that is no
 * query, the next one below it, or else the last one above it. Undefined if there is none.
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
