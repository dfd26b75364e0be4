/**
 * Binds INSERT: determines the target column and the cast of each value.
 *
 * Without a column list, the width of the source determines which columns are filled, and
 * therefore the type to which each value is cast. A source is therefore bound in two steps.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type ColumnEntry, declaredKeyOf, type TableEntry } from "../../../catalog/mod.ts";
import { type DataType, isNumeric, TEXT } from "../../../types/mod.ts";
import { isTableFunction } from "../../functions/table/table_functions.ts";
import type {
  AstNode,
  CopySettings,
  CopySourceStatement,
  Expr,
  ExprRef,
  InsertStatement,
  LiteralValuesStatement,
  OnConflictAction,
  SelectStatement,
  SetColumn,
  TargetColumn,
  ValuesStatement,
} from "../../parse/ast/ast.ts";
import { LiteralCell } from "../../parse/ast/ast.ts";
import { holdsQuery } from "../../parse/ast/query_nodes.ts";
import { directPartsOf, partsOf } from "../../parse/ast/tree_parts.ts";
import { literalPosition } from "../../parse/text/literal_list.ts";
import { literalValuesToRows } from "../../parse/text/literal_nodes.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundSelect } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { selectFromQuery } from "../bound_nodes.ts";
import { castInColumn, castTo } from "../expression/casts.ts";
import { bindInSteps } from "../query/select_binder.ts";
import { queriesAround } from "../query/select_deps.ts";
import { Scope } from "../scope.ts";
import { hasSubquery } from "../walk.ts";
import { requireNoDefault } from "./assigned_parts.ts";
import { type BoundConflict, bindConflict } from "./conflict_binder.ts";
import {
  assignedColumns,
  type BoundCell,
  bindAssigned,
  bindCell,
  bindTarget,
  checkShownTwice,
  checkTwice,
  computedColumn,
  type DmlDeps,
  generatedAlways,
  nameOf,
  noteNumber,
  notUpdatable,
  positionOf,
  requireStored,
  type Target,
} from "./dml_target.ts";
import { type GivenCell, joinedParts } from "./inserted_parts.ts";
import { tableWithDefaults } from "./partition_defaults.ts";
import { type BoundReturning, bindReturning } from "./returning_binder.ts";
import { type BoundGuard, bindGuard } from "./row_guard.ts";

/**
 * The number of rows bound in one step. A row with a few expressions takes about a dozen
 * microseconds.
 */
const ROWS_PER_STEP = 16;

export type InsertSource =
  | {
      readonly kind: "rows";
      readonly rows: readonly (readonly BoundCell[])[];
      readonly holdsQuery: boolean;
    }
  | { readonly kind: "literals"; readonly literals: LiteralValuesStatement }
  /** The rows of a COPY, which are sent with the request. */
  | { readonly kind: "copy"; readonly options: CopySettings }
  /** The rows of a query whose outputs are already cast to the types of the target columns. */
  | { readonly kind: "query"; readonly query: BoundSelect };

export interface BoundInsert {
  readonly kind: "insert";
  readonly table: TableEntry;
  /** The table positions of the columns that the source fills, in source order. */
  readonly targets: readonly number[];
  readonly source: InsertSource;
  readonly conflict: BoundConflict | undefined;
  readonly guard: BoundGuard | undefined;
  readonly returning: BoundReturning | undefined;
}

/**
 * Binds an INSERT. The generator yields after every few rows, because binding a long list would
 * exceed a time slice.
 */
