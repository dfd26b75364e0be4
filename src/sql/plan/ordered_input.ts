/**
 * Determines whether rows arrive, or can be read, in the order of a sort. The first sort key must
 * be a table column, and the nodes between the table and the sort may only drop rows or compute
 * columns.
 *
 * Rows of a table arrive in `_seq` order, and can also be read in reverse `_seq` order. Rows that
 * a transaction has staged have no seq yet, so they come last. Rows can also be read in the order
 * of any other column, unless the transaction has staged rows, or the column contains NULL or
 * strings of different lengths with long equal prefixes.
 */
import { type IndexEntry, isInverted, readIndexesOf, type TableEntry } from "../../catalog/mod.ts";
import { SEQ_COLUMN_ID } from "../../storage/mod.ts";
import { isCollated } from "../../types/mod.ts";
import type { BoundColumn, BoundExpression, BoundSort } from "../bind/bound_expressions.ts";
import { asKeysOf } from "../bind/change/index_terms.ts";
import { isVolatile, mapChildren } from "../bind/walk.ts";
import { depthOf, isReadable, isUniqueAccess, wholeOf, withinSingle } from "./index_access.ts";
import type { AggregateNode, IndexAccess, PlanNode, ScanNode } from "./plan.ts";
import { isByKey } from "./plan_walk.ts";

/** Returns the table column by which a sort key orders the rows, or undefined if there is none. */
export function orderedColumnOf(
  input: PlanNode,
  { expression: key, isDescending }: Pick<BoundSort, "expression" | "isDescending">,
): number | undefined {
  let node = input;
  let read = key;
  while (node.kind === "filter" || node.kind === "project") {
    if (read.kind !== "column") return undefined;
    if (node.kind === "filter") {
      if (isVolatile(node.condition) || node.raisesAlways === true) return undefined;
    } else {
      const { id } = read.column;
      // The rows may have to be read again in a different order, which would change volatile
      // values.
      if (node.expressions.some(isVolatile)) return undefined;
      const below = node.expressions[node.columns.findIndex((column) => column.id === id)];
      if (below === undefined) return undefined;
      read = below;
    }
    node = node.input;
  }
  if (node.kind !== "scan" || !mayBeOrdered(node)) return undefined;
  if (isNarrow(node)) return undefined;
  if (isCollated(read.type)) return undefined;
  const columnId = read.kind === "column" ? read.column.origin?.columnId : undefined;
  // Rows are stored in `_seq` order, and can also be read in reverse, newest row first.
  if (columnId === SEQ_COLUMN_ID) return isDescending ? columnId : undefined;
  return columnId === undefined || columnId < 0 ? undefined : columnId;
}

/** An index whose order covers the first keys of a sort. */
export interface OrderedIndex {
  /** The range of keys to read from the index. */
  readonly access: IndexAccess;
  readonly isDescending: boolean;
  /** The number of leading sort keys that the order of the index covers. */
  readonly keyCount: number;
}

/**
 * Returns an index whose order covers the first sort keys. A column with only one possible value
 * is ignored both in the index and in the sort:
 *
 *     index (a, b, c)     a = 1 ORDER BY b DESC, c DESC     the rows with a = 1, backwards
 */
export function indexOrderOf(
  input: PlanNode,
  keys: readonly BoundSort[],
): OrderedIndex | undefined {
  const scan = scanBelow(input);
  if (scan === undefined) return undefined;
  const { indexes = [], table } = scan;
  const [first] = indexes;
  // An access through a complete unique key yields few rows, and sorting them is faster.
  if (first !== undefined && isUniqueAccess(first)) return undefined;
  const below = keys.map((key) => expressionBelow(input, key.expression));
  let best: OrderedIndex | undefined;
  for (const index of readIndexesOf(table)) {
    if (isInverted(index)) continue;
    const known = indexes.find((access) => access.index === index);
    if (known === undefined && !isReadable(index)) continue;
    const access = known === undefined ? wholeOf(index) : withinSingle(known);
    const sorted = keys.map((key, at) => {
      return { ...key, columnId: partOfIndex(below[at], { table, index }) };
    });
    const order = orderBy(access, sorted, table);
    if (order !== undefined && (best === undefined || isBetter(order, best))) best = order;
  }
  return best;
}

/**
 * Whether the index of `order` is preferable to that of `other`. An index that also finds rows by
 * listed values is better, because fewer of its rows are read and then dropped.
 */
function isBetter(order: OrderedIndex, other: OrderedIndex): boolean {
  const depths = depthOf(order.access) - depthOf(other.access);
  return depths === 0 ? order.keyCount > other.keyCount : depths > 0;
}

/**
 * The maximum number of min and max results of an aggregate that are found by reading rows in
 * order rather than by reading all rows.
 */
const EXTREMES_MAX = 4;

/**
 * For each result of an aggregate, returns the sort order that puts this result first, ignoring
 * NULL. Returns undefined unless every result is the minimum or maximum of a column over all rows.
 */
export function extremeKeysOf({
  aggregates,
  groupBy,
  groupingSets,
}: AggregateNode): readonly BoundSort[] | undefined {
  if (groupBy.length > 0 || groupingSets !== undefined) return undefined;
  if (aggregates.length === 0 || aggregates.length > EXTREMES_MAX) return undefined;
  const keys = aggregates.flatMap(({ argument, filter, form }): BoundSort[] => {
    if (form.name !== "min" && form.name !== "max") return [];
    if (argument?.kind !== "column" || filter !== undefined) return [];
    const isDescending = form.name === "max";
    return [{ expression: argument, isDescending, nullsFirst: isDescending }];
  });
  return keys.length === aggregates.length ? keys : undefined;
}

