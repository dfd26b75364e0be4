/**
 * Inner joins as one set of relations: their conditions go to where their columns first meet, and
 * their order follows the expected rows, not the text.
 */
import { defined } from "../../base/assert.ts";
import { isInteger } from "../../types/mod.ts";
import type { BoundExpression, BoundFrom } from "../bind/bound.ts";
import { columnIdsIn, conjunctsOf } from "../bind/walk.ts";
import { impliedOver } from "./implied.ts";
import { columnIdsOf, equalSides, isOver, keysOf } from "./join_keys.ts";
import { bestTree, type JoinGraph, type JoinTree } from "./join_order.ts";
import type { PlanNode } from "./plan.ts";
import { rowsOfPlan } from "./plan_rows.ts";
import { columnIdOf, shareOf } from "./selectivity.ts";

/** How one relation is planned with the conditions over it alone. */
type PlanLeaf = (from: BoundFrom, conditions: readonly BoundExpression[]) => PlanNode;

/** Which of a node's columns are read, once these conditions are tested at it or below. */
type KeepColumns = (node: PlanNode, tested: readonly BoundExpression[]) => PlanNode["columns"];

interface Leaf {
  readonly node: PlanNode;
  readonly ids: ReadonlySet<number>;
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

/** Whether a join may change places with those around it. */
export function isPlainJoin(from: BoundFrom): from is Extract<BoundFrom, { kind: "join" }> {
  if (from.kind !== "join" || from.captures !== undefined) return false;
  return from.join === "inner" || from.join === "cross";
}

/** Plans a tree of plain joins under conditions that must hold above it. */
export function planInnerJoins(
  from: BoundFrom,
  conditions: readonly BoundExpression[],
  { keepColumns, planLeaf }: { keepColumns: KeepColumns; planLeaf: PlanLeaf },
): PlanNode {
  const { parts, pool } = flattened(from);
  const all = [...pool, ...conditions];
  const leaves = parts.map((part): Leaf => {
    const ids = columnIdsOf(part);
    const own: BoundExpression[] = [];
    for (const condition of all) {
      const tested = isOver(condition, ids) ? condition : impliedOver(condition, ids);
      if (tested !== undefined) own.push(tested);
    }
    return leafOf(planLeaf(part, own), ids, { part, own });
  });
  const between = all.filter((condition) => !leaves.some(({ ids }) => isOver(condition, ids)));
  const tree = bestTree(graphOf(leaves, between));

  const idsByTree = new Map<JoinTree, ReadonlySet<number>>();
  function idsOf(at: JoinTree): ReadonlySet<number> {
    if (at.kind === "leaf") return leafAt(leaves, at.index).ids;
    const known = idsByTree.get(at);
    if (known !== undefined) return known;
    const ids = new Set([...idsOf(at.left), ...idsOf(at.right)]);
    idsByTree.set(at, ids);
    return ids;
  }

  function planTree(at: JoinTree, tested: readonly BoundExpression[]): Joined {
    if (at.kind === "leaf") return leafAt(leaves, at.index);
    const below = idsOf(at.left);
    const beside = idsOf(at.right);
    const toLeft = tested.filter((condition) => isOver(condition, below));
    const toRight = tested.filter((condition) => isOver(condition, beside));
    const here = tested.filter((each) => !toLeft.includes(each) && !toRight.includes(each));
    const left = planTree(at.left, toLeft);
    const right = planTree(at.right, toRight);
    const join: PlanNode = {
      kind: "join",
      join: "inner",
      left: left.node,
      right: right.node,
      ...keysOf(here, left.ids, right.ids),
      columns: [...left.node.columns, ...right.node.columns],
    };
    const ids = new Set([...left.ids, ...right.ids]);
    const done = all.filter(
      (condition) => !between.includes(condition) || tested.includes(condition),
    );
    return { node: { ...join, columns: keepColumns(join, done) }, ids };
  }
  return planTree(tree, between).node;
}

type Joined = Pick<Leaf, "node" | "ids">;

function flattened(from: BoundFrom): { parts: BoundFrom[]; pool: BoundExpression[] } {
  if (!isPlainJoin(from)) return { parts: [from], pool: [] };
  const left = flattened(from.left);
  const right = flattened(from.right);
  return {
    parts: [...left.parts, ...right.parts],
    pool: [...left.pool, ...right.pool, ...conjunctsOf(from.condition)],
  };
}

function leafOf(
  node: PlanNode,
  ids: ReadonlySet<number>,
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

function graphOf(leaves: readonly Leaf[], conditions: readonly BoundExpression[]): JoinGraph {
  const leafById = new Map<number, number>();
  for (const [index, { ids }] of leaves.entries()) for (const id of ids) leafById.set(id, index);
  const sharedByPair = new Map<number, BoundExpression[]>();
  for (const condition of conditions) {
    const touched = new Set<number | undefined>();
    for (const id of columnIdsIn(condition)) touched.add(leafById.get(id));
    const [one, other] = touched;
    if (touched.size !== 2 || one === undefined || other === undefined) continue;
    const pair = Math.max(one, other) * leaves.length + Math.min(one, other);
    const shared = sharedByPair.get(pair);
    if (shared === undefined) sharedByPair.set(pair, [condition]);
    else shared.push(condition);
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
