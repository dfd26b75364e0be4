/**
 * Parses statements about topics: CREATE, ALTER, DROP and CLEAR TOPIC, CONSUME and ACK.
 */
import type {
  AckStatement,
  AddSource,
  AlterTopicStatement,
  ClearTopicStatement,
  ConsumeStatement,
  CreateTopicStatement,
  DropTopicStatement,
  QName,
  TopicArgument,
  TopicChangeKind,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";
import { acceptIfExists, acceptIfNotExists } from "./ddl.ts";
import { parseSourced } from "./indexed_parts.ts";
import { parseOptions } from "./options.ts";

const TOPIC = "a topic";

/** Parses the rest of a statement after `CREATE TOPIC`. */
export function parseCreateTopic(cursor: Cursor, start: number): CreateTopicStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = cursor.qname(TOPIC);
  const partitions = cursor.accept("partitions")
    ? cursor.integer("a number of partitions")
    : undefined;
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  const _location = cursor.since(start);
  return { type: "create topic", name, ifNotExists, partitions, options, _location };
}

/** Parses the rest of a statement after `ALTER TOPIC`. */
export function parseAlterTopic(cursor: Cursor, start: number): AlterTopicStatement {
  const name = cursor.qname(TOPIC);
  const change = parseAlteration(cursor);
  return { type: "alter topic", name, change, _location: cursor.since(start) };
}

function parseAlteration(cursor: Cursor): AlterTopicStatement["change"] {
  const start = cursor.token;
  switch (cursor.expectOneOf("add", "drop", "set")) {
    case "add":
      return parseAddSource(cursor, start);
    case "drop": {
      cursor.expect("source");
      const { operation, table } = parseRoute(cursor);
      return { type: "drop source", table, operation, _location: cursor.since(start) };
    }
    case "set": {
      const options = parseOptions(cursor);
      return { type: "set options", options, _location: cursor.since(start) };
    }
  }
}

function parseAddSource(cursor: Cursor, start: number): AddSource {
  cursor.expect("source");
  const { operation, table } = parseRoute(cursor);
  const filter = cursor.accept("where") ? parseSourced(cursor) : undefined;
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  const _location = cursor.since(start);
  const { expr: where, source } = filter ?? {};
  return { type: "add source", table, operation, where, source, options, _location };
}

/** Parses a source `t ON INSERT | UPDATE | DELETE`. */
function parseRoute(cursor: Cursor): { table: QName; operation: TopicChangeKind } {
  const table = cursor.qname("a table");
  cursor.expect("on");
  return { table, operation: cursor.expectOneOf("insert", "update", "delete") };
}

/** Parses the rest of a statement after `DROP TOPIC`. */
export function parseDropTopic(cursor: Cursor, start: number): DropTopicStatement {
  const ifExists = acceptIfExists(cursor);
  const name = cursor.qname(TOPIC);
  return { type: "drop topic", name, ifExists, _location: cursor.since(start) };
}

/** Parses `CLEAR TOPIC t`. */
export function parseClearTopic(cursor: Cursor, start: number): ClearTopicStatement {
  cursor.expectAll("clear", "topic");
  const name = cursor.qname(TOPIC);
  return { type: "clear topic", name, _location: cursor.since(start) };
}

/** Parses `CONSUME FROM t [PARTITION p] [GROUP 'g'] [FROM …] [LIMIT k] [NO ACK]`. */
export function parseConsume(cursor: Cursor, start: number): ConsumeStatement {
  cursor.expectAll("consume", "from");
  const topic = cursor.qname(TOPIC);
  const partition = parsePartition(cursor);
  const group = cursor.accept("group") ? parseGroup(cursor) : undefined;
  const from = cursor.accept("from") ? parseStart(cursor) : undefined;
  const limit = cursor.accept("limit") ? parseNumber(cursor, "a number of messages") : undefined;
  const noAck = cursor.acceptAll("no", "ack") ? true : undefined;
  const _location = cursor.since(start);
  return { type: "consume", topic, partition, group, from, limit, noAck, _location };
}

function parseStart(cursor: Cursor): NonNullable<ConsumeStatement["from"]> {
  const word = cursor.acceptOneOf("earliest", "latest");
  return word ?? parseNumber(cursor, "an offset");
}

/** Parses `ACK t GROUP 'g' [PARTITION p] (UPTO OFFSET n | OFFSETS (n, …))`. */
export function parseAck(cursor: Cursor, start: number): AckStatement {
  cursor.expect("ack");
  const topic = cursor.qname(TOPIC);
  cursor.expect("group");
  const group = parseGroup(cursor);
  const partition = parsePartition(cursor);
  if (cursor.expectOneOf("upto", "offsets") === "upto") {
    cursor.expect("offset");
    const upTo = parseNumber(cursor, "an offset");
    return { type: "ack", topic, group, partition, upTo, _location: cursor.since(start) };
  }
  const offsets = parseOffsets(cursor);
  return { type: "ack", topic, group, partition, offsets, _location: cursor.since(start) };
}

function parseOffsets(cursor: Cursor): TopicArgument[] {
  const offsets: TopicArgument[] = [];
  cursor.expect("(");
  do {
    offsets.push(parseNumber(cursor, "an offset"));
    requireListed(cursor, offsets.length, "offsets");
  } while (cursor.accept(","));
  cursor.expect(")");
  return offsets;
}

function parsePartition(cursor: Cursor): TopicArgument | undefined {
  return cursor.accept("partition") ? parseNumber(cursor, "the number of a partition") : undefined;
}

function parseGroup(cursor: Cursor): TopicArgument {
  return parseArgument(cursor, "string", "the name of a group in quotes");
}

function parseNumber(cursor: Cursor, what: string): TopicArgument {
  return parseArgument(cursor, "integer", what);
}

function parseArgument(cursor: Cursor, type: "integer" | "string", what: string): TopicArgument {
  const { start, token } = cursor;
  const node = cursor.grammar.operand(cursor);
  if (node.type === type || node.type === "parameter" || node.type === "literal slot") return node;
  cursor.token = token;
  return cursor.fail(`found an expression, expected ${what} or a parameter`, start);
}