export function* bindInsert(insert: InsertStatement, deps: DmlDeps): Generator<void, BoundInsert> {
  const target = bindTarget(insert.into, { event: "insert", commands: [] }, deps);
  const { named, table } = target;
  if (table.kind === "stream" && insert.onConflict !== undefined) {
    throw notUpdatable(table, "ON CONFLICT", insert);
  }
  const { columns } = insert;
  for (const column of columns ?? []) requireStored(target, column);
  const listed = columns?.map((name) => positionOf(table, name, named));
  const assignedOnce = columns && assignedColumns(columns);
  checkTwice(assignedOnce ?? []);
  const given = insert.insert;
  if (given.type === "copy source") return bindCopy(insert, given, { target, deps });
  const source = yield* bindSource(given, deps);
  const { width } = source;
  const targets = listed ?? target.order.slice(0, width);
  if (target.view !== undefined && targets.includes(-1)) {
    const name = target.view.columns[targets.indexOf(-1)]?.name ?? "";
    throw computedColumn(target.view, name, given._location.start);
  }
  if (width !== targets.length) {
    const more = width > targets.length ? "more" : "fewer";
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot insert into ${nameOf(table)}: there are ${more} values (${width}) than columns ` +
        `(${targets.length})`,
      { position: insert.insert._location.start, hint: "write one value per column" },
    );
  }
  const positions = assignedOnce?.map((name) => positionOf(table, name, named)) ?? targets;
  checkShownTwice(target, positions, given);
  const { overriding } = insert;
  const filled: Filled = { table, targets, overriding, parts: partedColumns(columns) };
  const placed = source.into(filled);
  return {
    kind: "insert",
    table: tableWithDefaults(target),
    targets: [...new Set(targetsOf(insert, filled))],
    source: "next" in placed ? yield* placed : placed,
    conflict: conflictIn(insert, target, deps),
    guard: guardOf(insert, target, deps),
    returning: bindReturning(insert.returning, { target, from: target.from, deps }),
  };
}

/**
 * Binds ON CONFLICT. Rows for triggers on a view have no key, so DO NOTHING has no effect on them.
 */
function conflictIn(
  { onConflict }: InsertStatement,
  target: Target,
  deps: DmlDeps,
): BoundConflict | undefined {
  if (onConflict === undefined) return undefined;
  const isWithoutKey = target.view?.triggered !== undefined && onConflict.on === undefined;
  if (isWithoutKey && onConflict.do === "do nothing") return undefined;
  return bindConflict(onConflict, target, deps);
}

function guardOf(
  { insert, into, onConflict, returning }: InsertStatement,
  { table, view }: Target,
  deps: DmlDeps,
): BoundGuard | undefined {
  const conflictOfCopy = insert.type === "copy source" ? insert.options.onConflict : undefined;
  const action = onConflict?.do;
  const updates = conflictOfCopy === "update" || (action !== undefined && action !== "do nothing");
  const returns = returning !== undefined;
  const change = { table, node: into, inserts: true, updates, replaces: updates, returns };
  return bindGuard({ ...change, view }, deps);
}

/**
 * Binds COPY FROM. It may write to every column that is not computed, because a dump contains the
 * values of all such columns.
 */
function bindCopy(
  insert: InsertStatement,
  { options }: CopySourceStatement,
  { deps, target }: { target: Target; deps: DmlDeps },
): BoundInsert {
  const { columns, into, _location } = insert;
  const { table } = target;
  const { view } = target;
  const isCopied = view?.triggered !== undefined || view?.relation.partition !== undefined;
  if (view !== undefined && !isCopied) throw notCopied(view.relation.name, into);
  const targets = columns?.map((name) => positionOf(table, name)) ?? target.order;
  const forced = [options.forceNotNull, options.forceNull, options.forceQuote];
  for (const name of forced.flatMap((named) => (named === "all" ? [] : named))) {
    if (targets.includes(positionOf(table, name))) continue;
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot copy into ${nameOf(table)}: an option names column "${name.name}", which is not ` +
        "in the column list",
      { position: name._location.start, hint: "add the column to the column list" },
    );
  }
  const files = targets.find((position) => table.columns[position]?.type.kind === "file");
  if (files !== undefined && columns !== undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot copy into column "${table.columns[files]?.name}": COPY cannot upload files`,
      {
        position: into._location.start,
        hint: "omit the column, and set it afterwards with UPDATE",
      },
    );
  }
  const computed = targets.flatMap((position) => table.columns[position] ?? []).find(isComputed);
  if (computed !== undefined && columns !== undefined) {
    throw generatedAlways(table, computed, into._location.start);
  }
  const written = targets.filter((position) => {
    const column = table.columns[position];
    return column !== undefined && !isComputed(column);
  });
  const action = conflictOf(options, { table, targets: written, _location });
  return {
    kind: "insert",
    table: tableWithDefaults(target),
    targets: columns === undefined ? written.filter((at) => !isFile(table, at)) : written,
    source: { kind: "copy", options },
    conflict: action === undefined ? undefined : bindConflict(action, target, deps),
    guard: guardOf(insert, target, deps),
    returning: undefined,
  };
}

function notCopied(view: string, { _location }: AstNode): DatabaseError {
  return new DatabaseError(
    "READ_ONLY_OBJECT",
    `Cannot copy into view ${view}: COPY can write only to tables and to views with INSTEAD OF ` +
      "triggers",
    {
      position: _location.start,
      hint: "copy into the table that the view reads, or create an INSTEAD OF INSERT trigger",
    },
  );
}

function isComputed({ generatedSql }: ColumnEntry): boolean {
  return generatedSql !== undefined;
}

function isFile(table: TableEntry, position: number): boolean {
  return table.columns[position]?.type.kind === "file";
}

/**
 * Returns the ON CONFLICT clause that tells COPY what to do with rows whose key already exists. An
 * update sets every copied column.
 */
function conflictOf(
  { onConflict }: CopySettings,
  {
    _location,
    table,
    targets,
  }: Pick<Filled, "table" | "targets"> & { readonly _location: InsertStatement["_location"] },
): OnConflictAction | undefined {
  if (onConflict === "error") return undefined;
  const keyIds = declaredKeyOf(table)?.columnIds ?? [];
  if (keyIds.length === 0 && onConflict === "update") {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot copy into ${nameOf(table)} with ON_CONFLICT update: the table has no primary key`,
      {
        position: _location.start,
        hint: "add a primary key with ALTER TABLE … ADD PRIMARY KEY, or omit ON_CONFLICT",
      },
    );
  }
  const key = table.columns.filter(({ columnId }) => keyIds.includes(columnId));
  const copied = targets.flatMap((position) => table.columns[position] ?? []);
  const sets = copied.flatMap((column): SetColumn[] => {
    if (key.includes(column)) return [];
    const { name } = column;
    const excluded = { name: "excluded", _location };
    const value: Expr = { type: "ref", table: excluded, name, _location };
    return [{ type: "set", column: { name, _location }, value, _location }];
  });
  if (onConflict === "nothing" || sets.length === 0) return { do: "do nothing", _location };
  const exprs = key.map(({ name }): ExprRef => ({ type: "ref", name, _location }));
  return { on: { type: "on expr", exprs, _location }, do: { sets }, _location };
}

