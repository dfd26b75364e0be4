/**
 * Binds ON CONFLICT. The conflict target is the primary key or a unique index, and the actions can
 * refer to both the stored row and the proposed row.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  declaredKeyOf,
  type IndexEntry,
  indexPartsOf,
  KEY_INDEX_ID,
  keyNameOf,
  shownColumnsOf,
  type TableEntry,
} from "../../../catalog/mod.ts";
import type { AstNode, OnConflictAction } from "../../parse/ast/ast.ts";
import { expressionToSql } from "../../parse/print/print_queries.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { bindCondition, bindExpression } from "../expression/expression_binder.ts";
import { queriesAround } from "../query/select_deps.ts";
import { Scope } from "../scope.ts";
import { conjunctsOf } from "../walk.ts";
import { type BoundSet, bindSets, type DmlDeps, nameOf, type Target } from "./dml_target.ts";
import { asKeysOf, guardsFor, indexContext } from "./index_terms.ts";
import { boundView, withValues } from "./view_target.ts";

/**
 * The keys for which ON CONFLICT handles conflicts: the primary key, a unique index, or all keys.
 * A conflict on any other key is an error.
 */
export type ConflictTarget = "key" | "any" | IndexEntry;

export interface BoundConflict {
  readonly target: ConflictTarget;
  readonly action: "nothing" | "update";
  /** The columns of the stored row, followed by the columns of the proposed row (`excluded`). */
  readonly columns: readonly BoundColumn[];
  readonly sets: readonly BoundSet[];
  readonly where: BoundExpression | undefined;
}

export function bindConflict(
  action: OnConflictAction,
  target: Target,
  deps: DmlDeps,
): BoundConflict {
  const { statement } = deps;
  const { table } = target;
  const conflictTarget = targetOf(action, target);
  if (action.do === "do nothing") {
    return { target: conflictTarget, action: "nothing", columns: [], sets: [], where: undefined };
  }
  if (action.on === undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot run ON CONFLICT DO UPDATE: its conflict target must be the primary key or a unique index",
      {
        position: action._location.start,
        hint: "list the columns of the key in parentheses after ON CONFLICT",
      },
    );
  }
  const excluded = table.columns.map(({ columnId, name, type }) =>
    statement.newColumn({ name, type, origin: { table, columnId } }),
  );
  const { shown, view } = proposedIn(target, { deps, excluded, node: action });
  const proposed = {
    alias: "excluded",
    namespace: undefined,
    columns: shown,
    systemColumns: [],
  };
  // An unqualified column name could refer to the stored row or to the proposed row, so it is
  // ambiguous, as in PostgreSQL.
  const { relations, visible } = target.from.scope;
  const scope = new Scope([...relations, proposed], [...visible, ...shown]);
  const context: ExpressionContext = {
    statement,
    scope,
    clause: "ON CONFLICT",
    sink: undefined,
    allowsFiles: true,
    ...queriesAround(deps),
  };
  // If the conflict is on the primary key, the stored and the proposed row have the same key, so
  // setting a key column to the value of either row leaves it unchanged.
  const kept = conflictTarget === "key" ? [...target.columns, ...excluded] : target.columns;
  return {
    target: conflictTarget,
    action: "update",
    columns: [...target.columns, ...excluded],
    sets: bindSets(
      action.do.sets,
      { ...target, ...(view === undefined ? {} : { view }), columns: kept },
      context,
    ),
    where:
      action.where === undefined
        ? undefined
        : withValues(bindCondition(action.where, context), view?.values ?? new Map()),
  };
}

/**
 * Returns the columns of `excluded` under the names that the statement may use. For a view, the
 * computed columns are bound twice: over the stored row and over the proposed row.
 */
function proposedIn(
  { named, view }: Target,
  {
    deps,
    excluded,
    node,
  }: { readonly deps: DmlDeps; readonly excluded: readonly BoundColumn[]; readonly node: AstNode },
): { readonly shown: readonly BoundColumn[]; readonly view: Target["view"] } {
  if (view !== undefined) {
    const { columns, values } = boundView(view.relation, excluded, {
      deps,
      node,
      isCascaded: false,
      triggered: view.triggered,
    });
    return { shown: columns, view: { ...view, values: new Map([...view.values, ...values]) } };
  }
  const shown = named.columns.flatMap(({ columnId, name }): BoundColumn[] => {
    const column = excluded.find(({ origin }) => origin?.columnId === columnId);
    return column === undefined ? [] : [{ ...column, name }];
  });
  return { shown, view };
}

