/**
 * What INSERT, UPDATE and DELETE share: the table that is written, and the values of its columns.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { ColumnEntry, TableEntry } from "../../../catalog/mod.ts";
import type { Expr, Name, QNameAliased, SetStatement } from "../../parse/ast/ast.ts";
import type { Place, StatementBinding } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { castInColumn, castTo } from "../expression/casts.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { bindRowQuery } from "../expression/subquery_binder.ts";
import { tableResult } from "../query/from_binder.ts";
import type { FromResult } from "../query/join_binder.ts";
import { queriesAround, type SelectWorld } from "../query/select_world.ts";
import { storedNumber } from "../stored_numbers.ts";

/** A value for a column, or its default. */
export type BoundCell = BoundExpression | "default";

/** A new value for the column at a position of the table. */
export interface BoundSet {
  readonly position: number;
  readonly value: BoundCell;
}

export interface DmlWorld extends SelectWorld {
  /** limits.require_where */
  readonly requiresWhere: boolean;
}

/** A table that a statement writes, as a relation. */
export interface Target {
  readonly table: TableEntry;
  readonly from: FromResult;
  readonly columns: readonly BoundColumn[];
}

export function bindTarget(name: QNameAliased, { source, statement }: DmlWorld): Target {
  const namespace = name.schema ?? source.namespace;
  if (source.systemView(namespace, name.name) !== undefined) {
    throw new DatabaseError(
      "READ_ONLY_OBJECT",
      `Cannot write ${namespace}.${name.name}: it is a system view`,
      { position: name._location.start },
    );
  }
  if (source.view(name) !== undefined) {
    throw new DatabaseError(
      "READ_ONLY_OBJECT",
      `Cannot write ${namespace}.${name.name}: it is a view`,
      { position: name._location.start, hint: "write to its tables" },
    );
  }
  const table = source.table(name, name);
  statement.requirements.push({ action: "write", table });
  const from = tableResult(table, {
    alias: name.alias ?? name.name,
    isAliased: name.alias !== undefined,
    statement,
    node: name,
  });
  const [relation] = from.scope.relations;
  return {
    table,
    from,
    columns: [...(relation?.columns ?? []), ...(relation?.systemColumns ?? [])],
  };
}

export function bindCell(
  cell: Expr,
  { place, position, table }: { table: TableEntry; position: number; place: Place },
): BoundCell {
  if (cell.type === "default") return "default";
  const { statement } = place;
  return assigned(bindExpression(cell, place), { table, position, node: cell, statement });
}

interface Assignment {
  readonly table: TableEntry;
  readonly position: number;
  readonly node: Expr;
  readonly statement: StatementBinding;
}

/** A value as the column at a position takes it. @throws {DatabaseError} */
function assigned(
  bound: BoundExpression,
  { node, position, statement, table }: Assignment,
): BoundExpression {
  const column = table.columns[position];
  if (column === undefined) return bound;
  if (column.generatedAlways) throw generatedAlways(table, column, node._location.start);
  if (bound.type.kind === "file" && column.type.kind !== "file") {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot write a file to column "${column.name}" of ${nameOf(table)}: it is no FILE column`,
      { position: node._location.start },
    );
  }
  noteNumber(bound, column, statement);
  return castTo(bound, { to: column.type, mode: "assignment", node });
}

/** Notes a number that a timestamp column takes unchanged. */
export function noteNumber(
  value: BoundExpression,
  column: ColumnEntry,
  statement: StatementBinding,
): void {
  const stored = storedNumber(value, column);
  if (stored !== undefined) statement.storedNumbers.push(stored);
}

export function generatedAlways(
  table: TableEntry,
  { name }: ColumnEntry,
  position: number,
): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot write column "${name}" of ${nameOf(table)}: it is GENERATED ALWAYS`,
    { position, hint: "leave it out, or write DEFAULT" },
  );
}

