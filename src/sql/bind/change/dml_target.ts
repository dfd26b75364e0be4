/**
 * Binds the parts that INSERT, UPDATE and DELETE have in common: the target table and the values
 * for its columns.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { nearestName } from "../../../base/nearest_name.ts";
import {
  type ColumnEntry,
  shownColumnsOf,
  type TableEntry,
  type TriggerEvent,
} from "../../../catalog/mod.ts";
import { BIGINT, type DataType } from "../../../types/mod.ts";
import type {
  Expr,
  FromTable,
  Name,
  QNameAliased,
  SetStatement,
  TargetColumn,
} from "../../parse/ast/ast.ts";
import type { ExpressionContext, StatementBinding } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { castInColumn, castTo } from "../expression/casts.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { bindRowQuery } from "../expression/subquery_binder.ts";
import { refuseOnly } from "../only_tables.ts";
import { bindStoredView, tableResult } from "../query/from_binder.ts";
import type { FromResult } from "../query/join_binder.ts";
import { noteRows, storedRule } from "../query/row_rules.ts";
import { queriesAround, type SelectDeps, type ViewRelation } from "../query/select_deps.ts";
import { Scope } from "../scope.ts";
import { storedNumber } from "../stored_numbers.ts";
import { type PartAssignment, requireNoDefault, withAssignedParts } from "./assigned_parts.ts";
import { tableOfView } from "./triggered_view.ts";
import { boundView, type ViewOverTable, withValues, writtenView } from "./view_target.ts";

/** A value that a change assigns to a column, or the word DEFAULT. */
export type BoundCell = BoundExpression | "default";

/** A new value for the table column at the given position. */
export interface BoundSet {
  readonly position: number;
  readonly value: BoundCell;
}

export interface DmlDeps extends SelectDeps {
  /** The value of the setting `limits.require_where`. */
  readonly requiresWhere: boolean;
}

/** The target table of a statement as a relation. */
export interface Target {
  readonly table: TableEntry;
  readonly from: FromResult;
  /** The columns of the target table. */
  readonly columns: readonly BoundColumn[];
  /**
   * The table with the column names that the statement may use: the table's own names, or the
   * names in the view through which the statement writes. A view may show a column under several
   * names.
   */
  readonly named: TableEntry;
  /** The positions of the columns that an INSERT without a column list fills, in order. */
  readonly order: readonly number[];
  /**
   * The view through which the statement names the target table; absent if it names the table
   * itself.
   */
  readonly view?: TargetView;
}

/** The view through which a statement names its target. */
export interface TargetView extends ViewOverTable {
  readonly relation: ViewRelation;
  /**
   * The view whose triggers take the place of the change. The target table then represents this
   * view; see `triggered_view.ts`.
   */
  readonly triggered: ViewRelation | undefined;
}

/** How a statement changes its target. */
export interface TargetChange {
  /** The event that fires the triggers of the target; absent for MERGE. */
  readonly event?: TriggerEvent;
  /** The commands whose policies must permit the rows that the statement finds in the table. */
  readonly commands: Parameters<typeof storedRule>[1];
}

/** Binds the target table. */
export function bindTarget(name: QNameAliased, change: TargetChange, deps: DmlDeps): Target {
  const { source, statement } = deps;
  const namespace = name.schema ?? source.namespace;
  if (source.systemView(namespace, name.name) !== undefined) {
    throw new DatabaseError(
      "READ_ONLY_OBJECT",
      `Cannot write to ${namespace}.${name.name}: it is a system view`,
      { position: name._location.start },
    );
  }
  const relation = source.view(name);
  refuseOnly(name, relation?.entry.partition?.partitioned);
  if (relation !== undefined) return bindViewTarget(relation, { change, deps, name });
  const table = source.table(name, name);
  refuseOnly(name, table.partitioned);
  if (name.isRefresh !== true) refuseMaterializedTarget(table, name);
  statement.requirements.push({ action: "write", table });
  noteRows(table, deps);
  const from = tableResult(table, {
    alias: name.alias ?? name.name,
    isAliased: name.alias !== undefined,
    partsOf: (tableId) => deps.source.partsOf(tableId),
    ruleOf: (columns) => storedRule({ table, columns, node: name }, change.commands, deps),
    statement,
    node: name,
  });
  return {
    table,
    from,
    columns: columnsOf(from),
    named: table,
    order: shownColumnsOf(table).map((_, position) => position),
  };
}

