/**
 * Where the calls over windows of a block are computed.
 */
import type { BoundSelect, BoundWindowCall } from "../bind/bound.ts";
import { columnIdsIn } from "../bind/walk.ts";
import { expressionsOfCall, sameOrder } from "../bind/window_walk.ts";
import type { PlanNode } from "./plan.ts";

/** One node for all calls over the same rows in the same order; what nobody reads is left out. */
export function planWindows(select: BoundSelect, input: PlanNode): PlanNode {
  const read = columnsOfOutputs(select);
  const groups: BoundWindowCall[][] = [];
  for (const call of select.windows) {
    if (!read.has(call.column.id)) continue;
    const alike = groups.find(([first]) => {
      return first !== undefined && sameOrder(first.window, call.window);
    });
    if (alike === undefined) groups.push([call]);
    else alike.push(call);
  }
  let node = input;
  for (const [i, calls] of groups.entries()) {
    const needed = new Set(read);
    for (const call of groups.slice(i + 1).flat()) {
      for (const expression of expressionsOfCall(call)) columnIdsIn(expression, needed);
    }
    const kept = node.columns.filter(({ id }) => needed.has(id));
    node = {
      kind: "window",
      input: node,
      calls,
      columns: [...kept, ...calls.map(({ column }) => column)],
    };
  }
  return node;
}

/** Columns that the select list, DISTINCT and ORDER BY read. */
function columnsOfOutputs({ distinct, orderBy, outputs }: BoundSelect): Set<number> {
  const read = new Set<number>();
  for (const { expression } of [...outputs, ...orderBy]) columnIdsIn(expression, read);
  if (typeof distinct === "object") for (const on of distinct.on) columnIdsIn(on, read);
  return read;
}