/** The table positions of the columns that a source fills, in source order. */
interface Filled {
  readonly table: TableEntry;
  readonly targets: readonly number[];
  readonly overriding: InsertStatement["overriding"];
  /** The columns listed in the INSERT; set if the statement assigns to part of any of them. */
  readonly parts: readonly TargetColumn[] | undefined;
}

function partedColumns(columns: readonly TargetColumn[] | undefined): Filled["parts"] {
  return columns?.some(({ part }) => part !== undefined) === true ? columns : undefined;
}

/**
 * Returns the target columns, except identity columns whose values are discarded by OVERRIDING
 * USER VALUE.
 */
function targetsOf({ insert }: InsertStatement, filled: Filled): readonly number[] {
  const isList = insert.type === "values" || insert.type === "literal values";
  const isQuery = !isList || ("orderBy" in insert && insert.orderBy !== undefined);
  if (!isQuery) return filled.targets;
  return filled.targets.filter((position) => !isOverridden(filled, position));
}

/**
 * Whether OVERRIDING USER VALUE replaces an identity column's given values with generated numbers.
 */
function isOverridden({ overriding, table }: Filled, position: number): boolean {
  return overriding === "user" && table.columns[position]?.identity !== undefined;
}

/** Whether an INSERT may not supply an explicit value for the column. */
function isRefused({ overriding }: Filled, column: ColumnEntry | undefined): boolean {
  if (column?.generatedAlways !== true) return false;
  return overriding !== "system" || column.generatedSql !== undefined;
}

