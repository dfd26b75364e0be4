/**
 * Parses any statement. The first word of a statement selects its parser, so only that parser is
 * tried. If the word is unknown, the error names it.
 */
import { parseCreateAggregate } from "./aggregates.ts";
import { parseAlterColumn, parseAlterTable, parseResetOptions } from "./alter.ts";
import type { AlterViewStatement, ChangeStatement, Statement, TableKindWord } from "./ast/ast.ts";
import { parseAlterCollation, parseCreateCollation } from "./collation_definitions.ts";
import { parseComment } from "./comments.ts";
import { parseCopy } from "./copy.ts";
import type { Cursor } from "./cursor.ts";
import { parseClose, parseDeclare, parseFetch } from "./cursors.ts";
import {
  acceptIfExists,
  parseCreateTable,
  parseCreateView,
  parseDropTable,
  parseDropView,
} from "./ddl.ts";
import {
  acceptSetPath,
  parseDescribe,
  parseDiscard,
  parseExecuteAs,
  parseExplain,
  parseReset,
  parseSet,
  parseShow,
  parseSubscribe,
  parseUse,
} from "./dialect.ts";
import { parseDelete, parseInsert, parseTruncate, parseUpdate } from "./dml.ts";
import {
  acceptFunctionKind,
  parseAlterFunction,
  parseCallStatement,
  parseCreateFunction,
  parseDropFunction,
} from "./functions.ts";
import { parseAlterIndex, parseCreateIndex, parseDropIndex } from "./indexes.ts";
import { parseBackup, parseExport, parseKill, parseRestore, parseStorage } from "./maintenance.ts";
import {
  parseAlterMaterialized,
  parseCreateMaterialized,
  parseDropMaterialized,
  parseRefresh,
} from "./materialized_views.ts";
import { parseMerge } from "./merge.ts";
import { parseAlterNamespace, parseCreateNamespace, parseDropNamespace } from "./namespaces.ts";
import { parseOptions } from "./options.ts";
import { acceptOwner, parseCreateExtension } from "./ownership.ts";
import { acceptPersistence, acceptTemporary, isPersistence } from "./persistence.ts";
import { parseAlterPolicy, parseCreatePolicy, parseDropPolicy } from "./policies.ts";
import { parseDeallocate, parseExecute, parsePrepare } from "./prepare.ts";
import { refuseObject, refuseStatement } from "./refused.ts";
import { parseLockable, parseQuery, parseUnprefixedQuery, parseWith } from "./select.ts";
import { parseAlterSequence, parseCreateSequence, parseDropSequence } from "./sequences.ts";
import { parseAlterStorage, parseCreateStorage, parseDropStorage } from "./storages.ts";
import { withoutInto } from "./table_as.ts";
import {
  parseCreateInvitation,
  parseCreateToken,
  parseDropInvitation,
  parseDropToken,
} from "./tokens.ts";
import {
  parseAck,
  parseAlterTopic,
  parseClearTopic,
  parseConsume,
  parseCreateTopic,
  parseDropTopic,
} from "./topics.ts";
import { parseSavepoint, parseTransaction } from "./transactions.ts";
import { parseAlterTrigger, parseCreateTrigger, parseDropTrigger } from "./triggers.ts";
import {
  parseAlterDomain,
  parseAlterType,
  parseCreateDomain,
  parseCreateType,
  parseDo,
  parseDropType,
} from "./types.ts";
import { parseAlterUser, parseCreateUser, parseDropUser } from "./users.ts";
import { parseAlterWebhook, parseCreateWebhook, parseDropWebhook } from "./webhooks.ts";

type Parse = (cursor: Cursor, start: number) => Statement;

const CHANGES = new Map<string, (cursor: Cursor) => ChangeStatement>([
  ["insert", parseInsert],
  ["update", parseUpdate],
  ["delete", parseDelete],
  ["merge", parseMerge],
]);

