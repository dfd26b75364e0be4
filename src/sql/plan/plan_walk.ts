/**
 * What a plan holds: its nodes, their expressions, the subqueries in those.
 */
import type { BoundExpression, BoundSort, BoundSubquery } from "../bind/bound_expressions.ts";
import { readsOuter } from "../bind/query/query_walk.ts";
import { expressionsOfCall } from "../bind/query/window_walk.ts";
import { childrenOf } from "../bind/walk.ts";
import { keyCountOf } from "./access.ts";
import type { PlanNode, ScanNode } from "./plan.ts";

/** The subqueries in the expressions of one node. */
export function ownSubqueries(node: PlanNode): BoundSubquery[] {
  const found: BoundSubquery[] = [];
  addSubqueries(node, found);
  return found;
}

// Every statement that is planned passes here: lists are filled, and not made of lists.

function addSubqueries(node: PlanNode, found: BoundSubquery[]): void {
  for (const expression of expressionsOf(node)) addSubqueriesOf(expression, found);
}

function addSubqueriesOf(expression: BoundExpression, found: BoundSubquery[]): void {
  if (expression.kind === "subquery" && !found.includes(expression.subquery)) {
    found.push(expression.subquery);
  }
  for (const child of childrenOf(expression)) addSubqueriesOf(child, found);
}

/** Keys of a list that are looked up for each row of an outer query anew. */
const KEYS_PER_ROW_MAX = 4;

/**
 * Whether a plan that is run for each row of an outer query reads tables only by keys that are that
 * row's own, and at least one.
 */
export function isLookup(root: PlanNode): boolean {
  const scans = nodesOf(root).filter((node): node is ScanNode => node.kind === "scan");
  return scans.length > 0 && scans.every(isByOwnKey);
}

/** A list that is the same for all outer rows is worth being read once, however short it is. */
function isByOwnKey({ key, sought }: ScanNode): boolean {
  if (key !== undefined) return true;
  if (sought === undefined || keyCountOf(sought) > KEYS_PER_ROW_MAX) return false;
  return sought.some((parts) => parts.some(({ items }) => items.some(readsOuter)));
}

/** Whether rows are found by their keys. */
export function isByKey({ key, sought }: ScanNode): boolean {
  return key !== undefined || sought !== undefined;
}

/** A plan and all that it reads. */
export function nodesOf(root: PlanNode): PlanNode[] {
  const nodes: PlanNode[] = [];
  addNodes(root, nodes);
  return nodes;
}

function addNodes(node: PlanNode, into: PlanNode[]): void {
  into.push(node);
  for (const input of inputsOf(node)) addNodes(input, into);
}

/** The nodes that a node reads. */
export function inputsOf(node: PlanNode): readonly PlanNode[] {
  switch (node.kind) {
    case "single":
    case "scan":
    case "system":
    case "values":
    case "function":
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

/** The expressions of one node. */
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
      return [...node.captures.map(({ value }) => value), ...present([node.condition])];
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
  const { key = [], prefix = [], ranges, sought = [], textRanges = [] } = node;
  const parts = [...sought.flat(), ...prefix];
  if (ranges.length === 0 && textRanges.length === 0 && parts.length === 0) return key;
  const found = key.concat(parts.flatMap(({ items, lists }) => items.concat(lists)));
  for (const { like, max, min } of [...ranges, ...textRanges]) {
    found.push(...present([min, max, like]));
  }
  return found;
}

function present(expressions: readonly (BoundExpression | undefined)[]): BoundExpression[] {
  return expressions.filter((expression) => expression !== undefined);
}

function sorted(sorts: readonly BoundSort[]): BoundExpression[] {
  return sorts.map(({ expression }) => expression);
}
