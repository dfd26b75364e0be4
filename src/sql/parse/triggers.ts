/**
 * Parses CREATE, ALTER and DROP TRIGGER, and ENABLE TRIGGER in ALTER TABLE.
 */
import type {
  AlterTriggerStatement,
  CreateTriggerStatement,
  DropTriggerStatement,
  Name,
  TableAlterationTriggers,
  TriggerEventWord,
  TriggerTimingWord,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { acceptBehaviour, acceptIfExists } from "./ddl.ts";
import { parseTiming } from "./foreign_keys.ts";
import { parseSourced } from "./indexed_parts.ts";
import { Token } from "./text/lexer.ts";

const TRIGGER = "a trigger";

type Events = Pick<CreateTriggerStatement, "columns" | "events">;
type TransitionClause = Pick<CreateTriggerStatement, "newTable" | "oldTable">;

/** Parses the rest of a statement after `CREATE [OR REPLACE] [CONSTRAINT] TRIGGER`. */
export function parseCreateTrigger(
  cursor: Cursor,
  start: number,
  { isConstraint, orReplace }: { isConstraint: boolean; orReplace: true | undefined },
): CreateTriggerStatement {
  const name = cursor.name(TRIGGER);
  const timing = parseWhen(cursor);
  const events = parseEvents(cursor);
  cursor.expect("on");
  const table = cursor.qname("a table");
  if (isConstraint && cursor.accept("from")) {
    // The referenced table is ignored. Its only purpose in PostgreSQL is to find the trigger,
    // which is found by its own table here.
    cursor.qname("a table");
  }
  const constraint = isConstraint ? parseTiming(cursor) : undefined;
  if (constraint?.notValid === true) cursor.refuse("NOT VALID of a trigger", "omit it");
  const transition = parseReferencing(cursor);
  const level = parseLevel(cursor);
  const condition = cursor.accept("when") ? parseCondition(cursor) : undefined;
  cursor.expect("execute");
  cursor.expectOneOf("function", "procedure");
  const called = cursor.qname("a function");
  return {
    type: "create trigger",
    orReplace,
    name,
    table,
    timing,
    ...events,
    level,
    ...transition,
    constraint: constraint && {
      deferrable: constraint.deferrable,
      initially: constraint.initially,
    },
    when: condition?.expr,
    source: condition?.source,
    function: called,
    arguments: parseArguments(cursor),
    _location: cursor.since(start),
  };
}

function parseWhen(cursor: Cursor): TriggerTimingWord {
  const word = cursor.expectOneOf("before", "after", "instead");
  if (word !== "instead") return word;
  cursor.expect("of");
  return "instead of";
}

function parseEvents(cursor: Cursor): Events {
  const events: TriggerEventWord[] = [];
  let columns: Name[] | undefined;
  do {
    const { start } = cursor;
    const event = cursor.expectOneOf("insert", "update", "delete", "truncate");
    if (events.includes(event)) cursor.fail(`found ${event.toUpperCase()} twice`, start);
    events.push(event);
    if (event === "update" && cursor.accept("of")) columns = cursor.names("a column");
  } while (cursor.accept("or"));
  return { events, columns };
}

/** Parses `REFERENCING OLD TABLE AS a NEW TABLE AS b`. */
function parseReferencing(cursor: Cursor): TransitionClause {
  const tables: Mutable<TransitionClause> = {};
  if (!cursor.accept("referencing")) return tables;
  do {
    const { start } = cursor;
    const isOld = cursor.expectOneOf("old", "new") === "old";
    if (cursor.is("row")) {
      cursor.refuse("REFERENCING … ROW", "a row-level trigger reads its rows as OLD and NEW");
    }
    cursor.expect("table");
    cursor.accept("as");
    const key = isOld ? "oldTable" : "newTable";
    if (tables[key] !== undefined) {
      cursor.fail(`found ${isOld ? "OLD" : "NEW"} TABLE twice`, start);
    }
    tables[key] = cursor.name("a transition table");
  } while (cursor.is("old") || cursor.is("new"));
  return tables;
}

function parseLevel(cursor: Cursor): "row" | "statement" {
  if (!cursor.accept("for")) return "statement";
  cursor.accept("each");
  return cursor.expectOneOf("row", "statement");
}

function parseCondition(cursor: Cursor): ReturnType<typeof parseSourced> {
  cursor.expect("(");
  const condition = parseSourced(cursor);
  cursor.expect(")");
  return condition;
}

/** Parses arguments. They are words, numbers or strings, and all become strings. */
function parseArguments(cursor: Cursor): string[] {
  const given: string[] = [];
  cursor.expect("(");
  if (cursor.accept(")")) return given;
  do {
    given.push(parseArgument(cursor));
    requireListed(cursor, given.length, "arguments of a single trigger");
  } while (cursor.accept(","));
  cursor.expect(")");
  return given;
}

function parseArgument(cursor: Cursor): string {
  if (cursor.isString()) return cursor.takeString();
  if (cursor.kind === Token.integer || cursor.kind === Token.numeric) {
    const { start } = cursor;
    cursor.token += 1;
    return cursor.text.slice(start, cursor.end);
  }
  return cursor.label("a string, a number or a word").name;
}

/** Parses the rest of a statement after `ALTER TRIGGER`. */
export function parseAlterTrigger(cursor: Cursor, start: number): AlterTriggerStatement {
  const name = cursor.name(TRIGGER);
  cursor.expect("on");
  const table = cursor.qname("a table");
  if (!cursor.is("rename")) cursor.unexpected("RENAME TO");
  cursor.expectAll("rename", "to");
  const to = cursor.name(TRIGGER);
  return { type: "alter trigger", name, table, to, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `DROP TRIGGER`. */
export function parseDropTrigger(cursor: Cursor, start: number): DropTriggerStatement {
  const ifExists = acceptIfExists(cursor);
  const name = cursor.name(TRIGGER);
  cursor.expect("on");
  const table = cursor.qname("a table");
  // Nothing depends on a trigger, so CASCADE and RESTRICT have no effect.
  acceptBehaviour(cursor);
  return { type: "drop trigger", name, table, ifExists, _location: cursor.since(start) };
}

/** Parses the rest of an ALTER TABLE action after `ENABLE` or `DISABLE`. */
export function parseTriggerSwitch(
  cursor: Cursor,
  start: number,
  word: "enable" | "disable",
): TableAlterationTriggers {
  if (word === "enable" && cursor.is("replica")) {
    cursor.refuse("ENABLE REPLICA TRIGGER", "the server has no replicas; use DISABLE TRIGGER");
  }
  // ENABLE and ENABLE ALWAYS differ only on a replica.
  if (word === "enable") cursor.accept("always");
  cursor.expect("trigger");
  const isAll = cursor.accept("all") || cursor.accept("user");
  const trigger = isAll ? undefined : cursor.name(TRIGGER);
  return { type: `${word} trigger`, trigger, _location: cursor.since(start) };
}
