/**
 * Parses `(name = value, …)`, user ids, and other small forms that several statements share.
 *
 * A string is accepted in place of a single word, because some other systems require quotes around
 * the word.
 */
import { normalized } from "../../types/mod.ts";
import type { ExprLiteral, Name, OptionEntry, OptionIdentifier, UserName } from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

/** Parses a list of options: `( name = value, … )`. */
export function parseOptions(cursor: Cursor): OptionEntry[] {
  cursor.expect("(");
  const entries: OptionEntry[] = [];
  do {
    const start = cursor.token;
    const name = parseOptionName(cursor);
    cursor.expect("=");
    const value = parseOptionValue(cursor);
    entries.push({ name, value, _location: cursor.since(start) });
    requireListed(cursor, entries.length, "options");
  } while (cursor.accept(","));
  cursor.expect(")");
  return entries;
}

/** Parses the name of an option: `name`, or a PostgreSQL option such as `toast.name`. */
function parseOptionName(cursor: Cursor): string {
  const name = cursor.label("an option").name.toLowerCase();
  if (!cursor.accept(".")) return name;
  return `${name}.${cursor.label("an option").name.toLowerCase()}`;
}

/** Parses the value of an option: a literal or an unquoted word. */
export function parseOptionValue(cursor: Cursor): ExprLiteral | OptionIdentifier {
  const { word, kind } = cursor;
  const isLiteral = kind !== Token.word && kind !== Token.quoted;
  if (isLiteral || word === "true" || word === "false" || word === "null") {
    return parsePlainLiteral(cursor);
  }
  return { type: "identifier", ...cursor.label("a value") };
}

/** Parses a literal that is not part of a larger expression. */
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
      return cursor.fail("found an expression, but a plain value is expected", start);
  }
}

/** Parses a word in the form `x`, `"X"` or `'X'`. An unquoted word is folded to lower case. */
export function parseWord(cursor: Cursor, what: string): Name {
  return cursor.isString() ? takeStringName(cursor) : cursor.label(what);
}

/** Parses a word like {@linkcode parseWord}, but requires quotes around a reserved word. */
export function parseNameOrString(cursor: Cursor, what: string): Name {
  return cursor.isString() ? takeStringName(cursor) : cursor.name(what);
}

/** Parses the format `text` or `json`, with or without quotes. */
export function parseFormat(cursor: Cursor): "text" | "json" {
  const words = ["text", "json"] as const;
  const token = cursor.token;
  const quoted = cursor.isString() ? cursor.takeString().toLowerCase() : undefined;
  const found = words.find((word) => word === quoted);
  if (found !== undefined) return found;
  cursor.token = token;
  return cursor.expectOneOf(...words);
}

/**
 * Parses a user id: `'x'`, `"x"` or x. The id is the login name. It keeps its case even without
 * quotes, because an external system may define it. The result is normalised to Unicode NFC, the
 * form in which ids are compared.
 */
export function parseUserName(cursor: Cursor): UserName {
  const { kind, start } = cursor;
  const parsed = parseNameOrString(cursor, "a user id");
  const written = kind === Token.word ? cursor.text.slice(start, cursor.end) : parsed.name;
  return { ...parsed, name: normalized(written, "NFC") };
}

/**
 * Parses the id of a running activity: `'x'`, `"x"`, or unquoted text up to the next whitespace.
 */
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