const STATEMENTS = new Map<string, Parse>([
  ...CHANGES,
  ["select", parseSelect],
  ["values", parseQuery],
  ["table", parseQuery],
  ["(", (cursor) => withoutInto(parseQuery(cursor))],
  ["with", parseWithStatement],
  ["truncate", parseTruncate],
  ["copy", parseCopy],
  ["comment", parseComment],
  ["prepare", parsePrepare],
  ["execute", parseExecute],
  ["deallocate", parseDeallocate],
  ["declare", parseDeclare],
  ["fetch", parseFetch],
  ["move", parseFetch],
  ["close", parseClose],
  ["create", parseCreate],
  ["alter", parseAlter],
  ["drop", parseDrop],
  ["begin", parseTransaction],
  ["start", parseTransaction],
  ["commit", parseTransaction],
  ["end", parseTransaction],
  ["rollback", parseTransaction],
  ["abort", parseTransaction],
  ["savepoint", parseSavepoint],
  ["release", parseSavepoint],
  ["explain", parseExplain],
  ["use", parseUse],
  ["set", parseSet],
  ["reset", parseReset],
  ["discard", parseDiscard],
  ["show", parseShow],
  ["do", parseDo],
  ["call", parseCallStatement],
  ["describe", parseDescribe],
  ["desc", parseDescribe],
  ["storage", parseStorage],
  ["kill", parseKill],
  ["subscribe", parseSubscribe],
  ["backup", parseBackup],
  ["restore", parseRestore],
  ["export", parseExport],
  ["refresh", parseRefresh],
  ["clear", parseClearTopic],
  ["consume", parseConsume],
  ["ack", parseAck],
]);

/** Parses any statement, up to and including its last token. */
export function parseStatement(cursor: Cursor): Statement {
  const start = cursor.token;
  if (cursor.isAhead(0, "execute") && cursor.isAhead(1, "as")) return parseExecuteAs(cursor, start);
  const parse = STATEMENTS.get(cursor.word);
  if (parse !== undefined) return parse(cursor, start);
  refuseStatement(cursor);
  if (cursor.isExplaining) {
    cursor.couldBe("select", "insert", "update", "delete", "create", "alter", "drop", "with");
    cursor.couldBe("values", "begin", "commit", "rollback", "explain", "show", "describe", "set");
    cursor.couldBe("use", "storage", "kill", "subscribe", "start", "backup", "restore");
    cursor.couldBe("clear", "consume", "ack", "copy", "grant", "truncate", "savepoint", "release");
    cursor.couldBe("comment", "prepare", "execute", "deallocate", "do", "merge");
    cursor.couldBe("declare", "fetch", "move", "close", "export");
  }
  return cursor.unexpected("a statement");
}

function parseSelect(cursor: Cursor, start: number): Statement {
  return acceptSetPath(cursor, start) ?? withoutInto(parseLockable(cursor, start));
}

function parseWithStatement(cursor: Cursor, start: number): Statement {
  const { type, bind } = parseWith(cursor);
  const parse = CHANGES.get(cursor.word) ?? parseUnprefixedQuery;
  const inner = parse(cursor);
  return withoutInto({ type, bind, in: inner, _location: cursor.since(start) });
}

// Reads USER, SHARED or STREAM before TABLE.
function acceptKind(cursor: Cursor): TableKindWord | undefined {
  return cursor.isAhead(1, "table") ? cursor.acceptOneOf("user", "shared", "stream") : undefined;
}

function isView(cursor: Cursor): boolean {
  return cursor.is("view") || (cursor.is("recursive") && cursor.isAhead(1, "view"));
}

function isTrigger(cursor: Cursor): boolean {
  return cursor.is("trigger") || (cursor.is("constraint") && cursor.isAhead(1, "trigger"));
}

function parseTrigger(cursor: Cursor, start: number, orReplace: true | undefined): Statement {
  const isConstraint = cursor.accept("constraint");
  cursor.expect("trigger");
  return parseCreateTrigger(cursor, start, { isConstraint, orReplace });
}

/** Parses the rest of a statement after `CREATE OR REPLACE`. */
function parseReplace(cursor: Cursor, start: number): Statement {
  const temporary = acceptTemporary(cursor);
  if (isView(cursor)) return parseCreateView(cursor, start, { orReplace: true, temporary });
  if (cursor.is("materialized")) {
    cursor.refuse(
      "CREATE OR REPLACE MATERIALIZED VIEW",
      "use DROP MATERIALIZED VIEW, then CREATE MATERIALIZED VIEW",
    );
  }
  const program = acceptProgram(cursor, start, true);
  if (program !== undefined) return program;
  refuseObject(cursor, "CREATE");
  return cursor.unexpected("VIEW, FUNCTION or TRIGGER");
}

