/** Parses CREATE and DROP for TOKEN and INVITATION. */
import type {
  CreateInvitationStatement,
  CreateTokenStatement,
  DropInvitationStatement,
  DropTokenStatement,
  Expiry,
  TokenScopeNode,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { acceptIfExists } from "./ddl.ts";
import { parseNameOrString, parseUserName, parseWord } from "./options.ts";

/** Parses the rest of a statement after `CREATE TOKEN`. */
export function parseCreateToken(cursor: Cursor, start: number): CreateTokenStatement {
  const name = parseNameOrString(cursor, "a token");
  cursor.expectAll("for", "user");
  const user = cursor.is("current_user")
    ? { ...cursor.takeName(), currentUser: true as const }
    : parseUserName(cursor);
  const made: Mutable<CreateTokenStatement> = {
    type: "create token",
    name,
    user,
    _location: name._location,
  };
  const seen = new Set<string>();
  for (;;) {
    const word = acceptOnce(cursor, ["expires", "scopes"], seen);
    if (word === undefined) break;
    if (word === "expires") made.expires = parseExpiry(cursor);
    else made.scopes = parseScopes(cursor);
  }
  made._location = cursor.since(start);
  return made;
}

/** Parses the rest of a statement after `DROP TOKEN`. */
export function parseDropToken(cursor: Cursor, start: number): DropTokenStatement {
  const ifExists = acceptIfExists(cursor);
  const name = parseNameOrString(cursor, "a token");
  return { type: "drop token", name, ifExists, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `CREATE INVITATION`. */
export function parseCreateInvitation(cursor: Cursor, start: number): CreateInvitationStatement {
  const name = parseNameOrString(cursor, "an invitation");
  const made: Mutable<CreateInvitationStatement> = {
    type: "create invitation",
    name,
    _location: name._location,
  };
  const seen = new Set<string>();
  for (;;) {
    const word = acceptOnce(cursor, ["expires", "uses"], seen);
    if (word === undefined) break;
    if (word === "expires") made.expires = parseExpiry(cursor);
    else made.uses = cursor.integer("a number of accounts");
  }
  made._location = cursor.since(start);
  return made;
}

/** Parses the rest of a statement after `DROP INVITATION`. */
export function parseDropInvitation(cursor: Cursor, start: number): DropInvitationStatement {
  const ifExists = acceptIfExists(cursor);
  const name = parseNameOrString(cursor, "an invitation");
  return { type: "drop invitation", name, ifExists, _location: cursor.since(start) };
}

/**
 * Reads one of the words that begin a clause; undefined if none comes next. Each clause may occur
 * only once.
 */
function acceptOnce<Word extends "expires" | "scopes" | "uses">(
  cursor: Cursor,
  words: readonly Word[],
  seen: Set<string>,
): Word | undefined {
  const at = cursor.start;
  const word = cursor.acceptOneOf(...words);
  if (word !== undefined && seen.has(word)) {
    cursor.fail(`found a second ${word.toUpperCase()}, but only one is allowed`, at);
  }
  if (word !== undefined) seen.add(word);
  return word;
}

/** Parses `NEVER`, `'timestamp'` or `IN 'interval'`. Returns undefined for NEVER. */
function parseExpiry(cursor: Cursor): Expiry | undefined {
  const start = cursor.token;
  if (cursor.accept("never")) return undefined;
  const kind = cursor.accept("in") ? "in" : "at";
  const text = cursor.string(kind === "in" ? "an interval" : "a timestamp");
  return { kind, text, _location: cursor.since(start) };
}

function parseScopes(cursor: Cursor): TokenScopeNode[] {
  cursor.expect("(");
  const scopes: TokenScopeNode[] = [];
  do {
    const start = cursor.token;
    const word = parseWord(cursor, "a scope").name.toLowerCase();
    const namespace = word === "namespace" ? parseNameOrString(cursor, "a namespace") : undefined;
    scopes.push({ word, namespace, _location: cursor.since(start) });
    requireListed(cursor, scopes.length, "scopes");
  } while (cursor.accept(","));
  cursor.expect(")");
  return scopes;
}
