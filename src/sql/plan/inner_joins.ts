/**
 * Plans nested inner joins as a single set of relations. Each condition is tested at the lowest
 * join that has all of its columns. The join order depends on estimated row counts, not on the
 * order in the statement.
 */
import { defined } from "../../base/assert.ts";
import type { BoundFrom } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { type Condition, conditionOf, expressionsOf } from "./conditions.ts";
import { type EqualColumns, equalColumns, equalityOf, followingOf } from "./equal_columns.ts";
import { rowsOfPlan } from "./estimate.ts";
import { type ColumnIds, columnsOf, type EqualSides, equalSides, keysOf } from "./join_keys.ts";
import {
  bestTree,
  type InferredEdges,
  type JoinGraph,
  type JoinTree,
  treeOfTwo,
} from "./join_order.ts";
import type { PlanNode } from "./plan.ts";
import { inferredOver } from "./predicate_inference.ts";
import { columnIdOf, shareOf } from "./selectivity.ts";

/** The maximum number of relations in a block for which joins use inferred conditions. */
const EQUAL_LEAVES_MAX = 64;

/**
 * The maximum number of relations for which the join order uses inferred pairs of relations. With
 * more relations, a greedy search finds the join order, using only the pairs that the statement
 * connects.
 */
const INFERENCE_LEAVES_MAX = 10;

/** The number of columns up to which searching an array is faster than searching a Set. */
const FEW_COLUMNS = 16;

/** The functions with which the planner plans the relations of a block. */
interface BlockPlanning {
  readonly conditionsOn: (join: BoundFrom) => readonly Condition[];
  /** Plans a relation, together with the conditions that read only this relation. */
  readonly planLeaf: (from: BoundFrom, conditions: readonly Condition[]) => PlanNode;
  /** Returns the columns that are still needed after the given conditions have been tested. */
  readonly columnsAbove: (
    columns: readonly BoundColumn[],
    tested: readonly Condition[],
  ) => readonly BoundColumn[];
}

interface Leaf {
  readonly node: PlanNode;
  readonly ids: ColumnIds;
  /** The estimated number of rows that satisfy the relation's own conditions. */
  readonly rowCount: number;
  /** The table's number of rows and its primary key, if the relation is a table. */
  readonly table:
    | {
        readonly rowCount: number;
        readonly key: readonly number[];
        readonly distinctOf: (columnId: number) => number | undefined;
      }
    | undefined;
}

/**
 * A condition that must be tested at a join, because it reads several relations or must not move
 * down to a single one.
 */
interface Between {
  readonly condition: Condition;
  /** The relations whose columns the condition reads, as indexes without duplicates. */
  readonly leaves: readonly number[];
}

/**
 * The leaves of a subtree of a join tree, as a range of positions in the whole tree. The end is
 * exclusive.
 */
interface LeafRange {
  readonly from: number;
  readonly end: number;
}

/** Whether a join may be reordered with the joins around it. */
export function isPlainJoin(from: BoundFrom): from is Extract<BoundFrom, { kind: "join" }> {
  if (from.kind !== "join" || from.outerReferences !== undefined || from.isBeside === true)
    return false;
  return from.join === "inner" || from.join === "cross";
}

/** Plans a tree of plain joins, together with the conditions that its rows must satisfy. */
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
  const ids = parts.map((_, index) => idsOfLeaf(index, leafById));
  const { between, own } = sharedOut(all, ids, leafById);
  // The cost of inferring conditions for a join grows with the number of joins, so no conditions
  // are inferred for a large set of relations.
  const equal = parts.length > EQUAL_LEAVES_MAX ? [] : equalColumns(all, leafById);
  for (const { expression, leaf } of followingOf(equal, all)) {
    own[leaf]?.push(conditionOf(expression));
  }
  const leaves = parts.map((part, index) => {
    const tested = own[index] ?? [];
    const node = block.planLeaf(part, tested);
    return leafOf(node, idsAt(ids, index), { part, own: tested });
  });
  const linked = equal.filter(({ members }) => members.length > 2).map(linkedOf);
  const tree =
    leaves.length === 2
      ? treeOfTwo(leaves.map(({ rowCount }) => rowCount))
      : bestTree(graphOf(leaves, between, inferredEdges(linked, leaves)));
  const places = placesOf(tree);
  return planTree(tree, { from: 0, tested: between }, { leaves, leafById, places, block, linked });
}

/** Assigns each condition to the relation or the join at which it is tested. */
function sharedOut(
  conditions: readonly Condition[],
  ids: readonly ColumnIds[],
  leafById: ReadonlyMap<number, number>,
): { own: readonly Condition[][]; between: readonly Between[] } {
  const own = ids.map((): Condition[] => []);
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
      const inferred = inferredOver(condition.expression, idsAt(ids, leaf));
      if (inferred !== undefined) own[leaf]?.push(conditionOf(inferred));
    }
  }
  return { own, between };
}

