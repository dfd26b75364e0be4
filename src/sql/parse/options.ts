/**
 * `(name = value, …)`, user ids, and other small forms that several statements share.
 *
 * Where only one word can stand, it may as well be written as a string: other systems are divided
 * on which of the two it is.
 */
import type { ExprLiteral, Name, OptionEntry, OptionIdentifier, UserName } from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";
import type { Keyword } from "./text/keywords.ts";
import { Token } from "./text/lexer.ts";

/** `( name = value, … )`. */
export function parseOptions(cursor: Cursor): OptionEntry[] {
  cursor.expect("(");
  const entries: OptionEntry[] = [];
  do {
    const start = cursor.token;
    const name = cursor.label("an option").name.toLowerCase();
    cursor.expect("=");
    const value = parseOptionValue(cursor);
    entries.push({ name, value, _location: cursor.since(start) });
    requireListed(cursor, entries.length, "options");
  } while (cursor.accept(","));
  cursor.expect(")");
  return entries;
}

// A literal, or a bare word.
function parseOptionValue(cursor: Cursor): ExprLiteral | OptionIdentifier {
  const { word, kind } = cursor;
  const isLiteral = kind !== Token.word && kind !== Token.quoted;
  if (isLiteral || word === "true" || word === "false" || word === "null") {
    return parsePlainLiteral(cursor);
  }
  return { type: "identifier", ...cursor.label("a value") };
}

/** A literal and nothing around it. */
export function parsePlainLiteral(cursor: Cursor): ExprLiteral {
  const { start } = cursor;
  const node = cursor.grammar.expression(cursor);
  switch (node.type) {
    case "integer":
    case "numeric":
    case "string":
    case "bytes":
    case "boolean":
    case "null":
      return node;
    default:
      return cursor.fail("found an expression, expected a plain value", start);
  }
}

/** `x`, `"X"` or `'X'`: one word, however it is written. A bare word is folded to lower case. */
export function parseWord(cursor: Cursor, what: string): Name {
  return cursor.isString() ? takeStringName(cursor) : cursor.label(what);
}

/** As {@linkcode parseWord}, where a reserved word needs quotes. */
export function parseNameOrString(cursor: Cursor, what: string): Name {
  return cursor.isString() ? takeStringName(cursor) : cursor.name(what);
}

/** One of some words, bare or in quotes. */
export function parseWordOf<W extends Keyword>(cursor: Cursor, ...words: readonly W[]): W {
  const token = cursor.token;
  const quoted = cursor.isString() ? cursor.takeString().toLowerCase() : undefined;
  const found = words.find((word) => word === quoted);
  if (found !== undefined) return found;
  cursor.token = token;
  return cursor.expectOneOf(...words);
}

/**
 * `'x'`, `"x"` or x. A user id comes from outside and is what somebody logs in with, so it keeps
 * its case, also without quotes.
 */
export function parseUserName(cursor: Cursor): UserName {
  const { kind, start } = cursor;
  const name = parseNameOrString(cursor, "a user id");
  return kind === Token.word ? { ...name, name: cursor.text.slice(start, cursor.end) } : name;
}

/** An id of something that runs: `'x'`, `"x"`, or without quotes all up to white space. */
export function parseId(cursor: Cursor, what: string): string {
  const { kind, start } = cursor;
  if (kind !== Token.word && kind !== Token.integer) return parseWord(cursor, what).name;
  do cursor.token += 1;
  while (cursor.start === cursor.end && !isStatementEnd(cursor));
  return cursor.text.slice(start, cursor.end);
}

function isStatementEnd(cursor: Cursor): boolean {
  return cursor.kind === Token.end || cursor.isAhead(0, ";") || cursor.isAhead(0, ")");
}

function takeStringName(cursor: Cursor): Name {
  const start = cursor.token;
  return { name: cursor.takeString(), _location: cursor.since(start) };
}