/**
 * Refuses to change the rows of a materialized view directly.
 *
 * @throws {DatabaseError} READ_ONLY_OBJECT
 */
function refuseMaterializedTarget(
  table: TableEntry,
  node: { readonly _location: { readonly start: number } },
): void {
  if (table.materialized === undefined) return;
  throw new DatabaseError(
    "READ_ONLY_OBJECT",
    `Cannot write to ${nameOf(table)}: it is a materialized view`,
    {
      position: node._location.start,
      hint: `to update its rows, run REFRESH MATERIALIZED VIEW ${nameOf(table)}`,
    },
  );
}

function columnsOf({ scope }: FromResult): readonly BoundColumn[] {
  const [relation] = scope.relations;
  return [...(relation?.columns ?? []), ...(relation?.systemColumns ?? [])];
}

/** The view that a statement names as its target, and how the statement changes it. */
interface ViewTargetOptions {
  readonly name: QNameAliased;
  readonly change: TargetChange;
  readonly deps: DmlDeps;
}

/** Binds the table of a view as the target, with the columns and conditions of the view. */
function bindViewTarget(relation: ViewRelation, options: ViewTargetOptions): Target {
  const { change, deps, name } = options;
  const { table, triggered } = writtenView(relation, name, { deps, event: change.event });
  const { statement } = deps;
  const [namespace = ""] = relation.name.split(".");
  const { viewOwner } = deps.rights;
  const { ownRights } = relation;
  const read = { action: "read-view", name: relation.name, namespace } as const;
  statement.requirements.push({ ...read, ownRights, viewOwner });
  if (triggered !== undefined) return bindTriggered(relation, triggered, options);
  statement.requirements.push({ action: "write", table });
  noteRows(table, deps);
  const within = { deps, node: name, isCascaded: false };
  let view: ViewOverTable = {
    columns: [],
    values: new Map(),
    conditions: [],
    defaults: new Map(),
  };
  const from = tableResult(table, {
    alias: name.alias ?? name.name,
    isAliased: name.alias !== undefined,
    partsOf: (tableId) => deps.source.partsOf(tableId),
    ruleOf: (columns) => {
      view = boundView(relation, columns, within);
      return storedRule({ table, columns, node: name }, change.commands, deps);
    },
    statement,
    node: name,
  });
  const target = { ...view, relation, triggered };
  return shownTarget(target, { from, table, name, columns: columnsOf(from) });
}

/**
 * Binds a view whose triggers take the place of the change, with the columns and conditions of the
 * view that the statement names.
 */
function bindTriggered(
  relation: ViewRelation,
  triggered: ViewRelation,
  { deps, name }: ViewTargetOptions,
): Target {
  const whole = { ...triggered, shown: undefined };
  const item: FromTable = { type: "table", name, _location: name._location };
  const from = bindStoredView(whole, item, deps);
  const base = columnsOf(from);
  const view = boundView(relation, base, { deps, node: name, isCascaded: false, triggered });
  // The layout of a changed row includes the sequence number that rows of tables have.
  const seq = deps.statement.newColumn({ name: "_seq", type: BIGINT });
  const columns = [...base, seq];
  const table = tableOfView(triggered.entry, base);
  return shownTarget({ ...view, relation, triggered }, { from, table, name, columns });
}

/** Returns a table in which the DEFAULTs of a view take the place of the table's own. */
function withDefaults(
  table: TableEntry,
  defaults: ViewOverTable["defaults"],
  bound: readonly BoundColumn[],
): TableEntry {
  if (defaults.size === 0) return table;
  const columns = table.columns.map((column, position) => {
    const defaultSql = defaults.get(bound[position]?.id ?? -1);
    return defaultSql === undefined || column.generatedAlways ? column : { ...column, defaultSql };
  });
  return { ...table, columns };
}

