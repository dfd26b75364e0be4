/**
 * Represents SQL as a tree that can be cut down, so that a faulty statement of a hundred words
 * shrinks to the few words that matter.
 *
 * A node may be replaced by any node of the same sort below it, or by the shortest SQL of that
 * sort. A list may lose items, and an optional clause may be dropped. If a cut makes the SQL
 * invalid, both sides refuse it, so it does not count as a difference.
 */
export interface Node {
  /** The sort of the expression. Nodes of the same sort may replace each other. */
  readonly sort: string;
  readonly pieces: readonly Piece[];
  readonly separator: string;
  /** The minimum number of items if the node is a list; undefined for any other node. */
  readonly least: number | undefined;
}

type Piece = string | Node;

/** The shortest SQL for each sort of expression. */
const LEAST: Readonly<Record<string, readonly string[]>> = {
  int: ["1", "NULL::int"],
  decimal: ["1.5", "NULL::numeric"],
  float: ["1.5::float8", "NULL::float8"],
  text: ["'a'", "NULL::text"],
  bool: ["TRUE", "FALSE", "NULL::boolean"],
  date: ["DATE '2024-02-29'", "NULL::date"],
  timestamp: ["TIMESTAMP '2024-02-29 12:00:00'", "NULL::timestamp"],
  timestamptz: ["TIMESTAMPTZ '2024-02-29 12:00:00+00'", "NULL::timestamptz"],
};

/** Returns a node that consists of the given strings and nodes. */
export function node(sort: string, ...pieces: readonly Piece[]): Node {
  return { sort, pieces, separator: "", least: undefined };
}

export function list(sort: string, items: readonly Piece[], least = 1, separator = ", "): Node {
  return { sort, pieces: items, separator, least };
}

/** Returns a clause that shrinking may drop. */
export function optional(...pieces: readonly Piece[]): Node {
  return list("optional", [node("clause", ...pieces)], 0, "");
}

export function textOf(piece: Piece): string {
  return typeof piece === "string" ? piece : piece.pieces.map(textOf).join(piece.separator);
}

/** Returns the first node of a sort, in the order of the SQL. */
export function findNode(root: Node, sort: string): Node | undefined {
  if (root.sort === sort) return root;
  for (const piece of root.pieces) {
    const found = typeof piece === "string" ? undefined : findNode(piece, sort);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Cuts a tree down for as long as the fault remains.
 *
 * @param triesMax The maximum number of calls to `isFaulty`.
 */
export async function shrink(
  root: Node,
  isFaulty: (root: Node) => Promise<boolean>,
  triesMax: number,
): Promise<Node> {
  let best = root;
  let triesLeft = triesMax;
  let isSmaller = true;
  while (isSmaller) {
    isSmaller = false;
    for (const candidate of simplerForms(best)) {
      if (triesLeft === 0) return best;
      if (textOf(candidate).length >= textOf(best).length) continue;
      triesLeft -= 1;
      if (!(await isFaulty(candidate))) continue;
      best = candidate;
      isSmaller = true;
      break;
    }
  }
  return best;
}

function* simplerForms(from: Node): Generator<Node> {
  if (from.least !== undefined && from.pieces.length > from.least) {
    for (let i = 0; i < from.pieces.length; i += 1) {
      yield { ...from, pieces: from.pieces.filter((_, position) => position !== i) };
    }
  }
  for (const text of LEAST[from.sort] ?? []) yield node(from.sort, text);
  yield* descendants(from, from.sort);
  for (const [i, piece] of from.pieces.entries()) {
    if (typeof piece === "string") continue;
    for (const simpler of simplerForms(piece)) {
      yield { ...from, pieces: from.pieces.with(i, simpler) };
    }
  }
}

function* descendants(from: Node, sort: string): Generator<Node> {
  for (const piece of from.pieces) {
    if (typeof piece === "string") continue;
    if (piece.sort === sort) yield piece;
    yield* descendants(piece, sort);
  }
}
