/** Parses ALTER TABLE. */
import type {
  AlterColumn,
  AlterColumnIdentity,
  AlterOwnerStatement,
  AlterTableStatement,
  SequenceOption,
  TableAlteration,
  TableAlterationResetOptions,
  TableKindWord,
} from "./ast/ast.ts";
import type { PartitionDefinition } from "./ast/ast_partitions.ts";
import { requireListed } from "./bounds.ts";
import { parseCollatedType } from "./collations.ts";
import type { Cursor } from "./cursor.ts";
import {
  acceptBehaviour,
  acceptIfExists,
  acceptIfNotExists,
  isTableConstraint,
  parseAlways,
  parseColumn,
  parseIdentity,
  parseTableConstraint,
} from "./ddl.ts";
import { parseTiming } from "./foreign_keys.ts";
import { parseSourced } from "./indexed_parts.ts";
import { parseOptions, parseWord } from "./options.ts";
import { acceptOwner } from "./ownership.ts";
import { acceptPartitionChange } from "./partitions.ts";
import { refuseAlteration } from "./refused.ts";
import { parseSequenceOptions } from "./sequence_options.ts";
import { parseTriggerSwitch } from "./triggers.ts";

/** Parses the rest of a statement after `ALTER [kind] TABLE`. */
export function parseAlterTable(
  cursor: Cursor,
  start: number,
  kind: TableKindWord | undefined,
): AlterOwnerStatement | AlterTableStatement | PartitionDefinition {
  const ifExists = acceptIfExists(cursor);
  const only = cursor.accept("only") ? ({ only: true } as const) : {};
  const table = cursor.qname("a table");
  const object = { kind: "table", name: table, ifExists } as const;
  const owned = kind === undefined ? acceptOwner(cursor, start, object) : undefined;
  if (owned !== undefined) return owned;
  const partitions = acceptPartitionChange(cursor, start, { ifExists, table });
  if (partitions !== undefined) return partitions;
  const changes = [parseAlteration(cursor)];
  while (cursor.accept(",")) {
    changes.push(parseAlteration(cursor));
    requireListed(cursor, changes.length, "changes in a single ALTER TABLE");
  }
  const _location = cursor.since(start);
  return { type: "alter table", kind, ...only, table, ifExists, changes, _location };
}

const ACTIONS = [
  "add",
  "drop",
  "rename",
  "alter",
  "modify",
  "set",
  "reset",
  "validate",
  "enable",
  "disable",
] as const;

function parseAlteration(cursor: Cursor): TableAlteration {
  const start = cursor.token;
  refuseAlteration(cursor);
  const action = cursor.expectOneOf(...ACTIONS);
  switch (action) {
    case "validate": {
      cursor.expect("constraint");
      const constraint = cursor.name("a constraint");
      return { type: "validate constraint", constraint, _location: cursor.since(start) };
    }
    case "add":
      return parseAdd(cursor, start);
    case "drop":
      return parseDrop(cursor, start);
    case "rename": {
      if (cursor.accept("to")) {
        const to = cursor.name("a table");
        return { type: "rename table", to, _location: cursor.since(start) };
      }
      if (cursor.accept("constraint")) {
        const constraint = cursor.name("a constraint");
        cursor.expect("to");
        const to = cursor.name("a constraint");
        return { type: "rename constraint", constraint, to, _location: cursor.since(start) };
      }
      cursor.accept("column");
      const column = cursor.name("a column");
      cursor.expect("to");
      const to = cursor.name("a column");
      return { type: "rename column", column, to, _location: cursor.since(start) };
    }
    case "alter": {
      if (cursor.accept("constraint")) {
        const constraint = cursor.name("a constraint");
        const { deferrable, initially, notValid } = parseTiming(cursor);
        if (notValid === true) cursor.refuse("ALTER CONSTRAINT … NOT VALID");
        const _location = cursor.since(start);
        return { type: "alter constraint", constraint, deferrable, initially, _location };
      }
      cursor.accept("column");
      const column = cursor.name("a column");
      const alter = parseAlterColumn(cursor);
      return { type: "alter column", column, alter, _location: cursor.since(start) };
    }
    case "modify": {
      cursor.accept("column");
      const column = cursor.name("a column");
      const dataType = parseCollatedType(cursor);
      const notNull = acceptNullability(cursor);
      const _location = cursor.since(start);
      return { type: "modify column", column, dataType, notNull, _location };
    }
    case "set":
      return parseSetOptions(cursor, start);
    case "reset":
      return parseResetOptions(cursor, start);
    case "enable":
    case "disable":
      return parseTriggerSwitch(cursor, start, action);
  }
}

function acceptNullability(cursor: Cursor): boolean | undefined {
  if (cursor.acceptAll("not", "null")) return true;
  return cursor.accept("null") ? false : undefined;
}

function parseAdd(cursor: Cursor, start: number): TableAlteration {
  if (isTableConstraint(cursor)) {
    const constraint = parseTableConstraint(cursor);
    return { type: "add constraint", constraint, _location: cursor.since(start) };
  }
  cursor.accept("column");
  const ifNotExists = acceptIfNotExists(cursor);
  const column = parseColumn(cursor);
  return { type: "add column", ifNotExists, column, _location: cursor.since(start) };
}

