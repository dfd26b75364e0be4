/**
 * Parses CREATE, ALTER and DROP TYPE, and DO with such a definition.
 */
import type {
  AlterOwnerStatement,
  AlterTypeStatement,
  CreateTypeStatement,
  DoStatement,
  DropTypeStatement,
  LabelNode,
  QName,
  Statement,
  TolerantDefinition,
  TypeChange,
} from "./ast/ast.ts";
import { Cursor } from "./cursor.ts";
import { acceptBehaviour, acceptIfExists, acceptIfNotExists } from "./ddl.ts";
import { acceptOwner } from "./ownership.ts";
import { Token, tokenize } from "./text/lexer.ts";

const TYPE = "a type";
const NOT_A_ROW = "a table has such columns; only enum types are defined";

/** Parses the rest after `CREATE TYPE`. */
export function parseCreateType(cursor: Cursor, start: number): CreateTypeStatement {
  const name = cursor.qname(TYPE);
  if (!cursor.acceptAll("as", "enum")) {
    if (cursor.accept("as")) {
      if (cursor.is("(")) cursor.refuse("CREATE TYPE of rows", NOT_A_ROW);
      if (cursor.is("range")) cursor.refuse("CREATE TYPE of ranges", "two columns hold the ends");
      cursor.unexpected("ENUM");
    }
    if (cursor.is("(") || cursor.kind === Token.end || cursor.is(";")) {
      cursor.refuse("CREATE TYPE of a base type", "only enum types are defined: AS ENUM (…)");
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

function parseLabel(cursor: Cursor): LabelNode {
  const start = cursor.token;
  const label = cursor.string("a label in quotes");
  return { label, _location: cursor.since(start) };
}

/** Parses the rest after `ALTER TYPE`. */
export function parseAlterType(
  cursor: Cursor,
  start: number,
): AlterOwnerStatement | AlterTypeStatement {
  const name = cursor.qname(TYPE);
  const owned = acceptOwner(cursor, start, { kind: "type", name });
  if (owned !== undefined) return owned;
  if (cursor.is("set")) cursor.refuse("SET SCHEMA of a type", "create the type in that namespace");
  const change = parseTypeChange(cursor);
  return { type: "alter type", name, change, _location: cursor.since(start) };
}

function parseTypeChange(cursor: Cursor): TypeChange {
  const start = cursor.token;
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

/** Parses the rest after `DROP TYPE`. */
export function parseDropType(cursor: Cursor, start: number): DropTypeStatement {
  const ifExists = acceptIfExists(cursor);
  const names: QName[] = [];
  do names.push(cursor.qname(TYPE));
  while (cursor.accept(","));
  const cascade = acceptBehaviour(cursor);
  return { type: "drop type", names, ifExists, cascade, _location: cursor.since(start) };
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

const DO_FORM =
  "DO 'BEGIN CREATE TYPE …; EXCEPTION WHEN duplicate_object THEN null; END' runs a definition unless it exists";

/**
 * Parses `DO` with a block that migrations of ORMs write: one definition, and a handler that passes
 * over what exists already. The positions of its nodes refer to the text of the block.
 */
export function parseDo(cursor: Cursor, start: number): DoStatement {
  cursor.expect("do");
  if (cursor.is("language")) cursor.refuse("DO with LANGUAGE", DO_FORM);
  if (!cursor.isString()) cursor.unexpected("a block in quotes");
  const { grammar, limits } = cursor;
  const at = cursor.start;
  const text = cursor.takeString();
  const block = new Cursor({
    tokens: tokenize(text),
    grammar,
    limits,
    slots: undefined,
    expectations: undefined,
  });
  const refuse = (): never => cursor.refuse("DO with such a block", DO_FORM, at);
  if (!block.accept("begin")) return refuse();
  const statement = grammar.statement(block);
  if (!isTolerant(statement) || !block.accept(";")) return refuse();
  if (!acceptSpelled(block, "exception") || !block.accept("when")) return refuse();
  do {
    const isDuplicate = DUPLICATES.some((word) => acceptSpelled(block, word));
    if (!isDuplicate) return refuse();
  } while (block.accept("or"));
  if (!block.acceptAll("then", "null") || !block.accept(";") || !block.accept("end"))
    return refuse();
  block.accept(";");
  if (block.kind !== Token.end) return refuse();
  return { type: "do", statement, _location: cursor.since(start) };
}

/** The conditions of PostgreSQL for objects that exist already. */
const DUPLICATES = ["duplicate_object", "duplicate_table"] as const;

/** Accepts a word that is no keyword. */
function acceptSpelled(cursor: Cursor, word: string): boolean {
  if (cursor.kind !== Token.word || cursor.nameText(cursor.token) !== word) return false;
  cursor.token += 1;
  return true;
}
