/**
 * ALTER TABLE: the next entry of a table, or none when nothing changes, and what it demands of the
 * rows that are there. All actions of a statement apply together.
 *
 * No row is rewritten: a new column reads its default from the definition, a dropped one is no
 * longer asked for, a renamed one keeps its id, and older values are read as a wider type has them.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import {
  type ColumnEntry,
  changedTableOptions,
  checkColumnName,
  keyNameOf,
  resetTableOptions,
  type TableEntry,
} from "../../catalog/mod.ts";
import type { Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { errorInCell } from "../bind/cell_error.ts";
import { columnNamed, isSystemColumn, nameOf } from "../bind/change/dml_target.ts";
import { bindExpression } from "../bind/expression/expression_binder.ts";
import { Scope } from "../bind/scope.ts";
import { isVolatile } from "../bind/walk.ts";
import { compileDefaultSql } from "../execute/build/table_runtime.ts";
import type { Run } from "../execute/run/run.ts";
import type {
  AlterTableStatement,
  Expr,
  Name,
  TableAlteration,
  TableAlterationAddColumn,
  TableAlterationAddConstraint,
  TableAlterationDropColumn,
  TableAlterationDropConstraint,
  TableAlterationRenameColumn,
} from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { parseExpression } from "../parse/parser.ts";
import { NO_PRINCIPAL, newRun, type RunWorld } from "../prepare/new_run.ts";
import { alterColumn, modifyColumn } from "./alter_column.ts";
import { columnsNamedIn, holdsRows, type RowDemand } from "./row_inspection.ts";
import { requireSameStorage } from "./storage_definitions.ts";
import {
  checkConstraintNames,
  checksOf,
  hasColumn,
  newCheck,
  newColumn,
  optionSettings,
} from "./table_elements.ts";

export interface Alteration {
  /** Undefined when nothing changes. */
  readonly next: TableEntry | undefined;
  /** What must hold for the rows that are there. */
  readonly demands: readonly RowDemand[];
}

/** Who alters a table, and from where: what a default is evaluated for. */
export interface Alterer {
  readonly world: RunWorld;
  readonly principal: Principal;
  /** Of unqualified names. */
  readonly namespace: string;
}

/** What the actions of one statement share. */
interface Altering extends Alterer {
  readonly demands: RowDemand[];
}

/** @throws {DatabaseError} */
export function alteredTable(
  table: TableEntry,
  node: AlterTableStatement,
  alterer: Alterer,
): Alteration {
  const demands: RowDemand[] = [];
  let next = table;
  const altering = { ...alterer, demands };
  let additions: TableAlterationAddColumn[] = [];
  for (const change of node.changes) {
    if (change.type === "add column") {
      additions.push(change);
      continue;
    }
    next = apply(addColumns(next, additions, altering), change, altering);
    additions = [];
  }
  next = addColumns(next, additions, altering);
  if (next === table) return { next: undefined, demands: [] };
  // Options are no part of the schema; columns and constraints are.
  const changesSchema = next.columns !== table.columns || next.checks !== table.checks;
  return {
    next: {
      ...next,
      schemaVersion: table.schemaVersion + (changesSchema ? 1 : 0),
      updatedAtMs: alterer.world.clock.nowMs(),
    },
    demands,
  };
}

type OtherAlteration = Exclude<TableAlteration, TableAlterationAddColumn>;

function apply(table: TableEntry, change: OtherAlteration, altering: Altering): TableEntry {
  switch (change.type) {
    case "drop column":
      return dropColumn(table, change);
    case "rename column":
      return renameColumn(table, change);
    case "set options": {
      const settings = optionSettings(change.options);
      const options = changedTableOptions(table.kind, table.options, settings);
      const position = change._location.start;
      requireSameStorage(altering.world.catalog, table, { options, position });
      return { ...table, options };
    }
    case "reset options": {
      const names = change.names.map(({ _location, name }) => ({
        name,
        position: _location.start,
      }));
      const options = resetTableOptions(table.kind, table.options, names);
      const position = change._location.start;
      requireSameStorage(altering.world.catalog, table, { options, position });
      return { ...table, options };
    }
    case "alter column":
      return alterColumn(table, change, altering.demands);
    case "modify column":
      return modifyColumn(table, change, altering.demands);
    case "add constraint":
      return addConstraint(table, change, altering.demands);
    case "drop constraint":
      return dropConstraint(table, change);
  }
}

