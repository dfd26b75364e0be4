/**
 * How many rows a plan is expected to yield, as the planner asks while it still makes one: the
 * estimate of EXPLAIN (`estimate.ts`), from the rows that the scans of the plan know of their tables
 * and without the values of any run.
 */
import { estimatedRows } from "./estimate.ts";
import type { PlanNode } from "./plan.ts";
import { nodesOf } from "./plan_walk.ts";

/** What a plan is expected to yield; its scans know how many rows their tables have. */
export function rowsOfPlan(root: PlanNode): number {
  const counts = new Map(
    nodesOf(root).flatMap((node) =>
      node.kind === "scan" ? [[node.table, node.rowCount] as const] : [],
    ),
  );
  return estimatedRows(root, {
    rowsOf: (table) => counts.get(table)?.() ?? 0,
    countOf: () => undefined,
  });
}
