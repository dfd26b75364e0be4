/**
 * INSERT, UPDATE and DELETE: which column each value goes to, with its cast.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../storage/mod.ts";
import { BOOLEAN, isNumeric, TEXT } from "../../types/mod.ts";
import type {
  DeleteStatement,
  Expr,
  From,
  InsertStatement,
  LiteralValuesStatement,
  SelectedColumn,
  UpdateStatement,
  ValuesStatement,
} from "../parse/ast.ts";
import { LiteralCell } from "../parse/ast.ts";
import { literalPosition } from "../parse/literal_list.ts";
import { literalValuesToRows } from "../parse/literal_nodes.ts";
import type { Place, StatementBinding } from "./binding.ts";
import type { BoundColumn, BoundExpression, BoundOutput, BoundSelect } from "./bound.ts";
import { castTo } from "./casts.ts";
import { type BoundConflict, bindConflict } from "./conflict_binder.ts";
import {
  type BoundCell,
  bindCell,
  bindSets,
  bindTarget,
  checkTwice,
  type DmlContext,
  generatedAlways,
  nameOf,
  placeIn,
  positionOf,
  type Target,
} from "./dml_target.ts";
import { bindCondition } from "./expression_binder.ts";
import { bindFrom } from "./from_binder.ts";
import { type FromResult, product } from "./join_binder.ts";
import { selectFromQuery } from "./query_walk.ts";
import { Scope } from "./scope.ts";
import { bindQuery, bindSelectedColumns } from "./select_binder.ts";
import { queriesAround } from "./select_context.ts";
import { columnIdsIn } from "./walk.ts";

export type InsertSource =
  | { readonly kind: "rows"; readonly rows: readonly (readonly BoundCell[])[] }
  | { readonly kind: "literals"; readonly literals: LiteralValuesStatement }
  /** Outputs are cast to the target columns already. */
  | { readonly kind: "query"; readonly query: BoundSelect };

export interface BoundInsert {
  readonly kind: "insert";
  readonly table: TableEntry;
  /** Table positions that the source fills, in its order. */
  readonly targets: readonly number[];
  readonly source: InsertSource;
  readonly conflict: BoundConflict | undefined;
  readonly returning: BoundReturning | undefined;
}

export interface BoundReturning {
  /**
   * The layout of a returned row: declared columns of the table, `_seq` and `_deleted`, then
   * `carried`.
   */
  readonly columns: readonly BoundColumn[];
  readonly outputs: readonly BoundOutput[];
  /** What the outputs read of the items of FROM or USING. */
  readonly carried: readonly BoundColumn[];
}

export interface BoundUpdate {
  readonly kind: "update";
  readonly table: TableEntry;
  /**
   * Yields the declared columns, `_seq`, one value for each set that is not DEFAULT, then what
   * RETURNING carries; no row of the table twice.
   */
  readonly rows: BoundSelect;
  readonly sets: readonly { readonly position: number; readonly isDefault: boolean }[];
  readonly returning: BoundReturning | undefined;
}

export interface BoundDelete {
  readonly kind: "delete";
  readonly table: TableEntry;
  /** Yields the declared columns, then what RETURNING carries; no row of the table twice. */
  readonly rows: BoundSelect;
  readonly returning: BoundReturning | undefined;
}

