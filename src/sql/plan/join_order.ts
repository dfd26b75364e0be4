/**
 * The order of inner joins, and which side of each is held: the cheapest tree by estimated rows.
 *
 * Small sets of relations are combined to larger ones (dynamic programming over subsets, as of
 * Selinger's optimizer; trees may be bushy). A set of relations has the same rows in whatever order
 * it was joined: the product of theirs, times the share that each pair of relations keeps. A pair
 * that meets by a whole primary key keeps one in as many as that table has rows. Pairs without a
 * common condition are combined only when nothing else is left.
 */
import { assert, defined } from "../../base/assert.ts";

/** Above, the work of planning would show: the relations are joined as they were written. */
const RELATIONS_MAX = 10;

/** What a row costs that is held, that meets the held ones, and that comes out. */
const HELD_COST = 3;
const STREAMED_COST = 1;
const MADE_COST = 1;

/** A pair without a condition is taken as this much worse than its rows. */
const PRODUCT_COST = 4;

export type JoinTree =
  | { readonly kind: "leaf"; readonly index: number }
  | { readonly kind: "pair"; readonly left: JoinTree; readonly right: JoinTree };

export interface JoinGraph {
  /** Expected rows of each relation, after its own conditions. */
  readonly rows: readonly number[];
  /** Which relations meet by a condition, and the share of their product that remains. */
  readonly edges: readonly {
    readonly left: number;
    readonly right: number;
    readonly share: number;
  }[];
}

interface Choice {
  readonly rows: number;
  readonly cost: number;
  readonly tree: JoinTree;
}

/** The cheapest tree over all relations of a graph; undefined when there are too many. */
export function bestTree({ edges, rows }: JoinGraph): JoinTree | undefined {
  const count = rows.length;
  assert(count > 0, "a join has relations");
  if (count > RELATIONS_MAX) return undefined;
  const best: (Choice | undefined)[] = Array.from({ length: 2 ** count });
  for (const [index, own] of rows.entries()) {
    best[2 ** index] = { rows: own, cost: 0, tree: { kind: "leaf", index } };
  }
  for (let set = 1; set < best.length; set += 1) {
    if (best[set] !== undefined) continue;
    const setRows = rowsOfSet(set, { edges, rows });
    let isConnected = false;
    let found: Choice | undefined;
    // Each way to split the set in two, in either order.
    for (let part = (set - 1) & set; part > 0; part = (part - 1) & set) {
      const left = defined(best[part], "smaller sets come first");
      const right = defined(best[set ^ part], "smaller sets come first");
      const meets = edges.some((edge) => isAcross(edge, part, set ^ part));
      if (isConnected && !meets) continue;
      const made = MADE_COST * setRows * (meets ? 1 : PRODUCT_COST);
      const own = HELD_COST * right.rows + STREAMED_COST * left.rows + made;
      const cost = left.cost + right.cost + own;
      const isBetter = found === undefined || cost < found.cost || (meets && !isConnected);
      if (!isBetter) continue;
      const tree: JoinTree = { kind: "pair", left: left.tree, right: right.tree };
      found = { rows: setRows, cost, tree };
      isConnected ||= meets;
    }
    best[set] = found;
  }
  return defined(best.at(-1), "the set of all is the last").tree;
}

function rowsOfSet(set: number, { edges, rows }: JoinGraph): number {
  let product = 1;
  for (const [index, own] of rows.entries()) if ((set & (2 ** index)) !== 0) product *= own;
  for (const { left, right, share } of edges) {
    if ((set & (2 ** left)) !== 0 && (set & (2 ** right)) !== 0) product *= share;
  }
  return Math.max(1, product);
}

function isAcross({ left, right }: { left: number; right: number }, a: number, b: number): boolean {
  const [l, r] = [2 ** left, 2 ** right];
  return ((a & l) !== 0 && (b & r) !== 0) || ((a & r) !== 0 && (b & l) !== 0);
}
