/**
 * The text of a statement without its literals and secrets, as `system.query_stats` shows it.
 *
 * Whoever may see it may not see the rows of users, and what they write is in their literals. The
 * plan cache keeps some in its key: strings of them go here. What it cannot normalise is cleared of
 * numbers as well; short of that, `SELECT 1` and `SELECT 2` are two statements.
 */
import { DatabaseError } from "../base/errors.ts";
import { LiteralCell, type Statement } from "./parse/ast.ts";
import { Token, tokenize } from "./parse/lexer.ts";
import { LITERAL_MARKS, normalizeStatement } from "./parse/normalize.ts";
import { statementToSql } from "./parse/print.ts";

const LENGTH_MAX = 2000;

const STRINGS: ReadonlySet<number> = new Set([Token.string, Token.encodedString, Token.bytes]);
const LITERALS: ReadonlySet<number> = new Set([...STRINGS, Token.integer, Token.numeric]);

/** Statements whose numbers are what somebody wrote, and no sizes of types. */
const WITH_ROWS = /^(?:select|with|values|insert|update|delete|execute)\b/i;

/** The key of the plan cache with `?` for each literal that was lifted out. */
export function textOfKey(key: string): string {
  return cleared(key.replaceAll(LITERAL_MARKS, "?"), STRINGS);
}

export function textOfStatement(node: Statement): string {
  const sql = statementToSql(withOneRow(node));
  const key = normalizeStatement(sql)?.key;
  return key === undefined ? withoutLiterals(sql) : textOfKey(key);
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
  if (node.type === "execute as") return { ...node, statement: withOneRow(node.statement) };
  if (node.type !== "insert" || node.insert.type !== "literal values") return node;
  const { columnCount } = node.insert;
  const one = {
    rowCount: 1,
    kinds: new Uint8Array(columnCount).fill(LiteralCell.integer),
    bytes: Buffer.from("0"),
    starts: new Int32Array(columnCount),
    ends: new Int32Array(columnCount).fill(1),
  };
  return { ...node, insert: { ...node.insert, ...one } };
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