/** A sort key, with the table column by which it sorts. */
type SortedColumn = BoundSort & { readonly columnId: number | undefined };

function orderBy(
  access: IndexAccess,
  keys: readonly SortedColumn[],
  table: TableEntry,
): OrderedIndex | undefined {
  const { columnIds } = access.index;
  const fixed = new Set(columnIds.slice(0, depthOf(access)));
  let at = fixed.size;
  let isDescending: boolean | undefined;
  let keyCount = 0;
  for (const key of keys) {
    const { columnId } = key;
    if (columnId === undefined) break;
    if (!fixed.has(columnId)) {
      if (columnId !== columnIds[at] || !hasNullsLikeIndex(key, table)) break;
      if ((isDescending ?? key.isDescending) !== key.isDescending) break;
      ({ isDescending } = key);
      at += 1;
    }
    keyCount += 1;
  }
  if (isDescending === undefined) return undefined;
  // Rows that a partial index lacks are read after the rows in the index, but a descending order
  // may need them first.
  const isReadLast = !isDescending || fixed.size > 0 || access.endsAtNull;
  if (access.index.where !== undefined && !isReadLast) return undefined;
  return { access, isDescending, keyCount };
}

/**
 * Returns the position of the index part that has the same value as an expression on the table.
 */
function partOfIndex(
  expression: BoundExpression | undefined,
  place: { readonly table: TableEntry; readonly index: IndexEntry },
): number | undefined {
  if (expression === undefined || isCollated(expression.type)) return undefined;
  const guards: BoundExpression[] = [];
  const part = asKeysOf(expression, place, guards);
  if (part.kind !== "column" || guards.length > 0) return undefined;
  return part.column.origin?.columnId;
}

/**
 * Whether a sort places NULL where an index does: last in ascending order, first in descending
 * order.
 */
function hasNullsLikeIndex(
  { columnId, isDescending, nullsFirst }: SortedColumn,
  { columns }: TableEntry,
): boolean {
  if (nullsFirst === isDescending) return true;
  return columns.some((column) => column.columnId === columnId && column.notNull);
}

/**
 * Translates an expression on the rows of a node into an expression on the columns of the scan
 * below it.
 */
function expressionBelow(input: PlanNode, expression: BoundExpression): BoundExpression {
  if (input.kind === "filter") return expressionBelow(input.input, expression);
  if (input.kind !== "project") return expression;
  const below = (part: BoundExpression): BoundExpression => {
    if (part.kind !== "column") return mapChildren(part, below);
    const at = input.columns.findIndex(({ id }) => id === part.column.id);
    return input.expressions[at] ?? part;
  };
  return expressionBelow(input.input, below(expression));
}

/**
 * Returns the scan below any filters and projections, if its rows may be read in a different
 * order.
 */
function scanBelow(input: PlanNode): ScanNode | undefined {
  if (input.kind === "scan") return mayBeOrdered(input) ? input : undefined;
  if (input.kind === "filter") {
    if (isVolatile(input.condition) || input.raisesAlways === true) return undefined;
    return scanBelow(input.input);
  }
  if (input.kind !== "project" || input.expressions.some(isVolatile)) return undefined;
  return scanBelow(input.input);
}

/**
 * Whether a scan may read rows in an order other than seq order. Other orders exist only for the
 * newest live rows. A reader of a divided query cannot use them, because they cover all rows, and
 * the reader reads only its share.
 */
function mayBeOrdered(scan: ScanNode): boolean {
  const isWhole = scan.isDivided !== true && !isByKey(scan);
  return isWhole && !scan.withTombstones && scan.past === undefined;
}

/** Whether rows arrive in the order of the given sort keys. */
export function areInOrder(input: PlanNode, keys: readonly BoundSort[]): boolean {
  const scan = scanInOrder(input, keys);
  return scan !== undefined && scan.indexes === undefined && scan.either === undefined;
}

/**
 * Returns the scan below a node whose rows arrive in the order of the given sort keys without the
 * use of an index. Returns undefined if the rows arrive in any other order.
 */
export function scanInOrder(input: PlanNode, keys: readonly BoundSort[]): ScanNode | undefined {
  const [key] = keys;
  // Staged rows have no seq, so they are equal in the first sort key, but may differ in other
  // keys.
  if (key === undefined || keys.length > 1 || key.isDescending || key.nullsFirst) return undefined;
  let node = input;
  let read: BoundExpression | undefined = key.expression;
  while (node.kind === "filter" || node.kind === "project") {
    if (read?.kind !== "column") return undefined;
    const { id }: BoundColumn = read.column;
    if (node.kind === "project") {
      read = node.expressions[node.columns.findIndex((column) => column.id === id)];
    }
    node = node.input;
  }
  if (node.kind !== "scan" || isByKey(node) || read?.kind !== "column") return undefined;
  return read.column.origin?.columnId === SEQ_COLUMN_ID ? node : undefined;
}

/** Whether the conditions on the first key column are expected to select few rows. */
function isNarrow({ ranges, table, textRanges = [] }: ScanNode): boolean {
  return [...ranges, ...textRanges].some(({ beginning, columnId, like, max, min }) => {
    const isEqual = min !== undefined && min === max;
    const isBegun = like !== undefined || beginning !== undefined;
    return columnId === table.primaryKey[0] && (isEqual || isBegun);
  });
}
