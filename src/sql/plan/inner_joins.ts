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
    const own = all.flatMap((condition) => {
      return isOver(condition, ids) ? condition : (impliedOver(condition, ids) ?? []);
    });
    return leafOf(planLeaf(part, own), ids, { part, own });
  });
  const between = all.filter((condition) => !leaves.some(({ ids }) => isOver(condition, ids)));
  const tree = bestTree(graphOf(leaves, between)) ?? asWritten(leaves.length);

  function planTree(at: JoinTree, tested: readonly BoundExpression[]): Joined {
    if (at.kind === "leaf") return defined(leaves[at.index], "a tree is over its leaves");
    const below = idsIn(at.left, leaves);
    const beside = idsIn(at.right, leaves);
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

function asWritten(count: number): JoinTree {
  let tree: JoinTree = { kind: "leaf", index: 0 };
  for (let index = 1; index < count; index += 1) {
    tree = { kind: "pair", left: tree, right: { kind: "leaf", index } };
  }
  return tree;
}

function idsIn(tree: JoinTree, leaves: readonly Leaf[]): ReadonlySet<number> {
  if (tree.kind === "leaf") return defined(leaves[tree.index], "a tree is over its leaves").ids;
  return new Set([...idsIn(tree.left, leaves), ...idsIn(tree.right, leaves)]);
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
  const edges: { left: number; right: number; share: number }[] = [];
  for (const [right, rightLeaf] of leaves.entries()) {
    for (const [left, leftLeaf] of leaves.slice(0, right).entries()) {
      const shared = conditions.filter((condition) => isBetween(condition, leftLeaf, rightLeaf));
      if (shared.length === 0) continue;
      edges.push({ left, right, share: shareOfPair(shared, leftLeaf, rightLeaf) });
    }
  }
  return { rows: leaves.map(({ rowCount }) => rowCount), edges };
}

function isBetween(condition: BoundExpression, left: Leaf, right: Leaf): boolean {
  const used = [...columnIdsIn(condition)];
  return (
    used.some((id) => left.ids.has(id)) &&
    used.some((id) => right.ids.has(id)) &&
    used.every((id) => left.ids.has(id) || right.ids.has(id))
  );
}

function shareOfPair(conditions: readonly BoundExpression[], left: Leaf, right: Leaf): number {
  const pairs = conditions.flatMap((condition) => equalSides(condition, left.ids, right.ids) ?? []);
  const others = conditions
    .filter((condition) => equalSides(condition, left.ids, right.ids) === undefined)
    .reduce((share, condition) => share * shareOf(condition, 0), 1);
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