export function bindSets(
  sets: readonly SetStatement[],
  table: TableEntry,
  place: Place,
): BoundSet[] {
  checkTwice(sets.flatMap((set) => (set.type === "set" ? [set.column] : set.columns)));
  const { statement } = place;
  const cellPlace: Place = { ...place, allowsFiles: true };
  return sets.flatMap((set): BoundSet[] => {
    if (set.type === "set") {
      const position = settablePosition(table, set.column);
      const { value: node } = set;
      if (node.type === "default") return [{ position, value: "default" }];
      const bound = bindExpression(node, cellPlace);
      return [{ position, value: assignedBySet(bound, { table, position, node, statement }) }];
    }
    const positions = set.columns.map((column) => settablePosition(table, column));
    const values = bindRowQuery(set.select, { width: positions.length, place });
    return positions.map((position, i) => {
      const value = defined(values[i], "a row query has a value for each column");
      const target = { table, position, node: set.select, statement };
      return { position, value: assignedBySet(value, target) };
    });
  });
}

/** As {@linkcode assigned}, with the name of the column in what computing the value throws. */
function assignedBySet(bound: BoundExpression, target: Assignment): BoundExpression {
  const value = assigned(bound, target);
  const column = target.table.columns[target.position];
  return column === undefined ? value : castInColumn(value, { column: column.name, source: "set" });
}

/** The position of a column that may be assigned. @throws {DatabaseError} INVALID_OPERATION */
function settablePosition(table: TableEntry, column: Name): number {
  const position = positionOf(table, column);
  const columnId = table.columns[position]?.columnId ?? 0;
  if (!table.primaryKey.includes(columnId)) return position;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot change column "${column.name}" of ${nameOf(table)}: it is part of the primary key`,
    { position: column._location.start, hint: "delete the row and insert it anew" },
  );
}

export function placeIn(
  { scope }: FromResult,
  { clause, world }: { clause: string; world: DmlWorld },
): Place {
  return {
    statement: world.statement,
    scope,
    clause,
    sink: undefined,
    ...queriesAround(world),
  };
}

/**
 * Where a column stands that is written.
 * @throws {DatabaseError} COLUMN_NOT_FOUND, SYSTEM_COLUMN
 */
export function positionOf(table: TableEntry, name: Name): number {
  return table.columns.indexOf(columnNamed(table, name, "write"));
}

/**
 * A column that a statement writes or alters.
 * @throws {DatabaseError} COLUMN_NOT_FOUND, SYSTEM_COLUMN
 */
export function columnNamed(
  table: TableEntry,
  { name, _location }: Name,
  action: "write" | "alter",
): ColumnEntry {
  const column = table.columns.find((entry) => entry.name === name);
  if (column !== undefined) return column;
  const position = _location.start;
  if (isSystemColumn(name)) {
    const reason = action === "write" ? "the server assigns it" : "every table has it";
    throw new DatabaseError(
      "SYSTEM_COLUMN",
      `Cannot ${action} column "${name}" of ${nameOf(table)}: ${reason}`,
      { position },
    );
  }
  throw new DatabaseError("COLUMN_NOT_FOUND", `Cannot find column "${name}" in ${nameOf(table)}`, {
    position,
  });
}

/** Whether a column of this name is the server's own. */
export function isSystemColumn(name: string): boolean {
  return name === "_seq" || name === "_deleted";
}

export function checkTwice(names: readonly Name[]): void {
  const seen = new Set<string>();
  for (const { name, _location } of names) {
    if (seen.has(name)) {
      throw new DatabaseError("INVALID_QUERY", `Cannot assign column "${name}" twice`, {
        position: _location.start,
      });
    }
    seen.add(name);
  }
}

/** "namespace.table", as messages show it. */
export function nameOf(table: TableEntry): string {
  return `${table.namespace}.${table.name}`;
}

export function notUpdatable(
  table: TableEntry,
  what: string,
  node: { readonly _location: { readonly start: number } },
): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot run ${what} on ${nameOf(table)}: rows of a STREAM table are inserted and deleted only`,
    { position: node._location.start },
  );
}