/** Returns a target with the columns of the view that the statement names. */
function shownTarget(
  view: TargetView,
  {
    columns,
    from,
    name,
    table: stored,
  }: Pick<Target, "columns" | "from" | "table"> & { readonly name: QNameAliased },
): Target {
  const { relation } = view;
  const table = withDefaults(stored, view.defaults, columns);
  const [namespace = ""] = relation.name.split(".");
  const writable = view.columns.map(({ id, origin }) =>
    table.columns.findIndex(({ columnId }, i) =>
      origin === undefined ? columns[i]?.id === id : columnId === origin.columnId,
    ),
  );
  const scope = new Scope([
    {
      alias: name.alias ?? name.name,
      namespace: name.alias === undefined ? namespace : undefined,
      columns: view.columns,
      systemColumns: [],
      ...(relation.partition !== undefined && { tableOid: from.scope.relations[0]?.tableOid }),
    },
  ]);
  return {
    table,
    from: { ...from, scope },
    columns,
    named: {
      ...table,
      columns: view.columns.flatMap(({ name: shown }, i): ColumnEntry[] => {
        const column = table.columns[writable[i] ?? -1];
        return column === undefined ? [] : [{ ...column, name: shown }];
      }),
    },
    order: writable,
    view,
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

/**
 * Converts a value to the type of the column to which it is assigned.
 * @throws {DatabaseError}
 */
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
      `Cannot write a file to column "${column.name}" of ${nameOf(table)}: the type of the ` +
        "column is not FILE",
      { position: node._location.start },
    );
  }
  noteNumber(bound, column, statement);
  return castTo(bound, { to: column.type, mode: "assignment", node });
}

/** Records that a number is stored unconverted in a timestamp column. */
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
    `Cannot write to column "${name}" of ${nameOf(table)}: it is GENERATED ALWAYS`,
    {
      position,
      hint: isIdentity
        ? "omit the column, or write DEFAULT; to store the given value anyway, use INSERT … " +
          "OVERRIDING SYSTEM VALUE"
        : "omit the column, or write DEFAULT",
    },
  );
}

/**
 * Binds the assignments of SET. Setting a key column to itself does not count as changing the key.
 *
 * @param own.columns The columns with the row's current values.
 */
export function bindSets(
  sets: readonly SetStatement[],
  {
    columns,
    named,
    table,
    view,
  }: Pick<Target, "named" | "table" | "view"> & { columns: readonly BoundColumn[] },
  context: ExpressionContext,
): BoundSet[] {
  checkAssigned(targetsOfSets(sets), { named, view });
  const { statement } = context;
  const cellPlace: ExpressionContext = { ...context, allowsFiles: true };
  const parts = new Map<string, PartAssignment[]>();
  const assignPart = (assignment: PartAssignment): void => {
    const { column } = assignment;
    requireAssignable(table, settablePosition({ named, table }, column), column);
    const assignments = parts.get(column.name) ?? [];
    assignments.push(assignment);
    parts.set(column.name, assignments);
  };
  const whole = sets.flatMap((set): BoundSet[] => {
    if (set.type === "set") {
      const { value: node, column } = set;
      if (column.part !== undefined) {
        requireNoDefault(column, node);
        assignPart({ column, valueAs: (to) => bindAssigned(node, to, context) });
        return [];
      }
      const isKept = isKey(named, column) && node.type === "ref";
      if (isKept) {
        const { columnId } = columnNamed(named, set.column, "write");
        if (isColumn(bindExpression(node, cellPlace), columnId, columns)) return [];
      }
      const position = settablePosition({ named, table }, set.column);
      if (node.type === "default") return [{ position, value: "default" }];
      const bound = bindExpression(node, cellPlace);
      return [{ position, value: assignedBySet(bound, { table, position, node, statement }) }];
    }
    const { columns: assignedTo, select: node } = set;
    const values = bindRowQuery(node, { width: assignedTo.length, context });
    return assignedTo.flatMap((column, i): BoundSet[] => {
      const value = defined(values[i], "row assignment: too few values");
      if (column.part !== undefined) {
        assignPart({ column, valueAs: (to) => castTo(value, { to, mode: "assignment", node }) });
        return [];
      }
      const position = settablePosition({ named, table }, column);
      return [{ position, value: assignedBySet(value, { table, position, node, statement }) }];
    });
  });
  const ofParts = [...parts.values()].flatMap((assignments): BoundSet[] => {
    const [first] = assignments;
    if (first === undefined) return [];
    const before = targetColumn(context, first.column);
    const value = withAssignedParts(before, assignments, context);
    const position = positionOf(table, first.column, named);
    const column = table.columns[position]?.name ?? "";
    return [{ position, value: castInColumn(value, { column, source: "set" }) }];
  });
  const all = [...whole, ...ofParts];
  if (view === undefined) return all;
  const positions = all.map(({ position }) => position);
  for (const node of targetsOfSets(sets)) checkShownTwice({ named, table }, positions, node);
  return all.map(({ position, value }) => ({
    position,
    value: value === "default" ? value : withValues(value, view.values),
  }));
}

