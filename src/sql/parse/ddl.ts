/**
 * Definitions of tables, views and namespaces. Expressions are kept with their text, which is what
 * the catalog stores: it outlives any change of the tree.
 */
import type {
  AlterNamespaceStatement,
  ColumnConstraint,
  ConstraintCheck,
  CreateColumnDef,
  CreateNamespaceStatement,
  CreateTableStatement,
  CreateViewStatement,
  DropBehaviour,
  DropNamespaceStatement,
  DropTableStatement,
  DropViewStatement,
  Expr,
  Name,
  QName,
  TableConstraint,
  TableKind,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";
import { parseNameOrString, parseOptions, parseUserName } from "./options.ts";
import { refuseForeignKey, refuseUnique } from "./refused.ts";
import { parseQuery } from "./select.ts";
import { Token } from "./text/lexer.ts";

export function acceptIfNotExists(cursor: Cursor): true | undefined {
  return cursor.acceptAll("if", "not", "exists") ? true : undefined;
}

export function acceptIfExists(cursor: Cursor): true | undefined {
  return cursor.acceptAll("if", "exists") ? true : undefined;
}

export function acceptBehaviour(cursor: Cursor): DropBehaviour | undefined {
  return cursor.acceptOneOf("restrict", "cascade");
}

/** Behind `CREATE NAMESPACE`. */
export function parseCreateNamespace(cursor: Cursor, start: number): CreateNamespaceStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = parseNamespaceName(cursor);
  const authorization = cursor.accept("authorization") ? parseUserName(cursor) : undefined;
  const _location = cursor.since(start);
  return { type: "create namespace", name, ifNotExists, authorization, _location };
}

/** Behind `DROP NAMESPACE`. */
export function parseDropNamespace(cursor: Cursor, start: number): DropNamespaceStatement {
  const ifExists = acceptIfExists(cursor);
  const name = parseNamespaceName(cursor);
  const cascade = acceptBehaviour(cursor);
  return { type: "drop namespace", name, ifExists, cascade, _location: cursor.since(start) };
}

/** Behind `ALTER NAMESPACE`. */
export function parseAlterNamespace(cursor: Cursor, start: number): AlterNamespaceStatement {
  const name = parseNamespaceName(cursor);
  if (cursor.acceptAll("set", "options")) {
    const options = parseOptions(cursor);
    return { type: "alter namespace", name, options, _location: cursor.since(start) };
  }
  if (!cursor.accept("owner")) {
    cursor.couldBe("set");
    cursor.unexpected("SET OPTIONS or OWNER TO");
  }
  cursor.expect("to");
  const owner = parseUserName(cursor);
  return { type: "alter namespace", name, owner, _location: cursor.since(start) };
}

/**
 * Parses a namespace in a place that takes nothing else: also as a string, or as bare `default`.
 */
export function parseNamespaceName(cursor: Cursor): Name {
  return cursor.is("default") ? cursor.takeName() : parseNameOrString(cursor, "a namespace");
}

/** `[NAMESPACE] n`; a namespace may itself be called namespace. */
export function parseNamespaceOf(cursor: Cursor): Name {
  if ((cursor.is("namespace") || cursor.is("schema")) && cursor.kindAhead(1) !== Token.end) {
    if (!cursor.isAhead(1, ";") && !cursor.isAhead(1, ")")) cursor.token += 1;
  }
  return parseNamespaceName(cursor);
}

/** Behind `CREATE [kind] TABLE`. */
export function parseCreateTable(
  cursor: Cursor,
  start: number,
  kind: TableKind | undefined,
): CreateTableStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = cursor.qname("a table");
  if (cursor.is("as")) refuseTableAs(cursor);
  if (cursor.is("partition")) refusePartition(cursor);
  if (cursor.is("like")) refuseTableLike(cursor);
  if (cursor.is("of")) cursor.refuse("CREATE TABLE … OF a type");
  cursor.expect("(");
  const columns: CreateColumnDef[] = [];
  const constraints: TableConstraint[] = [];
  do {
    if (isTableConstraint(cursor)) constraints.push(parseTableConstraint(cursor));
    else columns.push(parseColumn(cursor));
    requireListed(cursor, columns.length + constraints.length, "columns and constraints");
  } while (cursor.accept(","));
  cursor.expect(")");
  refuseTableClauses(cursor);
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  refuseTableClauses(cursor);
  return {
    type: "create table",
    kind,
    name,
    ifNotExists,
    columns,
    constraints: constraints.length === 0 ? undefined : constraints,
    options,
    _location: cursor.since(start),
  };
}

