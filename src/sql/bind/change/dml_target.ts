/**
 * Binds what INSERT, UPDATE and DELETE have in common: the target table, and the values for its
 * columns.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { ColumnEntry, TableEntry } from "../../../catalog/mod.ts";
import type { Expr, Name, QNameAliased, SetStatement } from "../../parse/ast/ast.ts";
import type { ExpressionContext, StatementBinding } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { castInColumn, castTo } from "../expression/casts.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { bindRowQuery } from "../expression/subquery_binder.ts";
import { tableResult } from "../query/from_binder.ts";
import type { FromResult } from "../query/join_binder.ts";
import { noteRows, storedRule } from "../query/row_rules.ts";
import { queriesAround, type SelectDeps } from "../query/select_deps.ts";
import { storedNumber } from "../stored_numbers.ts";
import { withAssignedPart } from "./assigned_parts.ts";

/** A value for a column, or its default. */
export type BoundCell = BoundExpression | "default";

/** A new value for the table column at the given position. */
export interface BoundSet {
  readonly position: number;
  readonly value: BoundCell;
}

export interface DmlDeps extends SelectDeps {
  /** The value of the setting limits.require_where. */
  readonly requiresWhere: boolean;
}

/** The target table of a statement, as a relation. */
export interface Target {
  readonly table: TableEntry;
  readonly from: FromResult;
  readonly columns: readonly BoundColumn[];
}

/**
 * Binds the target table. @param commands The commands whose policies must permit the rows that the
 * statement finds in it.
 */
