/**
 * Which side of a join can be read by the keys of the other one: where the equalities of the join,
 * with conditions on that side alone, fix the whole primary key of a table.
 *
 *     few orders ⋈ items  on  items.order_id = orders.id AND items.line = 1       key (order_id, line)
 *
 * Where they fix no more than its first column, a number, the keys still say between which values
 * rows lie that can have a partner.
 *
 * Whether it is, the run decides: only then is it known how few the keys are.
 *
 * So three rows that are joined with a million read three, as do EXISTS and recursion.
 */
import { isNumberType } from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctsOf, isVolatile } from "../bind/walk.ts";
import { areFewKeys, equalityIn, isSure, storedColumnId } from "./access.ts";
import type { JoinNode, PlanNode, ScanNode } from "./plan.ts";
import { isByKey } from "./plan_walk.ts";

/** A part of a key: the position of a key of the join, or a value of its own. */
export type JoinedPart = number | BoundExpression;

export interface KeyedSide {
  readonly side: "left" | "right";
  /** What is read by keys instead. */
  readonly scan: ScanNode;
  /** In key order. */
  readonly parts: readonly JoinedPart[];
  /** Whether they are the whole key, and not its first column. */
  readonly isWhole: boolean;
}

/** The side of a join that may be read by keys; undefined where none can. */
export function keyedSideOf(node: JoinNode): KeyedSide | undefined {
  const { holdsLeft = false, join } = node;
  // A row without a partner is wanted, too: that side is read whole.
  const isLeftWhole = holdsLeft || (join !== "inner" && join !== "semi");
  if (!isLeftWhole) {
    const keyed = keyedSide(node.left, node.leftKeys);
    if (keyed !== undefined && areNotable(node.rightKeys)) return { side: "left", ...keyed };
  }
  if (join === "full") return undefined;
  const keyed = keyedSide(node.right, node.rightKeys);
  if (keyed === undefined || !areNotable(node.leftKeys)) return undefined;
  return { side: "right", ...keyed };
}

/** Whether keys may be evaluated once more than the join does. */
function areNotable(keys: readonly BoundExpression[]): boolean {
  return !keys.some(isVolatile);
}

function keyedSide(
  node: PlanNode,
  keys: readonly (BoundExpression | undefined)[],
): Omit<KeyedSide, "side"> | undefined {
  const values = new Map<number, BoundExpression>();
  let read = node;
  let keysOfRead = keys;
  while (read.kind === "filter" || read.kind === "project") {
    if (read.kind === "filter") addValues(read.condition, values);
    else keysOfRead = keysBelow(read, keysOfRead);
    read = read.input;
  }
  if (read.kind !== "scan" || isByKey(read) || read.withTombstones) return undefined;
  // Every reader would look up all keys, and not only those of its part.
  if (read.isDivided === true) return undefined;
  if (!areFewKeys(read, 1)) return undefined;
  const { primaryKey } = read.table;
  const columnIds = keysOfRead.map((key) => (key === undefined ? undefined : storedColumnId(key)));
  const parts = primaryKey.flatMap((columnId): JoinedPart[] => {
    const position = columnIds.indexOf(columnId);
    if (position !== -1) return [position];
    const value = values.get(columnId);
    return value === undefined ? [] : [value];
  });
  if (parts.some(isJoined) && parts.length === primaryKey.length) {
    return { scan: read, parts, isWhole: true };
  }
  const first = columnIds.indexOf(primaryKey[0]);
  const key = primaryKey.length > 1 ? keysOfRead[first] : undefined;
  const isNumber = key !== undefined && isNumberType(key.type);
  return isNumber ? { scan: read, parts: [first], isWhole: false } : undefined;
}

function isJoined(part: JoinedPart): boolean {
  return typeof part === "number";
}

function addValues(condition: BoundExpression, into: Map<number, BoundExpression>): void {
  for (const each of conjunctsOf(condition)) {
    const equality = equalityIn(each);
    if (equality !== undefined && isSure(equality.value))
      into.set(equality.columnId, equality.value);
  }
}

/** The keys as the input of a projection has them; undefined for one that it computes. */
function keysBelow(
  { columns, expressions }: Extract<PlanNode, { kind: "project" }>,
  keys: readonly (BoundExpression | undefined)[],
): readonly (BoundExpression | undefined)[] {
  return keys.map((key) => {
    if (key?.kind !== "column") return undefined;
    return expressions[columns.findIndex(({ id }) => id === key.column.id)];
  });
}