function refuseTableAs(cursor: Cursor): never {
  cursor.refuse("CREATE TABLE … AS", "create the table, then INSERT INTO … SELECT");
}

function refuseTableLike(cursor: Cursor): never {
  cursor.refuse("CREATE TABLE … LIKE", "repeat the columns of the table");
}

function refusePartition(cursor: Cursor): never {
  cursor.refuse("PARTITION BY of a table", "partitioning by user is built in: CREATE USER TABLE");
}

function refuseTableClauses(cursor: Cursor): void {
  switch (cursor.word) {
    case "as":
      return refuseTableAs(cursor);
    case "partition":
      return refusePartition(cursor);
    case "inherits":
      return cursor.refuse("INHERITS", "repeat the columns in both tables");
    case "using":
      return cursor.refuse("USING of a table access method");
    case "tablespace":
      return cursor.refuse("TABLESPACE", "the option STORAGE_ID names a storage");
    case "on":
      return cursor.refuse("ON COMMIT of a temporary table");
  }
}

/** Whether a constraint of the table begins here. */
export function isTableConstraint(cursor: Cursor): boolean {
  switch (cursor.word) {
    case "constraint":
    case "primary":
    case "check":
      return true;
    case "unique":
      return refuseUnique(cursor);
    case "foreign":
      return refuseForeignKey(cursor, "FOREIGN KEY");
    case "exclude":
      return cursor.isAhead(1, "(") || cursor.isAhead(1, "using")
        ? cursor.refuse("EXCLUDE constraint")
        : false;
    case "like":
      return refuseTableLike(cursor);
    default:
      return false;
  }
}

/** `[CONSTRAINT k] (PRIMARY KEY (…) | CHECK (…))`. */
export function parseTableConstraint(cursor: Cursor): TableConstraint {
  const start = cursor.token;
  const constraintName = cursor.accept("constraint") ? cursor.name("a constraint") : undefined;
  if (cursor.is("unique")) refuseUnique(cursor);
  if (cursor.is("foreign")) refuseForeignKey(cursor, "FOREIGN KEY");
  if (cursor.is("exclude")) cursor.refuse("EXCLUDE constraint");
  if (cursor.acceptAll("primary", "key")) {
    const columns = cursor.nameList("a column");
    const _location = cursor.since(start);
    return { type: "primary key", columns, constraintName, _location };
  }
  return parseCheck(cursor, start, constraintName);
}

function parseCheck(
  cursor: Cursor,
  start: number,
  constraintName: Name | undefined,
): ConstraintCheck {
  cursor.expectAll("check", "(");
  const { expr, source } = parseSourced(cursor);
  cursor.expect(")");
  return { type: "check", expr, source, constraintName, _location: cursor.since(start) };
}

/** An expression with its text, which the catalog keeps. */
export function parseSourced(cursor: Cursor): { readonly expr: Expr; readonly source: string } {
  const { start } = cursor;
  const expr = cursor.grammar.expression(cursor);
  return { expr, source: cursor.text.slice(start, cursor.end) };
}

/** `name type constraint…`. */
export function parseColumn(cursor: Cursor): CreateColumnDef {
  const start = cursor.token;
  const name = cursor.name("a column");
  const dataType = cursor.grammar.dataType(cursor);
  const constraints: ColumnConstraint[] = [];
  for (;;) {
    const constraint = parseColumnConstraint(cursor);
    if (constraint === undefined) break;
    constraints.push(constraint);
  }
  return {
    kind: "column",
    name,
    dataType,
    constraints: constraints.length === 0 ? undefined : constraints,
    _location: cursor.since(start),
  };
}