/** Parses the rest of CREATE TABLE, if it comes next. */
function acceptCreateTable(cursor: Cursor, start: number): Statement | undefined {
  const kind = acceptKind(cursor);
  const persistence = isPersistence(cursor) ? acceptPersistence(cursor) : {};
  if (!cursor.accept("table")) return undefined;
  return parseCreateTable(cursor, start, { kind, ...persistence });
}

/**
 * Parses the rest of CREATE VIEW, CREATE MATERIALIZED VIEW or CREATE TEMPORARY SEQUENCE, if it
 * comes next.
 */
function acceptCreateView(cursor: Cursor, start: number): Statement | undefined {
  const temporary = acceptTemporary(cursor);
  if (isView(cursor)) return parseCreateView(cursor, start, { temporary });
  if (temporary !== undefined) {
    cursor.expect("sequence");
    return parseCreateSequence(cursor, start, temporary);
  }
  const isMaterialized = cursor.acceptAll("materialized", "view");
  return isMaterialized ? parseCreateMaterialized(cursor, start) : undefined;
}

function acceptTypeDefinition(cursor: Cursor, start: number): Statement | undefined {
  if (cursor.accept("type")) return parseCreateType(cursor, start);
  if (cursor.accept("domain")) return parseCreateDomain(cursor, start);
  return cursor.accept("collation") ? parseCreateCollation(cursor, start) : undefined;
}

/**
 * Parses the rest of a statement after `CREATE [OR REPLACE]` if FUNCTION, AGGREGATE, PROCEDURE or
 * TRIGGER comes next.
 */
function acceptProgram(
  cursor: Cursor,
  start: number,
  orReplace: true | undefined,
): Statement | undefined {
  if (cursor.accept("function")) return parseCreateFunction(cursor, start, { orReplace });
  if (cursor.accept("aggregate")) return parseCreateAggregate(cursor, start, orReplace);
  if (isTrigger(cursor)) return parseTrigger(cursor, start, orReplace);
  if (!cursor.accept("procedure")) return undefined;
  return parseCreateFunction(cursor, start, { orReplace, isProcedure: true });
}

function parseCreate(cursor: Cursor, start: number): Statement {
  cursor.expect("create");
  if (cursor.acceptAll("or", "replace")) return parseReplace(cursor, start);
  const table = acceptCreateTable(cursor, start);
  if (table !== undefined) return table;
  const isUnique = cursor.acceptAll("unique", "index");
  if (isUnique || cursor.accept("index")) return parseCreateIndex(cursor, start, isUnique);
  if (cursor.accept("extension")) return parseCreateExtension(cursor, start);
  const type = acceptTypeDefinition(cursor, start);
  if (type !== undefined) return type;
  if (cursor.accept("policy")) return parseCreatePolicy(cursor, start);
  const view = acceptCreateView(cursor, start);
  if (view !== undefined) return view;
  const program = acceptProgram(cursor, start, undefined);
  if (program !== undefined) return program;
  refuseObject(cursor, "CREATE");
  cursor.couldBe("table", "index", "unique", "view");
  switch (
    cursor.expectOneOf(
      "namespace",
      "schema",
      "user",
      "storage",
      "topic",
      "webhook",
      "sequence",
      "token",
      "invitation",
    )
  ) {
    case "namespace":
    case "schema":
      return parseCreateNamespace(cursor, start);
    case "token":
      return parseCreateToken(cursor, start);
    case "invitation":
      return parseCreateInvitation(cursor, start);
    case "sequence":
      return parseCreateSequence(cursor, start, undefined);
    case "user":
      return parseCreateUser(cursor, start);
    case "storage":
      return parseCreateStorage(cursor, start);
    case "topic":
      return parseCreateTopic(cursor, start);
    case "webhook":
      return parseCreateWebhook(cursor, start);
  }
}

