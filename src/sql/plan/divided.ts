/**
 * Divides a plan among several readers. Each reader runs a part of the plan on its share of one
 * table's row groups, and the rest of the plan runs on the rows of all parts.
 *
 *     sort ─ filter ─ aggregate ─ join ─ scan          the plan
 *                     aggregate ─ join ─ scan'         the part: a share of the row groups
 *     sort ─ filter ─ aggregate'─ gathered             the whole: sums of the sums of the parts
 *
 * A plan can be divided at an aggregate, a DISTINCT, or a sort with a limit. Each row of one table
 * must reach that node independently of other rows: through filters, projections and the left
 * sides of joins. Every reader reads the complete right sides of these joins.
 */
import type { BoundAggregate, BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { isVolatile, sameExpression } from "../bind/walk.ts";
import { type AggregateParts, partsOf } from "../functions/aggregate/aggregate_parts.ts";
import { isAskedOnce } from "./folding.ts";
import type { AggregateNode, PlanNode, ScanNode } from "./plan.ts";
import { expressionsOf, nodesOf } from "./plan_walk.ts";

export interface DividedPlan {
  /** The plan that each reader runs on its share of the row groups. */
  readonly part: PlanNode;
  /** The plan that runs on the rows of all parts. */
  readonly whole: PlanNode;
}

/** The place at which a plan is divided. */
export interface PlanDivision {
  readonly root: PlanNode;
  /** The index of the plan node in `nodesOf`. */
  readonly at: number;
  /** The number of rows in the table divided among the readers. */
  readonly rowCount: number;
}

/**
 * Finds the place in a plan where a division covers the most rows. Returns undefined if the plan
 * cannot be divided.
 */
export function divisionOf(root: PlanNode): PlanDivision | undefined {
  let best: PlanDivision | undefined;
  const nodes = nodesOf(root);
  for (const node of readOnce(root)) {
    const divided = dividedNode(node);
    if (divided === undefined || !isSafe(divided.part)) continue;
    const { others, rowCount } = rowsReadIn(divided.part);
    // The tables that every reader reads completely must not account for most of the rows.
    if (others > rowCount || rowCount <= (best?.rowCount ?? -1)) continue;
    best = { root, at: nodes.indexOf(node), rowCount };
  }
  return best;
}

/**
 * Divides a plan at the place that {@linkcode divisionOf} found in another plan of the same shape.
 */
export function dividedAt(root: PlanNode, at: number): DividedPlan | undefined {
  const node = nodesOf(root)[at];
  const divided = node === undefined ? undefined : dividedNode(node);
  if (node === undefined || divided === undefined) return undefined;
  return { part: divided.part, whole: replaced(root, node, divided.whole) };
}

/**
 * Returns a string that describes the shape of a plan. Two plans of the same statement have equal
 * strings only if they have the same nodes in the same positions.
 */
export function shapeOf(root: PlanNode): string {
  return shapeOfNodes(nodesOf(root));
}

/**
 * Returns a string that describes the shape of a list of nodes, as {@linkcode shapeOf} does for a
 * plan.
 */
export function shapeOfNodes(nodes: readonly PlanNode[]): string {
  return nodes.map(shapeOfNode).join("|");
}

function shapeOfNode(node: PlanNode): string {
  const columns = node.columns.map(({ id }) => id).join();
  if (node.kind === "scan") return `scan ${node.table.tableId} ${columns}`;
  if (node.kind === "join") return `${node.join} ${node.holdsLeft === true} ${columns}`;
  return `${node.kind} ${columns}`;
}

/** Returns the nodes that a run reads exactly once, regardless of how many rows they yield. */
function readOnce(root: PlanNode): PlanNode[] {
  const found: PlanNode[] = [];
  const add = (node: PlanNode): void => {
    found.push(node);
    switch (node.kind) {
      case "set":
        add(node.left);
        add(node.right);
        return;
      case "join":
        add(node.left);
        // The right side is left out if the join is guarded, because an error there need not fail
        // the statement.
        if (node.isGuarded !== true) add(node.right);
        return;
      case "lateral":
        add(node.left);
        return;
      case "filter":
        if (!isAskedOnce(node.condition)) add(node.input);
        return;
      default:
        if ("input" in node) add(node.input);
    }
  };
  add(root);
  return found;
}

/** Divides a plan at a node. Each part reads a share of the node's input. */
function dividedNode(node: PlanNode): DividedPlan | undefined {
  if (node.kind !== "aggregate" && node.kind !== "distinct" && node.kind !== "sort") {
    return undefined;
  }
  const input = dividedInput(node.input);
  if (input === undefined) return undefined;
  const { columns } = node;
  switch (node.kind) {
    case "aggregate":
      return dividedAggregate(node, input);
    case "sort":
      if (node.limit === undefined) return undefined;
      return { part: { ...node, input }, whole: { ...node, input: { kind: "gathered", columns } } };
    case "distinct": {
      if (columns.length !== node.on.length || !node.on.every(isColumn)) return undefined;
      // A DISTINCT would send a few rows at a time. An aggregate sends its groups all at once,
      // when they are complete.
      const groupBy = columns.map((column) => ({ column, expression: columnValue(column) }));
      return {
        part: {
          kind: "aggregate",
          input,
          groupBy,
          groupingSets: undefined,
          aggregates: [],
          columns,
        },
        whole: { ...node, input: { kind: "gathered", columns } },
      };
    }
  }
}

function isColumn({ kind }: BoundExpression): boolean {
  return kind === "column";
}

/**
 * Returns a plan that reads only a share of one table, or undefined if some row of the plan
 * depends on several rows of that table.
 */
function dividedInput(node: PlanNode): PlanNode | undefined {
  switch (node.kind) {
    case "scan":
      if (node.key !== undefined || node.sought !== undefined) return undefined;
      return { ...node, isDivided: true };
    case "filter":
    case "project":
    case "expand": {
      const input = dividedInput(node.input);
      return input === undefined ? undefined : { ...node, input };
    }
    case "lateral":
    case "join": {
      if (node.join === "full" || (node.kind === "join" && node.holdsLeft === true)) {
        return undefined;
      }
      const left = dividedInput(node.left);
      return left === undefined ? undefined : { ...node, left };
    }
    default:
      return undefined;
  }
}

function dividedAggregate(node: AggregateNode, input: PlanNode): DividedPlan | undefined {
  const { aggregates, groupBy, groupingSets } = node;
  const counted = aggregates.filter(({ isDistinct }) => isDistinct);
  const argument = counted[0]?.argument;
  if (argument !== undefined && groupingSets !== undefined) return undefined;
  if (!counted.every((each) => isPlain(each) && isOf(each, argument))) return undefined;
  const keys = groupBy.map(({ column }) => column);
  if (groupingSets !== undefined) keys.unshift(groupingSets.column);
  // Column ids have to be unique only within the node.
  let lastId = Math.max(0, ...keys.map(({ id }) => id));
  const newColumn = (type: BoundColumn["type"]): BoundColumn => {
    lastId += 1;
    return { id: lastId, name: "", type };
  };
  const partKeys = [...groupBy];
  const differing = argument === undefined ? undefined : newColumn(argument.type);
  if (argument !== undefined && differing !== undefined) {
    // Each distinct argument counts only once, so the argument becomes an additional grouping key
    // of each part.
    partKeys.push({ column: differing, expression: argument });
  }
  const partAggregates: BoundAggregate[] = [];
  const wholeAggregates: BoundAggregate[] = [];
  for (const aggregate of aggregates) {
    if (aggregate.isDistinct && differing !== undefined) {
      wholeAggregates.push({ ...aggregate, argument: columnValue(differing) });
      continue;
    }
    const divided = partsOf(aggregate.form);
    if (divided === undefined || aggregate.orderBy.length > 0) return undefined;
    const ofParts = divided.parts.map((form) => ({
      ...aggregate,
      form,
      column: newColumn(form.result),
    }));
    partAggregates.push(...ofParts);
    wholeAggregates.push(wholeOf(aggregate, divided, ofParts));
  }
  const columns = [
    ...keys,
    ...(differing === undefined ? [] : [differing]),
    ...partAggregates.map(({ column }) => column),
  ];
  return {
    part: { ...node, input, groupBy: partKeys, aggregates: partAggregates, columns },
    whole: {
      ...node,
      input: { kind: "gathered", columns },
      groupBy: keys.map((column) => ({ column, expression: columnValue(column) })),
      groupingSets: undefined,
      aggregates: wholeAggregates,
    },
  };
}

/** Whether a call aggregates all input rows, apart from the duplicates that DISTINCT removes. */
function isPlain({ extra, filter, orderBy }: BoundAggregate): boolean {
  return extra.length === 0 && filter === undefined && orderBy.length === 0;
}

function isOf({ argument }: BoundAggregate, wanted: BoundExpression | undefined): boolean {
  return argument !== undefined && wanted !== undefined && sameExpression(argument, wanted);
}

/** Returns the aggregate call that combines the results of all parts. */
function wholeOf(
  aggregate: BoundAggregate,
  { whole }: AggregateParts,
  parts: readonly BoundAggregate[],
): BoundAggregate {
  const [argument, ...extra] = parts.map(({ column }) => columnValue(column));
  return { ...aggregate, form: whole, argument, extra, filter: undefined };
}

/** Whether the nodes that every reader reads completely yield the same rows in each reader. */
function isSafe(part: PlanNode): boolean {
  return nodesOf(part).every((node) => {
    if (node.kind === "cte" && node.cte.isVolatile) return false;
    return !expressionsOf(node).some(isVolatile);
  });
}

/** Returns the current number of rows in the divided table, and in all other tables together. */
function rowsReadIn(part: PlanNode): { readonly rowCount: number; readonly others: number } {
  let rowCount = 0;
  let others = 0;
  for (const node of nodesOf(part)) {
    if (node.kind !== "scan") continue;
    if (node.isDivided === true) rowCount += node.rowCount();
    else others += rowsExpected(node);
  }
  return { rowCount, others };
}

function rowsExpected({ key, rowCount, sought }: ScanNode): number {
  return key === undefined && sought === undefined ? rowCount() : 1;
}

function replaced(node: PlanNode, from: PlanNode, to: PlanNode): PlanNode {
  if (node === from) return to;
  switch (node.kind) {
    case "join":
    case "lateral":
    case "set":
      return {
        ...node,
        left: replaced(node.left, from, to),
        right: replaced(node.right, from, to),
      };
    default:
      return "input" in node ? { ...node, input: replaced(node.input, from, to) } : node;
  }
}
