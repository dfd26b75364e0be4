/**
 * Finds statements that read deleted rows. The rows that such a statement returns depend on the
 * caller's right to read history.
 */
import type { PlanNode } from "../plan/plan.ts";
import { measuredNodes } from "./measured_nodes.ts";
import type { Prepared } from "./prepared.ts";

/**
 * Caches the result for each statement, so that plans from the plan cache are not examined at each
 * execution.
 */
const TOMBSTONE_READS = new WeakMap<Prepared, boolean>();

/** Whether a statement may read tombstones, in its own plan or in one of its subqueries. */
export function mayReadTombstones(prepared: Prepared): boolean {
  const known = TOMBSTONE_READS.get(prepared);
  if (known !== undefined) return known;
  const nodes = plansOf(prepared).flatMap(measuredNodes);
  const mayRead = nodes.some(
    (node) => node.kind === "changes" || (node.kind === "scan" && node.withTombstones),
  );
  TOMBSTONE_READS.set(prepared, mayRead);
  return mayRead;
}

/** Returns the plans with which a statement reads rows, in all of its parts. */
function plansOf(prepared: Prepared): readonly PlanNode[] {
  if (prepared.kind === "query") return [prepared.plan];
  const { changes, mainPlan } = prepared;
  return [...changes.map(({ plan }) => plan), mainPlan].flatMap((plan) => plan ?? []);
}
