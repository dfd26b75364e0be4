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

/**
 * A tree over all relations of a graph: the cheapest, or of many one that is cheap step by step.
 */
export function bestTree(graph: JoinGraph): JoinTree {
  assert(graph.rows.length > 0, "a join has relations");
  // With many relations, the greedy search joins connected parts first, so it needs no implied
  // edges.
  return graph.rows.length > RELATIONS_MAX ? greedyTree(graph) : cheapestTree(graph);
}

/** The cheapest tree over two relations, whatever condition there is between them. */
export function treeOfTwo([first = 0, second = 0]: readonly number[]): JoinTree {
  const [left, right] = first > second ? [0, 1] : [1, 0];
  return {
    kind: "pair",
    left: { kind: "leaf", index: left },
    right: { kind: "leaf", index: right },
  };
}

/** Sets of relations are numbers, with one bit for each relation. */
function cheapestTree(graph: JoinGraph): JoinTree {
  const { rows } = graph;
  const adjacent = adjacentSets(graph);
  // By the number of the set: the relations that meet one of its own by a condition, the expected
  // rows, the cost of its best tree, and the left side of this tree.
  const met = [0];
  const setRows = [0];
  const costs = [0];
  const lefts = [0];
  const whole = 2 ** rows.length - 1;
  for (let set = 1; set <= whole; set += 1) {
    const index = lowestIn(set);
    const others = set & (set - 1);
    met.push(at(met, others) | at(adjacent, index));
    if (others === 0) {
      setRows.push(at(rows, index));
      costs.push(0);
      lefts.push(0);
      continue;
    }
    const together = rowsOfSet(set, graph);
    let isConnected = false;
    let least = 0;
    let found = 0;
    // Each way to split the set in two, in either order.
    for (let part = (set - 1) & set; part > 0; part = (part - 1) & set) {
      const rest = set ^ part;
      const meets = (at(met, part) & rest) !== 0;
      if (isConnected && !meets) continue;
      const made = together * (meets ? 1 : PRODUCT_COST);
      const steps = { held: at(setRows, rest), streamed: at(setRows, part), made };
      const cost = at(costs, part) + at(costs, rest) + costOf(steps);
      const isBetter = found === 0 || cost < least || (meets && !isConnected);
      if (!isBetter) continue;
      least = cost;
      found = part;
      isConnected ||= meets;
    }
    setRows.push(together);
    costs.push(least);
    lefts.push(found);
  }
  return treeOf(whole, lefts);
}

/** For each relation, the set of those that it meets by a condition. */
function adjacentSets({ edges, implied = [], rows }: JoinGraph): number[] {
  const sets = rows.map(() => 0);
  const add = ({ left, right }: { left: number; right: number }): void => {
    sets[left] = at(sets, left) | (1 << right);
    sets[right] = at(sets, right) | (1 << left);
  };
  for (const edge of edges) add(edge);
  for (const each of implied) for (const edge of each.implied) add(edge);
  return sets;
}

function treeOf(set: number, lefts: readonly number[]): JoinTree {
  const left = at(lefts, set);
  if (left === 0) return { kind: "leaf", index: lowestIn(set) };
  return { kind: "pair", left: treeOf(left, lefts), right: treeOf(set ^ left, lefts) };
}

/** The relation with the lowest bit of a set. */
function lowestIn(set: number): number {
  return 31 - Math.clz32(set & -set);
}

function at(values: readonly number[], index: number): number {
  return values[index] ?? 0;
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
  for (let left = set; left !== 0; left &= left - 1) product *= at(rows, lowestIn(left));
  for (const { left, right, share } of edges) {
    if (isInside(set, left, right)) product *= share;
  }
  for (const each of implied) product *= shareImplied(set, each, rows.length);
  return Math.max(1, product);
}

function isInside(set: number, left: number, right: number): boolean {
  return ((set >> left) & (set >> right) & 1) !== 0;
}

/**
 * The share of rows that implied edges keep, for relations that no stated edge in the set connects.
 */
function shareImplied(set: number, { implied, said }: ImpliedEdges, count: number): number {
  if (!implied.some(({ left, right }) => isInside(set, left, right))) return 1;
  // For each relation, the set of those that it is connected with.
  const parts = Array.from({ length: count }, (_, index) => 1 << index);
  for (const { left, right } of said) if (isInside(set, left, right)) unite(parts, left, right);
  let product = 1;
  for (const { left, right, share } of implied) {
    if (isInside(set, left, right) && unite(parts, left, right)) product *= share;
  }
  return product;
}

/** Connects two relations; returns whether they were not connected yet. */
function unite(parts: number[], left: number, right: number): boolean {
  const part = at(parts, left);
  if (((part >> right) & 1) !== 0) return false;
  const whole = part | at(parts, right);
  for (let rest = whole; rest !== 0; rest &= rest - 1) parts[lowestIn(rest)] = whole;
  return true;
}
