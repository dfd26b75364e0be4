/** Parses CREATE, ALTER and DROP USER. */
import type { AlterUserStatement, CreateUserStatement, DropUserStatement } from "./ast/ast.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { acceptIfExists, acceptIfNotExists } from "./ddl.ts";
import { parseUserName, parseWord } from "./options.ts";

/** Parses the rest of a statement after `CREATE USER`. */
export function parseCreateUser(cursor: Cursor, start: number): CreateUserStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = parseUserName(cursor);
  cursor.accept("with");
  const made: Mutable<CreateUserStatement> = {
    type: "create user",
    name,
    ifNotExists,
    _location: name._location,
  };
  let hasLogin = false;
  for (;;) {
    const at = cursor.start;
    const word = cursor.acceptOneOf("password", "oauth", "internal", "role", "email", "metadata");
    if (word === undefined) break;
    const isLogin = word === "password" || word === "oauth" || word === "internal";
    if (isLogin ? hasLogin : made[word] !== undefined) {
      cursor.fail(
        `found a second ${isLogin ? "way to log in" : word}, but only one is allowed`,
        at,
      );
    }
    hasLogin ||= isLogin;
    if (word === "internal") made.internal = true;
    else if (word === "role") made.role = parseWord(cursor, "a role");
    else made[word] = cursor.string("a string");
  }
  if (!hasLogin) cursor.unexpected("PASSWORD, OAUTH or INTERNAL");
  made._location = cursor.since(start);
  return made;
}

/** Parses the rest of a statement after `ALTER USER`. */
export function parseAlterUser(cursor: Cursor, start: number): AlterUserStatement {
  const name = cursor.is("current_user")
    ? { ...cursor.takeName(), currentUser: true as const }
    : parseUserName(cursor);
  const link = cursor.acceptOneOf("add", "drop");
  if (link !== undefined) {
    cursor.expect("oauth");
    const text = cursor.string("a string");
    return { type: "alter user", name, link: { [link]: text }, _location: cursor.since(start) };
  }
  cursor.expect("set");
  const word = cursor.expectOneOf("password", "role", "email", "metadata");
  if (word === "role") {
    const role = parseWord(cursor, "a role");
    return { type: "alter user", name, role, _location: cursor.since(start) };
  }
  const value = cursor.string("a string");
  return { type: "alter user", name, [word]: value, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `DROP USER`. */
export function parseDropUser(cursor: Cursor, start: number): DropUserStatement {
  const ifExists = acceptIfExists(cursor);
  const name = parseUserName(cursor);
  const purge = cursor.accept("purge") ? true : undefined;
  return { type: "drop user", name, ifExists, purge, _location: cursor.since(start) };
}
