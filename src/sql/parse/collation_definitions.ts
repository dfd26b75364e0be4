/** Parses CREATE COLLATION and ALTER COLLATION. */
import type {
  AlterOwnerStatement,
  AlterTypeStatement,
  CreateCollationStatement,
  OptionEntry,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import { parseCollationName } from "./collations.ts";
import type { Cursor } from "./cursor.ts";
import { acceptIfNotExists } from "./ddl.ts";
import { parseOptionValue } from "./options.ts";
import { acceptOwner } from "./ownership.ts";

const COLLATION = "a collation";

/** Parses the rest of a statement after `CREATE COLLATION`. */
export function parseCreateCollation(cursor: Cursor, start: number): CreateCollationStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = cursor.qname(COLLATION);
  const source = cursor.accept("from") ? parseCollationName(cursor) : parseSettings(cursor);
  const _location = cursor.since(start);
  return { type: "create collation", name, ifNotExists, source, _location };
}

/**
 * Parses collation settings: `(name = value, …)`. A quoted name keeps its case and therefore does
 * not match any setting.
 */
function parseSettings(cursor: Cursor): OptionEntry[] {
  const entries: OptionEntry[] = [];
  cursor.expect("(");
  do {
    const at = cursor.token;
    const { name } = cursor.label("an option for the collation");
    cursor.expect("=");
    const value = parseOptionValue(cursor);
    entries.push({ name, value, _location: cursor.since(at) });
    requireListed(cursor, entries.length, "settings");
  } while (cursor.accept(","));
  cursor.expect(")");
  return entries;
}

/** Parses the rest of a statement after `ALTER COLLATION`. */
export function parseAlterCollation(
  cursor: Cursor,
  start: number,
): AlterOwnerStatement | AlterTypeStatement {
  const name = cursor.qname(COLLATION);
  const owned = acceptOwner(cursor, start, { kind: "type", name });
  if (owned !== undefined) return owned;
  if (cursor.is("set")) {
    cursor.refuse("SET SCHEMA of a collation", "create the collation in the other namespace");
  }
  const at = cursor.token;
  const isRefresh = cursor.expectOneOf("refresh", "rename") === "refresh";
  if (!isRefresh) cursor.expect("to");
  else if (cursor.label("VERSION").name !== "version") cursor.unexpected("VERSION");
  const to = isRefresh ? undefined : cursor.label(COLLATION);
  const change =
    to === undefined
      ? ({ type: "refresh version", _location: cursor.since(at) } as const)
      : ({ type: "rename", to, _location: cursor.since(at) } as const);
  return { type: "alter type", isCollation: true, name, change, _location: cursor.since(start) };
}
