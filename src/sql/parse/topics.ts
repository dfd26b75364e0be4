/**
 * Statements that the language has and no version runs yet: topics, COPY, policies. They are read
 * whole and refused with UNSUPPORTED_FEATURE once the caller's rights are asked, so that what is
 * misspelt, or not for this caller, is told as such.
 */
import type {
  AckStatement,
  AlterPolicyStatement,
  AlterTopicStatement,
  ConsumeStatement,
  CopyStatement,
  CreatePolicyStatement,
  CreateTopicStatement,
  DropPolicyStatement,
  DropTopicStatement,
  Expr,
  Name,
  WriteOperation,
} from "./ast/ast.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { acceptIfExists, acceptIfNotExists } from "./ddl.ts";
import { parseCopyOptions, parseOptions, parseWord } from "./options.ts";
import { beginsQuery, parseQuery } from "./select.ts";

/** Behind `CREATE TOPIC`. */
export function parseCreateTopic(cursor: Cursor, start: number): CreateTopicStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = cursor.qname("a topic");
  const partitions = cursor.accept("partitions") ? cursor.integer("a number") : undefined;
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  const _location = cursor.since(start);
  return { type: "create topic", name, ifNotExists, partitions, options, _location };
}

/** Behind `DROP TOPIC`. */
export function parseDropTopic(cursor: Cursor, start: number): DropTopicStatement {
  const ifExists = acceptIfExists(cursor);
  const name = cursor.qname("a topic");
  return { type: "drop topic", name, ifExists, _location: cursor.since(start) };
}

/** Behind `ALTER TOPIC`. */
export function parseAlterTopic(cursor: Cursor, start: number): AlterTopicStatement {
  const name = cursor.qname("a topic");
  const change = parseTopicChange(cursor);
  return { type: "alter topic", name, change, _location: cursor.since(start) };
}

function parseTopicChange(cursor: Cursor): AlterTopicStatement["change"] {
  const word = cursor.expectOneOf("add", "drop", "set");
  if (word === "set") return { type: "set options", options: parseOptions(cursor) };
  cursor.expect("source");
  const table = cursor.qname("a table");
  cursor.expect("on");
  const on = parseOperation(cursor);
  if (word === "drop") return { type: "drop source", table, on };
  const where = cursor.accept("where") ? cursor.grammar.expression(cursor) : undefined;
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  return { type: "add source", table, on, where, options };
}

function parseOperation(cursor: Cursor): WriteOperation {
  return cursor.expectOneOf("insert", "update", "delete");
}

export function parseConsume(cursor: Cursor, start: number): ConsumeStatement {
  cursor.expectAll("consume", "from");
  const made: Mutable<ConsumeStatement> = {
    type: "consume",
    topic: cursor.qname("a topic"),
    _location: { start: 0, end: 0 },
  };
  if (cursor.accept("partition")) made.partition = cursor.integer("a number");
  if (cursor.accept("group")) made.group = parseWord(cursor, "a group").name;
  if (cursor.accept("from")) {
    made.from = cursor.acceptOneOf("earliest", "latest") ?? cursor.integer("an offset");
  }
  if (cursor.accept("limit")) made.limit = cursor.integer("a number");
  if (cursor.acceptAll("no", "ack")) made.noAck = true;
  made._location = cursor.since(start);
  return made;
}

export function parseAck(cursor: Cursor, start: number): AckStatement {
  cursor.expect("ack");
  const topic = cursor.qname("a topic");
  cursor.expect("group");
  const group = parseWord(cursor, "a group").name;
  const partition = cursor.accept("partition") ? cursor.integer("a number") : undefined;
  cursor.expectAll("upto", "offset");
  const upToOffset = cursor.integer("an offset");
  return { type: "ack", topic, group, partition, upToOffset, _location: cursor.since(start) };
}

export function parseCopy(cursor: Cursor, start: number): CopyStatement {
  cursor.expect("copy");
  const made: Mutable<CopyStatement> = {
    type: "copy",
    direction: "to stdout",
    _location: { start: 0, end: 0 },
  };
  if (cursor.is("(") && beginsQuery(cursor)) {
    const outer = cursor.enter();
    cursor.expect("(");
    made.query = parseQuery(cursor);
    cursor.expect(")");
    cursor.leave(outer);
  } else {
    made.table = cursor.qname("a table");
    if (cursor.is("(")) made.columns = cursor.nameList("a column");
  }
  if (made.table !== undefined && cursor.accept("from")) {
    cursor.expect("stdin");
    made.direction = "from stdin";
  } else {
    cursor.expectAll("to", "stdout");
  }
  if (cursor.accept("with")) made.options = parseCopyOptions(cursor);
  made._location = cursor.since(start);
  return made;
}

/** Behind `CREATE POLICY`. */
export function parseCreatePolicy(cursor: Cursor, start: number): CreatePolicyStatement {
  const name = cursor.name("a policy");
  cursor.expect("on");
  const table = cursor.qname("a table");
  const command = cursor.accept("for")
    ? cursor.expectOneOf("all", "select", "insert", "update", "delete")
    : "all";
  cursor.expect("to");
  const roles = parseRoles(cursor);
  const { using, withCheck } = parsePolicyRules(cursor);
  const _location = cursor.since(start);
  return { type: "create policy", name, table, command, roles, using, withCheck, _location };
}

/** Behind `ALTER POLICY`. */
export function parseAlterPolicy(cursor: Cursor, start: number): AlterPolicyStatement {
  const name = cursor.name("a policy");
  cursor.expect("on");
  const table = cursor.qname("a table");
  const roles = cursor.accept("to") ? parseRoles(cursor) : undefined;
  const { using, withCheck } = parsePolicyRules(cursor);
  const _location = cursor.since(start);
  return { type: "alter policy", name, table, roles, using, withCheck, _location };
}

/** One of the roles is a reserved word: user. */
function parseRoles(cursor: Cursor): Name[] {
  const roles = [parseWord(cursor, "a role")];
  while (cursor.accept(",")) roles.push(parseWord(cursor, "a role"));
  return roles;
}

function parsePolicyRules(cursor: Cursor): {
  readonly using: Expr | undefined;
  readonly withCheck: Expr | undefined;
} {
  const using = cursor.accept("using") ? parseRule(cursor) : undefined;
  const withCheck = cursor.acceptAll("with", "check") ? parseRule(cursor) : undefined;
  return { using, withCheck };
}

function parseRule(cursor: Cursor): Expr {
  const outer = cursor.enter();
  cursor.expect("(");
  const rule = cursor.grammar.expression(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  return rule;
}

/** Behind `DROP POLICY`. */
export function parseDropPolicy(cursor: Cursor, start: number): DropPolicyStatement {
  const ifExists = acceptIfExists(cursor);
  const name = cursor.name("a policy");
  cursor.expect("on");
  const table = cursor.qname("a table");
  return { type: "drop policy", name, table, ifExists, _location: cursor.since(start) };
}
