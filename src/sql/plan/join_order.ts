/**
 * Chooses the order of inner joins, and the side of each join to keep in memory. The chosen join
 * tree has the lowest cost according to the estimated row counts.
 *
 * Small sets of relations are combined into larger ones (dynamic programming over subsets, as in
 * Selinger's optimizer; trees may be bushy). A set of relations has the same number of rows in any
 * join order: the product of its relations' row counts and of the selectivity of each pair of
 * relations. The selectivity of a pair joined by a complete primary key is one divided by the
 * number of rows in the table with the key. Pairs without a common condition are combined only if
 * there is no other choice.
 *
 * If there are too many subsets, the cheapest pair is repeatedly joined and then treated as one
 * relation (greedy operator ordering, as by Fegaras).
 *
 * A statement is planned again when a table has grown to eight times as many rows.
 */
import { assert, defined } from "../../base/assert.ts";

/**
 * The maximum number of relations for which all subsets are enumerated. Up to this number,
 * planning time is negligible.
 */
const RELATIONS_MAX = 10;

/**
 * The relative costs of three steps of a join: storing a row in memory, matching a row against the
 * stored rows, and producing a row.
 */
const HELD_COST = 3;
const STREAMED_COST = 1;
const MADE_COST = 1;

/** The factor by which the cost of a join without a condition is increased. */
const PRODUCT_COST = 4;

export type JoinTree =
  | { readonly kind: "leaf"; readonly index: number }
  | { readonly kind: "pair"; readonly left: JoinTree; readonly right: JoinTree };

export interface JoinGraph {
  /** The expected number of rows of each relation, after its own conditions have been applied. */
  readonly rows: readonly number[];
  /**
   * The pairs of relations that a condition connects, each with the share of the pair's product
   * that the condition keeps.
   */
  readonly edges: readonly {
    readonly left: number;
    readonly right: number;
    readonly share: number;
  }[];
  /**
   * The pairs of relations that conditions connect only through other relations, although an
   * inferred equality allows joining them directly.
   */
  readonly inferred?: readonly InferredEdges[];
}

/**
 * The connections, stated and inferred, between relations with columns in the same set of equal
 * columns.
 */
export interface InferredEdges {
  readonly said: readonly { readonly left: number; readonly right: number }[];
  readonly inferred: JoinGraph["edges"];
}

/**
 * Returns a join tree over all relations of a join graph: the cheapest tree or, for many
 * relations, the result of a greedy search.
 */
export function bestTree(graph: JoinGraph): JoinTree {
  assert(graph.rows.length > 0, "join planner: join graph has no relations");
  // The greedy search joins connected relations first, so it does not need inferred connections.
  return graph.rows.length > RELATIONS_MAX ? greedyTree(graph) : cheapestTree(graph);
}

/**
 * Returns the cheaper of the two join trees over two relations, assuming that some condition
 * connects them.
 */
export function treeOfTwo([first = 0, second = 0]: readonly number[]): JoinTree {
  const [left, right] = first > second ? [0, 1] : [1, 0];
  return {
    kind: "pair",
    left: { kind: "leaf", index: left },
    right: { kind: "leaf", index: right },
  };
}

