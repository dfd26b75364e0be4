/** Parses the statements about ownership and extensions that database dumps contain. */
import type { AlterOwnerStatement, CreateExtensionStatement, UserName } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { parseNameOrString, parseUserName } from "./options.ts";

/** Parses `OWNER TO user`, if it comes next. */
export function acceptOwner(
  cursor: Cursor,
  start: number,
  object: Pick<AlterOwnerStatement, "ifExists" | "kind" | "name">,
): AlterOwnerStatement | undefined {
  if (!cursor.is("owner") || !cursor.isAhead(1, "to")) return undefined;
  cursor.token += 2;
  const owner = parseOwner(cursor);
  return { type: "alter owner", ...object, owner, _location: cursor.since(start) };
}

/** Parses the id of a user, or CURRENT_USER, SESSION_USER or CURRENT_ROLE. */
export function parseOwner(cursor: Cursor): UserName {
  const isCaller =
    cursor.is("current_user") || cursor.is("session_user") || cursor.is("current_role");
  return isCaller ? { ...cursor.takeName(), currentUser: true } : parseUserName(cursor);
}

/**
 * Parses the rest of a statement after `CREATE EXTENSION`. SCHEMA and CASCADE have no effect,
 * because built-in functions do not belong to a namespace.
 */
export function parseCreateExtension(cursor: Cursor, start: number): CreateExtensionStatement {
  const ifNotExists = cursor.acceptAll("if", "not", "exists") ? true : undefined;
  const name = parseNameOrString(cursor, "an extension");
  cursor.accept("with");
  if (cursor.accept("schema")) cursor.label("a schema");
  if (cursor.nameText(cursor.token) === "version") {
    cursor.refuse("the VERSION of an extension", "remove the version: the functions are built in");
  }
  cursor.accept("cascade");
  return { type: "create extension", name, ifNotExists, _location: cursor.since(start) };
}