/** Collects the operands of nested plain joins, and the conditions of these joins. */
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

/** Returns the relations whose columns a condition reads, without duplicates. */
function leavesOf(
  { columnIds }: Condition,
  leafById: ReadonlyMap<number, number>,
): readonly number[] {
  const leaves: number[] = [];
  for (const id of columnIds) {
    const leaf = defined(
      leafById.get(id),
      "join planner: condition reads a column from outside the join",
    );
    if (!leaves.includes(leaf)) leaves.push(leaf);
  }
  return leaves;
}

function idsOfLeaf(leaf: number, leafById: ReadonlyMap<number, number>): ColumnIds {
  return { has: (id) => leafById.get(id) === leaf };
}

interface Joins {
  readonly leaves: readonly Leaf[];
  readonly leafById: ReadonlyMap<number, number>;
  /** The position of each leaf in the join tree, as computed by `placesOf`. */
  readonly places: readonly number[];
  readonly block: BlockPlanning;
  readonly linked: readonly Linked[];
}

/** A set of more than two columns that conditions make equal. */
interface Linked extends EqualColumns {
  /** The equality conditions that make these columns equal. */
  readonly said: ReadonlySet<Condition>;
}

function linkedOf(equal: EqualColumns): Linked {
  return { ...equal, said: new Set(equal.conditions) };
}

