/**
 * Parses CREATE, ALTER and DROP for types and domains, and DO if it contains such a definition.
 */
import { DatabaseError } from "../../base/errors.ts";
import type {
  AlterDomainStatement,
  AlterOwnerStatement,
  AlterTypeStatement,
  CreateDomainStatement,
  CreateTypeStatement,
  DoBlockStatement,
  DomainChange,
  DoStatement,
  DropTypeStatement,
  FieldNode,
  LabelNode,
  QName,
  RangeNode,
  Statement,
  TolerantDefinition,
  TypeChange,
} from "./ast/ast.ts";
import { parseCollatedType, parseCollationName } from "./collations.ts";
import { Cursor, type Mutable } from "./cursor.ts";
import {
  acceptBehaviour,
  acceptIfExists,
  acceptIfNotExists,
  parseCheck,
  parseTypedConstraints,
} from "./ddl.ts";
import { parseSourced } from "./indexed_parts.ts";
import { acceptOwner } from "./ownership.ts";
import { Token, tokenize } from "./text/lexer.ts";

const TYPE = "a type";
const DOMAIN = "a domain";
/** Parses the rest of a statement after `CREATE TYPE`. */
export function parseCreateType(cursor: Cursor, start: number): CreateTypeStatement {
  const name = cursor.qname(TYPE);
  if (!cursor.acceptAll("as", "enum")) {
    if (cursor.accept("as")) {
      if (cursor.accept("(")) return parseRowType(cursor, start, name);
      if (cursor.accept("range")) {
        const range = parseRangeAttributes(cursor);
        return { type: "create type", name, labels: [], range, _location: cursor.since(start) };
      }
      cursor.unexpected("ENUM");
    }
    if (cursor.is("(") || cursor.kind === Token.end || cursor.is(";")) {
      cursor.refuse(
        "CREATE TYPE of a base type",
        "define an enum type with AS ENUM (…), a row type with AS (…), or ranges with AS RANGE (…)",
      );
    }
    cursor.unexpected("AS ENUM");
  }
  cursor.expect("(");
  const labels: LabelNode[] = [];
  if (!cursor.is(")")) {
    do labels.push(parseLabel(cursor));
    while (cursor.accept(","));
  }
  cursor.expect(")");
  return { type: "create type", name, labels, _location: cursor.since(start) };
}

/** Parses the fields after `CREATE TYPE name AS (`. */
function parseRowType(cursor: Cursor, start: number, name: QName): CreateTypeStatement {
  const fields: FieldNode[] = [];
  if (!cursor.is(")")) {
    do {
      const at = cursor.token;
      const field = cursor.label("a field");
      const dataType = parseCollatedType(cursor);
      fields.push({ name: field, dataType, _location: cursor.since(at) });
    } while (cursor.accept(","));
  }
  cursor.expect(")");
  return { type: "create type", name, labels: [], fields, _location: cursor.since(start) };
}

/**
 * Parses `(attribute = value, …)` after `CREATE TYPE name AS RANGE`.
 * @throws {DatabaseError} INVALID_SQL, INVALID_DEFINITION, UNSUPPORTED_FEATURE
 */
function parseRangeAttributes(cursor: Cursor): RangeNode {
  const start = cursor.token;
  cursor.expect("(");
  const range: Mutable<Partial<RangeNode>> = {};
  const seen = new Set<string>();
  do {
    const { _location, name } = cursor.label("an attribute, such as subtype");
    if (seen.has(name)) throw invalidRange(`"${name}" occurs twice`, _location.start);
    seen.add(name);
    cursor.expect("=");
    parseRangeAttribute(cursor, name, { range, position: _location.start });
  } while (cursor.accept(","));
  cursor.expect(")");
  const { dataType } = range;
  const _location = cursor.since(start);
  if (dataType === undefined) throw invalidRange('"subtype" is missing', _location.start);
  return { ...range, dataType, _location };
}

/** Parses the value of an attribute. */
function parseRangeAttribute(
  cursor: Cursor,
  attribute: string,
  { position, range }: { readonly range: Mutable<Partial<RangeNode>>; readonly position: number },
): void {
  switch (attribute) {
    case "subtype":
      range.dataType = cursor.grammar.dataType(cursor);
      return;
    case "subtype_opclass":
      range.operatorClass = cursor.qname("an operator class");
      return;
    case "collation":
      range.collation = parseCollationName(cursor);
      return;
    case "subtype_diff":
      range.difference = cursor.qname("a function");
      return;
    case "multirange_type_name":
      range.multirange = cursor.qname(TYPE);
      return;
    case "canonical":
      cursor.refuse(
        "CREATE TYPE … AS RANGE with CANONICAL",
        "use a built-in range type, such as int4range, whose bounds are made canonical",
      );
    default:
      throw invalidRange(`there is no attribute "${attribute}"`, position);
  }
}

