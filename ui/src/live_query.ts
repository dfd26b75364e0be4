/**
 * Prepares a statement for a subscription. A query for the rows of a single table is followed row
 * by row, without ORDER BY and LIMIT: the page removes both clauses from the end of the query,
 * follows the rest, and sorts the rows itself. Any other query is followed as written.
 */
import { type OrderTerm, orderFrom } from "../../src/client/mod.ts";
import { type Token, tokensOf } from "./sql_tokens.ts";

/**
 * The maximum number of rows to follow. If a query has more rows, only the newest are followed,
 * because the others would only fill the browser's memory.
 */
const SNAPSHOT_ROWS_MAX = 10_000;

export interface LiveOrder {
  /** The ORDER BY clause as written. */
  readonly text: string;
  /** The terms of the order; undefined if any term is not a column. */
  readonly terms: readonly OrderTerm[] | undefined;
}

export interface FollowedQuery {
  readonly sql: string;
  /** The statement as written, for a query that does not return the rows of a single table. */
  readonly whole: string;
  /** The number of newest rows to start with and to keep. */
  readonly lastRows: number;
  readonly order: LiveOrder | undefined;
  /** The maximum number of sorted rows to show. */
  readonly shownRows: number;
}

export function followedQuery(statement: string): FollowedQuery {
  const text = statement.replace(/[\s;]+$/, "");
  const tokens = outermost(tokensOf(text));
  const at = tokens.findLastIndex(
    (token, index) => isWord(token, "order") && isWord(tokens[index + 1], "by"),
  );
  const limit = tokens.at(-2);
  const count = tokens.at(-1);
  const hasLimit = isWord(limit, "limit") && /^\d+$/.test(count?.text ?? "");
  const rows = hasLimit ? Math.min(Number(count?.text), SNAPSHOT_ROWS_MAX) : SNAPSHOT_ROWS_MAX;
  const end = hasLimit && limit !== undefined ? limit.from : text.length;
  const [order, by] = tokens.slice(at);
  if (at === -1 || order === undefined || by === undefined) {
    // Without an ORDER BY, a LIMIT selects the newest rows.
    const sql = text.slice(0, end).trimEnd();
    return { sql, whole: text, lastRows: rows, order: undefined, shownRows: rows };
  }
  // Other clauses at the end, such as OFFSET, stay in the query, and the server refuses them.
  const next = tokens.slice(at).find((token) => ENDS.some((word) => isWord(token, word)));
  const orderEnd = next === undefined ? end : Math.min(next.from, end);
  return {
    sql: `${text.slice(0, order.from).trimEnd()} ${text.slice(orderEnd, end)}`.trimEnd(),
    whole: text,
    lastRows: SNAPSHOT_ROWS_MAX,
    order: orderOf(text.slice(by.to, orderEnd).trim()),
    shownRows: rows,
  };
}

const ENDS: readonly string[] = ["limit", "offset", "fetch", "for"];

function orderOf(text: string): LiveOrder {
  try {
    return { text, terms: orderFrom(text) };
  } catch (error) {
    // Without terms, the rows appear in the order of arrival, and the page says so.
    if (error instanceof TypeError) return { text, terms: undefined };
    throw error;
  }
}

/** Returns the tokens that are outside parentheses. */
function outermost(tokens: readonly Token[]): Token[] {
  let depth = 0;
  return tokens.filter(({ kind, text }) => {
    if (kind === "sign" && text === "(") depth += 1;
    else if (kind === "sign" && text === ")") depth -= 1;
    else return depth === 0;
    return false;
  });
}

function isWord(token: Token | undefined, word: string): boolean {
  return token?.kind === "name" && token.text.toLowerCase() === word;
}
