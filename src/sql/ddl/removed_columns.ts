/**
 * Implements the effects of DROP COLUMN on other objects: determines which views and policies need
 * the removed columns.
 */
import type { Catalog, PolicyEntry, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import { refuseMaterializedDependents } from "../names/materialized_views.ts";
import { type PlacedPolicy, policiesNeeding, refusePolicies } from "../names/policies.ts";
import { dependentsOf, type QueryCatalog, type Removal, refuseDependents } from "../names/views.ts";
import type { AlterTableStatement } from "../parse/ast/ast.ts";
import type { RetypedColumn } from "./altering.ts";
import type { TokenReach } from "./topic_sources.ts";

/** The columns that one action of ALTER TABLE removes, or to which it gives another id. */
export interface RemovedColumns extends Required<Pick<Removal, "columns">> {
  /** A description of the action, for messages. */
  readonly action: string;
  readonly position: number;
  readonly isCascading: boolean;
  /**
   * The hint for the error that something needs the columns. If absent, the statement may have
   * CASCADE, which drops the dependent objects.
   */
  readonly hint?: string;
}

/** Returns the columns that a statement removes, for each DROP COLUMN. */
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
    // CASCADE also drops the columns that are computed from the dropped column.
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

/** Returns the columns that get new ids because their types change. */
export function retypedColumns(
  { tableId }: TableEntry,
  retyped: readonly RetypedColumn[],
): RemovedColumns[] {
  return retyped.map(({ columnId, name, position }) => ({
    action: `change the type of column "${name}"`,
    position,
    isCascading: false,
    hint: "drop the dependent objects first, and create them again afterwards",
    columns: { tableId, columnIds: new Set([columnId]) },
  }));
}

interface DependentsDeps {
  readonly catalog: Pick<Catalog, "tableById" | "tables"> & QueryCatalog;
  readonly reach: TokenReach;
}

/**
 * Returns the views to drop together with the columns.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS, and the errors of `reach`.
 */
export function viewsWithout(
  removed: readonly RemovedColumns[],
  { catalog, reach }: DependentsDeps,
): readonly ViewEntry[] {
  const views = new Map<number, ViewEntry>();
  for (const { action, columns, isCascading, ...refusal } of removed) {
    const dependents = dependentsOf(catalog, { columns });
    reach(dependents);
    if (!isCascading) refuseDependents(action, dependents, refusal);
    refuseMaterializedDependents(action, dependents, { catalog, position: refusal.position });
    for (const view of dependents) views.set(view.viewId, view);
  }
  return [...views.values()];
}

/** The policies that are dropped together with the columns that they read. */
interface RemovedPolicies {
  readonly own: readonly PolicyEntry[];
  /** The dropped policies of other tables. */
  readonly others: readonly PlacedPolicy[];
}

/**
 * Returns the policies to drop together with the columns of a table.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS, and the errors of `reach`.
 */
export function policiesWithout(
  removed: readonly RemovedColumns[],
  { catalog, reach, table }: DependentsDeps & { readonly table: TableEntry },
): RemovedPolicies {
  const found = new Map<PolicyEntry, PlacedPolicy>();
  for (const { action, columns, isCascading, ...refusal } of removed) {
    const dependents = policiesNeeding(catalog, { columns });
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
