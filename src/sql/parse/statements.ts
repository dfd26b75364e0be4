/**
 * Which statement begins here: one table of first words, so that none is tried in vain, and what
 * begins with none can be refused by its name.
 */
import { parseAlterTable } from "./alter.ts";
import type { Statement, TableKind } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import {
  parseAlterNamespace,
  parseCreateNamespace,
  parseCreateTable,
  parseCreateView,
  parseDropNamespace,
  parseDropTable,
  parseDropView,
} from "./ddl.ts";
import {
  parseDescribe,
  parseExecuteAs,
  parseExplain,
  parseSet,
  parseShow,
  parseSubscribe,
  parseUse,
} from "./dialect.ts";
import { parseDelete, parseInsert, parseUpdate } from "./dml.ts";
import { parseBackup, parseKill, parseRestore, parseStorage } from "./maintenance.ts";
import { refuseObject, refuseStatement } from "./refused.ts";
import { parseQuery, parseUnprefixedQuery, parseWith } from "./select.ts";
import { parseAlterStorage, parseCreateStorage, parseDropStorage } from "./storages.ts";
import { parseTransaction } from "./transactions.ts";
import { parseAlterUser, parseCreateUser, parseDropUser } from "./users.ts";

type Parse = (cursor: Cursor, start: number) => Statement;

const STATEMENTS = new Map<string, Parse>([
  ["select", parseQuery],
  ["values", parseQuery],
  ["table", parseQuery],
  ["(", parseQuery],
  ["with", parseWithStatement],
  ["insert", parseInsert],
  ["update", parseUpdate],
  ["delete", parseDelete],
  ["create", parseCreate],
  ["alter", parseAlter],
  ["drop", parseDrop],
  ["begin", parseTransaction],
  ["start", parseTransaction],
  ["commit", parseTransaction],
  ["end", parseTransaction],
  ["rollback", parseTransaction],
  ["abort", parseTransaction],
  ["explain", parseExplain],
  ["use", parseUse],
  ["set", parseSet],
  ["show", parseShow],
  ["describe", parseDescribe],
  ["desc", parseDescribe],
  ["storage", parseStorage],
  ["kill", parseKill],
  ["subscribe", parseSubscribe],
  ["backup", parseBackup],
  ["restore", parseRestore],
]);

/** Any statement, up to what ends it. */
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
    cursor.couldBe("copy", "grant", "truncate");
  }
  return cursor.unexpected("a statement");
}

function parseWithStatement(cursor: Cursor, start: number): Statement {
  const { type, bind } = parseWith(cursor);
  const { word } = cursor;
  const inner =
    word === "insert"
      ? parseInsert(cursor)
      : word === "update"
        ? parseUpdate(cursor)
        : word === "delete"
          ? parseDelete(cursor)
          : parseUnprefixedQuery(cursor);
  return { type, bind, in: inner, _location: cursor.since(start) };
}

// USER, SHARED or STREAM before TABLE.
function acceptKind(cursor: Cursor): TableKind | undefined {
  return cursor.isAhead(1, "table") ? cursor.acceptOneOf("user", "shared", "stream") : undefined;
}

function parseCreate(cursor: Cursor, start: number): Statement {
  cursor.expect("create");
  if (cursor.acceptAll("or", "replace")) {
    if (cursor.accept("view")) return parseCreateView(cursor, start, true);
    refuseObject(cursor, "CREATE");
    return cursor.unexpected("VIEW");
  }
  const kind = acceptKind(cursor);
  if (cursor.accept("table")) return parseCreateTable(cursor, start, kind);
  refuseObject(cursor, "CREATE");
  switch (cursor.expectOneOf("namespace", "schema", "view", "user", "storage")) {
    case "namespace":
    case "schema":
      return parseCreateNamespace(cursor, start);
    case "view":
      return parseCreateView(cursor, start, undefined);
    case "user":
      return parseCreateUser(cursor, start);
    case "storage":
      return parseCreateStorage(cursor, start);
  }
}

function parseAlter(cursor: Cursor, start: number): Statement {
  cursor.expect("alter");
  const kind = acceptKind(cursor);
  if (cursor.accept("table")) return parseAlterTable(cursor, start, kind);
  refuseObject(cursor, "ALTER");
  if (cursor.is("view")) cursor.refuse("ALTER VIEW", "CREATE OR REPLACE VIEW");
  switch (cursor.expectOneOf("namespace", "schema", "user", "storage")) {
    case "namespace":
    case "schema":
      return parseAlterNamespace(cursor, start);
    case "user":
      return parseAlterUser(cursor, start);
    case "storage":
      return parseAlterStorage(cursor, start);
  }
}

function parseDrop(cursor: Cursor, start: number): Statement {
  cursor.expect("drop");
  const kind = acceptKind(cursor);
  if (cursor.accept("table")) return parseDropTable(cursor, start, kind);
  refuseObject(cursor, "DROP");
  switch (cursor.expectOneOf("namespace", "schema", "view", "user", "storage")) {
    case "namespace":
    case "schema":
      return parseDropNamespace(cursor, start);
    case "view":
      return parseDropView(cursor, start);
    case "user":
      return parseDropUser(cursor, start);
    case "storage":
      return parseDropStorage(cursor, start);
  }
}