export function bindInsert(insert: InsertStatement, context: DmlContext): BoundInsert {
  const target = bindTarget(insert.into, context);
  const { table } = target;
  if (table.kind === "stream" && insert.onConflict !== undefined) {
    throw notUpdatable(table, "ON CONFLICT", insert);
  }
  const listed = insert.columns?.map((name) => positionOf(table, name));
  checkTwice(insert.columns ?? []);
  const source = bindSource(insert, context);
  const { width } = source;
  const targets = listed ?? table.columns.slice(0, width).map((_, position) => position);
  if (width !== targets.length) {
    const more = width > targets.length ? "more" : "fewer";
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot insert into ${nameOf(table)}: there are ${more} values (${width}) than columns (${targets.length})`,
      { position: insert.insert._location.start },
    );
  }
  return {
    kind: "insert",
    table,
    targets,
    source: source.into({ table, targets }),
    conflict:
      insert.onConflict === undefined
        ? undefined
        : bindConflict(insert.onConflict, target, context),
    returning: bindReturning(insert.returning, { target, from: target.from, context }),
  };
}

/** Table positions of the columns that a source fills, in its order. */
interface Filled {
  readonly table: TableEntry;
  readonly targets: readonly number[];
}

/** The source of an INSERT before it is known which columns it fills. */
interface UnplacedSource {
  /** Values in a row. */
  readonly width: number;
  into(filled: Filled): InsertSource;
}

function bindSource({ insert }: InsertStatement, context: DmlContext): UnplacedSource {
  switch (insert.type) {
    case "default values":
      return { width: 0, into: () => ({ kind: "rows", rows: [[]] }) };
    case "literal values":
      return {
        width: insert.columnCount,
        into: (filled) => {
          if (!areCastable(insert, filled)) {
            const rows = bindCells(literalValuesToRows(insert), filled, context);
            return { kind: "rows", rows };
          }
          requireWritable(insert, filled);
          return { kind: "literals", literals: insert };
        },
      };
    case "values":
      return {
        width: insert.values[0]?.length ?? 0,
        into: (filled) => ({ kind: "rows", rows: bindCells(insert, filled, context) }),
      };
    default: {
      const query = bindQuery(insert, { ...context, isOutermost: false, keepsUntyped: true });
      const { statement } = context;
      return {
        width: query.outputs.length,
        into: (filled) => ({
          kind: "query",
          query: castOutputs(query, { ...filled, statement, node: insert }),
        }),
      };
    }
  }
}

function bindCells(
  { _location, values }: ValuesStatement,
  { table, targets }: Filled,
  context: DmlContext,
): BoundCell[][] {
  const place: Place = {
    statement: context.statement,
    scope: new Scope([]),
    clause: "VALUES",
    sink: undefined,
    allowsFiles: true,
    ...queriesAround(context),
  };
  return values.map((row) => {
    if (row.length !== targets.length) {
      throw new DatabaseError("INVALID_QUERY", "Cannot insert: the rows differ in length", {
        position: _location.start,
      });
    }
    return row.map((cell, i) => bindCell(cell, { table, position: targets[i] ?? 0, place }));
  });
}

/** Whether numbers and booleans stand only where there is a cast for every one of them. */
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

/** GENERATED ALWAYS takes DEFAULT only. */
function requireWritable(literals: LiteralValuesStatement, { table, targets }: Filled): void {
  const { columnCount, kinds } = literals;
  for (const [column, position] of targets.entries()) {
    const entry = table.columns[position];
    if (entry?.generatedAlways !== true) continue;
    for (let cell = column; cell < kinds.length; cell += columnCount) {
      if (kinds[cell] !== LiteralCell.default)
        throw generatedAlways(table, entry, literalPosition(literals, cell));
    }
  }
}

function castOutputs(
  query: BoundSelect,
  { node, statement, table, targets }: Filled & { statement: StatementBinding; node: Expr },
): BoundSelect {
  // The casts stand above DISTINCT and ORDER BY of the query: they must not change what it yields.
  const mustNest = query.distinct !== "none" || query.orderBy.length > 0;
  const source = mustNest ? selectFromQuery(query, statement) : query;
  const outputs = source.outputs.map(({ name, expression }, i) => {
    const column = table.columns[targets[i] ?? 0];
    if (column?.generatedAlways === true) {
      throw generatedAlways(table, column, node._location.start);
    }
    const to = column?.type ?? expression.type;
    return { name, expression: castTo(expression, { to, mode: "assignment", node }) };
  });
  return { ...source, outputs };
}

export function bindUpdate(update: UpdateStatement, context: DmlContext): BoundUpdate {
  const target = bindTarget(update.table, context);
  const { table } = target;
  if (table.kind === "stream") throw notUpdatable(table, "UPDATE", update);
  requireWhere(update.where, context, update);
  const from = joined(target, update.from, context);
  const sets = bindSets(update.sets, table, placeIn(from, { clause: "SET", context }));
  const values = sets.flatMap(({ value }) => (value === "default" ? [] : [value]));
  const returning = bindReturning(update.returning, { target, from, context });
  return {
    kind: "update",
    table,
    rows: rowsOf(target, {
      from,
      where: update.where,
      extra: [columnValue(seqColumnOf(target)), ...values, ...carriedBy(returning)],
      context,
    }),
    sets: sets.map(({ position, value }) => ({ position, isDefault: value === "default" })),
    returning,
  };
}

export function bindDelete(remove: DeleteStatement, context: DmlContext): BoundDelete {
  const target = bindTarget(remove.from, context);
  requireWhere(remove.where, context, remove);
  const from = joined(target, remove.using, context);
  const returning = bindReturning(remove.returning, { target, from, context });
  // What a row without a key is named by.
  const named = target.table.primaryKey.length === 0 ? [columnValue(seqColumnOf(target))] : [];
  return {
    kind: "delete",
    table: target.table,
    rows: rowsOf(target, {
      from,
      where: remove.where,
      extra: [...named, ...carriedBy(returning)],
      context,
    }),
    returning,
  };
}

/** The table that is written, beside the items of FROM or USING: those do not see it. */
function joined(
  { from }: Target,
  items: readonly From[] | undefined,
  context: DmlContext,
): FromResult {
  return items === undefined ? from : product(from, bindFrom(items, context));
}

function carriedBy(returning: BoundReturning | undefined): BoundExpression[] {
  return (returning?.carried ?? []).map(columnValue);
}

/** The rows that a statement changes: declared columns first, then what it computes from them. */
function rowsOf(
  target: Target,
  {
    context,
    extra,
    from,
    where,
  }: {
    from: FromResult;
    where: Expr | undefined;
    extra: readonly BoundExpression[];
    context: DmlContext;
  },
): BoundSelect {
  const { columns, table } = target;
  const declared = columns
    .slice(0, table.columns.length)
    .map((column): BoundOutput => ({ name: column.name, expression: columnValue(column) }));
  const place = placeIn(from, { clause: "WHERE", context });
  return {
    from: from.from,
    where: where === undefined ? undefined : liveOnly(bindCondition(where, place), columns),
    groupBy: [],
    groupingSets: undefined,
    aggregates: [],
    isAggregated: false,
    having: undefined,
    windows: [],
    outputs: [...declared, ...extra.map((expression) => ({ name: "", expression }))],
    distinct: from === target.from ? "none" : { on: identityOf(target) },
    orderBy: [],
    limit: undefined,
    offset: undefined,
    withTies: false,
  };
}

/** What tells a row of the table from its others, however many rows of FROM it meets. */
function identityOf(target: Target): BoundExpression[] {
  const { columns, table } = target;
  const key = columns.filter(
    ({ origin }) => origin !== undefined && table.primaryKey.includes(origin.columnId),
  );
  return (key.length === 0 ? [seqColumnOf(target)] : key).map(columnValue);
}

/** Tombstones that a condition on `_deleted` lets in are no rows to change. */
function liveOnly(condition: BoundExpression, columns: readonly BoundColumn[]): BoundExpression {
  const deleted = columns.find(({ origin }) => origin?.columnId === DELETED_COLUMN_ID);
  if (deleted === undefined || !columnIdsIn(condition).has(deleted.id)) return condition;
  const isLive: BoundExpression = { kind: "not", type: BOOLEAN, operand: columnValue(deleted) };
  return { kind: "and", type: BOOLEAN, operands: [isLive, condition] };
}

function seqColumnOf({ columns }: Target): BoundColumn {
  const column = columns.find(({ origin }) => origin?.columnId === SEQ_COLUMN_ID);
  return defined(column, "a table has a _seq");
}

function columnValue(column: BoundColumn): BoundExpression {
  return { kind: "column", type: column.type, column };
}

function bindReturning(
  returning: readonly SelectedColumn[] | undefined,
  { context, from, target }: { target: Target; from: FromResult; context: DmlContext },
): BoundReturning | undefined {
  if (returning === undefined) return undefined;
  const outputs = bindSelectedColumns(returning, {
    place: placeIn(from, { clause: "RETURNING", context }),
    withSystemColumns: true,
  });
  const used = new Set<number>();
  for (const { expression } of outputs) columnIdsIn(expression, used);
  const [, ...others] = from.scope.relations;
  const read = (columns: readonly BoundColumn[]): readonly BoundColumn[] =>
    columns.filter(({ id }) => used.has(id));
  const carried = others.flatMap(({ columns, systemColumns }) =>
    read(columns).concat(read(systemColumns)),
  );
  return { columns: [...target.columns, ...carried], outputs, carried };
}

function requireWhere(
  where: Expr | undefined,
  { requiresWhere }: DmlContext,
  node: { readonly _location: { readonly start: number } },
): void {
  if (where !== undefined || !requiresWhere) return;
  throw new DatabaseError("WHERE_REQUIRED", "Cannot change all rows: limits.require_where is on", {
    position: node._location.start,
    hint: "add WHERE; WHERE true means all rows",
  });
}

function notUpdatable(
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