/** The source of an INSERT before its target columns are known. */
interface UnplacedSource {
  /** The number of values that each row of the source must have. */
  readonly width: number;
  into(filled: Filled): InsertSource | Generator<void, InsertSource>;
}

function* bindSource(
  insert: Exclude<InsertStatement["insert"], CopySourceStatement>,
  deps: DmlDeps,
): Generator<void, UnplacedSource> {
  switch (insert.type) {
    case "default values":
      return { width: 0, into: () => ({ kind: "rows", rows: [[]], holdsQuery: false }) };
    case "literal values":
      return {
        width: insert.columnCount,
        into: (filled) => {
          const isChanged =
            filled.parts !== undefined ||
            filled.targets.some((position) => isOverridden(filled, position));
          if (isChanged || !areCastable(insert, filled)) {
            return bindCells(literalValuesToRows(insert), filled, deps);
          }
          requireWritable(insert, filled);
          return { kind: "literals", literals: insert };
        },
      };
    case "values":
      // ORDER BY and LIMIT decide which rows are written, and in which order. Only a query
      // supports these clauses.
      if (insert.orderBy !== undefined || insert.limit !== undefined) {
        return yield* bindQuerySource(insert, deps);
      }
      if (givesRows(insert)) return yield* bindQuerySource(asSelect(insert), deps);
      return {
        width: insert.values[0]?.length ?? 0,
        into: (filled) => bindCells(insert, filled, deps),
      };
    default:
      return yield* bindQuerySource(insert, deps);
  }
}

function ownParts(part: object): readonly unknown[] {
  return holdsQuery(part) ? [] : directPartsOf(part);
}

/** Whether a single VALUES row calls a table function and may therefore yield several rows. */
function givesRows({ values }: ValuesStatement): boolean {
  if (values.length !== 1) return false;
  for (const part of partsOf(values, ownParts)) {
    const call: { readonly type?: unknown; readonly function?: { readonly name?: unknown } } = part;
    const name = call.type === "call" ? call.function?.name : undefined;
    if (typeof name === "string" && isTableFunction(name)) return true;
  }
  return false;
}

function asSelect({ _location, values }: ValuesStatement): SelectStatement {
  const columns = (values[0] ?? []).map((expr) => ({ expr, _location: expr._location }));
  return { type: "select", columns, _location };
}

function* bindQuerySource(node: SelectStatement, deps: DmlDeps): Generator<void, UnplacedSource> {
  const query = yield* bindInSteps(node, { ...deps, isOutermost: false, keepsUntyped: true });
  return {
    width: query.outputs.length,
    into: (filled) => ({ kind: "query", query: castOutputs(query, filled, { deps, node }) }),
  };
}

function* bindCells(
  { _location, values }: ValuesStatement,
  filled: Filled,
  deps: DmlDeps,
): Generator<void, InsertSource> {
  const { parts, table, targets } = filled;
  const context = valuesContext(deps);
  const rows: BoundCell[][] = [];
  let hasQuery = false;
  for (const row of values) {
    if (row.length !== targets.length) {
      throw new DatabaseError(
        "INVALID_QUERY",
        "Cannot insert the rows: they do not all have the same number of values",
        {
          position: _location.start,
          hint: "write the same number of values in every row; use DEFAULT for omitted values",
        },
      );
    }
    const wholeOf = (cell: Expr, position: number): BoundCell => {
      if (isOverridden(filled, position)) return "default";
      const isAllowed = !isRefused(filled, table.columns[position]);
      return bindCell(cell, { table, position, context, isAllowed });
    };
    const cells =
      parts === undefined
        ? row.map((cell, i) => wholeOf(cell, targets[i] ?? 0))
        : joinedParts(givenCells(row, filled, { wholeOf, context }), table, context);
    hasQuery ||= cells.some((cell) => cell !== "default" && hasSubquery(cell));
    rows.push(cells);
    if (rows.length % ROWS_PER_STEP !== 0) continue;
    context.statement.endStep();
    yield;
  }
  return { kind: "rows", rows, holdsQuery: hasQuery };
}

