/**
 * When the table functions of a select list make rows.
 *
 *     FROM, WHERE ─► those that GROUP BY reads ─► groups ─► those that windows read ─► windows
 *       ─► those that DISTINCT or ORDER BY read, and then all others ─► DISTINCT, ORDER BY
 *       ─► without such, where there is ORDER BY: the others ─► LIMIT
 *
 * So rows that were ordered stay together when they become many. A call in the arguments of another
 * one runs before it: calls of one level run side by side.
 */
import { Alike, formOfList } from "../alike.ts";
import type { ExpansionCall, ExpansionSink, Place } from "../binding.ts";
import type { BoundExpansion, ExpansionStage } from "../bound.ts";
import type { BoundExpression, BoundWindowCall } from "../bound_expressions.ts";
import { columnIdsIn, sameList } from "../walk.ts";

/** Where the table functions of a block are collected. */
export function newExpansionSink(): ExpansionSink {
  const known = new Alike<ExpansionCall>({
    formOf: ({ made }) => `${made.name} ${formOfList(made.args)}`,
    areAlike: (left, right) =>
      left.made.name === right.made.name && sameList(left.made.args, right.made.args),
  });
  return { calls: [], known };
}

/**
 * The same place, for a part of a form that takes one value: a table function is refused there.
 *
 * @param form For the message.
 */
export function withoutExpansions(place: Place, form: string): Place {
  if (place.expansions === undefined) return place;
  return { ...place, expansions: undefined, clause: form };
}

/** What of a block decides when its table functions run. */
export interface ExpandedBlock {
  readonly grouped: readonly BoundExpression[];
  readonly windows: readonly BoundWindowCall[];
  /** What ORDER BY and DISTINCT ON order and tell apart by. */
  readonly sorted: readonly BoundExpression[];
  /** ORDER BY without a plain DISTINCT, which tells rows apart by all that is selected. */
  readonly isOrdered: boolean;
}

/** Which calls run when, before their arguments are read over groups. */
export function expansionsOf({ calls }: ExpansionSink, block: ExpandedBlock): BoundExpansion[] {
  if (calls.length === 0) return [];
  const stages = new Map<ExpansionCall, ExpansionStage>();
  const byId = new Map(calls.map((call) => [call.column.id, call]));
  const mark = (expressions: readonly BoundExpression[], stage: ExpansionStage): void => {
    for (const expression of expressions) {
      for (const id of columnIdsIn(expression)) {
        const call = byId.get(id);
        if (call === undefined || stages.has(call)) continue;
        stages.set(call, stage);
        mark(call.made.args, stage);
      }
    }
  };
  mark(block.grouped, "grouping");
  for (const { window } of block.windows) {
    mark(window.partitionBy, "windows");
    mark(
      window.orderBy.map(({ expression }) => expression),
      "windows",
    );
  }
  const before = stages.size;
  mark(block.sorted, "outputs");
  const isLate = block.isOrdered && stages.size === before;
  for (const call of calls) if (!stages.has(call)) stages.set(call, isLate ? "order" : "outputs");
  return inOrder(calls, stages);
}

const STAGES: readonly ExpansionStage[] = ["grouping", "windows", "outputs", "order"];

/** Stage by stage, and in each those first that others of it read. */
function inOrder(
  calls: readonly ExpansionCall[],
  stages: ReadonlyMap<ExpansionCall, ExpansionStage>,
): BoundExpansion[] {
  const expansions: BoundExpansion[] = [];
  for (const stage of STAGES) {
    // A call comes behind those in its arguments, which were bound before it.
    const levels = new Map<number, number>();
    const together: ExpansionCall[][] = [];
    for (const call of calls) {
      if (stages.get(call) !== stage) continue;
      let level = 0;
      for (const argument of call.made.args) {
        for (const id of columnIdsIn(argument)) level = Math.max(level, (levels.get(id) ?? -1) + 1);
      }
      levels.set(call.column.id, level);
      const others = together[level];
      if (others === undefined) together[level] = [call];
      else others.push(call);
    }
    for (const level of together) {
      const functions = level.map(({ made }) => made);
      expansions.push({ stage, functions, columns: level.map(({ column }) => column) });
    }
  }
  return expansions;
}

/** The same calls over changed arguments, but for those that run before the rows are grouped. */
export function mapExpansions(
  expansions: readonly BoundExpansion[],
  change: (expression: BoundExpression) => BoundExpression,
): BoundExpansion[] {
  return expansions.map((each) => {
    if (each.stage === "grouping") return each;
    const functions = each.functions.map((made) => ({ ...made, args: made.args.map(change) }));
    return { ...each, functions };
  });
}