function parseColumnConstraint(cursor: Cursor): ColumnConstraint | undefined {
  const start = cursor.token;
  const constraintName = cursor.accept("constraint") ? cursor.name("a constraint") : undefined;
  switch (cursor.word) {
    case "null":
      cursor.token += 1;
      return { type: "null", constraintName, _location: cursor.since(start) };
    case "not":
      cursor.expectAll("not", "null");
      return { type: "not null", constraintName, _location: cursor.since(start) };
    case "primary":
      cursor.expectAll("primary", "key");
      return { type: "primary key", constraintName, _location: cursor.since(start) };
    case "auto_increment":
      cursor.token += 1;
      return { type: "auto increment", constraintName, _location: cursor.since(start) };
    case "default": {
      cursor.token += 1;
      const { expr, source } = parseSourced(cursor);
      const _location = cursor.since(start);
      return { type: "default", default: expr, source, constraintName, _location };
    }
    case "check":
      return parseCheck(cursor, start, constraintName);
    case "generated":
      return parseGenerated(cursor, start, constraintName);
    case "unique":
      return refuseUnique(cursor);
    case "references":
      return refuseForeignKey(cursor, "REFERENCES");
    case "collate":
      return cursor.refuse("COLLATE of a column", 'text compares by code point, as COLLATE "C"');
    default:
      if (constraintName !== undefined) {
        cursor.couldBe("primary", "not", "null", "check", "default");
        cursor.unexpected("a constraint");
      }
      cursor.couldBe("primary", "not", "null", "default", "check", "auto_increment", "generated");
      return undefined;
  }
}

function parseGenerated(
  cursor: Cursor,
  start: number,
  constraintName: Name | undefined,
): ColumnConstraint {
  cursor.expect("generated");
  const always = cursor.expectOneOf("always", "by") === "always" ? "always" : "by default";
  if (always === "by default") cursor.expect("default");
  cursor.expect("as");
  if (cursor.is("(")) {
    cursor.refuse("GENERATED … STORED", "compute the value in a view, or store it with the row");
  }
  cursor.expect("identity");
  if (cursor.is("(")) cursor.refuse("options of a sequence", "ids are SNOWFLAKE_ID()");
  return { type: "add generated", always, constraintName, _location: cursor.since(start) };
}

/** Behind `DROP [kind] TABLE`. */
export function parseDropTable(
  cursor: Cursor,
  start: number,
  kind: TableKind | undefined,
): DropTableStatement {
  const ifExists = acceptIfExists(cursor);
  const names = parseQNames(cursor, "a table");
  const cascade = acceptBehaviour(cursor);
  return { type: "drop table", kind, names, ifExists, cascade, _location: cursor.since(start) };
}

/** Behind `DROP VIEW`. */
export function parseDropView(cursor: Cursor, start: number): DropViewStatement {
  const ifExists = acceptIfExists(cursor);
  const names = parseQNames(cursor, "a view");
  const cascade = acceptBehaviour(cursor);
  return { type: "drop view", names, ifExists, cascade, _location: cursor.since(start) };
}

function parseQNames(cursor: Cursor, what: string): QName[] {
  const names = [cursor.qname(what)];
  while (cursor.accept(",")) names.push(cursor.qname(what));
  return names;
}

/** Behind `CREATE [OR REPLACE] VIEW`. */
export function parseCreateView(
  cursor: Cursor,
  start: number,
  orReplace: true | undefined,
): CreateViewStatement {
  const name = cursor.qname("a view");
  const columnNames = cursor.is("(") ? cursor.nameList("a column") : undefined;
  if (cursor.is("with")) cursor.refuse("WITH (…) of a view");
  cursor.expect("as");
  const at = cursor.start;
  const query = parseQuery(cursor);
  const source = cursor.text.slice(at, cursor.end);
  if (cursor.is("with")) cursor.refuse("WITH CHECK OPTION", "a view takes no writes");
  const _location = cursor.since(start);
  return { type: "create view", orReplace, name, columnNames, query, source, _location };
}