/** Finds the cheapest join tree. A set of relations is represented as a bit mask. */
function cheapestTree(graph: JoinGraph): JoinTree {
  const { rows } = graph;
  const adjacent = adjacentSets(graph);
  // These four arrays are indexed by the bit mask of a set of relations. They contain the
  // relations that a condition connects with the set, the expected number of rows, the cost of the
  // best tree, and the left side of that tree.
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
    // The loop visits every division of the set of relations into two parts, in both orders.
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

/** Returns, for each relation, the set of relations with which it shares a condition. */
function adjacentSets({ edges, inferred = [], rows }: JoinGraph): number[] {
  const sets = rows.map(() => 0);
  const add = ({ left, right }: { left: number; right: number }): void => {
    sets[left] = at(sets, left) | (1 << right);
    sets[right] = at(sets, right) | (1 << left);
  };
  for (const edge of edges) add(edge);
  for (const each of inferred) for (const edge of each.inferred) add(edge);
  return sets;
}

function treeOf(set: number, lefts: readonly number[]): JoinTree {
  const left = at(lefts, set);
  if (left === 0) return { kind: "leaf", index: lowestIn(set) };
  return { kind: "pair", left: treeOf(left, lefts), right: treeOf(set ^ left, lefts) };
}

/** Returns the lowest-numbered relation in a set, which is a bit mask. */
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

/** A set of relations that the greedy search has already joined. */
interface JoinComponent {
  readonly rows: number;
  readonly tree: JoinTree;
  /**
   * The components that share a condition with this component, each with the share of the product
   * that a join with it keeps.
   */
  readonly shares: Map<JoinComponent, number>;
}

function greedyTree({ edges, rows }: JoinGraph): JoinTree {
  const leaves = rows.map((own, index): JoinComponent => {
    return { rows: own, tree: { kind: "leaf", index }, shares: new Map() };
  });
  for (const { left, right, share } of edges) {
    const one = defined(leaves[left], "join planner: edge refers to an unknown relation");
    const other = defined(leaves[right], "join planner: edge refers to an unknown relation");
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
  return defined(whole, "join planner: components were not joined into one tree").tree;
}

/** Returns the two connected components that are cheapest to join, the larger one first. */
function cheapestPair(
  parts: ReadonlySet<JoinComponent>,
): readonly [JoinComponent, JoinComponent] | undefined {
  let found: readonly [JoinComponent, JoinComponent] | undefined;
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

function smallestPair(parts: ReadonlySet<JoinComponent>): readonly [JoinComponent, JoinComponent] {
  const [held, streamed] = [...parts].toSorted((left, right) => left.rows - right.rows);
  return [
    defined(streamed, "join planner: fewer than two components are left to join"),
    defined(held, "join planner: fewer than two components are left to join"),
  ];
}

/**
 * Merges two components. The result is connected with every component to which either of them was
 * connected.
 */
function joined(left: JoinComponent, right: JoinComponent): JoinComponent {
  const made = rowsTogether(left, right, left.shares.get(right) ?? 1);
  const tree: JoinTree = { kind: "pair", left: left.tree, right: right.tree };
  const part: JoinComponent = { rows: made, tree, shares: new Map() };
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

function rowsTogether(left: JoinComponent, right: JoinComponent, share: number): number {
  return Math.max(1, left.rows * right.rows * share);
}

function rowsOfSet(set: number, { edges, inferred = [], rows }: JoinGraph): number {
  let product = 1;
  for (let left = set; left !== 0; left &= left - 1) product *= at(rows, lowestIn(left));
  for (const { left, right, share } of edges) {
    if (isInside(set, left, right)) product *= share;
  }
  for (const each of inferred) product *= shareOfInferred(set, each, rows.length);
  return Math.max(1, product);
}

function isInside(set: number, left: number, right: number): boolean {
  return ((set >> left) & (set >> right) & 1) !== 0;
}

/**
 * Returns the share of rows that the inferred connections within a set of relations keep. A
 * connection counts only if no other connections already link its two relations.
 */
function shareOfInferred(set: number, { inferred, said }: InferredEdges, count: number): number {
  if (!inferred.some(({ left, right }) => isInside(set, left, right))) return 1;
  // For each relation, the set of relations to which it is connected so far.
  const parts = Array.from({ length: count }, (_, index) => 1 << index);
  for (const { left, right } of said) if (isInside(set, left, right)) unite(parts, left, right);
  let product = 1;
  for (const { left, right, share } of inferred) {
    if (isInside(set, left, right) && unite(parts, left, right)) product *= share;
  }
  return product;
}

/** Connects two relations. Returns false if they were already connected. */
function unite(parts: number[], left: number, right: number): boolean {
  const part = at(parts, left);
  if (((part >> right) & 1) !== 0) return false;
  const whole = part | at(parts, right);
  for (let rest = whole; rest !== 0; rest &= rest - 1) parts[lowestIn(rest)] = whole;
  return true;
}
