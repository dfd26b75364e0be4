/**
 * `(name = value, …)`, user ids, and other small forms that several statements share.
 */
import type {
  CopyOption,
  ExprLiteral,
  OptionEntry,
  OptionIdentifier,
  UserName,
} from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
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
  } while (cursor.accept(","));
  cursor.expect(")");
  return entries;
}

/** `( name [value], … )` of COPY. */
export function parseCopyOptions(cursor: Cursor): CopyOption[] {
  cursor.expect("(");
  const entries: CopyOption[] = [];
  do {
    const start = cursor.token;
    const name = cursor.label("an option").name.toLowerCase();
    const hasValue = !cursor.is(",") && !cursor.is(")");
    const value = hasValue ? parseOptionValue(cursor) : undefined;
    entries.push({ name, value, _location: cursor.since(start) });
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

/** `'x'`, `"x"` or x. */
export function parseUserName(cursor: Cursor): UserName {
  const start = cursor.token;
  if (cursor.isString()) {
    return { name: cursor.takeString(), _location: cursor.since(start) };
  }
  return cursor.name("a user id");
}
