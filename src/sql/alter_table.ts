/**
 * ALTER TABLE: the next entry of a table, or none when nothing changes. All actions of a statement
 * apply together.
 *
 * No row is rewritten: a new column reads its default from the definition, a dropped one is no
 * longer asked for, a renamed one keeps its id.
 */
import { DatabaseError } from "../base/errors.ts";
import {
  type ColumnEntry,
  changedTableOptions,
  checkColumnName,
  resetTableOptions,
  type TableEntry,
} from "../catalog/mod.ts";
import { type Value, valueAt } from "../types/mod.ts";
import { StatementBinding } from "./bind/binding.ts";
import { bindCondition, bindExpression } from "./bind/expression_binder.ts";
import { Scope } from "./bind/scope.ts";
import { columnIdsIn, isVolatile } from "./bind/walk.ts";
import type { SqlEnvironment } from "./environment.ts";
import { compileExpression } from "./execute/expression.ts";
import { columnsFromRows } from "./execute/filter.ts";
import type { Run } from "./execute/run.ts";
import { checkScope, compileDefaultSql } from "./execute/table_runtime.ts";
import { NO_PRINCIPAL, newRun } from "./new_run.ts";
import type {
  AlterTableStatement,
  Expr,
  Name,
  TableAlteration,
  TableAlterationAddColumn,
  TableAlterationDropColumn,
  TableAlterationRenameColumn,
} from "./parse/ast.ts";
import { parseExpression } from "./parse/parser.ts";
import { checksOf, hasColumn, newCheck, newColumn, optionSettings } from "./table_elements.ts";

/** @throws {DatabaseError} */
export function alteredTable(
  table: TableEntry,
  node: AlterTableStatement,
  environment: SqlEnvironment,
): TableEntry | undefined {
  let next = table;
  for (const change of node.changes) next = apply(next, change, environment);
  if (next === table) return undefined;
  // Options are no part of the schema; columns and constraints are.
  const changesSchema = next.columns !== table.columns || next.checks !== table.checks;
  return {
    ...next,
    schemaVersion: table.schemaVersion + (changesSchema ? 1 : 0),
    updatedAtMs: environment.clock.nowMs(),
  };
}

function apply(
  table: TableEntry,
  change: TableAlteration,
  environment: SqlEnvironment,
): TableEntry {
  switch (change.type) {
    case "add column":
      return addColumn(table, change, environment);
    case "drop column":
      return dropColumn(table, change);
    case "rename column":
      return renameColumn(table, change);
    case "set options": {
      const settings = optionSettings(change.options);
      return { ...table, options: changedTableOptions(table.kind, table.options, settings) };
    }
    case "reset options": {
      const names = change.names.map(({ _location, name }) => ({
        name,
        position: _location.start,
      }));
      return { ...table, options: resetTableOptions(table.kind, table.options, names) };
    }
    default:
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot run ALTER TABLE … ${change.type.toUpperCase()}: not available yet`,
        { position: change._location.start },
      );
  }
}

function addColumn(
  table: TableEntry,
  { column, ifNotExists }: TableAlterationAddColumn,
  environment: SqlEnvironment,
): TableEntry {
  const position = column._location.start;
  const { name } = column.name;
  if (hasColumn(table.columns, name)) {
    if (ifNotExists === true) return table;
    throw new DatabaseError("ALREADY_EXISTS", `Cannot add column "${name}": it already exists`, {
      position,
    });
  }
  if (column.constraints?.some(({ type }) => type === "primary key") === true) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot add column "${name}" as a key: the primary key of a table is fixed`,
      { position },
    );
  }
  const made = newColumn(column, { columnId: table.nextColumnId, kind: table.kind });
  const hasRows = environment.store.liveRowCount(table.tableId, undefined) > 0;
  const added = hasRows ? withMissing(made, { position, environment }) : made;
  const columns = [...table.columns, added];
  const checks = [...table.checks];
  for (const check of checksOf(column.constraints)) {
    const entry = newCheck(check, { checks, columns, prefix: `${table.name}_${name}` });
    if (hasRows) requireCheckOfMissing(added, { sql: entry.sql, position, environment });
    checks.push(entry);
  }
  return {
    ...table,
    columns,
    checks: checks.length === table.checks.length ? table.checks : checks,
    nextColumnId: table.nextColumnId + 1,
  };
}

