/**
 * Inner joins as one set of relations: their conditions go to where their columns first meet, and
 * their order follows the expected rows, not the text.
 */
import { defined } from "../../base/assert.ts";
import { isInteger } from "../../types/mod.ts";
import type { BoundColumn, BoundExpression, BoundFrom } from "../bind/bound.ts";
import { type Condition, conditionOf, expressionsOf } from "./conditions.ts";
import { impliedOver } from "./implied.ts";
import { type ColumnIds, columnsOf, equalSides, keysOf } from "./join_keys.ts";
import { bestTree, type JoinGraph, type JoinTree } from "./join_order.ts";
import type { PlanNode } from "./plan.ts";
import { rowsOfPlan } from "./plan_rows.ts";
import { columnIdOf, shareOf } from "./selectivity.ts";

/** What the planner of the block does for its joins. */
interface BlockPlanning {
  /** The conditions of ON. */
  readonly conditionsOn: (join: BoundFrom) => readonly Condition[];
  /** How one relation is planned with the conditions over it alone. */
  readonly planLeaf: (from: BoundFrom, conditions: readonly Condition[]) => PlanNode;
  /** Which columns are read, once these conditions are tested, too. */
  readonly columnsAbove: (
    columns: readonly BoundColumn[],
    tested: readonly Condition[],
  ) => readonly BoundColumn[];
}

interface Leaf {
  readonly node: PlanNode;
  readonly ids: ColumnIds;
  /** Expected after its own conditions. */
  readonly rowCount: number;
  /** Of a table: how many rows it has, and its key. */
  readonly table:
    | {
        readonly rowCount: number;
        readonly key: readonly number[];
        readonly spanOf: (columnId: number) => number | undefined;
      }
    | undefined;
}

/** A condition that is tested at a join: over several leaves, or none that may move to its leaf. */
interface Between {
  readonly condition: Condition;
  /** Whose columns it reads, ascending. */
  readonly leaves: readonly number[];
}

/** Where a column is that no leaf has. */
const NO_LEAF = -1;

/** Whether a join may change places with those around it. */
export function isPlainJoin(from: BoundFrom): from is Extract<BoundFrom, { kind: "join" }> {
  if (from.kind !== "join" || from.captures !== undefined) return false;
  return from.join === "inner" || from.join === "cross";
}

/** Plans a tree of plain joins under conditions that must hold above it. */
export function planInnerJoins(
  from: BoundFrom,
  conditions: readonly Condition[],
  block: BlockPlanning,
): PlanNode {
  const parts: BoundFrom[] = [];
  const all: Condition[] = [];
  flatten(from, { parts, conditions: all, block });
  all.push(...conditions);
  const leafById = new Map<number, number>();
  for (const [index, part] of parts.entries()) {
    for (const { id } of columnsOf(part)) leafById.set(id, index);
  }
  const { between, own } = sharedOut(all, parts.length, leafById);
  const leaves = parts.map((part, index) => {
    const tested = own[index] ?? [];
    const node = block.planLeaf(part, tested);
    return leafOf(node, idsOfLeaf(index, leafById), { part, own: expressionsOf(tested) });
  });
  const tree = bestTree(graphOf(leaves, between));
  return planTree(tree, between, { leaves, leafById, block });
}

/** What each leaf tests, and what is tested at the joins. */
function sharedOut(
  conditions: readonly Condition[],
  leafCount: number,
  leafById: ReadonlyMap<number, number>,
): { own: readonly Condition[][]; between: readonly Between[] } {
  const own = Array.from({ length: leafCount }, (): Condition[] => []);
  const between: Between[] = [];
  for (const condition of conditions) {
    const leaves = leavesOf(condition, leafById);
    const [first] = leaves;
    if (first !== undefined && leaves.length === 1 && condition.canMove) {
      own[first]?.push(condition);
      continue;
    }
    between.push({ condition, leaves });
    for (const leaf of leaves) {
      const implied = impliedOver(condition.expression, idsOfLeaf(leaf, leafById));
      if (implied !== undefined) own[leaf]?.push(conditionOf(implied));
    }
  }
  return { own, between };
}

/** The parts that plain joins join, and the conditions of these. */
function flatten(
  from: BoundFrom,
  into: { parts: BoundFrom[]; conditions: Condition[]; block: BlockPlanning },
): void {
  if (!isPlainJoin(from)) {
    into.parts.push(from);
    return;
  }
  flatten(from.left, into);
  flatten(from.right, into);
  into.conditions.push(...into.block.conditionsOn(from));
}

/** The leaves whose columns a condition reads, ascending. */
function leavesOf(
  { columnIds }: Condition,
  leafById: ReadonlyMap<number, number>,
): readonly number[] {
  const leaves: number[] = [];
  for (const id of columnIds) {
    const leaf = defined(leafById.get(id), "conditions of joins read what these join");
    if (!leaves.includes(leaf)) leaves.push(leaf);
  }
  return leaves.length > 1 ? leaves.toSorted((left, right) => left - right) : leaves;
}

function idsOfLeaf(leaf: number, leafById: ReadonlyMap<number, number>): ColumnIds {
  return { has: (id) => leafById.get(id) === leaf };
}

