/**
 * Finds a side of a join whose rows can be looked up by the join keys of the other side. This is
 * possible if the join's equalities, together with conditions on that side alone, determine the
 * entire primary key of a table.
 *
 *     few orders ⋈ items  on  items.order_id = orders.id AND items.line = 1       key (order_id, line)
 *
 * An index can serve as well, even if only its leading columns are determined. If only the first
 * column of the primary key is determined, and it is a number, the keys still give bounds for the
 * rows that can have a partner.
 *
 * Each execution decides whether to look up the keys, because their number is known only then.
 *
 * A join between three rows and a million rows then reads only the rows that match the three. The
 * same applies to EXISTS and recursion.
 */
import { type IndexEntry, readIndexesOf } from "../../catalog/mod.ts";
import { isNumberType } from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctsOf, isSure, isVolatile } from "../bind/walk.ts";
import { areFewKeys, equalityIn, storedColumnId } from "./access.ts";
import { isReadable } from "./index_access.ts";
import type { JoinNode, PlanNode, ScanNode } from "./plan.ts";
import { isByKey } from "./plan_walk.ts";

/** One column of a key: the index of a join key, or a value that does not depend on the join. */
export type JoinedPart = number | BoundExpression;

export interface RuntimeFilter {
  readonly side: "left" | "right";
  /** The scan that lookups by key replace. */
  readonly scan: ScanNode;
  /** The values of the key to look up, one for each key column, in key order. */
  readonly parts: readonly JoinedPart[];
  /**
   * The columns whose values the parts supply: the entire primary key, only its first column, or
   * the leading columns of an index.
   */
  readonly by: "key" | "first column" | IndexEntry;
}

/**
 * Returns the side of a join whose rows may be looked up by key; undefined if neither side allows
 * it.
 */
export function runtimeFilterOf(node: JoinNode): RuntimeFilter | undefined {
  const { holdsLeft = false, join } = node;
  // A side of a join must be read completely if even its rows without a partner are needed.
  const isLeftWhole = holdsLeft || (join !== "inner" && join !== "semi");
  if (!isLeftWhole) {
    const keyed = filterOfSide(node.left, node.leftKeys);
    if (keyed !== undefined && areNotable(node.rightKeys)) return { side: "left", ...keyed };
  }
  if (join === "full") return undefined;
  const keyed = filterOfSide(node.right, node.rightKeys);
  if (keyed === undefined || !areNotable(node.leftKeys)) return undefined;
  return { side: "right", ...keyed };
}

/**
 * Whether the join keys may be evaluated once more, in addition to their evaluation by the join.
 */
function areNotable(keys: readonly BoundExpression[]): boolean {
  return !keys.some(isVolatile);
}

function filterOfSide(
  node: PlanNode,
  keys: readonly (BoundExpression | undefined)[],
): Omit<RuntimeFilter, "side"> | undefined {
  const values = new Map<number, BoundExpression>();
  let read = node;
  let keysOfRead = keys;
  while (read.kind === "filter" || read.kind === "project") {
    if (read.kind === "filter") addValues(read.condition, values);
    else keysOfRead = keysBelow(read, keysOfRead);
    read = read.input;
  }
  if (read.kind !== "scan" || isByKey(read) || read.withTombstones) return undefined;
  // Every reader of a divided query would look up all keys, but each should read only its share.
  if (read.isDivided === true) return undefined;
  if (!areFewKeys(read, 1)) return undefined;
  const { primaryKey } = read.table;
  // Indexes contain only current rows, so they cannot serve a read of the past.
  const indexes = read.past === undefined ? readIndexesOf(read.table) : [];
  const columnIds = keysOfRead.map((key) => (key === undefined ? undefined : storedColumnId(key)));
  const partOf = (columnId: number): JoinedPart | undefined => {
    const position = columnIds.indexOf(columnId);
    return position === -1 ? values.get(columnId) : position;
  };
  const parts = leadingParts(primaryKey, partOf);
  if (parts.some(isJoined) && parts.length === primaryKey.length) {
    return { scan: read, parts, by: "key" };
  }
  const indexed = bestIndex(indexes, partOf);
  if (indexed !== undefined) return { scan: read, ...indexed };
  const first = columnIds.indexOf(primaryKey[0]);
  const key = primaryKey.length > 1 ? keysOfRead[first] : undefined;
  const isNumber = key !== undefined && isNumberType(key.type);
  return isNumber ? { scan: read, parts: [first], by: "first column" } : undefined;
}

type PartOf = (columnId: number) => JoinedPart | undefined;

/** Returns the values for the leading columns of a key, up to the first column without a value. */
function leadingParts(columnIds: readonly number[], partOf: PartOf): readonly JoinedPart[] {
  const parts: JoinedPart[] = [];
  for (const columnId of columnIds) {
    const part = partOf(columnId);
    if (part === undefined) break;
    parts.push(part);
  }
  return parts;
}

/**
 * Returns the index for which the join determines the most columns, preferring a unique index
 * whose columns are all determined.
 */
function bestIndex(
  indexes: readonly IndexEntry[],
  partOf: PartOf,
): Pick<RuntimeFilter, "parts" | "by"> | undefined {
  let best: Pick<RuntimeFilter, "parts" | "by"> | undefined;
  let most = 0;
  for (const index of indexes.filter(isReadable)) {
    const parts = leadingParts(index.columnIds, partOf);
    const isUnique = index.isUnique && parts.length === index.columnIds.length;
    const worth = isUnique ? Number.POSITIVE_INFINITY : parts.length;
    if (worth <= most || !parts.some(isJoined)) continue;
    best = { parts, by: index };
    most = worth;
  }
  return best;
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

/**
 * Rewrites join keys as expressions on the input of a projection. A key that is not a plain column
 * becomes undefined.
 */
function keysBelow(
  { columns, expressions }: Extract<PlanNode, { kind: "project" }>,
  keys: readonly (BoundExpression | undefined)[],
): readonly (BoundExpression | undefined)[] {
  return keys.map((key) => {
    if (key?.kind !== "column") return undefined;
    return expressions[columns.findIndex(({ id }) => id === key.column.id)];
  });
}
