/**
 * Binds UPDATE and DELETE: the query that finds the rows to change, and their new values.
 *
 * The target table comes first in the query, followed by the items of FROM or USING. Each target
 * row is changed only once, however many rows of the other items it matches.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { runToCompletion } from "../../../base/steps.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../../storage/mod.ts";
import { BIGINT, BOOLEAN } from "../../../types/mod.ts";
import type { DeleteStatement, Expr, From, UpdateStatement } from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundSelect } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnOutput, columnValue, plainSelect } from "../bound_nodes.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { bindFrom } from "../query/from_binder.ts";
import { type FromResult, product } from "../query/join_binder.ts";
import { columnIdsIn, conjunctionOf } from "../walk.ts";
import { bindCurrentRow } from "./cursor_rows.ts";
import {
  bindSets,
  bindTarget,
  type DmlDeps,
  notUpdatable,
  placeIn,
  type Target,
} from "./dml_target.ts";
import { tableWithDefaults } from "./partition_defaults.ts";
import { type BoundReturning, bindReturning } from "./returning_binder.ts";
import { type BoundGuard, bindGuard } from "./row_guard.ts";
import { withValues } from "./view_target.ts";

export interface BoundUpdate {
  readonly kind: "update";
  readonly table: TableEntry;
  /**
   * Yields the declared columns, `_seq`, one value for each assignment other than DEFAULT, and
   * then the columns carried for RETURNING. No row of the target table appears twice.
   */
  readonly rows: BoundSelect;
  readonly sets: readonly { readonly position: number; readonly isDefault: boolean }[];
  readonly guard: BoundGuard | undefined;
  readonly returning: BoundReturning | undefined;
}

export interface BoundDelete {
  readonly kind: "delete";
  /** Whether the statement is a TRUNCATE, which fires different triggers from DELETE. */
  readonly isTruncation: boolean;
  readonly table: TableEntry;
  /**
   * Yields the declared columns, `_seq`, and the columns carried for RETURNING. No table row
   * appears twice.
   */
  readonly rows: BoundSelect;
  readonly returning: BoundReturning | undefined;
}

type ChangeWithWhere = Pick<DeleteStatement | UpdateStatement, "_location" | "currentOf" | "where">;

export function bindUpdate(update: UpdateStatement, deps: DmlDeps): BoundUpdate {
  const target = bindTarget(
    update.table,
    { event: "update", commands: ["select", "update"] },
    deps,
  );
  const { table } = target;
  if (table.kind === "stream") throw notUpdatable(table, "UPDATE", update);
  requireWhere(update, deps);
  const from = joined(target, update.from, deps);
  const sets = bindSets(update.sets, target, placeIn(from, { clause: "SET", deps }));
  const values = sets.flatMap(({ value }) => (value === "default" ? [] : [value]));
  const returning = bindReturning(update.returning, { target, from, deps });
  return {
    kind: "update",
    table: tableWithDefaults(target),
    rows: rowsOf(target, {
      from,
      statement: update,
      extra: [seqOf(target), ...values, ...carriedBy(returning)],
      deps,
    }),
    sets: sets.map(({ position, value }) => ({ position, isDefault: value === "default" })),
    guard: bindGuard(
      { table, node: update.table, updates: true, returns: false, view: target.view },
      deps,
    ),
    returning,
  };
}

export function bindDelete(remove: DeleteStatement, deps: DmlDeps): BoundDelete {
  const target = bindTarget(remove.from, { event: "delete", commands: ["select", "delete"] }, deps);
  requireWhere(remove, deps);
  const from = joined(target, remove.using, deps);
  const returning = bindReturning(remove.returning, { target, from, deps });
  return {
    kind: "delete",
    isTruncation: remove.isTruncation === true,
    table: target.table,
    rows: rowsOf(target, {
      from,
      statement: remove,
      extra: [seqOf(target), ...carriedBy(returning)],
      deps,
    }),
    returning,
  };
}

/**
 * Joins the target table with the items of FROM or USING. The items cannot read columns of the
 * target.
 */
