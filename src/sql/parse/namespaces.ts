/**
 * Parses CREATE, ALTER and DROP NAMESPACE, and the names of namespaces.
 */
import type {
  AlterNamespaceStatement,
  CreateNamespaceStatement,
  DropNamespaceStatement,
  Name,
  NamespaceElement,
  Statement,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";
import { acceptBehaviour, acceptIfExists, acceptIfNotExists } from "./ddl.ts";
import { parseNameOrString, parseOptions, parseUserName } from "./options.ts";
import { parseOwner } from "./ownership.ts";
import { refuseStatement } from "./refused.ts";
import { Token } from "./text/lexer.ts";

const RENAMED_NAMESPACE = "create a namespace with the new name, and copy the tables";

/** Parses the rest of a statement after `CREATE NAMESPACE`. */
export function parseCreateNamespace(cursor: Cursor, start: number): CreateNamespaceStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const { authorization, name } = parseNamedOrOwned(cursor);
  const elements = parseElements(cursor, ifNotExists);
  const _location = cursor.since(start);
  return { type: "create namespace", name, ifNotExists, authorization, elements, _location };
}

/** Parses `name [AUTHORIZATION user]`, or `AUTHORIZATION user`, where the user gives the name. */
function parseNamedOrOwned(
  cursor: Cursor,
): Pick<CreateNamespaceStatement, "authorization" | "name"> {
  if (!cursor.accept("authorization")) {
    const name = parseNamespaceName(cursor);
    const authorization = cursor.accept("authorization") ? parseOwner(cursor) : undefined;
    return { authorization, name };
  }
  const { start } = cursor;
  const authorization = parseOwner(cursor);
  if (authorization.currentUser === true) {
    cursor.refuse(
      "CREATE NAMESPACE AUTHORIZATION CURRENT_USER without a name",
      "write CREATE NAMESPACE name AUTHORIZATION CURRENT_USER",
      start,
    );
  }
  return { authorization, name: authorization };
}

/** Parses the definitions of objects in the new namespace; undefined if there are none. */
function parseElements(
  cursor: Cursor,
  ifNotExists: true | undefined,
): readonly NamespaceElement[] | undefined {
  const elements: NamespaceElement[] = [];
  for (;;) {
    if (cursor.is("grant")) refuseStatement(cursor);
    if (!cursor.is("create")) break;
    const { start } = cursor;
    const element = cursor.grammar.statement(cursor);
    if (ifNotExists === true) {
      cursor.refuse(
        "CREATE NAMESPACE IF NOT EXISTS with definitions",
        "write CREATE … IF NOT EXISTS as separate statements",
        start,
      );
    }
    if (!isElement(element)) {
      cursor.fail(
        `found ${element.type.toUpperCase()} in CREATE NAMESPACE, expected a definition of a ` +
          "table, view, index, sequence or trigger",
        start,
      );
    }
    elements.push(element);
    requireListed(cursor, elements.length, "definitions in one CREATE NAMESPACE");
  }
  return elements.length === 0 ? undefined : elements;
}

const ELEMENTS: ReadonlySet<Statement["type"]> = new Set<NamespaceElement["type"]>([
  "create index",
  "create sequence",
  "create table",
  "create trigger",
  "create view",
]);

function isElement(node: Statement): node is NamespaceElement {
  return ELEMENTS.has(node.type);
}

/** Parses the rest of a statement after `DROP NAMESPACE`. */
export function parseDropNamespace(cursor: Cursor, start: number): DropNamespaceStatement {
  const ifExists = acceptIfExists(cursor);
  const names = [parseNamespaceName(cursor)];
  while (cursor.accept(",")) names.push(parseNamespaceName(cursor));
  const cascade = acceptBehaviour(cursor);
  return { type: "drop namespace", names, ifExists, cascade, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `ALTER NAMESPACE`. */
export function parseAlterNamespace(cursor: Cursor, start: number): AlterNamespaceStatement {
  const name = parseNamespaceName(cursor);
  if (cursor.acceptAll("set", "options")) {
    const options = parseOptions(cursor);
    return { type: "alter namespace", name, options, _location: cursor.since(start) };
  }
  if (cursor.is("rename")) cursor.refuse("ALTER NAMESPACE … RENAME TO", RENAMED_NAMESPACE);
  if (!cursor.accept("owner")) {
    cursor.couldBe("set");
    cursor.unexpected("SET OPTIONS or OWNER TO");
  }
  cursor.expect("to");
  const owner = parseUserName(cursor);
  return { type: "alter namespace", name, owner, _location: cursor.since(start) };
}

/**
 * Parses a namespace name where nothing else is allowed. It may also be a string or an unquoted
 * `default`.
 */
export function parseNamespaceName(cursor: Cursor): Name {
  return cursor.is("default") ? cursor.takeName() : parseNameOrString(cursor, "a namespace");
}

/** Parses `[NAMESPACE] n`. A namespace may itself be called NAMESPACE. */
export function parseNamespaceOf(cursor: Cursor): Name {
  if ((cursor.is("namespace") || cursor.is("schema")) && cursor.kindAhead(1) !== Token.end) {
    if (!cursor.isAhead(1, ";") && !cursor.isAhead(1, ")")) cursor.token += 1;
  }
  return parseNamespaceName(cursor);
}
