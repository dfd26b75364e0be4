/**
 * Determines when the table functions of a select list produce their rows.
 *
 *     FROM, WHERE ─► calls that GROUP BY reads ─► groups ─► calls that windows read ─► windows
 *       ─► calls that DISTINCT or ORDER BY read, and then all others ─► DISTINCT, ORDER BY
 *       ─► if ORDER BY reads none of the calls: the others ─► LIMIT
 *
 * In the last case, rows are produced after sorting, so the rows that come from the same input row
 * stay together. A call in the arguments of another call runs before it; calls at the same nesting
 * level run side by side.
 */

import type { ExpansionCall, ExpansionSink, ExpressionContext } from "../binding.ts";
import type { BoundExpansion, ExpansionStage } from "../bound.ts";
import type { BoundExpression, BoundSort, BoundWindowCall } from "../bound_expressions.ts";
import { EquivalenceClasses, type EquivalenceOptions, formOfList } from "../equivalence.ts";
import { columnIdsIn, sameList } from "../walk.ts";

/** Creates the sink for the table functions of a query block. */
export function newExpansionSink(): ExpansionSink {
  return { calls: [], known: new EquivalenceClasses(LIKENESS) };
}

const LIKENESS: EquivalenceOptions<ExpansionCall> = {
  formOf: ({ made }) => `${made.name} ${formOfList(made.args)}`,
  areEquivalent: (left, right) =>
    left.made.name === right.made.name && sameList(left.made.args, right.made.args),
};

/**
 * Returns a context that refuses table functions, for an operand that must be a single value.
 *
 * @param form The name of the construct, for the message.
 */
export function withoutExpansions(context: ExpressionContext, form: string): ExpressionContext {
  if (context.expansions === undefined) return context;
  return { ...context, expansions: undefined, clause: form };
}

/** The parts of a query block that determine when its table functions run. */
export interface ExpandedBlock {
  readonly grouped: readonly BoundExpression[];
  readonly windows: readonly BoundWindowCall[];
  readonly orderBy: readonly BoundSort[];
  readonly distinctOn: readonly BoundExpression[];
  /** Whether the query block has a plain DISTINCT, which compares all selected values. */
  readonly isDistinct: boolean;
}

/**
 * Assigns each table function call to a stage of its query block. This must happen before the
 * arguments of the calls are rewritten to read groups.
 */
export function expansionsOf({ calls }: ExpansionSink, block: ExpandedBlock): BoundExpansion[] {
  if (calls.length === 0) return [];
  const stages = new Map<ExpansionCall, ExpansionStage>();
  const byId = new Map(calls.flatMap((call) => call.columns.map(({ id }) => [id, call])));
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
  mark(
    block.orderBy.map(({ expression }) => expression),
    "outputs",
  );
  mark(block.distinctOn, "outputs");
  const isLate = block.orderBy.length > 0 && !block.isDistinct && stages.size === before;
  for (const call of calls) if (!stages.has(call)) stages.set(call, isLate ? "order" : "outputs");
  return inOrder(calls, stages);
}

const STAGES: readonly ExpansionStage[] = ["grouping", "windows", "outputs", "order"];

/**
 * Sorts table function calls by stage. Within a stage, each call precedes the calls that read it.
 */
function inOrder(
  calls: readonly ExpansionCall[],
  stages: ReadonlyMap<ExpansionCall, ExpansionStage>,
): BoundExpansion[] {
  const expansions: BoundExpansion[] = [];
  for (const stage of STAGES) {
    // A call in another call's arguments is bound first, so its nesting level is already known.
    const levels = new Map<number, number>();
    const together: ExpansionCall[][] = [];
    for (const call of calls) {
      if (stages.get(call) !== stage) continue;
      let level = 0;
      for (const argument of call.made.args) {
        for (const id of columnIdsIn(argument)) level = Math.max(level, (levels.get(id) ?? -1) + 1);
      }
      for (const { id } of call.columns) levels.set(id, level);
      const others = together[level];
      if (others === undefined) together[level] = [call];
      else others.push(call);
    }
    for (const level of together) {
      const functions = level.map(({ made }) => made);
      expansions.push({ stage, functions, columns: level.flatMap((call) => call.columns) });
    }
  }
  return expansions;
}

/**
 * Applies `change` to the arguments of all table function calls except the calls that run before
 * grouping.
 */
export function mapExpansions(
  expansions: readonly BoundExpansion[],
  change: (expression: BoundExpression) => BoundExpression,
): readonly BoundExpansion[] {
  if (expansions.length === 0) return expansions;
  return expansions.map((each) => {
    if (each.stage === "grouping") return each;
    const functions = each.functions.map((made) => ({ ...made, args: made.args.map(change) }));
    return { ...each, functions };
  });
}