function parseDrop(cursor: Cursor, start: number): TableAlteration {
  if (cursor.accept("constraint")) {
    const ifExists = acceptIfExists(cursor);
    const constraint = cursor.name("a constraint");
    const behaviour = acceptBehaviour(cursor);
    const _location = cursor.since(start);
    return { type: "drop constraint", ifExists, constraint, behaviour, _location };
  }
  cursor.accept("column");
  const ifExists = acceptIfExists(cursor);
  const column = cursor.name("a column");
  const behaviour = acceptBehaviour(cursor);
  return { type: "drop column", ifExists, column, behaviour, _location: cursor.since(start) };
}

/** Parses the change to a column after `ALTER [COLUMN] name`. */
export function parseAlterColumn(cursor: Cursor): AlterColumn {
  const start = cursor.token;
  if (cursor.accept("drop")) {
    const what = cursor.expectOneOf("not", "default", "identity", "expression");
    if (what === "identity" || what === "expression") {
      const ifExists = acceptIfExists(cursor);
      return { type: `drop ${what}`, ifExists, _location: cursor.since(start) };
    }
    if (what === "not") cursor.expect("null");
    const type = what === "not" ? "drop not null" : "drop default";
    return { type, _location: cursor.since(start) };
  }
  if (cursor.acceptAll("set", "not", "null")) {
    return { type: "set not null", _location: cursor.since(start) };
  }
  if (cursor.acceptAll("set", "default")) {
    const { expr, source } = parseSourced(cursor);
    return { type: "set default", default: expr, source, _location: cursor.since(start) };
  }
  if (cursor.acceptAll("add", "generated")) {
    const always = parseAlways(cursor);
    cursor.expect("as");
    return parseIdentity(cursor, start, { always, constraintName: undefined });
  }
  if (cursor.is("restart") || isIdentityOption(cursor)) return parseIdentityChange(cursor, start);
  const tuned = TUNING.find((word) => cursor.is("set") && cursor.isAhead(1, word));
  if (tuned !== undefined) {
    cursor.token += 2;
    cursor.accept("-");
    cursor.token += 1;
    return { type: "set tuning", _location: cursor.since(start) };
  }
  if (cursor.is("set") && !cursor.isAhead(1, "data")) {
    cursor.token += 1;
    cursor.couldBe("not", "default", "data");
    cursor.unexpected("NOT NULL, DEFAULT or DATA TYPE");
  }
  if (cursor.accept("set")) cursor.expect("data");
  cursor.expect("type");
  const dataType = parseCollatedType(cursor);
  const using = cursor.accept("using") ? parseSourced(cursor) : undefined;
  const _location = cursor.since(start);
  if (using === undefined) return { type: "set type", dataType, _location };
  return { type: "set type", dataType, using: using.expr, usingSource: using.source, _location };
}

function isIdentityOption(cursor: Cursor): boolean {
  return cursor.is("set") && IDENTITY_OPTIONS.some((word) => cursor.isAhead(1, word));
}

/** PostgreSQL's storage hints for a column. They are accepted and have no effect. */
const TUNING = ["compression", "statistics", "storage"] as const;

const IDENTITY_OPTIONS = [
  "generated",
  "increment",
  "minvalue",
  "maxvalue",
  "start",
  "cache",
  "cycle",
  "no",
] as const;

/**
 * Parses changes to an identity column: `SET GENERATED …`, `SET` with a sequence option, or
 * `RESTART`.
 */
function parseIdentityChange(cursor: Cursor, start: number): AlterColumn {
  let always: AlterColumnIdentity["always"];
  const options: SequenceOption[] = [];
  for (;;) {
    if (isIdentityOption(cursor)) {
      cursor.expect("set");
      if (cursor.accept("generated")) always = parseAlways(cursor);
      else options.push(...parseSequenceOptions(cursor));
    } else if (cursor.is("restart")) options.push(...parseSequenceOptions(cursor));
    else return { type: "alter identity", always, options, _location: cursor.since(start) };
  }
}

/** Parses the rest of an ALTER TABLE action after `RESET`. */
export function parseResetOptions(cursor: Cursor, start: number): TableAlterationResetOptions {
  cursor.expect("(");
  const names = [cursor.label("an option")];
  while (cursor.accept(",")) names.push(cursor.label("an option"));
  cursor.expect(")");
  return { type: "reset options", names, _location: cursor.since(start) };
}

function parseSetOptions(cursor: Cursor, start: number): TableAlteration {
  if (cursor.is("schema") || cursor.is("namespace"))
    cursor.refuse(
      "SET SCHEMA of a table",
      "create a table in the other namespace, and copy the rows",
    );
  if (cursor.is("access") && cursor.isAhead(1, "level")) {
    const token = cursor.token;
    cursor.token += 2;
    const value = parseWord(cursor, "an access level");
    const _location = cursor.since(token);
    const entry = {
      name: "access_level",
      value: { type: "identifier", ...value } as const,
      _location,
    };
    return { type: "set options", options: [entry], _location: cursor.since(start) };
  }
  cursor.accept("tblproperties");
  const options = parseOptions(cursor);
  return { type: "set options", options, _location: cursor.since(start) };
}
