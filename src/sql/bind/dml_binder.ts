/**
 * INSERT, UPDATE and DELETE: which column each value goes to, with its cast.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../storage/mod.ts";
import { BOOLEAN } from "../../types/mod.ts";
import type {
  DeleteStatement,
  Expr,
  InsertStatement,
  LiteralValuesStatement,
  SelectedColumn,
  UpdateStatement,
} from "../parse/ast.ts";
import { LiteralCell } from "../parse/ast.ts";
import { notAvailable, type Place, type StatementBinding } from "./binding.ts";
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
  /** Declared columns of the table, then `_seq` and `_deleted`: the layout of a returned row. */
  readonly columns: readonly BoundColumn[];
  readonly outputs: readonly BoundOutput[];
}

export interface BoundUpdate {
  readonly kind: "update";
  readonly table: TableEntry;
  /** Yields the declared columns, `_seq`, then one value for each set that is not DEFAULT. */
  readonly rows: BoundSelect;
  readonly sets: readonly { readonly position: number; readonly isDefault: boolean }[];
  readonly returning: BoundReturning | undefined;
}

export interface BoundDelete {
  readonly kind: "delete";
  readonly table: TableEntry;
  /** Yields the declared columns. */
  readonly rows: BoundSelect;
  readonly returning: BoundReturning | undefined;
}

export function bindInsert(insert: InsertStatement, context: DmlContext): BoundInsert {
  const target = bindTarget(insert.into, context);
  const { table } = target;
  if (table.kind === "stream" && insert.onConflict !== undefined) {
    throw notUpdatable(table, "ON CONFLICT", insert);
  }
  const width = sourceWidth(insert);
  const targets =
    insert.columns === undefined
      ? table.columns.slice(0, width ?? table.columns.length).map((_, position) => position)
      : insert.columns.map((name) => positionOf(table, name));
  checkTwice(insert.columns ?? []);
  if (width !== undefined && width !== targets.length) {
    const more = width > targets.length ? "more" : "fewer";
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot insert into ${nameOf(table)}: there are ${more} values (${width}) than columns (${targets.length})`,
      { position: insert.insert._location.start },
    );
  }
  const source = bindSource(insert, { table, targets, context });
  return {
    kind: "insert",
    table,
    targets: source.kind === "query" ? filledBy(source.query, targets, insert) : targets,
    source,
    conflict:
      insert.onConflict === undefined
        ? undefined
        : bindConflict(insert.onConflict, target, context),
    returning: bindReturning(insert.returning, target, context),
  };
}

/** A query of fewer columns fills the first ones, unless the statement lists them. */
function filledBy(
  { outputs }: BoundSelect,
  targets: readonly number[],
  insert: InsertStatement,
): readonly number[] {
  if (outputs.length === targets.length) return targets;
  if (insert.columns === undefined) return targets.slice(0, outputs.length);
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot insert: the query yields ${outputs.length} columns for ${targets.length}`,
    { position: insert.insert._location.start },
  );
}

/** Values in a source row; undefined for a query, which says so when it is bound. */
function sourceWidth({ insert }: InsertStatement): number | undefined {
  switch (insert.type) {
    case "values":
      return insert.values[0]?.length ?? 0;
    case "literal values":
      return insert.columnCount;
    case "default values":
      return 0;
    default:
      return undefined;
  }
}

function bindSource(
  { insert }: InsertStatement,
  {
    context,
    table,
    targets,
  }: { context: DmlContext; table: TableEntry; targets: readonly number[] },
): InsertSource {
  switch (insert.type) {
    case "default values":
      return { kind: "rows", rows: [[]] };
    case "literal values":
      requireWritable(insert, { table, targets });
      return { kind: "literals", literals: insert };
    case "values": {
      const place: Place = {
        statement: context.statement,
        scope: new Scope([]),
        clause: "VALUES",
        sink: undefined,
        allowsFiles: true,
        ...queriesAround(context),
      };
      const rows = insert.values.map((row) => {
        if (row.length !== targets.length) {
          throw new DatabaseError("INVALID_QUERY", "Cannot insert: the rows differ in length", {
            position: insert._location.start,
          });
        }
        return row.map((cell, i) => bindCell(cell, { table, position: targets[i] ?? 0, place }));
      });
      return { kind: "rows", rows };
    }
    default: {
      const query = bindQuery(insert, { ...context, isOutermost: false, keepsUntyped: true });
      return {
        kind: "query",
        query: castOutputs(query, { statement: context.statement, table, targets }, insert),
      };
    }
  }
}