export function bindTarget(
  name: QNameAliased,
  commands: Parameters<typeof storedRule>[1],
  deps: DmlDeps,
): Target {
  const { source, statement } = deps;
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
  noteRows(table, deps);
  const from = tableResult(table, {
    alias: name.alias ?? name.name,
    isAliased: name.alias !== undefined,
    ruleOf: (columns) => storedRule({ table, columns, node: name }, commands, deps),
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
  {
    context,
    ...target
  }: Pick<ColumnAssignment, "isAllowed" | "position" | "table"> & { context: ExpressionContext },
): BoundCell {
  if (cell.type === "default") return "default";
  const { statement } = context;
  return assigned(bindExpression(cell, context), { ...target, node: cell, statement });
}

interface ColumnAssignment {
  readonly table: TableEntry;
  readonly position: number;
  readonly node: Expr;
  readonly statement: StatementBinding;
  /** Whether OVERRIDING SYSTEM VALUE allows an explicit value for a generated column. */
  readonly isAllowed?: boolean;
}

/** Converts a value to the type of the column at a position. @throws {DatabaseError} */
function assigned(
  bound: BoundExpression,
  { isAllowed = false, node, position, statement, table }: ColumnAssignment,
): BoundExpression {
  const column = table.columns[position];
  if (column === undefined) return bound;
  if (column.generatedAlways && !isAllowed)
    throw generatedAlways(table, column, node._location.start);
  if (bound.type.kind === "file" && column.type.kind !== "file") {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot write a file to column "${column.name}" of ${nameOf(table)}: it is not a FILE column`,
      { position: node._location.start },
    );
  }
  noteNumber(bound, column, statement);
  return castTo(bound, { to: column.type, mode: "assignment", node });
}

/** Records a number that is stored unchanged in a timestamp column. */
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
  { generatedSql, name }: ColumnEntry,
  position: number,
): DatabaseError {
  const isIdentity = generatedSql === undefined;
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot write column "${name}" of ${nameOf(table)}: it is GENERATED ALWAYS`,
    {
      position,
      hint: isIdentity
        ? "omit it, or write DEFAULT; INSERT … OVERRIDING SYSTEM VALUE accepts the value"
        : "omit it, or write DEFAULT",
    },
  );
}

/**
 * Binds SET. A column that is set to itself stays unchanged, so this is allowed even for key
 * columns.
 *
 * @param own.columns The columns with the current values of the row.
 */
export function bindSets(
  sets: readonly SetStatement[],
  { columns, table }: { table: TableEntry; columns: readonly BoundColumn[] },
  context: ExpressionContext,
): BoundSet[] {
  checkTwice(assignedColumns(sets));
  const { statement } = context;
  const cellPlace: ExpressionContext = { ...context, allowsFiles: true };
  const parts = new Map<number, BoundExpression>();
  const whole = sets.flatMap((set): BoundSet[] => {
    if (set.type === "set") {
      const { value: node } = set;
      const isKept =
        set.subscripts === undefined && isKey(table, set.column) && node.type === "ref";
      if (isKept && namesItself(bindExpression(node, cellPlace), set.column, columns)) return [];
      const position = settablePosition(table, set.column);
      if (set.subscripts !== undefined) {
        const before = parts.get(position) ?? targetColumn(context, position);
        parts.set(position, withAssignedPart(before, set, context));
        return [];
      }
      if (node.type === "default") return [{ position, value: "default" }];
      const bound = bindExpression(node, cellPlace);
      return [{ position, value: assignedBySet(bound, { table, position, node, statement }) }];
    }
    const positions = set.columns.map((column) => settablePosition(table, column));
    const values = bindRowQuery(set.select, { width: positions.length, context });
    return positions.map((position, i) => {
      const value = defined(values[i], "a row query has a value for each column");
      const target = { table, position, node: set.select, statement };
      return { position, value: assignedBySet(value, target) };
    });
  });
  const ofParts = [...parts].map(([position, value]): BoundSet => {
    const column = defined(table.columns[position], "an assigned column exists").name;
    return { position, value: castInColumn(value, { column, source: "set" }) };
  });
  return [...whole, ...ofParts];
}

/** Lists the columns that are assigned. A column that is assigned in parts is listed once. */
function assignedColumns(sets: readonly SetStatement[]): Name[] {
  const inParts = new Map<string, Name>();
  const whole = sets.flatMap((set) => {
    if (set.type === "set columns") return set.columns;
    if (set.subscripts === undefined) return [set.column];
    inParts.set(set.column.name, set.column);
    return [];
  });
  return [...whole, ...inParts.values()];
}

/** Returns a column of the row that is changed. The target is the first relation in scope. */
function targetColumn({ scope }: ExpressionContext, position: number): BoundExpression {
  const column = scope.relations[0]?.columns[position];
  return columnValue(defined(column, "the target has the columns of its table"));
}

function isKey(table: TableEntry, { name }: Name): boolean {
  const column = table.columns.find((entry) => entry.name === name);
  return column !== undefined && table.primaryKey.includes(column.columnId);
}

function namesItself(
  bound: BoundExpression,
  { name }: Name,
  columns: readonly BoundColumn[],
): boolean {
  return bound.kind === "column" && bound.column.name === name && columns.includes(bound.column);
}

/**
 * Converts a value like {@linkcode assigned}, except that errors in computing the value also name
 * the column.
 */
function assignedBySet(bound: BoundExpression, target: ColumnAssignment): BoundExpression {
  const value = assigned(bound, target);
  const column = target.table.columns[target.position];
  return column === undefined ? value : castInColumn(value, { column: column.name, source: "set" });
}

/**
 * Returns the position of a column that may be assigned. @throws {DatabaseError} INVALID_OPERATION
 */
function settablePosition(table: TableEntry, column: Name): number {
  const position = positionOf(table, column);
  if (!isKey(table, column)) return position;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot change column "${column.name}" of ${nameOf(table)}: it is part of the primary key`,
    { position: column._location.start, hint: "delete the row and insert it again" },
  );
}

export function placeIn(
  { scope }: FromResult,
  { clause, deps }: { clause: string; deps: DmlDeps },
): ExpressionContext {
  return {
    statement: deps.statement,
    scope,
    clause,
    sink: undefined,
    ...queriesAround(deps),
  };
}

/**
 * Returns the position of a written column.
 * @throws {DatabaseError} COLUMN_NOT_FOUND, SYSTEM_COLUMN
 */
export function positionOf(table: TableEntry, name: Name): number {
  return table.columns.indexOf(columnNamed(table, name, "write"));
}

/**
 * Returns a column that a statement writes or alters.
 * @throws {DatabaseError} COLUMN_NOT_FOUND, SYSTEM_COLUMN
 */
export function columnNamed(
  table: TableEntry,
  { name, _location }: Name,
  action: "write" | "alter",
): ColumnEntry {
  const column = table.columns.find((entry) => entry.name === name);
  if (column !== undefined && column.isHidden !== true) return column;
  const position = _location.start;
  if (column !== undefined || isSystemColumn(name)) {
    const isEverywhere = action === "alter" && column === undefined;
    const reason = isEverywhere ? "every table has it" : "the server assigns it";
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

/** Whether a column name belongs to a column that the server maintains. */
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

/** Returns "namespace.table", as messages show it. */
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
    `Cannot run ${what} on ${nameOf(table)}: rows of a STREAM table can only be inserted and deleted`,
    { position: node._location.start },
  );
}
