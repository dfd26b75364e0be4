/**
 * The text of a statement without its literals and secrets, as `system.query_stats` shows it.
 *
 * Whoever may see it may not see the rows of users, and what they write is in their literals. The
 * plan cache keeps some in its key: strings of them go here. What it cannot normalise is cleared of
 * numbers as well; short of that, `SELECT 1` and `SELECT 2` are two statements.
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

/** No list that is read without a tree is shorter. */
const LONG_CHARS = 2 * LIFTED_LITERALS_MAX;

/**
 * The most list items and operands kept of one statement: more than the shown text has room for.
 */
const ITEMS_SHOWN_MAX = LENGTH_MAX / 2;

const STRINGS: ReadonlySet<number> = new Set([Token.string, Token.encodedString, Token.bytes]);
const LITERALS: ReadonlySet<number> = new Set([...STRINGS, Token.integer, Token.numeric]);

/** Statements whose numbers are what somebody wrote, and no sizes of types. */
const WITH_ROWS = /^(?:select|with|values|insert|update|delete|execute)\b/i;

/** What every string begins with; a digit behind the dollar makes it a parameter. */
const STRING_SIGN = /'|\$(?!\d)/;

/** The key of the plan cache with `?` for each literal that was lifted out. */
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
 * What a bulk load has in common with those that differ from it in their rows alone, and so have
 * the same text; undefined for any other statement.
 *
 * @param sql The text that the statement was read from.
 */
export function bulkShapeOf(node: Statement, sql: string): string | undefined {
  if (node.type !== "insert" || node.insert.type !== "literal values") return undefined;
  const { _location: rows, columnCount } = node.insert;
  const { end, start } = node._location;
  if (rows.start - start + end - rows.end > LENGTH_MAX) return undefined;
  return `${sql.slice(start, rows.start)}\u0000${columnCount}\u0000${sql.slice(rows.end, end)}`;
}

/** The text of a statement as others than its author may see it, without a single literal. */
export function strangersText(node: Statement): string {
  return withoutLiterals(statementToSql(withOneRow(node)));
}

function withoutLiterals(sql: string): string {
  return cleared(sql, WITH_ROWS.test(sql) ? LITERALS : STRINGS);
}

/**
 * A long list of plain values as one row of them: it is one statement however many rows it has, and
 * writing out a bulk load to forget its values would cost a quarter of the load.
 */
function withOneRow(node: Statement): Statement {
  const { end, start } = node._location;
  return end - start < LONG_CHARS ? node : (abridged(node, { items: 0 }) as Statement);
}

/**
 * Shortens a tree to the parts that will be shown. Once the limit is used up, a list keeps only its
 * first item and a pair of operands only the left one. `taken` counts both.
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
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, abridged(value, taken)]),
  );
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

/** A text with `?` for each token of some kinds. */
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
    return "(not parsable)";
  }
}
