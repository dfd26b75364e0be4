/**
 * Prints a statement without its literals and secrets, for `system.query_stats`.
 *
 * Readers of that view must not see other users' data, which literals may contain. The plan cache
 * keeps some literals in its key, so the strings among them are removed here. If the cache cannot
 * normalise a statement, numbers are removed as well. Otherwise, the numbers in the key remain, so
 * `SELECT 1` and `SELECT 2` count as different statements.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  type ExprList,
  LiteralCell,
  type LiteralList,
  type LiteralValuesStatement,
  type Statement,
  type ValuesStatement,
} from "../parse/ast/ast.ts";
import { statementToSql } from "../parse/print/print.ts";
import { Token, tokenize } from "../parse/text/lexer.ts";
import { listOfLiterals, valuesOfLiterals } from "../parse/text/literal_nodes.ts";
import { LIFTED_LITERALS_MAX, LITERAL_MARKS, normalizeStatement } from "../parse/text/normalize.ts";

const LENGTH_MAX = 2000;

/**
 * The maximum length of a list that is printed from a syntax tree. A longer list consists of plain
 * literals and is stored compactly.
 */
const LONG_CHARS = 2 * LIFTED_LITERALS_MAX;

/**
 * How many list items and operands of a statement are kept. This is more than the displayed text
 * can contain.
 */
const ITEMS_SHOWN_MAX = LENGTH_MAX / 2;

const STRINGS: ReadonlySet<number> = new Set([Token.string, Token.encodedString, Token.bytes]);
const LITERALS: ReadonlySet<number> = new Set([...STRINGS, Token.integer, Token.numeric]);

/**
 * Matches statements in which numbers are user data rather than type sizes or similar settings.
 */
const WITH_ROWS = /^(?:select|with|values|insert|update|delete|execute)\b/i;

/** Matches the start of a string: a quote, or a dollar sign that does not begin a parameter. */
const STRING_SIGN = /'|\$(?!\d)/;

/** Returns a plan cache key with `?` in place of each lifted literal. */
export function textOfKey(key: string): string {
  const text = key.replaceAll(LITERAL_MARKS, "?");
  return STRING_SIGN.test(text) ? cleared(text, STRINGS) : text.slice(0, LENGTH_MAX);
}

export function textOfStatement(node: Statement): string {
  const sql = statementToSql(withOneRow(node));
  const key = normalizeStatement(sql)?.key;
  return key === undefined ? withoutLiterals(sql) : textOfKey(key);
}

/**
 * Returns a key shared by bulk loads that differ only in their rows and therefore have the same
 * printed form. Returns undefined for any other statement.
 *
 * @param sql The text of the statement.
 */
export function bulkShapeOf(node: Statement, sql: string): string | undefined {
  if (node.type !== "insert" || node.insert.type !== "literal values") return undefined;
  const { _location: rows, columnCount } = node.insert;
  const { end, start } = node._location;
  if (rows.start - start + end - rows.end > LENGTH_MAX) return undefined;
  return `${sql.slice(start, rows.start)}\u0000${columnCount}\u0000${sql.slice(rows.end, end)}`;
}

/**
 * Returns the text of a statement without literals, for display to users other than its author.
 */
export function strangersText(node: Statement): string {
  return withoutLiterals(statementToSql(withOneRow(node)));
}

function withoutLiterals(sql: string): string {
  return cleared(sql, WITH_ROWS.test(sql) ? LITERALS : STRINGS);
}

/**
 * Reduces a long list of plain values to one row. A bulk load counts as the same statement however
 * many rows it has, and printing all of its rows only to remove the values would take up much of
 * the load's time.
 */
function withOneRow(node: Statement): Statement {
  const { end, start } = node._location;
  return end - start < LONG_CHARS ? node : (abridged(node, { items: 0 }) as Statement);
}

/**
 * Reduces a tree to the parts that will be displayed. Once the limit is reached, only the first
 * item of a list and only the left operand of an operator are kept.
 * @param taken Counts the items and operands kept so far.
 */
function abridged(part: unknown, taken: { items: number }): unknown {
  if (Array.isArray(part)) {
    const shown: unknown[] = [];
    for (const item of part) {
      taken.items += 1;
      shown.push(abridged(item, taken));
      if (taken.items >= ITEMS_SHOWN_MAX) break;
    }
    return shown;
  }
  if (typeof part !== "object" || part === null || ArrayBuffer.isView(part)) return part;
  if (isLiteralNode(part)) return withOneOf(part);
  if ("left" in part && "right" in part) {
    taken.items += 1;
    if (taken.items > ITEMS_SHOWN_MAX) return abridged(part.left, taken);
  }
  const shown: Record<string, unknown> = { ...part };
  for (const [name, value] of Object.entries(part)) {
    // Any other value is a position, a word or a number, and cannot be shortened.
    if (typeof value === "object" && name !== "_location") shown[name] = abridged(value, taken);
  }
  return shown;
}

type LiteralNode =
  | LiteralValuesStatement
  | ((ExprList | ValuesStatement) & { readonly literals: LiteralList });

function isLiteralNode(part: object): part is LiteralNode {
  if ("literals" in part && part.literals !== undefined) return true;
  return "type" in part && part.type === "literal values";
}

function withOneOf(node: LiteralNode): LiteralValuesStatement | ExprList | ValuesStatement {
  if (node.type === "literal values") return { ...node, ...oneRow(node.columnCount) };
  const { _location, literals } = node;
  const one = oneRow(literals.columnCount);
  if (node.type !== "values") return listOfLiterals(one, node);
  const { limit, orderBy } = node;
  return {
    type: "values",
    values: valuesOfLiterals(one, _location).values,
    limit,
    orderBy,
    _location,
  };
}

function oneRow(columnCount: number): LiteralList {
  return {
    rowCount: 1,
    columnCount,
    kinds: new Uint8Array(columnCount).fill(LiteralCell.integer),
    bytes: Buffer.from("0"),
    starts: new Int32Array(columnCount),
    ends: new Int32Array(columnCount).fill(1),
  };
}

/** Returns `text` with `?` in place of each token of the given kinds. */
function cleared(text: string, kinds: ReadonlySet<number>): string {
  try {
    const { ends, kinds: found, starts } = tokenize(text);
    let shown = "";
    let copied = 0;
    for (let index = 0; index < found.length && shown.length < LENGTH_MAX; index += 1) {
      if (!kinds.has(found[index] ?? Token.end)) continue;
      shown += `${text.slice(copied, starts[index])}?`;
      copied = ends[index] ?? text.length;
    }
    return (shown + text.slice(copied)).slice(0, LENGTH_MAX);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    return "(could not be parsed)";
  }
}
