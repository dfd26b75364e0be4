/**
 * Where the calls over windows of a block are computed.
 */
import { Alike } from "../bind/alike.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundWindow, BoundWindowCall } from "../bind/bound_expressions.ts";
import { argumentsOf } from "../bind/query/query_walk.ts";
import { expressionsOfCall, formOfOrder, sameOrder } from "../bind/query/window_walk.ts";
import { columnIdsIn } from "../bind/walk.ts";
import type { PlanNode } from "./plan.ts";

/** Makes one node for all calls over the same rows in the same order, and drops unread columns. */
export function planWindows(select: BoundSelect, input: PlanNode): PlanNode {
  if (select.windows.length === 0) return input;
  const read = columnsOfOutputs(select);
  const groups = groupsOf(select.windows.filter(({ column }) => read.has(column.id)));
  // A node holds its rows with what was computed before, so what may be long is computed last.
  const ordered = groups.toSorted((left, right) => longness(left) - longness(right));
  const lastReader = lastReaders(ordered);
  let node = input;
  for (const [i, calls] of ordered.entries()) {
    const kept = node.columns.filter(({ id }) => read.has(id) || (lastReader.get(id) ?? 0) > i);
    node = {
      kind: "window",
      input: node,
      calls,
      columns: [...kept, ...calls.map(({ column }) => column)],
    };
  }
  return node;
}

function groupsOf(calls: readonly BoundWindowCall[]): readonly BoundWindowCall[][] {
  const orders = new Alike({ formOf: formOfOrder, areAlike: sameOrder });
  const groups = new Map<BoundWindow, BoundWindowCall[]>();
  for (const call of calls) {
    const known = orders.find(call.window);
    if (known !== undefined) {
      groups.get(known)?.push(call);
      continue;
    }
    orders.add(call.window);
    groups.set(call.window, [call]);
  }
  return [...groups.values()];
}

/** For each column id, the last group that reads the column. */
function lastReaders(groups: readonly (readonly BoundWindowCall[])[]): Map<number, number> {
  const last = new Map<number, number>();
  for (const [i, calls] of groups.entries()) {
    for (const call of calls) {
      for (const expression of expressionsOfCall(call)) {
        for (const id of columnIdsIn(expression)) last.set(id, i);
      }
    }
  }
  return last;
}

/** 1 if a result may be as long as all rows together, else 0. */
function longness(calls: readonly BoundWindowCall[]): number {
  return calls.some(({ form }) => form.kind === "aggregate" && form.aggregate.gathers === true)
    ? 1
    : 0;
}

/** Columns that the select list, its table functions, DISTINCT and ORDER BY read. */
function columnsOfOutputs(select: BoundSelect): Set<number> {
  const { distinct, orderBy, outputs } = select;
  const read = new Set<number>();
  for (const argument of argumentsOf(select.expansions)) columnIdsIn(argument, read);
  for (const { expression } of [...outputs, ...orderBy]) columnIdsIn(expression, read);
  if (typeof distinct === "object") for (const on of distinct.on) columnIdsIn(on, read);
  return read;
}