/** Whether all numbers and booleans in a VALUES list can be cast to the types of their columns. */
function areCastable(
  { columnCount, kinds }: LiteralValuesStatement,
  { table, targets }: Filled,
): boolean {
  for (const [column, position] of targets.entries()) {
    const type = table.columns[position]?.type ?? TEXT;
    const takesNumbers = isNumeric(type) || type.kind === "text";
    const takesBooleans = type.kind === "boolean" || type.kind === "text";
    for (let cell = column; cell < kinds.length; cell += columnCount) {
      const kind = kinds[cell];
      const isNumber = kind === LiteralCell.integer || kind === LiteralCell.numeric;
      if (isNumber && !takesNumbers) return false;
      const isTruth = kind === LiteralCell.true || kind === LiteralCell.false;
      if (isTruth && !takesBooleans) return false;
    }
  }
  return true;
}

/** Refuses literals for a GENERATED ALWAYS column, which accepts only DEFAULT. */
function requireWritable(literals: LiteralValuesStatement, filled: Filled): void {
  const { table, targets } = filled;
  const { columnCount, kinds } = literals;
  for (const [column, position] of targets.entries()) {
    const entry = table.columns[position];
    if (entry === undefined || !isRefused(filled, entry)) continue;
    for (let cell = column; cell < kinds.length; cell += columnCount) {
      if (kinds[cell] !== LiteralCell.default)
        throw generatedAlways(table, entry, literalPosition(literals, cell));
    }
  }
}

function castOutputs(
  query: BoundSelect,
  filled: Filled,
  { deps, node }: { readonly deps: DmlDeps; readonly node: Expr },
): BoundSelect {
  const { parts, table, targets } = filled;
  const { statement } = deps;
  // Casts inside DISTINCT or ORDER BY could change the result, so they are applied outside.
  const mustNest = query.distinct !== "none" || query.orderBy.length > 0;
  const source = mustNest ? selectFromQuery(query, statement) : query;
  const given = source.outputs.flatMap(({ expression }, i): GivenCell<BoundExpression>[] => {
    const position = targets[i] ?? 0;
    if (isOverridden(filled, position)) return [];
    const valueAs = (to: DataType): BoundExpression =>
      castTo(expression, { to, mode: "assignment", node });
    const whole = (): BoundExpression => {
      const column = table.columns[position];
      if (column === undefined) return expression;
      if (isRefused(filled, column)) throw generatedAlways(table, column, node._location.start);
      noteNumber(expression, column, statement);
      return castInColumn(valueAs(column.type), { column: column.name, source: "query" });
    };
    return [{ column: parts?.[i], position, whole, valueAs }];
  });
  const outputs = joinedParts(given, table, valuesContext(deps));
  return { ...source, outputs: outputs.map((expression) => ({ name: "", expression })) };
}

/** Returns the values of a row, each with the column or the part of a column that it fills. */
function givenCells(
  row: readonly Expr[],
  { parts, targets }: Filled,
  {
    context,
    wholeOf,
  }: {
    readonly context: ExpressionContext;
    readonly wholeOf: (cell: Expr, position: number) => BoundCell;
  },
): GivenCell<BoundCell>[] {
  return row.map((cell, i) => {
    const position = targets[i] ?? 0;
    const column = parts?.[i];
    if (column !== undefined) requireNoDefault(column, cell);
    const valueAs = (to: DataType): BoundExpression => bindAssigned(cell, to, context);
    return { column, position, whole: () => wholeOf(cell, position), valueAs };
  });
}

/** Returns the context in which the values of a change are bound. They cannot read columns. */
function valuesContext(deps: DmlDeps): ExpressionContext {
  return {
    statement: deps.statement,
    scope: new Scope([]),
    clause: "VALUES",
    sink: undefined,
    allowsFiles: true,
    ...queriesAround(deps),
  };
}