function targetOf(
  { on, _location }: OnConflictAction,
  { from, named, table, view }: Pick<Target, "from" | "named" | "table" | "view">,
): ConflictTarget {
  const partitionId = view?.relation.partition?.id;
  const ofPartition = (table.partitionIndexes ?? []).filter(({ viewId }) => viewId === partitionId);
  const unique = (table.indexes ?? []).filter(
    ({ indexId, isOfPartitions, isUnique, state }) =>
      isUnique &&
      state === "ready" &&
      (isOfPartitions !== true || ofPartition.some((each) => each.indexId === indexId)),
  );
  if (on === undefined) return unique.length === 0 ? "key" : "any";
  if (on.type === "on constraint") {
    const { name } = on.constraint;
    const indexId = ofPartition.find((each) => each.name === name)?.indexId;
    if (name === keyNameOf(table) || indexId === KEY_INDEX_ID) return "key";
    const index = unique.find((each) => each.name === name || each.indexId === indexId);
    if (index !== undefined) return index;
    throw noConflictTarget(name, { position: on._location.start, table, unique });
  }
  const context = indexContext(named, from.scope.relations[0]?.alias);
  const parts = on.exprs.map((expr) => bindExpression(expr, context));
  const conditions = on.where === undefined ? [] : conjunctsOf(bindCondition(on.where, context));
  const isMeant = (index: IndexEntry): boolean => {
    const ids = new Set(parts.map((part) => partIn(part, asDefined(table, index))));
    const hasAll = index.columnIds.every((id) => ids.has(id));
    return hasAll && ids.size === index.columnIds.length;
  };
  const ids = new Set(parts.map(columnOf));
  const isKey = table.primaryKey.every((id) => ids.has(id));
  if (isKey && ids.size === table.primaryKey.length) return "key";
  // ON CONFLICT prefers an index over all rows, because it detects more conflicts than an index
  // with a condition.
  const isWhole = (each: IndexEntry): boolean => asDefined(table, each).index.where === undefined;
  const index =
    unique.find((each) => isWhole(each) && isMeant(each)) ??
    unique.find((each) => {
      const defined = asDefined(table, each);
      return isMeant(each) && guardsFor(defined.table, defined.index, conditions)?.length === 0;
    });
  if (index !== undefined) return index;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot use ON CONFLICT (${on.exprs.map(expressionToSql).join(", ")}): the conflict target ` +
      "must be the primary key or the columns of a unique index; available targets: " +
      targetsOf(table, unique),
    { position: _location.start },
  );
}

/**
 * Returns an index with the condition that its definition contains, without the bound of the
 * partition to which the index is limited: every row that the statement writes is within the bound.
 */
function asDefined(
  table: TableEntry,
  index: IndexEntry,
): { readonly table: TableEntry; readonly index: IndexEntry } {
  const { where: _, within, ...rest } = index;
  if (within === undefined) return { table, index };
  const { where } = within;
  // The parts of an index are cached for each table, and include its condition.
  return { table: { ...table }, index: where === undefined ? rest : { ...rest, where } };
}

function columnOf(part: BoundExpression): number | undefined {
  return part.kind === "column" ? part.column.origin?.columnId : undefined;
}

/**
 * Returns the id of the index column or key expression that matches an expression; undefined if
 * none matches.
 */
function partIn(
  part: BoundExpression,
  place: { readonly table: TableEntry; readonly index: IndexEntry },
): number | undefined {
  const guards: BoundExpression[] = [];
  const id = columnOf(asKeysOf(part, place, guards));
  return guards.length === 0 ? id : undefined;
}

/** Returns the error for an ON CONFLICT ON CONSTRAINT that does not name a conflict target. */
function noConflictTarget(
  name: string,
  {
    position,
    table,
    unique,
  }: {
    readonly position: number;
    readonly table: TableEntry;
    readonly unique: readonly IndexEntry[];
  },
): DatabaseError {
  if (table.checks.some((check) => check.name === name)) {
    return new DatabaseError(
      "INVALID_QUERY",
      `Cannot use constraint "${name}" as the conflict target: it is a CHECK constraint`,
      { position, hint: "name the primary key or a unique constraint" },
    );
  }
  const named = table.indexes?.find((index) => index.name === name);
  if (named?.isExclusion === true) {
    return new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot use constraint "${name}" as the conflict target: it is an EXCLUDE constraint`,
      {
        position,
        hint: "omit ON CONFLICT, and handle the error with the reason exclusion in the application",
      },
    );
  }
  const key = declaredKeyOf(table)?.name;
  const names = new Set([...(key === undefined ? [] : [key]), ...unique.map((each) => each.name)]);
  const shown =
    names.size === 0 ? "no primary key and no unique index" : `only ${[...names].join(" and ")}`;
  return new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find constraint "${name}": ${nameOf(table)} has ${shown}`,
    { position },
  );
}

/** Lists the valid conflict targets of a table, for the error message. */
function targetsOf(table: TableEntry, unique: readonly IndexEntry[]): string {
  const key = shownColumnsOf(table).filter(({ columnId }) => table.primaryKey.includes(columnId));
  const keys = [
    ...(key.length === 0 ? [] : [`(${key.map(({ name }) => name).join(", ")})`]),
    ...unique.map((index) => {
      const parts = indexPartsOf(table, index).map(({ isExpression, name }) =>
        isExpression ? `(${name})` : name,
      );
      const where = index.where === undefined ? "" : ` WHERE ${index.where.sql}`;
      return `(${parts.join(", ")})${where}`;
    }),
  ];
  return keys.length === 0 ? "none" : keys.join(" or ");
}
