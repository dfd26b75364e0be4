/**
 * UPDATE and DELETE: the query that finds the rows to change, and what is written in their place.
 *
 * The table that is written comes first in it, beside the items of FROM or USING, and however many
 * rows of those a row of the table meets, it is changed once.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { inOneTurn } from "../../../base/steps.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../../storage/mod.ts";
import { BOOLEAN } from "../../../types/mod.ts";
import type { DeleteStatement, Expr, From, UpdateStatement } from "../../parse/ast/ast.ts";
import type { BoundSelect } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnOutput, columnValue, plainSelect } from "../bound_nodes.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { bindFrom } from "../query/from_binder.ts";
import { type FromResult, product } from "../query/join_binder.ts";
import { columnIdsIn } from "../walk.ts";
import {
  bindSets,
  bindTarget,
  type DmlWorld,
  notUpdatable,
  placeIn,
  type Target,
} from "./dml_target.ts";
import { type BoundReturning, bindReturning } from "./returning_binder.ts";

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
  /** Yields the declared columns, `_seq`, and what RETURNING carries; no row of the table twice. */
  readonly rows: BoundSelect;
  readonly returning: BoundReturning | undefined;
}

export function bindUpdate(update: UpdateStatement, world: DmlWorld): BoundUpdate {
  const target = bindTarget(update.table, world);
  const { table } = target;
  if (table.kind === "stream") throw notUpdatable(table, "UPDATE", update);
  requireWhere(update.where, world, update);
  const from = joined(target, update.from, world);
  const sets = bindSets(update.sets, table, placeIn(from, { clause: "SET", world }));
  const values = sets.flatMap(({ value }) => (value === "default" ? [] : [value]));
  const returning = bindReturning(update.returning, { target, from, world });
  return {
    kind: "update",
    table,
    rows: rowsOf(target, {
      from,
      where: update.where,
      extra: [columnValue(seqColumnOf(target)), ...values, ...carriedBy(returning)],
      world,
    }),
    sets: sets.map(({ position, value }) => ({ position, isDefault: value === "default" })),
    returning,
  };
}

export function bindDelete(remove: DeleteStatement, world: DmlWorld): BoundDelete {
  const target = bindTarget(remove.from, world);
  requireWhere(remove.where, world, remove);
  const from = joined(target, remove.using, world);
  const returning = bindReturning(remove.returning, { target, from, world });
  return {
    kind: "delete",
    table: target.table,
    rows: rowsOf(target, {
      from,
      where: remove.where,
      extra: [columnValue(seqColumnOf(target)), ...carriedBy(returning)],
      world,
    }),
    returning,
  };
}

/** The table that is written, beside the items of FROM or USING: those do not see it. */
function joined({ from }: Target, items: readonly From[] | undefined, world: DmlWorld): FromResult {
  return items === undefined ? from : product(from, inOneTurn(bindFrom(items, world)));
}

/** The rows that a statement changes: declared columns first, then what it computes from them. */
function rowsOf(
  target: Target,
  {
    world,
    extra,
    from,
    where,
  }: {
    from: FromResult;
    where: Expr | undefined;
    extra: readonly BoundExpression[];
    world: DmlWorld;
  },
): BoundSelect {
  const { columns, table } = target;
  const declared = columns.slice(0, table.columns.length).map(columnOutput);
  const place = placeIn(from, { clause: "WHERE", world });
  const rows = plainSelect({
    from: from.from,
    where: where === undefined ? undefined : liveOnly(bindCondition(where, place), columns),
    outputs: [...declared, ...extra.map((expression) => ({ name: "", expression }))],
  });
  return from === target.from ? rows : { ...rows, distinct: { on: identityOf(target) } };
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

function carriedBy(returning: BoundReturning | undefined): BoundExpression[] {
  return (returning?.carried ?? []).map(columnValue);
}

function requireWhere(
  where: Expr | undefined,
  { requiresWhere }: DmlWorld,
  node: { readonly _location: { readonly start: number } },
): void {
  if (where !== undefined || !requiresWhere) return;
  throw new DatabaseError("WHERE_REQUIRED", "Cannot change all rows: limits.require_where is on", {
    position: node._location.start,
    hint: "add WHERE; WHERE true means all rows",
  });
}