/** GENERATED ALWAYS takes DEFAULT only. */
function requireWritable(
  { columnCount, kinds, starts }: LiteralValuesStatement,
  { table, targets }: { table: TableEntry; targets: readonly number[] },
): void {
  for (const [column, position] of targets.entries()) {
    const entry = table.columns[position];
    if (entry?.generatedAlways !== true) continue;
    for (let cell = column; cell < kinds.length; cell += columnCount) {
      if (kinds[cell] !== LiteralCell.default)
        throw generatedAlways(table, entry, starts[cell] ?? 0);
    }
  }
}

function castOutputs(
  query: BoundSelect,
  {
    statement,
    table,
    targets,
  }: { statement: StatementBinding; table: TableEntry; targets: readonly number[] },
  node: Expr,
): BoundSelect {
  if (query.outputs.length > targets.length) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot insert into ${nameOf(table)}: the query yields ${query.outputs.length} columns for ${targets.length}`,
      { position: node._location.start },
    );
  }
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
  if (update.from !== undefined) throw notAvailable(update, "UPDATE … FROM");
  const target = bindTarget(update.table, context);
  const { table } = target;
  if (table.kind === "stream") throw notUpdatable(table, "UPDATE", update);
  requireWhere(update.where, context, update);
  const place = placeIn(target, context, "SET");
  const sets = bindSets(update.sets, table, place);
  const values = sets.flatMap(({ value }) => (value === "default" ? [] : [value]));
  return {
    kind: "update",
    table,
    rows: rowsOf(target, {
      where: update.where,
      extra: [columnValue(seqColumnOf(target)), ...values],
      place: placeIn(target, context, "WHERE"),
    }),
    sets: sets.map(({ position, value }) => ({ position, isDefault: value === "default" })),
    returning: bindReturning(update.returning, target, context),
  };
}

export function bindDelete(remove: DeleteStatement, context: DmlContext): BoundDelete {
  if (remove.using !== undefined) throw notAvailable(remove, "DELETE … USING");
  const target = bindTarget(remove.from, context);
  requireWhere(remove.where, context, remove);
  return {
    kind: "delete",
    table: target.table,
    rows: rowsOf(target, {
      where: remove.where,
      extra: [],
      place: placeIn(target, context, "WHERE"),
    }),
    returning: bindReturning(remove.returning, target, context),
  };
}

/** The rows that a statement changes: declared columns first, then what it computes from them. */
function rowsOf(
  { columns, from, table }: Target,
  {
    extra,
    place,
    where,
  }: { where: Expr | undefined; extra: readonly BoundExpression[]; place: Place },
): BoundSelect {
  const declared = columns
    .slice(0, table.columns.length)
    .map((column): BoundOutput => ({ name: column.name, expression: columnValue(column) }));
  return {
    from: from.from,
    where: where === undefined ? undefined : liveOnly(bindCondition(where, place), columns),
    groupBy: [],
    aggregates: [],
    isAggregated: false,
    having: undefined,
    outputs: [...declared, ...extra.map((expression) => ({ name: "", expression }))],
    distinct: "none",
    orderBy: [],
    limit: undefined,
    offset: undefined,
    withTies: false,
  };
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
  target: Target,
  context: DmlContext,
): BoundReturning | undefined {
  if (returning === undefined) return undefined;
  return {
    columns: target.columns,
    outputs: bindSelectedColumns(returning, {
      place: placeIn(target, context, "RETURNING"),
      withSystemColumns: true,
    }),
  };
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