/** Requires that all columns can be written, and that none is assigned twice. */
function checkAssigned(
  columns: readonly TargetColumn[],
  target: Parameters<typeof requireStored>[0],
): void {
  for (const column of columns) requireStored(target, column);
  checkTwice(assignedColumns(columns));
}

function targetsOfSets(sets: readonly SetStatement[]): readonly TargetColumn[] {
  return sets.flatMap((set) => (set.type === "set columns" ? set.columns : [set.column]));
}

/** Lists the assigned columns. A column that is assigned in parts is listed once. */
export function assignedColumns(targets: readonly TargetColumn[]): TargetColumn[] {
  const inParts = new Map<string, TargetColumn>();
  for (const column of targets) if (column.part !== undefined) inParts.set(column.name, column);
  return [...targets.filter(({ part }) => part === undefined), ...inParts.values()];
}

/** Binds an assigned value and casts it to the type of its target column. */
export function bindAssigned(
  node: Expr,
  to: DataType,
  context: ExpressionContext,
): BoundExpression {
  return castTo(bindExpression(node, context), { to, mode: "assignment", node });
}

/**
 * Refuses to write a column that the view computes. @throws {DatabaseError} INVALID_OPERATION
 */
export function requireStored(
  { named, view }: { readonly named: TableEntry; readonly view?: TargetView | undefined },
  { _location, name }: Name,
): void {
  if (view === undefined || named.columns.some((column) => column.name === name)) return;
  if (view.columns.some((column) => column.name === name)) {
    throw computedColumn(view, name, _location.start);
  }
}

/** Returns the error for writing a column that a view computes. */
export function computedColumn(
  { relation }: TargetView,
  name: string,
  position: number,
): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot write to column "${name}" of view ${relation.name}: the view computes this column`,
    {
      position,
      hint: "write only the columns that come directly from the table",
      sqlstate: "0A000",
    },
  );
}

/** Refuses to assign to part of a generated column. @throws {DatabaseError} INVALID_OPERATION */
export function requireAssignable(table: TableEntry, position: number, { _location }: Name): void {
  const column = table.columns[position];
  if (column?.generatedAlways === true) throw generatedAlways(table, column, _location.start);
}

/** Returns a column of the row being changed. The target is the first relation in scope. */
function targetColumn({ scope }: ExpressionContext, { name }: Name): BoundExpression {
  const column = scope.relations[0]?.columns.find((each) => each.name === name);
  return columnValue(defined(column, "change binder: column is missing from the target relation"));
}

function isKey(table: TableEntry, { name }: Name): boolean {
  const column = table.columns.find((entry) => entry.name === name);
  return column !== undefined && table.primaryKey.includes(column.columnId);
}

/** Whether an expression is one of `columns` and reads the table column with the given id. */
function isColumn(
  bound: BoundExpression,
  columnId: number,
  columns: readonly BoundColumn[],
): boolean {
  if (bound.kind !== "column" || bound.column.origin?.columnId !== columnId) return false;
  return columns.some(({ id }) => id === bound.column.id);
}

/**
 * Converts a value like {@linkcode assigned}. Errors raised while the value is computed name the
 * column.
 */
function assignedBySet(bound: BoundExpression, target: ColumnAssignment): BoundExpression {
  const value = assigned(bound, target);
  const column = target.table.columns[target.position];
  return column === undefined ? value : castInColumn(value, { column: column.name, source: "set" });
}

/**
 * Returns the position of a column that may be assigned. Key columns of a table with files may not
 * be assigned, because the files of a row are listed under its primary key.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
function settablePosition(
  { named, table }: Pick<Target, "named" | "table">,
  column: TargetColumn,
): number {
  const position = positionOf(table, column, named);
  const file = table.columns.find(({ type }) => type.kind === "file");
  if (file === undefined || !isKey(named, column)) return position;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot change column "${column.name}" of ${nameOf(table)}: it is part of the primary key, ` +
      `which identifies the files in column "${file.name}"`,
    {
      position: column._location.start,
      hint: "insert a row with the new key and upload the file again, then delete the old row",
    },
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
 * Returns the table position of a column to be written.
 *
 * @param named The table with the column names that the statement may use.
 * @throws {DatabaseError} COLUMN_NOT_FOUND, SYSTEM_COLUMN
 */