function joined({ from }: Target, items: readonly From[] | undefined, deps: DmlDeps): FromResult {
  return items === undefined ? from : product(from, runToCompletion(bindFrom(items, deps)));
}

/**
 * Returns the query that finds the rows to change. It yields the declared columns, and then the
 * computed values.
 */
function rowsOf(
  target: Target,
  {
    deps,
    extra,
    from,
    statement: { currentOf, where },
  }: {
    from: FromResult;
    statement: ChangeWithWhere;
    extra: readonly BoundExpression[];
    deps: DmlDeps;
  },
): BoundSelect {
  const { columns, table } = target;
  const declared = columns.slice(0, table.columns.length).map(columnOutput);
  const context = placeIn(from, { clause: "WHERE", deps });
  const rows = plainSelect({
    from: from.from,
    where: conjunctionOf([
      ...conditionsOfView(target),
      ...(where === undefined ? [] : [whereOf(where, { context, target })]),
      ...(currentOf === undefined ? [] : [bindCurrentRow(currentOf, target, deps.statement)]),
    ]),
    outputs: [...declared, ...extra.map((expression) => ({ name: "", expression }))],
  });
  // Rows of a view with triggers have no identity, so the triggers are called for every match.
  const isPlain = from === target.from || target.view?.triggered !== undefined;
  return isPlain ? rows : { ...rows, distinct: { on: identityOf(target) } };
}

/**
 * Returns the view's conditions. Like a WHERE condition, they are tested only on rows that
 * policies permit, so they cannot reveal hidden rows.
 */
function conditionsOfView({ view }: Target): readonly BoundExpression[] {
  return (view?.conditions ?? []).map(({ condition }) => condition);
}

function whereOf(
  where: Expr,
  { context, target }: { context: ExpressionContext; target: Target },
): BoundExpression {
  const condition = bindCondition(where, context);
  return liveOnly(
    target.view === undefined ? condition : withValues(condition, target.view.values),
    target.columns,
  );
}

/**
 * Returns the columns that identify a row of the target table, even if the row matches several
 * rows of the other FROM items.
 */
function identityOf(target: Target): BoundExpression[] {
  const { columns, table } = target;
  const key = columns.filter(
    ({ origin }) => origin !== undefined && table.primaryKey.includes(origin.columnId),
  );
  return (key.length === 0 ? [seqColumnOf(target)] : key).map(columnValue);
}

/**
 * Excludes the tombstones that a condition on `_deleted` admits, because they cannot be changed.
 */
export function liveOnly(
  condition: BoundExpression,
  columns: readonly BoundColumn[],
): BoundExpression {
  const deleted = columns.find(({ origin }) => origin?.columnId === DELETED_COLUMN_ID);
  if (deleted === undefined || !columnIdsIn(condition).has(deleted.id)) return condition;
  const isLive: BoundExpression = { kind: "not", type: BOOLEAN, operand: columnValue(deleted) };
  return { kind: "and", type: BOOLEAN, operands: [isLive, condition] };
}

/** Returns the sequence number of a found row; NULL if a view with triggers receives the change. */
function seqOf(target: Target): BoundExpression {
  if (target.view?.triggered === undefined) return columnValue(seqColumnOf(target));
  return { kind: "constant", type: BIGINT, value: null };
}

export function seqColumnOf({ columns }: Target): BoundColumn {
  const column = columns.find(({ origin }) => origin?.columnId === SEQ_COLUMN_ID);
  return defined(column, "UPDATE binder: table has no _seq column");
}

function carriedBy(returning: BoundReturning | undefined): BoundExpression[] {
  return (returning?.carried ?? []).map(columnValue);
}

function requireWhere(node: ChangeWithWhere, { requiresWhere }: DmlDeps): void {
  if (node.where !== undefined || node.currentOf !== undefined || !requiresWhere) return;
  throw new DatabaseError(
    "WHERE_REQUIRED",
    "Cannot change all rows: limits.require_where requires a WHERE clause",
    {
      position: node._location.start,
      hint: "add a WHERE clause; to change all rows, write WHERE true",
    },
  );
}
