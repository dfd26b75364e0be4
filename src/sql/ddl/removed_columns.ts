/**
 * Implements the effects of DROP COLUMN on other objects: determines which views and policies need
 * the dropped columns.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Catalog, PolicyEntry, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import { type PlacedPolicy, policiesNeeding, refusePolicies } from "../names/policies.ts";
import { type Removal, refuseDependents } from "../names/views.ts";
import type { AlterTableStatement } from "../parse/ast/ast.ts";
import type { RetypedColumn } from "./altering.ts";
import { dependentsDropped } from "./drop_table.ts";
import type { TokenReach } from "./topic_sources.ts";

/** The columns that an ALTER TABLE action removes or gives a new id. */
export interface RemovedColumns extends Required<Pick<Removal, "columns">> {
  /** Describes the ALTER TABLE action, for messages. */
  readonly action: string;
  readonly position: number;
  readonly isCascading: boolean;
  /**
   * The hint of the error about objects that need the columns. It is absent if the statement
   * supports CASCADE, which drops these objects.
   */
  readonly hint?: string;
}

/** Returns the columns that each DROP COLUMN of a statement removes. */
export function removedColumns(
  { columns, tableId }: TableEntry,
  changed: TableEntry,
  node: AlterTableStatement,
): RemovedColumns[] {
  const isGone = ({ columnId }: { readonly columnId: number }): boolean =>
    !changed.columns.some((column) => column.columnId === columnId);
  return node.changes.flatMap((change) => {
    if (change.type !== "drop column") return [];
    const { name, _location } = change.column;
    const column = columns.find((each) => each.name === name);
    if (column === undefined || !isGone(column)) return [];
    const isCascading = change.behaviour === "cascade";
    // CASCADE also drops the generated columns that are computed from the dropped column.
    const gone = isCascading ? columns.filter(isGone) : [column];
    const columnIds = new Set(gone.map(({ columnId }) => columnId));
    const removed = { tableId, columnIds };
    return [
      {
        action: `drop column "${name}"`,
        position: _location.start,
        isCascading,
        columns: removed,
      },
    ];
  });
}

/** Returns the columns that get a new id because their type changes. */
export function retypedColumns(
  { tableId }: TableEntry,
  retyped: readonly RetypedColumn[],
): RemovedColumns[] {
  return retyped.map(({ columnId, name, position }) => ({
    action: `change the type of column "${name}"`,
    position,
    isCascading: false,
    hint: "drop the dependent objects first, then create them again",
    columns: { tableId, columnIds: new Set([columnId]) },
  }));
}

interface DependentsDeps {
  readonly catalog: Catalog;
  readonly principal: Principal;
  readonly reach: TokenReach;
}

/** Views that are dropped together with columns that they read. */
interface RemovedViews {
  readonly views: readonly ViewEntry[];
  /**
   * The tables of materialized views that are dropped together with the columns that the views
   * read.
   */
  readonly materialized: readonly TableEntry[];
}

/**
 * Returns the views to be dropped together with the columns that an ALTER TABLE action removes.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS, and the errors thrown by `reach`.
 */
export function viewsWithout(
  removed: readonly RemovedColumns[],
  { catalog, principal, reach }: DependentsDeps,
): RemovedViews {
  const views = new Map<number, ViewEntry>();
  const tables = new Map<number, TableEntry>();
  for (const { action, columns, isCascading, ...refusal } of removed) {
    const materialized = new Map<number, TableEntry>();
    const dependents = dependentsDropped(materialized, { columns }, { catalog, principal });
    reach(dependents);
    if (!isCascading) refuseDependents(action, dependents, refusal);
    for (const view of dependents) views.set(view.viewId, view);
    for (const table of materialized.values()) tables.set(table.tableId, table);
  }
  // The query of a materialized view is dropped with its table.
  const plain = [...views.values()].filter(({ resultId }) => resultId === undefined);
  return { views: plain, materialized: [...tables.values()] };
}

/** Policies that are dropped together with columns that they read. */
interface RemovedPolicies {
  readonly own: readonly PolicyEntry[];
  /** The policies of other tables that are dropped together with the columns that they read. */
  readonly others: readonly PlacedPolicy[];
}

/**
 * Returns the policies to be dropped together with a table's columns.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS, and the errors thrown by `reach`.
 */
export function policiesWithout(
  removed: readonly RemovedColumns[],
  {
    catalog,
    materialized,
    reach,
    table,
  }: Omit<DependentsDeps, "principal"> &
    Pick<RemovedViews, "materialized"> & { readonly table: TableEntry },
): RemovedPolicies {
  const found = new Map<PolicyEntry, PlacedPolicy>();
  const tableIds = new Set(materialized.map(({ tableId }) => tableId));
  for (const { action, columns, isCascading, ...refusal } of removed) {
    const dependents = policiesNeeding(catalog, { columns, tableIds });
    reach(dependents.map((each) => each.table));
    if (!isCascading) refusePolicies(action, dependents, refusal);
    for (const each of dependents) found.set(each.policy, each);
  }
  const all = [...found.values()];
  const isOwn = (each: PlacedPolicy): boolean => each.table.tableId === table.tableId;
  return {
    own: all.filter(isOwn).map(({ policy }) => policy),
    others: all.filter((each) => !isOwn(each)),
  };
}