export function positionOf(
  table: TableEntry,
  name: TargetColumn,
  named: TableEntry = table,
): number {
  const { columnId } = columnNamed(named, name, "write");
  return table.columns.findIndex((column) => column.columnId === columnId);
}

/**
 * Returns a column to be written or altered.
 * @throws {DatabaseError} COLUMN_NOT_FOUND, SYSTEM_COLUMN
 */
export function columnNamed(
  table: TableEntry,
  { name, part, _location }: TargetColumn,
  action: "write" | "alter",
): ColumnEntry {
  const column = table.columns.find((entry) => entry.name === name);
  if (column !== undefined && column.isHidden !== true) return column;
  const position = _location.start;
  if (column !== undefined || isSystemColumn(name)) {
    const isEverywhere = action === "alter" && column === undefined;
    const reason = isEverywhere
      ? "every table has a system column with this name"
      : "only the server assigns values to it";
    throw new DatabaseError(
      "SYSTEM_COLUMN",
      `Cannot ${action} column "${name}" of ${nameOf(table)}: ${reason}`,
      { position },
    );
  }
  const [step] = part ?? [];
  const near = nearestName(
    name,
    shownColumnsOf(table).map((each) => each.name),
  );
  const hint =
    step?.type === "field step"
      ? `if "${step.name}" is a column, write it without the name of its table`
      : near !== undefined
        ? `did you mean "${near}"?`
        : undefined;
  throw new DatabaseError("COLUMN_NOT_FOUND", `Cannot find column "${name}" in ${nameOf(table)}`, {
    position,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** Whether the server itself maintains the column with this name. */
export function isSystemColumn(name: string): boolean {
  return name === "_seq" || name === "_deleted";
}

export function checkTwice(names: readonly Name[]): void {
  const seen = new Set<string>();
  for (const each of names) {
    if (seen.has(each.name)) throw assignedTwice(each.name, each);
    seen.add(each.name);
  }
}

/**
 * Refuses a statement that assigns two values to one column of the table, which is possible if a
 * view shows the column under two names.
 */
export function checkShownTwice(
  { named, table }: Pick<Target, "named" | "table">,
  positions: readonly number[],
  node: { readonly _location: { readonly start: number } },
): void {
  const twice = positions.find((position, at) => positions.indexOf(position) !== at);
  if (twice === undefined) return;
  const columnId = table.columns[twice]?.columnId;
  const shown = named.columns.findLast((column) => column.columnId === columnId);
  throw assignedTwice(shown?.name ?? "", node);
}

function assignedTwice(
  column: string,
  { _location }: { readonly _location: { readonly start: number } },
): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot assign to column "${column}" twice in the same statement`,
    {
      position: _location.start,
      hint: "assign to each column only once",
    },
  );
}

/** Returns "namespace.table", the name shown in messages. */
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
    `Cannot run ${what} on ${nameOf(table)}: rows in a STREAM table can only be inserted and ` +
      "deleted",
    {
      position: node._location.start,
      hint: "insert a row with the new values, or use a USER or SHARED table instead",
    },
  );
}