function parseAlter(cursor: Cursor, start: number): Statement {
  cursor.expect("alter");
  const kind = acceptKind(cursor);
  if (cursor.accept("table")) return parseAlterTable(cursor, start, kind);
  if (cursor.accept("index")) return parseAlterIndex(cursor, start);
  if (cursor.accept("type")) return parseAlterType(cursor, start);
  if (cursor.accept("domain")) return parseAlterDomain(cursor, start);
  if (cursor.accept("collation")) return parseAlterCollation(cursor, start);
  if (cursor.accept("policy")) return parseAlterPolicy(cursor, start);
  if (cursor.acceptAll("materialized", "view")) return parseAlterMaterialized(cursor, start);
  const altered = acceptFunctionKind(cursor);
  if (altered !== undefined) return parseAlterFunction(cursor, start, altered.kind);
  if (cursor.accept("trigger")) return parseAlterTrigger(cursor, start);
  refuseObject(cursor, "ALTER");
  if (cursor.is("view")) return parseAlterView(cursor, start);
  switch (
    cursor.expectOneOf("namespace", "schema", "user", "storage", "topic", "webhook", "sequence")
  ) {
    case "namespace":
    case "schema":
      return parseAlterNamespace(cursor, start);
    case "sequence":
      return parseAlterSequence(cursor, start);
    case "user":
      return parseAlterUser(cursor, start);
    case "storage":
      return parseAlterStorage(cursor, start);
    case "topic":
      return parseAlterTopic(cursor, start);
    case "webhook":
      return parseAlterWebhook(cursor, start);
  }
}

function parseAlterView(cursor: Cursor, start: number): Statement {
  const at = cursor.start;
  cursor.expect("view");
  const ifExists = acceptIfExists(cursor);
  const name = cursor.qname("a view");
  const owned = acceptOwner(cursor, start, { kind: "view", name, ifExists });
  if (owned !== undefined) return owned;
  const change = parseViewChange(cursor, at);
  return { type: "alter view", name, ifExists, change, _location: cursor.since(start) };
}

function parseViewChange(cursor: Cursor, at: number): AlterViewStatement["change"] {
  const start = cursor.token;
  if (cursor.acceptAll("rename", "to")) return { type: "rename", to: cursor.label("a view") };
  if (cursor.is("set") && cursor.isAhead(1, "(")) {
    cursor.expect("set");
    const options = parseOptions(cursor);
    return { type: "set options", options, _location: cursor.since(start) };
  }
  if (cursor.accept("reset")) return parseResetOptions(cursor, start);
  if (cursor.accept("alter")) {
    cursor.accept("column");
    const column = cursor.name("a column");
    const alter = parseAlterColumn(cursor);
    if (alter.type === "set default" || alter.type === "drop default") {
      return { type: "alter column", column, alter, _location: cursor.since(start) };
    }
  }
  return cursor.refuse(
    "ALTER VIEW other than RENAME TO, SET (…), RESET (…) and DEFAULTs of columns",
    "CREATE OR REPLACE VIEW",
    at,
  );
}

function parseDrop(cursor: Cursor, start: number): Statement {
  cursor.expect("drop");
  const kind = acceptKind(cursor);
  if (cursor.accept("table")) return parseDropTable(cursor, start, kind);
  if (cursor.accept("index")) return parseDropIndex(cursor, start);
  if (cursor.accept("type")) return parseDropType(cursor, start);
  if (cursor.accept("domain")) return parseDropType(cursor, start, "domain");
  if (cursor.accept("collation")) return parseDropType(cursor, start, "collation");
  if (cursor.accept("policy")) return parseDropPolicy(cursor, start);
  if (cursor.acceptAll("materialized", "view")) return parseDropMaterialized(cursor, start);
  const dropped = acceptFunctionKind(cursor);
  if (dropped !== undefined) return parseDropFunction(cursor, start, dropped.kind);
  if (cursor.accept("trigger")) return parseDropTrigger(cursor, start);
  refuseObject(cursor, "DROP");
  switch (
    cursor.expectOneOf(
      "namespace",
      "schema",
      "view",
      "user",
      "storage",
      "topic",
      "webhook",
      "sequence",
      "token",
      "invitation",
    )
  ) {
    case "namespace":
    case "schema":
      return parseDropNamespace(cursor, start);
    case "token":
      return parseDropToken(cursor, start);
    case "invitation":
      return parseDropInvitation(cursor, start);
    case "sequence":
      return parseDropSequence(cursor, start);
    case "view":
      return parseDropView(cursor, start);
    case "user":
      return parseDropUser(cursor, start);
    case "storage":
      return parseDropStorage(cursor, start);
    case "topic":
      return parseDropTopic(cursor, start);
    case "webhook":
      return parseDropWebhook(cursor, start);
  }
}
