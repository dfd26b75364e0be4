/**
 * The order of inner joins, and which side of each is held: the cheapest tree by estimated rows.
 *
 * Small sets of relations are combined to larger ones (dynamic programming over subsets, as of
 * Selinger's optimizer; trees may be bushy). A set of relations has the same rows in whatever order
 * it was joined: the product of theirs, times the share that each pair of relations keeps. A pair
 * that meets by a whole primary key keeps one in as many as that table has rows. Pairs without a
 * common condition are combined only when nothing else is left.
 *
 * The subsets of many relations are too many. Of those the cheapest pair is joined, and takes part
 * as one relation from then on (greedy operator ordering, as of Fegaras).
 *
 * A plan is made anew when a table has eight times its rows. Forty relations are planned in 10 ms.
 */
import { assert, defined } from "../../base/assert.ts";

/** Above, going through all subsets would show in the time of planning. */
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
  /** Implied edges: pairs of relations that are connected through others, or even without them. */
  readonly implied?: readonly ImpliedEdges[];
}

/** The stated and the implied edges of one set of equal columns. */
export interface ImpliedEdges {
  readonly said: readonly { readonly left: number; readonly right: number }[];
  readonly implied: JoinGraph["edges"];
}

interface Choice {
  readonly rows: number;
  readonly cost: number;
  readonly tree: JoinTree;
}

/**
 * A tree over all relations of a graph: the cheapest, or of many one that is cheap step by step.
 */
export function bestTree(graph: JoinGraph): JoinTree {
  assert(graph.rows.length > 0, "a join has relations");
  // With many relations, the greedy search joins connected parts first, so it needs no implied
  // edges.
  return graph.rows.length > RELATIONS_MAX ? greedyTree(graph) : cheapestTree(graph);
}

function cheapestTree(graph: JoinGraph): JoinTree {
  const { implied = [], rows } = graph;
  const edges = graph.edges.concat(implied.flatMap((each) => each.implied));
  const count = rows.length;
  const best: (Choice | undefined)[] = Array.from({ length: 2 ** count });
  for (const [index, own] of rows.entries()) {
    best[2 ** index] = { rows: own, cost: 0, tree: { kind: "leaf", index } };
  }
  for (let set = 1; set < best.length; set += 1) {
    if (best[set] !== undefined) continue;
    const setRows = rowsOfSet(set, graph);
    let isConnected = false;
    let found: Choice | undefined;
    // Each way to split the set in two, in either order.
    for (let part = (set - 1) & set; part > 0; part = (part - 1) & set) {
      const left = defined(best[part], "smaller sets come first");
      const right = defined(best[set ^ part], "smaller sets come first");
      const meets = edges.some((edge) => isAcross(edge, part, set ^ part));
      if (isConnected && !meets) continue;
      const made = setRows * (meets ? 1 : PRODUCT_COST);
      const cost = left.cost + right.cost + costOf({ held: right.rows, streamed: left.rows, made });
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

interface Steps {
  readonly held: number;
  readonly streamed: number;
  readonly made: number;
}

function costOf({ held, made, streamed }: Steps): number {
  return HELD_COST * held + STREAMED_COST * streamed + MADE_COST * made;
}

/** What is joined already, while a tree grows. */
interface Part {
  readonly rows: number;
  readonly tree: JoinTree;
  /** The parts it meets by a condition, and the share of their product that remains. */
  readonly shares: Map<Part, number>;
}

function greedyTree({ edges, rows }: JoinGraph): JoinTree {
  const leaves = rows.map((own, index): Part => {
    return { rows: own, tree: { kind: "leaf", index }, shares: new Map() };
  });
  for (const { left, right, share } of edges) {
    const one = defined(leaves[left], "an edge is between relations");
    const other = defined(leaves[right], "an edge is between relations");
    one.shares.set(other, share * (one.shares.get(other) ?? 1));
    other.shares.set(one, share * (other.shares.get(one) ?? 1));
  }
  const parts = new Set(leaves);
  while (parts.size > 1) {
    const [streamed, held] = cheapestPair(parts) ?? smallestPair(parts);
    parts.delete(streamed);
    parts.delete(held);
    parts.add(joined(streamed, held));
  }
  const [whole] = parts;
  return defined(whole, "all parts become one").tree;
}

/** The parts that meet by a condition and cost least to join; the larger one comes first. */
function cheapestPair(parts: ReadonlySet<Part>): readonly [Part, Part] | undefined {
  let found: readonly [Part, Part] | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const streamed of parts) {
    for (const [held, share] of streamed.shares) {
      const made = rowsTogether(streamed, held, share);
      const cost = costOf({ held: held.rows, streamed: streamed.rows, made });
      if (cost >= least) continue;
      found = [streamed, held];
      least = cost;
    }
  }
  return found;
}

function smallestPair(parts: ReadonlySet<Part>): readonly [Part, Part] {
  const [held, streamed] = [...parts].toSorted((left, right) => left.rows - right.rows);
  return [defined(streamed, "two parts are left"), defined(held, "two parts are left")];
}

/** One part of two, which meets what either met. */
function joined(left: Part, right: Part): Part {
  const made = rowsTogether(left, right, left.shares.get(right) ?? 1);
  const tree: JoinTree = { kind: "pair", left: left.tree, right: right.tree };
  const part: Part = { rows: made, tree, shares: new Map() };
  for (const side of [left, right]) {
    for (const [other, share] of side.shares) {
      if (other === left || other === right) continue;
      part.shares.set(other, share * (part.shares.get(other) ?? 1));
    }
  }
  for (const [other, share] of part.shares) {
    other.shares.delete(left);
    other.shares.delete(right);
    other.shares.set(part, share);
  }
  return part;
}

function rowsTogether(left: Part, right: Part, share: number): number {
  return Math.max(1, left.rows * right.rows * share);
}

function rowsOfSet(set: number, { edges, implied = [], rows }: JoinGraph): number {
  let product = 1;
  for (const [index, own] of rows.entries()) if ((set & (2 ** index)) !== 0) product *= own;
  for (const { left, right, share } of edges) {
    if (isInside(set, left, right)) product *= share;
  }
  for (const each of implied) product *= shareImplied(set, each);
  return Math.max(1, product);
}

function isInside(set: number, left: number, right: number): boolean {
  return (set & (2 ** left)) !== 0 && (set & (2 ** right)) !== 0;
}

/**
 * The share of rows that implied edges keep, for relations that no stated edge in the set connects.
 */
function shareImplied(set: number, { implied, said }: ImpliedEdges): number {
  const parts = new Map<number, number>();
  const partOf = (leaf: number): number => parts.get(leaf) ?? leaf;
  const unite = (left: number, right: number): boolean => {
    const [one, other] = [partOf(left), partOf(right)];
    if (one === other) return false;
    for (const leaf of [...parts.keys(), left, right]) {
      if (partOf(leaf) === other) parts.set(leaf, one);
    }
    parts.set(left, one);
    return true;
  };
  for (const { left, right } of said) if (isInside(set, left, right)) unite(left, right);
  let product = 1;
  for (const { left, right, share } of implied) {
    if (isInside(set, left, right) && unite(left, right)) product *= share;
  }
  return product;
}

function isAcross({ left, right }: { left: number; right: number }, a: number, b: number): boolean {
  const [l, r] = [2 ** left, 2 ** right];
  return ((a & l) !== 0 && (b & r) !== 0) || ((a & r) !== 0 && (b & l) !== 0);
}