function invalidRange(why: string, position: number): DatabaseError {
  return new DatabaseError("INVALID_DEFINITION", `Cannot create the range type: ${why}`, {
    position,
    hint: "write AS RANGE (subtype = DOUBLE PRECISION)",
  });
}

function parseLabel(cursor: Cursor): LabelNode {
  const start = cursor.token;
  const label = cursor.string("a label in quotes");
  return { label, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `ALTER TYPE`. */
export function parseAlterType(
  cursor: Cursor,
  start: number,
): AlterOwnerStatement | AlterTypeStatement {
  const name = cursor.qname(TYPE);
  const owned = acceptOwner(cursor, start, { kind: "type", name });
  if (owned !== undefined) return owned;
  if (cursor.is("set"))
    cursor.refuse("SET SCHEMA of a type", "create the type in the other namespace");
  const change = parseTypeChange(cursor);
  return { type: "alter type", name, change, _location: cursor.since(start) };
}

function parseTypeChange(cursor: Cursor): TypeChange {
  const start = cursor.token;
  const isOfField =
    cursor.kindAhead(1) === Token.word && cursor.nameText(cursor.token + 1) === "attribute";
  if (isOfField || cursor.is("alter") || cursor.is("drop")) {
    cursor.refuse("ALTER TYPE with the fields of a row type", "create a new type");
  }
  if (cursor.expectOneOf("add", "rename") === "add") {
    cursor.expect("value");
    const ifNotExists = acceptIfNotExists(cursor);
    const label = parseLabel(cursor);
    const side = cursor.acceptOneOf("before", "after");
    const place = side === undefined ? undefined : { side, neighbour: parseLabel(cursor) };
    return { type: "add value", label, ifNotExists, place, _location: cursor.since(start) };
  }
  if (cursor.expectOneOf("to", "value") === "to") {
    return { type: "rename", to: cursor.label(TYPE), _location: cursor.since(start) };
  }
  const from = parseLabel(cursor);
  cursor.expect("to");
  const to = parseLabel(cursor);
  return { type: "rename value", from, to, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `CREATE DOMAIN`. */
export function parseCreateDomain(cursor: Cursor, start: number): CreateDomainStatement {
  const name = cursor.qname(DOMAIN);
  cursor.accept("as");
  const { constraints, dataType } = parseTypedConstraints(cursor, name);
  return { type: "create domain", name, dataType, constraints, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `ALTER DOMAIN`. */
export function parseAlterDomain(
  cursor: Cursor,
  start: number,
): AlterDomainStatement | AlterOwnerStatement {
  const name = cursor.qname(DOMAIN);
  const owned = acceptOwner(cursor, start, { kind: "type", name });
  if (owned !== undefined) return owned;
  if (cursor.is("set") && cursor.isAhead(1, "schema")) {
    cursor.refuse("SET SCHEMA of a domain", "create the domain in the other namespace");
  }
  const change = parseDomainChange(cursor);
  return { type: "alter domain", name, change, _location: cursor.since(start) };
}

function parseDomainChange(cursor: Cursor): DomainChange {
  const start = cursor.token;
  switch (cursor.expectOneOf("add", "drop", "rename", "set")) {
    case "add": {
      const constraintName = cursor.accept("constraint") ? cursor.name("a constraint") : undefined;
      const check = parseCheck(cursor, start, constraintName);
      if (cursor.is("not"))
        cursor.refuse(
          "NOT VALID of a domain",
          "remove NOT VALID: existing rows are always checked",
        );
      return { type: "add constraint", check, _location: cursor.since(start) };
    }
    case "drop": {
      if (cursor.accept("constraint")) return parseDropConstraint(cursor, start);
      const isDefault = cursor.expectOneOf("default", "not") === "default";
      if (!isDefault) cursor.expect("null");
      const type = isDefault ? "drop default" : "drop not null";
      return { type, _location: cursor.since(start) };
    }
    case "rename": {
      if (cursor.accept("to")) {
        return { type: "rename", to: cursor.label(DOMAIN), _location: cursor.since(start) };
      }
      cursor.expect("constraint");
      const constraint = cursor.name("a constraint");
      cursor.expect("to");
      const to = cursor.name("a constraint");
      return { type: "rename constraint", constraint, to, _location: cursor.since(start) };
    }
    case "set": {
      if (cursor.expectOneOf("default", "not") === "not") {
        cursor.expect("null");
        return { type: "set not null", _location: cursor.since(start) };
      }
      const { expr, source } = parseSourced(cursor);
      return { type: "set default", default: expr, source, _location: cursor.since(start) };
    }
  }
}

function parseDropConstraint(cursor: Cursor, start: number): DomainChange {
  const ifExists = acceptIfExists(cursor);
  const constraint = cursor.name("a constraint");
  acceptBehaviour(cursor);
  return { type: "drop constraint", constraint, ifExists, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `DROP TYPE`, `DROP DOMAIN` or `DROP COLLATION`. */
export function parseDropType(
  cursor: Cursor,
  start: number,
  kind?: DropTypeStatement["kind"],
): DropTypeStatement {
  const ifExists = acceptIfExists(cursor);
  const names: QName[] = [];
  do names.push(cursor.qname(kind === undefined ? TYPE : `a ${kind}`));
  while (cursor.accept(","));
  const cascade = acceptBehaviour(cursor);
  return { type: "drop type", kind, names, ifExists, cascade, _location: cursor.since(start) };
}

const TOLERANT: ReadonlySet<string> = new Set<TolerantDefinition["type"]>([
  "alter table",
  "create index",
  "create sequence",
  "create table",
  "create type",
]);

function isTolerant(statement: Statement): statement is TolerantDefinition {
  return TOLERANT.has(statement.type);
}

/**
 * Parses `DO` with a PL/pgSQL block. If the block is one that ORMs generate for migrations, with a
 * single definition and a handler that ignores the error if the object already exists, it becomes
 * a definition. The positions of its nodes are relative to the text of the block.
 */
export function parseDo(cursor: Cursor, start: number): DoBlockStatement | DoStatement {
  cursor.expect("do");
  acceptPlpgsql(cursor);
  if (!cursor.isString()) cursor.unexpected("a block in quotes");
  const source = cursor.takeString();
  acceptPlpgsql(cursor);
  const _location = cursor.since(start);
  const statement = tolerantIn(source, cursor);
  if (statement !== undefined) return { type: "do", statement, _location };
  return { type: "do block", source, _location };
}

function acceptPlpgsql(cursor: Cursor): void {
  if (!cursor.accept("language")) return;
  const { start } = cursor;
  const language = cursor.isString() ? cursor.takeString() : cursor.label("a language").name;
  if (language.toLowerCase() === "plpgsql") return;
  cursor.refuse(`DO with LANGUAGE ${language}`, "the only language for DO is plpgsql", start);
}

/**
 * Returns the definition in a block that ignores the error if the object exists; undefined for any
 * other block.
 */
function tolerantIn(text: string, { grammar, limits }: Cursor): TolerantDefinition | undefined {
  try {
    const block = new Cursor({
      tokens: tokenize(text),
      grammar,
      limits,
      slots: undefined,
      expectations: undefined,
    });
    if (!block.accept("begin")) return undefined;
    const statement = grammar.statement(block);
    if (!isTolerant(statement) || !block.accept(";")) return undefined;
    if (!acceptSpelled(block, "exception") || !block.accept("when")) return undefined;
    do {
      if (!DUPLICATES.some((word) => acceptSpelled(block, word))) return undefined;
    } while (block.accept("or"));
    const isEnded = block.acceptAll("then", "null") && block.accept(";") && block.accept("end");
    block.accept(";");
    return isEnded && block.kind === Token.end ? statement : undefined;
  } catch (error) {
    // The error can be ignored, because the text is then parsed as a PL/pgSQL block, which reports
    // it.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

/** PostgreSQL's condition names for an object that already exists. */
const DUPLICATES = ["duplicate_object", "duplicate_table"] as const;

/** Reads a word that is not a keyword. */
function acceptSpelled(cursor: Cursor, word: string): boolean {
  if (cursor.kind !== Token.word || cursor.nameText(cursor.token) !== word) return false;
  cursor.token += 1;
  return true;
}
