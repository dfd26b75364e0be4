/**
 * Visits the parts of a plan: its nodes, the expressions in the nodes, and the subqueries in the
 * expressions.
 */
import type { BoundExpression, BoundSort, BoundSubquery } from "../bind/bound_expressions.ts";
import { readsOuter } from "../bind/query/query_walk.ts";
import { expressionsOfCall } from "../bind/query/window_walk.ts";
import { childrenOf } from "../bind/walk.ts";
import { keyCountOf } from "./access.ts";
import { isUniqueAccess } from "./index_access.ts";
import type { PlanNode, ScanNode, SoughtKeys } from "./plan.ts";

/** Returns the subqueries in the expressions of a single node. */
export function ownSubqueries(node: PlanNode): BoundSubquery[] {
  const found: BoundSubquery[] = [];
  addSubqueries(node, found);
  return found;
}

// This function runs for every planned statement, so it appends to a single list instead of
// concatenating lists.

function addSubqueries(node: PlanNode, found: BoundSubquery[]): void {
  for (const expression of expressionsOf(node)) addSubqueriesOf(expression, found);
}

function addSubqueriesOf(expression: BoundExpression, found: BoundSubquery[]): void {
  if (expression.kind === "subquery" && !found.includes(expression.subquery)) {
    found.push(expression.subquery);
  }
  for (const child of childrenOf(expression)) addSubqueriesOf(child, found);
}

/** The maximum number of keys that are looked up again for each row of an outer query. */
const KEYS_PER_ROW_MAX = 4;

/**
 * Whether a plan that runs for each row of an outer query reads at least one table, and finds all
 * rows by keys that depend on the outer row.
 */
export function isLookup(root: PlanNode): boolean {
  const scans = nodesOf(root).filter((node): node is ScanNode => node.kind === "scan");
  return scans.length > 0 && scans.every(isByOwnKey);
}

/**
 * Whether a scan looks up keys that depend on the outer row. Keys that are the same for all outer
 * rows do not count, because reading their rows once is faster.
 */
function isByOwnKey({ indexes = [], key, sought }: ScanNode): boolean {
  if (key !== undefined) return true;
  if (sought !== undefined) return areOwnKeys(sought);
  const [index] = indexes;
  return index !== undefined && isUniqueAccess(index) && areOwnKeys(index.keys);
}

function areOwnKeys(keys: SoughtKeys): boolean {
  if (keyCountOf(keys) > KEYS_PER_ROW_MAX) return false;
  return keys.some((parts) => parts.some(({ items }) => items.some(readsOuter)));
}

/** Whether a scan finds its rows by their keys. */
export function isByKey({ key, sought }: ScanNode): boolean {
  return key !== undefined || sought !== undefined;
}

/** Returns a plan's root node and all nodes below it. */
export function nodesOf(root: PlanNode): PlanNode[] {
  const nodes: PlanNode[] = [];
  addNodes(root, nodes);
  return nodes;
}

function addNodes(node: PlanNode, into: PlanNode[]): void {
  into.push(node);
  for (const input of inputsOf(node)) addNodes(input, into);
}

/** Returns the inputs of a node. */
export function inputsOf(node: PlanNode): readonly PlanNode[] {
  switch (node.kind) {
    case "single":
    case "scan":
    case "system":
    case "values":
    case "function":
    case "changes":
    case "cte":
    case "working":
    case "gathered":
      return [];
    case "recursive":
      return [node.first, node.next];
    case "join":
    case "lateral":
    case "set":
      return [node.left, node.right];
    default:
      return [node.input];
  }
}

/** Returns the expressions of one node. */
export function expressionsOf(node: PlanNode): readonly BoundExpression[] {
  switch (node.kind) {
    case "scan":
      return expressionsOfScan(node);
    case "values":
      return node.rows.flat();
    case "function":
    case "expand":
      return node.functions.flatMap(({ args }) => args);
    case "filter":
      return [node.condition];
    case "project":
      return node.expressions;
    case "join":
      return [...node.leftKeys, ...node.rightKeys, ...present([node.residual])];
    case "lateral":
      return [...node.outerReferences.map(({ value }) => value), ...present([node.condition])];
    case "aggregate":
      return [
        ...node.groupBy.map(({ expression }) => expression),
        ...node.aggregates.flatMap(({ argument, extra, filter, orderBy }) => [
          ...present([argument, filter]),
          ...extra,
          ...sorted(orderBy),
        ]),
      ];
    case "window":
      return node.calls.flatMap(expressionsOfCall);
    case "distinct":
      return [...node.on];
    case "sort":
      return [...sorted(node.keys), ...present([node.limit, node.offset])];
    case "limit":
      return [...sorted(node.ties ?? []), ...present([node.limit, node.offset])];
    default:
      return [];
  }
}

function expressionsOfScan(node: ScanNode): readonly BoundExpression[] {
  const { either = [], key = [], prefix = [], ranges, sought = [], textRanges = [] } = node;
  const listed = [...(node.indexes ?? []), ...either];
  const indexes = listed.filter((access) => access.index !== undefined);
  const parts = [...sought.flat(), ...prefix, ...listed.flatMap(({ keys }) => keys.flat())];
  if (ranges.length === 0 && textRanges.length === 0 && parts.length + indexes.length === 0) {
    return key;
  }
  const found = key.concat(parts.flatMap(({ items, lists }) => items.concat(lists)));
  for (const { beginning, like, max, min } of [...ranges, ...textRanges]) {
    found.push(...present([min, max, like, beginning]));
  }
  for (const { beginnings, edges, terms = [] } of indexes) {
    for (const { values } of edges) found.push(...values);
    for (const { value } of terms) found.push(value);
    for (const { beginning, like } of beginnings) found.push(...present([like, beginning]));
  }
  return found;
}

function present(expressions: readonly (BoundExpression | undefined)[]): BoundExpression[] {
  return expressions.filter((expression) => expression !== undefined);
}

function sorted(sorts: readonly BoundSort[]): BoundExpression[] {
  return sorts.map(({ expression }) => expression);
}