interface Joins {
  readonly leaves: readonly Leaf[];
  readonly leafById: ReadonlyMap<number, number>;
  readonly block: BlockPlanning;
}

function planTree(tree: JoinTree, tested: readonly Between[], joins: Joins): PlanNode {
  if (tree.kind === "leaf") return leafAt(joins.leaves, tree.index).node;
  const left = leavesIn(tree.left);
  const right = leavesIn(tree.right);
  const toLeft: Between[] = [];
  const toRight: Between[] = [];
  const here: Condition[] = [];
  for (const each of tested) {
    if (isWithin(each, left)) toLeft.push(each);
    else if (isWithin(each, right)) toRight.push(each);
    else here.push(each.condition);
  }
  const leftNode = planTree(tree.left, toLeft, joins);
  const rightNode = planTree(tree.right, toRight, joins);
  const { leftKeys, residual, rightKeys } = keysOf(
    expressionsOf(here),
    idsIn(left, joins),
    idsIn(right, joins),
  );
  const columns = [...leftNode.columns, ...rightNode.columns];
  return {
    kind: "join",
    join: "inner",
    left: leftNode,
    right: rightNode,
    leftKeys,
    rightKeys,
    residual,
    columns: joins.block.columnsAbove(columns, here),
  };
}

function leavesIn(tree: JoinTree, into: Set<number> = new Set<number>()): ReadonlySet<number> {
  if (tree.kind === "leaf") return into.add(tree.index);
  leavesIn(tree.left, into);
  return leavesIn(tree.right, into);
}

function isWithin({ condition, leaves }: Between, tree: ReadonlySet<number>): boolean {
  return condition.canMove && leaves.every((leaf) => tree.has(leaf));
}

function idsIn(tree: ReadonlySet<number>, { leafById }: Joins): ColumnIds {
  return { has: (id) => tree.has(leafById.get(id) ?? NO_LEAF) };
}

function leafOf(
  node: PlanNode,
  ids: ColumnIds,
  { own, part }: { part: BoundFrom; own: readonly BoundExpression[] },
): Leaf {
  const relation = part.kind === "relation" ? part.relation : undefined;
  if (relation?.kind !== "table") {
    return { node, ids, rowCount: Math.max(1, rowsOfPlan(node)), table: undefined };
  }
  const total = Math.max(1, relation.rowCount());
  const share = own.reduce((product, condition) => product * shareOf(condition, total), 1);
  const { spanOf } = relation;
  const table = { rowCount: total, key: relation.table.primaryKey, spanOf };
  return { node, ids, rowCount: Math.max(1, total * share), table };
}

function graphOf(leaves: readonly Leaf[], between: readonly Between[]): JoinGraph {
  const sharedByPair = new Map<number, BoundExpression[]>();
  for (const { condition, leaves: read } of between) {
    const [left, right] = read;
    if (read.length !== 2 || left === undefined || right === undefined) continue;
    const pair = right * leaves.length + left;
    const shared = sharedByPair.get(pair);
    if (shared === undefined) sharedByPair.set(pair, [condition.expression]);
    else shared.push(condition.expression);
  }
  const pairs = [...sharedByPair].toSorted(([left], [right]) => left - right);
  const edges = pairs.map(([pair, shared]) => {
    const left = pair % leaves.length;
    const right = Math.floor(pair / leaves.length);
    const share = shareOfPair(shared, leafAt(leaves, left), leafAt(leaves, right));
    return { left, right, share };
  });
  return { rows: leaves.map(({ rowCount }) => rowCount), edges };
}

function leafAt(leaves: readonly Leaf[], index: number): Leaf {
  return defined(leaves[index], "a tree is over its leaves");
}

function shareOfPair(conditions: readonly BoundExpression[], left: Leaf, right: Leaf): number {
  const pairs: NonNullable<ReturnType<typeof equalSides>>[] = [];
  let others = 1;
  for (const condition of conditions) {
    const sides = equalSides(condition, left.ids, right.ids);
    if (sides === undefined) others *= shareOf(condition, 0);
    else pairs.push(sides);
  }
  const leftIds = pairs.map((pair) => columnIdOf(pair.left));
  const rightIds = pairs.map((pair) => columnIdOf(pair.right));
  for (const [leaf, ids] of [
    [right, rightIds],
    [left, leftIds],
  ] as const) {
    const { table } = leaf;
    if (table === undefined || table.key.length === 0) continue;
    if (table.key.every((columnId) => ids.includes(columnId))) return others / table.rowCount;
  }
  return pairs.reduce((share, pair) => {
    return share / Math.max(distinctOf(left, pair.left), distinctOf(right, pair.right));
  }, others);
}

/**
 * How many values a column may have: a part of a key has many, others as many as lie between its
 * bounds, if that is few.
 */
function distinctOf({ rowCount, table }: Leaf, column: BoundExpression | undefined): number {
  const columnId = column === undefined ? undefined : columnIdOf(column);
  if (table === undefined || columnId === undefined) return Math.sqrt(rowCount);
  const isPart = table.key.includes(columnId);
  const guess = isPart ? table.rowCount / (2 * table.key.length) : Math.sqrt(table.rowCount);
  const span = column !== undefined && isInteger(column.type) ? table.spanOf(columnId) : undefined;
  return Math.max(1, Math.min(guess, span ?? guess));
}
