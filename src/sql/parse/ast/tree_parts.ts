/** Visits all parts of a syntax tree, in order to search, compare or copy it. */
import type { Location } from "./ast.ts";

/**
 * Yields a part of a syntax tree and every object and list below it, parents first, in the order
 * of the tree. The values of a long list of literals are omitted: their nodes are created only on
 * demand, and they contain no names, calls or queries.
 *
 * @param insideOf Returns the contents of a part. It is called after that part has been yielded.
 */
export function* partsOf(
  root: unknown,
  insideOf: (part: object) => readonly unknown[] = directPartsOf,
): Generator<object> {
  const rest: unknown[] = [root];
  while (rest.length > 0) {
    const part = rest.pop();
    if (!isPart(part)) continue;
    yield part;
    const inside = insideOf(part);
    for (let index = inside.length - 1; index >= 0; index -= 1) rest.push(inside[index]);
  }
}

/**
 * Whether a value in a syntax tree is a node or a list, either of which may contain further nodes.
 */
export function isPart(value: unknown): value is object {
  return typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
}

/**
 * Returns the direct contents of a part of a syntax tree, both nodes and plain values, in order.
 */
export function directPartsOf(part: object): readonly unknown[] {
  const keys = Object.keys(part);
  const read = holdsLiterals(part) ? keys.filter((key) => !VALUES_OF_LITERALS.has(key)) : keys;
  return read.map((key) => (part as Readonly<Record<string, unknown>>)[key]);
}

/**
 * Rewrites every object and list of a syntax tree, contents first. Returns the same tree if
 * nothing changes. Long lists of literals keep their contents. The function uses an explicit stack
 * instead of recursion, because a chain of thousands of operators is a deep tree.
 */
export function rewritten<Tree extends object>(root: Tree, change: (part: object) => object): Tree {
  const done = new Map<object, object>();
  const open: object[] = [root];
  for (let part = open.at(-1); part !== undefined; part = open.at(-1)) {
    const openCount = open.length;
    for (const inside of done.has(part) || holdsLiterals(part) ? [] : directPartsOf(part)) {
      if (isPart(inside) && !done.has(inside)) open.push(inside);
    }
    if (open.length > openCount) continue;
    open.pop();
    if (done.has(part)) continue;
    done.set(part, change(changedPart(part, (inside) => done.get(inside) ?? inside)));
  }
  return (done.get(root) ?? root) as Tree;
}

/**
 * Rewrites the direct contents of a part of a syntax tree. Returns the same part if nothing
 * changes. A long list of literals keeps its contents.
 */
export function changedPart(part: object, change: (inside: object) => object): object {
  if (holdsLiterals(part)) return part;
  let isChanged = false;
  const changed = (inside: unknown): unknown => {
    if (!isPart(inside)) return inside;
    const now = change(inside);
    isChanged ||= now !== inside;
    return now;
  };
  const copy: object = Array.isArray(part)
    ? part.map(changed)
    : Object.fromEntries(Object.entries(part).map(([key, value]) => [key, changed(value)]));
  return isChanged ? copy : part;
}

/**
 * Copies a syntax tree, and gives all nodes the same location. The values of a long list of
 * literals are copied on demand.
 */
export function relocated<Tree extends object>(tree: Tree, location: Location): Tree {
  return copyOf(tree, location) as Tree;
}

function copyOf(part: unknown, location: Location): unknown {
  if (Array.isArray(part)) return part.map((each) => copyOf(each, location));
  if (!isPart(part)) return part;
  const node = part as Readonly<Record<string, unknown>>;
  const keys = Object.keys(node);
  const hasLiterals = holdsLiterals(node);
  const now = hasLiterals ? keys.filter((key) => !VALUES_OF_LITERALS.has(key)) : keys;
  const copy = Object.fromEntries(
    now.map((key) => [key, key === "_location" ? location : copyOf(node[key], location)]),
  );
  if (!hasLiterals) return copy;
  for (const key of keys) {
    if (!VALUES_OF_LITERALS.has(key)) continue;
    let values: unknown;
    const get = (): unknown => {
      values ??= copyOf(node[key], location);
      return values;
    };
    Object.defineProperty(copy, key, { enumerable: true, get });
  }
  return copy;
}

/**
 * Whether two syntax trees are equal except for their locations. Trees with long lists of literals
 * always count as different, because these lists are not compared.
 */
export function sameTree(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || left === null) return false;
  if (typeof right !== "object" || right === null) return false;
  if (holdsLiterals(left) || holdsLiterals(right)) return false;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  const [one, other] = [left, right] as readonly Readonly<Record<string, unknown>>[];
  return keys.every((key) => key === "_location" || sameTree(one?.[key], other?.[key]));
}

/** The members of a literal list that create nodes when they are read. */
const VALUES_OF_LITERALS: ReadonlySet<string> = new Set(["expressions", "values"]);

function holdsLiterals(part: object): boolean {
  return "literals" in part && part.literals !== undefined;
}
