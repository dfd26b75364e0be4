/**
 * Parses the parts of index keys, and the conditions of indexes. Expressions keep their SQL text,
 * which the catalog stores.
 */
import type { Expr, IndexedColumn, IndexedExpression } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

/** Parses an expression, and returns it with its SQL text, which the catalog stores. */
export function parseSourced(cursor: Cursor): { readonly expr: Expr; readonly source: string } {
  const { start } = cursor;
  const expr = cursor.grammar.expression(cursor);
  return { expr, source: cursor.text.slice(start, cursor.end) };
}

/** Parses one part of an index key: a column, a call, or an expression in parentheses. */
export function parseIndexedPart(cursor: Cursor): IndexedColumn["part"] {
  if (cursor.accept("(")) {
    const part = parseIndexedExpression(cursor);
    cursor.expect(")");
    return part;
  }
  const isQualified = cursor.isAhead(1, ".") && cursor.isAhead(3, "(");
  const isCall = cursor.kindAhead(0) === Token.word && (cursor.isAhead(1, "(") || isQualified);
  return isCall ? parseIndexedExpression(cursor) : cursor.name("a column");
}

export function parseIndexedExpression(cursor: Cursor): IndexedExpression {
  const start = cursor.token;
  return { ...parseSourced(cursor), _location: cursor.since(start) };
}
