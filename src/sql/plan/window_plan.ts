/**
 * Where the calls over windows of a block are computed.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundWindowCall } from "../bind/bound_expressions.ts";
import { argumentsOf } from "../bind/query/query_walk.ts";
import { expressionsOfCall, sameOrder } from "../bind/query/window_walk.ts";
import { columnIdsIn } from "../bind/walk.ts";
import type { PlanNode } from "./plan.ts";

/**
 * Nodes of one block: each sorts all rows, and 4,000 held the event loop for 15 s to be planned.
 */
const WINDOWS_MAX = 256;

/**
 * One node for all calls over the same rows in the same order; what nobody reads is left out.
 *
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
export function planWindows(select: BoundSelect, input: PlanNode): PlanNode {
  if (select.windows.length === 0) return input;
  const read = columnsOfOutputs(select);
  const groups: BoundWindowCall[][] = [];
  for (const call of select.windows) {
    if (!read.has(call.column.id)) continue;
    const alike = groups.find(([first]) => {
      return first !== undefined && sameOrder(first.window, call.window);
    });
    if (alike !== undefined) alike.push(call);
    else if (groups.length < WINDOWS_MAX) groups.push([call]);
    else throw tooManyWindows();
  }
  // A node holds its rows with what was computed before, so what may be long is computed last.
  const ordered = groups.toSorted((left, right) => longness(left) - longness(right));
  let node = input;
  for (const [i, calls] of ordered.entries()) {
    const needed = new Set(read);
    for (const call of ordered.slice(i + 1).flat()) {
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

/** 1 if a result may be as long as all rows together, else 0. */
function longness(calls: readonly BoundWindowCall[]): number {
  return calls.some(({ form }) => form.kind === "aggregate" && form.aggregate.gathers === true)
    ? 1
    : 0;
}

function tooManyWindows(): DatabaseError {
  return new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot compute over more than ${WINDOWS_MAX} different windows in one query`,
  );
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