/** Adds columns together, so that the others are looked at once. */
function addColumns(
  table: TableEntry,
  additions: readonly TableAlterationAddColumn[],
  altering: Altering,
): TableEntry {
  if (additions.length === 0) return table;
  const { demands, world } = altering;
  const columns = [...table.columns];
  const checks = [...table.checks];
  const names = new Set(columns.map(({ name }) => name.toLowerCase()));
  const hasRows = holdsRows(world.store, table.tableId);
  let { nextColumnId } = table;
  for (const { column, ifNotExists } of additions) {
    const position = column._location.start;
    const { name } = column.name;
    if (names.has(name.toLowerCase())) {
      if (ifNotExists === true) continue;
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
    const made = newColumn(column, { columnId: nextColumnId, kind: table.kind });
    columns.push(hasRows ? withMissing(made, { position, altering }) : made);
    names.add(name.toLowerCase());
    nextColumnId += 1;
    for (const check of checksOf(column.constraints)) {
      const entry = newCheck(check, { ...table, checks, columns }, name);
      demands.push({ kind: "check", name: entry.name, position });
      checks.push(entry);
    }
  }
  if (nextColumnId === table.nextColumnId) return table;
  return {
    ...table,
    columns,
    checks: checks.length === table.checks.length ? table.checks : checks,
    nextColumnId,
  };
}

/** What rows that are there already read in a new column: its default, evaluated once. */
function withMissing(
  column: ColumnEntry,
  { altering, position }: { position: number; altering: Alterer },
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
      {
        position,
        hint: "add it without DEFAULT, UPDATE the rows, then ALTER COLUMN … SET DEFAULT",
      },
    );
  }
  const missing = defaultNow(column, compileDefaultSql(defaultSql, type), { altering, position });
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

function defaultNow(
  { name }: ColumnEntry,
  evaluate: (run: Run) => Value,
  { altering, position }: { position: number; altering: Alterer },
): Value {
  const { namespace, principal, world } = altering;
  const atSeq = world.store.visibleSeq;
  try {
    return evaluate(newRun(world, { principal, namespace, slots: [], atSeq }));
  } catch (error) {
    throw errorInCell(error, () => ({ column: name, source: "query" }), position);
  }
}

function dropColumn(
  table: TableEntry,
  { behaviour, column: named, ifExists }: TableAlterationDropColumn,
): TableEntry {
  const { name, _location } = named;
  const position = _location.start;
  const isMissing = table.columns.every((entry) => entry.name !== name) && !isSystemColumn(name);
  if (ifExists === true && isMissing) return table;
  const column = columnNamed(table, named, "alter");
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

function renameColumn(
  table: TableEntry,
  { column: from, to }: TableAlterationRenameColumn,
): TableEntry {
  const column = columnNamed(table, from, "alter");
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
  for (const part of partsOf(parseExpression(sql))) {
    const node: Partial<Expr> = part;
    if (node.type === "ref" && node.name === from.name && node._location !== undefined) {
      places.push(node._location);
    }
  }
  const quoted = `"${to.name.replaceAll('"', '""')}"`;
  return places
    .toSorted((left, right) => right.start - left.start)
    .reduce((text, { end, start }) => text.slice(0, start) + quoted + text.slice(end), sql);
}

function addConstraint(
  table: TableEntry,
  { constraint, _location }: TableAlterationAddConstraint,
  demands: RowDemand[],
): TableEntry {
  const position = _location.start;
  if (constraint.type === "primary key") {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot add a key to ${nameOf(table)}: the primary key of a table is fixed`,
      { position, hint: "create a table with that key and copy the rows with INSERT … SELECT" },
    );
  }
  checkConstraintNames([constraint]);
  const check = newCheck(constraint, table);
  demands.push({ kind: "check", name: check.name, position });
  return { ...table, checks: [...table.checks, check] };
}

function dropConstraint(
  table: TableEntry,
  { constraint: { name, _location }, ifExists }: TableAlterationDropConstraint,
): TableEntry {
  const position = _location.start;
  if (name === keyNameOf(table) && table.primaryKey.length > 0) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot drop constraint "${name}": it is the key of ${nameOf(table)}`,
      { position },
    );
  }
  const checks = table.checks.filter((check) => check.name !== name);
  if (checks.length < table.checks.length) return { ...table, checks };
  if (ifExists === true) return table;
  const near = nearestName(
    name,
    table.checks.map((check) => check.name),
  );
  throw new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find constraint "${name}" of ${nameOf(table)}`,
    near === undefined ? { position } : { position, hint: `did you mean "${near}"?` },
  );
}

/** A run for expressions that read no row and no caller. */
export function definitionRun(world: RunWorld): Run {
  return newRun(world, {
    principal: NO_PRINCIPAL,
    namespace: "default",
    slots: [],
    atSeq: world.store.visibleSeq,
  });
}