function planTree(
  tree: JoinTree,
  { from, tested }: { from: number; tested: readonly Between[] },
  joins: Joins,
): PlanNode {
  if (tree.kind === "leaf") return leafAt(joins.leaves, tree.index).node;
  const middle = from + leafCountOf(tree.left);
  const left = { from, end: middle };
  const right = { from: middle, end: middle + leafCountOf(tree.right) };
  const toLeft: Between[] = [];
  const toRight: Between[] = [];
  const here: Condition[] = [];
  for (const each of tested) {
    if (isWithin(each, left, joins)) toLeft.push(each);
    else if (isWithin(each, right, joins)) toRight.push(each);
    else here.push(each.condition);
  }
  const leftNode = planTree(tree.left, { from, tested: toLeft }, joins);
  const rightNode = planTree(tree.right, { from: middle, tested: toRight }, joins);
  const { leftKeys, residual, rightKeys } = keysOf(
    linkedConditions(here, [leftNode, rightNode], joins),
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

/**
 * Returns the conditions to test at a join. If several columns of a set of equal columns occur on
 * both sides, a single pair of them is compared, because the columns within each side are already
 * equal.
 */
function linkedConditions(
  here: readonly Condition[],
  [left, right]: readonly [PlanNode, PlanNode],
  { linked }: Joins,
): BoundExpression[] {
  if (linked.length === 0) return expressionsOf(here);
  const leftIds = idsOfColumns(left.columns);
  const rightIds = idsOfColumns(right.columns);
  let rest = here;
  const pairs = linked.flatMap((equal) => {
    const one = equal.members.find(({ column }) => leftIds.has(column.id));
    const other = equal.members.find(({ column }) => rightIds.has(column.id));
    if (one === undefined || other === undefined) return [];
    rest = rest.filter((condition) => !equal.said.has(condition));
    return [equalityOf(one, other, equal)];
  });
  return [...pairs, ...expressionsOf(rest)];
}

function idsOfColumns(columns: readonly BoundColumn[]): ColumnIds {
  if (columns.length > FEW_COLUMNS) return new Set(columns.map(({ id }) => id));
  return { has: (id) => columns.some((column) => column.id === id) };
}

/**
 * Returns the position of each leaf in a join tree, from left to right. The leaves of a subtree
 * are contiguous.
 */
function placesOf(tree: JoinTree): readonly number[] {
  const places: number[] = [];
  let next = 0;
  const visit = (part: JoinTree): void => {
    if (part.kind === "leaf") {
      places[part.index] = next;
      next += 1;
      return;
    }
    visit(part.left);
    visit(part.right);
  };
  visit(tree);
  return places;
}

function leafCountOf(tree: JoinTree): number {
  return tree.kind === "leaf" ? 1 : leafCountOf(tree.left) + leafCountOf(tree.right);
}

function isWithin({ condition, leaves }: Between, span: LeafRange, { places }: Joins): boolean {
  if (!condition.canMove) return false;
  for (const leaf of leaves) if (!isIn(places[leaf], span)) return false;
  return true;
}

function isIn(place: number | undefined, { end, from }: LeafRange): boolean {
  return place !== undefined && place >= from && place < end;
}

function idsIn(span: LeafRange, { leafById, places }: Joins): ColumnIds {
  return {
    has: (id) => {
      const leaf = leafById.get(id);
      return leaf !== undefined && isIn(places[leaf], span);
    },
  };
}

function leafOf(
  node: PlanNode,
  ids: ColumnIds,
  { own, part }: { part: BoundFrom; own: readonly Condition[] },
): Leaf {
  const relation = part.kind === "relation" ? part.relation : undefined;
  if (relation?.kind !== "table") {
    return { node, ids, rowCount: Math.max(1, rowsOfPlan(node)), table: undefined };
  }
  const total = Math.max(1, relation.rowCount());
  let share = 1;
  for (const { expression } of own) share *= shareOf(expression, total);
  const { distinctOf } = relation;
  const table = { rowCount: total, key: relation.table.primaryKey, distinctOf };
  return { node, ids, rowCount: Math.max(1, total * share), table };
}

function graphOf(
  leaves: readonly Leaf[],
  between: readonly Between[],
  inferred: readonly InferredEdges[],
): JoinGraph {
  const sharedByPair = new Map<number, BoundExpression[]>();
  for (const { condition, leaves: read } of between) {
    const [one, other] = read;
    if (read.length !== 2 || one === undefined || other === undefined) continue;
    const pair = Math.max(one, other) * leaves.length + Math.min(one, other);
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
  return { rows: leaves.map(({ rowCount }) => rowCount), edges, inferred: inferred };
}

/**
 * Returns the pairs of relations that are connected only through equalities with columns of other
 * relations.
 */
function inferredEdges(linked: readonly Linked[], leaves: readonly Leaf[]): InferredEdges[] {
  if (leaves.length > INFERENCE_LEAVES_MAX) return [];
  return linked.map((each) => {
    const said = each.conditions.flatMap(({ columnIds }) => {
      const [left, right] = columnIds.map((id) =>
        each.members.find(({ column }) => column.id === id),
      );
      return left === undefined || right === undefined
        ? []
        : [{ left: left.leaf, right: right.leaf }];
    });
    const inferred = each.members.flatMap((one, i) =>
      each.members.slice(i + 1).flatMap((other) => {
        if (one.leaf === other.leaf) return [];
        const [left, right] = [leafAt(leaves, one.leaf), leafAt(leaves, other.leaf)];
        const sides = { left: columnValue(one.column), right: columnValue(other.column) };
        const share = shareOfSides([sides], left, right);
        return [{ left: one.leaf, right: other.leaf, share }];
      }),
    );
    return { said, inferred };
  });
}

function idsAt(ids: readonly ColumnIds[], leaf: number): ColumnIds {
  return defined(ids[leaf], "join planner: relation has no column set");
}

function leafAt(leaves: readonly Leaf[], index: number): Leaf {
  return defined(leaves[index], "join planner: join tree refers to an unknown relation");
}

function shareOfPair(conditions: readonly BoundExpression[], left: Leaf, right: Leaf): number {
  const pairs: EqualSides[] = [];
  let others = 1;
  for (const condition of conditions) {
    const sides = equalSides(condition, left.ids, right.ids);
    if (sides === undefined) others *= shareOf(condition, 0);
    else pairs.push(sides);
  }
  return others * shareOfSides(pairs, left, right);
}

function shareOfSides(pairs: readonly EqualSides[], left: Leaf, right: Leaf): number {
  const key = keyRowsOf(right, pairs, "right") ?? keyRowsOf(left, pairs, "left");
  if (key !== undefined) return 1 / key;
  return pairs.reduce((share, pair) => {
    return share / Math.max(distinctOfSide(left, pair.left), distinctOfSide(right, pair.right));
  }, 1);
}

/**
 * Returns the row count of the table on one side of a join, if the columns on this side of the
 * equalities are the table's entire primary key.
 */
function keyRowsOf(
  { table }: Leaf,
  pairs: readonly EqualSides[],
  side: keyof EqualSides,
): number | undefined {
  if (table === undefined || table.key.length === 0) return undefined;
  const isFixed = table.key.every((columnId) =>
    pairs.some((pair) => columnIdOf(pair[side]) === columnId),
  );
  return isFixed ? table.rowCount : undefined;
}

/**
 * Estimates the number of distinct values on one side of an equality. Without statistics on the
 * stored values, a column of a composite key is assumed to have many distinct values.
 */
function distinctOfSide({ rowCount, table }: Leaf, side: BoundExpression | undefined): number {
  const columnId = side === undefined ? undefined : columnIdOf(side);
  if (table === undefined || columnId === undefined) return Math.sqrt(rowCount);
  const isPart = table.key.includes(columnId);
  const guess = isPart ? table.rowCount / (2 * table.key.length) : Math.sqrt(table.rowCount);
  return Math.max(1, table.distinctOf(columnId) ?? guess);
}