/** What rows that are there already read in a new column: its default, evaluated once. */
function withMissing(
  column: ColumnEntry,
  { environment, position }: { position: number; environment: SqlEnvironment },
): ColumnEntry {
  const { defaultSql, name, notNull, type } = column;
  if (defaultSql === undefined) {
    if (!notNull) return column;
    throw new DatabaseError(
      "NOT_NULL_VIOLATION",
      `Cannot add column "${name}": it is NOT NULL, has no DEFAULT, and the table has rows`,
      { position, hint: "give it a DEFAULT" },
    );
  }
  const place = {
    statement: new StatementBinding([]),
    scope: new Scope([]),
    clause: "DEFAULT",
    sink: undefined,
  };
  if (isVolatile(bindExpression(parseExpression(defaultSql), place))) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot add column "${name}": its DEFAULT gives another value for each row, and the table has rows`,
      { position },
    );
  }
  const missing = compileDefaultSql(defaultSql, type)(definitionRun(environment));
  if (missing === null && notNull) {
    throw new DatabaseError(
      "NOT_NULL_VIOLATION",
      `Cannot add column "${name}": its DEFAULT is NULL`,
      {
        position,
      },
    );
  }
  return { ...column, missing };
}

/** Rows that are there already all hold the same value in a new column: one test serves them. */
function requireCheckOfMissing(
  column: ColumnEntry,
  { environment, position, sql }: { sql: string; position: number; environment: SqlEnvironment },
): void {
  const { layout, scope } = checkScope([column]);
  const place = { statement: new StatementBinding([]), scope, clause: "CHECK", sink: undefined };
  const evaluate = compileExpression(bindCondition(parseExpression(sql), place), layout);
  const row: Value[] = [column.missing];
  const batch = { rowCount: 1, columns: columnsFromRows([row], [column.type]) };
  if (valueAt(evaluate(batch, definitionRun(environment)), 0) !== false) return;
  throw new DatabaseError(
    "CHECK_VIOLATION",
    `Cannot add column "${column.name}": its DEFAULT violates its CHECK`,
    { position },
  );
}

function dropColumn(
  table: TableEntry,
  { behaviour, column: { name, _location }, ifExists }: TableAlterationDropColumn,
): TableEntry {
  const position = _location.start;
  const column = table.columns.find((entry) => entry.name === name);
  if (column === undefined) {
    if (ifExists === true) return table;
    throw columnNotFound(table, name, position);
  }
  if (table.primaryKey.includes(column.columnId)) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot drop column "${name}": it is part of the key`,
      {
        position,
      },
    );
  }
  if (table.columns.length === 1) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot drop column "${name}": it is the only one`,
    );
  }
  const dependent = table.checks.filter(({ sql }) => columnsNamedIn(sql, table).has(name));
  if (dependent.length > 0 && behaviour !== "cascade") {
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop column "${name}": ${dependent.length} constraint(s) use it`,
      { position, hint: "add CASCADE to drop them too" },
    );
  }
  return {
    ...table,
    columns: table.columns.filter((entry) => entry !== column),
    checks:
      dependent.length === 0
        ? table.checks
        : table.checks.filter((check) => !dependent.includes(check)),
  };
}

/** Names of the columns that a stored CHECK reads. */
function columnsNamedIn(sql: string, table: TableEntry): ReadonlySet<string> {
  const { columns, scope } = checkScope(table.columns);
  const place = { statement: new StatementBinding([]), scope, clause: "CHECK", sink: undefined };
  const ids = columnIdsIn(bindCondition(parseExpression(sql), place));
  return new Set(columns.filter(({ id }) => ids.has(id)).map(({ name }) => name));
}

function renameColumn(
  table: TableEntry,
  { column: from, to }: TableAlterationRenameColumn,
): TableEntry {
  const column = table.columns.find((entry) => entry.name === from.name);
  if (column === undefined) throw columnNotFound(table, from.name, from._location.start);
  if (from.name === to.name) return table;
  checkColumnName(to.name, {
    position: to._location.start,
    isQuoted: !/^[a-z_][a-z0-9_$]*$/.test(to.name),
  });
  if (
    hasColumn(
      table.columns.filter((entry) => entry !== column),
      to.name,
    )
  ) {
    throw new DatabaseError("ALREADY_EXISTS", `Cannot rename to "${to.name}": it already exists`, {
      position: to._location.start,
    });
  }
  return {
    ...table,
    columns: table.columns.map((entry) => (entry === column ? { ...entry, name: to.name } : entry)),
    checks: table.checks.map((check) => ({
      ...check,
      sql: renamedIn(check.sql, { from, to }),
    })),
  };
}

/** The same text with one column renamed, from the last mention to the first. */
function renamedIn(sql: string, { from, to }: { from: Name; to: Name }): string {
  const places: { start: number; end: number }[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const node = value as Partial<Expr>;
    if (node.type === "ref" && node.name === from.name && node._location !== undefined) {
      places.push(node._location);
      return;
    }
    for (const part of Object.values(value)) visit(part);
  };
  visit(parseExpression(sql));
  const quoted = `"${to.name.replaceAll('"', '""')}"`;
  return places
    .toSorted((left, right) => right.start - left.start)
    .reduce((text, { end, start }) => text.slice(0, start) + quoted + text.slice(end), sql);
}

function columnNotFound(table: TableEntry, name: string, position: number): DatabaseError {
  return new DatabaseError(
    "COLUMN_NOT_FOUND",
    `Cannot find column "${name}" in ${table.namespace}.${table.name}`,
    { position },
  );
}

/** A run for expressions that read no row and no caller. */
function definitionRun(environment: SqlEnvironment): Run {
  return newRun(environment, {
    principal: NO_PRINCIPAL,
    namespace: "default",
    slots: [],
    atSeq: environment.store.visibleSeq,
  });
}
