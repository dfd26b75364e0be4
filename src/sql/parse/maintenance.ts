/**
 * Parses statements about the server's background work: STORAGE, BACKUP, RESTORE, EXPORT, KILL.
 */
import type {
  BackupStatement,
  ExportStatement,
  KillStatement,
  RestoreStatement,
  Statement,
} from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { parseNamespaceOf } from "./namespaces.ts";
import { parseId, parseNameOrString } from "./options.ts";

/** Parses `STORAGE FLUSH | COMPACT | CHECK …`. */
export function parseStorage(cursor: Cursor, start: number): Statement {
  cursor.expect("storage");
  const word = cursor.expectOneOf("flush", "compact", "check");
  if (word === "check") {
    const name = parseNameOrString(cursor, "a storage");
    const extended = cursor.accept("extended") ? true : undefined;
    return { type: "storage check", name, extended, _location: cursor.since(start) };
  }
  const type = word === "flush" ? "storage flush" : "storage compact";
  if (cursor.accept("table")) {
    const table = cursor.qname("a table");
    return { type, table, _location: cursor.since(start) };
  }
  cursor.expect("all");
  const namespace = cursor.accept("in") ? parseNamespaceOf(cursor) : undefined;
  return { type, namespace, _location: cursor.since(start) };
}

/** Parses `BACKUP DATABASE TO 'target'`. */
export function parseBackup(cursor: Cursor, start: number): BackupStatement {
  cursor.expectAll("backup", "database", "to");
  const target = cursor.string("a target in quotes");
  return { type: "backup", target, _location: cursor.since(start) };
}

/** Parses `EXPORT USER DATA`. */
export function parseExport(cursor: Cursor, start: number): ExportStatement {
  cursor.expectAll("export", "user", "data");
  return { type: "export user data", _location: cursor.since(start) };
}

/** Parses `RESTORE DATABASE FROM 'source' [TO …]`. */
export function parseRestore(cursor: Cursor, start: number): RestoreStatement {
  cursor.expectAll("restore", "database", "from");
  const source = cursor.string("a source in quotes");
  const to = cursor.accept("to") ? parseRestorePoint(cursor) : undefined;
  return { type: "restore", source, to, _location: cursor.since(start) };
}

function parseRestorePoint(cursor: Cursor): NonNullable<RestoreStatement["to"]> {
  return cursor.expectOneOf("seq", "timestamp") === "seq"
    ? { type: "seq", text: cursor.digits("a _seq") }
    : { type: "timestamp", value: cursor.string("a timestamp in quotes") };
}

/** Parses `KILL …`. */
export function parseKill(cursor: Cursor, start: number): KillStatement {
  cursor.expect("kill");
  const word = cursor.expectOneOf("job", "query", "live", "connection", "consumer", "transaction");
  if (word === "live") cursor.expect("query");
  const id = parseId(cursor, "an id");
  const target = word === "live" ? "live query" : word;
  return { type: "kill", target, id, _location: cursor.since(start) };
}
