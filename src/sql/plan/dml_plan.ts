/**
 * Plans bound INSERT, UPDATE, DELETE and MERGE statements. Such a plan contains the query that
 * finds the rows to write.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { BoundConflict } from "../bind/change/conflict_binder.ts";
import type { BoundInsert, InsertSource } from "../bind/change/insert_binder.ts";
import type { BoundMerge } from "../bind/change/merge_binder.ts";
import type { BoundReturning } from "../bind/change/returning_binder.ts";
import type { BoundGuard } from "../bind/change/row_guard.ts";
import type { BoundDelete, BoundUpdate } from "../bind/change/update_binder.ts";
import type { QueryPlan } from "./outputs.ts";
import { planSelect } from "./planner.ts";

export interface InsertPlan {
  readonly kind: "insert";
  readonly table: TableEntry;
  /** For each source column, the position in the table of the column that it fills. */
  readonly targets: readonly number[];
  readonly source: SourcePlan;
  readonly conflict: BoundConflict | undefined;
  readonly guard: BoundGuard | undefined;
  readonly returning: BoundReturning | undefined;
}

export type SourcePlan =
  | Exclude<InsertSource, { kind: "query" }>
  | { readonly kind: "query"; readonly query: QueryPlan };

export interface UpdatePlan extends Omit<BoundUpdate, "rows"> {
  readonly rows: QueryPlan;
}

export interface DeletePlan extends Omit<BoundDelete, "rows"> {
  readonly rows: QueryPlan;
}

export interface MergePlan extends Omit<BoundMerge, "rows"> {
  readonly rows: QueryPlan;
}

export function planInsert(insert: BoundInsert): InsertPlan {
  const { source } = insert;
  if (source.kind !== "query") return { ...insert, source };
  return { ...insert, source: { kind: "query", query: planSelect(source.query) } };
}

export function planUpdate(update: BoundUpdate): UpdatePlan {
  return { ...update, rows: planSelect(update.rows) };
}

export function planMerge(merge: BoundMerge): MergePlan {
  return { ...merge, rows: planSelect(merge.rows) };
}

export function planDelete(remove: BoundDelete): DeletePlan {
  return { ...remove, rows: planSelect(remove.rows) };
}
